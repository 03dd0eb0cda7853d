import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from llvmlite import binding

from treewright.native import code_cache
from treewright.native.data.projective import is_under

COMPILES = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="compilation is switched off")
CALL = """
import numpy as np
from treewright.native.data.projective import is_under
assert is_under(np.array([0, 0, 1], np.int32), 2, 1)
"""
SHIPPED = """
from pathlib import Path
from treewright.native import code_cache
code_cache.SHIPPED = Path({!r})
code_cache.CodeCache.target = code_cache.find_target(code_cache.SHIPPED)
assert code_cache.CodeCache.target
"""


def write_manifest(folder, features=(), **changes):
    compiler = {**code_cache.describe_compiler(), **changes}
    target = [compiler["triple"], "generic", ""]
    content = {"compiler": compiler, "target": target, "features": list(features)}
    (folder / code_cache.MANIFEST).write_text(json.dumps(content))
    return tuple(target)


def run_python(program, **environment):
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stderr


def test_any_change_of_the_source_asks_for_new_code():
    states = (
        {"one.py": b"a = 1"},
        {"one.py": b"a = 2"},
        {"one.py": b"a = 1", "two.py": b""},
        {"one.py": b"a = 1"},
    )
    names = [code_cache.fingerprint({Path(path): code for path, code in each.items()}) for each in states]
    assert names[0] == names[3]
    assert len(set(names)) == 3


def test_code_stays_when_a_subfolder_changes_that_it_does_not_import():
    sources = {
        Path("hashing.py"): b"",
        Path("one/a.py"): b"from treewright.native.two.b import f\nfrom treewright.native.hashing import mix",
        Path("two/b.py"): b"",
        Path("two/c.py"): b"from treewright.native.three.d import g",
        Path("three/d.py"): b"",
        Path("four/e.py"): b"from treewright.native.one.a import h",
    }
    needed = {path.as_posix() for path in code_cache.needed_by("one", sources)}
    assert needed == {"hashing.py", "one/a.py", "two/b.py", "two/c.py", "three/d.py"}
    assert {path.as_posix() for path in code_cache.needed_by("three", sources)} == {
        "hashing.py",
        "three/d.py",
    }


def one():
    return 1


@COMPILES
def test_code_of_other_packages_is_kept_elsewhere():
    ours, theirs = is_under.stats.cache_path, numba.njit(cache=True)(one).stats.cache_path
    state = code_cache.fingerprint(code_cache.needed_by("data", code_cache.read_sources(code_cache.NATIVE)))
    assert Path(ours).parts[-2:] == ("data", state)
    assert state not in theirs


def test_code_with_the_package_is_for_the_compiler_and_the_processor_that_are_here(tmp_path):
    assert code_cache.find_target(tmp_path) is None
    target = write_manifest(tmp_path)
    assert code_cache.find_target(tmp_path) == target
    for changes in ({"numba": "0.1"}, {"source": "other"}, {"python": "cpython-39"}, {"OPT": "0"}):
        write_manifest(tmp_path, **changes)
        assert code_cache.find_target(tmp_path) is None


def test_code_with_the_package_needs_all_that_it_uses_of_the_processor(tmp_path):
    present = [name for name, value in binding.get_host_cpu_features().items() if value]
    target = write_manifest(tmp_path, present)
    assert code_cache.find_target(tmp_path) == target
    write_manifest(tmp_path, [*present, "an ability of processors to come"])
    assert code_cache.find_target(tmp_path) is None


def test_a_chosen_processor_has_code_of_its_own(tmp_path, monkeypatch):
    write_manifest(tmp_path)
    monkeypatch.setattr(numba.config, "CPU_NAME", "generic")
    assert code_cache.find_target(tmp_path) is None


@COMPILES
def test_what_comes_with_the_package_is_not_compiled(tmp_path):
    made, new = tmp_path / "made", str(tmp_path / "new")
    compiling = run_python(CALL, NUMBA_CACHE_DIR=str(made), NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")
    assert "compiles" in compiling
    write_manifest(made)
    assert run_python(SHIPPED.format(str(made)) + CALL, NUMBA_CACHE_DIR=new) == ""
    assert not [*Path(new).rglob("*.nbc")]
