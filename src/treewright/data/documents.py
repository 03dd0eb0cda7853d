"""Which sentences belong to one document, and folds of whole documents.

A model that has seen the neighbours of a sentence knows its names and phrases. So a sentence that is to be
parsed as if it were new must not have its neighbours among the training sentences of its fold.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright.data.deptree import DepTree

NEW_DOCUMENT = "# newdoc"
SENTENCE_ID = re.compile(r"#\s*sent_id\s*=\s*(.*\S)")
NUMBERED = re.compile(r"(.+)[-_./:][^-_./:]*")
"""An identifier up to its last separator, and the number of the sentence."""
BLOCKS_PER_FOLD = 10
LARGEST_FOLD = 2.0
"""Times the mean; documents that make larger folds are not used."""


class Folds(NamedTuple):
    """Sentences dealt out into parts.

    Attributes
    ----------
    parts : list of ndarray of int64
        The numbers of the sentences of each fold, in increasing order.
    description : str
        How it was done.
    """

    parts: list[npt.NDArray[np.int64]]
    description: str


def deal_folds(trees: Sequence[object], n_folds: int, *, random_state: int = 0) -> Folds:
    """Deal sentences out into folds, whole documents at a time, at random.

    Documents begin at ``# newdoc``, or are what the sentences' identifiers have in common up to their last
    separator. Where there are neither, or too few to make folds of similar sizes, blocks of consecutive
    sentences take their place.

    Parameters
    ----------
    trees : sequence of DepTree or of anything else
        Only trees of CoNLL-U say which document they belong to.
    n_folds : int
    random_state : int
    """
    comments = [tree.comments if isinstance(tree, DepTree) else [] for tree in trees]
    for name, numbers in (("# newdoc", _by_marks(comments)), ("sent_id", _by_ids(comments))):
        if numbers is not None:
            parts = _deal(numbers, n_folds, random_state)
            if max(map(len, parts)) <= LARGEST_FOLD * len(trees) / n_folds and min(map(len, parts)) > 0:
                return Folds(parts, f"{n_folds} folds of {int(numbers.max()) + 1} documents (by {name})")
    size = max(1, len(trees) // (BLOCKS_PER_FOLD * n_folds))
    parts = _deal(np.arange(len(trees)) // size, n_folds, random_state)
    kind = f"blocks of {size} consecutive sentences" if size > 1 else "sentences"
    return Folds(parts, f"{n_folds} folds of {kind}")


def _by_marks(comments: Sequence[Sequence[str]]) -> npt.NDArray[np.int64] | None:
    """Number the documents that begin with a comment."""
    begins = np.array([any(line.startswith(NEW_DOCUMENT) for line in each) for each in comments])
    return np.maximum(np.cumsum(begins) - 1, 0) if begins.any() else None


def _by_ids(comments: Sequence[Sequence[str]]) -> npt.NDArray[np.int64] | None:
    """Number the documents that identifiers name; every sentence must have one."""
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
    """Give each document, in random order, to the fold that has the fewest sentences."""
    n_documents = int(documents.max(initial=-1)) + 1
    sizes = np.bincount(documents, minlength=n_documents)
    filled = np.zeros(n_folds, dtype=np.int64)
    fold_of = np.zeros(n_documents, dtype=np.int64)
    for document in np.random.default_rng(random_state).permutation(n_documents):
        fold = int(filled.argmin())
        fold_of[document] = fold
        filled[fold] += sizes[document]
    return [np.flatnonzero(fold_of[documents] == fold) for fold in range(n_folds)]
