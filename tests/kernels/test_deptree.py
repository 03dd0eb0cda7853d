import numpy as np
import pytest
from oracle.kernels import deptree as twin
from sklearn.base import clone

from treewright.data.arcs import ARC_FEATURES, BETWEEN, ArcEncoder
from treewright.data.deptree import DepTree
from treewright.errors import InputError
from treewright.kernels.deptree import DependencyTreeKernel

WORDS_AND_TAGS = ("h.word m.word", "h.tag m.tag")
FIGURE = DepTree(
    ["He", "won", "the", "game", "today"], [2, 0, 4, 2, 2], xpos=["PRP", "VBD", "DT", "NN", "NN"]
)
SEVERAL = [
    WORDS_AND_TAGS,
    (BETWEEN,),
    ("h.tag m.tag *", BETWEEN),
    ("h.word m.word", "h-1.tag h.tag m.tag", "h.tag m.tag m+1.tag *", "h.word m.tag"),
]


def draw_tree(rng, words=None, tags=None, n_words=5):
    """Draw a tree over few words and tags, or over those given; each word hangs on one that hangs already."""
    heads = [0] * n_words
    order = rng.permutation(n_words)
    for number in range(1, n_words):
        heads[order[number]] = int(rng.choice(order[: min(number, 3)])) + 1
    words = words or [f"w{number}" for number in rng.integers(3, size=n_words)]
    return DepTree(words, heads, xpos=tags or [f"T{number}" for number in rng.integers(3, size=n_words)])


def draw_lists(random_state, n_lists=3, n_trees=3):
    rng = np.random.default_rng(random_state)
    trees = []
    for _ in range(n_lists):
        example = draw_tree(rng)
        trees += [draw_tree(rng, example.words, example.xpos) for _ in range(n_trees)]
    return trees


def list_feature_trees(trees, features, root=False):
    """Count the sub feature trees of each tree, by their definition."""
    encoder = ArcEncoder.from_trees(trees, templates=features)
    sentences = encoder.encode(trees)
    for number, tree in enumerate(trees):
        arcs = twin.list_arcs(tree.heads.tolist(), root)
        heads, modifiers = np.array(arcs).T
        first, keys = encoder.keys(sentences, np.full(len(arcs), number), heads, modifiers)
        chosen = {arc: keys[first[at] : first[at + 1]].tolist() for at, arc in enumerate(arcs)}
        yield twin.list_feature_trees(arcs, chosen)


def enumerate_kernel(trees, features, decay=1.0, root=False):
    counts = list(list_feature_trees(trees, features, root))
    return np.array([[twin.kernel(a, b, decay) for b in counts] for a in counts])


def make_long(n_words):
    """Make a chain of so many words that its fragments are more than a float can hold."""
    return DepTree(["a"] * n_words, range(n_words), xpos=["T"] * n_words)


def test_figure_1_has_11_subtrees():
    assert len(twin.list_fragments(twin.list_arcs(FIGURE.heads.tolist()))) == 11


def test_figure_1_has_60_sub_feature_trees_59_of_them_different():
    (counts,) = list_feature_trees([FIGURE], WORDS_AND_TAGS)
    assert (sum(counts.values()), len(counts)) == (60, 59)


def test_figure_1_has_62_pairs_of_equal_sub_feature_trees():
    assert DependencyTreeKernel(features=WORDS_AND_TAGS)([FIGURE]).tolist() == [[62]]


def test_arcs_from_the_root_count_if_told():
    found = DependencyTreeKernel(features=WORDS_AND_TAGS, root=True)([FIGURE])
    assert found.tolist() == enumerate_kernel([FIGURE], WORDS_AND_TAGS, root=True).tolist()
    assert found[0, 0] > 62


@pytest.mark.slow_cases
@pytest.mark.parametrize("random_state", range(5))
@pytest.mark.parametrize("features", SEVERAL)
@pytest.mark.parametrize("root", [False, True])
def test_values_equal_those_of_enumeration(random_state, features, root):
    trees = draw_lists(random_state)
    expected = enumerate_kernel(trees, features, root=root)
    assert DependencyTreeKernel(features=features, root=root)(trees).tolist() == expected.tolist()


@pytest.mark.slow
def test_values_of_all_features_equal_those_of_enumeration():
    trees = [draw_tree(np.random.default_rng(random_state), n_words=4) for random_state in range(4)]
    assert DependencyTreeKernel()(trees).tolist() == enumerate_kernel(trees, ARC_FEATURES).tolist()


def test_decay_counts_for_each_arc():
    trees = draw_lists(1)
    found = DependencyTreeKernel(features=WORDS_AND_TAGS, decay=0.3)(trees)
    np.testing.assert_allclose(found, enumerate_kernel(trees, WORDS_AND_TAGS, decay=0.3))


def test_values_are_symmetric():
    found = DependencyTreeKernel()(draw_lists(2))
    assert found.tolist() == found.T.tolist()


@pytest.mark.parametrize("normalize", [False, True])
def test_no_eigenvalue_is_negative(normalize):
    values = np.linalg.eigvalsh(
        DependencyTreeKernel(features=WORDS_AND_TAGS, normalize=normalize)(draw_lists(3))
    )
    assert values.min() > -1e-9 * values.max()


def test_two_sequences_give_a_part_of_the_square():
    trees = draw_lists(4)
    kernel = DependencyTreeKernel()
    assert kernel(trees[:4], trees[4:]).tolist() == kernel(trees)[:4, 4:].tolist()


@pytest.mark.parametrize("normalize", [False, True])
def test_blocks_of_rows_in_any_order_are_parts_of_the_square(normalize):
    trees = draw_lists(5)
    kernel = DependencyTreeKernel(normalize=normalize)
    rows_a, rows_b = [5, 0, 3, 0, 8], [7, 1, 4, 2]
    found = kernel.pack(trees).block(rows_a, rows_b)
    assert found.tolist() == kernel(trees)[np.ix_(rows_a, rows_b)].tolist()


@pytest.mark.parametrize("normalize", [False, True])
def test_other_trees_are_compared_with_those_packed(normalize):
    trees = draw_lists(7)
    kernel = DependencyTreeKernel(normalize=normalize)
    assert kernel.pack(trees[4:]).compare(trees[:4]).tolist() == kernel(trees)[:4, 4:].tolist()


def test_words_that_those_packed_do_not_have_differ():
    new = DepTree(["x", "y", "z"], [2, 0, 2], xpos=["T"] * 3)
    old = DepTree(["a", "y", "b"], [2, 0, 2], xpos=["T"] * 3)
    kernel = DependencyTreeKernel(features=WORDS_AND_TAGS, normalize=True)
    assert kernel.pack([old]).compare([new]).tolist() == kernel([new], [old]).tolist()


@pytest.mark.parametrize("normalize", [False, True])
def test_the_diagonal_is_that_of_the_square(normalize):
    packed = DependencyTreeKernel(normalize=normalize).pack([*draw_lists(8), DepTree(["a"], [0])])
    rows = np.arange(len(packed))
    np.testing.assert_allclose(packed.diagonal(), packed.block(rows, rows).diagonal(), rtol=1e-12)


def test_a_copy_of_the_kernel_has_its_options():
    kernel = DependencyTreeKernel(features=WORDS_AND_TAGS, decay=0.5)
    assert clone(kernel).get_params() == kernel.get_params()


def test_unknown_heads_are_told_in_comparisons():
    with pytest.raises(InputError, match="tree 0: word 2 has no head; expected one from 0 to 2"):
        DependencyTreeKernel().pack([FIGURE]).compare([DepTree(["a", "b"], [0, -1])])


def test_normalized_values_are_divided_by_geometric_means():
    trees = draw_lists(6)
    values = DependencyTreeKernel()(trees)
    norms = np.sqrt(np.diag(values))
    np.testing.assert_allclose(DependencyTreeKernel(normalize=True)(trees), values / np.outer(norms, norms))


def test_trees_without_arcs_have_nothing_in_common_with_any():
    trees = [DepTree(["a"], [0]), DepTree([], []), FIGURE]
    found = DependencyTreeKernel(normalize=True)(trees)
    np.testing.assert_allclose(found, np.diag([0.0, 0.0, 1.0]), atol=1e-12)


def test_values_too_large_are_infinite():
    assert DependencyTreeKernel()([make_long(250)]).tolist() == [[np.inf]]


def test_values_too_large_are_normalized_like_others():
    trees = [make_long(250), make_long(251), make_long(3)]
    found = DependencyTreeKernel(features=WORDS_AND_TAGS, normalize=True)(trees)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(np.diag(found), 1)
    assert 0.5 < found[0, 1] < 1


def test_no_trees_give_empty_blocks():
    assert DependencyTreeKernel()([]).shape == (0, 0)
    assert DependencyTreeKernel()([FIGURE], []).shape == (1, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decay": 0}, "decay is 0; expected a number from 1e-06 to 1"),
        ({"normalize": "yes"}, "normalize is 'yes'; expected one of False, True"),
        ({"root": None}, "root is None; expected one of False, True"),
        ({"features": ["h.word"]}, "basic features are 'h.word'; expected one or more of"),
    ],
)
def test_bad_options_are_told_when_they_are_used(options, message):
    with pytest.raises(InputError, match=message):
        DependencyTreeKernel(**options)([FIGURE])


def test_unknown_heads_are_told():
    with pytest.raises(InputError, match="tree 1: word 2 has no head; expected one from 0 to 2"):
        DependencyTreeKernel()([FIGURE, DepTree(["a", "b"], [0, -1])])


@pytest.mark.parametrize("row", [-1, 1])
def test_rows_that_are_not_there_are_told(row):
    with pytest.raises(InputError, match=f"there is no row {row}; expected rows from 0 to 0"):
        DependencyTreeKernel().pack([FIGURE]).block([0], [row])
