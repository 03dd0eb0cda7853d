"""Texts as sequences of positions with items: words, tags and characters."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from treewright._typing import Integers
from treewright.errors import InputError
from treewright.native.mining.strings import ItemSequences

Attribute: TypeAlias = Literal["word", "lower", "prefix", "suffix", "tag", "char", "lower_char"]
ATTRIBUTES: tuple[Attribute, ...] = get_args(Attribute)
CHARACTERS = ("char", "lower_char")
"""Attributes of characters; the others are attributes of words."""
PREFIX_LENGTH, SUFFIX_LENGTH = 4, 3
"""Number of characters of a prefix and of a suffix; only longer words have them."""
BEGIN, END = "^", "$"
"""Items at the positions before the first and after the last word."""
UNLIMITED = 1 << 14
EXPECTED = "a string, a list of words, or a list of (word, tag) pairs"


class TokenizedText(NamedTuple):
    """A text: its words, their tags (None if missing), and the text itself."""

    words: list[str]
    tags: list[str | None]
    surface: str


class TextRows(NamedTuple):
    """Texts as sequences, and the range of positions of each text."""

    sequences: ItemSequences
    indptr: Integers


class TextEncoder:
    """Turns texts into sequences.

    A text has a position for each word, one before the first word and one after the last. These are followed
    by a position for each character, with a space before the first character and after the last.

    Parameters
    ----------
    attributes : sequence of {"word", "lower", "prefix", "suffix", "tag", "char", "lower_char"}
        The items of a position. If "lower" is given, "word" is an item only of words with capitals; the same
        holds for characters.
    max_gap, max_char_gap : int
        Maximum number of words, or characters, skipped between two items of an n-gram.
    word_degree, char_degree : int, optional
        Maximum number of words, or characters, in an n-gram. The beginning and the end of a text do not
        count.
    token_pattern : str
        Regular expression that finds the words of a string.
    """

    def __init__(
        self,
        attributes: Sequence[str],
        *,
        max_gap: int,
        max_char_gap: int,
        word_degree: int | None = None,
        char_degree: int | None = None,
        token_pattern: str = r"\w+|[^\w\s]",
    ) -> None:
        self.attributes = check_attributes(attributes)
        self.max_gap = max_gap
        self.max_char_gap = max_char_gap
        self.word_degree = word_degree
        self.char_degree = char_degree
        try:
            self._pattern = re.compile(token_pattern)
        except (re.error, TypeError) as error:
            raise InputError(
                f"token_pattern is {token_pattern!r} ({error}); expected a regular expression"
            ) from error

    @property
    def has_words(self) -> bool:
        """Whether there are positions of words."""
        return not self.attributes <= {*CHARACTERS}

    @property
    def has_characters(self) -> bool:
        """Whether there are positions of characters."""
        return not self.attributes.isdisjoint(CHARACTERS)

    def encode(self, texts: Sequence[Any], vocabulary: dict[str, int], *, is_fixed: bool = False) -> TextRows:
        """Return texts as sequences; new items are added to `vocabulary`, unless it is fixed.

        With a fixed vocabulary, unknown items are left out, but their positions remain.
        """
        numbers: list[int] = []
        counts, lengths = [], []
        for at, text in enumerate(texts):
            views = self._views(self.read(text, at))
            lengths.append([len(view) for view in views])
            for items in (items for view in views for items in view):
                n_before = len(numbers)
                for item in items:
                    number = (
                        vocabulary.get(item, -1) if is_fixed else vocabulary.setdefault(item, len(vocabulary))
                    )
                    if number >= 0:
                        numbers.append(number)
                counts.append(len(numbers) - n_before)
        bonus = np.zeros(len(vocabulary), dtype=np.int16)
        if BEGIN in vocabulary:
            bonus[vocabulary[BEGIN]] = 1
        return self._arrange(numbers, counts, np.array(lengths, dtype=np.int64).reshape(-1, 2), bonus)

    def _arrange(
        self, numbers: list[int], counts: list[int], lengths: Integers, bonus: npt.NDArray[np.int16]
    ) -> TextRows:
        """Build sequences, given the number of items per position and the numbers of positions per text."""
        flat = lengths.ravel()
        ends = np.repeat(np.cumsum(flat), flat)
        is_char = np.repeat(np.tile([False, True], len(lengths)), flat)
        reach = np.arange(len(ends)) + np.where(is_char, self.max_char_gap, self.max_gap) + 2
        limits = np.where(is_char, self.char_degree or UNLIMITED, self.word_degree or UNLIMITED)
        limits += ~is_char & (np.arange(len(ends)) == ends - 1)
        sequences = ItemSequences(
            np.cumsum([0, *counts], dtype=np.int64),
            np.array(numbers, dtype=np.int32),
            np.repeat(np.arange(len(lengths), dtype=np.int32), lengths.sum(axis=1)),
            np.minimum(reach, ends),
            np.where(is_char, self.max_char_gap, self.max_gap) > 0,
            limits.astype(np.int16),
            bonus,
        )
        return TextRows(sequences, np.concatenate([[0], np.cumsum(lengths.sum(axis=1))]))

    def read(self, text: Any, at: int) -> TokenizedText:  # noqa: ANN401
        """Return the words and tags of a text; `at` is its index, for error messages."""
        if isinstance(text, str):
            words = self._pattern.findall(text)
            if words and not isinstance(words[0], str):
                words = [match.group() for match in self._pattern.finditer(text)]
            found = TokenizedText(words, [None] * len(words), " ".join(text.split()))
        else:
            found = _read_tokens(text, at)
        if "tag" in self.attributes and None in found.tags:
            word = found.words[found.tags.index(None)]
            raise InputError(f"text {at} has no tag at {word!r}; expected a list of (word, tag) pairs")
        return found

    def _views(self, text: TokenizedText) -> tuple[list[list[str]], list[list[str]]]:
        """Return the items of each word position, and of each character position."""
        words: list[list[str]] = []
        if self.has_words:
            words = [
                [BEGIN],
                *(list(self._word_items(*each)) for each in zip(text.words, text.tags, strict=True)),
                [END],
            ]
        characters: list[list[str]] = []
        if self.has_characters:
            characters = [list(self._char_items(each)) for each in f" {text.surface} "]
        return words, characters

    def _word_items(self, word: str, tag: str | None) -> Iterator[str]:
        lower = word.lower()
        if "lower" in self.attributes:
            yield f"lower={lower}"
        if "word" in self.attributes and ("lower" not in self.attributes or lower != word):
            yield f"word={word}"
        if "prefix" in self.attributes and len(word) > PREFIX_LENGTH:
            yield f"prefix={lower[:PREFIX_LENGTH]}"
        if "suffix" in self.attributes and len(word) > SUFFIX_LENGTH:
            yield f"suffix={lower[-SUFFIX_LENGTH:]}"
        if "tag" in self.attributes:
            yield f"tag={tag}"

    def _char_items(self, character: str) -> Iterator[str]:
        lower = character.lower()
        if "lower_char" in self.attributes:
            yield f"lower_char={lower}"
        if "char" in self.attributes and ("lower_char" not in self.attributes or lower != character):
            yield f"char={character}"


def name_gram(codes: Sequence[int], items: Sequence[str]) -> str:
    """Return an n-gram as readable text; two dots mark a possible gap.

    Examples
    --------
    >>> items = ["^", "lower=what", "tag=NN", "char=w", "char=h"]
    >>> name_gram([0, 2, 5], items), name_gram([6, 8], items), name_gram([6, 9], items)
    ('^ lower=what .. tag=NN', "char='wh'", "char='w' .. char='h'")
    """
    text, run, kind = "", "", ""
    for number, code in enumerate(codes):
        own, _, value = items[code // 2].partition("=")
        if own in CHARACTERS and own == kind and code % 2 == 0:
            run += value
        else:
            text += (f"{kind}={run!r}" if run else "") + ("" if number == 0 else " .. " if code % 2 else " ")
            run = value if own in CHARACTERS else ""
            text += "" if run else items[code // 2]
        kind = own
    return text + (f"{kind}={run!r}" if run else "")


def check_attributes(attributes: Any) -> frozenset[str]:  # noqa: ANN401
    """Return attributes as a set, or raise an error."""
    expected = f"a list of {', '.join(ATTRIBUTES)}"
    if isinstance(attributes, str) or not isinstance(attributes, Sequence) or not attributes:
        raise InputError(f"attributes is {attributes!r}; expected {expected}")
    for each in attributes:
        if each not in ATTRIBUTES:
            raise InputError(f"attributes has {each!r}; expected {expected}")
    return frozenset(attributes)


def _read_tokens(text: Any, at: int) -> TokenizedText:  # noqa: ANN401
    """Read a text that is given as a list of words or of (word, tag) pairs."""
    if not isinstance(text, Sequence | np.ndarray) or isinstance(text, bytes):
        raise InputError(f"text {at} is {_show(text)}; expected {EXPECTED}")
    words: list[str] = []
    tags: list[str | None] = []
    for token in text:
        word, tag = token if isinstance(token, tuple | list) and len(token) == 2 else (token, None)
        if not isinstance(word, str) or not isinstance(tag, str | None):
            raise InputError(f"text {at} has the token {_show(token)}; expected {EXPECTED}")
        words.append(word)
        tags.append(tag)
    return TokenizedText(words, tags, " ".join(words))


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
