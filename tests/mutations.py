"""Damage to texts, files and models, drawn from a generator that the caller seeds."""

import gzip
import json
from random import Random

import numpy as np

PIECES = (
    *(
        b"",
        b"\n",
        b"\n\n",
        b"\r",
        b"\r\n",
        b"\t",
        b" ",
        b"\0",
        b"\x1f\x8b",
        b"\xef\xbb\xbf",
        b"\xff",
        b"\xed\xa0\x80",
    ),
    *(b"(", b")", b"((", b"()", b"*", b"_", b"-", b"#", b":", b"|BT|", b"|ET|", b"|BV|", b"|EV|", b"-NONE-"),
    *(
        b"0",
        b"1",
        b"-1",
        b"1-2",
        b"1.1",
        b"2147483648",
        b"9" * 25,
        b"9" * 5000,
        b"nan",
        b"inf",
        b"1e999",
        b"0x1",
    ),
    *(
        b"# global.columns = ID FORM HEAD",
        b"# global.columns = ID ID",
        b"Y",
        b"<",
        b"&x;",
        b"]]>",
        b"<!--",
        b"/>",
    ),
    *("ä".encode(), "\u2028".encode(), "\u0660".encode(), "\U0001f600".encode(), "e\u0301".encode()),
)
"""What stands in files, or in those of others, at places where nobody waits for it."""


def mutate_text(rng: Random, data: bytes, other: bytes) -> bytes:
    """Damage a text at some places: bytes, lines, columns, brackets, pieces of another text."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        data = rng.choice(TEXT_MUTATIONS)(rng, data, other)
    return gzip.compress(data, 1) if rng.random() < 0.03 else data


def mutate_bytes(rng: Random, data: bytes, other: bytes) -> bytes:
    """Damage a file at some places, without a look at what it holds."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        data = rng.choice(BYTE_MUTATIONS)(rng, data, other)
    return data


def make_garbage(rng: Random) -> bytes:
    """Return bytes that mean nothing, or pieces of formats in no order."""
    if rng.random() < 0.5:
        return rng.randbytes(rng.randrange(200))
    return b"".join(rng.choices(PIECES, k=rng.randrange(60)))


def _flip(rng, data, other):
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _overwrite(rng, data, other):
    at = rng.randrange(len(data) + 1)
    noise = rng.randbytes(rng.randrange(1, 16))
    return data[:at] + noise + data[at + len(noise) :]


def _cut_out(rng, data, other):
    begin, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:begin] + data[end:]


def _truncate(rng, data, other):
    return data[: rng.randrange(len(data) + 1)]


def _extend(rng, data, other):
    return data + rng.choice(
        (b"\0", b"\n", rng.randbytes(rng.randrange(1, 64)), data[: rng.randrange(1, 4096)])
    )


def _repeat(rng, data, other):
    begin, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:end] + data[begin : begin + 2000] * rng.randrange(1, 5) + data[end:]


def _splice(rng, data, other):
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def _insert_piece(rng, data, other):
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(PIECES) + data[at:]


def _change_lines(rng, data, other):
    """Let lines go, come twice, change places or come from another text."""
    lines = data.split(b"\n")
    at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(4)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(to, lines[at])
    elif kind == 2:
        lines[at], lines[to] = lines[to], lines[at]
    else:
        lines.insert(at, rng.choice(other.split(b"\n")))
    return b"\n".join(lines)


def _change_cells(rng, data, other):
    """Let columns of a line go, come twice, change places or hold something else."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    separator = b"\t" if b"\t" in lines[at] else b" "
    cells = lines[at].split(separator)
    one, two = rng.randrange(len(cells)), rng.randrange(len(cells))
    kind = rng.randrange(4)
    if kind == 0:
        del cells[one]
    elif kind == 1:
        cells.insert(two, cells[one])
    elif kind == 2:
        cells[one], cells[two] = cells[two], cells[one]
    else:
        cells[one] = rng.choice(PIECES)
    lines[at] = separator.join(cells)
    return b"\n".join(lines)


def _change_number(rng, data, other):
    """Let a digit be another one."""
    places = [at for at, byte in enumerate(data) if 48 <= byte <= 57]
    if not places:
        return data
    at = rng.choice(places)
    return data[:at] + rng.choice((b"0", b"9", b"-1", b"99", b"007", b"1.5")) + data[at + 1 :]


BYTE_MUTATIONS = (_flip, _flip, _overwrite, _cut_out, _truncate, _extend, _repeat, _splice)
TEXT_MUTATIONS = (*BYTE_MUTATIONS, *(_insert_piece, _change_lines, _change_cells, _change_number) * 3)


VALUES = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    63,
    10**6,
    2**31,
    2**63,
    10**30,
    -0.5,
    1e300,
    "",
    "x",
    "gold",
    [],
    [[]],
    {},
)
"""What a value of a model may be changed to."""
TYPES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64", "bool")


def mutate_state(rng: Random, state, other) -> None:
    """Change a model in a way that its checksum does not tell: values, arrays, parts, or its kind."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        place = rng.choice(list(_all_parts(state)))
        donor = rng.choice(list(_all_parts(other)))
        kind = rng.random()
        if kind < 0.55 and place.arrays:
            name = rng.choice(sorted(place.arrays))
            place.arrays[name] = _changed_array(rng, place.arrays[name], donor)
        elif kind < 0.93 and place.values:
            place.values = mutate_value(rng, place.values)
        elif kind < 0.97:
            _change_names(rng, place)
        else:
            place.kind = donor.kind


def _all_parts(state):
    yield state
    for part in state.parts.values():
        yield from _all_parts(part)


def _change_names(rng, state):
    """Let an array or a part go, or stand under another name."""
    for group in (state.arrays, state.parts):
        if group and rng.random() < 0.7:
            taken = group.pop(rng.choice(sorted(group)))
            if group and rng.random() < 0.5:
                group[rng.choice(sorted(group))] = taken


def _changed_array(rng, array, donor):
    kind = rng.randrange(8)
    if kind == 0:
        return array.astype(rng.choice(TYPES))
    if kind == 1:
        return array.reshape(rng.choice(((-1,), (1, -1), (-1, 1), (1, 1, -1))))
    if kind == 2:
        return array[: rng.randrange(len(array) + 1)] if array.ndim else array
    if kind == 3:
        return np.concatenate([array, array[: rng.randrange(1, 50)]]) if array.ndim else array[None]
    if kind == 4 and donor.arrays:
        return donor.arrays[rng.choice(sorted(donor.arrays))]
    return _with_other_numbers(rng, array)


def _with_other_numbers(rng, array):
    """Let some numbers of an array be others: too large, below 0, none, or any."""
    changed = array.copy()
    flat = changed.reshape(-1)
    if not flat.size or flat.dtype.kind not in "iufb":
        return changed
    for _ in range(rng.choice((1, 1, 3, flat.size if flat.size < 1000 else 100))):
        flat[rng.randrange(flat.size)] = _number_for(rng, flat.dtype)
    return changed


def _number_for(rng, dtype):
    if dtype.kind == "f":
        return rng.choice((0.0, -1.0, np.nan, np.inf, -np.inf, 1e30, rng.random()))
    if dtype.kind == "b":
        return rng.random() < 0.5
    limits = np.iinfo(dtype)
    number = rng.choice((0, 1, -1, 100, 10**6, limits.max, limits.min, rng.randrange(1 << 16)))
    return min(max(number, limits.min), limits.max)


def mutate_value(rng: Random, value):
    """Return JSON with one value in it changed."""
    if isinstance(value, dict) and value and rng.random() < 0.95:
        name = rng.choice(sorted(value))
        if rng.random() < 0.1:
            return {key: one for key, one in value.items() if key != name}
        return value | {name: mutate_value(rng, value[name])}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        if rng.random() < 0.2:
            return value[:at]
        return [*value[:at], mutate_value(rng, value[at]), *value[at + 1 :]]
    if isinstance(value, int) and rng.random() < 0.4:
        return value + rng.choice((-1, 1, 1000))
    return json.loads(json.dumps(rng.choice(VALUES)))
