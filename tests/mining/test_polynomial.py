import numpy as np
import pytest
from scipy.sparse import csr_matrix

from treewright.errors import InputError
from treewright.mining.polynomial import PolynomialSpace


def test_a_conjunction_is_named_by_its_columns():
    assert PolynomialSpace([[1, 0]], names=["word=bank", "prev=the"]).name([0, 1]) == "word=bank & prev=the"
    assert PolynomialSpace([[1, 0]]).name([0, 1]) == "x0 & x1"


def test_rows_that_are_not_binary_are_refused():
    with pytest.raises(InputError, match="X has 2 in row 0, column 1; expected only 0 and 1"):
        PolynomialSpace([[1, 2]])


def test_a_budget_of_candidates_and_a_limit_to_memory_exclude_each_other():
    with pytest.raises(InputError, match="budget is 9 and memory_limit is 64; expected one of them"):
        PolynomialSpace([[1, 0]], budget=9, memory_limit=64)


def test_rows_by_rows_are_not_copied():
    rows = csr_matrix(np.eye(3, dtype=np.int8))
    assert np.shares_memory(PolynomialSpace(rows).rows.indices, rows.indices)
    assert np.shares_memory(PolynomialSpace(rows).rows.data, rows.data)


def test_rows_with_columns_out_of_order_are_not_changed():
    rows = csr_matrix((np.ones(3, dtype=np.int8), [2, 0, 1], [0, 3]), shape=(1, 3))
    assert PolynomialSpace(rows).rows.indices.tolist() == [0, 1, 2]
    assert rows.indices.tolist() == [2, 0, 1]
