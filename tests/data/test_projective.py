import random

import numpy as np
import pytest
from hypothesis import given
from oracle.data import projective as oracle
from strategies import dep_trees

import treewright as tw
from treewright.errors import InputError
from treewright.native.data.projective import is_under, lift_arcs

SCHEMES = ["baseline", "head", "path", "head+path"]


def crossing_tree():
    """Return a sentence in which a clause stands apart from the noun it belongs to."""
    words = ["a", "man", "came", "yesterday", "who", "sang"]
    relations = ["det", "nsubj", "root", "advmod", "nsubj", "acl:relcl"]
    return tw.DepTree(words, [2, 3, 0, 3, 6, 2], relations)


@given(dep_trees(8, extras=False, comments=False))
def test_projectivity_equals_the_definition(tree):
    assert tw.is_projective(tree) == oracle.is_projective(tree.heads.tolist())


@given(dep_trees(8, extras=False, comments=False))
def test_lifting_equals_the_definition(tree):
    heads = np.concatenate([[0], tree.heads]).astype(np.int32)
    on_path = np.zeros(heads.size, dtype=np.bool_)
    lift_arcs(heads, on_path)
    lifted, path = oracle.lift(tree.heads.tolist())
    assert heads[1:].tolist() == lifted
    assert set(np.flatnonzero(on_path).tolist()) == path


@given(dep_trees(6, extras=False, comments=False))
def test_dominance_equals_the_definition(tree):
    heads = np.concatenate([[0], tree.heads]).astype(np.int32)
    words = range(1, len(tree) + 1)
    found = [[is_under(heads, word, above) for above in words] for word in words]
    assert found == [[oracle.is_under(tree.heads.tolist(), word, above) for above in words] for word in words]


def random_trees(n_trees, random_state=0):
    """Make sentences of up to nine words with heads drawn at random and few different relations."""
    rng = random.Random(random_state)
    for _ in range(n_trees):
        n = rng.randint(2, 9)
        words = list(range(1, n + 1))
        rng.shuffle(words)
        heads = [0] * n
        for placed, word in enumerate(words[1:], start=1):
            heads[word - 1] = rng.choice(words[:placed])
        yield tw.DepTree(["w"] * n, heads, [rng.choice("abc") for _ in range(n)])


def test_lifting_equals_the_definition_on_thousands_of_trees():
    for tree in random_trees(3000):
        assert tw.projectivize(tree).heads.tolist() == oracle.lift(tree.heads.tolist())[0]


def test_restoring_equals_the_definition_on_thousands_of_trees():
    for tree in random_trees(1500):
        for scheme in SCHEMES:
            lifted = tw.projectivize(tree, scheme=scheme)
            expected = oracle.restore(lifted.heads.tolist(), lifted.deprels)
            assert tw.deprojectivize(lifted).heads.tolist() == expected, (tree.heads, lifted.deprels)


@pytest.mark.parametrize("scheme", SCHEMES)
@given(tree=dep_trees(8, extras=False, comments=False))
def test_lifted_trees_are_projective_and_marks_come_off(scheme, tree):
    tree.deprels = [f"r{index}" for index in range(len(tree))]
    lifted = tw.projectivize(tree, scheme=scheme)
    assert tw.is_projective(lifted)
    restored = tw.deprojectivize(lifted)
    assert restored.deprels == tree.deprels
    assert oracle.lift(tree.heads.tolist())[0] == lifted.heads.tolist()


@given(dep_trees(8, extras=False, comments=False))
def test_distinct_relations_restore_every_arc_in_the_schemes_that_note_the_head(tree):
    tree.deprels = [f"r{index}" for index in range(len(tree))]
    for scheme in ("head", "head+path"):
        assert tw.deprojectivize(tw.projectivize(tree, scheme=scheme)) == tree


@pytest.mark.parametrize("scheme", SCHEMES)
def test_projective_trees_pass_unchanged(scheme):
    tree = tw.DepTree(["a", "man", "came"], [2, 3, 0], ["det", "nsubj", "root"])
    assert tw.projectivize(tree, scheme=scheme) is tree
    assert tw.deprojectivize(tree) is tree


@pytest.mark.parametrize(
    ("scheme", "clause", "noun"),
    [
        ("baseline", "acl:relcl", "nsubj"),
        ("head", "acl:relcl↑nsubj", "nsubj"),
        ("path", "acl:relcl↑", "nsubj↓"),
        ("head+path", "acl:relcl↑nsubj", "nsubj↓"),
    ],
)
def test_relations_are_marked_as_the_scheme_says(scheme, clause, noun):
    lifted = tw.projectivize(crossing_tree(), scheme=scheme)
    assert lifted.heads.tolist() == [2, 3, 0, 3, 6, 3]
    assert lifted.deprels == ["det", noun, "root", "advmod", "nsubj", clause]


@pytest.mark.parametrize("scheme", SCHEMES[1:])
def test_every_scheme_but_the_baseline_restores_the_example(scheme):
    tree = crossing_tree()
    assert tw.deprojectivize(tw.projectivize(tree, scheme=scheme)) == tree


def test_a_lifted_word_whose_head_is_not_found_stays():
    tree = tw.DepTree(["a", "b"], [2, 0], ["obj↑nsubj", "root"])
    assert tw.deprojectivize(tree) == tw.DepTree(["a", "b"], [2, 0], ["obj", "root"])


def test_a_word_that_is_to_stay_keeps_its_head_and_loses_its_mark():
    tree = tw.DepTree(["a", "b", "c"], [0, 1, 1], ["root", "nsubj↓", "obj↑"])
    relations = ["root", "nsubj", "obj"]
    assert tw.deprojectivize(tree) == tw.DepTree(["a", "b", "c"], [0, 1, 2], relations)
    assert tw.deprojectivize(tree, keep={3}) == tw.DepTree(["a", "b", "c"], [0, 1, 1], relations)


def test_a_path_that_leads_nowhere_leaves_the_word():
    tree = tw.DepTree(["a", "b", "c"], [2, 0, 1], ["obj↑", "root", "x↓"])
    assert tw.deprojectivize(tree).heads.tolist() == [2, 0, 1]


def test_long_sentences_are_checked_in_linear_time_without_recursion():
    n = 200_000
    chain = tw.DepTree(["w"] * n, [0, *range(1, n)])
    assert tw.is_projective(chain)


@pytest.mark.slow
def test_long_sentences_with_crossings_are_lifted():
    rng = random.Random(0)
    n = 400
    heads = [0, *(rng.randint(max(1, word - 6), word - 1) for word in range(2, n + 1))]
    tree = tw.DepTree(["w"] * n, heads, ["dep"] * n)
    assert not tw.is_projective(tree)
    assert tw.projectivize(tree).heads.tolist() == oracle.lift(heads)[0]


def test_projectivize_rejects_an_unknown_scheme():
    with pytest.raises(InputError, match=r"scheme is 'up'; expected one of baseline, head, path, head\+path"):
        tw.projectivize(crossing_tree(), scheme="up")


def test_projectivize_rejects_unknown_heads():
    with pytest.raises(InputError, match="word 1 has no head; expected a head for every word"):
        tw.projectivize(tw.DepTree(["a", "b"]))


def test_projectivize_rejects_relations_that_are_marked_already():
    tree = crossing_tree()
    tree.deprels[0] = "det↑"
    with pytest.raises(InputError, match="word 1: relation is 'det↑'; expected one without"):
        tw.projectivize(tree)
