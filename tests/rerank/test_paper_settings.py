"""The settings of Qian & Liu (2015), and each option by which the defaults differ from them."""

import inspect

import numpy as np
import pytest

import treewright as tw
from treewright._validate import check_params
from treewright.errors import InputError
from treewright.mining.gradient import PAPER_SETTINGS as PAPER_MINING
from treewright.mining.gradient import GradientMiner
from treewright.mining.reports import IterationReport
from treewright.progress import Message, listening
from treewright.rerank.features import SubtreeFeatures
from treewright.rerank.reranker import PAPER_SETTINGS, DependencyReranker
from treewright.rerank.training import RerankerTrainer

QUICK = {"k": 5, "folds": 2, "degree": 2, "threshold": 3, "significance_level": None}


@pytest.fixture(scope="module")
def train():
    return tw.make_treebank(90, random_state=2).dependencies


@pytest.fixture(scope="module")
def dev():
    return tw.make_treebank(40, random_state=3).dependencies


@pytest.fixture(scope="module")
def parser(train):
    return tw.DependencyParser(order=1, epochs=1, runs=1, table_bits=16).fit(train)


@pytest.fixture(scope="module")
def fit(parser, train, dev, tmp_path_factory):
    """Return what trains a reranker with some options, and the reports of its rounds."""
    cache = tmp_path_factory.mktemp("lists")

    def fit(**options):
        heard = []
        with listening(heard.append):
            reranker = DependencyReranker(parser=parser, **QUICK | options).fit(train, dev, cache=cache)
        records = [each.record for each in heard if isinstance(each, Message)]
        return reranker, [each for each in records if isinstance(each, IterationReport)]

    return fit


@pytest.fixture(scope="module")
def default(fit):
    return fit()


def names(reranker):
    return {feature.text for feature in reranker.weightiest()}


def made_features(**options):
    return RerankerTrainer(DependencyReranker(**options))._features()


def test_the_settings_are_parameters_and_allowed():
    assert set(PAPER_SETTINGS) <= set(inspect.signature(DependencyReranker).parameters)
    check_params(DependencyReranker(**PAPER_SETTINGS))


def test_the_settings_are_those_of_the_paper():
    reranker = DependencyReranker(**PAPER_SETTINGS)
    mining = ("max_iter", "step", "pretrain_order", "refine", "path")
    assert [getattr(reranker, name) for name in mining] == [100, 1.0, 2, 0, False]
    assert (reranker.k, reranker.folds, reranker.threshold, reranker.target) == (10, 10, 3.0, "gold")
    assert (reranker.space, reranker.learner, reranker.ranker) == ("subtree", "mined", "perceptron")
    assert [reranker.mine_with_base, reranker.purity, reranker.light_share] == [False, False, 0]
    assert reranker.copies is None
    assert reranker.significance_level is None
    assert {0.0, 1.0, 5.0} < set(reranker.betas)
    assert reranker.filter_memory == 2**32 * 2 // 8  # 2^32 counters of 2 bits


def test_the_settings_reach_the_miner():
    features = made_features(**PAPER_SETTINGS)
    assert isinstance(features, SubtreeFeatures)
    assert features.miner == GradientMiner(degree=3, threshold=3.0, **PAPER_MINING)
    found = (features.copies, features.filter_memory, features.memory_limit)
    assert found == (None, 1 << 30, 32 << 30)


@pytest.mark.slow
def test_the_settings_reach_the_weights(fit):
    options = {name: value for name, value in PAPER_SETTINGS.items() if name != "significance_level"}
    reranker, rounds = fit(**options | {"max_iter": 2, "pretrain_order": 1})
    scorer = reranker.scorer_
    assert (scorer.ranker, scorer.epochs) == ("perceptron", 10)
    assert [scorer.mine_with_base, scorer.purity, scorer.light_share] == [False, False, 0]
    assert reranker.beta_ in PAPER_SETTINGS["betas"]
    assert reranker.is_trusted_
    assert [each.degree for each in rounds] == [1, 1, 2, 2]
    assert reranker.n_features_


@pytest.mark.parametrize(
    ("options", "path", "refine"),
    [
        ({}, False, 0),
        ({"max_iter": 5}, True, 10),
        ({"max_iter": 5, "path": False}, False, 10),
        ({"max_iter": 5, "refine": 0}, True, 0),
        ({"path": True}, True, 0),
        ({"refine": 3}, False, 3),
    ],
    ids=str,
)
def test_path_and_refinement_are_chosen_apart_from_the_rounds(options, path, refine):
    miner = made_features(**options).miner
    assert (miner.path, miner.refine) == (path, refine)


@pytest.mark.parametrize("space", ["subtree", "polynomial"])
def test_what_else_is_chosen_reaches_the_miner(space):
    options = {"step": "decreasing", "tol": 0.25, "pretrain_order": 1, "filter_memory": 1 << 20}
    features = made_features(space=space, **options)
    assert features.filter_memory == 1 << 20
    assert (features.miner.step, features.miner.tol, features.miner.pretrain_order) == ("decreasing", 0.25, 1)


def test_without_base_scores_every_list_of_several_trees_is_mined(fit, default, train):
    bare, rounds = fit(mine_with_base=False)
    assert default[1][0].n_violators < rounds[0].n_violators == len(train)
    assert names(bare) != names(default[0])


def test_features_of_low_order_are_mined_first(fit, default):
    assert [each.degree for each in default[1]] == [2]
    assert [each.degree for each in fit(pretrain_order=1)[1]] == [1, 2]
    assert [each.degree for each in fit(pretrain_order=2)[1]] == [2]


def test_all_copies_are_more_than_some(fit, default):
    assert fit(copies=None)[1][0].n_entered > default[1][0].n_entered > fit(copies=1)[1][0].n_entered


def test_without_purity_more_features_have_a_weight(fit, default):
    everything, rounds = fit(purity=False, light_share=0.0)
    assert default[0].n_features_ < everything.n_features_ == rounds[-1].n_selected


def test_without_a_share_to_drop_more_features_have_a_weight(fit, default):
    assert names(default[0]) < names(fit(light_share=0.0)[0])


def test_beta_is_one_of_those_to_choose_from(fit):
    assert fit(betas=(0.25,))[0].beta_ == 0.25
    assert fit(betas=(3.0, 1.0))[0].beta_ in (1.0, 3.0)


def test_betas_are_saved(fit, tmp_path):
    reranker, _ = fit(betas=(3.0, 1.0))
    reranker.save(tmp_path / "model.tw")
    again = tw.load(tmp_path / "model.tw")
    assert again.betas == (3.0, 1.0)
    again.save(tmp_path / "again.tw")
    assert (tmp_path / "again.tw").read_bytes() == (tmp_path / "model.tw").read_bytes()


@pytest.mark.parametrize("options", [{"filter_memory": 1 << 12}, {"memory_limit": 1 << 28}], ids=str)
def test_memory_does_not_change_the_model(fit, default, options, tmp_path):
    default[0].save(tmp_path / "plain.tw")
    fit(**options)[0].save(tmp_path / "model.tw")
    assert (tmp_path / "model.tw").read_bytes() == (tmp_path / "plain.tw").read_bytes()


@pytest.mark.parametrize(
    "options",
    [{"decay": 1.0}, {"normalize": False}, {"kernel_epochs": 1}, {"decay": 0.5, "normalize": False}],
    ids=str,
)
def test_options_of_kernel_perceptrons_change_their_scores(fit, dev, options):
    settings = {"learner": "kernel", "chunks": 2, "degree": None, "threshold": 3.0}
    plain, other = (fit(**settings, **each)[0] for each in ({}, options))
    assert (plain.scorer_.epochs, plain.scorer_.decay, plain.scorer_.normalize) == (5, 0.001, True)
    for name, value in options.items():
        assert getattr(other.scorer_, name.removeprefix("kernel_")) == value
    scores = [[one.score for each in some.kbest(dev, 5) for one in each] for some in (plain, other)]
    assert not np.allclose(*scores)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"pretrain_order": 4},
            "pretrain_order=4 and degree=3; expected pretrain_order of at most degree",
        ),
        ({"betas": (1.0, -2.0)}, "betas is -2.0; expected a number of at least 0"),
        ({"step": 0}, "step is 0; expected a number from 1e-12 to 1e+12 or one of auto, decreasing"),
        ({"filter_memory": 8}, "filter_memory is 8; expected an integer of at least 64"),
        (
            {"memory_limit": 1 << 20, "space": "polynomial"},
            "memory_limit has no effect with space='polynomial'; "
            "expected learner='mined' and space='subtree'",
        ),
    ],
    ids=str,
)
def test_values_that_cannot_be_are_refused(train, options, message):
    with pytest.raises(InputError) as error:
        DependencyReranker(**options).fit(train)
    assert str(error.value) == message
