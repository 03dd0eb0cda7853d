"""The table of atomic features."""

import numpy as np
import pytest

from treewright.errors import InputError
from treewright.native.constituent import atoms as native
from treewright.parsing.constituent.atoms import (
    ATOMS,
    KINDS,
    N_BINS,
    NUMBERS,
    PREDICATES,
    TABLES,
    read_atoms,
)

LINES = [line.split() for line in ATOMS.strip().splitlines()]
SIZES = [7, 5, 4, 3, 7, 7, 20, N_BINS, 5]


def test_every_line_names_a_group_and_predicates():
    for kind, *rest in LINES:
        assert kind in KINDS
        names = rest[1:] if rest and rest[0].isdigit() else rest
        assert set(names) <= set(PREDICATES)
        assert len(set(names)) == len(names)
    assert len({tuple(line[:2]) for line in LINES}) == len(LINES)


def test_groups_that_depend_on_the_head_come_last():
    depend = [KINDS[kind] >= native.HEAD for kind, *_ in LINES]
    assert depend == sorted(depend)
    assert read_atoms(ATOMS, SIZES).arrays.n_shared == depend.count(False)


def test_every_value_of_every_predicate_of_a_line_has_a_number_of_its_own():
    table = read_atoms(ATOMS, SIZES)
    numbers = []
    for row, (_, *rest) in zip(table.arrays.bases.tolist(), LINES, strict=True):
        names = [name for name in rest if not name.isdigit()]
        assert [base >= 0 for base in row] == [
            name in names or (not names and name == "label") for name in PREDICATES
        ]
        for base, size in zip(row, SIZES, strict=True):
            if base >= 0:
                numbers += range(base, base + (size if names else N_BINS))
    assert numbers == list(range(table.n_features))


def test_places_are_counted_from_one_in_a_table_and_from_zero_inside():
    table = read_atoms("child 2 word label\nleft 1 tag\nhead word", SIZES)
    assert table.arrays.arguments.tolist() == [1, 0, 0]
    assert table.arrays.kinds.tolist() == [native.CHILD, native.LEFT, native.HEAD]
    assert table.arrays.bases[:, :3].tolist() == [[0, 7, -1], [-1, -1, 12], [-1, 16, -1]]
    assert (table.arrays.n_shared, table.n_features) == (2, 21)


@pytest.mark.parametrize("text", [ATOMS, "head word\nend tag form\nn-words\nchild 2 inner word"])
def test_every_feature_is_located_where_it_was_numbered(text):
    table = read_atoms(text, SIZES)
    arrays = table.arrays
    expected = [
        (kind, argument, predicate, value)
        for kind, argument, row in zip(*(each.tolist() for each in arrays[:3]), strict=True)
        for predicate, base in enumerate(row)
        if base >= 0
        for value in range(N_BINS if kind in NUMBERS else SIZES[predicate])
    ]
    numbers = np.arange(table.n_features, dtype=np.int32)
    found = table.locate(numbers)
    assert list(zip(*(each.tolist() for each in found), strict=True)) == expected


def test_what_asks_for_nothing_may_be_located_anywhere():
    table = read_atoms(ATOMS, SIZES)
    found = table.locate(np.array([3, -1, 5, -1], dtype=np.int32))
    assert [len(each) for each in found] == [4, 4, 4, 4]
    assert (found.values[[0, 2]] >= 0).all()


def test_lines_may_stand_in_any_order():
    text = "head word\n\n  end tag form\nchild 1 inner word word\nn-words\n"
    table = read_atoms(text, SIZES)
    assert table.arrays.kinds.tolist() == [native.END, native.CHILD, native.N_WORDS, native.HEAD]
    assert table.arrays.n_shared == 3
    assert table.n_features == (4 + 20) + (5 + 5) + N_BINS + 5


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("child-1 label", "the group in 'child-1 label' is 'child-1'; expected one of child, last-child, "),
        ("left label", "the number of 'left' is missing or invalid in 'left label'; expected 1 to 100"),
        ("right", "the number of 'right' is missing or invalid in 'right'; expected 1 to 100"),
        (
            "child 0 label",
            "the number of 'child' is missing or invalid in 'child 0 label'; expected 1 to 100",
        ),
        (
            "child -1 label",
            "the number of 'child' is missing or invalid in 'child -1 label'; expected 1 to 100",
        ),
        (
            "child 101 label",
            "the number of 'child' is missing or invalid in 'child 101 label'; expected 1 to 100",
        ),
        ("child 1", "no attributes in 'child 1'; expected one or more of label, word, tag, "),
        ("end", "no attributes in 'end'; expected one or more of label, word, tag, "),
        ("end 1 label", "unknown attribute '1' in 'end 1 label'; expected one or more of label, word, tag, "),
        (
            "head label wrod",
            "unknown attribute 'wrod' in 'head label wrod'; expected one or more of label, word, tag, ",
        ),
        ("n-words label", "'n-words' takes no attributes, but 'label' follows; expected only 'n-words'"),
    ],
)
def test_a_line_that_cannot_be_read_is_told(line, message):
    with pytest.raises(InputError) as caught:
        read_atoms(f"child 1 label\n{line}\n", SIZES)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("table", ["", "\n", 3])
def test_a_table_of_nothing_is_refused(table):
    with pytest.raises(InputError, match="the table of atoms is"):
        read_atoms(table, SIZES)


def test_a_group_stands_once_in_a_table():
    with pytest.raises(InputError, match="expected each group once"):
        read_atoms("children word\nhead tag\nchildren label", SIZES)


def test_the_attributes_of_the_paper_are_label_word_tag_and_class():
    whole, paper = (read_atoms(table, SIZES).arrays for table in (ATOMS, TABLES["paper"]))
    kept = ~np.isin(whole.kinds, list(NUMBERS)) & (whole.bases[:, :4] >= 0).any(axis=1)
    np.testing.assert_array_equal(paper.kinds, whole.kinds[kept])
    np.testing.assert_array_equal(paper.arguments, whole.arguments[kept])
    np.testing.assert_array_equal(paper.bases[:, :4] >= 0, whole.bases[kept, :4] >= 0)
    assert (paper.bases[:, 4:] < 0).all()
