"""Networks run without PyTorch: equal to PyTorch, and each sentence is read as if it were alone."""

import threading
import tracemalloc

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from treewright.data.deptree import DepTree
from treewright.parsing.neural import inference
from treewright.parsing.neural.inference import NetworkRunner
from treewright.parsing.neural.inputs import MAX_CHARACTERS, WordInputs
from treewright.parsing.neural.sizes import BiaffineSettings

torch = pytest.importorskip("torch")
network_module = pytest.importorskip("treewright.parsing.neural.network")

TOLERANCE = 1e-4
TAGS = ("NOUN", "VERB", "DET", "PUNCT")
FEATS = ("_", "Number=Sing", "Number=Plur|Case=Nom", "Case=Acc|Gender=Fem|Number=Sing")


def make_tree(rng, n_words, *, letters="abcdefgh", columns=("lemmas", "upos", "xpos", "feats")):
    def words():
        return ["".join(rng.choice(list(letters), rng.integers(1, 9))) for _ in range(n_words)]

    values = {
        "lemmas": words(),
        "upos": rng.choice(TAGS, n_words).tolist(),
        "xpos": rng.choice(["X", "Y", "Z"], n_words).tolist(),
        "feats": rng.choice(FEATS, n_words).tolist(),
    }
    return DepTree(words(), [-1] * n_words, **{name: values[name] for name in columns})


def make_network(inputs, *, seed=0, scale=1.0, units=12, layers=2, arc_size=14, label_size=6):
    """Return a network with random weights; those of its LSTMs are `scale` times as large as is usual."""
    torch.manual_seed(seed)
    settings = BiaffineSettings(units, layers, arc_size, label_size, 0.33)
    network = network_module.ParserNetwork(inputs.sizes(), 7, settings).eval()
    for parameter in (network.arc_matrix, network.arc_bias, network.label_tensor):
        torch.nn.init.normal_(parameter, std=0.3)
    for parameter in network.lstms.parameters():
        parameter.data *= scale
    return network


def has_blas(architecture):
    return any(library.get("architecture") == architecture for library in threadpool_info())


def make_runner(inputs, **settings):
    return NetworkRunner(network_module.to_arrays(make_network(inputs, **settings)), inputs)


def run_torch(network, inputs, trees, heads):
    """Return the scores of arcs and relations of each sentence."""
    batch = inputs.pad(trees)
    padded = np.zeros(batch.forms.shape, dtype=np.int64)
    for row, mine in zip(padded, heads, strict=True):
        row[1 : len(mine) + 1] = mine
    with torch.no_grad():
        states = network.encode(batch)
        arcs = network.score_arcs(states).numpy()
        labels = network.score_labels(states, torch.from_numpy(padded)).numpy()
    sizes = [len(tree) + 1 for tree in trees]
    return [(arcs[at, :n, :n].T, labels[at, 1:n]) for at, n in enumerate(sizes)]


def random_heads(rng, trees):
    return [rng.integers(0, len(tree) + 1, len(tree)).astype(np.int32) for tree in trees]


def assert_equal_to_torch(trees, known, **settings):
    rng = np.random.default_rng(1)
    inputs = WordInputs.from_trees(known, min_count=1)
    network = make_network(inputs, **settings)
    runner = NetworkRunner(network_module.to_arrays(network), inputs)
    heads = random_heads(rng, trees)
    found = runner.read(trees)
    labels = runner.label_scores(found, heads)
    expected = run_torch(network, inputs, trees, heads)
    for tree, sentence, relations, (arcs, scores) in zip(trees, found, labels, expected, strict=True):
        assert sentence.arcs.shape == (len(tree) + 1, len(tree) + 1)
        np.testing.assert_allclose(sentence.arcs, arcs, rtol=0, atol=TOLERANCE)
        np.testing.assert_allclose(relations, scores, rtol=0, atol=TOLERANCE)


@pytest.fixture
def trees():
    rng = np.random.default_rng(0)
    return [make_tree(rng, n_words) for n_words in (5, 1, 12, 3, 7, 7, 2, 1, 20)]


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_scores_equal_those_of_pytorch(trees, layers):
    assert_equal_to_torch(trees, trees, layers=layers)


@pytest.mark.parametrize("scale", [0.0, 4.0, 10.0])
def test_scores_equal_those_of_pytorch_when_gates_are_open_or_shut(trees, scale):
    assert_equal_to_torch(trees, trees, scale=scale)


def test_scores_of_a_large_network_equal_those_of_pytorch(trees):
    assert_equal_to_torch(trees, trees, units=256, layers=3, arc_size=400, label_size=128)


def test_scores_after_training_equal_those_of_pytorch(trees):
    """Weights that have taken steps have no special form that random ones may have."""
    inputs = WordInputs.from_trees(trees, min_count=1)
    network = make_network(inputs)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
    for _ in range(10):
        optimizer.zero_grad()
        scores = network.score_arcs(network.encode(inputs.pad(trees)))
        torch.nn.functional.cross_entropy(scores[:, 1], torch.zeros(len(trees), dtype=torch.int64)).backward()
        optimizer.step()
    found = NetworkRunner(network_module.to_arrays(network), inputs).read(trees)
    expected = run_torch(network, inputs, trees, [np.zeros(len(tree), dtype=np.int32) for tree in trees])
    assert max(np.abs(arcs).max() for arcs, _ in expected) > 1
    for sentence, (arcs, _) in zip(found, expected, strict=True):
        np.testing.assert_allclose(sentence.arcs, arcs, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("columns", [(), ("upos",), ("lemmas", "feats"), ("xpos", "upos")])
def test_columns_may_be_missing(columns):
    rng = np.random.default_rng(2)
    trees = [make_tree(rng, n_words, columns=columns) for n_words in (4, 9)]
    assert_equal_to_torch(trees, trees)


def test_columns_may_be_missing_that_were_there_in_training(trees):
    rng = np.random.default_rng(2)
    assert_equal_to_torch([make_tree(rng, n_words, columns=()) for n_words in (4, 9)], trees)


def test_unknown_words_characters_and_tags_are_read(trees):
    rng = np.random.default_rng(3)
    strange = make_tree(rng, 6, letters="xyzß語")
    tagged = DepTree(["語", "a" * 100], upos=["NEW", "NOUN"], feats=["New=Yes|Case=Nom", "_"])
    assert_equal_to_torch([strange, tagged, *trees[:2]], trees)


def test_a_long_form_is_read_by_its_ends(trees):
    inputs = WordInputs.from_trees(trees, min_count=1)
    half = "b" * (MAX_CHARACTERS // 2)
    one, other = make_runner(inputs).read([DepTree([half + middle + half]) for middle in ("a" * 50, "h")])
    np.testing.assert_array_equal(one.arcs, other.arcs)


def test_sentences_without_words_have_a_root(trees):
    inputs = WordInputs.from_trees(trees, min_count=1)
    runner = make_runner(inputs)
    empty = DepTree([])
    alone, _, among = (runner.read([empty])[0], *runner.read([trees[0], empty]))
    assert alone.arcs.shape == (1, 1)
    np.testing.assert_allclose(alone.arcs, among.arcs, rtol=0, atol=TOLERANCE)
    (scores,) = runner.label_scores([alone], [np.zeros(0, dtype=np.int32)])
    assert scores.shape == (0, 7)


def test_no_sentences_have_no_scores(trees):
    runner = make_runner(WordInputs.from_trees(trees, min_count=1))
    assert runner.read([]) == []
    assert runner.label_scores([], []) == []


def test_scores_do_not_depend_on_sentences_that_are_read_together(trees, monkeypatch):
    inputs = WordInputs.from_trees(trees, min_count=1)
    runner = make_runner(inputs, units=32)
    heads = random_heads(np.random.default_rng(4), trees)
    together = runner.read(trees)
    relations = runner.label_scores(together, heads)
    monkeypatch.setattr(inference, "CELLS_AT_A_TIME", 10)
    monkeypatch.setattr(inference, "ROWS_AT_A_TIME", 3)
    for found in (runner.read(trees), [runner.read([tree])[0] for tree in trees]):
        for one, other in zip(found, together, strict=True):
            for mine, yours in zip(one[:3], other[:3], strict=True):
                np.testing.assert_allclose(mine, yours, rtol=0, atol=1e-6)
    for one, mine, expected in zip(together, heads, relations, strict=True):
        np.testing.assert_allclose(runner.label_scores([one], [mine])[0], expected, rtol=0, atol=1e-6)


@pytest.mark.skipif(
    not has_blas("SkylakeX"), reason="other code for products computes rows by where they stand"
)
def test_scores_are_the_same_bits_whatever_is_read_together():
    rng = np.random.default_rng(6)
    trees = [make_tree(rng, n_words) for n_words in (*range(14), *[6] * 20)]
    inputs = WordInputs.from_trees(trees, min_count=1)
    heads = random_heads(rng, trees)
    for sizes in ({"units": 256, "arc_size": 400, "label_size": 128}, {"units": 13, "arc_size": 7}):
        runner = make_runner(inputs, **sizes)
        together = runner.read(trees)
        relations = runner.label_scores(together, heads)
        for tree, expected, mine, scores in zip(trees, together, heads, relations, strict=True):
            (alone,) = runner.read([tree])
            for one, other in zip(alone[:3], expected[:3], strict=True):
                np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(runner.label_scores([alone], [mine])[0], scores)


def test_scores_are_the_same_bits_with_any_number_of_blas_threads(trees):
    inputs = WordInputs.from_trees(trees, min_count=1)
    runner = make_runner(inputs, units=256, arc_size=400)
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            found.append(runner.read(trees))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one.arcs, other.arcs)


def test_vectors_of_forms_do_not_depend_on_other_forms(trees, monkeypatch):
    """What is remembered must not depend on the order in which threads have read sentences."""
    inputs = WordInputs.from_trees(trees, min_count=1)
    forms = [*(word for tree in trees for word in tree.words), "語", "a" * 100]
    together = make_runner(inputs)._forms.read(forms)
    monkeypatch.setattr(inference, "MOST_FORMS", 5)
    runner = make_runner(inputs)
    for form, vector in zip(forms, together, strict=True):
        np.testing.assert_array_equal(runner._forms.read([form])[0], vector)
        assert len(runner._forms._known) <= 5


def test_the_longest_form_of_a_batch_is_padded_as_others(trees):
    inputs = WordInputs.from_trees(trees, min_count=1)
    network = make_network(inputs)
    short, long = DepTree(["abc"]), DepTree(["abcabcabcabc"])
    alone, among = (
        run_torch(network, inputs, some, [[0]] * len(some))[0] for some in ([short], [short, long])
    )
    np.testing.assert_allclose(alone[0], among[0], rtol=0, atol=1e-6)


def test_threads_share_a_runner(trees):
    inputs = WordInputs.from_trees(trees, min_count=1)
    expected = make_runner(inputs).read(trees)
    runner = make_runner(inputs)
    found = {}

    def read(number):
        found[number] = runner.read(trees)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for sentences in found.values():
        for one, other in zip(sentences, expected, strict=True):
            np.testing.assert_array_equal(one.arcs, other.arcs)
    assert len(found) == 4


def test_long_sentences_equal_pytorch_and_need_little_memory(trees):
    rng = np.random.default_rng(5)
    long = [make_tree(rng, 500) for _ in range(12)]
    assert_equal_to_torch(long[:2], trees)
    runner = make_runner(WordInputs.from_trees(trees, min_count=1), units=64)
    most = {}
    for count in (6, 12):
        tracemalloc.start()
        found = runner.read(long[:count])
        kept = sum(array.nbytes for sentence in found for array in sentence[:3])
        most[count] = tracemalloc.get_traced_memory()[1] - kept
        tracemalloc.stop()
    assert most[12] < 1.5 * most[6]
