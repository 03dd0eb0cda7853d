"""The losses of the span network and its derivatives; the network with and without PyTorch."""

import numpy as np
import pytest
from oracle.span import charts as twin

import treewright as tw
from treewright.parsing.neural.inputs import WordInputs
from treewright.parsing.span.chart import with_empty
from treewright.parsing.span.inference import SpanRunner
from treewright.parsing.span.labels import SpanLabels

torch = pytest.importorskip("torch")

from treewright.parsing.neural.network import TimeSteps, to_arrays  # noqa: E402
from treewright.parsing.span.network import SpanNetwork, SpanNetworkSettings  # noqa: E402
from treewright.parsing.span.training import crf_loss, make_span_batch, margin_loss  # noqa: E402

TEXTS = [
    "(TOP (S (NP (DT the) (NN cat)) (VP (VBD sat))))",
    "(TOP (NN cat))",
    "(TOP (NP (NN cat)) (. .))",
    "(TOP (S (NP (NN cat)) (VP (VBD sat) (ADVP (RB here)))))",
]


@pytest.fixture(scope="module")
def batch():
    """Make a batch of a few trees, with the rows and labels of their constituents."""
    trees = [tw.ConstTree.parse(text) for text in TEXTS]
    labels = SpanLabels.from_trees(trees, "TOP")
    sentences = [tw.DepTree(tree.words(), xpos=tree.tags()) for tree in trees]
    inputs = WordInputs.from_trees(sentences, min_count=1)
    made = make_span_batch(inputs.pad(sentences))
    gold = [labels.encode(tree) for tree in trees]
    rows = np.concatenate(
        [at + each.rows(len(one)) for at, each, one in zip(made.first, gold, sentences, strict=False)]
    )
    numbers = np.concatenate([each.labels for each in gold]).astype(np.int64) - 1
    return made, torch.from_numpy(rows.astype(np.int64)), torch.from_numpy(numbers), len(labels) - 1


def draw_scores(batch, seed=0):
    made, _, _, n_labels = batch
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(len(made.starts), n_labels))
    return torch.tensor(scores, dtype=torch.float64, requires_grad=True)


def trees_of(batch, scores):
    """Yield the gold parts of each sentence and all (score, parts); a part is a row and a label from 0."""
    made, rows, labels, n_labels = batch
    for at, n in enumerate(made.lengths.tolist()):
        begin, end = made.first[at], made.first[at + 1]
        table = with_empty(scores[begin:end], n)
        listed = [
            (score, {divmod(part, n_labels + 1) for part in parts if part % (n_labels + 1)})
            for score, parts in twin.all_trees(table, n, is_rooted=True)
        ]
        gold = {
            (row - begin, label + 1)
            for row, label in zip(rows.tolist(), labels.tolist(), strict=True)
            if begin <= row < end
        }
        yield gold, listed


def test_the_crf_loss_is_minus_the_logarithm_of_the_probability_of_gold_trees(batch):
    scores = draw_scores(batch)
    expected = 0.0
    for gold, trees in trees_of(batch, scores.detach().numpy()):
        own = next(score for score, parts in trees if parts == gold)
        expected += np.logaddexp.reduce([score for score, _ in trees]) - own
    assert crf_loss(True)(scores, *batch[:3]).item() == pytest.approx(expected)


def test_the_margin_loss_is_that_of_the_tree_most_ahead_with_its_errors(batch):
    for seed in range(5):
        scores = draw_scores(batch, seed)
        expected = 0.0
        for gold, trees in trees_of(batch, scores.detach().numpy()):
            own = next(score for score, parts in trees if parts == gold)
            expected += max(score + n_errors(gold, parts) - own for score, parts in trees)
        assert margin_loss(True)(scores, *batch[:3]).item() == pytest.approx(expected)


def n_errors(gold, parts):
    """Count the spans that have another label in the two trees, or are in one of them alone."""
    one, other = dict(gold), dict(parts)
    return sum(one.get(row) != other.get(row) for row in one.keys() | other.keys())


@pytest.mark.parametrize("loss", [crf_loss, margin_loss])
def test_derivatives_are_those_of_the_losses(batch, loss):
    scores = draw_scores(batch)
    loss(True)(scores, *batch[:3]).backward()
    values = scores.detach().clone()
    for row, label in [(0, 0), (2, 1), (5, 0), (len(values) - 1, 2)]:
        sides = []
        for step in (1e-5, -1e-5):
            moved = values.clone()
            moved[row, label] += step
            sides.append(float(loss(True)(moved, *batch[:3])))
        assert float(scores.grad[row, label]) == pytest.approx((sides[0] - sides[1]) / 2e-5, abs=1e-6)


def test_numpy_finds_the_scores_of_pytorch():
    torch.manual_seed(0)
    trees = tw.make_treebank(20, random_state=0).constituents
    sentences = [tw.DepTree(tree.words(), xpos=tree.tags()) for tree in trees]
    inputs = WordInputs.from_trees(sentences, min_count=2)
    network = SpanNetwork(inputs.sizes(), 7, SpanNetworkSettings(12, 2, 10, 0.3)).eval()
    torch.nn.init.normal_(network.label.weight)
    with torch.no_grad():
        made = make_span_batch(inputs.pad(sentences))
        expected = network.score_spans(network.encode(made.words), made.starts, made.ends).numpy()
    runner = SpanRunner(to_arrays(network), inputs)
    found = runner.score(sentences)
    assert [len(each) for each in found] == np.diff(made.first).tolist()
    np.testing.assert_allclose(np.concatenate(found), expected, atol=1e-4)
    alone = [runner.score([each])[0] for each in sentences]
    np.testing.assert_allclose(np.concatenate(alone), expected, atol=1e-4)


def test_time_steps_are_those_of_torch():
    lengths = np.array([2, 5, 1, 5, 3], dtype=np.int32)
    rows = torch.arange(25).reshape(5, 5, 1).float()
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        rows, torch.from_numpy(lengths.astype(np.int64)), batch_first=True, enforce_sorted=False
    )
    steps = TimeSteps.of(lengths, 5, torch.device("cpu"))
    assert steps.sizes.tolist() == packed.batch_sizes.tolist()
    assert steps.rows.tolist() == packed.data.flatten().long().tolist()
    assert steps.sentences.tolist() == (steps.rows // 5).tolist()
