"""Optional packages, imported in one place, with an install hint when one is missing."""

import importlib
from types import ModuleType

from treewright.errors import MissingDependencyError


def require(module: str, extra: str) -> ModuleType:
    """Import `module`, or say which extra of treewright brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"{module} is not installed; it comes with: pip install 'treewright[{extra}]'"
        ) from error
