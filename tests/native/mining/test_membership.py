import numpy as np
import pytest
from oracle.mining import membership as twin

from treewright.mining.active import are_members

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("seed", range(4))
def test_members_are_those_rows_that_equal_one_of_the_others(seed, width):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 4, size=(60, width), dtype=np.int32)
    others = np.unique(rng.integers(0, 4, size=(30, width), dtype=np.int32), axis=0)
    found = are_members(rows, others).tolist()
    assert found == twin.members(rows.tolist(), others.tolist())
    assert width == 1 or len(set(found)) == 2


@pytest.mark.parametrize(("n_rows", "n_others"), [(0, 3), (3, 0), (0, 0)])
def test_nothing_is_a_member_of_nothing(n_rows, n_others):
    rows, others = (np.arange(2 * n, dtype=np.int32).reshape(n, 2) for n in (n_rows, n_others))
    assert are_members(rows, others).tolist() == [False] * n_rows
