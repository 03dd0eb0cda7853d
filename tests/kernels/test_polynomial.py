import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone

from treewright.errors import InputError
from treewright.kernels.polynomial import PolynomialKernel


def draw(random_state, n_rows=40):
    rng = np.random.default_rng(random_state)
    return (rng.random((n_rows, 15)) < rng.random((n_rows, 1))).astype(float)


@pytest.mark.parametrize("degree", [1, 2, 4, 8])
def test_values_are_powers_of_dot_products_plus_one(degree):
    dense = draw(degree)
    found = PolynomialKernel(degree, normalize=False)(csr_matrix(dense))
    np.testing.assert_allclose(found, (dense @ dense.T + 1) ** degree, rtol=1e-12)


@pytest.mark.parametrize("degree", [1, 4])
def test_normalized_values_are_divided_by_geometric_means(degree):
    dense = draw(degree)
    values = (dense @ dense.T + 1) ** degree
    norms = np.sqrt(np.diag(values))
    np.testing.assert_allclose(PolynomialKernel(degree)(csr_matrix(dense)), values / np.outer(norms, norms))


def test_values_too_large_are_normalized_like_others():
    rows = csr_matrix(np.ones((2, 5000)))
    np.testing.assert_allclose(PolynomialKernel(100)(rows), 1)


def test_two_matrices_give_a_part_of_the_square():
    rows = csr_matrix(draw(1))
    kernel = PolynomialKernel(3)
    assert kernel(rows[:7], rows[7:]).tolist() == kernel(rows)[:7, 7:].tolist()


def test_blocks_of_rows_in_any_order_are_parts_of_the_square():
    rows = csr_matrix(draw(2))
    rows_a, rows_b = [5, 39, 0, 5], [7, 1, 1]
    found = PolynomialKernel(2).pack(rows).block(rows_a, rows_b)
    assert found.tolist() == PolynomialKernel(2)(rows)[np.ix_(rows_a, rows_b)].tolist()


@pytest.mark.parametrize("normalize", [False, True])
def test_other_rows_are_compared_with_those_packed(normalize):
    rows = csr_matrix(draw(3))
    kernel = PolynomialKernel(3, normalize=normalize)
    assert kernel.pack(rows[7:]).compare(rows[:7]).tolist() == kernel(rows)[:7, 7:].tolist()


@pytest.mark.parametrize("normalize", [False, True])
def test_the_diagonal_is_that_of_the_square(normalize):
    packed = PolynomialKernel(3, normalize=normalize).pack(csr_matrix(draw(4)))
    rows = np.arange(len(packed))
    np.testing.assert_allclose(packed.diagonal(), packed.block(rows, rows).diagonal(), rtol=1e-12)


def test_rows_may_stand_alone():
    rows = csr_matrix(draw(5))
    kernel = PolynomialKernel(2)
    assert kernel([rows[number] for number in range(40)]).tolist() == kernel(rows).tolist()


def test_a_copy_of_the_kernel_has_its_options():
    assert clone(PolynomialKernel(2, normalize=False)).get_params() == {"degree": 2, "normalize": False}


def test_rows_become_their_values_with_those_fitted():
    rows = csr_matrix(draw(6))
    kernel = PolynomialKernel(2).fit(rows[:5])
    assert kernel.transform(rows).tolist() == PolynomialKernel(2)(rows)[:, :5].tolist()


def test_stored_zeros_do_not_count():
    rows = csr_matrix((np.array([1.0, 0.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2))
    assert PolynomialKernel(1, normalize=False)(rows).tolist() == [[2]]


def test_the_given_matrix_stays_as_it_is():
    rows = csr_matrix((np.array([1.0, 0.0]), np.array([1, 0]), np.array([0, 2])), shape=(1, 2))
    PolynomialKernel(1)(rows)
    assert rows.indices.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("degree", "rows", "message"),
    [
        (0, csr_matrix([[1]]), "degree is 0; expected an integer of at least 1"),
        (2, csr_matrix([[1.0, 0.5]]), "rows has the value 0.5; expected only 0 and 1"),
        (2, [[1]], "rows is list; expected a sparse matrix"),
    ],
)
def test_bad_input_is_told(degree, rows, message):
    with pytest.raises(InputError, match=message):
        PolynomialKernel(degree)(rows)


def test_different_numbers_of_columns_are_told():
    with pytest.raises(InputError, match="rows have 2 columns; expected 3, like the packed rows"):
        PolynomialKernel(2)(csr_matrix((1, 2)), csr_matrix((1, 3)))


def test_rows_that_are_not_there_are_told():
    with pytest.raises(InputError, match="there is no row 2; expected rows from 0 to 1"):
        PolynomialKernel(2).pack(csr_matrix((2, 2))).block([2], [0])
