"""Fixed heads, which a tree must have, and checks that such a tree exists."""

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from numbers import Integral

import numpy as np
import numpy.typing as npt

from treewright.errors import InputError
from treewright.native.dependency.eisner import EXCLUDED, arc_marginals
from treewright.native.dependency.pruning import all_arcs

FixedHeads = Mapping[int, int]
"""Fixed heads of some words of a sentence; words are numbered from 1, and 0 is the root."""
Keep = npt.NDArray[np.bool_]
"""A Boolean matrix of arcs, with heads in rows; row 0 is the root."""


def check_fixed(
    fixed: Sequence[FixedHeads], sizes: Sequence[int], *, projective: bool, single_root: bool, start: int = 1
) -> None:
    """Check that each sentence has a tree with its fixed arcs.

    Parameters
    ----------
    fixed : sequence of mapping of int to int
        Fixed heads of each sentence.
    sizes : sequence of int
        Number of words of each sentence.
    projective : bool
        Whether trees must be projective.
    single_root : bool
        Whether trees have exactly one root.
    start : int
        Number of the first sentence, for error messages.
    """
    given: object = fixed
    if not isinstance(given, Sequence) or not all(isinstance(heads, Mapping) for heads in given):
        expected = "a list with a mapping of words to heads for each sentence, such as [{1: 2}]"
        raise InputError(f"fixed is {reprlib.repr(given)}; expected {expected}")
    if len(fixed) != len(sizes):
        raise InputError(f"fixed has {len(fixed)} mappings; expected {len(sizes)}, one per sentence")
    for number, (heads, size) in enumerate(zip(fixed, sizes, strict=True), start=start):
        if heads:
            place = f"sentence {number}"
            _check_range(heads, size, place)
            _check_roots(heads, single_root, place)
            _check_cycles(heads, place)
            if projective:
                _check_crossing(heads, size, single_root, place)


def restrict(keep: Keep, heads: FixedHeads) -> Keep:
    """Return a copy of the arcs in which each word with a fixed head has only that head."""
    restricted = keep.copy()
    for word, head in heads.items():
        restricted[:, word] = False
        restricted[head, word] = keep[head, word]
    return restricted


def has_tree(keep: Keep, *, single_root: bool) -> bool:
    """Return whether a projective tree exists over these arcs."""
    scores = np.where(keep, 0.0, EXCLUDED)
    return bool(arc_marginals(scores, single_root, np.empty_like(scores)) > EXCLUDED / 2)


def _check_range(heads: FixedHeads, size: int, place: str) -> None:
    for word, head in heads.items():
        if not _is_from(1, word, size):
            raise InputError(
                f"{place}: a fixed arc points to word {word!r}; expected a word from 1 to {size}"
            )
        if not _is_from(0, head, size) or head == word:
            raise InputError(
                f"{place}: the head of word {word} is fixed to {head!r}; "
                f"expected another word from 1 to {size}, or 0 for the root"
            )


def _is_from(lowest: int, value: object, highest: int) -> bool:
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    return is_integer and lowest <= int(value) <= highest  # type: ignore[call-overload]


def _check_roots(heads: FixedHeads, single_root: bool, place: str) -> None:
    roots = [(0, word) for word, head in sorted(heads.items()) if head == 0]
    if single_root and len(roots) > 1:
        raise InputError(
            f"{place}: no tree has the fixed arcs {_describe(roots)}, because the parser was trained on "
            "trees with one root; expected at most one arc from 0"
        )


def _check_cycles(heads: FixedHeads, place: str) -> None:
    for start in sorted(heads):
        path = [start]
        while (head := heads.get(path[-1], 0)) != 0:
            if head == start:
                cycle = [(heads[word], word) for word in path]
                raise InputError(
                    f"{place}: no tree has the fixed arcs {_describe(cycle)}, which form a cycle; "
                    "expected arcs without a cycle"
                )
            if head in path:
                break
            path.append(head)


def _check_crossing(heads: FixedHeads, size: int, single_root: bool, place: str) -> None:
    arcs = [(head, word) for word, head in sorted(heads.items())]
    crossing = next((pair for pair in combinations(arcs, 2) if _cross(*pair)), None)
    if crossing:
        raise InputError(
            f"{place}: no projective tree has the fixed arcs {_describe(crossing)}, which cross; expected "
            "arcs that do not cross, or a parser with decoder 'spanning'"
        )
    if not has_tree(restrict(all_arcs(size), heads), single_root=single_root):
        raise InputError(
            f"{place}: no projective tree has all the fixed arcs {_describe(arcs)}; expected fewer fixed "
            "arcs, or a parser with decoder 'spanning'"
        )


def _cross(one: tuple[int, int], other: tuple[int, int]) -> bool:
    (a, b), (c, d) = sorted((sorted(one), sorted(other)))
    return a < c < b < d


def _describe(arcs: Iterable[tuple[int, int]]) -> str:
    return ", ".join(f"{head} → {word}" for head, word in arcs)
