"""Atomic features of inferences, declared as data: groups of items, and what is asked of them.

J. Turian and I. D. Melamed (2006), section 4: "is there an item in group J whose label, headword, headtag or
class of headtag is X?" Groups that hold one item tell more than the paper asks: its first and last child, a
number for its label and all of its children (for a word, its ending), and its width. The table is not in the
language of `treewright.data.templates`, where a line is one conjunction: here a line asks one group many
questions, each a feature of its own, and trees find the conjunctions.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright.errors import InputError
from treewright.native.constituent import atoms as native
from treewright.native.constituent.states import N_PREDICATES

PREDICATES = ("label", "word", "tag", "class", "first", "last", "form", "width", "inner")

KINDS = {
    "child": native.CHILD,
    "last-child": native.LAST_CHILD,
    "left": native.LEFT,
    "right": native.RIGHT,
    "first-word": native.FIRST_WORD,
    "last-word": native.LAST_WORD,
    "word-before": native.WORD_BEFORE,
    "word-after": native.WORD_AFTER,
    "end": native.END,
    "children": native.CHILDREN,
    "all-left": native.ALL_LEFT,
    "all-right": native.ALL_RIGHT,
    "n-children": native.SIZE,
    "n-words": native.N_WORDS,
    "n-left": native.N_LEFT,
    "n-right": native.N_RIGHT,
    "head": native.HEAD,
    "others": native.OTHERS,
    "words-of-others": native.WORDS_OF_OTHERS,
}
COUNTED = range(native.CHILD, native.END)
"""Groups of one item, of which there are several."""
MOST_COUNTED = 100
NUMBERS = range(native.SIZE, native.HEAD)
"""Groups that are numbers, not items."""
N_BINS = 10

ATOMS = """
child 1             label word tag class first last form width inner
child 2             label word tag class first last form width inner
child 3             label word tag class first last form
child 4             label word tag class
child 5             label class
last-child 1        label word tag class first last form width inner
last-child 2        label word tag class first last form
last-child 3        label word tag class
left 1              label word class form
left 2              label word class form
left 3              label word class
left 4              label class
right 1             label word tag class first last form width inner
right 2             label word tag class first last form inner
right 3             label word tag class
right 4             label class
first-word 1        label word class form
first-word 2        label word class
last-word 1         label word class form
last-word 2         label word class
word-after 1        label word class form
word-after 2        label word class
end                 label word class form
children            label word tag class first last form
all-left            label word class
all-right           label word tag class
n-children
n-words
n-left
n-right
head                label word tag class first last form width inner
others              label word tag class first last form inner
words-of-others     label word class
"""
"""A line for each group of items, which are counted from the edges of the inference, and what is asked of
them."""


class AtomTable(NamedTuple):
    """Groups ready for extraction, and the number of features."""

    arrays: native.Atoms
    n_features: int

    def locate(self, features: npt.NDArray[np.int32]) -> native.Tests:
        """Return the group, predicate and value that features stand for; anything for those below 0."""
        bases = self.arrays.bases
        groups, predicates = np.nonzero(bases >= 0)
        begins = bases[groups, predicates]
        places = np.searchsorted(begins, np.maximum(features, 0), side="right") - 1
        return native.Tests(
            self.arrays.kinds[groups[places]],
            self.arrays.arguments[groups[places]],
            predicates[places].astype(np.int32),
            features - begins[places],
        )


class AtomGroup(NamedTuple):
    """A line of a table: which items, counted from 0 where there are several such groups, and predicates."""

    kind: int
    argument: int
    predicates: list[int]


def read_atoms(table: str, sizes: Sequence[int]) -> AtomTable:
    """Read a table in the notation of `ATOMS`.

    Parameters
    ----------
    table : str
    sizes : sequence of int
        How many values each predicate has.
    """
    if not isinstance(table, str) or not table.strip():
        raise InputError(f"the table of atoms is {table!r}; expected a line for each group of items")
    groups = [_read_group(line) for line in table.splitlines() if line.strip()]
    lines: dict[tuple[int, int], str] = {}
    for group, line in zip(groups, filter(str.strip, table.splitlines()), strict=True):
        if group[:2] in lines:
            raise InputError(f"{line!r} has the group of {lines[group[:2]]!r}; expected each group once")
        lines[group[:2]] = line
    groups.sort(key=lambda group: group.kind >= native.HEAD)
    bases = np.full((len(groups), N_PREDICATES), -1, dtype=np.int32)
    n_features = 0
    for row, group in zip(bases, groups, strict=True):
        for predicate in group.predicates:
            row[predicate] = n_features
            n_features += N_BINS if group.kind in NUMBERS else sizes[predicate]
    kinds, arguments = (np.array([group[at] for group in groups], dtype=np.int32) for at in range(2))
    return AtomTable(native.Atoms(kinds, arguments, bases, int(np.sum(kinds < native.HEAD))), n_features)


def _read_group(line: str) -> AtomGroup:
    name, *rest = line.split()
    if name not in KINDS:
        raise InputError(f"the group is {name!r} in {line!r}; expected one of {', '.join(KINDS)}")
    kind, argument = KINDS[name], 1
    if kind in COUNTED:
        if not rest or not rest[0].isdigit() or not 1 <= int(rest[0]) <= MOST_COUNTED:
            raise InputError(f"{name!r} has no number in {line!r}; expected one from 1 to {MOST_COUNTED}")
        argument = int(rest.pop(0))
    if kind in NUMBERS:
        if rest:
            raise InputError(f"{rest[0]!r} is asked of {name!r}, which is a number; expected nothing")
        return AtomGroup(kind, 0, [0])
    wrong = [word for word in rest if word not in PREDICATES]
    if wrong or not rest:
        found = repr(wrong[0]) if wrong else "nothing"
        raise InputError(f"{found} is asked in {line!r}; expected some of {', '.join(PREDICATES)}")
    return AtomGroup(kind, argument - 1, sorted({PREDICATES.index(word) for word in rest}))
