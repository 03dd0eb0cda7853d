"""What is told where an optional package is missing."""

import json
import shlex
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from treewright import _optional
from treewright._optional import install_command, require
from treewright.errors import MissingDependencyError


@pytest.fixture
def installed_from(monkeypatch, tmp_path_factory):
    """Return a function that lets the package come from somewhere; Python is not in the current folder."""
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))

    class Distribution:
        def __init__(self, record):
            self._record = record

        def read_text(self, name):
            assert name == "direct_url.json"
            return self._record and json.dumps(self._record)

    return lambda record: monkeypatch.setattr(_optional, "distribution", lambda name: Distribution(record))


@pytest.fixture
def clone(tmp_path):
    folder = tmp_path / "a clone"
    folder.mkdir()
    (folder / "constraints.txt").write_text("")
    return folder


def test_an_installed_package_is_imported():
    assert require("json", "web") is json


def test_a_missing_package_is_named_with_the_command_that_installs_it(installed_from):
    installed_from(None)
    with pytest.raises(MissingDependencyError) as raised:
        require("no_such_package", "web")
    expected = f"no_such_package is not installed; install it with: {sys.executable} -m pip install"
    assert str(raised.value) == f'{expected} "treewright[web]"'


def test_the_hint_installs_from_the_clone_with_tested_versions(installed_from, clone):
    installed_from({"url": clone.as_uri(), "dir_info": {}})
    words = shlex.split(install_command("web"))
    constraints = str(clone / "constraints.txt")
    assert words == [sys.executable, "-m", "pip", "install", "-c", constraints, f"{clone}[web]"]


def test_an_editable_installation_stays_editable(installed_from, clone):
    installed_from({"url": clone.as_uri(), "dir_info": {"editable": True}})
    assert shlex.split(install_command("web"))[-2:] == ["-e", f"{clone}[web]"]


def test_the_hint_is_short_in_the_clone(installed_from, clone, monkeypatch):
    monkeypatch.chdir(clone)
    monkeypatch.setattr(sys, "executable", str(clone / ".venv" / "bin" / "python"))
    installed_from({"url": clone.as_uri(), "dir_info": {}})
    python = Path(".venv", "bin", "python")
    assert install_command("web") == f'{python} -m pip install -c constraints.txt ".[web]"'


@pytest.mark.parametrize(
    ("record", "requirement"),
    [
        (
            {"url": "file:///tmp/treewright-0.1.0-py3-none-any.whl", "archive_info": {}},
            "treewright[web] @ file:///tmp/treewright-0.1.0-py3-none-any.whl",
        ),
        (
            {"url": "https://example.org/treewright.git", "vcs_info": {"vcs": "git"}},
            "treewright[web] @ git+https://example.org/treewright.git",
        ),
    ],
)
def test_the_hint_installs_from_where_the_package_came(installed_from, record, requirement):
    installed_from(record)
    assert shlex.split(install_command("web"))[-1] == requirement


def test_a_clone_that_is_not_installed_is_found_by_its_place(monkeypatch):
    def find_none(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(_optional, "distribution", find_none)
    root = Path(_optional.__file__).parents[2]
    monkeypatch.chdir(root.parent)
    assert install_command("web").endswith(f'"{root.name}[web]"')
