"""What is kept of unfinished work."""

import threading

import pytest

from treewright import checkpoint
from treewright.checkpoint import Checkpoint
from treewright.data.files import replacing
from treewright.errors import InputError
from treewright.model import State
from treewright.scale import map_jobs


def test_a_saved_step_comes_back(tmp_path):
    kept = Checkpoint(tmp_path / "kept", "one")
    assert kept.load("step") is None
    kept.save("step", State("Step", {"number": 3}))
    assert kept.load("step") == State("Step", {"number": 3})


def test_what_another_training_has_left_is_refused(tmp_path):
    Checkpoint(tmp_path, "one").save("step", State("Step"))
    with pytest.raises(InputError, match="of a run with other data or options"):
        Checkpoint(tmp_path, "other").load("step")


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: data[:-1] + b"\xff", lambda data: b""]
)
def test_a_damaged_step_is_named_with_the_remedy(tmp_path, damage):
    kept = Checkpoint(tmp_path, "one")
    kept.save("step", State("Step", {"number": 3}))
    path = tmp_path / "step.step"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=r"step\.step:1: .*; delete .*step\.step to repeat that step"):
        kept.load("step")
    assert path.exists()


def test_removing_takes_temporary_files_of_the_dead_along(tmp_path):
    Checkpoint(tmp_path / "kept", "one").save("step", State("Step"))
    (tmp_path / "kept" / ".treewright-0-x").write_bytes(b"half")
    Checkpoint.remove(tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_removing_leaves_files_of_others(tmp_path):
    Checkpoint(tmp_path, "one").save("step", State("Step"))
    (tmp_path / "notes.txt").write_text("mine")
    Checkpoint.remove(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_removing_leaves_what_another_training_is_writing(tmp_path):
    Checkpoint(tmp_path, "one").save("step", State("Step"))
    with replacing(tmp_path / "other.step") as stream:
        stream.write(b"other")
        Checkpoint.remove(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["other.step"]


def test_a_folder_that_another_training_removes_meanwhile_is_made_again(tmp_path, monkeypatch):
    kept, save = Checkpoint(tmp_path / "kept", "one"), checkpoint.save_state

    def save_after_removal(state, path):
        monkeypatch.undo()
        Checkpoint.remove(kept.folder)
        save(state, path)

    monkeypatch.setattr(checkpoint, "save_state", save_after_removal)
    kept.save("step", State("Step", {"number": 3}))
    assert kept.load("step").values == {"number": 3}


def test_a_thread_saves_nothing_after_another_of_the_same_work_has_failed(tmp_path):
    kept, are_begun = Checkpoint(tmp_path / "kept", "one"), threading.Barrier(2)

    def fail_or_save(number):
        are_begun.wait()
        if number == 0:
            raise InputError("number is 0; expected another")
        while True:
            kept.save("step", State("Step"))

    with pytest.raises(InputError, match="number is 0"):
        map_jobs(fail_or_save, [0, 1], n_jobs=2)
    Checkpoint.remove(kept.folder)
    assert not kept.folder.exists()
