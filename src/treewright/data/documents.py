"""Documents of a treebank, and jackknife folds of whole documents or of blocks within them.

A model that was trained on the neighbours of a sentence has already seen its names and phrases. Therefore
folds consist of whole documents: a fold model is tested on new documents, as most models are. If the dev set
comes from the same documents as the training set, the final model has seen these documents. Then folds are
blocks of consecutive sentences within documents, so that the fold models have seen every document, too.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from treewright.data.deptree import DepTree

FoldBy = Literal["auto", "document", "block"]
NEW_DOCUMENT = "# newdoc"
NEW_DOCUMENT_ID = re.compile(r"# newdoc(?:\s+id\s*=\s*(.*\S))?\s*")
SENTENCE_ID = re.compile(r"#\s*sent_id\s*=\s*(.*\S)")
NUMBERED = re.compile(r"(.+)[-_./:][^-_./:]*")
"""A sentence id, split into the part before its last separator and the number of the sentence."""
BLOCKS_PER_FOLD = 10
LARGEST_FOLD = 2.0
"""Maximum size of a fold relative to the mean; if a fold is larger, whole documents are not used as folds."""


class Folds(NamedTuple):
    """Cross-validation folds of sentences.

    Attributes
    ----------
    parts : list of ndarray of int64
        The indices of the sentences of each fold, in increasing order.
    description : str
        Description of how the folds were made, for log lines.
    """

    parts: list[npt.NDArray[np.int64]]
    description: str


def deal_folds(
    trees: Sequence[object], n_folds: int, *, by: FoldBy = "document", random_state: int = 0
) -> Folds:
    """Assign whole documents, or blocks within documents, to folds at random.

    A document starts at a ``# newdoc`` comment, or consists of sentences whose ids are equal up to the last
    separator. If there are no documents, or too few for folds of similar sizes, blocks of consecutive
    sentences are used instead.

    Parameters
    ----------
    trees : sequence of object
        The sentences; only a `DepTree` has comments that identify its document.
    n_folds : int
        Number of folds.
    by : {"document", "block"}
        Assign whole documents to folds, or cut each document into one block of consecutive sentences per
        fold. "auto" means "document" here.
    random_state : int
        Seed of the random number generator.
    """
    comments = [tree.comments if isinstance(tree, DepTree) else [] for tree in trees]
    for name, numbers in (("# newdoc", _by_marks(comments)), ("sent_id", _by_ids(comments))):
        if numbers is not None and by == "block":
            parts = _deal_blocks(numbers, n_folds, random_state)
            return Folds(
                parts, f"{n_folds} folds of blocks within {int(numbers.max()) + 1} documents (by {name})"
            )
        if numbers is not None:
            parts = _deal(numbers, n_folds, random_state)
            if max(map(len, parts)) <= LARGEST_FOLD * len(trees) / n_folds and min(map(len, parts)) > 0:
                return Folds(parts, f"{n_folds} folds of {int(numbers.max()) + 1} documents (by {name})")
    size = max(1, len(trees) // (BLOCKS_PER_FOLD * n_folds))
    parts = _deal(np.arange(len(trees)) // size, n_folds, random_state)
    kind = f"blocks of {size} consecutive sentences" if size > 1 else "sentences"
    return Folds(parts, f"{n_folds} folds of {kind}")


def resolve_fold_by(by: FoldBy, trees: Sequence[object], dev: Sequence[object] | None) -> FoldBy:
    """Replace "auto" by "block" if most dev sentences come from training documents, or else by "document"."""
    if by != "auto":
        return by
    known = set(_name_documents(trees))
    names = _name_documents(dev or [])
    return "block" if 2 * sum(name in known for name in names) > max(1, len(dev or [])) else "document"


def _name_documents(trees: Sequence[object]) -> list[str]:
    """Return the names of the documents of sentences; documents without a name are skipped."""
    names, current = [], ""
    for tree in trees:
        comments = tree.comments if isinstance(tree, DepTree) else []
        marks = [match for line in comments if (match := NEW_DOCUMENT_ID.fullmatch(line))]
        ids = [match[1] for line in comments if (match := SENTENCE_ID.fullmatch(line))]
        if marks:
            current = marks[-1][1] or ""
        whole = NUMBERED.fullmatch(ids[0]) if ids else None
        names.append(current or (whole[1] if whole else ""))
    return [name for name in names if name]


def _by_marks(comments: Sequence[Sequence[str]]) -> npt.NDArray[np.int64] | None:
    """Return the index of each sentence's document, if documents start at comments; None otherwise."""
    begins = np.array([any(line.startswith(NEW_DOCUMENT) for line in each) for each in comments])
    return np.maximum(np.cumsum(begins) - 1, 0) if begins.any() else None


def _by_ids(comments: Sequence[Sequence[str]]) -> npt.NDArray[np.int64] | None:
    """Return the index of each sentence's document, according to its id; None if a sentence has no id."""
    documents: dict[str, int] = {}
    numbers = []
    for each in comments:
        found = next((match[1] for line in each if (match := SENTENCE_ID.fullmatch(line))), "")
        whole = NUMBERED.fullmatch(found)
        if whole is None:
            return None
        numbers.append(documents.setdefault(whole[1], len(documents)))
    return np.array(numbers, dtype=np.int64) if numbers else None


def _deal(documents: npt.NDArray[np.int64], n_folds: int, random_state: int) -> list[npt.NDArray[np.int64]]:
    """Assign each document, in random order, to the fold with the fewest sentences."""
    n_documents = int(documents.max(initial=-1)) + 1
    sizes = np.bincount(documents, minlength=n_documents)
    filled = np.zeros(n_folds, dtype=np.int64)
    fold_of = np.zeros(n_documents, dtype=np.int64)
    for document in np.random.default_rng(random_state).permutation(n_documents):
        fold = int(filled.argmin())
        fold_of[document] = fold
        filled[fold] += sizes[document]
    return [np.flatnonzero(fold_of[documents] == fold) for fold in range(n_folds)]


def _deal_blocks(
    documents: npt.NDArray[np.int64], n_folds: int, random_state: int
) -> list[npt.NDArray[np.int64]]:
    """Cut each document into one block per fold; the fold of the first block is chosen at random."""
    order = np.argsort(documents, kind="stable")
    sizes = np.bincount(documents)
    starts = np.cumsum(sizes) - sizes
    position = np.empty(len(documents), dtype=np.int64)
    position[order] = np.arange(len(documents)) - starts[documents[order]]
    first = np.random.default_rng(random_state).integers(n_folds, size=len(sizes))
    fold_of = (position * n_folds // sizes[documents] + first[documents]) % n_folds
    return [np.flatnonzero(fold_of == fold) for fold in range(n_folds)]
