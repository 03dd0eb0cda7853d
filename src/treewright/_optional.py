"""Import of optional packages, with the command that installs a missing one."""

import importlib
import json
import os
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from treewright.errors import MissingDependencyError

PACKAGE = "treewright"
CONSTRAINTS = "constraints.txt"
PLAIN = re.compile(r"[\w.:/\\~+-]+")
"""Text that does not need quotes in any shell; PowerShell does not run a quoted program name."""


def require(module: str, extra: str) -> ModuleType:
    """Import `module`; if it is missing, raise an error with the command that installs its extra."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"{module} is not installed; install it with: {install_command(extra)}"
        ) from error


def install_command(extra: str) -> str:
    """Return the command that installs an extra from the same source as this installation.

    It uses the running interpreter, and installs from the folder of a clone (with the tested versions), from
    the URL of an archive or a repository, or else from the package index.
    """
    origin = _read_origin()
    url = str(origin.get("url", ""))
    if "vcs_info" in origin:
        url = f"{origin['vcs_info']['vcs']}+{url}"
    options, requirement = "", f"{PACKAGE}[{extra}] @ {url}" if url else f"{PACKAGE}[{extra}]"
    if "dir_info" in origin:
        folder = Path(url2pathname(urlsplit(url).path))
        if (folder / CONSTRAINTS).is_file():
            options += f"-c {_quote(_shorten(folder / CONSTRAINTS))} "
        if origin["dir_info"].get("editable"):
            options += "-e "
        requirement = f"{_shorten(folder)}[{extra}]"
    return f"{_quote(_shorten(Path(sys.executable)))} -m pip install {options}{_quote(requirement)}"


def _read_origin() -> dict[str, Any]:
    """Return the source of this installation, as PEP 610 records it; empty if it is a package index."""
    try:
        record = distribution(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:  # a clone whose src folder is on Python's path
        root = Path(__file__).parents[2]
        return {"url": root.as_uri(), "dir_info": {}} if (root / "pyproject.toml").is_file() else {}
    return json.loads(record) if record else {}


def _shorten(path: Path) -> str:
    """Return a path relative to the current folder if it is inside that folder."""
    current = Path.cwd()
    return os.fspath(path.relative_to(current) if path.is_relative_to(current) else path)


def _quote(text: str) -> str:
    return text if PLAIN.fullmatch(text) else f'"{text}"'
