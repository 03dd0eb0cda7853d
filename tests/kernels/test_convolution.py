import json
import math
import pickle

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.consttree import Node
from oracle.kernels import ptk, sptk, sst
from oracle.kernels.dags import draw_trees, draw_wide, without_leaves
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from strategies import as_const_tree

from treewright import (
    ConstTree,
    DepTree,
    PartialTreeKernel,
    SmoothedPartialTreeKernel,
    SubsetTreeKernel,
    SubtreeKernel,
    TreeKernelClassifier,
)
from treewright.data.labelled_trees import to_constituents
from treewright.errors import InputError
from treewright.kernels.indices import TreeIndex

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

SENTENCE = "(S (N Mary) (VP (V brought) (NP (D a) (N cat))))"
VERB_PHRASE = "(VP (V brought) (NP (D a) (N cat)))"
KNOWN = ["a", "b", "B"]
TABLE = [[1, 0.5, 0.25], [0.5, 1, 0.125], [0.25, 0.125, 1]]
VECTORS = {"a": [1.0, 0.2], "b": [0.3, 1.0], "B": [-0.5, 0.4]}
KERNELS = [
    SubtreeKernel(decay=0.7),
    SubtreeKernel(decay=0.7, words="none"),
    SubtreeKernel(decay=0.7, words="bag"),
    SubsetTreeKernel(),
    SubsetTreeKernel(decay=1),
    SubsetTreeKernel(words="none"),
    SubsetTreeKernel(words="bag"),
    PartialTreeKernel(depth_decay=0.3),
    PartialTreeKernel(words="none"),
    PartialTreeKernel(max_children=1),
    PartialTreeKernel(max_children=2),
    SmoothedPartialTreeKernel((KNOWN, TABLE), depth_decay=0.3),
    SmoothedPartialTreeKernel((KNOWN, TABLE), max_children=2),
    SmoothedPartialTreeKernel((KNOWN, TABLE), words="none"),
]
SIMPLE = [SubtreeKernel(), SubsetTreeKernel(), PartialTreeKernel(), SmoothedPartialTreeKernel((KNOWN, TABLE))]


def name(kernel):
    """Name a kernel by what is not as without a choice."""
    chosen = kernel.get_params()
    usual = type(kernel)(None).get_params() if "similarity" in chosen else type(kernel)().get_params()
    options = [f"{key}={chosen[key]}" for key in chosen if key != "similarity" and chosen[key] != usual[key]]
    return f"{type(kernel).__name__}({', '.join(options)})"


def expect(kernel, one, other):
    """Return the value of two nested tuples by the recursions."""
    if kernel.words == "none":
        one, other = without_leaves(one), without_leaves(other)
        if one is None or other is None:
            return 0.0
    if isinstance(kernel, PartialTreeKernel):
        smooth = isinstance(kernel, SmoothedPartialTreeKernel)
        similarity = sptk.make_similarity(*kernel.similarity) if smooth else ptk.is_equal
        return ptk.compare(one, other, kernel.decay, kernel.depth_decay, kernel.max_children, similarity)
    value = sst.compare(one, other, kernel.decay, is_subset=isinstance(kernel, SubsetTreeKernel))
    return value + (sst.compare_words(one, other, kernel.decay) if kernel.words == "bag" else 0)


def expect_all(kernel, trees, others):
    values = np.array([[float(expect(kernel, one, other)) for other in others] for one in trees])
    if not kernel.normalize:
        return values
    own, own_others = (
        np.array([float(expect(kernel, tree, tree)) for tree in each]) for each in (trees, others)
    )
    scales = np.sqrt(np.outer(own, own_others))
    return np.divide(values, scales, out=np.zeros_like(values), where=scales > 0)


def as_trees(trees):
    return [as_const_tree(tree) for tree in trees]


def assert_close(found, expected):
    # Similarities are numbers of 32 bits, and so are their products where code is not compiled.
    np.testing.assert_allclose(found, expected, rtol=1e-5 if numba.config.DISABLE_JIT else 1e-9, atol=1e-12)


@pytest.fixture(scope="module")
def outside(data_folder):
    """Return the values that SVM-light-TK gave."""
    path = data_folder.parent / "oracle" / "tree_kernels_wsj.json"
    if not path.exists():
        pytest.skip(f"there is no {path.name} beside the folder of real data")
    return json.loads(path.read_text(encoding="utf-8"))


def make_outside(kind, decay, depth_decay):
    if kind == "PTK":
        return PartialTreeKernel(decay=decay, depth_decay=depth_decay)
    return {"ST": SubtreeKernel, "SST": SubsetTreeKernel}[kind](decay=decay)


def test_all_values_of_svm_light_tk_are_reproduced(outside):
    groups = {}
    for value in outside["values"]:
        groups.setdefault((value["kernel"], value["lambda"], value["mu"]), []).append(value)
    assert {kind for kind, _, _ in groups} == {"ST", "SST", "PTK"}
    for key, values in groups.items():
        packed = make_outside(*key).pack(outside["trees"])
        rows, columns = (np.array([value[side] for value in values]) for side in "ij")
        expected = [value["value"] for value in values]
        everything = np.arange(len(packed))
        square = packed.block(everything, everything)
        np.testing.assert_allclose(square[rows, columns], expected, rtol=1e-9)
        np.testing.assert_allclose(packed.pairs(rows, columns), expected, rtol=1e-9)


def test_small_counts_are_those_that_are_counted_by_hand():
    one = SubtreeKernel(decay=1), SubsetTreeKernel(decay=1), PartialTreeKernel(decay=1, depth_decay=1)
    assert [kernel([SENTENCE]).item() for kernel in one[:2]] == [7, 40]
    assert [kernel([VERB_PHRASE]).item() for kernel in one] == [5, 17, 48]
    parts = ["(V brought)", "(NP (D a) (N cat))"]
    assert 48 - sum(one[2]([part]).item() for part in parts) == 30


@pytest.fixture(params=[3, 512])
def in_chunks(request, monkeypatch):
    """Let equal subtrees be one among so many trees."""
    monkeypatch.setitem(TreeIndex.__init__.__kwdefaults__, "n_together", request.param)


EVERY_WAY = [
    pytest.mark.usefixtures("in_chunks"),
    pytest.mark.parametrize("normalize", [False, True]),
    pytest.mark.parametrize("kernel", KERNELS, ids=name),
]
TREES = [*draw_trees(1, n_trees=8), draw_wide(np.random.default_rng(0), 9), Node("Z", (Node("z"),))]
OTHERS = [*draw_trees(2, n_trees=4), Node("Y", (Node("y"), Node("b")))]


def every_way(test):
    """Run a test with all kernels, with and without normalisation, in several chunks and in one."""
    for mark in EVERY_WAY:
        test = mark(test)
    return test


@every_way
def test_a_call_equals_the_recursions(kernel, normalize):
    kernel = clone(kernel).set_params(normalize=normalize)
    assert_close(kernel(as_trees(TREES)), expect_all(kernel, TREES, TREES))
    assert_close(kernel(as_trees(OTHERS), as_trees(TREES)), expect_all(kernel, OTHERS, TREES))


@every_way
def test_others_are_compared_with_all_that_are_packed(kernel, normalize):
    kernel = clone(kernel).set_params(normalize=normalize)
    expected = expect_all(kernel, OTHERS, TREES)
    assert_close(kernel.pack(as_trees(TREES)).compare(as_trees(OTHERS)), expected)
    assert_close(kernel.fit(as_trees(TREES)).transform(as_trees(OTHERS)), expected)


@every_way
def test_blocks_and_strips_are_parts_of_the_square(kernel, normalize):
    kernel = clone(kernel).set_params(normalize=normalize)
    packed, square = kernel.pack(as_trees(TREES)), expect_all(kernel, TREES, TREES)
    everything = range(len(TREES))
    some = [
        (everything, everything),
        ([3, 0, 3], everything),
        ([2, 8], [8, 1]),
        (everything, [5, 5, 1, 9, 0]),
    ]
    for rows_a, rows_b in some:
        assert_close(packed.block(rows_a, rows_b), square[np.ix_(rows_a, rows_b)])
    for begin, end in [(0, 1), (2, 7), (4, 4), (9, 10)]:
        assert_close(packed.strip(begin, end), square[begin:end, begin:])


@every_way
def test_pairs_and_the_diagonal_are_values_of_the_square(kernel, normalize):
    kernel = clone(kernel).set_params(normalize=normalize)
    packed, square = kernel.pack(as_trees(TREES)), expect_all(kernel, TREES, TREES)
    rows_a, rows_b = np.random.default_rng(1).integers(len(TREES), size=(2, 30))
    assert_close(packed.pairs(rows_a, rows_b), square[rows_a, rows_b])
    assert_close(packed.diagonal(), np.diag(square))


@pytest.mark.parametrize("kernel", KERNELS, ids=name)
def test_logarithms_are_those_of_values_without_normalisation(kernel):
    trees, others = draw_trees(3, n_trees=5), draw_trees(4, n_trees=3)
    with np.errstate(divide="ignore"):
        expected = np.log(expect_all(kernel, trees, others))
    for normalize in (False, True):
        one = clone(kernel).set_params(normalize=normalize)
        np.testing.assert_allclose(
            one.logs(as_trees(trees), as_trees(others)), expected, rtol=1e-6, atol=1e-6
        )
        found = one.logs(as_trees(trees))
        np.testing.assert_allclose(np.exp(found), expect_all(kernel, trees, trees), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("kernel", SIMPLE, ids=name)
def test_threads_do_not_change_a_bit(kernel):
    trees, others = (
        as_trees(draw_trees(random_state, n_trees=n, depth=2)) for random_state, n in ((5, 150), (6, 70))
    )
    one, two = (clone(kernel).set_params(n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one(trees).tolist() == two(trees).tolist()
    assert one(trees, others).tolist() == two(trees, others).tolist()
    assert one.pack(trees).strip(3, 140).tolist() == two.pack(trees).strip(3, 140).tolist()


@pytest.mark.parametrize("kernel", SIMPLE[:3], ids=name)
def test_forests_of_several_chunks_have_the_values_of_pairs(kernel):
    given = as_trees(draw_trees(7, n_trees=600, depth=2, width=2))
    packed = kernel.pack(given)
    rows = np.arange(0, 600, 7)
    expected = packed.pairs(*(side.ravel() for side in np.meshgrid(rows, rows, indexing="ij")))
    square = kernel(given)
    assert_close(square[np.ix_(rows, rows)], expected.reshape(len(rows), -1))
    assert_close(square, square.T)
    assert_close(packed.compare([given[row] for row in rows]), square[rows])


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=name)
def test_no_trees_have_no_values(kernel, normalize):
    kernel = clone(kernel).set_params(normalize=normalize)
    for trees in ([], [SENTENCE]):
        assert kernel([], trees).shape == (0, len(trees))
        assert kernel(trees, []).shape == (len(trees), 0)
        assert kernel.logs(trees, []).shape == (len(trees), 0)
    packed = kernel.pack([])
    assert kernel([]).shape == packed.strip(0, 0).shape == (0, 0)
    assert packed.diagonal().shape == packed.pairs([], []).shape == (0,)


@pytest.mark.parametrize("kernel", KERNELS, ids=name)
def test_trees_without_fragments_have_the_normalised_value_0(kernel):
    kernel = clone(kernel).set_params(normalize=True)
    given = [as_const_tree(Node("q")), ConstTree.parse("(S (A a))")]
    has_fragment = kernel.words == "bag" or (
        kernel.words == "nodes" and isinstance(kernel, PartialTreeKernel)
    )
    expected = [[float(has_fragment), 0], [0, 1]]
    if kernel.words == "none" and not isinstance(kernel, PartialTreeKernel):
        expected[1][1] = 1
    packed = kernel.pack(given)
    assert_close(kernel(given), expected)
    assert_close(packed.diagonal(), np.diag(expected))
    assert_close(packed.pairs([0, 0, 1, 1], [0, 1, 0, 1]), np.ravel(expected))
    assert_close(kernel(given[:1], given), expected[:1])


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (SubtreeKernel(decay=0), "decay is 0; expected a number from 1e-06 to 1"),
        (SubsetTreeKernel(decay=1.5), "decay is 1.5; expected a number from 1e-06 to 1"),
        (SubsetTreeKernel(decay="x"), "decay is 'x'; expected a number from 1e-06 to 1"),
        (SubsetTreeKernel(decay=math.nan), "decay is nan; expected a number from 1e-06 to 1"),
        (SubsetTreeKernel(normalize="yes"), "normalize is 'yes'; expected one of False, True"),
        (SubsetTreeKernel(words="all"), "words is 'all'; expected one of nodes, none, bag"),
        (SubsetTreeKernel(centre="x"), "centre is 'x'; expected one of relation, tag, word"),
        (SubsetTreeKernel(n_jobs=0), "n_jobs is 0; expected an integer of at least 1"),
        (PartialTreeKernel(depth_decay=2), "depth_decay is 2; expected a number from 1e-06 to 1"),
        (PartialTreeKernel(max_children=0), "max_children is 0; expected an integer of at least 1"),
        (SmoothedPartialTreeKernel(None), "similarity is of the type NoneType; expected a dict of vectors"),
        (
            SmoothedPartialTreeKernel({"a": [0, 0]}),
            "the vector of 'a' is zero; expected a non-zero vector",
        ),
        (SmoothedPartialTreeKernel({"a": [1], "b": [1, 2]}), "example 1 has the shape (2,); expected (1,)"),
        (SmoothedPartialTreeKernel((["a"], [1, 2])), "the matrix of similarities has the shape (2,)"),
        (
            SmoothedPartialTreeKernel((["a", "b"], [[1, 0], [1, 1]])),
            "the matrix of similarities is not symmetric",
        ),
    ],
)
def test_wrong_parameters_are_told_in_one_line(kernel, message):
    with pytest.raises(InputError) as caught:
        kernel([SENTENCE])
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (SENTENCE, "trees are the string '(S (N Mary) "),
        ([SENTENCE, "(S"], "example 1: '(S' has "),
        ([SENTENCE, 3], "example 1: the tree is of the type int; expected a ConstTree"),
        (3, "trees are of the type int; expected a sequence of trees"),
    ],
)
def test_wrong_trees_are_told_in_one_line(given, message):
    for act in (lambda kernel: kernel(given), lambda kernel: kernel([SENTENCE], given)):
        with pytest.raises(InputError) as caught:
            act(SubsetTreeKernel())
        assert str(caught.value).startswith(message)
        assert "\n" not in str(caught.value)


def test_wrong_rows_are_told_in_one_line():
    packed = SubsetTreeKernel().pack([SENTENCE])
    for act in (packed.block, packed.pairs):
        with pytest.raises(InputError, match=r"^there is no row 1; expected rows from 0 to 0$"):
            act([0], [1])
    with pytest.raises(InputError, match=r"^rows_b has the shape \(2,\); expected \(1,\), like rows_a$"):
        packed.pairs([0], [0, 0])


@pytest.mark.parametrize("centre", ["relation", "tag", "word"])
def test_dependency_trees_are_compared_around_any_centre(centre):
    one = DepTree(["Mary", "sleeps"], [2, 0], ["nsubj", "root"], upos=["N", "V"])
    other = DepTree(["John", "sleeps", "well"], [2, 0, 2], ["nsubj", "root", "advmod"], upos=["N", "V", "A"])
    kernel = PartialTreeKernel(centre=centre)
    expected = PartialTreeKernel()([to_constituents(tree, centre=centre) for tree in (one, other)])
    assert kernel([one, other]).tolist() == expected.tolist()


def test_trees_of_all_kinds_are_compared():
    nltk = pytest.importorskip("nltk")
    kinds = [SENTENCE, ConstTree.parse(SENTENCE), nltk.Tree.fromstring(SENTENCE), np.str_(SENTENCE)]
    assert SubsetTreeKernel(decay=1)(kinds, np.array([SENTENCE], dtype=object)).tolist() == [[40]] * 4
    part = ConstTree.parse(SENTENCE).children[1]
    assert SubsetTreeKernel(decay=1)([part]).tolist() == [[17]]


def test_python_code_is_compared():
    code = ["def f(x):\n    return x + 1", "def f(y):\n    return y + 1", "for x in y:\n    print(x)"]
    values = PartialTreeKernel(normalize=True)([ConstTree.from_python(each) for each in code])
    assert 1 > values[0, 1] > values[0, 2] > 0


def make_labelled(n_trees=40):
    """Make trees of two classes, by what stands under their roots besides others."""
    trees = draw_trees(8, n_trees=n_trees)
    labels = np.arange(n_trees) % 3 == 0
    telling = {True: Node("A", (Node("a"),)), False: Node("A", (Node("b"),))}
    return as_trees(
        [Node("S", (tree, telling[label])) for tree, label in zip(trees, labels, strict=True)]
    ), labels


def test_parameters_are_kept_and_cloned():
    kernel = SmoothedPartialTreeKernel((KNOWN, TABLE), decay=0.3, max_children=4)
    assert clone(kernel).get_params() == kernel.get_params()
    names = {"decay", "normalize", "words", "centre", "n_jobs"}
    assert set(SubsetTreeKernel().get_params()) == set(SubtreeKernel().get_params()) == names
    assert set(PartialTreeKernel().get_params()) == names | {"depth_decay", "max_children"}
    assert pickle.loads(pickle.dumps(kernel)).get_params() == kernel.get_params()


@pytest.mark.parametrize("machine", [SVC, TreeKernelClassifier])
def test_the_decay_is_searched_by_scikit_learn(machine):
    trees, labels = make_labelled()
    search = GridSearchCV(
        machine(kernel=SubsetTreeKernel(normalize=True)), {"kernel__decay": [0.2, 0.8]}, cv=2
    )
    search.fit(trees, labels)
    assert search.best_params_["kernel__decay"] in (0.2, 0.8)
    assert search.score(trees, labels) > 0.9


def test_a_kernel_is_a_step_of_a_pipeline():
    trees, labels = make_labelled()
    model = make_pipeline(SubsetTreeKernel(normalize=True), LinearSVC())
    assert model.fit(trees, labels).score(trees, labels) > 0.9
    assert model[0].transform(trees[:3]).shape == (3, len(trees))


NODES = st.recursive(
    st.sampled_from("ABab").map(Node),
    lambda below: st.builds(Node, st.sampled_from("AB"), st.lists(below, min_size=1, max_size=4).map(tuple)),
    max_leaves=8,
)


@given(
    st.lists(NODES, min_size=2, max_size=6),
    st.sampled_from([*SIMPLE[:3], SmoothedPartialTreeKernel(VECTORS)]),
)
@settings(max_examples=80)
def test_no_eigenvalue_is_negative(trees, kernel):
    for normalize in (False, True):
        square = clone(kernel).set_params(normalize=normalize)(as_trees(trees))
        values = np.linalg.eigvalsh(square)
        assert values.min() >= -1e-6 * max(values.max(), 1e-300)


@pytest.mark.parametrize("options", [{}, {"max_children": 2}, {"words": "none"}, {"normalize": True}])
def test_words_like_none_but_themselves_give_partial_trees(options):
    trees = as_trees(draw_trees(9))
    expected = PartialTreeKernel(**options)(trees)
    for similarity in ((KNOWN, np.eye(3)), {"a": [1, 0], "b": [0, 1]}, {}):
        assert_close(SmoothedPartialTreeKernel(similarity, **options)(trees), expected)


def test_vectors_have_their_cosine_as_similarity():
    vectors = np.array(list(VECTORS.values()))
    lengths = np.linalg.norm(vectors, axis=1)
    table = vectors @ vectors.T / np.outer(lengths, lengths)
    trees = as_trees(draw_trees(10))
    found, expected = SmoothedPartialTreeKernel(VECTORS), SmoothedPartialTreeKernel((list(VECTORS), table))
    np.testing.assert_allclose(found(trees), expected(trees), rtol=1e-5, atol=1e-9)
