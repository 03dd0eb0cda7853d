import numpy as np

from treewright.learn.weights import SMALLEST_SHARE, average, make_table, pack, table_shift, unpack


def test_packed_weights_keep_sign_and_size_within_a_twentieth():
    rng = np.random.default_rng(0)
    weights = (rng.normal(size=5000) * np.exp(rng.normal(size=5000) * 2)).astype(np.float32)
    restored = unpack(pack(weights))
    large = np.abs(weights) > 2 * SMALLEST_SHARE * np.abs(weights).max()
    np.testing.assert_allclose(restored[large], weights[large], rtol=0.05)
    assert np.abs(restored[~large] - weights[~large]).max() <= 2 * SMALLEST_SHARE * np.abs(weights).max()


def test_packing_takes_a_byte_a_weight_and_keeps_zeros():
    weights = np.array([0, 1, -1, 0, 0.5], dtype=np.float32)
    packed = pack(weights)
    assert packed["codes"].nbytes == 5
    restored = unpack(packed)
    assert restored[[0, 3]].tolist() == [0, 0]
    np.testing.assert_allclose(restored[[1, 2]], [1, -1], rtol=1e-6)


def test_a_table_of_zeros_can_be_packed():
    assert not unpack(pack(make_table(4))).any()


def test_the_shift_numbers_every_slot_and_no_more():
    for bits in (10, 20, 23):
        shift = table_shift(make_table(bits))
        assert np.uint64(2**64 - 1) >> shift == (1 << bits) - 1


def test_the_average_is_the_mean_over_steps():
    history = [np.array([1.0, 0.0]), np.array([1.0, 2.0]), np.array([3.0, 2.0])]
    totals = np.zeros(2)
    before = np.zeros(2)
    for step, now in enumerate(history):
        totals += step * (now - before)
        before = now
    mean = average(before.astype(np.float32), totals, len(history))
    np.testing.assert_allclose(mean, np.mean(history, axis=0), rtol=1e-6)
