"""Atomic features of inferences, declared as a table of groups of items and their attributes.

J. Turian and I. D. Melamed (2006), section 4: "is there an item in group J whose label, headword, headtag or
class of headtag is X?" A group of one item has more attributes than in the paper: the first and last child, a
hash of the label and all children (for a word, a hash of its ending), and the width. The table does not use
the language of `treewright.data.templates`, in which each line is a conjunction. Here, a line lists the
attributes of a group, each of which is a separate feature; the decision trees form the conjunctions.
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
"""Groups of one item that are numbered by position."""
MOST_COUNTED = 100
NUMBERS = range(native.SIZE, native.HEAD)
"""Groups that stand for a number, such as the number of children, instead of items."""
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
"""Each line has a group and the attributes to use; items are numbered from the edges of the inference."""
PAPER_PREDICATES = PREDICATES[:4]
"""The attributes that the paper uses."""


def keep_predicates(table: str, names: Sequence[str]) -> str:
    r"""Return a table with only the named attributes, and without groups that have none of them.

    Examples
    --------
    >>> keep_predicates("child 1 label first\nhead width\nn-words", ["label", "tag"])
    'child 1 label'
    """
    found = []
    for line in filter(str.strip, table.splitlines()):
        words = line.split()
        kept = [word for word in words if word not in PREDICATES or word in names]
        if any(word in names for word in kept):
            found.append(" ".join(kept))
    return "\n".join(found)


TABLES = {"paper": keep_predicates(ATOMS, PAPER_PREDICATES)}
"""Named tables. The paper does not list its groups of items; "paper" has our groups with its attributes."""


class AtomTable(NamedTuple):
    """Groups compiled for feature extraction, and the number of features."""

    arrays: native.Atoms
    n_features: int

    def locate(self, features: npt.NDArray[np.int32]) -> native.Tests:
        """Return group, attribute and value of each feature; results for negative numbers are meaningless."""
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
    """A line of a table: kind of group, position of the item (from 0) if it is numbered, and attributes."""

    kind: int
    argument: int
    predicates: list[int]


def read_atoms(table: str, sizes: Sequence[int]) -> AtomTable:
    """Parse a table in the notation of `ATOMS`.

    Parameters
    ----------
    table : str
        The table, one group per line.
    sizes : sequence of int
        Number of values of each attribute.
    """
    if not isinstance(table, str) or not table.strip():
        raise InputError(f"the table of atoms is {table!r}; expected one line per group of items")
    groups = [_read_group(line) for line in table.splitlines() if line.strip()]
    lines: dict[tuple[int, int], str] = {}
    for group, line in zip(groups, filter(str.strip, table.splitlines()), strict=True):
        if group[:2] in lines:
            raise InputError(f"{line!r} repeats the group of {lines[group[:2]]!r}; expected each group once")
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
        raise InputError(f"the group in {line!r} is {name!r}; expected one of {', '.join(KINDS)}")
    kind, argument = KINDS[name], 1
    if kind in COUNTED:
        if not rest or not rest[0].isdigit() or not 1 <= int(rest[0]) <= MOST_COUNTED:
            raise InputError(
                f"the number of {name!r} is missing or invalid in {line!r}; expected 1 to {MOST_COUNTED}"
            )
        argument = int(rest.pop(0))
    if kind in NUMBERS:
        if rest:
            raise InputError(
                f"{name!r} takes no attributes, but {rest[0]!r} follows; expected only {name!r} in this line"
            )
        return AtomGroup(kind, 0, [0])
    wrong = [word for word in rest if word not in PREDICATES]
    if wrong or not rest:
        found = f"unknown attribute {wrong[0]!r}" if wrong else "no attributes"
        raise InputError(f"{found} in {line!r}; expected one or more of {', '.join(PREDICATES)}")
    return AtomGroup(kind, argument - 1, sorted({PREDICATES.index(word) for word in rest}))
