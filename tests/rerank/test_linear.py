from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import treewright.rerank.linear as linear
from treewright.learn.ranking import AveragedRanker, LogLinearRanker
from treewright.mining.problem import list_problem
from treewright.rerank.features import SelectedRows
from treewright.rerank.linear import LinearScorer, drop_lightest, measure_purity, take_columns


def draw(random_state, n_lists=40, n_features=30):
    """Draw rows in lists, the right one anywhere, some of them without features, and given scores."""
    rng = np.random.default_rng(random_state)
    first = np.cumsum([0, *rng.integers(1, 6, size=n_lists)])
    dense = (rng.random((first[-1], n_features)) < rng.choice([0, 0.3], size=(first[-1], 1))).astype(np.int8)
    right = np.array([rng.integers(begin, end) for begin, end in pairwise(first)])
    return csr_matrix(dense), list_problem(first, right, base_scores=rng.normal(size=len(dense)))


class Drawn:
    """Features that are there already."""

    def __init__(self, rows):
        self.rows = rows

    def select(self, lists, problem, *, checkpoint, client=None):
        self.problem = problem
        return SelectedRows(self.rows.copy())

    def keep(self, columns):
        self.kept = columns


@pytest.fixture(params=[3, 500])
def few_at_once(request, monkeypatch):
    monkeypatch.setattr(linear, "LISTS_AT_ONCE", request.param)


class Copied(Drawn):
    """Features of which several are in the same rows."""

    def __init__(self, rows, groups):
        super().__init__(rows)
        self.groups = groups

    def select(self, lists, problem, *, checkpoint, client=None):
        return SelectedRows(self.rows.copy(), self.groups)


@pytest.mark.parametrize("ranker", ["perceptron", "loglinear"])
@pytest.mark.parametrize("purity", [False, True])
@pytest.mark.parametrize("random_state", range(3))
def test_features_that_share_a_column_get_the_weights_of_separate_columns(random_state, purity, ranker):
    rows, problem = draw(random_state)
    groups = np.random.default_rng(random_state).permutation(np.arange(90) % rows.shape[1])
    options = {"ranker": ranker, "purity": purity, "light_share": 0.0}
    merged, separate = (
        LinearScorer(features, **options).fit(None, problem, checkpoint=None)
        for features in (Copied(rows, groups), Drawn(rows[:, groups]))
    )
    assert merged.coef == pytest.approx(separate.coef, rel=1e-12)
    assert len(merged.coef) > 0
    assert merged.coef.any()


@pytest.mark.parametrize("random_state", range(4))
def test_columns_are_taken_and_rows_ordered_as_a_copy_would_have_them(random_state, few_at_once):
    rows, problem = draw(random_state)
    columns = np.flatnonzero(np.random.default_rng(random_state).random(rows.shape[1]) < 0.6)
    expected = rows[:, columns][problem.alternatives.rows]
    taken, alternatives = take_columns(rows.copy(), columns, problem.alternatives)
    assert taken.indices.tolist() == expected.indices.tolist()
    assert taken.indptr.tolist() == expected.indptr.tolist()
    assert (taken != expected).nnz == 0
    assert alternatives.rows.tolist() == list(range(rows.shape[0]))
    assert alternatives.base_scores.tolist() == problem.alternatives.base_scores.tolist()


def test_columns_are_taken_without_a_copy():
    rows, problem = draw(1)
    taken, _ = take_columns(rows, np.arange(20), problem.alternatives)
    assert np.shares_memory(taken.indices, rows.indices)


@pytest.mark.parametrize("random_state", range(4))
def test_purity_is_the_excess_of_one_side_over_the_other(random_state, few_at_once):
    rows, problem = draw(random_state)
    dense, alternatives = rows.toarray().astype(float), problem.alternatives
    excess, total = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    _, worst = problem.assess(np.zeros((problem.n_rows, 1)))
    for end, wrong in zip(alternatives.indptr[1:], worst, strict=True):
        if wrong >= 0:
            difference = dense[alternatives.rows[end - 1]] - dense[alternatives.rows[wrong]]
            excess += difference
            total += np.abs(difference)
    assert total.any()
    assert measure_purity(rows, problem).tolist() == (np.abs(excess) / np.maximum(total, 1)).tolist()


@pytest.mark.parametrize("ranker", ["loglinear", "perceptron"])
def test_weights_are_those_that_are_learnt_from_copies(ranker, few_at_once):
    rows, problem = draw(2)
    scorer = LinearScorer(Drawn(rows), ranker=ranker, epochs=3)
    scorer.fit(None, problem, checkpoint=None)
    purity = measure_purity(rows, problem)
    kept = np.flatnonzero(purity >= linear.MIN_PURITY)
    few, trust, alternatives = rows[:, kept], purity[kept] ** linear.PURITY_POWER, problem.alternatives
    if ranker == "perceptron":
        bare = alternatives._replace(base_scores=np.zeros_like(alternatives.base_scores))
        learnt = [AveragedRanker(epochs=3).fit(few, bare, trust=trust).coef_]
    else:
        learnt, start = [], None
        for penalty in linear.PENALTIES:
            model = LogLinearRanker(penalty=penalty).fit(few, alternatives, coef_init=start, trust=trust)
            learnt.append(start := model.coef_)
    assert 0 < len(kept) < rows.shape[1]
    assert scorer.features.kept.tolist() == kept.tolist()
    expected = [drop_lightest(each).tolist() for each in learnt]
    assert [each.tolist() for each in scorer._choices] == expected
    chosen = np.array(expected[-1])
    scorer.choose(len(expected) - 1)
    assert scorer.features.kept.tolist() == np.flatnonzero(chosen).tolist()
    assert scorer.coef.tolist() == chosen[chosen != 0].tolist()


@pytest.mark.parametrize("ranker", ["loglinear", "perceptron"])
def test_without_purity_all_features_are_kept_and_trusted_alike(ranker):
    rows, problem = draw(2)
    scorer = LinearScorer(Drawn(rows), ranker=ranker, epochs=3, purity=False, light_share=0.0)
    scorer.fit(None, problem, checkpoint=None)
    assert not hasattr(scorer.features, "kept")
    if ranker == "perceptron":
        bare = problem.without_base_scores().alternatives
        expected = AveragedRanker(epochs=3).fit(rows, bare).coef_
    else:
        expected = LogLinearRanker(penalty=linear.PENALTIES[0]).fit(rows, problem.alternatives).coef_
    assert scorer.coef.tolist() == expected.tolist()


def test_features_are_mined_with_base_scores_unless_these_are_left_out():
    rows, problem = draw(3)
    mined = {}
    for with_base in (True, False):
        scorer = LinearScorer(Drawn(rows), mine_with_base=with_base).fit(None, problem, checkpoint=None)
        mined[with_base] = scorer.features.problem
        # The weights are learnt beside the base scores either way.
        assert scorer.coef.tolist() == mined.setdefault("coef", scorer.coef.tolist())
    assert mined[True] is problem
    scores = [mined[each].alternatives.base_scores for each in (True, False)]
    assert scores[0].any()
    assert not scores[1].any()
    assert mined[False].alternatives.rows.tolist() == problem.alternatives.rows.tolist()
    assert (mined[False].n_rows, mined[False].n_outputs) == (problem.n_rows, problem.n_outputs)


def test_the_share_of_the_lightest_weights_can_be_chosen():
    rows, problem = draw(2)
    zeros = []
    for share in (0.0, 0.02, 0.5):
        scorer = LinearScorer(Drawn(rows), light_share=share).fit(None, problem, checkpoint=None)
        zeros.append(int((scorer.coef == 0).sum()))
    assert zeros[0] == 0 < zeros[2]
    assert zeros == sorted(zeros)


def test_the_lightest_weights_that_make_up_a_share_of_all_are_dropped():
    coef = np.array([0.5, -0.125, 4, -0.25, 0.125])
    assert drop_lightest(coef, 0.03).tolist() == [0.5, 0, 4, -0.25, 0.125]
    assert drop_lightest(coef, 0.1).tolist() == [0.5, 0, 4, 0, 0]
    assert drop_lightest(coef, 0).tolist() == coef.tolist()


@pytest.mark.parametrize("coef", [[], [0.0, 0.0]])
def test_without_weights_nothing_is_left(coef):
    assert not drop_lightest(np.array(coef)).any()
