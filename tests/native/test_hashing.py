import numpy as np
import pytest
from oracle import hashing as twin

from treewright.native import hashing as native

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")


@pytest.mark.parametrize("value", [0, 1, 77, 2**31 - 1])
def test_mix_is_arithmetic_modulo_two_to_the_64(value):
    for key in (0, 1, twin.PRIME, 2**64 - 1):
        assert int(native.mix(np.uint64(key), value)) == twin.mix(key, value)
