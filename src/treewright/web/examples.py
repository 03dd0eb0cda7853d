"""Example sentences, chosen by the vocabulary of a model."""

import tomllib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import TypeAlias

from treewright.data.deptree import DepTree
from treewright.web.texts import split_plainly

MIN_KNOWN = 0.5
"""A list of examples is only used if the model knows more than this fraction of its words."""


@cache
def read_examples() -> list[list[str]]:
    """Return all lists of example sentences."""
    data = tomllib.loads(files(__package__).joinpath("examples.toml").read_text("utf-8"))
    return list(data.values())


Split: TypeAlias = Callable[[str], Iterable[DepTree]]
"""A function that splits a text into sentences."""


def choose_examples(
    knows_words: Callable[[Sequence[str]], Sequence[bool] | None], split: Split = split_plainly
) -> list[str]:
    """Return the list of sentences with the largest fraction of words that a model knows.

    The result is empty if this fraction is too small.

    Parameters
    ----------
    knows_words : callable
        Returns whether the model knows each word; None if this cannot be determined.
    split : callable
        Splits text as the model does; the default finds no words in scripts without spaces.
    """
    best, most = [], MIN_KNOWN
    for sentences in read_examples():
        known = knows_words(words_of(sentences, split))
        if known is None:
            return []
        if (share := sum(known) / max(1, len(known))) > most:
            best, most = sentences, share
    return best


def words_of(sentences: Sequence[str], split: Split = split_plainly) -> list[str]:
    """Return the words that contain letters."""
    trees = [tree for sentence in sentences for tree in split(sentence)]
    return [word for tree in trees for word in tree.words if has_letters(word)]


def has_letters(word: str) -> bool:
    """Return whether a word contains letters, unlike numbers and punctuation."""
    return any(character.isalpha() for character in word)
