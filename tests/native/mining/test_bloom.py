from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.mining import bloom as twin

from treewright.mining.bloom import SpectralBloomFilter
from treewright.native.mining.bloom import (
    Bloom,
    add,
    add_all,
    block_start,
    estimate_all,
    hash_key,
    increase,
    read,
    smallest_counter,
)

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

KEYS = st.integers(0, 9) | st.integers(0, 2**64 - 1)
SEQUENCES = st.lists(KEYS, max_size=60)
WIDTHS = [2, 4, 8, 16, 32]


def estimate(bloom, key):
    hashed = np.uint64(hash_key(key))
    return smallest_counter(bloom, hashed, np.uint64(block_start(bloom, hashed)))


@st.composite
def filters(draw):
    """Draw an empty filter, of so few counters that keys share them, and its twin."""
    limit = draw(st.integers(1, 20))
    width = next(width for width in WIDTHS if limit < 2**width)
    n_words = draw(st.sampled_from([1, 2, 8, 16]))
    n_counters = n_words * 64 // width
    block = min(n_counters, 8) if draw(st.booleans()) else n_counters
    shape = (limit, draw(st.integers(1, 6)), n_counters // block, block)
    return Bloom(np.zeros(n_words, np.uint64), width, *shape), twin.Filter(*shape)


def as_keys(values):
    return np.array(values, dtype=np.uint64)


def counters(bloom):
    return twin.unpack(bloom.words, bloom.width)


@given(filters(), SEQUENCES)
def test_an_estimate_is_never_below_the_count(both, sequence):
    bloom, _ = both
    for key in sequence:
        add(bloom, np.uint64(key))
    for key, count in Counter(sequence).items():
        assert min(count, bloom.limit) <= estimate(bloom, np.uint64(key)) <= bloom.limit


@given(filters(), SEQUENCES)
def test_adding_returns_the_estimate_before(both, sequence):
    bloom, _ = both
    for key in as_keys(sequence):
        before = estimate(bloom, key)
        assert add(bloom, key) == before


@given(filters(), SEQUENCES)
def test_packed_counters_equal_those_of_the_twin(both, sequence):
    bloom, slow = both
    for key in sequence:
        assert add(bloom, np.uint64(key)) == slow.add(key)
        assert counters(bloom) == slow.counters


@given(filters(), SEQUENCES, SEQUENCES)
def test_estimates_equal_those_of_the_twin(both, sequence, others):
    bloom, slow = both
    for key in sequence:
        add(bloom, np.uint64(key))
        slow.add(key)
    for key in others:
        assert estimate(bloom, np.uint64(key)) == slow.estimate(key)


@given(filters(), SEQUENCES)
def test_only_the_smallest_counters_of_a_key_rise_and_by_one(both, sequence):
    bloom, slow = both
    for key in sequence:
        before = np.array(counters(bloom))
        smallest = add(bloom, np.uint64(key))
        own = [index for index in slow.probes(key) if before[index] == smallest < bloom.limit]
        expected = before.copy()
        expected[own] += 1
        assert counters(bloom) == expected.tolist()


@given(filters(), SEQUENCES)
def test_arrays_of_keys_are_taken_one_after_the_other(both, sequence):
    bloom, _ = both
    single = bloom._replace(words=bloom.words.copy())
    before, after = np.empty(len(sequence), np.int64), np.empty(len(sequence), np.int64)
    add_all(bloom, as_keys(sequence), before)
    estimate_all(bloom, as_keys(sequence), after)
    assert before.tolist() == [add(single, key) for key in as_keys(sequence)]
    assert after.tolist() == [estimate(single, key) for key in as_keys(sequence)]


@pytest.mark.parametrize(
    ("limit", "width"), [(0, 2), (3, 2), (4, 4), (15, 4), (16, 8), (255, 8), (300, 16), (65536, 32)]
)
def test_counters_are_as_narrow_as_the_limit_lets_them_be(limit, width):
    assert SpectralBloomFilter(limit, 64).native.width == width


@pytest.mark.parametrize("lines", [True, False])
@pytest.mark.parametrize("limit", [1, 3, 15, 255, 300])
def test_a_key_is_counted_up_to_the_limit_and_no_further(limit, lines):
    bloom = SpectralBloomFilter(limit, 128, lines=lines).native
    before = np.empty(limit + 5, np.int64)
    add_all(bloom, np.full(limit + 5, 77, np.uint64), before)
    assert before.tolist() == [*range(limit), *[limit] * 5]
    assert set(counters(bloom)) == {0, limit}


@pytest.mark.parametrize("width", WIDTHS)
def test_neighbours_in_a_word_are_untouched(width):
    rng = np.random.default_rng(width)
    n_counters = 3 * 64 // width
    values = rng.integers(0, 2**width - 1, size=n_counters).tolist()
    for index in range(n_counters):
        bloom = Bloom(as_keys(twin.pack(values, width)), width, 2**width - 1, 1, 1, n_counters)
        increase(bloom, np.uint64(index))
        expected = [value + (at == index) for at, value in enumerate(values)]
        assert counters(bloom) == expected
        assert [read(bloom, np.uint64(at)) for at in range(n_counters)] == expected
