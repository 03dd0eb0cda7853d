"""Vocabulary: strings and their ids."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

UNKNOWN = 0
"""The id of unknown strings."""


class Vocabulary:
    """A fixed set of strings with ids from 1; unknown strings have id 0.

    Parameters
    ----------
    strings : sequence of str
        Distinct strings; the first has id 1.

    Attributes
    ----------
    numbers : dict of str to int
        The id of each string.
    """

    def __init__(self, strings: Sequence[str]) -> None:
        self.strings = list(strings)
        self.numbers = {string: number for number, string in enumerate(self.strings, start=1)}

    @classmethod
    def from_counts(cls, counts: Mapping[str, int], *, min_count: int = 1) -> "Vocabulary":
        """Make a vocabulary of the strings with at least `min_count` occurrences, most frequent first."""
        kept = [string for string, count in counts.items() if count >= min_count]
        return cls(sorted(kept, key=lambda string: (-counts[string], string)))

    def __len__(self) -> int:
        return len(self.strings) + 1

    def __contains__(self, string: str) -> bool:
        return string in self.numbers

    def __getitem__(self, number: int) -> str:
        """Return the string with id `number`."""
        return self.strings[number - 1]

    def id(self, string: str) -> int:
        """Return the id of `string`; 0 if it is unknown."""
        return self.numbers.get(string, UNKNOWN)

    def ids(self, strings: Iterable[str]) -> npt.NDArray[np.int32]:
        """Return the ids of `strings`; 0 for unknown ones."""
        return np.array([self.numbers.get(string, UNKNOWN) for string in strings], dtype=np.int32)
