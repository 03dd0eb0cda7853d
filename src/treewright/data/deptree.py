"""DepTree: the dependency tree of a sentence."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set, Sized
from operator import index
from typing import NamedTuple, Self, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from treewright.data.notebook import Drawn
from treewright.data.word import NO_SPACE, Word
from treewright.errors import InputError, quote

UNKNOWN_HEAD = -1
MOST_DRAWN = 1000
"""Maximum number of words of a sentence that `print` draws; longer sentences are printed as their `repr`."""
STRING_COLUMNS = ("words", "lemmas", "upos", "xpos", "feats", "deprels", "deps", "misc")
MISC_FIELD = 8
"""Index of MISC among the fields after the ID in a line of CoNLL-U."""
RANGE_ID = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")


class ExtraLine(NamedTuple):
    """The line of a multiword token or an empty node, as in the file."""

    position: int
    """Number of words before the line."""
    text: str


class MultiwordToken(NamedTuple):
    """A token of the text that consists of several words, such as French *du* for *de le*.

    Attributes
    ----------
    start, end : int
        Its words are ``tree[start:end]``.
    form, misc : str
        The columns FORM and MISC of the token in CoNLL-U.

    See Also
    --------
    DepTree.multiword_tokens : The multiword tokens of a sentence.

    Examples
    --------
    >>> tw.MultiwordToken(start=1, end=3, form="didn't", misc="_").space_after
    True
    """

    start: int
    end: int
    form: str
    misc: str

    @property
    def space_after(self) -> bool:
        """Whether a space follows the token in the text."""
        return NO_SPACE not in self.misc.split("|")


class DepTree(Drawn):
    """A sentence with its words, their annotation and their heads.

    Columns that are not given are filled with ``"_"``, heads with -1 (unknown). Do not change a tree in
    place: `with_heads` and `with_tags` return changed copies that share the other columns.

    ``tree[i]`` is the `Word` at position `i`, a slice is a list of words, and iteration yields all words.
    Positions start at 0 and may be negative, as usual in Python. The ids and heads of CoNLL-U start at 1:
    ``tree[i].id`` is ``i + 1``, and ``tree.heads`` holds ids. ``print(tree)`` draws the tree.

    Parameters
    ----------
    words : sequence of str
        The forms.
    heads : sequence of int, optional
        Position of each word's head, from 1; 0 is a root, -1 is unknown. Several roots are allowed, cycles
        are not.
    deprels, lemmas, upos, xpos, feats, deps, misc : sequence of str, optional
        One value per word, as in the columns of CoNLL-U.
    comments : sequence of str, optional
        Comment lines, each with its leading ``#``.
    extra_lines : sequence of ExtraLine, optional
        Multiword tokens and empty nodes.
    columns : mapping of str to list of str, optional
        Further columns of other formats, by name.

    Attributes
    ----------
    heads : ndarray of int32, shape (n,)
        The heads as an array.

    See Also
    --------
    read_conllu : Reads trees from a file.
    Word : A word of a tree.
    ConstTree : A constituency tree.

    Examples
    --------
    >>> tree = DepTree(["Mary", "saw", "him"], [2, 0, 2], ["nsubj", "root", "obj"])
    >>> tree.root, tree[0].head, tree[-1].deprel
    (Word('saw', id=2), Word('saw', id=2), 'obj')
    >>> [word.form for word in tree if word.head == tree.root]
    ['Mary', 'him']
    >>> print(tree)
    ┌─► Mary  _  nsubj
    ├── saw   _  root
    └─► him   _  obj
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
        self.words = list_strings("words", words)
        n = len(self.words)
        self.heads = _checked_heads(heads, n)
        self.deprels = _column("deprels", deprels, n)
        self.lemmas = _column("lemmas", lemmas, n)
        self.upos = _column("upos", upos, n)
        self.xpos = _column("xpos", xpos, n)
        self.feats = _column("feats", feats, n)
        self.deps = _column("deps", deps, n)
        self.misc = _column("misc", misc, n)
        self.comments = list_strings("comments", comments)
        self.extra_lines = list(extra_lines)
        self.columns = {name: _column(name, values, n) for name, values in (columns or {}).items()}

    @classmethod
    def from_columns(
        cls,
        given: Mapping[str, Sequence[str]],
        heads: npt.NDArray[np.int32],
        *,
        comments: list[str],
        extra_lines: list[ExtraLine],
        columns: dict[str, list[str]],
    ) -> Self:
        """Make a tree from columns by attribute name, without checks.

        Parameters
        ----------
        given : mapping of str to sequence of str
            Columns by attribute name: `words`, `lemmas`, `upos`, `xpos`, `feats`, `deprels`, `deps` and
            `misc`. Missing columns are filled with ``"_"``.
        heads : ndarray of int32, (n_words,)
            Head of each word, from 1; 0 is a root, -1 is unknown.
        comments : list of str
            Comment lines, each with its leading ``#``.
        extra_lines : list of ExtraLine
            Multiword tokens and empty nodes.
        columns : dict of str to list of str
            Further columns of other formats, by name.
        """
        tree = object.__new__(cls)
        n = len(heads)
        for name in STRING_COLUMNS:
            setattr(tree, name, list(given[name]) if name in given else ["_"] * n)
        tree.heads = heads
        tree.comments = comments
        tree.extra_lines = extra_lines
        tree.columns = columns
        return tree

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[Word]:
        return (Word(self, at) for at in range(len(self.words)))

    @overload
    def __getitem__(self, at: SupportsIndex) -> Word: ...

    @overload
    def __getitem__(self, at: slice) -> list[Word]: ...

    def __getitem__(self, at: SupportsIndex | slice) -> Word | list[Word]:
        n = len(self.words)
        if isinstance(at, slice):
            return [Word(self, each) for each in range(n)[at]]
        try:
            place = index(at)
        except TypeError:
            found = type(at).__name__
            raise TypeError(f"the position is a {found}; expected an integer or a slice") from None
        if not -n <= place < n:
            raise IndexError(f"the position is {place} in a sentence of {n} words; positions start at 0")
        return Word(self, place % n)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> npt.NDArray[np.object_]:
        """Return an array with the tree as its only element; otherwise NumPy would make an array of words."""
        whole = np.empty((), dtype=object)
        whole[()] = self
        return whole

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

    def __str__(self) -> str:
        return self._draw_text() if len(self) <= MOST_DRAWN else repr(self)

    def to_conllu(self) -> str:
        """Return the sentence in CoNLL-U, including the blank line at the end."""
        from treewright.data.conllu import declared_layout, format_tree  # conllu imports this module

        return format_tree(self, declared_layout(self.comments, "<string>"))

    @property
    def root(self) -> Word | None:
        """The first word whose head is 0; None if there is none."""
        at = np.flatnonzero(self.heads == 0)
        return Word(self, int(at[0])) if len(at) else None

    @property
    def text(self) -> str:
        """The sentence as text.

        The text is taken from the comment ``# text = ...``, if there is one. Otherwise tokens are joined with
        spaces, except after ``SpaceAfter=No`` in MISC; a multiword token replaces its words.
        """
        if text := self.metadata.get("text"):
            return text
        inside = {token.start: token for token in self.multiword_tokens()}
        pieces: list[str] = []
        at = 0
        while at < len(self):
            token = inside.get(at) or MultiwordToken(at, at + 1, self.words[at], self.misc[at])
            pieces += [token.form, " " if token.space_after else ""]
            at = token.end
        return "".join(pieces[:-1])

    def multiword_tokens(self) -> list[MultiwordToken]:
        """Return the multiword tokens, from left to right."""
        found = []
        for position, line in self.extra_lines:
            name, *fields = line.split("\t")
            if fields and (span := RANGE_ID.fullmatch(name)) and int(span[2]) > position:
                misc = fields[MISC_FIELD] if len(fields) > MISC_FIELD else "_"
                found.append(MultiwordToken(position, int(span[2]), fields[0], misc))
        return found

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
        """Return the same sentence with other heads and, if given, other relations.

        Parameters
        ----------
        heads : sequence of int
            Head of each word, from 1; 0 is a root, -1 is unknown. Several roots are allowed, cycles are not.
        deprels : sequence of str, optional
            Relation of each word to its head (default: the relations are kept).
        """
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
        """Return the same sentence with the given columns replaced.

        Parameters
        ----------
        upos : sequence of str, optional
            Universal part-of-speech tag of each word.
        xpos : sequence of str, optional
            Language-specific part-of-speech tag of each word.
        feats : sequence of str, optional
            Morphological features of each word, such as ``"Case=Nom|Number=Sing"``.
        lemmas : sequence of str, optional
            Lemma of each word.
        """
        changed = self._copy()
        given = {"upos": upos, "xpos": xpos, "feats": feats, "lemmas": lemmas}
        for name, values in given.items():
            if values is not None:
                setattr(changed, name, _column(name, values, len(self)))
        return changed

    def with_misc(self, misc: Sequence[str]) -> Self:
        """Return the same sentence with another MISC column.

        Parameters
        ----------
        misc : sequence of str
            MISC value of each word, such as ``"SpaceAfter=No"``; ``"_"`` if it is empty.
        """
        changed = self._copy()
        changed.misc = _column("misc", misc, len(self))
        return changed

    def with_comments(self, comments: Sequence[str]) -> Self:
        """Return the same sentence with other comments.

        Parameters
        ----------
        comments : sequence of str
            Comment lines, each with its leading ``#``.
        """
        changed = self._copy()
        changed.comments = list_strings("comments", comments)
        return changed

    def _copy(self) -> Self:
        copy = object.__new__(type(self))
        for name in self.__slots__:
            setattr(copy, name, getattr(self, name))
        return copy


def check_trees(trees: object) -> None:
    """Raise `InputError` if `trees` is not a sequence of `DepTree`."""
    if not isinstance(trees, Sequence) or isinstance(trees, str):
        raise InputError(f"the sentences are of type {type(trees).__name__}; expected a list of DepTree")
    for number, tree in enumerate(trees, start=1):
        if not isinstance(tree, DepTree):
            raise InputError(f"sentence {number} is of type {type(tree).__name__}; expected a DepTree")


def find_head_problem(heads: Sequence[int]) -> tuple[int, str, str] | None:
    """Find a head that violates the tree structure.

    Returns
    -------
    tuple of (index, found, expected), or None
        The offending word; None if `heads` is a tree. Unknown heads (-1) are ignored.
    """
    n = len(heads)
    if n and not UNKNOWN_HEAD <= min(heads) <= max(heads) <= n:
        index = next(index for index, head in enumerate(heads) if not UNKNOWN_HEAD <= head <= n)
        return index, f"HEAD is '{heads[index]}'", f"an integer from 0 to {n}"
    climbed = [0] * n  # the word from which each word was first reached
    for start in range(1, n + 1):
        word = start
        while word > 0 and not climbed[word - 1]:
            climbed[word - 1] = start
            word = heads[word - 1]
        if word > 0 and climbed[word - 1] == start:
            return _describe_cycle(heads, word)
    return None


def _describe_cycle(heads: Sequence[int], word: int) -> tuple[int, str, str]:
    """Describe the cycle that contains `word`."""
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
    try:
        array = np.asarray(heads)
    except ValueError:
        raise InputError("heads is a list of lists; expected integers, one per word") from None
    if array.shape != (n,):
        raise InputError(f"heads has shape {array.shape}; expected ({n},), one head per word")
    if n and not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"heads has type {array.dtype}; expected integers")
    if problem := find_head_problem(array.tolist()):
        index, found, expected = problem
        raise InputError(f"word {index + 1}: {found}; expected {expected}")
    return array.astype(np.int32)


def _column(name: str, values: Sequence[str] | None, n: int) -> list[str]:
    if values is None:
        return ["_"] * n
    column = list_strings(name, values)
    if len(column) != n:
        raise InputError(f"{name} has {len(column)} values; expected {n}, one per word")
    return column


def list_strings(name: str, values: Sequence[str]) -> list[str]:
    """Return strings as a list; raise `InputError` for other types and for a single string."""
    if not isinstance(values, list | tuple):
        _check_is_list(name, values)
    column = list(values)
    try:
        "".join(column)  # the fastest check of all types
    except TypeError:
        at, found = next((at, each) for at, each in enumerate(column) if not isinstance(each, str))
        raise InputError(f"{name}[{at}] is of type {type(found).__name__}; expected a string") from None
    return column


def _check_is_list(name: str, values: object) -> None:
    if isinstance(values, str):
        shape = f"a list of words, such as {values.split()[:3]}" if name == "words" else "a list of strings"
        raise InputError(f"{name} is {quote(values)}; expected {shape}")
    is_ordered = isinstance(values, Sized) and isinstance(values, Iterable)
    if not is_ordered or isinstance(values, bytes | bytearray | Mapping | Set):
        raise InputError(f"{name} is of type {type(values).__name__}; expected a list of strings")
