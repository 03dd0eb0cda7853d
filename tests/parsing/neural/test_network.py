"""The network in PyTorch: its shapes, losses and training."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from oracle.dependency.arborescence import marginals
from oracle.dependency.arborescence import trees as all_trees
from oracle.dependency.charts import all_trees as projective_trees
from oracle.dependency.parts import tree_parts, words_in

import treewright as tw
from treewright.checkpoint import Checkpoint
from treewright.data.vocab import Vocabulary
from treewright.parsing.neural.batches import make_batches
from treewright.parsing.neural.inference import NetworkRunner
from treewright.parsing.neural.inputs import WordInputs
from treewright.parsing.neural.probabilities import head_probabilities
from treewright.parsing.neural.sizes import BiaffineSettings, weight_shapes
from treewright.progress import messages_to

torch = pytest.importorskip("torch")

from treewright.parsing.neural import losses  # noqa: E402
from treewright.parsing.neural.losses import IGNORED, head_loss, tree_loss  # noqa: E402
from treewright.parsing.neural.network import ParserNetwork, to_arrays  # noqa: E402
from treewright.parsing.neural.training import (  # noqa: E402
    NetworkTrainer,
    TrainingSettings,
)

SMALL = BiaffineSettings(units=8, layers=2, arc_size=8, label_size=4, dropout=0.2)


class KilledError(Exception):
    """Stands for whatever ends a training."""


@pytest.fixture(scope="module")
def trees():
    return tw.make_treebank(60, random_state=0).dependencies


def make_trainer(trees, *, epochs=3, patience=None, checkpoint=None, loss="head", random_state=0):
    inputs = WordInputs.from_trees(trees, min_count=2)
    labels = Vocabulary.from_counts(Counter(relation for tree in trees for relation in tree.deprels))
    training = TrainingSettings(epochs, 0.01, loss, True, "cpu", "float32", patience, random_state)
    return NetworkTrainer(inputs, labels, SMALL, training, checkpoint)


@pytest.mark.parametrize("part_size", [0, 5])
@pytest.mark.parametrize("left_out", [(), ("lemma",), ("xpos", "feats")])
def test_weights_have_the_shapes_that_are_checked_on_loading(trees, left_out, part_size):
    sizes = WordInputs.from_trees(trees, min_count=1).sizes() | dict.fromkeys(left_out, 0)
    settings = replace(SMALL, part_size=part_size)
    network = ParserNetwork(sizes, 7, settings)
    found = {name: tuple(each.shape) for name, each in network.state_dict().items()}
    assert found == weight_shapes(sizes, 7, settings)


def test_batches_have_each_sentence_once_and_not_too_many_words():
    sizes = np.random.default_rng(0).integers(1, 40, 200)
    batches = make_batches(sizes, 100, np.random.default_rng(1))
    assert sorted(number for batch in batches for number in batch) == list(range(200))
    assert all(sizes[batch].sum() <= 100 or len(batch) == 1 for batch in batches)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("kind", ["projective", "matrix-tree"])
def test_the_loss_of_trees_is_that_of_the_definition(kind, single_root):
    rng = np.random.default_rng(0)
    n = 4
    scores = torch.tensor(rng.normal(0, 1, (1, n + 1, n + 1)), requires_grad=True)
    heads = [2, 0, 2, 3]
    gold = torch.tensor([[IGNORED, *heads]])
    loss = tree_loss(kind, single_root=single_root)(scores, gold, torch.tensor([n + 1]))

    def total(tree):
        return sum(scores[0, word, head] for word, head in enumerate(tree, start=1))

    listed = {"projective": projective_trees, "matrix-tree": all_trees}[kind](n, single_root)
    expected = torch.logsumexp(torch.stack([total(tree) for tree in listed]), 0) - total(heads)
    assert loss.item() == pytest.approx(expected.item())
    (found,) = torch.autograd.grad(loss, scores, retain_graph=True)
    (wanted,) = torch.autograd.grad(expected, scores)
    assert found.numpy() == pytest.approx(wanted.numpy(), abs=1e-9)


def test_the_loss_of_heads_does_not_look_beyond_the_words():
    scores = torch.zeros(1, 3, 3)
    heads = torch.tensor([[IGNORED, 0, IGNORED]])
    assert head_loss(scores, heads, torch.tensor([2])).item() == pytest.approx(np.log(3))


def make_second_order(trees):
    """Return inputs, a network whose parts of second order have random scores, and its batch."""
    inputs = WordInputs.from_trees(trees, min_count=1)
    torch.manual_seed(0)
    network = ParserNetwork(inputs.sizes(), 7, replace(SMALL, part_size=5)).double().eval()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return inputs, network, inputs.pad(trees)


def test_the_loss_of_second_order_is_that_of_the_definition(monkeypatch):
    monkeypatch.setattr(losses, "PRUNING_THRESHOLD", 0.0)
    tree = tw.DepTree(["a", "b", "c", "d"], [2, 0, 2, 3], upos=["X", "Y", "X", "Z"])
    _, network, batch = make_second_order([tree])
    states = network.encode(batch)
    arcs, vectors = network.score_arcs(states), network.read_parts(states)
    heads, lengths = torch.tensor([[IGNORED, *tree.heads.tolist()]]), torch.tensor([5])
    loss = losses.second_order_loss(network, arcs, vectors, heads, lengths, single_root=True)

    def total(listed):
        found = sum(arcs[0, word, head] for word, head in enumerate(listed, start=1))
        for kind in ("pair", "grandchild"):
            words = words_in(kind, tree_parts(tuple(listed)))
            if words:
                found = found + network.score_parts(kind, vectors, 0, torch.tensor(words)).sum()
        return found

    totals = torch.stack([total(listed) for listed in projective_trees(4, True)])
    expected = torch.logsumexp(totals, 0) - total(tree.heads.tolist())
    assert loss.item() == pytest.approx(expected.item())
    wanted = torch.autograd.grad(expected, network.parameters(), retain_graph=True, allow_unused=True)
    found = torch.autograd.grad(loss, network.parameters(), allow_unused=True)
    for one, other in zip(found, wanted, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one.numpy(), other.numpy(), atol=1e-8)


def test_parts_of_second_order_are_scored_alike_without_torch(trees):
    inputs, network, batch = make_second_order(trees[:5])
    network = network.float()
    runner = NetworkRunner(to_arrays(network), inputs)
    with torch.no_grad():
        vectors = network.read_parts(network.encode(batch))
    rng = np.random.default_rng(0)
    for number, (tree, read) in enumerate(zip(trees[:5], runner.read(trees[:5]), strict=True)):
        words = rng.integers(-1, len(tree) + 1, (50, 3)).astype(np.int32)
        for kind in ("pair", "grandchild"):
            expected = network.score_parts(kind, vectors, number, torch.from_numpy(words).long())
            found = runner.part_scores(kind, read, words)
            np.testing.assert_allclose(found, expected.detach().numpy(), atol=1e-4)


def test_training_lowers_the_loss_and_keeps_the_best_epoch(trees):
    told = []
    with messages_to(told.append):
        trainer = make_trainer(trees[:40], epochs=12)
        before = trainer.evaluate(trees[40:])
        weights = trainer.train(trees[:40], trees[40:])
    losses = [float(text.split("loss ")[1].split(",")[0]) for text in told]
    assert losses[-1] < losses[0] / 1.2
    scores = [float(text.split("LAS ")[1].split()[0]) for text in told]
    trainer._network.load_state_dict({name: torch.from_numpy(each) for name, each in weights.items()})
    assert trainer.evaluate(trees[40:])[1] == pytest.approx(max(scores), abs=0.01)
    assert max(scores) > before[1]


def test_patience_ends_training_early(trees):
    told = []
    with messages_to(told.append):
        trainer = make_trainer(trees[:30], epochs=30, patience=1)
        trainer._optimizer = torch.optim.SGD(trainer._network.parameters(), lr=0.0)
        trainer._set_rate = lambda epoch: None
        trainer.train(trees[:30], trees[40:])
    assert len(told) == 2


def test_training_goes_on_from_a_checkpoint_to_the_same_weights(trees, tmp_path):
    data = trees[:30], trees[40:]
    expected = make_trainer(trees[:30]).train(*data)

    def stop(text):
        if "epoch 2/3" in text:
            raise KilledError

    kept = Checkpoint(tmp_path / "kept", "same")
    with pytest.raises(KilledError), messages_to(stop):
        make_trainer(trees[:30], checkpoint=kept).train(*data)
    found = make_trainer(trees[:30], checkpoint=kept).train(*data)
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


def test_another_seed_gives_other_weights(trees):
    found = [make_trainer(trees[:20], epochs=1, random_state=seed).train(trees[:20], None) for seed in (0, 1)]
    assert not np.array_equal(found[0]["arc_matrix"], found[1]["arc_matrix"])


@pytest.mark.parametrize("loss", ["projective", "matrix-tree"])
def test_networks_of_whole_trees_are_scored_by_the_probabilities_of_arcs_in_trees(loss):
    trees = tw.make_treebank(60, random_state=3).dependencies
    trainer = make_trainer(trees, epochs=6, loss=loss)
    trainer.train(trees, None)
    uas, _ = trainer.evaluate(trees)
    network = trainer._network
    n_right = 0
    with torch.no_grad():
        for tree in trees:
            batch = trainer._inputs.pad([tree])
            scores = network.score_arcs(network.encode(batch))[0].double().numpy().T
            probable = head_probabilities(np.ascontiguousarray(scores), loss, single_root=True)
            n_right += (probable[:, 1:].argmax(axis=0) == tree.heads).sum()
    assert uas == pytest.approx(100 * n_right / sum(map(len, trees)))


def test_probabilities_of_heads_are_of_each_word_or_of_all_trees():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(4, 4))
    expected = np.array(marginals(scores.tolist())[0])
    found = head_probabilities(scores, "matrix-tree", single_root=True)
    np.testing.assert_allclose(found[:, 1:], expected[:, 1:], atol=1e-9)
    alone = head_probabilities(scores, "head", single_root=True)
    exponents = np.exp(scores)
    np.fill_diagonal(exponents, 0)
    np.testing.assert_allclose(
        np.where(np.eye(4), 0, alone)[:, 1:], (exponents / exponents.sum(axis=0))[:, 1:], atol=1e-12
    )
