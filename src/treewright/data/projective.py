"""Pseudo-projective lifting and its undo.

Nivre & Nilsson (2005), Pseudo-Projective Dependency Parsing. Arcs that cross are lifted, shortest
first, until the tree is projective; the relations then say where the arcs came from, in one of four
schemes, written with two arrows that must not occur in relations otherwise:

========== ========================= ====================================
scheme     relation of a lifted word relation of the words it was lifted over
========== ========================= ====================================
baseline   ``obj``                   unchanged
head       ``obj↑nsubj``             unchanged
path       ``obj↑``                  ``nsubj↓``
head+path  ``obj↑nsubj``             ``nsubj↓``
========== ========================= ====================================

Here ``obj`` is the lifted word's own relation and ``nsubj`` that of its original head.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from treewright.data.deptree import DepTree
from treewright.errors import InputError
from treewright.native.projective import has_gap, lift_arcs

UP, DOWN = "↑", "↓"
SCHEMES = ("baseline", "head", "path", "head+path")


def is_projective(tree: DepTree) -> bool:
    """Tell whether no two arcs of `tree` cross (arcs from the root included)."""
    scratch = np.zeros((4, len(tree) + 1), dtype=np.int32)
    return not has_gap(_known_heads(tree), *scratch)


def projectivize(tree: DepTree, *, scheme: str = "path") -> DepTree:
    """Lift crossing arcs until there are none, and note in the relations what was lifted.

    Parameters
    ----------
    tree : DepTree
        Returned as it is when it is projective.
    scheme : {"baseline", "head", "path", "head+path"}
        What the relations say; all but "baseline" can be undone by `deprojectivize`.
    """
    if scheme not in SCHEMES:
        raise InputError(f"scheme is {scheme!r}; expected one of {', '.join(SCHEMES)}")
    if is_projective(tree):
        return tree
    _check_unmarked(tree)
    heads = _known_heads(tree)
    on_path = np.zeros(heads.size, dtype=np.bool_)
    lift_arcs(heads, on_path)
    return tree.with_heads(heads[1:], _marked_relations(tree, heads[1:], on_path[1:], scheme))


def deprojectivize(tree: DepTree) -> DepTree:
    """Move each word whose relation is marked as lifted back under the head it came from.

    The head is looked for under the word's present head, breadth first and from left to right: among
    the words on a marked path where there are marks (its ends first), and with the noted relation where
    one is noted. A word whose head is not found stays. All marks are taken out of the relations.
    """
    if not any(UP in relation or DOWN in relation for relation in tree.deprels):
        return tree
    heads = tree.heads.copy()
    for word in _top_down(heads):
        if UP in tree.deprels[word - 1]:
            heads[word - 1] = _original_head(heads, tree.deprels, word) or heads[word - 1]
    return tree.with_heads(heads, [_relation(deprel) for deprel in tree.deprels])


def _known_heads(tree: DepTree) -> npt.NDArray[np.int32]:
    """Return a copy of the heads with the root's own entry in front."""
    if (tree.heads < 0).any():
        raise InputError(f"word {int(tree.heads.argmin()) + 1} has no head; expected a whole tree")
    return np.concatenate([np.zeros(1, dtype=np.int32), tree.heads])


def _check_unmarked(tree: DepTree) -> None:
    for word, deprel in enumerate(tree.deprels, start=1):
        if UP in deprel or DOWN in deprel:
            raise InputError(f"word {word}: relation is {deprel!r}; expected one without {UP} or {DOWN}")


def _marked_relations(
    tree: DepTree, heads: npt.NDArray[np.int32], on_path: npt.NDArray[np.bool_], scheme: str
) -> list[str]:
    marked = list(tree.deprels)
    if scheme == "baseline":
        return marked
    for index in np.flatnonzero(heads != tree.heads).tolist():
        noted = tree.deprels[tree.heads[index] - 1] if scheme != "path" else ""
        marked[index] += UP + noted
    if scheme != "head":
        for index in np.flatnonzero(on_path).tolist():
            marked[index] += DOWN
    return marked


def _relation(deprel: str) -> str:
    """Take the marks off a relation."""
    return deprel.partition(UP)[0].removesuffix(DOWN)


def _top_down(heads: npt.NDArray[np.int32]) -> list[int]:
    """List the words from the root down, those of one depth from left to right."""
    return list(_breadth_first(_children(heads), 0))


def _children(heads: npt.NDArray[np.int32]) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in range(heads.size + 1)]
    for word, head in enumerate(heads.tolist(), start=1):
        children[head].append(word)
    return children


def _breadth_first(children: list[list[int]], start: int) -> Iterator[int]:
    """Yield the words under `start`, level by level."""
    level = [start]
    while level:
        level = [child for word in level for child in children[word]]
        yield from level


def _original_head(heads: npt.NDArray[np.int32], deprels: list[str], word: int) -> int:
    """Find the word under the head of `word` that `word` was lifted from; 0 if there is none."""
    noted = deprels[word - 1].removesuffix(DOWN).partition(UP)[2]
    start = int(heads[word - 1])
    children = _children(heads)
    children[start].remove(word)  # the search must not enter what is to be moved
    if any(DOWN in deprel for deprel in deprels):
        path = [[child for child in below if deprels[child - 1].endswith(DOWN)] for below in children]
        candidates = sorted(_breadth_first(path, start), key=lambda end: bool(path[end]))
    else:
        candidates = list(_breadth_first(children, start)) if noted else []
    fitting = [head for head in candidates if not noted or _relation(deprels[head - 1]) == noted]
    return next(iter(fitting), 0)
