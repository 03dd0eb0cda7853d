import os
import stat
import sys
import tempfile

import pytest

from treewright._cache import cache_folder

needs_users = pytest.mark.skipif(not hasattr(os, "getuid"), reason="the system has no numbered users")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch, tmp_path):
    for name in ("TREEWRIGHT_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))


def make_unusable(monkeypatch, tmp_path):
    """Put the cache below a regular file, where not even root can make a folder."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("TREEWRIGHT_CACHE", str(tmp_path / "file" / "cache"))


def test_treewright_cache_decides(monkeypatch, tmp_path):
    monkeypatch.setenv("TREEWRIGHT_CACHE", str(tmp_path / "chosen"))
    assert cache_folder("a", "b") == tmp_path / "chosen" / "a" / "b"


def test_folder_is_made_and_empty(monkeypatch, tmp_path):
    monkeypatch.setenv("TREEWRIGHT_CACHE", str(tmp_path / "chosen"))
    assert list(cache_folder("a").iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the usual place is another one")
@pytest.mark.parametrize(
    ("variable", "place"),
    [(None, "home/.cache/treewright"), ("set", "set/treewright"), ("", "home/.cache/treewright")],
)
def test_usual_place_is_the_platforms(monkeypatch, tmp_path, variable, place):
    if variable is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", variable and str(tmp_path / variable))
    assert cache_folder() == tmp_path / place


def test_empty_variable_counts_as_unset(monkeypatch):
    usual = cache_folder()
    monkeypatch.setenv("TREEWRIGHT_CACHE", "")
    assert cache_folder() == usual


def test_unusable_place_is_replaced_by_a_temporary_one(monkeypatch, tmp_path, caplog):
    make_unusable(monkeypatch, tmp_path)
    folder = cache_folder("a")
    assert folder.is_dir()
    assert folder.is_relative_to(tmp_path / "temporary")
    assert str(tmp_path / "file") in caplog.text
    assert str(folder) in caplog.text


@needs_users
def test_unknown_home_is_replaced_by_a_temporary_place(monkeypatch, tmp_path):
    def fail(_):
        raise KeyError("uid not found")

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", fail)
    assert cache_folder("a").is_relative_to(tmp_path / "temporary")


def test_temporary_place_is_the_same_at_every_call(monkeypatch, tmp_path):
    make_unusable(monkeypatch, tmp_path)
    assert cache_folder("a") == cache_folder("a")


@needs_users
def test_temporary_place_is_closed_to_other_users(monkeypatch, tmp_path):
    make_unusable(monkeypatch, tmp_path)
    assert stat.S_IMODE(cache_folder().stat().st_mode) == 0o700


@needs_users
@pytest.mark.parametrize("plant", ["open", "link", "file"])
def test_planted_temporary_place_is_not_used(monkeypatch, tmp_path, plant):
    make_unusable(monkeypatch, tmp_path)
    planted = tmp_path / "temporary" / f"treewright-{os.getuid()}"
    if plant == "open":
        planted.mkdir()
        planted.chmod(0o777)
    elif plant == "link":
        planted.symlink_to(tmp_path)
    else:
        planted.touch()
    folder = cache_folder("a")
    assert folder.is_dir()
    assert folder.parent != planted
