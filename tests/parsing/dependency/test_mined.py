"""Mined features in the chart of a dependency parser."""

from copy import copy

import numpy as np
import pytest
from oracle.dependency.charts import trees_over
from oracle.dependency.parts import KINDS

import treewright as tw
from treewright.errors import FormatError, InputError
from treewright.model import Value, saved
from treewright.parsing.contract import Batch, PartScorer
from treewright.parsing.dependency.constraints import has_tree
from treewright.parsing.dependency.forests import probable_arcs
from treewright.parsing.dependency.lattice import Lattice
from treewright.parsing.dependency.mined import MinedScorer
from treewright.progress import messages_to

OPTIONS = {"order": 1, "runs": 1, "epochs": 2, "table_bits": 14, "folds": 3, "mine": True}


def make_trees(n_sentences, seed):
    """Make sentences `u - - v - - x - - y` in which only x, a dependent of v, tells the head of y: v or u."""
    rng = np.random.default_rng(seed)
    trees = []
    for _ in range(n_sentences):
        is_near = bool(rng.integers(2))
        words = ["say", "so", "so", "see", "so", "so", "alpha" if is_near else "beta", "so", "so", "now"]
        heads = [0, 1, 1, 1, 4, 4, 4, 7, 7, 4 if is_near else 1]
        tags = ["VERB", "ADV", "ADV", "VERB", "ADV", "ADV", "NOUN", "ADV", "ADV", "NUM"]
        trees.append(tw.DepTree(words, upos=tags, heads=heads, deprels=["dep"] * 10))
    return trees


@pytest.fixture(scope="module")
def treebank():
    bank = tw.make_treebank(220, random_state=1).dependencies
    return bank[:160], bank[160:]


@pytest.fixture(scope="module")
def parser(treebank):
    return tw.DependencyParser(**OPTIONS, mining_significance=None).fit(*treebank)


def test_scores_of_trees_are_those_of_the_linear_model_and_the_mined_features(parser, treebank):
    scorer = parser.scorer_
    assert isinstance(scorer, MinedScorer)
    linear = parser.with_params(mine=False).with_learnt(parser._all_learnt._replace(scorer=scorer.linear))
    n_differing = 0
    for tree in treebank[1][:12]:
        best, *_ = parser.kbest([tree], 3)[0]
        lifted = parser.lifted(best.tree)
        mined = sum(feature.weight for feature in scorer.features_of(lifted))
        batch = Batch([lifted], parser.encoder_.encode([lifted]))
        lattice = linear.decoder_.lattice(
            scorer.linear, batch, 0, dict(enumerate(lifted.heads.tolist(), start=1))
        )
        own = sum(float(lattice.scores[kind][lattice.contains(kind, lifted.heads)].sum()) for kind in KINDS)
        assert best.score == pytest.approx(own + mined)
        n_differing += mined != 0
    assert n_differing


def test_k_best_trees_and_probabilities_are_those_of_all_trees_over_probable_arcs(parser, treebank):
    tree = min((each for each in treebank[1] if len(each) > 4), key=len)
    lifted = [parser.lifted(tree)]
    batch = Batch(lifted, parser.encoder_.encode(lifted))
    lattice = parser.decoder_.lattice(parser.scorer_.prepare(batch), batch, 0, {})
    arcs = set(map(tuple, lattice.words("arc").tolist()))
    trees = trees_over(arcs, len(tree), parser.decoder_.single_root_)
    scores = sorted(
        (
            sum(
                float(lattice.scores[kind][lattice.contains(kind, np.array(heads, dtype=np.int32))].sum())
                for kind in KINDS
            )
            for heads in trees
        ),
        reverse=True,
    )
    found = parser.kbest([tree], len(trees) + 1)[0]
    np.testing.assert_allclose([each.score for each in found], scores, atol=1e-8)
    assert sum(each.probability for each in found) == pytest.approx(1.0)
    weights = np.exp(parser.scale_ * (np.array(scores) - scores[0]))
    np.testing.assert_allclose([each.probability for each in found], weights / weights.sum(), atol=1e-8)


def test_only_arcs_that_the_linear_model_finds_probable_are_scored(parser, treebank):
    scorer = parser.scorer_
    lifted = [parser.lifted(tree) for tree in treebank[1][:8]]
    batch = Batch(lifted, parser.encoder_.encode(lifted))
    for number in range(len(lifted)):
        wide = parser.decoder_.lattice(scorer.linear, batch, number, {})
        kept = probable_arcs(wide, scorer.scale, scorer.threshold)
        narrow = parser.decoder_.lattice(scorer.prepare(batch), batch, number, {})
        assert set(map(tuple, narrow.words("arc").tolist())) == set(map(tuple, np.argwhere(kept).tolist()))
        rows, _ = wide.marginals({kind: scorer.scale * each for kind, each in wide.scores.items()})
        left_out = ~kept.T[1:] & (rows > 0)
        assert (rows < scorer.threshold * rows.max(axis=1, keepdims=True))[left_out].all()


def test_a_saved_parser_finds_the_same_trees(parser, treebank, tmp_path):
    parser.save(tmp_path / "parser")
    loaded = tw.load(tmp_path / "parser")
    kept, again = parser.kbest(treebank[1][:10], 3), loaded.kbest(treebank[1][:10], 3)
    assert [[each.score for each in one] for one in kept] == [[each.score for each in one] for one in again]
    assert parser.mined_features_ == loaded.mined_features_


def test_heads_that_are_fixed_are_kept(parser, treebank):
    tree = treebank[1][0]
    fixed = {1: len(tree)} if tree.heads[0] != len(tree) else {1: 2}
    (found,) = parser.predict([tree], fixed=[fixed])
    assert found.heads[0] == next(iter(fixed.values()))


def test_reasons_add_up_to_the_difference_of_scores(parser, treebank):
    comparisons = parser.explain(treebank[1][:10])
    assert any(one.text.startswith("mined") for each in comparisons for one in each.reasons)
    for each in comparisons:
        first, second = each.parser_scores[:2]
        assert sum(one.weight for one in each.reasons) == pytest.approx(first - second)


def test_features_are_named_and_told(parser):
    features = parser.mined_features_
    assert [abs(one.weight) for one in features] == sorted(
        (abs(one.weight) for one in features), reverse=True
    )
    assert {one.n_arcs for one in features} <= {0, 1, 2}
    assert all(one.text.partition(":")[0].endswith(("left", "right")) for one in features)
    assert all(one.text.startswith("mined ") for one in features)
    told = [parser.scorer_.say(number) for number in range(len(features))]
    assert all(text.endswith(".") for text in told)
    assert any("has no dependents" in text or "dependent of its head" in text for text in told)


def test_what_only_two_arcs_together_tell_is_learnt():
    train, test = make_trees(300, 0), make_trees(100, 1)
    weak = tw.DependencyParser(order=1, runs=1, epochs=2, table_bits=14, folds=3).fit(train, test)
    found = tw.DependencyParser(**OPTIONS).fit(train, test)
    scores = [tw.metrics.attachment(test, each.predict(test)).uas for each in (weak, found)]
    assert scores[0] < 97
    assert scores[1] == 100


def test_features_without_a_significant_gain_are_not_used(treebank):
    told = []
    with messages_to(told.append):
        found = tw.DependencyParser(**OPTIONS, mining_significance=1e-6).fit(*treebank)
    plain = tw.DependencyParser(**{**OPTIONS, "mine": False}).fit(*treebank)
    assert found.mined_features_ == []
    assert any("not significant" in text for text in told)
    predicted = [parser.predict(treebank[1]) for parser in (found, plain)]
    assert [tree.heads.tolist() for tree in predicted[0]] == [tree.heads.tolist() for tree in predicted[1]]


@pytest.mark.slow_cases
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_training_that_was_cut_off_goes_on_to_the_same_features(
    parser, treebank, tmp_path, monkeypatch, n_jobs
):
    options = {**OPTIONS, "mining_significance": None, "n_jobs": n_jobs}
    with monkeypatch.context() as patch:
        patch.setattr("treewright.parsing.dependency.training.restore_forests", _raise)
        with pytest.raises(KeyboardInterrupt):
            tw.DependencyParser(**options).fit(*treebank, checkpoint=tmp_path / "steps")
    with monkeypatch.context() as patch:
        patch.setattr("treewright.parsing.dependency.training.ParserTrainer._learn_forests", _raise)
        again = tw.DependencyParser(**options).fit(*treebank, checkpoint=tmp_path / "steps")
    assert again.mined_features_ == parser.mined_features_


def _raise(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mining_threshold": 5.0}, "mining_threshold"),
        ({"mine": True, "decoder": "spanning", "order": 1}, "mine"),
        ({"mine": True, "folds": 1}, "folds"),
        ({"mine": True, "mining_degree": 4}, "mining_degree"),
    ],
)
def test_options_that_cannot_be_are_refused(treebank, options, message):
    with pytest.raises(InputError, match=message):
        tw.DependencyParser(**options).fit(treebank[0][:20])


@pytest.mark.slow
def test_training_with_predicted_tags_that_was_cut_off_goes_on_with_these(treebank, tmp_path):
    options = {**OPTIONS, "mining_significance": None, "tags": "predicted", "epochs": 1}
    whole = tw.DependencyParser(**options).fit(*treebank, checkpoint=tmp_path / "steps")
    for path in (tmp_path / "steps").glob("forests*"):
        path.unlink()
    again = tw.DependencyParser(**options).fit(*treebank, checkpoint=tmp_path / "steps")
    assert whole.mined_features_
    assert again.mined_features_ == whole.mined_features_


@pytest.mark.slow
def test_a_parser_whose_mined_features_are_not_used_is_a_plain_one(treebank, tmp_path):
    found = tw.DependencyParser(**OPTIONS, mining_significance=0.0).fit(*treebank)
    assert not found.has_mined_features
    found.with_scorer(_ConstantScorer(), treebank[1]).save(tmp_path / "both")
    assert tw.load(tmp_path / "both").predict(treebank[1][:2])
    tw.DependencyReranker(parser=found, folds=2, k=2, degree=1).fit(*treebank)


class _ConstantScorer(PartScorer):
    """Scores all arcs alike."""

    fields = saved(value_=Value(float))
    value_ = 1.0

    def score(self, tree, parts):
        return {"arc": np.full(len(parts.words("arc")), self.value_)}


def test_where_few_heads_are_probable_all_arcs_are_scored(parser):
    n = 250
    keep = np.zeros((n + 1, n + 1), dtype=np.bool_)
    keep[0, 1:] = True
    keep[np.arange(1, n), np.arange(2, n + 1)] = keep[np.arange(2, n + 1), np.arange(1, n)] = True
    lattice = Lattice(keep)
    assert not has_tree(probable_arcs(lattice, 1.0, 0.01), single_root=True)
    scorer = copy(parser.scorer_)
    scorer.linear = copy(scorer.linear)
    scorer.linear.weights_ = np.zeros_like(scorer.linear.weights_)
    tree = tw.DepTree(["word"] * n)
    assert len(scorer.narrow(tree, lattice).words("arc")) == keep.sum()


@pytest.mark.parametrize(
    "change",
    [
        {"scale": 0.0},
        {"coef": np.zeros(1, dtype=np.float32)},
        {"codes": np.full(1, 20, dtype=np.uint8)},
        {"keys": np.array([1 << 63], dtype=np.uint64)},
    ],
)
def test_damaged_features_are_refused(parser, tmp_path, change):
    damaged = copy(parser)
    damaged.scorer_ = copy(parser.scorer_)
    vars(damaged.scorer_).update(change)
    damaged.save(tmp_path / "damaged")
    with pytest.raises(FormatError, match="damaged"):
        tw.load(tmp_path / "damaged")
