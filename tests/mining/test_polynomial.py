import pytest

from treewright.errors import InputError
from treewright.mining.polynomial import PolynomialSpace


def test_a_conjunction_is_named_by_its_columns():
    assert PolynomialSpace([[1, 0]], names=["word=bank", "prev=the"]).name([0, 1]) == "word=bank & prev=the"
    assert PolynomialSpace([[1, 0]]).name([0, 1]) == "x0 & x1"


def test_rows_that_are_not_binary_are_refused():
    with pytest.raises(InputError, match="X has 2 in row 0, column 1; expected only 0 and 1"):
        PolynomialSpace([[1, 2]])
