"""Training of the network: its derivatives, and that nothing but the seed decides."""

import numpy as np
import pytest

import treewright as tw
from treewright.errors import InputError
from treewright.parsing.leftcorner.decisions import DecisionVocabulary, encode
from treewright.parsing.leftcorner.derivations import derive
from treewright.parsing.leftcorner.network import CELLS, Network, Sizes, pack
from treewright.parsing.leftcorner.training import (
    NetworkSettings,
    Trainer,
    draw_weights,
)
from treewright.parsing.neural.batches import make_batches
from treewright.parsing.neural.devices import find_device

torch = pytest.importorskip("torch")

DERIVATIONS = [derive(tree) for tree in tw.make_treebank(n_sentences=30, random_state=1).constituents]
VOCABULARY = DecisionVocabulary.from_derivations(DERIVATIONS, min_count=2, min_unknown=1)
SIZES = Sizes.of(VOCABULARY)
ENCODED = [encode(derivation, VOCABULARY) for derivation in DERIVATIONS]
SETTINGS = NetworkSettings(
    cell="gated",
    units=8,
    embedding=6,
    optimizer="adam",
    learning_rate=0.01,
    weight_decay=0.01,
    dropout=0.2,
    batch_size=100,
    epochs=4,
    random_state=0,
    device="cpu",
    average=True,
)


def make_trainer(**options):
    return Trainer(SIZES, SETTINGS._replace(**options))


def assert_same(left, right):
    for name in left:
        np.testing.assert_array_equal(left[name], right[name])


@pytest.mark.slow_cases
@pytest.mark.parametrize("cell", CELLS)
def test_the_loss_is_that_of_the_trained_network(cell):
    trainer = make_trainer(cell=cell)
    loss, _ = trainer.differentiate(pack(ENCODED))
    scores = Network(trainer.weights(), SIZES, cell=cell).score(ENCODED)
    assert loss == pytest.approx(-sum(scores), rel=1e-5)


@pytest.mark.slow_cases
@pytest.mark.parametrize("cell", CELLS)
def test_gradients_of_several_derivations_are_those_of_each(cell):
    trainer = make_trainer(cell=cell)
    logs, found = trainer.gradients(ENCODED[:5])
    assert found.shape == (5, sum(each.size for each in trainer.weights().values()))
    for each, log, row in zip(ENCODED, logs, found, strict=False):
        loss, slopes = trainer.differentiate(pack([each]))
        assert log == pytest.approx(-loss, rel=1e-5)
        expected = np.concatenate([-slopes[name].numpy().ravel() for name in sorted(slopes)])
        np.testing.assert_allclose(row, expected, atol=1e-4)


@pytest.mark.slow_cases
@pytest.mark.parametrize("random_state", [None, 5])
@pytest.mark.parametrize("cell", CELLS)
def test_derivatives_are_those_of_small_differences(cell, random_state):
    trainer = make_trainer(cell=cell)
    weights = trainer.weights()
    packed = pack(ENCODED[:6])
    _, slopes = trainer.differentiate(packed, random_state)
    generator = np.random.default_rng(0)
    for name, slope in slopes.items():
        # Along the derivative, and so far that single precision does not matter.
        way = slope.numpy() / np.linalg.norm(slope) + 0.01 * generator.standard_normal(slope.shape)
        losses = []
        for sign in (-1, 1):
            moved = (weights[name] + sign * 0.01 * way).astype(np.float32)
            other = make_trainer(cell=cell)
            other.set_weights(weights | {name: moved})
            losses.append(other.differentiate(packed, random_state)[0])
        expected = float((slope.numpy() * way).sum())
        assert (losses[1] - losses[0]) / 0.02 == pytest.approx(expected, rel=0.02), name


def test_without_an_average_the_weights_are_the_last_ones():
    trainer, averaging = make_trainer(average=False), make_trainer()
    for each in (trainer, averaging):
        each.run_epoch(ENCODED)
    assert_same(trainer.get_state().arrays, averaging.get_state().arrays)
    last = trainer.get_state().arrays
    for name, weight in trainer.weights().items():
        np.testing.assert_allclose(weight, last[name], atol=1e-7)
    assert any((averaging.weights()[name] != weight).any() for name, weight in trainer.weights().items())


def test_the_weights_are_a_mean_of_the_latest_ones():
    trainer = make_trainer(batch_size=20)
    taken = []
    step = trainer._optimizer.step

    def watch():
        step()
        taken.append(trainer.get_state().arrays)

    trainer._optimizer.step = watch
    trainer.run_epoch(ENCODED)
    assert len(taken) > 20
    expected = taken[0]
    for number, weights in enumerate(taken, 1):
        share = min(1, 10 / number)
        expected = {name: (1 - share) * mean + share * weights[name] for name, mean in expected.items()}
    for name, mean in trainer.weights().items():
        np.testing.assert_allclose(mean, expected[name], atol=1e-5)


@pytest.mark.slow_cases
@pytest.mark.parametrize("optimizer", ["adam", "momentum"])
def test_the_loss_falls(optimizer):
    trainer = make_trainer(optimizer=optimizer, learning_rate=0.01 if optimizer == "adam" else 0.1)
    losses = [trainer.run_epoch(ENCODED) for _ in range(4)]
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.slow_cases
@pytest.mark.parametrize("optimizer", ["adam", "momentum"])
def test_training_goes_on_as_if_it_had_not_been_interrupted(optimizer):
    whole, first, second = (make_trainer(optimizer=optimizer) for _ in range(3))
    for _ in range(3):
        whole.run_epoch(ENCODED)
    first.run_epoch(ENCODED)
    second.set_state(first.get_state())
    for _ in range(2):
        second.run_epoch(ENCODED)
    assert_same(whole.weights(), second.weights())
    assert_same(whole.get_state().arrays, second.get_state().arrays)


def test_weights_do_not_depend_on_threads():
    one, two = Trainer(SIZES, SETTINGS, n_jobs=1), Trainer(SIZES, SETTINGS, n_jobs=2)
    n_threads = torch.get_num_threads()
    losses = one.run_epoch(ENCODED), two.run_epoch(ENCODED)
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    # The last bits of products depend on where arrays lie in memory, which differs from thread to thread.
    for name, weights in one.weights().items():
        np.testing.assert_allclose(weights, two.weights()[name], rtol=0, atol=1e-7)
    assert torch.get_num_threads() == n_threads


def test_another_seed_gives_other_weights():
    left, right = draw_weights(SIZES, SETTINGS), draw_weights(SIZES, SETTINGS._replace(random_state=1))
    assert_same(left, draw_weights(SIZES, SETTINGS))
    assert (left["links"] != right["links"]).any()


def test_batches_hold_each_derivation_once_and_are_not_too_large():
    batches = make_batches(np.array([len(each.kinds) for each in ENCODED]), 100, np.random.default_rng(0))
    assert sorted(at for batch in batches for at in batch) == list(range(len(ENCODED)))
    for batch in batches:
        assert len(batch) == 1 or sum(len(ENCODED[at].kinds) for at in batch) <= 100


def test_a_device_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match=r"^device is 'abacus'; expected a device that PyTorch can use"):
        find_device("abacus")
    assert find_device("auto") in ("cpu", "cuda")
