"""Keys, with Python's integers."""

PRIME = 0x9E3779B97F4A7C15


def mix(key, value):
    key = (key ^ value) * PRIME % 2**64
    return key ^ (key >> 29)


def mix_all(*values):
    """Mix values one after another, from PRIME on."""
    key = PRIME
    for value in values:
        key = mix(key, value)
    return key
