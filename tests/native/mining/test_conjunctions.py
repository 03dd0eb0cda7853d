import numpy as np
import pytest
from least_memory import with_least_memory
from oracle.mining import conjunctions as twin
from scipy.sparse import csr_matrix

from treewright.mining import counting, polynomial
from treewright.mining.polynomial import PolynomialSpace, match_conjunctions
from treewright.mining.space import Violations

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

DEGREE = 4
THRESHOLDS = [0, 1, 1.5, 4]
CASES = [
    (seed, n_per_row, threshold) for seed in range(4) for n_per_row in (1, 2) for threshold in THRESHOLDS
]
LEAST = "least"
OPTIONS = [
    {"filter_memory": 64},
    {"filter_memory": 256},
    {"filter_memory": 4096},
    {"memory_limit": LEAST},
    {"n_jobs": 2},
    {"n_jobs": 2, "filter_memory": 1024, "memory_limit": LEAST},
]


def draw(seed, n_per_row):
    """Draw rows, some of them empty or full, and violations that name some rows more than once."""
    rng = np.random.default_rng(seed)
    n_rows, n_columns = 14, int(rng.integers(5, 9))
    dense = rng.random((n_rows, n_columns)) < rng.uniform(0.1, 0.8, size=n_columns)
    dense[0], dense[1] = False, True
    rows = rng.integers(0, n_rows, size=16)
    if n_per_row == 1:
        return dense, Violations(rows, rng.integers(0, 2, size=(16, 1)).astype(np.int32), 2)
    right = rng.integers(0, 3, size=16)
    wrong = (right + rng.integers(1, 3, size=16)) % 3
    return dense, Violations(rows, np.stack([2 * right, 2 * wrong + 1], axis=1).astype(np.int32), 6)


def search(dense, violations, threshold, **options):
    """Grow all orders; return the parts in which each came."""
    if options.get("memory_limit") == LEAST:
        return with_least_memory(
            lambda limit: search(dense, violations, threshold, **{**options, "memory_limit": limit})
        )[1]
    space = PolynomialSpace(csr_matrix(dense.astype(np.int8)), **options)
    found = space.search(violations, float(threshold), DEGREE)
    orders = [list(found.grow()) for _ in range(DEGREE)]
    found.close()
    return orders


def listing(parts):
    """Return conjunctions and their counts as they came."""
    return [
        (tuple(feature), counts)
        for part in parts
        for feature, counts in zip(part.features.tolist(), part.counts.tolist(), strict=True)
    ]


def enumerated(count, dense, violations, threshold):
    """Return what a function of the twin finds for each order."""
    rows = [np.flatnonzero(dense[row]).tolist() for row in violations.rows]
    arguments = (rows, violations.counters.tolist(), violations.n_counters)
    return [count(*arguments, order, threshold) for order in range(1, DEGREE + 1)]


def assert_equal(orders, expected):
    for parts, own in zip(orders, expected, strict=True):
        found = listing(parts)
        assert len(found) == len(own)
        assert dict(found) == own


@pytest.mark.parametrize(("seed", "n_per_row", "threshold"), CASES)
def test_survivors_are_all_conjunctions_counted_above_the_threshold(seed, n_per_row, threshold):
    dense, violations = draw(seed, n_per_row)
    orders = search(dense, violations, threshold)
    assert_equal(orders, enumerated(twin.frequent, dense, violations, threshold))


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("seed", "n_per_row", "threshold"), CASES)
def test_survivors_are_the_same_in_the_same_order_whatever_the_means(seed, n_per_row, threshold, options):
    dense, violations = draw(seed, n_per_row)
    plain = search(dense, violations, threshold)
    other = search(dense, violations, threshold, **options)
    assert list(map(listing, other)) == list(map(listing, plain))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, *OPTIONS], ids=str)
@pytest.mark.parametrize(("room", "work"), [(1, 1), (1, 1000), (1000, 1)])
@pytest.mark.parametrize(("seed", "n_per_row", "threshold"), CASES[::5])
def test_survivors_are_the_same_in_the_same_order_in_many_parts(
    seed, n_per_row, threshold, room, work, options, monkeypatch
):
    dense, violations = draw(seed, n_per_row)
    plain = search(dense, violations, threshold)
    monkeypatch.setattr(counting, "ROOM", room)
    monkeypatch.setattr(polynomial, "WORK", work)
    other = search(dense, violations, threshold, **options)
    assert list(map(listing, other)) == list(map(listing, plain))


@pytest.mark.parametrize(("room", "work"), [(1, 1), (1, 1000), (1000, 1)])
def test_little_room_or_little_work_makes_many_parts(room, work, monkeypatch):
    monkeypatch.setattr(counting, "ROOM", room)
    monkeypatch.setattr(polynomial, "WORK", work)
    orders = search(*draw(0, 1), 0)
    assert min(len(parts) for parts in orders[1:]) > 1


@pytest.mark.parametrize(("seed", "n_per_row", "threshold"), CASES)
def test_candidates_are_frequent_conjunctions_with_a_more_frequent_column(seed, n_per_row, threshold):
    dense, violations = draw(seed, n_per_row)
    orders = search(dense, violations, threshold)
    for parts, expected in zip(
        orders, enumerated(twin.extensions, dense, violations, threshold), strict=True
    ):
        assert sum(part.n_candidates for part in parts) == len(expected)
        assert sum(part.n_instances for part in parts) == sum(expected.values())


@pytest.mark.parametrize("memory", [64, 4096])
@pytest.mark.parametrize(("seed", "n_per_row", "threshold"), CASES)
def test_a_filter_lets_no_more_candidates_be_counted(seed, n_per_row, threshold, memory):
    dense, violations = draw(seed, n_per_row)
    plain = search(dense, violations, threshold)
    other = search(dense, violations, threshold, filter_memory=memory)
    for before, after in zip(plain, other, strict=True):
        n_counted = sum(part.n_candidates for part in after)
        assert len(listing(before)) <= n_counted <= sum(part.n_candidates for part in before)


@pytest.mark.parametrize("work", [1, 1000])
@pytest.mark.parametrize(("seed", "n_per_row", "threshold"), CASES)
def test_a_large_filter_lets_only_survivors_be_counted(seed, n_per_row, threshold, work, monkeypatch):
    monkeypatch.setattr(polynomial, "WORK", work)
    dense, violations = draw(seed, n_per_row)
    for parts in search(dense, violations, threshold, filter_memory=1 << 18)[1:]:
        assert sum(part.n_candidates for part in parts) == len(listing(parts))


def test_features_are_ascending_columns():
    dense, violations = draw(1, 1)
    for parts in search(dense, violations, 0):
        for part in parts:
            assert (np.diff(part.features, axis=1) > 0).all()


@pytest.mark.parametrize("options", [{}, *OPTIONS], ids=str)
def test_nothing_grows_from_nothing(options):
    dense, violations = draw(2, 1)
    no_rows = Violations(np.zeros(0, np.int64), np.zeros((0, 1), np.int32), 2)
    for orders in (search(dense, no_rows, 0, **options), search(dense, violations, 99, **options)):
        assert [listing(parts) for parts in orders] == [[]] * DEGREE


def test_places_need_not_be_kept_for_the_last_order():
    dense, violations = draw(3, 2)
    found = PolynomialSpace(csr_matrix(dense.astype(np.int8))).search(violations, 0, 2)
    for _ in range(2):
        parts = list(found.grow())
    assert_equal([parts], enumerated(twin.frequent, dense, violations, 0)[1:2])
    assert list(found.grow()) == []


def random_features(rng, n_columns):
    """Draw sets of conjunctions of the orders 1 to 4, some empty."""
    by_order = []
    for order in range(1, DEGREE + 1):
        n = int(rng.integers(0, 8))
        chosen = {tuple(sorted(rng.choice(n_columns, size=order, replace=False).tolist())) for _ in range(n)}
        by_order.append(np.array(sorted(chosen), dtype=np.int32).reshape(-1, order))
    return by_order


def assert_matches(dense, features):
    found = match_conjunctions(csr_matrix(dense.astype(np.int8)), features)
    expected = twin.present(dense, [row for each in features for row in each.tolist()])
    assert found.toarray().astype(bool).tolist() == expected.tolist()
    assert found.shape == expected.shape
    assert found.has_sorted_indices


@pytest.mark.parametrize("seed", range(30))
def test_conjunctions_are_found_where_all_their_columns_are(seed):
    rng = np.random.default_rng(seed)
    dense = rng.random((12, 8)) < rng.uniform(0.1, 0.9)
    dense[3], dense[4] = False, True
    assert_matches(dense, random_features(rng, 8))


def test_conjunctions_that_begin_alike_are_told_apart():
    features = [[[0], [1]], [[0, 1], [0, 2]], [[0, 1, 2], [0, 1, 3], [1, 2, 3]], [[0, 1, 2, 3]]]
    dense = np.array([[number >> column & 1 for column in range(4)] for number in range(16)], dtype=bool)
    assert_matches(dense, [np.array(each, dtype=np.int32) for each in features])


def test_a_prefix_that_is_no_conjunction_itself_is_not_found():
    features = [np.array([[0, 1, 3]], dtype=np.int32)]
    assert_matches(np.array([[1, 1, 1, 0], [1, 1, 0, 1], [0, 1, 1, 1]], dtype=bool), features)


@pytest.mark.parametrize("features", [[], [np.zeros((0, 1), np.int32)], [np.zeros((0, 3), np.int32)]])
def test_no_conjunctions_are_found_nowhere(features):
    assert_matches(np.ones((3, 2), dtype=bool), features)


def test_nothing_is_found_in_no_rows():
    assert_matches(np.zeros((0, 4), dtype=bool), [np.array([[0, 2]], dtype=np.int32)])


def test_nothing_is_found_in_rows_without_items():
    assert_matches(np.zeros((5, 4), dtype=bool), [np.array([[0], [2]], dtype=np.int32)])


def test_columns_keep_the_sequence_of_the_conjunctions():
    features = [np.array([[2, 3], [0, 1], [1, 3]], dtype=np.int32), np.array([[3], [0]], dtype=np.int32)]
    assert_matches(np.random.default_rng(0).random((9, 4)) < 0.6, features)
