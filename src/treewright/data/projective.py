"""Pseudo-projective transformation and its inverse.

Nivre & Nilsson (2005), Pseudo-Projective Dependency Parsing. Crossing arcs are lifted, shortest first,
until the tree is projective. The relations then encode the original heads with one of four schemes, using two
arrows that must not occur in other relations:

========== ========================= ====================================
scheme     relation of a lifted word relation of the words it was lifted over
========== ========================= ====================================
baseline   ``obj``                   unchanged
head       ``obj↑nsubj``             unchanged
path       ``obj↑``                  ``nsubj↓``
head+path  ``obj↑nsubj``             ``nsubj↓``
========== ========================= ====================================

Here ``obj`` is the lifted word's own relation, and ``nsubj`` is the relation of its original head.
"""

from bisect import insort
from collections.abc import Container, Iterator
from typing import get_args

import numpy as np
import numpy.typing as npt

from treewright._typing import LiftingScheme
from treewright._validate import check_choice, check_type
from treewright.data.deptree import DepTree
from treewright.errors import InputError
from treewright.native.data.projective import has_gap, lift_arcs

UP, DOWN = "↑", "↓"
SCHEMES = get_args(LiftingScheme)


def is_projective(tree: DepTree) -> bool:
    """Return whether a tree is projective: no two arcs cross, including arcs from the root.

    Parameters
    ----------
    tree : DepTree
        A tree with known heads.

    Returns
    -------
    bool
        Whether the tree is projective.

    See Also
    --------
    projectivize : Makes a tree projective.

    Examples
    --------
    >>> tw.is_projective(tw.DepTree(["a", "b", "c", "d"], [3, 4, 0, 3]))
    False
    """
    check_type("tree", tree, DepTree, "a DepTree")
    scratch = np.zeros((4, len(tree) + 1), dtype=np.int32)
    return not has_gap(_known_heads(tree), *scratch)


def projectivize(tree: DepTree, *, scheme: str = "path") -> DepTree:
    """Make a tree projective: lift crossing arcs, and mark lifted arcs in the relations.

    Parameters
    ----------
    tree : DepTree
        The tree; returned unchanged if it is projective.
    scheme : {"baseline", "head", "path", "head+path"}
        Encoding of the original heads; `deprojectivize` can undo all but "baseline".

    Returns
    -------
    DepTree
        The projective tree.

    See Also
    --------
    deprojectivize : The inverse.
    is_projective : Checks a tree.

    Examples
    --------
    >>> tree = tw.DepTree(["a", "b", "c", "d"], [3, 4, 0, 3], ["x", "y", "root", "z"])
    >>> lifted = tw.projectivize(tree)
    >>> print(lifted.heads, lifted.deprels)
    [3 3 0 3] ['x', 'y↑', 'root', 'z↓']
    """
    check_type("tree", tree, DepTree, "a DepTree")
    check_choice("scheme", scheme, SCHEMES)
    if is_projective(tree):
        return tree
    _check_unmarked(tree)
    heads = _known_heads(tree)
    on_path = np.zeros(heads.size, dtype=np.bool_)
    lift_arcs(heads, on_path)
    return tree.with_heads(heads[1:], _marked_relations(tree, heads[1:], on_path[1:], scheme))


def deprojectivize(tree: DepTree, *, keep: Container[int] = ()) -> DepTree:
    """Undo `projectivize`: move each lifted word back under its original head.

    The original head is searched for below the current head, breadth first and from left to right. If paths
    are marked, only the words on these paths are searched, and the ends of paths come first. If the relation
    of the original head is encoded, only words with this relation are searched. If no head is found, the word
    is not moved. All marks are removed from the relations.

    Parameters
    ----------
    tree : DepTree
        A tree with marked relations.
    keep : container of int
        Positions, from 1, of words that always keep their heads.

    Returns
    -------
    DepTree
        The tree without marks.

    See Also
    --------
    projectivize : The inverse.

    Examples
    --------
    >>> tree = tw.DepTree(["a", "b", "c", "d"], [3, 4, 0, 3], ["x", "y", "root", "z"])
    >>> tw.deprojectivize(tw.projectivize(tree)) == tree
    True
    """
    check_type("tree", tree, DepTree, "a DepTree")
    if not any(UP in relation or DOWN in relation for relation in tree.deprels):
        return tree
    heads = tree.heads.tolist()
    children = _children(heads)
    for word in list(_breadth_first(children, 0)):
        if UP in tree.deprels[word - 1] and word not in keep:
            above = children[heads[word - 1]]
            above.remove(word)  # do not search the subtree that is moved
            heads[word - 1] = _original_head(children, tree.deprels, word, heads[word - 1]) or heads[word - 1]
            insort(children[heads[word - 1]], word)
    return tree.with_heads(heads, [_relation(deprel) for deprel in tree.deprels])


def _known_heads(tree: DepTree) -> npt.NDArray[np.int32]:
    """Return a copy of the heads, preceded by an entry for the root."""
    if (tree.heads < 0).any():
        raise InputError(f"word {int(tree.heads.argmin()) + 1} has no head; expected a head for every word")
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
    """Remove the marks from a relation."""
    return deprel.partition(UP)[0].removesuffix(DOWN)


def _children(heads: list[int]) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in range(len(heads) + 1)]
    for word, head in enumerate(heads, start=1):
        children[head].append(word)
    return children


def _breadth_first(children: list[list[int]], start: int) -> Iterator[int]:
    """Yield the words below `start`, level by level."""
    level = [start]
    while level:
        level = [child for word in level for child in children[word]]
        yield from level


def _original_head(children: list[list[int]], deprels: list[str], word: int, start: int) -> int:
    """Return the original head of `word`, below `start`; 0 if there is none."""
    noted = deprels[word - 1].removesuffix(DOWN).partition(UP)[2]
    if not any(DOWN in deprel for deprel in deprels):
        below = _breadth_first(children, start) if noted else iter(())
        return next((head for head in below if _relation(deprels[head - 1]) == noted), 0)
    fitting, at_end = 0, False
    for head, is_end in _marked_paths(children, deprels, start):
        fits = not noted or _relation(deprels[head - 1]) == noted
        if fits and (not fitting or (is_end and not at_end)):
            fitting, at_end = head, is_end
    return fitting


def _marked_paths(children: list[list[int]], deprels: list[str], start: int) -> Iterator[tuple[int, bool]]:
    """Yield the words on marked paths below `start`, level by level, and whether a path ends there."""
    level = [start]
    while level:
        below = [[child for child in children[word] if deprels[child - 1].endswith(DOWN)] for word in level]
        if level != [start]:
            yield from ((word, not marked) for word, marked in zip(level, below, strict=True))
        level = [child for marked in below for child in marked]
