"""Devices for training: CPU or GPU."""

from treewright._optional import require
from treewright.errors import InputError


def find_device(name: str) -> str:
    """Return the PyTorch device with this name; ``"auto"`` is a GPU if there is one, or else the CPU."""
    torch = require("torch", "neural")
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"device is {name!r}; expected a device that PyTorch can use ({reason})") from error
    return name
