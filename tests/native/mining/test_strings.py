import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.mining import strings as twin

from treewright.mining import strings
from treewright.mining.space import Violations
from treewright.mining.strings import StringSpace, match_grams
from treewright.mining.text_items import TextRows
from treewright.native.mining.strings import ItemSequences

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

DEGREE = 4
N_ITEMS = 4


@st.composite
def rows_of_positions(draw):
    """Rows of up to two segments, as the twin knows them."""
    rows = []
    for _ in range(draw(st.integers(1, 6))):
        row = []
        for _ in range(draw(st.integers(0, 2))):
            gap, limit = draw(st.integers(0, 2)), draw(st.integers(1, DEGREE))
            begin, length = len(row), draw(st.integers(0, 5))
            for place in range(length):
                items = tuple(draw(st.lists(st.integers(0, N_ITEMS - 1), unique=True, max_size=2)))
                reach = min(begin + length, begin + place + gap + 2)
                row.append((items, reach, gap > 0, limit))
        rows.append(row)
    return rows


@st.composite
def problems(draw):
    rows = draw(rows_of_positions())
    numbers = draw(st.lists(st.integers(0, len(rows) - 1), max_size=8))
    n_classes = draw(st.sampled_from([1, 3]))
    if n_classes == 1:
        counters = [[draw(st.integers(0, 1))] for _ in numbers]
    else:
        counters = [[2 * draw(st.integers(0, 2)), 2 * draw(st.integers(0, 2)) + 1] for _ in numbers]
    shape = (len(numbers), 1 if n_classes == 1 else 2)
    array = np.array(counters, dtype=np.int32).reshape(shape)
    return rows, Violations(np.array(numbers, dtype=np.int64), array, 2 * n_classes)


def make_rows(rows):
    """Return rows as flat arrays."""
    starts = np.cumsum([0, *map(len, rows)])
    positions = [
        (items, reach + start, has_gaps, limit)
        for row, start in zip(rows, starts[:-1], strict=True)
        for items, reach, has_gaps, limit in row
    ]
    sequences = ItemSequences(
        np.cumsum([0, *(len(position[0]) for position in positions)], dtype=np.int64),
        np.array([item for position in positions for item in position[0]], dtype=np.int32),
        np.repeat(np.arange(len(rows), dtype=np.int32), np.diff(starts)),
        np.array([position[1] for position in positions], dtype=np.int64),
        np.array([position[2] for position in positions], dtype=np.bool_),
        np.array([position[3] for position in positions], dtype=np.int16),
        np.array([1, *[0] * (N_ITEMS - 1)], dtype=np.int16),
    )
    return TextRows(sequences, starts)


def search(rows, violations, threshold, n_jobs=1, degree=DEGREE):
    """Grow all orders; return the parts in which each came."""
    space = StringSpace([], n_jobs=n_jobs)
    space.rows, space.items = make_rows(rows), [f"lower={item}" for item in range(N_ITEMS)]
    found = space.search(violations, threshold, degree)
    orders = [list(found.grow()) for _ in range(degree)]
    found.close()
    return orders


def listing(parts):
    return [
        (tuple(feature), counts)
        for part in parts
        for feature, counts in zip(part.features.tolist(), part.counts.tolist(), strict=True)
    ]


def enumerated(count, rows, violations, threshold):
    chosen = [rows[row] for row in violations.rows]
    arguments = (chosen, violations.counters.tolist(), violations.n_counters)
    return [count(*arguments, order, threshold) for order in range(1, DEGREE + 1)]


@given(problems(), st.sampled_from([0, 1, 1.5]))
@settings(deadline=None)
def test_survivors_are_all_grams_counted_above_the_threshold(problem, threshold):
    rows, violations = problem
    expected = enumerated(twin.frequent, rows, violations, threshold)
    for parts, own in zip(search(rows, violations, threshold), expected, strict=True):
        found = listing(parts)
        assert len(found) == len(own)
        assert dict(found) == own


@given(problems(), st.sampled_from([0, 1]))
@settings(deadline=None)
def test_candidates_are_survivors_with_one_more_surviving_item(problem, threshold):
    rows, violations = problem
    expected = enumerated(twin.extensions, rows, violations, threshold)
    for parts, own in zip(search(rows, violations, threshold), expected, strict=True):
        assert sum(part.n_candidates for part in parts) == len(own)
        assert sum(part.n_instances for part in parts) == sum(own.values())


@given(problems())
@settings(deadline=None, max_examples=30)
def test_survivors_come_in_the_same_order_whatever_the_room_and_the_threads(problem):
    rows, violations = problem
    plain = list(map(listing, search(rows, violations, 0)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strings, "WORK", 1)
        patch.setattr(strings, "ROOM", 1)
        assert list(map(listing, search(rows, violations, 0))) == plain
        assert list(map(listing, search(rows, violations, 0, n_jobs=2))) == plain


def test_there_is_no_order_above_the_degree():
    rows = [[((0,), 2, False, DEGREE), ((0,), 2, False, DEGREE)]]
    violations = Violations(np.zeros(1, dtype=np.int64), np.zeros((1, 1), dtype=np.int32), 2)
    orders = search(rows, violations, 0, degree=2)
    assert [listing(parts) for parts in orders] == [[((0,), [1, 0])], [((0, 0), [1, 0])]]
    search_of_one = search(rows, violations, 0, degree=1)
    assert [listing(parts) for parts in search_of_one] == [[((0,), [1, 0])]]


codes = st.integers(0, 2 * N_ITEMS - 1)
grams = st.tuples(st.integers(0, N_ITEMS - 1), st.lists(codes, max_size=DEGREE - 1)).map(
    lambda each: (2 * each[0], *each[1])
)


@given(rows_of_positions(), st.lists(grams, unique=True, max_size=12), st.sampled_from([1, 1 << 10]))
@settings(deadline=None)
def test_grams_are_found_where_they_are(rows, wanted, room):
    features = [
        np.array([gram for gram in wanted if len(gram) == order], dtype=np.int32).reshape(-1, order)
        for order in range(1, DEGREE + 1)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strings, "ROOM", room)
        found = match_grams(make_rows(rows), features)
    expected = twin.match_rows(rows, [tuple(row) for each in features for row in each.tolist()])
    assert found.toarray().astype(bool).tolist() == expected
    assert found.has_sorted_indices
