"""How any model is saved and loaded: one safetensors file, with the rest as JSON in its header.

A model gives its `State`: values that JSON can hold, arrays, and the states of models inside it. Nothing
in a file is ever executed. The header has a checksum of all of it, by which damage is found.
"""

import hashlib
import json
import math
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from treewright._version import __version__
from treewright.data.files import replacing
from treewright.errors import FormatError, InputError

FORMAT_VERSION = 4
SEPARATOR = "/"
UNREADABLE = (
    SafetensorError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    RecursionError,
    OverflowError,
    zlib.error,
)
"""What can go wrong with a file that is no model."""
MIN_DEFLATED = 4096
"""Bytes of an array below which it is not worth while to deflate it."""
MAX_INFLATED = 1 << 32
"""Bytes of the arrays of a model; a small file could otherwise fill any memory."""


@dataclass
class State:
    """All that a model is: its kind, plain values, arrays, and the models inside it.

    In a compact one, weights are rounded more, and the lightest are left out.
    """

    kind: str
    values: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    parts: dict[str, "State"] = field(default_factory=dict)
    compact: bool = False


class Persistent(Protocol):
    """What a model must offer to be saved."""

    def get_state(self) -> State:
        """Return all that the model is."""

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Make the model again."""


def save_state(state: State, path: str | os.PathLike[str]) -> None:
    """Write a model; the file appears whole or not at all, unless it is a pipe or a device."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    header = _pack(state, "", arrays)
    checksum = _digest(header, arrays)
    deflated = {name: found for name, array in arrays.items() if (found := _deflate(array)) is not None}
    content = {
        "format": FORMAT_VERSION,
        "version": __version__,
        "checksum": checksum,
        "model": header,
        "deflated": {name: [arrays[name].dtype.str, list(arrays[name].shape)] for name in deflated},
    }
    # One entry only: safetensors writes several in no fixed order.
    metadata = {"treewright": _as_json(content)}
    with replacing(Path(path)) as stream:
        stream.write(save(arrays | deflated, metadata))


def identify(state: State) -> str:
    """Return a name for a model, another one after any change."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    return _digest(_pack(state, "", arrays), arrays)


def _digest(header: dict[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    digest = hashlib.sha256(_as_json(header).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _deflate(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8] | None:
    """Return the first bytes of all numbers, then the second ones, deflated; None if that saves little."""
    if array.nbytes < MIN_DEFLATED:
        return None
    planes = np.ascontiguousarray(array.reshape(-1).view(np.uint8).reshape(-1, array.itemsize).T)
    found = np.frombuffer(zlib.compress(planes.tobytes(), 6), dtype=np.uint8)
    return found if found.nbytes < 0.9 * array.nbytes else None


def _inflate(
    arrays: Mapping[str, npt.NDArray[Any]], deflated: Mapping[str, tuple[str, list[int]]]
) -> dict[str, npt.NDArray[Any]]:
    """Return arrays as they were before `_deflate`."""
    found = {}
    n_bytes = 0
    for name, (letters, shape) in deflated.items():
        kind = np.dtype(letters)
        if kind.hasobject or any(not isinstance(size, int) or size < 1 for size in shape):
            raise ValueError(f"array {name} of {letters} and shape {shape}")
        size = math.prod(shape) * kind.itemsize
        n_bytes += size
        if n_bytes > MAX_INFLATED:
            raise ValueError(f"arrays of more than {MAX_INFLATED:,} bytes")
        raw = zlib.decompressobj().decompress(arrays[name].tobytes(), size + 1)
        if len(raw) != size:
            raise ValueError(f"array {name} of {len(raw)} bytes instead of {size}")
        planes = np.frombuffer(raw, dtype=np.uint8).reshape(kind.itemsize, -1)
        found[name] = np.ascontiguousarray(planes.T).reshape(-1).view(kind).reshape(shape)
    return found


def _as_json(content: dict[str, Any]) -> str:
    """Return JSON that can be written as UTF-8, which halves of surrogate pairs can only be with escapes."""
    text = json.dumps(content, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(content)
    return text


def load_state(path: str | os.PathLike[str]) -> State:
    """Read a model.

    Raises
    ------
    FormatError
        For a file that is no model, is damaged, or comes from a newer treewright.
    """
    name = os.fspath(path)
    with open(path, "rb"):
        pass  # a missing or unreadable file is the system's to name
    try:
        with safe_open(name, framework="numpy") as stream:
            content = _checked_content(name, stream.metadata() or {})
            arrays = {key: stream.get_tensor(key) for key in stream.keys()}  # noqa: SIM118
        arrays |= _inflate(arrays, content["deflated"])
        if _digest(content["model"], arrays) != content["checksum"]:
            raise FormatError(name, 1, "a checksum that is not that of the model", "a model as it was saved")
        return _unpack(content["model"], "", arrays)
    except UNREADABLE as error:
        raise FormatError(name, 1, f"no model that can be read ({error})", "a model of treewright") from error


def _checked_content(name: str, metadata: Mapping[str, str]) -> dict[str, Any]:
    if "treewright" not in metadata:
        raise FormatError(name, 1, "a safetensors file of another program", "a model of treewright")
    content: dict[str, Any] = json.loads(metadata["treewright"])
    if content["format"] != FORMAT_VERSION:
        is_newer = content["format"] > FORMAT_VERSION
        found = (
            f"a model of treewright {content['version']}, in {'a newer' if is_newer else 'an older'} format"
        )
        remedy = "update treewright to read it" if is_newer else "train it again"
        raise FormatError(name, 1, found, f"format {FORMAT_VERSION}; {remedy}")
    return content


def _pack(state: State, prefix: str, arrays: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Collect the arrays of a model and of those inside it; return the rest."""
    for key, array in state.arrays.items():
        if SEPARATOR in key:
            raise InputError(f"array {key!r}; expected a name without {SEPARATOR!r}")
        arrays[prefix + key] = np.ascontiguousarray(array)
    parts = {key: _pack(part, f"{prefix}{key}{SEPARATOR}", arrays) for key, part in state.parts.items()}
    return {"kind": state.kind, "values": state.values, "parts": parts}


def _unpack(header: dict[str, Any], prefix: str, arrays: dict[str, npt.NDArray[Any]]) -> State:
    own = {
        key.removeprefix(prefix): array
        for key, array in arrays.items()
        if key.startswith(prefix) and SEPARATOR not in key.removeprefix(prefix)
    }
    parts = {key: _unpack(part, f"{prefix}{key}{SEPARATOR}", arrays) for key, part in header["parts"].items()}
    return State(str(header["kind"]), dict(header["values"]), own, parts)
