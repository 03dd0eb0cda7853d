"""Optional packages, imported in one place, with an install hint when one is missing."""

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
"""What no shell needs quotes for; PowerShell does not call a program in quotes."""


def require(module: str, extra: str) -> ModuleType:
    """Import `module`, or say which command installs the extra of treewright that brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"{module} is not installed; install it with: {install_command(extra)}"
        ) from error


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation, from where the package itself came.

    The running interpreter installs it: from the folder of a clone with the tested versions, from the address
    of an archive or a repository, or else from the package index.
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
    """Return where the package was installed from, as PEP 610 records it; nothing for a package index."""
    try:
        record = distribution(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:  # a clone whose folder src is on the path of Python
        root = Path(__file__).parents[2]
        return {"url": root.as_uri(), "dir_info": {}} if (root / "pyproject.toml").is_file() else {}
    return json.loads(record) if record else {}


def _shorten(path: Path) -> str:
    """Return a path from the current folder on, if it is in there."""
    current = Path.cwd()
    return os.fspath(path.relative_to(current) if path.is_relative_to(current) else path)


def _quote(text: str) -> str:
    return text if PLAIN.fullmatch(text) else f'"{text}"'
