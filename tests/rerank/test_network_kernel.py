"""The kernel over the output layer of a network, beside its definition and the general perceptron."""

import numpy as np
import pytest

import treewright as tw
from treewright.errors import FormatError, InputError
from treewright.kernels.decisions import make_gradient_list
from treewright.kernels.derived import TopRerankingKernel, rerank_scores
from treewright.learn.voted import VotedPerceptron
from treewright.model import load_state, save_state
from treewright.rerank.candidates import CandidateLists
from treewright.rerank.network_kernel import BASE_WEIGHT, NetworkKernelScorer, find_network

pytest.importorskip("torch")

SMALL = {"units": 8, "layers": 1, "arc_size": 6, "label_size": 4, "epochs": 3, "learning_rate": 0.01}


@pytest.fixture(scope="module")
def bank():
    return tw.make_treebank(120, random_state=1).dependencies


@pytest.fixture(scope="module")
def parser(bank):
    return tw.DependencyParser(scorer=tw.NeuralScorer(**SMALL)).fit(bank[:80], bank[80:100])


@pytest.fixture(scope="module")
def lists(parser, bank):
    return CandidateLists.from_structures(parser.structures(bank[80:], 5))


@pytest.fixture(scope="module")
def right(lists, bank):
    return lists.best(lists.n_right([tree.heads for tree in bank[80:]]).astype(float))


def with_matrix(parser, change):
    """Return the logarithms of the probabilities of heads after a change of the weights of arcs."""
    network = find_network(parser)
    changed = dict(network.weights_[0])
    changed["arc_matrix"] = (changed["arc_matrix"] + change[:-1]).astype(np.float32)
    changed["arc_bias"] = (changed["arc_bias"] + change[-1]).astype(np.float32)
    other = network.with_params()
    other.inputs_, other.labels_, other.fits_ = network.inputs_, network.labels_, network.fits_
    other.weights_, other.temperature_ = [changed], 1.0
    other.restore()
    return other


def gradient_lists(parser, lists):
    """Return the definition: gradients of log probabilities by the weights, heads chosen one by one."""
    network = find_network(parser)
    found = []
    for tree, heads, (begin, end) in zip(lists.trees, lists.heads, lists.spans(), strict=True):
        ((modifiers, above),) = network.arc_vectors([tree])
        scores = np.exp(with_matrix(parser, np.zeros((7, 6))).score_arcs(tree))
        np.fill_diagonal(scores, 0)
        rows = []
        for each in heads:
            total = np.zeros((7, 6))
            for word, head in enumerate(each):
                expected = scores[:, word + 1] @ above[0]
                total += np.outer(modifiers[0, word], above[0, head] - expected)
            rows.append(total.ravel())
        found.append(make_gradient_list(parser.scale_ * lists.scores[begin:end], np.array(rows)))
    return found


def scorer_with(parser, weights):
    scorer = NetworkKernelScorer().attach(parser)
    scorer.weights_ = weights.astype(np.float32)
    return scorer


def test_vectors_are_those_that_arcs_are_scored_by(parser, bank):
    network = find_network(parser)
    weights = network.weights_[0]
    plain = with_matrix(parser, np.zeros((7, 6)))
    for tree, (modifiers, heads) in zip(bank[:5], network.arc_vectors(bank[:5]), strict=True):
        matrix = np.vstack([weights["arc_matrix"], weights["arc_bias"]])
        scores = heads[0] @ (modifiers[0] @ matrix).T
        expected = plain.score_arcs(tree)[:, 1:]
        is_arc = ~np.eye(len(tree) + 1, dtype=bool)[:, 1:]
        difference = np.where(is_arc, scores - expected, np.nan)
        np.testing.assert_allclose(np.nanmax(difference, axis=0), np.nanmin(difference, axis=0), atol=1e-4)


def test_scores_are_products_with_the_features_of_the_general_kernel(parser, lists):
    weights = np.random.default_rng(0).normal(size=(1, 7, 6))
    features = TopRerankingKernel().features(gradient_lists(parser, lists))[:, 1:]
    found = scorer_with(parser, weights).score(lists)
    np.testing.assert_allclose(found[:, 0], features @ weights.astype(np.float32).ravel(), atol=1e-4)


def test_it_learns_what_the_general_perceptron_learns(parser, lists, right, monkeypatch):
    class Straight:
        def permutation(self, n):
            return np.arange(n)

    order = np.arange(len(lists))
    monkeypatch.setattr(np.random, "default_rng", lambda seed: Straight())
    scorer = NetworkKernelScorer().attach(parser).fit(lists, right)
    features = TopRerankingKernel().features(gradient_lists(parser, lists))[:, 1:]
    unit = scorer._find_unit(lists, order[:256])
    losses = np.concatenate(
        [
            (heads != heads[best - begin]).mean(axis=1)
            for heads, best, (begin, _) in zip(lists.heads, right.tolist(), lists.spans(), strict=True)
        ]
    )
    base = [BASE_WEIGHT * rerank_scores(parser.scale_ * lists.scores[slice(*each)]) for each in lists.spans()]
    general = VotedPerceptron(shuffle=False).fit(unit * features, lists.indptr, losses, np.concatenate(base))
    assert sum(general.n_updates_) > 0
    expected = general.kernel_scores(unit * features)
    np.testing.assert_allclose(scorer.score(lists)[:, 0], np.ravel(expected), atol=1e-3)


@pytest.fixture(scope="module")
def reranker(parser, bank):
    options = {"k": 4, "folds": 2, "significance_level": None}
    return tw.DependencyReranker(parser=parser, learner="network", **options).fit(bank[:80], bank[80:100])


def test_trees_are_among_those_of_the_parser(reranker, parser, bank):
    for tree, found in zip(reranker.predict(bank[100:]), parser.kbest(bank[100:], 4), strict=True):
        assert tree.heads.tolist() in [each.tree.heads.tolist() for each in found]


def test_a_saved_one_gives_the_same_trees(reranker, bank, tmp_path):
    reranker.save(tmp_path / "model")
    other = tw.load(tmp_path / "model")
    for one, same in zip(reranker.kbest(bank[100:], 3), other.kbest(bank[100:], 3), strict=True):
        assert [each.tree.heads.tolist() for each in one] == [each.tree.heads.tolist() for each in same]
        np.testing.assert_allclose([each.score for each in one], [each.score for each in same])


def test_weights_of_another_size_are_refused(reranker, tmp_path):
    reranker.save(tmp_path / "model")
    state = load_state(tmp_path / "model")
    state.parts["scorer"].arrays["weights"] = np.zeros((1, 3, 3), dtype=np.float32)
    save_state(state, tmp_path / "damaged")
    with pytest.raises(FormatError, match="weights of the output layer"):
        tw.load(tmp_path / "damaged")


@pytest.mark.parametrize("parser", [None, tw.DependencyParser()])
def test_a_parser_without_a_network_is_refused(parser, bank):
    with pytest.raises(InputError, match="the parser has no network"):
        tw.DependencyReranker(parser=parser, learner="network").fit(bank[:10])


def test_networks_of_folds_have_not_seen_their_sentences(parser, bank, monkeypatch):
    seen = []
    plain = tw.NeuralScorer.start

    def start(self, trees, **others):
        seen.append({tree.words[0] + str(len(tree)) for tree in trees} if not self.is_fitted else None)
        return plain(self, trees, **others)

    monkeypatch.setattr(tw.NeuralScorer, "start", start)
    given = tw.DependencyParser(scorer=find_network(parser))
    tw.jackknife_lists(given, bank[:20], k=2, folds=2)
    assert len(seen) == 2
    assert None not in seen
