import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from strategies import heads

from treewright.data.deptree import DepTree
from treewright.data.svmlight import SparseVector, read_tree_examples
from treewright.errors import InputError
from treewright.kernels.base import Kernel
from treewright.kernels.compose import Normalized, Part, Power, Product, Sum, VectorKernel
from treewright.kernels.deptree import DependencyTreeKernel
from treewright.kernels.polynomial import PolynomialKernel

FEATURES = ("h.word m.word", "h.tag m.tag")
TREES = DependencyTreeKernel(features=FEATURES, decay=0.5)
LINEAR = VectorKernel()


def draw_vectors(random_state, n_rows=12):
    rng = np.random.default_rng(random_state)
    return rng.normal(size=(n_rows, 5)) * (rng.random((n_rows, 5)) < 0.6)


def draw_examples(random_state, n_examples=9):
    """Draw pairs of a small tree and a vector; every fourth tree is missing."""
    rng = np.random.default_rng(random_state)
    vectors = draw_vectors(random_state, n_examples)
    return [(draw_tree(rng) if number % 4 else None, vector) for number, vector in enumerate(vectors)]


def draw_tree(rng):
    n = int(rng.integers(1, 6))
    words, tags = ([f"{kind}{number}" for number in rng.integers(2, size=n)] for kind in "wt")
    return DepTree(words, [int(rng.integers(0, word + 1)) for word in range(n)], xpos=tags)


def check_contract(kernel, examples):
    """Check that packed examples give the parts of the one square in all ways."""
    whole = kernel(examples)
    packed = kernel.pack(examples)
    rows_a, rows_b = [3, 0, 3, 5], [1, 4]
    close = {"rtol": 1e-10, "atol": 1e-12}
    np.testing.assert_allclose(packed.block(rows_a, rows_b), whole[np.ix_(rows_a, rows_b)], **close)
    np.testing.assert_allclose(packed.diagonal(), np.diag(whole), **close)
    np.testing.assert_allclose(kernel.pack(examples[4:]).compare(examples[:4]), whole[:4, 4:], **close)
    np.testing.assert_allclose(kernel(examples[:4], examples[4:]), whole[:4, 4:], **close)
    assert len(packed) == len(examples)
    assert packed.compare(examples[:0]).shape == (0, len(examples))


# vectors


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (VectorKernel(), lambda a, b: a @ b),
        (VectorKernel("polynomial", degree=2, offset=0.5, gamma=2.0), lambda a, b: (2 * (a @ b) + 0.5) ** 2),
        (VectorKernel("rbf", gamma=0.3), lambda a, b: np.exp(-0.3 * ((a - b) ** 2).sum())),
        (VectorKernel(normalize=True), lambda a, b: a @ b / np.sqrt((a @ a) * (b @ b))),
        (
            VectorKernel("polynomial", normalize=True),
            lambda a, b: ((a @ b + 1) / np.sqrt((a @ a + 1) * (b @ b + 1))) ** 3,
        ),
    ],
)
def test_vector_kernels_are_what_they_say(kernel, expected):
    vectors = np.random.default_rng(1).normal(size=(6, 4))
    values = [[expected(a, b) for b in vectors] for a in vectors]
    np.testing.assert_allclose(kernel(vectors), values)


@pytest.mark.parametrize("kind", ["linear", "polynomial", "rbf"])
@pytest.mark.parametrize("normalize", [False, True])
def test_dense_and_sparse_vectors_have_the_same_values(kind, normalize):
    vectors = draw_vectors(2)
    kernel = VectorKernel(kind, gamma=0.5, normalize=normalize)
    expected = kernel(vectors)
    for examples in (csr_matrix(vectors), list(vectors), [csr_matrix([row]) for row in vectors]):
        np.testing.assert_allclose(kernel(examples), expected, atol=1e-12)
    np.testing.assert_allclose(kernel(csr_matrix(vectors), vectors), expected, atol=1e-12)
    np.testing.assert_allclose(kernel(vectors, csr_matrix(vectors)), expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["linear", "polynomial", "rbf"])
@pytest.mark.parametrize("make", [np.asarray, csr_matrix, list])
def test_packed_vectors_keep_the_contract(kind, make):
    vectors = draw_vectors(3)
    kernel = VectorKernel(kind, normalize=True)
    if make is csr_matrix:
        np.testing.assert_allclose(
            kernel.pack(csr_matrix(vectors)).compare(csr_matrix(vectors)), kernel(vectors), atol=1e-12
        )
    else:
        check_contract(kernel, make(vectors))


def test_a_vector_of_zeros_is_like_no_other_when_normalized():
    found = VectorKernel(normalize=True)([[0.0, 0.0], [1.0, 0.0]])
    assert found.tolist() == [[0, 0], [0, 1]]


def test_columns_that_those_packed_do_not_have_count_in_norms():
    known = [SparseVector(np.array([1]), np.array([3.0]))]
    new = [SparseVector(np.array([1, 7]), np.array([3.0, 4.0]))]
    assert VectorKernel(normalize=True).pack(known).compare(new).tolist() == [[pytest.approx(0.6)]]
    assert VectorKernel("rbf", gamma=0.1).pack(known).compare(new).tolist() == [[pytest.approx(np.exp(-1.6))]]


def test_vector_kernels_are_functions_for_support_vector_machines():
    vectors = draw_vectors(4, 40)
    labels = vectors[:, 0] > 0
    kernel = VectorKernel("rbf", gamma=0.5)
    ours = SVC(kernel=kernel).fit(vectors, labels).decision_function(vectors)
    theirs = SVC(kernel="rbf", gamma=0.5).fit(vectors, labels).decision_function(vectors)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


# parts


def test_a_part_is_found_by_position_key_name_or_several():
    vectors = draw_vectors(5)
    expected = LINEAR(vectors).tolist()
    assert Part(LINEAR, 1)([("a", row) for row in vectors]).tolist() == expected
    assert Part(LINEAR, "x")([{"x": row} for row in vectors]).tolist() == expected
    assert Part(LINEAR, ("y", 0, "x"))([{"y": [{"x": row}]} for row in vectors]).tolist() == expected
    assert Part(LINEAR, ("real",))(vectors).tolist() == expected


def test_parts_of_read_examples_are_compared():
    lines = "1 |BT| |ET| 1:1 3:2\n2 |BT| |ET| 3:0.5\n"
    examples = read_tree_examples(io.BytesIO(lines.encode()))
    assert Part(LINEAR, ("vectors", 0))(examples).tolist() == [[5, 1], [1, 0.25]]
    assert Part(TREES, ("trees", 0))(examples).tolist() == [[0, 0], [0, 0]]


def test_sparse_rows_are_parts():
    rows = csr_matrix(draw_vectors(6) > 0, dtype=float)
    examples = [{"bag": rows[number]} for number in range(rows.shape[0])]
    kernel = PolynomialKernel(2)
    assert Part(kernel, "bag")(examples).tolist() == kernel(rows).tolist()


def test_missing_parts_have_nothing_in_common_with_any():
    examples = draw_examples(1)
    present = [number for number, (tree, _) in enumerate(examples) if tree is not None]
    expected = np.zeros((len(examples), len(examples)))
    expected[np.ix_(present, present)] = TREES([examples[number][0] for number in present])
    assert Part(TREES, 0)(examples).tolist() == expected.tolist()
    check_contract(Part(TREES, 0), examples)


def test_all_parts_may_be_missing():
    kernel = Part(LINEAR, 0)
    assert kernel([(None,), (None,)]).tolist() == [[0, 0], [0, 0]]
    assert kernel.pack([(None,)]).compare([([1.0, 2.0],)]).tolist() == [[0]]
    assert kernel.pack([(None,)]).diagonal().tolist() == [0]


# compositions


def make_compositions():
    tree, linear = Part(TREES, 0), Part(LINEAR, 1)
    bent = Part(VectorKernel("rbf", gamma=0.2), 1)
    return {
        "sum": Sum([tree, linear], weights=[0.5, 2]),
        "product": Product([tree, bent]),
        "power": Power(linear, degree=3, offset=0.5),
        "normalized sum": Normalized(Sum([tree, linear])),
        "power of normalized": Power(Normalized(tree), degree=2),
        "product of sum and power": Product([Sum([tree, bent]), Power(linear, degree=2)]),
        "operators": (2 * tree + bent * linear) ** 2,
    }


COMPOSITIONS = pytest.mark.parametrize("kernel", make_compositions().values(), ids=make_compositions())


@COMPOSITIONS
def test_compositions_keep_the_contract(kernel):
    check_contract(kernel, draw_examples(2))


def test_values_are_sums_products_and_powers():
    vectors = draw_vectors(7)
    a, b = VectorKernel(), VectorKernel("rbf")
    values_a, values_b = a(vectors), b(vectors)
    np.testing.assert_allclose(Sum([a, b], weights=[3, 0.5])(vectors), 3 * values_a + values_b / 2)
    np.testing.assert_allclose(Product([a, b, b])(vectors), values_a * values_b**2)
    np.testing.assert_allclose(Power(a, degree=3, offset=2)(vectors), (values_a + 2) ** 3)
    norms = np.sqrt(np.diag(values_a))
    np.testing.assert_allclose(Normalized(a)(vectors), values_a / np.outer(norms, norms))


def test_operators_make_the_same_compositions():
    a, b, c = VectorKernel(), VectorKernel("rbf"), VectorKernel("polynomial")
    assert repr(a + b) == repr(Sum([a, b]))
    assert repr(a + b + c) == repr(Sum([a, b, c]))
    assert repr(2 * (a + 0.5 * b)) == repr(Sum([a, b], weights=[2.0, 1.0]))
    assert repr(a * 3) == repr(Sum([a], weights=[3.0]))
    assert repr(a * b * c) == repr(Product([a, b, c]))
    assert repr(a**2) == repr(Power(a, degree=2, offset=0.0))
    assert repr(Sum([("x", a)]) + b) == repr(Sum([("x", a), b]))


def test_kernels_are_not_changed_by_what_is_made_of_them():
    kernel = Sum([VectorKernel()])
    _ = 2 * kernel + kernel
    assert kernel.weights is None
    assert len(kernel.kernels) == 1


@pytest.mark.parametrize("other", [object(), None])
def test_what_is_no_kernel_cannot_be_added_or_multiplied(other):
    with pytest.raises(TypeError, match="unsupported operand"):
        LINEAR + other
    with pytest.raises(TypeError, match="unsupported operand"):
        LINEAR * other


def test_one_array_can_stand_for_two_kernels():
    class Kept(Kernel):
        """Gives the same array each time, as a kernel with a cache would."""

        def pack(self, examples):
            return PackedOnce(examples)

    class PackedOnce:
        def __init__(self, examples):
            self.values = np.array(examples, dtype=float)

        def __len__(self):
            return len(self.values)

        def block(self, rows_a, rows_b):
            return self.values

    values = [[4.0, 1.0], [1.0, 3.0]]
    packed = Product([Sum([Kept(), Kept()]), Kept(), Power(Kept())]).pack(values)
    packed.block([0, 1], [0, 1])
    expected = 2 * np.square(values) * (np.array(values) + 1) ** 2
    assert packed.block([0, 1], [0, 1]).tolist() == expected.tolist()


# positive semi-definite


def small_trees():
    def build(size):
        column = st.lists(st.sampled_from("ab"), min_size=size, max_size=size)
        return st.builds(
            lambda words, tags, above: DepTree(words, above, xpos=tags), column, column, heads(size)
        )

    return st.none() | st.integers(1, 4).flatmap(build)


def small_vectors():
    return st.lists(st.integers(-3, 3).map(float), min_size=3, max_size=3)


@pytest.mark.slow_cases
@COMPOSITIONS
@given(examples=st.lists(st.tuples(small_trees(), small_vectors()), min_size=2, max_size=7))
def test_no_eigenvalue_of_a_composition_is_negative(kernel, examples):
    values = kernel(examples)
    np.testing.assert_allclose(values, values.T, rtol=1e-12, atol=1e-12)
    eigenvalues = np.linalg.eigvalsh(values)
    assert eigenvalues.min() >= -1e-9 * max(eigenvalues.max(), 0) - 1e-300


@pytest.mark.slow_cases
@pytest.mark.parametrize("kind", ["linear", "polynomial", "rbf"])
@pytest.mark.parametrize("normalize", [False, True])
@given(vectors=st.lists(small_vectors(), min_size=2, max_size=8))
def test_no_eigenvalue_of_a_vector_kernel_is_negative(kind, normalize, vectors):
    eigenvalues = np.linalg.eigvalsh(VectorKernel(kind, normalize=normalize)(vectors))
    assert eigenvalues.min() >= -1e-9 * max(eigenvalues.max(), 0)


# parameters


def test_parameters_are_reached_by_name_or_position():
    kernel = Sum([("tree", Part(DependencyTreeKernel(), 0)), Part(VectorKernel(), 1)])
    assert {"kernels", "weights", "tree", "tree__kernel__decay", "1", "1__kernel__gamma"} <= set(
        kernel.get_params()
    )
    kernel.set_params(tree__kernel__decay=0.25, weights=[1, 2], **{"1__kernel__gamma": 3.0})
    assert kernel.kernels[0][1].kernel.decay == 0.25
    assert kernel.kernels[1].kernel.gamma == 3.0
    assert kernel.weights == [1, 2]


def test_kernels_are_replaced_by_name_or_position():
    first, kernel = Sum([("tree", VectorKernel())]), Sum([("tree", VectorKernel()), VectorKernel()])
    kernel.set_params(tree=first, tree__weights=[2], **{"1": VectorKernel("rbf")})
    assert kernel.kernels[0] == ("tree", first)
    assert first.weights == [2]
    assert kernel.kernels[1].kind == "rbf"
    kernel.set_params(kernels=[LINEAR])
    assert kernel.get_params()["0"] is LINEAR


def test_unknown_parameters_are_refused():
    with pytest.raises(ValueError, match="Sum has no parameter 'decay'; expected one of kernels, weights"):
        Sum([LINEAR]).set_params(decay=1)


@COMPOSITIONS
def test_copies_are_equal_and_their_own(kernel):
    copy = clone(kernel)
    assert repr(copy) == repr(kernel)
    assert copy is not kernel
    for name, value in copy.get_params().items():
        if isinstance(value, Kernel):
            assert value is not kernel.get_params()[name]


def test_grids_are_searched_over_parameters_of_parts():
    examples = [(tree or DepTree(["a"], [0]), vector) for tree, vector in draw_examples(3, 30)]
    labels = [bool(vector[0] > 0) for _, vector in examples]
    kernel = Part(DependencyTreeKernel(features=FEATURES), 0) + Part(VectorKernel("rbf"), 1)
    pipeline = make_pipeline(kernel, SVC(kernel="precomputed"))
    grid = {"sum__0__kernel__decay": [0.1, 1.0], "sum__1__kernel__gamma": [0.1, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(examples, labels)
    assert search.cv_results_["mean_test_score"].shape == (4,)
    assert search.best_estimator_.predict(examples[:3]).shape == (3,)


# what is told


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Sum([LINEAR, LINEAR], weights=[1, -0.5]), r"weights\[1\] is -0.5; expected a number from 1e-12 to"),
        (Sum([LINEAR], weights=[0]), r"weights\[0\] is 0; expected a number from 1e-12"),
        (Sum([LINEAR], weights=["a"]), r"weights\[0\] is 'a'; expected a number from 1e-12"),
        (Sum([LINEAR], weights=[np.nan]), r"weights\[0\] is nan; expected a number from 1e-12"),
        (Sum([LINEAR], weights=[1, 2]), "weights has 2 values; expected 1, one for each kernel"),
        (Sum([]), r"kernels is \[\]; expected a list of kernels"),
        (Product(LINEAR), r"kernels is VectorKernel\(\); expected a list of kernels"),
        (Product([LINEAR, "rbf"]), r"kernels\[1\] is str; expected a kernel"),
        (Product([VectorKernel]), r"kernels\[0\] is the class VectorKernel; expected a kernel"),
        (
            Sum([("a", LINEAR), ("a", LINEAR)]),
            r"the name of kernels\[1\] is 'a'; expected a unique string",
        ),
        (Sum([("a__b", LINEAR)]), r"the name of kernels\[0\] is 'a__b'; expected a unique string"),
        (
            Sum([("weights", LINEAR)]),
            r"the name of kernels\[0\] is 'weights'; expected a unique string",
        ),
        (Power(LINEAR, degree=0.5), "degree is 0.5; expected an integer of at least 1"),
        (Power(LINEAR, offset=-1), r"offset is -1; expected a number from 0 to 1e\+12"),
        (LINEAR**-1, "degree is -1; expected an integer of at least 1"),
        (Power("rbf"), "kernel is str; expected a kernel"),
        (Normalized(None), "kernel is NoneType; expected a kernel"),
        (Part(3, 0), "kernel is int; expected a kernel"),
        (Part(LINEAR, 7), r"example 0, of the type list, has no part 7; expected a part at \(7,\)"),
        (Part(LINEAR, "x"), r"example 0, of the type list, has no part 'x'; expected a part at \('x',\)"),
        (VectorKernel("cubic"), "kind is 'cubic'; expected one of linear, polynomial, rbf"),
        (VectorKernel("rbf", gamma=0), "gamma is 0; expected a number from 1e-12"),
        (VectorKernel(normalize=1), "normalize is 1; expected one of False, True"),
    ],
)
def test_bad_options_are_told_when_they_are_used(kernel, message):
    with pytest.raises(InputError, match=message):
        kernel([[1.0, 2.0], [3.0, 4.0]])


def test_a_negative_weight_is_told_at_once():
    with pytest.raises(InputError, match=r"weights\[0\] is -2; expected a number from 1e-12"):
        -2 * LINEAR


@pytest.mark.parametrize(
    "kernel",
    [
        Power(LINEAR, degree=400),
        Product([LINEAR] * 400),
        VectorKernel("polynomial", degree=400),
        Normalized(VectorKernel("polynomial", degree=400)),
    ],
    ids=["power", "product", "polynomial", "normalized"],
)
def test_values_too_large_are_told(kernel):
    with pytest.raises(
        InputError, match="a kernel value overflows; expected a finite number; use normalize=True"
    ):
        kernel([[1.0, 2.0], [3.0, 4.0]])


def test_rows_that_are_not_there_are_told():
    for kernel in (LINEAR, Part(LINEAR, 0), Normalized(LINEAR)):
        examples = [[[1.0]]] if isinstance(kernel, Part) else [[1.0]]
        with pytest.raises(InputError, match="there is no row 1; expected rows from 0 to 0"):
            kernel.pack(examples).block([0], [1])
