"""The features behind each arc, and reranked trees that agree with what is fixed."""

import numpy as np
import pytest

import treewright as tw
from treewright.data.arcs import ArcEncoder
from treewright.errors import InputError
from treewright.mining.occurrences import ArcFeatures
from treewright.rerank.candidates import CandidateLists
from treewright.rerank.reranker import DependencyReranker

SETTINGS = {
    "subtree": {"degree": 3, "threshold": 2},
    "polynomial": {"space": "polynomial", "degree": 2, "threshold": 4},
    "template": {"space": "template"},
}
QUICK = {"k": 5, "folds": 2, "max_iter": 1, "significance_level": None}
ALL = 1_000_000


@pytest.fixture(scope="module")
def bank():
    return tw.make_treebank(150, random_state=2).dependencies


@pytest.fixture(scope="module")
def parser(bank):
    return tw.DependencyParser(order=1, epochs=1, runs=1, table_bits=14, folds=2).fit(bank[:100], bank[100:])


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("lists")


def train(parser, bank, cache, **options):
    return DependencyReranker(parser=parser, **{**QUICK, **options}).fit(bank[:100], bank[100:], cache=cache)


@pytest.fixture(scope="module")
def rerankers(parser, bank, cache):
    return {name: train(parser, bank, cache, **options) for name, options in SETTINGS.items()}


@pytest.fixture(scope="module", params=SETTINGS)
def reranker(request, rerankers):
    return rerankers[request.param]


@pytest.fixture(scope="module")
def candidates(parser, bank):
    """Return the best trees of some sentences, without relations."""
    found = parser.structures(bank[100:106], 5)
    return [[each.tree.with_heads(heads) for heads in each.heads] for each in found]


def total(reasons):
    """Add up the weights of all features, each once; two can look alike where a word is its own tag."""
    return sum({id(feature): feature.weight for arc in reasons for feature in arc}.values())


def test_the_features_of_all_arcs_are_those_by_which_trees_are_scored(reranker, candidates):
    n_reasons = 0
    for trees in candidates:
        heads, zeros = [np.array([tree.heads for tree in trees])], [np.zeros(len(trees))]
        lists = CandidateLists(trees[:1], heads, zeros, zeros)
        scores = reranker.scorer_.score(lists)[:, 0]
        reasons = reranker.arc_reasons(trees, n=ALL)
        n_reasons += sum(len(arc) for tree in reasons for arc in tree)
        sums = np.array([total(each) for each in reasons])
        # What all trees of a list have is left out of their scores.
        np.testing.assert_allclose(sums - sums[0], scores - scores[0], atol=1e-9)
    assert n_reasons > 10


def test_reasons_come_weightiest_first_and_so_many_at_the_most(reranker, candidates):
    trees = [trees[0] for trees in candidates]
    everything, few = reranker.arc_reasons(trees, n=ALL), reranker.arc_reasons(trees, n=2)
    for tree, arcs, short in zip(trees, everything, few, strict=True):
        assert len(arcs) == len(tree)
        for arc, first in zip(arcs, short, strict=True):
            weights = [abs(feature.weight) for feature in arc]
            assert weights == sorted(weights, reverse=True)
            assert 0 not in weights
            assert first == arc[:2]


@pytest.mark.parametrize("space", ["subtree", "polynomial"])
def test_each_reason_names_a_basic_feature_of_its_arc(rerankers, candidates, space):
    reranker = rerankers[space]
    encoder = reranker.scorer_.features.encoder
    for trees in candidates:
        tree = trees[0]
        for word, arc in enumerate(reranker.arc_reasons([tree], n=ALL)[0], start=1):
            place = np.zeros(1, dtype=np.int64), tree.heads[word - 1 : word].astype(np.int64)
            _, keys = encoder.keys(encoder.encode([tree]), *place, np.array([word]))
            names = [encoder.name(int(key)) for key in keys]
            for feature in arc:
                assert any(name in feature.text for name in names)
                assert all(named in feature.text for named in feature.words)


def test_each_template_that_tells_of_an_arc_names_a_word_or_tag_of_it(rerankers, candidates):
    reranker = rerankers["template"]
    column = reranker.scorer_.features.templates_.column_
    for trees in candidates:
        tree = trees[0]
        for word, arc in enumerate(reranker.arc_reasons([tree], n=ALL)[0], start=1):
            ends = [index - 1 for index in (word, int(tree.heads[word - 1])) if index]
            strings = {tree.words[at] for at in ends} | {getattr(tree, column)[at] for at in ends}
            for feature in arc:
                assert any(f" {string}" in feature.text for string in strings)
                assert all(named in feature.text for named in feature.words)


def test_a_feature_of_several_arcs_is_under_each_of_them(rerankers, candidates):
    features, coef = rerankers["subtree"].scorer_.features, rerankers["subtree"].scorer_.coef
    n_several = 0
    for trees in candidates[:3]:
        texts = [{one.text for one in arc} for arc in rerankers["subtree"].arc_reasons(trees[:1], n=ALL)[0]]
        for column, words in features.places(trees[0]).items():
            if coef[column]:
                assert all(features.text(column) in texts[word - 1] for word in words)
                n_several += len(words) > 1
    assert n_several > 0


def test_occurrences_of_a_subtree_follow_children_and_next_siblings():
    words, tags = ["he", "won", "the", "game", "there", "today"], ["PRP", "VBD", "DT", "NN", "RB", "NN"]
    tree = tw.DepTree(words, [2, 0, 4, 2, 2, 2], xpos=tags)
    encoder = ArcEncoder.from_trees([tree], column="xpos", templates=["h.tag m.tag"])
    arcs = np.zeros(6, dtype=np.int64), tree.heads.astype(np.int64), np.arange(1, 7)
    _, found = encoder.keys(encoder.encode([tree]), *arcs)
    keys = np.unique(found)
    numbers = dict(zip(range(1, 7), np.searchsorted(keys, found).tolist(), strict=True))
    features = ArcFeatures(tree, encoder, keys)

    def match(*arcs):
        return features.match_subtree([numbers[word] * 8 + depth for word, depth in arcs])

    assert match((4, 0)) == [4, 6]  # VBD → NN, twice
    assert match((4, 0), (3, 1)) == [3, 4]
    assert match((2, 0), (4, 1)) == [2, 4, 6]
    assert match((1, 0), (4, 0)) == [1, 4]
    assert match((1, 0), (5, 0)) == []  # siblings, but no neighbours
    assert match((4, 0), (3, 1), (5, 0)) == [3, 4, 5]
    assert match((2, 0), (4, 1), (3, 2), (5, 1), (6, 1)) == [2, 3, 4, 5, 6]


def test_no_tree_has_reasons_if_the_reranker_is_not_trusted(parser, bank, cache, candidates):
    reranker = train(parser, bank, cache, space="template", significance_level=0.0)
    assert reranker.arc_reasons([candidates[0][0]]) == [[[] for _ in candidates[0][0].words]]


def test_kernels_have_no_features_to_name(parser, bank, cache):
    reranker = train(parser, bank, cache, learner="kernel", chunks=2)
    with pytest.raises(InputError, match="uses a kernel and has no features; expected learner 'mined'"):
        reranker.arc_reasons(bank[:1])


def test_an_empty_sentence_has_no_arcs(reranker):
    assert reranker.arc_reasons([tw.DepTree([], [])]) == [[]]


def test_a_loaded_reranker_gives_the_same_reasons(reranker, candidates, tmp_path):
    trees = [trees[0] for trees in candidates]
    reranker.save(tmp_path / "model.tw")
    assert tw.load(tmp_path / "model.tw").arc_reasons(trees) == reranker.arc_reasons(trees)


def test_reranked_trees_have_the_fixed_arcs_and_probabilities_of_those_that_have_them(reranker, bank):
    test = bank[112:118]
    fixed = [{2: 0}, {}, {1: 2, 3: 2}, {len(test[3]): 0}, {}, {1: 3}]
    lists = reranker.kbest(test, 5, fixed=fixed)
    assert [one[0].tree for one in lists] == reranker.predict(test, fixed=fixed)
    free = reranker.kbest(test, 5)
    assert (lists[1], lists[4]) == (free[1], free[4])
    for heads, candidates in zip(fixed, lists, strict=True):
        for one in candidates:
            assert all(one.tree.heads[word - 1] == head for word, head in heads.items())
        assert 0 < sum(one.probability for one in candidates) <= 1 + 1e-9
    squares = reranker.marginals(test, fixed=fixed)
    for heads, square, words in zip(fixed, squares, reranker.alternatives(test, fixed=fixed), strict=True):
        np.testing.assert_allclose(square.sum(axis=1), 1, atol=1e-6)
        for word, head in heads.items():
            assert words[word - 1] == [(head, pytest.approx(1))]
    explained = reranker.explain(test, fixed=fixed)
    assert [one.candidates[0].tree for one in explained] == [one[0].tree for one in lists]


def test_arcs_that_no_tree_has_are_named_by_their_sentence(reranker, bank):
    with pytest.raises(InputError, match="sentence 2: no tree has the fixed arcs 2 → 1, 1 → 2"):
        reranker.kbest(bank[:2], fixed=[{}, {1: 2, 2: 1}])
