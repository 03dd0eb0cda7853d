import numpy as np
import pytest

from treewright.errors import InputError
from treewright.mining.bloom import SpectralBloomFilter


def random_keys(rng, n):
    return rng.integers(0, 2**64, size=n, dtype=np.uint64)


@pytest.mark.parametrize(
    ("limit", "memory", "n_counters"),
    [(1, 64, 256), (3, 64, 256), (15, 64, 128), (255, 64, 64), (300, 64, 32), (3, 127, 256), (3, 1000, 2048)],
)
def test_memory_is_filled_with_counters_up_to_a_power_of_two(limit, memory, n_counters):
    for lines in (True, False):
        bloom = SpectralBloomFilter(limit, memory, lines=lines)
        assert bloom.n_counters == n_counters
        assert bloom.native.n_blocks * bloom.native.block == n_counters
        assert bloom.native.words.nbytes <= memory


def test_the_counters_of_a_key_share_a_line_of_the_cache_or_are_anywhere():
    assert SpectralBloomFilter(3, 1024).native.block == 256
    assert SpectralBloomFilter(3, 1024, lines=False).native.block == 4096


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ((-1, 64), "limit is -1; expected an integer of at least 0"),
        ((1.5, 64), "limit is 1.5; expected an integer of at least 0"),
        ((2**32, 64), "limit is 4294967296; expected at most 4294967295"),
        ((3, 63), "memory is 63; expected an integer of at least 64"),
        ((3, True), "memory is True; expected an integer of at least 64"),
    ],
)
def test_parameters_that_make_no_filter_are_refused(parameters, message):
    with pytest.raises(InputError) as refused:
        SpectralBloomFilter(*parameters)
    assert str(refused.value) == message


def test_a_filter_without_hashes_is_refused():
    with pytest.raises(InputError) as refused:
        SpectralBloomFilter(3, 64, n_hashes=0)
    assert str(refused.value) == "n_hashes is 0; expected an integer of at least 1"


def test_counts_are_exact_in_a_filter_that_is_almost_empty():
    bloom = SpectralBloomFilter(15, 1 << 16)
    keys = random_keys(np.random.default_rng(0), 20)
    counts = np.arange(20)
    bloom.add(np.repeat(keys, counts))
    assert bloom.estimate(keys).tolist() == np.minimum(counts, 15).tolist()


def test_add_returns_what_each_key_was_counted_before():
    bloom = SpectralBloomFilter(3, 1024)
    assert bloom.add(np.array([7, 8, 7, 7, 7, 7], np.uint64)).tolist() == [0, 0, 1, 2, 3, 3]


@pytest.mark.parametrize("lines", [True, False])
def test_clear_forgets_all_keys(lines):
    bloom = SpectralBloomFilter(3, 256, lines=lines)
    keys = random_keys(np.random.default_rng(1), 100)
    first = bloom.add(keys)
    bloom.clear()
    assert bloom.estimate(keys).tolist() == [0] * 100
    assert bloom.add(keys).tolist() == first.tolist()


def consecutive_keys(rng, n):
    return rng.integers(0, 2**40, dtype=np.uint64) + np.arange(n, dtype=np.uint64)


@pytest.mark.parametrize("draw", [random_keys, consecutive_keys])
@pytest.mark.parametrize("lines", [True, False])
@pytest.mark.parametrize("load", [0.05, 0.1, 0.2, 0.4])
def test_unseen_keys_pass_at_the_expected_rate(load, lines, draw):
    rng = np.random.default_rng(2)
    bloom = SpectralBloomFilter(3, 1 << 14, lines=lines)
    n_keys = int(load * bloom.n_counters)
    rates = []
    for _ in range(25):
        keys = draw(rng, n_keys + 20_000)
        bloom.clear()
        bloom.add(keys[:n_keys])
        rates.append((bloom.estimate(keys[n_keys:]) > 0).mean())
    expected = bloom.false_positive_rate(n_keys)
    # The formula takes the counters of a key for independent, which in a line is wrong by about a hundredth.
    tolerance = 4 * np.std(rates) / np.sqrt(len(rates)) + (0.015 * expected if lines else 0)
    assert abs(np.mean(rates) - expected) < tolerance


@pytest.mark.parametrize("lines", [True, False])
def test_an_empty_filter_lets_no_key_pass(lines):
    assert SpectralBloomFilter(3, 1024, lines=lines).false_positive_rate(0) == 0


@pytest.mark.parametrize("keys", [[0.5], ["a"], [[1, 2]]])
def test_keys_that_are_no_list_of_integers_are_refused(keys):
    with pytest.raises(InputError, match=r"expected a 1-dimensional array of integers"):
        SpectralBloomFilter(3, 64).add(keys)
