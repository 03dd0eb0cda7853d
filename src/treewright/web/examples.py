"""Sentences to try, in the words that a model knows."""

import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files

from treewright.web.texts import split_plainly

MIN_KNOWN = 0.5
"""Share of the words of a list that a model must know to be offered it."""


@cache
def read_examples() -> list[list[str]]:
    """Return all lists of sentences."""
    data = tomllib.loads(files(__package__).joinpath("examples.toml").read_text("utf-8"))
    return list(data.values())


def choose_examples(knows_words: Callable[[Sequence[str]], Sequence[bool] | None]) -> list[str]:
    """Return the sentences whose words a model knows best; none if it knows too few of any list.

    Parameters
    ----------
    knows_words : callable
        Tells which words a model has seen; None if it cannot tell.
    """
    best, most = [], MIN_KNOWN
    for sentences in read_examples():
        known = knows_words(words_of(sentences))
        if known is None:
            return []
        if (share := sum(known) / len(known)) > most:
            best, most = sentences, share
    return best


def words_of(sentences: Sequence[str]) -> list[str]:
    """Return the words of sentences that have letters."""
    trees = [tree for sentence in sentences for tree in split_plainly(sentence)]
    return [word for tree in trees for word in tree.words if has_letters(word)]


def has_letters(word: str) -> bool:
    """Tell a word from numbers and punctuation."""
    return any(character.isalpha() for character in word)
