"""Disks that are full, folders that cannot be written, and checkpoints that are damaged."""

import ctypes
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest
from commands import run

import treewright as tw

POSIX = pytest.mark.skipif(os.name != "posix", reason="Windows has no limits on the size of files")
OLD = b"an old model"
LIMIT = 4096
RIGHTS_VERSION = 0x20080522
PASSING_OVER = 1 << 1 | 1 << 2
"""Linux's capabilities to read and write whatever permissions say."""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    bank = tw.make_treebank(30, random_state=0)
    tw.write_conllu(bank.dependencies, folder / "bank.conllu")
    tw.write_brackets(bank.constituents, folder / "bank.mrg")
    tw.Tagger(epochs=1).fit(bank.dependencies).save(folder / "tagger.tw")
    samples = [f"{number % 2} {number % 7 + 1}:1 {number % 90 + 8}:1\n" for number in range(400)]
    (folder / "data.svmlight").write_text("".join(samples))
    return folder


@contextmanager
def little_room():
    """Let no file grow beyond a limit, which is what a full disk does to those that write."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


COMMANDS = {
    "train tagger": ("train", "tagger", "bank.conllu", "--epochs", "1", "--quiet", "--model"),
    "parse": ("parse", "tagger.tw", "bank.conllu", "--output"),
    "kernel": ("kernel", "bank.mrg", "--quiet", "--out"),
    "mine": ("mine", "data.svmlight", "--threshold", "1", "--quiet", "--out"),
    "convert": ("convert", "bank.conllu"),
}


STEPS = {"train tagger": ".checkpoint/learning tags.step", "mine": ".checkpoint/mining.step"}
"""Where commands write first, if not to the result."""
GROWING = {**STEPS, "parse": ".checkpoint/output.step", "kernel": ".checkpoint/matrix.step"}
"""The same where there is a folder for unfinished work."""


@POSIX
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_told_in_one_line_and_the_old_file_stays(fail, data, tmp_path, monkeypatch, name):
    monkeypatch.chdir(data)
    out = tmp_path / "out.conllu"
    out.write_bytes(OLD)
    with little_room():
        message = fail(*COMMANDS[name], out)
    assert message == f"treewright: {out}{STEPS.get(name, '')}: File too large"
    assert out.read_bytes() == OLD
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_standard_output_that_takes_no_more_is_told_in_one_line(data):
    program = [sys.executable, "-m", "treewright", "parse", "tagger.tw", "bank.conllu"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(program, cwd=data, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.stderr.splitlines()[-1] == "treewright: standard output: No space left on device"
    assert done.returncode == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_device_is_named(fail, data):
    message = fail("parse", data / "tagger.tw", data / "bank.conllu", "--output", "/dev/full")
    assert message == "treewright: /dev/full: No space left on device"


@pytest.mark.parametrize("name", ["parse", "kernel"])
def test_a_folder_that_cannot_be_written_is_told_in_one_line(fail, data, tmp_path, monkeypatch, name):
    monkeypatch.chdir(data)
    (tmp_path / "file").write_bytes(OLD)
    message = fail(*COMMANDS[name], tmp_path / "file" / "out")
    assert message == f"treewright: {tmp_path / 'file' / 'out'}: Not a directory"


@pytest.fixture
def bound():
    """Let permissions hold for root too, who has on Linux a right to pass over them, and gives it up here."""
    if os.name != "posix":
        pytest.skip("Windows has other permissions")
    if os.geteuid() != 0:
        yield
        return
    if not sys.platform.startswith("linux"):
        pytest.skip("to root nothing is forbidden")
    system, rights = ctypes.CDLL(None, use_errno=True), (ctypes.c_uint32 * 6)()
    header = (ctypes.c_uint32 * 2)(RIGHTS_VERSION, 0)
    assert system.capget(header, rights) == 0
    fewer = (ctypes.c_uint32 * 6)(rights[0] & ~PASSING_OVER, *rights[1:])
    assert system.capset(header, fewer) == 0
    yield
    assert system.capset(header, rights) == 0


@contextmanager
def forbidden(path, mode):
    """Give a file or folder other permissions for a while."""
    before = path.stat().st_mode
    path.chmod(mode)
    try:
        yield
    finally:
        path.chmod(before)


@pytest.mark.usefixtures("bound")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_that_is_forbidden_is_told_in_one_line_and_the_old_file_stays(
    fail, data, tmp_path, monkeypatch, name
):
    monkeypatch.chdir(data)
    out = tmp_path / "out.conllu"
    out.write_bytes(OLD)
    with forbidden(tmp_path, 0o500):
        message = fail(*COMMANDS[name], out)
    assert message == f"treewright: {out}: Permission denied"
    assert out.read_bytes() == OLD
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.usefixtures("bound")
def test_a_model_that_cannot_be_saved_is_named_and_the_old_one_stays(data, tmp_path):
    tagger, out = tw.load(data / "tagger.tw"), tmp_path / "model.tw"
    out.write_bytes(OLD)
    with forbidden(tmp_path, 0o500), pytest.raises(PermissionError) as refused:
        tagger.save(out)
    assert refused.value.filename == str(out)
    assert out.read_bytes() == OLD


@pytest.mark.usefixtures("bound")
@pytest.mark.parametrize("name", GROWING)
def test_a_checkpoint_that_is_forbidden_is_told_in_one_line_and_the_old_file_stays(
    fail, data, tmp_path, monkeypatch, name
):
    monkeypatch.chdir(data)
    out, checkpoint = tmp_path / "out", tmp_path / "out.checkpoint"
    out.write_bytes(OLD)
    checkpoint.mkdir()
    (checkpoint / "another.step").write_bytes(OLD)
    with forbidden(checkpoint, 0o500):
        message = fail(*COMMANDS[name], out, "--resume")
    assert message == f"treewright: {tmp_path}/out{GROWING[name]}: Permission denied"
    assert out.read_bytes() == OLD


@pytest.mark.usefixtures("bound")
@pytest.mark.parametrize("file", ["tagger.tw", "bank.conllu"])
def test_an_input_that_is_forbidden_is_told_in_one_line_and_the_old_file_stays(fail, data, tmp_path, file):
    out = tmp_path / "out"
    out.write_bytes(OLD)
    with forbidden(data / file, 0o000):
        message = fail("parse", data / "tagger.tw", data / "bank.conllu", "--output", out)
    assert message == f"treewright: {data / file}: Permission denied"
    assert out.read_bytes() == OLD


def test_a_damaged_checkpoint_is_told_in_one_line_and_the_old_model_stays(fail, data, tmp_path, monkeypatch):
    out = tmp_path / "model"
    out.write_bytes(OLD)
    arguments = ("train", "tagger", data / "bank.conllu", "--epochs", "1", "--model", out, "--quiet")

    def stop(tagger, path, *, compact):
        raise RuntimeError

    monkeypatch.setattr(tw.Tagger, "save", stop)
    with pytest.raises(RuntimeError):
        run(*arguments)
    monkeypatch.undo()
    step = tmp_path / "model.checkpoint" / "learning lemmas.step"
    whole = step.read_bytes()
    step.write_bytes(whole[: len(whole) // 2])
    message = fail(*arguments, "--resume")
    assert message.startswith(f"treewright: {step}:1: ")
    assert f"; delete {step} to repeat that step (see docs/" in message
    assert out.read_bytes() == OLD
    step.unlink()
    run(*arguments, "--resume")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
    assert isinstance(tw.load(out), tw.Tagger)
