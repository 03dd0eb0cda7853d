"""The space of fragments of tagged sentences, as in tagging kernels (future work in Qian & Liu 2015).

The tagging kernel of M. Collins and N. Duffy (Convolution Kernels for Natural Language, NIPS 2001) counts the
fragments that two tagged sentences have in common: tags of neighbouring words, each with or without its word.
Here, a tag may also be combined with a part of its word, or with a word beside it. The rows of the space are
whole taggings, so that the correct tagging of a sentence can be compared with wrong ones.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from treewright._validate import check_integer
from treewright.errors import InputError
from treewright.mining.strings import SequenceSpace
from treewright.mining.text_items import (
    BEGIN,
    END,
    PREFIX_LENGTH,
    SUFFIX_LENGTH,
    UNLIMITED,
    TextRows,
)
from treewright.native.mining.strings import ItemSequences

ATTRIBUTE = re.compile(r"w(?P<offset>[+-][1-9])?\.(?P<kind>word|lower|prefix|suffix)")
WITH_TAG = " & "
"""Sign between a tag and an attribute in the name of an item."""


class _Attribute(NamedTuple):
    """An attribute of a word at a distance from the tag: its name, the distance, and what is used."""

    name: str
    offset: int
    kind: str


class TaggingSpace(SequenceSpace):
    """The feature space of all fragments of tagged sentences.

    A fragment consists of the tags of neighbouring words. Each tag can be combined with one attribute of its
    word or of a word beside it. The order of a fragment is its number of tags, including the marks before and
    after a sentence. A feature of order r is a row of r codes, as in `StringSpace`: ``2 * item``, or
    ``2 * item + 1`` if words may be skipped before the item. `items` contains the names of the items: a tag,
    or a tag with an attribute.

    Parameters
    ----------
    taggings : sequence of list of (str, str)
        Tagged sentences: lists of (word, tag) pairs. The same words can occur with several taggings.
    attributes : sequence of str
        Attributes that tags are combined with: ``"w.lower"`` (the word in lower case), ``"w.word"`` (the word
        as it is), ``"w.prefix"`` and ``"w.suffix"`` (its first four and last three characters, if it is
        longer). ``"w-1.lower"`` and ``"w+1.lower"`` are the words before and after it, up to nine words away.
    max_gap : int
        Maximum number of words skipped between two tags of a fragment.
    n_jobs : int
        Number of threads (-1: all processors); results do not depend on it.

    Attributes
    ----------
    items : list of str
        The names of the items, by index.

    See Also
    --------
    StringSpace : The space of all gappy n-grams of texts.
    list_problem : Describes which tagging of each sentence is correct.
    GradientMiner : Selects features of any space.

    Examples
    --------
    Two taggings of a sentence:

    >>> import numpy as np
    >>> import treewright as tw
    >>> taggings = [[("time", "NN"), ("flies", "VBZ")], [("time", "NN"), ("flies", "NNS")]]
    >>> space = tw.TaggingSpace(taggings, attributes=["w.lower"])
    >>> space.items[:4]
    ['^', 'tag=NN', 'tag=NN & w.lower=time', 'tag=VBZ']
    >>> space.name([2, 6]), space.match([np.array([[2, 6]], dtype=np.int32)]).toarray().tolist()
    ('tag=NN tag=VBZ', [[1], [0]])
    """

    def __init__(
        self,
        taggings: Sequence[Any],
        *,
        attributes: Sequence[str] = ("w.lower", "w.suffix", "w-1.lower", "w+1.lower"),
        max_gap: int = 0,
        n_jobs: int = 1,
    ) -> None:
        check_integer("max_gap", max_gap)
        read = [_read_attribute(each) for each in _check_names(attributes)]
        vocabulary: dict[str, int] = {}
        counts, lengths, numbers = [], [], []
        for at, tagging in enumerate(taggings):
            positions = [[BEGIN], *_list_positions(_check_tagging(tagging, at), read), [END]]
            lengths.append(len(positions))
            counts += [len(items) for items in positions]
            numbers += [vocabulary.setdefault(item, len(vocabulary)) for items in positions for item in items]
        ends = np.repeat(np.cumsum(lengths, dtype=np.int64), lengths)
        sequences = ItemSequences(
            np.cumsum([0, *counts], dtype=np.int64),
            np.array(numbers, dtype=np.int32),
            np.repeat(np.arange(len(lengths), dtype=np.int32), lengths),
            np.minimum(np.arange(len(ends)) + max_gap + 2, ends),
            np.full(len(ends), max_gap > 0),
            np.full(len(ends), UNLIMITED, dtype=np.int16),
            np.zeros(len(vocabulary), dtype=np.int16),
        )
        indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        super().__init__(TextRows(sequences, indptr), list(vocabulary), n_jobs=n_jobs)


def _list_positions(tagging: list[tuple[str, str]], attributes: list[_Attribute]) -> Iterator[list[str]]:
    """Yield the items of each word: its tag, alone and with each attribute."""
    words = [word for word, _ in tagging]
    for place, (_, tag) in enumerate(tagging):
        values = (_find_value(words, place, each) for each in attributes)
        yield [f"tag={tag}", *(f"tag={tag}{WITH_TAG}{value}" for value in values if value)]


def _find_value(words: list[str], place: int, attribute: _Attribute) -> str | None:
    """Return an attribute of the word at a place, or None if a prefix or suffix would be the whole word."""
    at = place + attribute.offset
    if not 0 <= at < len(words):
        return f"{attribute.name}={BEGIN if at < 0 else END}"
    word, lower = words[at], words[at].lower()
    if attribute.kind == "word":
        return f"{attribute.name}={word}"
    if attribute.kind == "lower":
        return f"{attribute.name}={lower}"
    if attribute.kind == "prefix":
        return f"{attribute.name}={lower[:PREFIX_LENGTH]}" if len(word) > PREFIX_LENGTH else None
    return f"{attribute.name}={lower[-SUFFIX_LENGTH:]}" if len(word) > SUFFIX_LENGTH else None


def _check_names(attributes: Any) -> list[str]:  # noqa: ANN401
    if isinstance(attributes, str) or not isinstance(attributes, Sequence):
        raise InputError(f"attributes is {attributes!r}; expected a list of names such as 'w-1.lower'")
    return list(dict.fromkeys(attributes))


def _read_attribute(name: Any) -> _Attribute:  # noqa: ANN401
    found = ATTRIBUTE.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        expected = "w.word, w.lower, w.prefix or w.suffix, or with a distance such as w-1.lower"
        raise InputError(f"attributes has {name!r}; expected {expected}")
    return _Attribute(name, int(found["offset"] or 0), found["kind"])


def _check_tagging(tagging: Any, at: int) -> list[tuple[str, str]]:  # noqa: ANN401
    expected = "a list of (word, tag) pairs"
    if isinstance(tagging, str | bytes) or not isinstance(tagging, Sequence):
        raise InputError(f"tagging {at} is {tagging!r}; expected {expected}")
    for pair in tagging:
        if not (isinstance(pair, tuple | list) and [type(each) for each in pair] == [str, str]):
            raise InputError(f"tagging {at} has {pair!r}; expected {expected}")
    return [(word, tag) for word, tag in tagging]
