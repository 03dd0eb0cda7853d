"""DepTree: one sentence with its heads."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from treewright.data.notebook import Drawn
from treewright.errors import InputError

UNKNOWN_HEAD = -1


class ExtraLine(NamedTuple):
    """A multiword token or an empty node, kept as it stood in the file."""

    position: int
    """How many words stand before it."""
    text: str


class DepTree(Drawn):
    """One sentence: its words, their annotation and the head of each.

    Columns that are not given are filled with ``"_"``; heads that are not given are unknown (-1).
    A tree is not meant to be changed in place: `with_heads` and `with_tags` give changed copies
    that share everything else.

    Parameters
    ----------
    words : sequence of str
    heads : sequence of int, optional
        1-based position of each word's head, 0 for a root, -1 where unknown. Several roots are
        allowed, cycles are not.
    deprels, lemmas, upos, xpos, feats, deps, misc : sequence of str, optional
        One value a word, as in the columns of CoNLL-U.
    comments : sequence of str, optional
        Comment lines, each with its leading ``#``.
    extra_lines : sequence of ExtraLine, optional
        Multiword tokens and empty nodes.
    columns : mapping of str to list of str, optional
        Further columns of other formats, by name.

    Attributes
    ----------
    heads : ndarray of int32, shape (n,)
    """

    __slots__ = (
        "columns",
        "comments",
        "deprels",
        "deps",
        "extra_lines",
        "feats",
        "heads",
        "lemmas",
        "misc",
        "upos",
        "words",
        "xpos",
    )

    def __init__(
        self,
        words: Sequence[str],
        heads: Sequence[int] | npt.NDArray[np.integer] | None = None,
        deprels: Sequence[str] | None = None,
        *,
        lemmas: Sequence[str] | None = None,
        upos: Sequence[str] | None = None,
        xpos: Sequence[str] | None = None,
        feats: Sequence[str] | None = None,
        deps: Sequence[str] | None = None,
        misc: Sequence[str] | None = None,
        comments: Sequence[str] = (),
        extra_lines: Sequence[ExtraLine] = (),
        columns: Mapping[str, list[str]] | None = None,
    ) -> None:
        n = len(words)
        self.words = list(words)
        self.heads = _checked_heads(heads, n)
        self.deprels = _column("deprels", deprels, n)
        self.lemmas = _column("lemmas", lemmas, n)
        self.upos = _column("upos", upos, n)
        self.xpos = _column("xpos", xpos, n)
        self.feats = _column("feats", feats, n)
        self.deps = _column("deps", deps, n)
        self.misc = _column("misc", misc, n)
        self.comments = list(comments)
        self.extra_lines = list(extra_lines)
        self.columns = {name: _column(name, values, n) for name, values in (columns or {}).items()}

    def __len__(self) -> int:
        return len(self.words)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DepTree):
            return NotImplemented
        return np.array_equal(self.heads, other.heads) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__ if name != "heads"
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = " ".join(self.words[:8]) + (" ..." if len(self) > 8 else "")
        return f"DepTree({shown!r}, n={len(self)})"

    @property
    def metadata(self) -> dict[str, str]:
        """The comments of the form ``# key = value``."""
        pairs = (comment[1:].split("=", 1) for comment in self.comments if "=" in comment)
        return {key.strip(): value.strip() for key, value in pairs}

    @property
    def n_roots(self) -> int:
        """Number of words whose head is 0."""
        return int(np.count_nonzero(self.heads == 0))

    def with_heads(
        self, heads: Sequence[int] | npt.NDArray[np.integer], deprels: Sequence[str] | None = None
    ) -> Self:
        """Return the same sentence with other heads and, if given, other relations."""
        changed = self._copy()
        changed.heads = _checked_heads(heads, len(self))
        if deprels is not None:
            changed.deprels = _column("deprels", deprels, len(self))
        return changed

    def with_tags(
        self,
        *,
        upos: Sequence[str] | None = None,
        xpos: Sequence[str] | None = None,
        feats: Sequence[str] | None = None,
        lemmas: Sequence[str] | None = None,
    ) -> Self:
        """Return the same sentence with the given columns replaced."""
        changed = self._copy()
        given = {"upos": upos, "xpos": xpos, "feats": feats, "lemmas": lemmas}
        for name, values in given.items():
            if values is not None:
                setattr(changed, name, _column(name, values, len(self)))
        return changed

    def with_misc(self, misc: Sequence[str]) -> Self:
        """Return the same sentence with another last column."""
        changed = self._copy()
        changed.misc = _column("misc", misc, len(self))
        return changed

    def with_comments(self, comments: Sequence[str]) -> Self:
        """Return the same sentence under other comment lines."""
        changed = self._copy()
        changed.comments = list(comments)
        return changed

    def _copy(self) -> Self:
        copy = object.__new__(type(self))
        for name in self.__slots__:
            setattr(copy, name, getattr(self, name))
        return copy


def check_trees(trees: object) -> None:
    """Refuse whatever is no sequence of `DepTree`."""
    if not isinstance(trees, Sequence) or isinstance(trees, str):
        raise InputError(f"the sentences are a {type(trees).__name__}; expected a list of DepTree")
    for number, tree in enumerate(trees, start=1):
        if not isinstance(tree, DepTree):
            raise InputError(f"sentence {number} is a {type(tree).__name__}; expected a DepTree")


def find_head_problem(heads: Sequence[int]) -> tuple[int, str, str] | None:
    """Look for a head that makes `heads` no tree.

    Returns
    -------
    (index, found, expected) of an offending word, or None when all is well. Unknown heads (-1) are
    passed over.
    """
    n = len(heads)
    if n and not UNKNOWN_HEAD <= min(heads) <= max(heads) <= n:
        index = next(index for index, head in enumerate(heads) if not UNKNOWN_HEAD <= head <= n)
        return index, f"HEAD is '{heads[index]}'", f"an integer from 0 to {n}"
    climbed = [0] * n  # the word whose climb to the root came by first
    for start in range(1, n + 1):
        word = start
        while word > 0 and not climbed[word - 1]:
            climbed[word - 1] = start
            word = heads[word - 1]
        if word > 0 and climbed[word - 1] == start:
            return _describe_cycle(heads, word)
    return None


def _describe_cycle(heads: Sequence[int], word: int) -> tuple[int, str, str]:
    """Describe the cycle that `word` stands on."""
    if heads[word - 1] == word:
        return word - 1, f"HEAD of word {word} is the word itself", "another word or 0"
    cycle = [word]
    while (head := heads[cycle[-1] - 1]) != word:
        cycle.append(head)
    shown = " -> ".join(map(str, [*cycle, word][:8])) + (" -> ..." if len(cycle) > 7 else "")
    return word - 1, f"HEAD makes a cycle ({shown})", "heads that lead to a root"


def _checked_heads(heads: Sequence[int] | npt.NDArray[np.integer] | None, n: int) -> npt.NDArray[np.int32]:
    if heads is None:
        return np.full(n, UNKNOWN_HEAD, dtype=np.int32)
    array = np.asarray(heads)
    if array.shape != (n,):
        raise InputError(f"heads has shape {array.shape}; expected ({n},), one head a word")
    if n and not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"heads has type {array.dtype}; expected integers")
    if problem := find_head_problem(array.tolist()):
        index, found, expected = problem
        raise InputError(f"word {index + 1}: {found}; expected {expected}")
    return array.astype(np.int32)


def _column(name: str, values: Sequence[str] | None, n: int) -> list[str]:
    if values is None:
        return ["_"] * n
    if len(values) != n:
        raise InputError(f"{name} has {len(values)} values; expected {n}, one a word")
    return list(values)
