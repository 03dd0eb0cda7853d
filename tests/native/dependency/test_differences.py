import numpy as np
import pytest
from oracle.dependency import differences as twin
from oracle.dependency import parts
from oracle.dependency.charts import all_trees, arcs_of, random_tree, tree_score
from oracle.dependency.features import random_corpus, random_weights, unpack

from treewright.native.dependency.differences import fill_difference, link_siblings
from treewright.native.dependency.features import make_sentence
from treewright.native.dependency.parts import PartModel, arrange, score_parts
from treewright.parsing.dependency.features import compile_templates

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

SHIFT = np.uint64(52)
TEMPLATES = [compile_templates(parts.TEMPLATES[kind], kind) for kind in parts.KINDS]
CASES = [(seed, order) for seed in range(12) for order in (1, 2, 3)]


def draw(seed):
    """Draw a sentence and two of its trees, with one root or more."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 10))
    _, values, first_morph, morphs, _ = random_corpus(rng, [[0] * n])
    sentence = make_sentence(values, first_morph, morphs)
    return sentence, random_tree(rng, n, single_root=seed % 2 == 0), random_tree(rng, n, single_root=False)


def difference(order, sentence, heads, others):
    keys = np.empty(20_000, np.uint64)
    trees = (link_siblings(np.array([0, *one], np.int32)) for one in (heads, others))
    return keys[: fill_difference(PartModel(*TEMPLATES, order, SHIFT), sentence, *trees, keys)].tolist()


@pytest.mark.parametrize(("seed", "order"), CASES)
def test_keys_are_those_of_the_difference_of_the_sets_of_parts(seed, order):
    sentence, heads, others = draw(seed)
    for one, other in ((heads, others), (others, heads)):
        expected = twin.difference_keys(parts.TEMPLATES, unpack(sentence), one, other, order)
        assert sorted(difference(order, sentence, one, other)) == sorted(expected)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_all_pairs_of_short_trees_differ_by_their_parts(order):
    trees = all_trees(3, False)
    _, values, first_morph, morphs, _ = random_corpus(np.random.default_rng(0), [[0] * 3])
    sentence = make_sentence(values, first_morph, morphs)
    for heads in trees:
        for others in trees:
            expected = twin.difference_keys(parts.TEMPLATES, unpack(sentence), heads, others, order)
            assert sorted(difference(order, sentence, heads, others)) == sorted(expected)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_tree_does_not_differ_from_itself(order):
    sentence, heads, _ = draw(7)
    assert difference(order, sentence, heads, heads) == []


@pytest.mark.parametrize(("seed", "order"), CASES)
def test_differences_weigh_as_much_as_the_scores_of_trees_differ(seed, order):
    sentence, heads, others = draw(seed)
    n = len(heads)
    weights = random_weights(np.random.default_rng(seed), 1 << 12)
    arcs = arcs_of(heads) | arcs_of(others)
    keep = np.zeros((n + 1, n + 1), np.bool_)
    keep[tuple(zip(*arcs, strict=True))] = True
    model = PartModel(*TEMPLATES, order, SHIFT)
    scores = score_parts(arrange(keep), model, sentence, weights)
    listed = parts.list_parts(arcs, n)
    by_part = {
        part: score
        for kind in parts.KINDS
        for part, score in zip(listed[kind], getattr(scores, kind), strict=True)
    }
    gained, lost = (
        sum(float(weights[key >> 52]) for key in difference(order, sentence, one, other))
        for one, other in ((heads, others), (others, heads))
    )
    assert gained - lost == tree_score(heads, by_part, order) - tree_score(others, by_part, order)


def test_siblings_are_linked_from_the_head_outwards():
    heads = np.array([0, 3, 3, 0, 3, 3, 5], np.int32)
    tree = link_siblings(heads)
    assert tree.before.tolist() == [0, 2, 0, 0, 0, 4, 0]
    assert tree.last.tolist() == [[0, 3], [0, 0], [0, 0], [1, 5], [0, 0], [0, 6], [0, 0]]
