"""Disks that are full, folders that cannot be written, and checkpoints that are damaged."""

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


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    bank = tw.make_treebank(30, seed=0)
    tw.write_conllu(bank.dependencies, folder / "bank.conllu")
    tw.write_brackets(bank.constituents, folder / "bank.mrg")
    tw.Tagger(epochs=1).fit(bank.dependencies).save(folder / "tagger.tw")
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
    "convert": ("convert", "bank.conllu"),
}


@POSIX
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_told_in_one_line_and_the_old_file_stays(fail, data, tmp_path, monkeypatch, name):
    monkeypatch.chdir(data)
    out = tmp_path / "out.conllu"
    out.write_bytes(OLD)
    with little_room():
        message = fail(*COMMANDS[name], out)
    step = ".checkpoint/learning tags.step" if name == "train tagger" else ""
    assert message == f"treewright: {out}{step}: File too large"
    assert out.read_bytes() == OLD
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_standard_output_that_takes_no_more_is_told_in_one_line(data):
    program = [sys.executable, "-m", "treewright", "parse", "tagger.tw", "bank.conllu"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(program, cwd=data, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.stderr, done.returncode) == ("treewright: standard output: No space left on device\n", 2)


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


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="to root nothing is forbidden")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_that_is_forbidden_is_told_in_one_line(fail, data, tmp_path, monkeypatch, name):
    monkeypatch.chdir(data)
    out = tmp_path / "out.conllu"
    out.write_bytes(OLD)
    tmp_path.chmod(0o500)
    message = fail(*COMMANDS[name], out)
    assert message == f"treewright: {out}: Permission denied"
    assert out.read_bytes() == OLD


def test_a_damaged_checkpoint_is_told_in_one_line_and_the_old_model_stays(fail, data, tmp_path, monkeypatch):
    out = tmp_path / "model"
    out.write_bytes(OLD)
    arguments = ("train", "tagger", data / "bank.conllu", "--epochs", "1", "--model", out, "--quiet")

    def stop(tagger, path):
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
    assert message.endswith(f"; delete {step} to do that step again")
    assert out.read_bytes() == OLD
    step.unlink()
    run(*arguments, "--resume")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
    assert isinstance(tw.load(out), tw.Tagger)
