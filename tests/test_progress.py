"""What is told of long work, and to whom."""

import threading
import warnings
from contextlib import suppress

import numpy as np
import pytest

import treewright as tw
from treewright.progress import (
    Message,
    Step,
    filtered,
    listening,
    prefixed,
    report,
    silenced,
    task,
    track,
    warnings_reported,
)
from treewright.scale import map_jobs


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def heard():
    """Hear all steps."""
    steps = []
    with listening(steps.append, every=0):
        yield steps


def counts(steps, what):
    return [(step.done, step.total) for step in steps if step.what == what]


def test_track_yields_the_items_and_tells_how_many_are_done(heard):
    assert list(track("abc", "letters", unit="letters")) == ["a", "b", "c"]
    assert counts(heard, "letters") == [(0, 3), (1, 3), (2, 3), (3, 3), (3, 3)]
    assert [step.is_over for step in heard] == [False] * 4 + [True]
    assert {step.unit for step in heard} == {"letters"}


def test_the_total_of_a_stream_is_not_known(heard):
    assert list(track(iter("ab"), "letters")) == ["a", "b"]
    assert counts(heard, "letters")[-1] == (2, None)
    assert heard[-1].seconds_left is None


def test_a_loop_that_is_left_early_is_over(heard):
    for letter in track("abc", "letters"):
        if letter == "b":
            break
    del letter
    assert heard[-1].is_over
    assert heard[-1].done == 1


def test_a_task_that_fails_is_over(heard):
    with suppress(KeyError), task("work", total=2) as work:
        work.advance()
        raise KeyError
    assert (heard[-1].done, heard[-1].is_over) == (1, True)


def test_nobody_hears_without_a_listener():
    steps = []
    with listening(steps.append):
        pass
    assert list(track(range(3), "numbers")) == [0, 1, 2]
    with task("work") as work:
        work.advance()
    assert steps == []


def test_a_listener_hears_only_now_and_then_and_in_the_end():
    clock, steps = Clock(), []
    with listening(steps.append, every=0.1, clock=clock):
        for _ in track(range(100), "numbers"):
            clock.now += 0.03
    assert [step.done for step in steps] == [0, *range(4, 101, 4), 100]


def test_rate_and_time_left_follow_from_the_clock():
    clock, steps = Clock(), []
    with listening(steps.append, every=0, clock=clock), task("work", total=10) as work:
        clock.now += 2
        work.advance(4)
    assert steps[0].rate is None
    assert steps[0].seconds_left is None
    assert (steps[1].seconds, steps[1].rate, steps[1].seconds_left) == (2, 2, 3)


def test_what_was_done_before_does_not_count_for_the_rate():
    step = Step(1, "fetching", 80, 100, "bytes", 2.0, is_over=False, before=60)
    assert (step.rate, step.seconds_left) == (10, 2)


def test_tasks_inside_tasks_are_told_apart(heard):
    for _ in track("ab", "outer"):
        list(track("xyz", "inner"))
    assert len({step.task for step in heard if step.what == "inner"}) == 2
    assert len({step.task for step in heard}) == 3
    assert counts(heard, "outer")[-1] == (2, 2)


def test_threads_advance_one_task_and_each_has_its_own(heard):
    def work(number):
        for _ in track(range(50), f"thread {number}"):
            shared.advance()

    with task("all", total=200) as shared:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert counts(heard, "all")[-1] == (200, 200)
    for number in range(4):
        assert counts(heard, f"thread {number}")[-1] == (50, 50)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_map_jobs_counts_what_is_in_each_item(heard, n_jobs):
    found = map_jobs(sum, [[1, 2], [3], [4, 5, 6]], n_jobs=n_jobs, what="adding", unit="numbers", count=len)
    assert found == [3, 3, 15]
    assert counts(heard, "adding")[0] == (0, 6)
    assert counts(heard, "adding")[-1] == (6, 6)


def test_slices_make_up_a_range_and_are_counted(heard):
    with task("work", total=5) as work:
        assert list(work.slices(5, 2)) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert [done for done, _ in counts(heard, "work")] == [0, 2, 4, 5, 5]


def test_the_earlier_listener_hears_again_after_another():
    first, second = [], []
    with listening(first.append):
        with listening(second.append):
            list(track("a", "inner"))
        list(track("a", "outer"))
    assert {step.what for step in first} == {"outer"}
    assert {step.what for step in second} == {"inner"}


def test_warnings_can_be_reported(heard):
    with warnings_reported():
        warnings.simplefilter("default")  # where warnings are errors, none is reported
        warnings.warn("too\n few rounds", UserWarning, stacklevel=1)
    assert heard == [Message("warning: too few rounds")]


def test_messages_and_steps_come_to_one_listener_in_their_order(heard):
    for letter in track("ab", "letters"):
        report(f"letter {letter}", letter)
    kinds = [event.text if isinstance(event, Message) else event.done for event in heard]
    assert kinds == [0, "letter a", 1, "letter b", 2, 2]
    assert heard[1] == Message("letter a", "a")


def test_a_message_without_a_listener_goes_nowhere(capfd):
    report("line")
    assert capfd.readouterr() == ("", "")


def test_messages_are_silenced_and_tasks_are_not(heard):
    with silenced():
        report("no")
        list(track("a", "letters"))
    report("yes")
    assert [event for event in heard if isinstance(event, Message)] == [Message("yes")]
    assert counts(heard[:-1], "letters")[-1] == (1, 1)


def test_prefixes_stand_in_the_order_of_their_blocks(heard):
    with prefixed("outer: "), prefixed("inner: "):
        report("line", 7)
    assert heard == [Message("outer: inner: line", 7)]


def test_an_inner_filter_comes_first(heard):
    with prefixed("changed: "), filtered(lambda message: message if message.text == "kept" else None):
        report("kept")
        report("dropped")
    assert heard == [Message("changed: kept")]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_jobs_in_threads_are_silenced_with_their_caller(heard, n_jobs):
    letters = list("abcdefghijklmnopqrst")  # more than joblib asks for at once
    with silenced():
        map_jobs(report, letters, n_jobs=n_jobs)
    assert heard == []
    with prefixed("job "):
        map_jobs(report, letters, n_jobs=n_jobs)
    assert sorted(heard) == [Message(f"job {item}") for item in letters]


def test_threads_are_silenced_alone(heard):
    def work():
        with silenced():
            started.set()
            done.wait(10)

    started, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    started.wait(10)
    report("from here")
    done.set()
    thread.join()
    assert heard == [Message("from here")]


def test_reading_and_writing_tell_bytes_and_sentences(heard, tmp_path):
    trees = tw.make_treebank(5, random_state=0).dependencies
    tw.write_conllu(trees, tmp_path / "bank.conllu")
    assert counts(heard, "writing bank.conllu")[-1] == (5, 5)
    tw.read_conllu(tmp_path / "bank.conllu")
    size = (tmp_path / "bank.conllu").stat().st_size
    assert counts(heard, "reading bank.conllu")[-1] == (size, size)


def test_training_does_not_depend_on_a_listener(tmp_path):
    trees = tw.make_treebank(60, random_state=0).dependencies
    options = {"epochs": 2, "runs": 1, "order": 1, "table_bits": 12, "folds": 2}
    alone = tw.DependencyParser(**options).fit(trees)
    steps = []
    with listening(steps.append, every=0):
        heard = tw.DependencyParser(**options).fit(trees)
    assert np.array_equal(alone.scorer_.weights_, heard.scorer_.weights_)
    ends = {step.what: (step.done, step.total) for step in steps if isinstance(step, Step) and step.is_over}
    assert ends["learning trees"] == (108, 108)  # a tenth of the sentences is held out
    assert {"learning to prune", "pruning folds", "learning relations", "calibrating"} <= set(ends)
