import numpy as np
import pytest
from native.dependency.test_charts import random_arcs, random_scores
from oracle.dependency import forests as twin
from oracle.dependency.charts import random_tree, trees_over
from oracle.dependency.parts import tree_parts

from treewright.native.dependency import forests as native
from treewright.native.dependency.parts import arrange

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")
CASES = [
    (n, density, single_root)
    for n, density in [(1, 1.0), (3, 0.8), (4, 0.7), (5, 0.6)]
    for single_root in (True, False)
]


def make_case(seed, n, density, single_root):
    """Draw arcs that allow a gold tree, and scores of their parts."""
    rng = np.random.default_rng(seed)
    keep, _ = random_arcs(rng, n, density)
    gold = random_tree(rng, n, single_root)
    keep[list(gold), np.arange(1, n + 1)] = True
    arcs = set(zip(*(at.tolist() for at in np.nonzero(keep)), strict=True))
    scores, part_scores = random_scores(rng, arcs, n)
    return keep, arcs, gold, np.concatenate(scores), part_scores


def make_forests(cases, single_root):
    """Return the forests of sentences, their base scores, and which parts are gold."""
    base = np.concatenate([scores for *_, scores, _ in cases])
    sides = np.array([len(keep) for keep, *_ in cases])
    bounds = np.cumsum([0, *(len(scores) for *_, scores, _ in cases)])
    keep = np.concatenate([keep.ravel() for keep, *_ in cases])
    forests = native.Forests(sides, np.cumsum([0, *sides**2]), bounds, keep, single_root)
    is_gold = np.zeros(len(base), dtype=np.bool_)
    for number, (_, _, gold, *_) in enumerate(cases):
        heads = np.array([0, *gold], dtype=np.int32)
        native.mark_tree(forests, number, heads, is_gold[bounds[number] : bounds[number + 1]])
    return forests, base, is_gold


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("n", "density", "single_root"), CASES)
def test_residues_are_gold_parts_less_probabilities_over_all_trees(n, density, single_root, seed):
    _keep, arcs, gold, _scores, part_scores = case = make_case(seed, n, density, single_root)
    forests, base, is_gold = make_forests([case], single_root)
    residues = np.empty(len(base))
    loss = native.measure_forests(forests, base, np.arange(1), is_gold, residues)
    probabilities, log_sum = twin.part_probabilities(arcs, n, single_root, part_scores)
    right = tree_parts(gold)
    expected = [(part in right) - probabilities[part] for part in twin.numbered_parts(arcs, n)]
    np.testing.assert_allclose(residues, expected, atol=1e-9)
    assert loss == pytest.approx(log_sum - sum(part_scores[part] for part in right))


@pytest.mark.parametrize(("n", "density", "single_root"), CASES)
def test_a_tree_is_marked_by_its_parts(n, density, single_root):
    case = make_case(3, n, density, single_root)
    arcs, gold = case[1], case[2]
    assert gold in trees_over(arcs, n, single_root)
    _, _, is_gold = make_forests([case], single_root)
    parts = twin.numbered_parts(arcs, n)
    assert {part for part, marked in zip(parts, is_gold, strict=True) if marked} == tree_parts(gold)


@pytest.mark.parametrize("seed", range(3))
def test_parts_have_the_arcs_and_directions_of_their_definition(seed):
    keep, arcs, *_ = make_case(seed, 5, 0.6, False)
    index = arrange(keep)
    found, codes = native.list_part_arcs(index)
    ends = list(zip(index.head.tolist(), index.modifier.tolist(), strict=True))
    named = [[ends[arc] if arc >= 0 else arc for arc in row] for row in found.tolist()]
    assert named == twin.part_arcs(arcs, 5)
    assert codes.tolist() == twin.part_codes(arcs, 5)


def test_weights_are_those_of_steps_on_each_sentence():
    single_root = True
    cases = [make_case(seed, 4, 0.7, single_root) for seed in range(3)]
    forests, base, is_gold = make_forests(cases, single_root)
    rng = np.random.default_rng(5)
    n_features = 12
    rows = [sorted(set(rng.integers(n_features, size=rng.integers(4)).tolist())) for _ in base]
    ids = np.array([each for row in rows for each in row], dtype=np.int32)
    firing = native.Firing(np.cumsum([0, *map(len, rows)]), ids)
    model = native.LogLinear(np.zeros(n_features), np.full(n_features, 0.5), np.zeros(n_features))
    for number in range(2):
        native.learn_pass(forests, base, is_gold, firing, model, np.arange(3), 0.2, 3 * number)
    bounds = forests.part_indptr
    listed = [
        dict(zip(twin.numbered_parts(arcs, 4), rows[bounds[at] : bounds[at + 1]], strict=True))
        for at, (_, arcs, *_) in enumerate(cases)
    ]
    sentences = [(arcs, 4, single_root, gold) for _, arcs, gold, *_ in cases]
    weights, averages = twin.learn(sentences, listed, [each[-1] for each in cases], 0.2, 2, 0.5)
    expected = [[found.get(name, 0.0) for name in range(n_features)] for found in (weights, averages)]
    np.testing.assert_allclose(model.weights, expected[0], atol=1e-9)
    np.testing.assert_allclose(model.weights - model.totals / 6, expected[1], atol=1e-9)


def test_trees_are_drawn_by_their_probabilities():
    case = make_case(1, 4, 0.7, True)
    arcs, part_scores = case[1], case[-1]
    n_draws = 1000
    forests, base, _ = make_forests([case] * n_draws, True)
    is_drawn = np.zeros(len(base), dtype=np.bool_)
    native.draw_trees(forests, base, 0, is_drawn)
    rows = is_drawn.reshape(n_draws, -1)
    parts = twin.numbered_parts(arcs, 4)
    trees = {frozenset(tree_parts(heads)) for heads in trees_over(arcs, 4, True)}
    drawn = [
        frozenset(part for part, is_in in zip(parts, row, strict=True) if is_in) for row in rows.tolist()
    ]
    assert set(drawn) <= trees
    probabilities, _ = twin.part_probabilities(arcs, 4, True, part_scores)
    np.testing.assert_allclose(rows.mean(axis=0), [probabilities[part] for part in parts], atol=0.07)
