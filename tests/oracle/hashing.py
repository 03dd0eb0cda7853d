"""Hash keys, computed with Python integers."""

import hashlib

PRIME = 0x9E3779B97F4A7C15


def mix(key, value, fold=29):
    key = (key ^ value) * PRIME % 2**64
    return key ^ (key >> fold)


def mix_all(*values):
    """Mix values one after another, starting from PRIME."""
    key = PRIME
    for value in values:
        key = mix(key, value)
    return key


def hash_text(text):
    """Return a 64-bit BLAKE2b hash, read in little-endian order."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return sum(byte << 8 * at for at, byte in enumerate(digest))
