import numpy as np
import pytest
from least_memory import with_least_memory
from messages import records_to
from oracle import gradient as twin
from scipy.sparse import csr_matrix

from treewright.checkpoint import Checkpoint
from treewright.errors import InputError
from treewright.mining.gradient import PAPER_SETTINGS, GradientMiner
from treewright.mining.polynomial import PolynomialSpace
from treewright.mining.problem import label_problem, list_problem
from treewright.mining.reports import IterationReport
from treewright.mining.space import Growth

SEEDS = range(12)


def random_rows(random_state, n_rows=40, n_columns=9, density=0.35):
    rng = np.random.default_rng(random_state)
    return (rng.random((n_rows, n_columns)) < density).astype(np.int8), rng


def random_problem(random_state, n_classes):
    """Draw rows whose label depends on a conjunction, with some noise."""
    rows, rng = random_rows(random_state)
    labels = rows[:, 0] & rows[:, 1]
    if n_classes > 2:
        labels = labels + (rows[:, 2] & rows[:, 3])
    is_noise = rng.random(len(rows)) < 0.15
    return rows, np.where(is_noise, rng.integers(n_classes, size=len(rows)), labels).astype(np.int64)


def as_dictionary(mined):
    conjunctions = [tuple(row) for each in mined.features.values() for row in each.tolist()]
    return {
        (conjunction, output): weight
        for conjunction, weights in zip(conjunctions, mined.weights, strict=True)
        for output, weight in enumerate(weights)
        if weight
    }


class EverythingSearch:
    """A search that prunes nothing: all conjunctions of each order, whatever their counts."""

    share = 1.0

    def __init__(self, rows, violations):
        self.rows, self.violations, self.order = rows[violations.rows], violations, 0
        self.n_bytes = (0, 0)

    def grow(self):
        self.order += 1
        features = np.array(twin.all_conjunctions(self.rows, self.order)[self.order], dtype=np.int32)
        features = features.reshape(-1, self.order)
        counts = np.zeros((len(features), self.violations.n_counters), dtype=np.int32)
        for row, counters in zip(self.rows, self.violations.counters, strict=True):
            is_present = row[features].all(axis=1)
            for counter in counters:
                counts[is_present, counter] += 1
        yield Growth(features, counts, len(features), 0, len(features))

    def close(self):
        pass


class EverythingSpace:
    """All conjunctions of a dense matrix, one by one."""

    def __init__(self, rows):
        self.rows = rows
        self.n_rows = len(rows)

    def search(self, violations, threshold, degree):
        return EverythingSearch(self.rows, violations)

    def match(self, features):
        columns = [self.rows[:, row].all(axis=1) for each in features for row in each]
        dense = np.array(columns, dtype=np.int8).reshape(-1, self.n_rows).T
        return csr_matrix(dense)


def assert_same(one, other):
    assert list(one.features) == list(other.features)
    for order in one.features:
        np.testing.assert_array_equal(one.features[order], other.features[order])
    np.testing.assert_array_equal(one.weights, other.weights)
    np.testing.assert_array_equal(one.intercept, other.intercept)
    assert one.objective == other.objective


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("random_state", SEEDS)
def test_algorithm_1_equals_a_version_that_visits_the_whole_space(random_state, n_classes):
    rows, labels = random_problem(random_state, n_classes)
    threshold = [0.5, 1, 2.5, 4][random_state % 4]
    pretrain_order = random_state % 3
    options = {"step": 0.5, "refine": 0, "tol": 0, "path": False}
    miner = GradientMiner(degree=3, threshold=threshold, max_iter=4, pretrain_order=pretrain_order, **options)
    mined = miner.fit(PolynomialSpace(csr_matrix(rows)), label_problem(labels, n_classes))
    weights, intercept, survivors = twin.mine_labels(
        rows,
        labels,
        n_classes,
        degree=3,
        threshold=threshold,
        rounds=4,
        step=0.5,
        pretrain_order=pretrain_order,
    )
    found = as_dictionary(mined)
    assert found.keys() == weights.keys()
    assert found == pytest.approx(weights)
    np.testing.assert_allclose(mined.intercept, intercept)
    by_round = {}
    for report in mined.orders:
        by_round.setdefault(report.iteration, []).append(report.n_survivors)
    # The search ends with the first order that has none.
    assert list(by_round.values()) == [
        counts[: counts.index(0) + 1] if 0 in counts else counts for counts in survivors
    ]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("random_state", SEEDS)
def test_refined_weights_are_the_same_without_pruning(random_state, n_classes):
    rows, labels = random_problem(random_state, n_classes)
    miner = GradientMiner(
        degree=3, threshold=[0.5, 1, 1.5][random_state % 3], max_iter=5, pretrain_order=random_state % 2
    )
    problem = label_problem(labels, n_classes)
    mined = miner.fit(PolynomialSpace(csr_matrix(rows)), problem)
    assert_same(mined, miner.fit(EverythingSpace(rows), problem))
    assert mined.n_selected


@pytest.mark.parametrize("random_state", SEEDS)
def test_lists_are_learnt_as_without_pruning(random_state):
    rows, rng = random_rows(random_state, n_rows=60)
    first = np.arange(0, 61, 5)
    right = first[:-1] + rng.integers(5, size=12)
    problem = list_problem(first, right, costs=rng.random(60) + 0.5, base_scores=rng.normal(size=60))
    miner = GradientMiner(degree=3, threshold=1, max_iter=5)
    mined = miner.fit(PolynomialSpace(csr_matrix(rows)), problem)
    assert_same(mined, miner.fit(EverythingSpace(rows), problem))
    assert mined.n_selected
    assert not mined.intercept.any()


@pytest.mark.parametrize("options", [{}, {"n_jobs": 2}, {"filter_memory": 64}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_threads_disk_and_filter_do_not_change_the_result(n_classes, options):
    rows, labels = random_problem(3, n_classes)
    miner = GradientMiner(degree=4, threshold=1, max_iter=5)
    problem = label_problem(labels, n_classes)
    plain = miner.fit(PolynomialSpace(csr_matrix(rows)), problem)
    assert_same(plain, miner.fit(PolynomialSpace(csr_matrix(rows), **options), problem))
    _, limited = with_least_memory(
        lambda limit: miner.fit(PolynomialSpace(csr_matrix(rows), memory_limit=limit, **options), problem)
    )
    assert_same(plain, limited)


@pytest.mark.parametrize("memory", [64, 256, 1024, 1 << 16])
def test_any_size_of_the_filter_gives_the_same_result(memory):
    rows, labels = random_problem(5, 3)
    miner = GradientMiner(degree=3, threshold=2, max_iter=4)
    problem = label_problem(labels, 3)
    plain = miner.fit(PolynomialSpace(csr_matrix(rows)), problem)
    assert_same(plain, miner.fit(PolynomialSpace(csr_matrix(rows), filter_memory=memory), problem))


def test_the_filter_keeps_rare_candidates_from_being_counted():
    rows, labels = random_problem(5, 2)
    miner = GradientMiner(degree=3, threshold=3, **{**PAPER_SETTINGS, "max_iter": 1, "pretrain_order": 0})
    counted = []
    for memory in (None, 1 << 16):
        space = PolynomialSpace(csr_matrix(rows), filter_memory=memory)
        mined = miner.fit(space, label_problem(labels, 2))
        counted.append(sum(report.n_candidates for report in mined.orders))
    assert counted[1] < counted[0]


@pytest.mark.slow
def test_survivors_go_to_disk_beyond_the_memory_limit():
    rows, rng = random_rows(1, n_rows=200, n_columns=12, density=0.6)
    miner, problem = GradientMiner(degree=4, threshold=5), label_problem(rng.integers(2, size=200), 2)
    _, mined = with_least_memory(
        lambda limit: miner.fit(PolynomialSpace(csr_matrix(rows), memory_limit=limit), problem)
    )
    assert any(report.n_bytes_on_disk for report in mined.orders)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (1_000, r"counts of 9 columns in 40 rows need at least 1\d,\d\d\d \(1 MiB\); .* or fewer columns\n"),
        (20_000, r"in 35 rows need at least [\d,]+ \(2 MiB\); use a higher limit or fewer columns\n"),
    ],
)
def test_a_memory_limit_that_is_too_small_is_refused_with_what_is_needed(limit, expected):
    rows, labels = random_problem(1, 2)
    space = PolynomialSpace(csr_matrix(rows), memory_limit=limit)
    with pytest.raises(InputError, match=expected):
        GradientMiner(degree=3, threshold=1).fit(space, label_problem(labels, 2))


def test_no_feature_enters_at_the_end():
    rows, labels = random_problem(2, 2)
    mined = GradientMiner(degree=3, threshold=6, max_iter=200, tol=0).fit(
        PolynomialSpace(csr_matrix(rows)), label_problem(labels, 2)
    )
    assert mined.iterations[-1].n_entered == 0
    assert len(mined.iterations) < 200


def test_selected_features_are_more_frequent_than_the_threshold():
    rows, labels = random_problem(4, 3)
    mined = GradientMiner(degree=3, threshold=2).fit(
        PolynomialSpace(csr_matrix(rows)), label_problem(labels, 3)
    )
    for each in mined.features.values():
        assert all(rows[:, row].all(axis=1).sum() > 2 for row in each)


def test_a_round_reports_every_order_and_itself():
    rows, labels = random_problem(0, 2)
    reports = []
    miner = GradientMiner(degree=3, threshold=2, max_iter=2, path=False)
    with records_to(reports.append):
        mined = miner.fit(PolynomialSpace(csr_matrix(rows)), label_problem(labels, 2))
    rounds = tuple(report for report in reports if isinstance(report, IterationReport))
    assert rounds == mined.iterations
    assert tuple(report for report in reports if not isinstance(report, IterationReport)) == mined.orders
    assert isinstance(reports[-1], IterationReport)


def test_an_interrupted_run_goes_on_to_the_same_result(tmp_path):
    rows, labels = random_problem(6, 3)
    space, problem = PolynomialSpace(csr_matrix(rows)), label_problem(labels, 3)
    miner = GradientMiner(degree=3, threshold=1, pretrain_order=1)
    whole = miner.fit(space, problem)

    class StoppedError(Exception):
        pass

    n_stops = 0

    def stop(report):
        if (
            isinstance(report, IterationReport)
            and report.iteration % 3 == 0
            and report.iteration > 3 * n_stops
        ):
            raise StoppedError

    for n_stops in range(len(whole.iterations) // 3 + 1):  # noqa: B007
        try:
            with records_to(stop):
                mined = miner.fit(space, problem, checkpoint=Checkpoint(tmp_path, "x"))
        except StoppedError:
            continue
        break
    assert n_stops > 2
    assert_same(mined, whole)
    assert mined.iterations == whole.iterations
    assert mined.orders == whole.orders


def test_a_path_tries_smaller_and_smaller_thresholds():
    rows, labels = random_problem(7, 2)
    miner = GradientMiner(degree=2, threshold=1)
    steps = miner.fit_path(PolynomialSpace(csr_matrix(rows)), label_problem(labels, 2), lambda mined: 0.5)
    thresholds = [step.threshold for step in steps]
    assert thresholds == sorted(thresholds, reverse=True)
    assert len(steps) == 7  # the first, and six that were not better


def test_a_path_does_not_end_before_anything_was_learnt():
    rows, labels = random_problem(7, 2)
    miner = GradientMiner(degree=2, threshold=1)
    space, problem = PolynomialSpace(csr_matrix(rows)), label_problem(labels, 2)
    steps = miner.fit_path(space, problem, lambda mined: 0.5, enough=0.6)
    assert steps[-1].threshold * 0.7 <= 1


def test_the_search_ends_with_the_last_order_that_has_survivors():
    rows, labels = random_problem(0, 2)
    mined = GradientMiner(degree=10**6, threshold=1).fit(
        PolynomialSpace(csr_matrix(rows)), label_problem(labels, 2)
    )
    assert max(report.order for report in mined.orders) <= rows.shape[1] + 1


def test_a_threshold_of_zero_is_approached_in_few_steps():
    rows, labels = random_problem(0, 2)
    miner = GradientMiner(degree=2, threshold=0, max_iter=2)
    mined = miner.fit(PolynomialSpace(csr_matrix(rows)), label_problem(labels, 2))
    assert len(mined.iterations) < 30


def test_a_problem_of_other_rows_is_refused():
    rows, labels = random_problem(0, 2)
    with pytest.raises(InputError, match="the problem has 39 rows; expected 40, like the feature space"):
        GradientMiner(degree=2, threshold=1).fit(
            PolynomialSpace(csr_matrix(rows)), label_problem(labels[1:], 2)
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: label_problem([0, 2], 2), "labels are from 0 to 2; expected 0 to 1"),
        (
            lambda: label_problem([0.5], 2),
            "labels is a 1-dimensional array of float64; expected a 1-dimensional array of integers",
        ),
        (lambda: list_problem([0, 2, 4], [0, 1]), "right[1] is 1; expected a row from 2 to 3"),
        (
            lambda: list_problem([0, 2], [0, 1]),
            "indptr does not divide the rows into one list per entry of right",
        ),
        (
            lambda: list_problem([0, 2], [0], costs=[1]),
            "costs has the shape (1,); expected (2,), one value per row",
        ),
    ],
)
def test_bad_problems_are_refused(make, message):
    with pytest.raises(InputError) as error:
        make()
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"degree": 0}, "degree is 0; expected an integer of at least 1"),
        ({"threshold": -1}, "threshold is -1; expected a number from 0 to 2.14748e+09"),
        ({"max_iter": 0}, "max_iter is 0; expected an integer of at least 1"),
        ({"step": "fast"}, "step is 'fast'; expected a number from 1e-12 to 1e+12"),
        ({"refine": -1}, "refine is -1; expected an integer of at least 0"),
        ({"tol": 2}, "tol is 2; expected a number from 0 to 1"),
    ],
)
def test_bad_options_are_refused(option, message):
    with pytest.raises(InputError) as error:
        GradientMiner(**{"degree": 2, "threshold": 1, **option})
    assert str(error.value) == message
