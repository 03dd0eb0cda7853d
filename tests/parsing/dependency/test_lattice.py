import itertools

import numpy as np
import pytest
from oracle.dependency.charts import all_trees, arcs_of, ranked_trees
from oracle.dependency.parts import KINDS, list_parts, tree_parts, words_in

import treewright as tw
from treewright.errors import InputError

N = 4


def all_arcs():
    return {(head, word) for head in range(N + 1) for word in range(1, N + 1) if head != word}


def square(arcs):
    keep = np.zeros((N + 1, N + 1), dtype=np.bool_)
    keep[tuple(zip(*arcs, strict=True))] = True
    return keep


@pytest.fixture
def listed():
    return list_parts(all_arcs(), N)


@pytest.mark.parametrize("kind", KINDS)
def test_words_are_those_of_the_parts(listed, kind):
    expected = words_in(kind, listed[kind])
    assert [tuple(row) for row in tw.Lattice(square(all_arcs())).words(kind).tolist()] == expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("left_out", [(), ((2, 1), (4, 3))])
def test_a_tree_contains_its_parts_as_far_as_the_lattice_has_them(kind, left_out):
    arcs = all_arcs() - set(left_out)
    lattice = tw.Lattice(square(arcs), single_root=False)
    listed = list_parts(arcs, N)[kind]
    for tree in all_trees(N, False):
        found = lattice.contains(kind, np.array(tree, np.int32))
        assert found.tolist() == [part in tree_parts(tree) for part in listed]


def test_parts_of_an_unknown_kind_are_refused():
    lattice = tw.Lattice(square(all_arcs()))
    with pytest.raises(InputError, match="kind is 'star'; expected one of arc, pair"):
        lattice.contains("star", np.zeros(N, np.int32))


@pytest.mark.parametrize("single_root", [True, False])
def test_scores_from_anywhere_give_the_best_of_all_trees_and_their_probabilities(listed, single_root):
    rng = np.random.default_rng(0)
    scores = {kind: rng.normal(size=len(listed[kind])) for kind in KINDS}
    lattice = tw.Lattice(square(all_arcs()), single_root=single_root, scores=scores)
    by_part = {
        part: score for kind in KINDS for part, score in zip(listed[kind], scores[kind].tolist(), strict=True)
    }
    ranked = ranked_trees(all_arcs(), N, single_root, by_part, 3)
    heads, totals = lattice.best_trees(7)
    assert [tuple(one) for one in heads.tolist()] == [tree for _, tree in ranked[:7]]
    assert totals.tolist() == pytest.approx([score for score, _ in ranked[:7]])
    marginals, log_sum = lattice.marginals()
    assert log_sum == pytest.approx(np.logaddexp.reduce([score for score, _ in ranked]))
    expected = np.zeros((N, N + 1))
    for score, tree in ranked:
        for head, word in arcs_of(tree):
            expected[word - 1, head] += np.exp(score - log_sum)
    np.testing.assert_allclose(marginals, expected, atol=1e-10)
    of_parts, sum_again = lattice.part_marginals()
    assert sum_again == pytest.approx(log_sum)
    for kind in KINDS:
        probability = dict.fromkeys(listed[kind], 0.0)
        for score, tree in ranked:
            for part in tree_parts(tree) & probability.keys():
                probability[part] += np.exp(score - log_sum)
        np.testing.assert_allclose(of_parts[kind], list(probability.values()), atol=1e-10)


def test_kinds_that_are_missing_score_nothing():
    lattice = tw.Lattice(square(all_arcs()))
    _, totals = lattice.best_trees(1000)
    assert (totals == 0).all()
    chosen = {"arc": np.array([float(word == 4) for _, word in sorted(all_arcs())])}
    assert lattice.best_trees(1, chosen)[1].tolist() == [1.0]


def test_arcs_that_allow_no_tree_have_none():
    lattice = tw.Lattice(square([(0, 1), (1, 2), (4, 3), (3, 4)]))
    assert lattice.best_trees(3)[0].shape == (0, N)
    assert lattice.marginals()[1] == -np.inf


def test_a_parsers_own_scores_give_its_own_trees():
    bank = tw.make_treebank(120, random_state=0).dependencies
    parser = tw.DependencyParser(epochs=2, runs=1, table_bits=16, folds=2).fit(bank[:100])
    for lattice, candidates in zip(parser.lattices(bank[100:]), parser.kbest(bank[100:], k=3), strict=True):
        heads, totals = lattice.best_trees(3)
        assert totals.tolist() == pytest.approx([one.score for one in candidates])
        assert heads.tolist() == [one.tree.heads.tolist() for one in candidates]


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (
            {"arcs": np.zeros(3)},
            "kind is 'arcs'; expected one of arc, pair, grandchild, grand_sibling, triple",
        ),
        ({"arc": np.zeros(3)}, "arc has scores of shape (3,); expected (16,)"),
        ({"arc": np.full(16, -np.inf)}, "arc has scores that are NaN or infinite; expected finite numbers"),
    ],
)
def test_scores_that_do_not_fit_are_refused(scores, message):
    with pytest.raises(InputError) as error:
        tw.Lattice(square(all_arcs()), scores=scores)
    assert str(error.value) == message


def test_all_orders_of_kinds_are_accepted(listed):
    scores = {kind: np.ones(len(listed[kind])) for kind in KINDS}
    totals = {
        float(
            tw.Lattice(square(all_arcs()), scores={kind: scores[kind] for kind in order}).best_trees()[1][0]
        )
        for order in itertools.islice(itertools.permutations(KINDS), 4)
    }
    assert len(totals) == 1


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        (np.ones((2, 3)), "keep has shape (2, 3); expected a square matrix with a row for the root"),
        (np.eye(3), "keep has an arc to the root or from a word to itself; expected no such arcs"),
        (np.tri(3, k=-1), "keep has an arc to the root or from a word to itself; expected no such arcs"),
    ],
)
def test_what_is_no_set_of_arcs_is_refused(keep, message):
    with pytest.raises(InputError) as error:
        tw.Lattice(keep)
    assert str(error.value) == message
    with pytest.raises(InputError, match="k is 0; expected an integer of at least 1"):
        tw.Lattice(square(all_arcs())).best_trees(0)
