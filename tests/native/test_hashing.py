import numpy as np
import pytest
from oracle import hashing as twin

from treewright.native import hashing as native

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

KEYS = (0, 1, twin.PRIME, 2**64 - 1)


@pytest.mark.parametrize("value", [0, 1, 77, 2**31 - 1])
def test_mix_is_arithmetic_modulo_two_to_the_64(value):
    for key in KEYS:
        assert int(native.mix(np.uint64(key), value)) == twin.mix(key, value)


@pytest.mark.parametrize("fold", [29, 32])
def test_arrays_are_mixed_element_by_element(fold):
    pairs = [(key, value) for key in KEYS for value in (0, 1, 77, 2**64 - 1)]
    keys, values = np.array(pairs, dtype=np.uint64).T
    expected = [twin.mix(key, value, fold) for key, value in pairs]
    assert native.mix_arrays(keys, values, np.uint64(fold)).tolist() == expected


def test_arrays_and_single_keys_are_mixed_alike():
    values = np.random.default_rng(0).integers(2**31, size=50, dtype=np.uint32)
    keys = native.mix_arrays(np.full(50, native.PRIME), values)
    assert keys.tolist() == [int(native.mix(native.PRIME, value)) for value in values]


@pytest.mark.parametrize("text", ["", "h.tag m.tag", "Ärger", "\udc80"])
def test_texts_have_the_same_key_in_every_run(text):
    assert native.hash_text(text) == twin.hash_text(text)
