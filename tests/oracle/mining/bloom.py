"""The spectral Bloom filter with a Python integer for each counter."""

from oracle.hashing import mix


class Filter:
    """Counters in `n_blocks` blocks of `block` counters; a key has `n_hashes` counters of one block."""

    def __init__(self, limit, n_hashes, n_blocks, block):
        self.limit = limit
        self.n_hashes = n_hashes
        self.n_blocks = n_blocks
        self.block = block
        self.counters = [0] * (n_blocks * block)

    def probes(self, key):
        """Return the numbers of a key's counters; some may be the same."""
        hashed = mix(mix(0, key), 1)
        start = (mix(hashed, 2) >> 20) % self.n_blocks * self.block
        found = []
        for number in range(self.n_hashes):
            if self.block <= 4096 and number < 5:
                found.append(start + (hashed >> 12 * number) % self.block)
            else:
                found.append(start + (mix(hashed, number + 3) >> 20) % self.block)
        return found

    def estimate(self, key):
        return min(self.counters[index] for index in self.probes(key))

    def add(self, key):
        """Increase the smallest counters of a key unless all are at the limit; return their old value."""
        smallest = self.estimate(key)
        if smallest < self.limit:
            for index in set(self.probes(key)):
                self.counters[index] += self.counters[index] == smallest
        return smallest


def unpack(words, width):
    """Return the counters in words, which are read as one long number."""
    number = sum(int(word) << (64 * at) for at, word in enumerate(words))
    return [number >> bit & ((1 << width) - 1) for bit in range(0, 64 * len(words), width)]


def pack(counters, width):
    """Return the words that hold counters."""
    number = sum(counter << (width * at) for at, counter in enumerate(counters))
    return [number >> bit & (2**64 - 1) for bit in range(0, width * len(counters), 64)]
