import math

import pytest
from oracle.kernels import semirings as twin

from treewright.native.kernels.semirings import one_plus, plus, times, zero

NUMBERS = [0.0, 1e-12, 0.3, 1.0, 2.5, 1e9]
PAIRS = [(one, other) for one in NUMBERS for other in NUMBERS]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_numbers_are_added_and_multiplied_as_they_are(one, other):
    assert plus(one, other, False) == one + other
    assert times(one, other, False) == one * other
    assert one_plus(one, False) == 1 + one


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_logarithms_stand_for_their_numbers(one, other):
    one, other = twin.log(one), twin.log(other)
    assert plus(one, other, True) == pytest.approx(twin.plus(one, other), abs=1e-12)
    assert times(one, other, True) == pytest.approx(twin.times(one, other), abs=1e-12)
    assert one_plus(one, True) == pytest.approx(twin.plus(0.0, one), abs=1e-12)


def test_nothing_changes_no_sum_and_empties_any_product():
    for is_log in (False, True):
        assert plus(zero(is_log), 0.7, is_log) == plus(0.7, zero(is_log), is_log) == 0.7
        assert plus(zero(is_log), zero(is_log), is_log) == zero(is_log)
        assert times(zero(is_log), 0.7, is_log) == zero(is_log)


def test_sums_of_what_no_number_can_hold_are_finite():
    assert plus(5000.0, 5000.0, True) == pytest.approx(5000 + math.log(2), rel=1e-15)
    assert one_plus(5000.0, True) == 5000.0
    assert one_plus(-5000.0, True) == 0.0
