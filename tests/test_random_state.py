import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import treewright as tw
from treewright._typing import RandomState
from treewright._validate import constructor_hints, draw_seed
from treewright.commands.signatures import Options
from treewright.errors import InputError, show

BANK = tw.make_treebank(24, random_state=0)
ROWS = np.random.default_rng(0).integers(0, 2, (120, 6))
LABELS = np.where(ROWS[:, 0] & ROWS[:, 1], "both", np.where(np.arange(120) % 7 == 0, "odd", "rest"))
TEXTS, KINDS = ["a walk", "the walks", "to walk", "an art"] * 10, [0, 1, 1, 0] * 10
PUBLIC = [getattr(tw, name) for name in tw.__all__]
TAKERS = [each for each in PUBLIC if callable(each) and "random_state" in inspect.signature(each).parameters]
FITS = {
    "ConjunctionMiner": lambda seed: tw.ConjunctionMiner(threshold=1, random_state=seed).fit(ROWS, LABELS),
    "ConjunctionClassifier": lambda seed: tw.ConjunctionClassifier(random_state=seed).fit(ROWS, LABELS),
    "ConjunctionRegressor": lambda seed: tw.ConjunctionRegressor(random_state=seed).fit(ROWS, ROWS.sum(1)),
    "L1BoostedTrees": lambda seed: tw.L1BoostedTrees(max_trees=5, sample_size=60, random_state=seed).fit(
        ROWS, LABELS
    ),
    "StringFeatureMiner": lambda seed: tw.StringFeatureMiner(random_state=seed).fit(TEXTS, KINDS),
    "StringFeatureClassifier": lambda seed: tw.StringFeatureClassifier(random_state=seed).fit(TEXTS, KINDS),
    "AveragedPerceptron": lambda seed: tw.AveragedPerceptron(random_state=seed).fit(ROWS, LABELS),
    "TreeKernelClassifier": lambda seed: tw.TreeKernelClassifier(probability=True, random_state=seed).fit(
        BANK.constituents, ["a", "b"] * 12
    ),
    "TreeKernelNystroem": lambda seed: tw.TreeKernelNystroem(n_components=5, random_state=seed).fit(
        BANK.constituents
    ),
    "DependencyParser": lambda seed: tw.DependencyParser(order=1, epochs=1, runs=1, random_state=seed).fit(
        BANK.dependencies
    ),
    "ConstituentParser": lambda seed: tw.ConstituentParser(
        tags="gold", lowest_penalty=10, random_state=seed
    ).fit(BANK.constituents),
    "Tagger": lambda seed: tw.Tagger(epochs=1, runs=1, random_state=seed).fit(BANK.dependencies),
    "Tokenizer": lambda seed: tw.Tokenizer(epochs=1, random_state=seed).fit(BANK.dependencies),
    "RoleLabeler": lambda seed: tw.RoleLabeler(random_state=seed).fit(BANK.constituents, BANK.propositions),
}


def same(one, two):
    """Return whether two models have learnt the same; AveragedPerceptron cannot be saved."""
    if not hasattr(one, "save"):
        return np.array_equal(one.coef_, two.coef_)
    mine, yours = one.get_state(), two.get_state()
    return pickle.dumps((mine.arrays, mine.parts)) == pickle.dumps((yours.arrays, yours.parts))


@pytest.mark.parametrize("taker", TAKERS, ids=lambda each: each.__name__)
def test_every_public_random_state_may_be_a_generator(taker):
    assert constructor_hints(taker)["random_state"] == RandomState


@pytest.mark.parametrize("value", ["x", -1, 1.5, True, [1], np.random, float("nan")])
def test_other_random_states_are_refused(value):
    for use in (draw_seed, tw.make_treebank, FITS["AveragedPerceptron"], FITS["ConjunctionClassifier"]):
        with pytest.raises(InputError) as error:
            use(value) if use is not tw.make_treebank else use(1, value)
        expected = "an integer of at least 0 or a numpy Generator or a numpy RandomState"
        assert str(error.value) == f"random_state is {show(value)}; expected {expected}"


def test_none_stands_for_a_new_seed_each_time():
    assert len({draw_seed(None) for _ in range(9)}) > 1


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_gives_a_seed_and_advances(make):
    rng = make(0)
    seeds = [draw_seed(rng), draw_seed(rng)]
    assert seeds[0] != seeds[1]
    assert seeds[0] == draw_seed(make(0))
    assert [str(tree) for tree in tw.make_treebank(5, make(0)).constituents] == [
        str(tree) for tree in tw.make_treebank(5, seeds[0]).constituents
    ]


@pytest.mark.parametrize("name", FITS)
def test_models_learn_from_generators_as_from_their_seeds(name):
    rng = np.random.RandomState(3)
    model = FITS[name](rng)
    assert model.random_state is rng
    assert same(model, FITS[name](draw_seed(np.random.RandomState(3))))
    assert FITS[name](None).random_state is None


def test_fit_restores_the_generator_after_an_error():
    rng = np.random.default_rng(0)
    model = tw.ConjunctionClassifier(random_state=rng)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(ROWS, LABELS[:3])
    assert model.random_state is rng


@pytest.mark.parametrize("rng", [None, np.random.RandomState(0), np.random.default_rng(0)])
def test_a_saved_generator_is_none(tmp_path, rng):
    model = tw.DependencyParser(order=1, epochs=1, runs=1, random_state=rng).fit(BANK.dependencies)
    model.save(tmp_path / "m.tw")
    loaded = tw.load(tmp_path / "m.tw")
    assert loaded.random_state is None
    assert loaded.predict(BANK.dependencies) == model.predict(BANK.dependencies)


def test_clones_and_pickles_have_generators_of_their_own():
    model = tw.ConjunctionClassifier(random_state=np.random.RandomState(0))
    copies = clone(model), pickle.loads(pickle.dumps(model))
    for each in copies:
        assert each.random_state is not model.random_state
        assert same(
            each.fit(ROWS, LABELS), FITS["ConjunctionClassifier"](draw_seed(np.random.RandomState(0)))
        )


@pytest.mark.parametrize(
    "resume",
    [
        lambda path: tw.ConjunctionClassifier(random_state=None).fit(ROWS, LABELS, checkpoint=path),
        lambda path: tw.DependencyParser(random_state=None).fit(BANK.dependencies, checkpoint=path),
        lambda path: tw.jackknife_lists(
            tw.DependencyParser(random_state=None), BANK.dependencies, folds=2, cache=path
        ),
    ],
)
def test_checkpoints_need_an_integer(tmp_path, resume):
    with pytest.raises(InputError) as error:
        resume(tmp_path / "steps")
    expected = "expected an integer random_state, so that training can resume"
    assert str(error.value) == f"checkpoint is given and random_state is None; {expected}"
    assert not list(tmp_path.iterdir())


def test_candidate_lists_of_a_parser_without_a_seed():
    parser = tw.DependencyParser(order=1, epochs=1, runs=1, random_state=np.random.default_rng(1))
    lists = tw.jackknife_lists(parser, BANK.dependencies, k=3, folds=2)
    assert len(lists) == len(BANK.dependencies)


def test_seeds_on_the_command_line_are_integers():
    [option] = Options(tw.Tagger, only=("random_state",)).declare()
    assert option.read("3") == 3
    with pytest.raises(InputError, match=r"--seed is 'none'; expected an integer of at least 0$"):
        option.read("none")
