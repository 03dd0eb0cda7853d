"""Temporary files, and those that dead processes have left."""

import os
import subprocess
import sys

import pytest

from treewright.data import temporary
from treewright.data.files import replacing

POSIX = pytest.mark.skipif(os.name != "posix", reason="Windows ends processes in other ways")
KILLED = """
import os, pathlib, signal, sys
from treewright.data.files import replacing
with replacing(pathlib.Path(sys.argv[1])) as stream:
    stream.write(b"half")
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def temporaries(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(temporary.PREFIX))


@POSIX
def test_what_a_killed_process_has_left_goes_when_the_same_file_is_written_again(tmp_path):
    subprocess.run([sys.executable, "-c", KILLED, tmp_path / "model"])
    assert len(temporaries(tmp_path)) == 1
    with replacing(tmp_path / "other") as stream:
        stream.write(b"other")
    assert len(temporaries(tmp_path)) == 1
    with replacing(tmp_path / "model") as stream:
        stream.write(b"whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "other"]


def test_what_is_being_written_is_left_alone(tmp_path):
    with replacing(tmp_path / "model") as one:
        one.write(b"first")
        with replacing(tmp_path / "model") as two:
            two.write(b"second")
        temporary.remove_stale(tmp_path)
        assert len(temporaries(tmp_path)) == 1
    assert (tmp_path / "model").read_bytes() == b"first"


@POSIX
def test_a_sudden_end_removes_what_is_being_written(tmp_path):
    program = "import os, pathlib, sys\nfrom treewright._cleanup import clean_up\n"
    program += "from treewright.data.files import replacing\n"
    program += "with replacing(pathlib.Path(sys.argv[1])) as stream:\n    clean_up()\n    os._exit(3)\n"
    assert subprocess.run([sys.executable, "-c", program, tmp_path / "model"]).returncode == 3
    assert list(tmp_path.iterdir()) == []
