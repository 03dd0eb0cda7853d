import inspect
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import treewright as tw
from treewright._validate import constructor_hints, count_jobs, is_allowed
from treewright.data.synthetic import make_treebank
from treewright.errors import InputError
from treewright.scale import AbandonedError, check_wanted, map_jobs, map_slices

SLOW_WORK = """
import os, signal, sys, time
from treewright.scale import map_jobs
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started this may ignore it

def wait(number):
    os.write(1, b"started\\n")  # print holds a lock, without which Python aborts as it ends
    time.sleep(600)
try:
    map_jobs(wait, [1, 2], n_jobs=2)
except KeyboardInterrupt:
    sys.exit(7)
"""


def square(number):
    return number * number


def refuse(number):
    if number == 2:
        raise InputError("number is 2; expected another")
    return number


def thread_of(_):
    return threading.get_ident()


@pytest.mark.parametrize("n_jobs", [1, 2, 8])
def test_results_come_in_the_order_of_the_items(n_jobs):
    assert map_jobs(square, [3, 1, 2], n_jobs=n_jobs) == [9, 1, 4]
    assert map_jobs(square, [], n_jobs=n_jobs) == []


def test_one_job_works_in_the_calling_thread_and_several_in_others():
    assert set(map_jobs(thread_of, [1, 2], n_jobs=1)) == {threading.get_ident()}
    assert threading.get_ident() not in map_jobs(thread_of, [1, 2], n_jobs=2)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_come_out_as_they_were_raised(n_jobs):
    with pytest.raises(InputError, match=r"^number is 2; expected another$"):
        map_jobs(refuse, [1, 2, 3], n_jobs=n_jobs)


def test_after_an_error_no_thread_works_on_when_it_comes_out():
    is_begun, ended = threading.Event(), []

    def fail_or_take_long(number):
        if number == 0:
            is_begun.wait()
            raise InputError("number is 0; expected another")
        is_begun.set()
        time.sleep(0.5)
        ended.append(number)

    with pytest.raises(InputError):
        map_jobs(fail_or_take_long, [0, 1, 2], n_jobs=2)
    assert ended == [1]


def test_work_in_threads_can_tell_that_other_work_has_failed():
    are_begun, told = threading.Barrier(2), []

    def fail_or_ask(number):
        are_begun.wait()
        if number == 0:
            raise InputError("number is 0; expected another")
        try:
            while True:
                map_jobs(lambda _: check_wanted(), [1, 2], n_jobs=2)
        except AbandonedError:
            told.append(number)
            raise

    check_wanted()
    with pytest.raises(InputError, match="number is 0"):
        map_jobs(fail_or_ask, [1, 0], n_jobs=2)
    assert told == [1]
    check_wanted()


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise")
def test_an_interrupt_ends_the_work():
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_WORK], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout.readline().startswith(b"started")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=300) == 7


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2", True, None])
def test_a_wrong_number_of_jobs_is_refused(n_jobs):
    with pytest.raises(InputError) as error:
        map_jobs(square, [1], n_jobs=n_jobs)
    expected = "an integer of at least 1, or a negative one (-1: all processors, -2: all but one)"
    assert str(error.value) == f"n_jobs is {n_jobs!r}; expected {expected}"


@pytest.mark.parametrize(("n_jobs", "n_threads"), [(3, 3), (-1, 8), (-2, 7), (-8, 1), (-100, 1)])
def test_negative_numbers_of_jobs_count_back_from_all_processors(monkeypatch, n_jobs, n_threads):
    monkeypatch.setattr("treewright._validate.count_processors", lambda: 8)
    assert count_jobs(n_jobs) == n_threads


def test_negative_numbers_of_jobs_start_threads(monkeypatch):
    monkeypatch.setattr("treewright._validate.count_processors", lambda: 2)
    barrier = threading.Barrier(2, timeout=60)  # waits for two threads
    assert len(map_jobs(lambda _: barrier.wait(), [1, 2], n_jobs=-1)) == 2
    slices = []
    map_slices(slices.append, 10, n_jobs=-1)
    assert sorted(slices, key=lambda each: each.start) == [slice(0, 5), slice(5, 10)]


def _takers(name):
    """Return the public classes and functions that take a parameter."""
    public = [getattr(tw, each) for each in tw.__all__]
    return [each for each in public if callable(each) and name in inspect.signature(each).parameters]


@pytest.mark.parametrize("taker", _takers("n_jobs"), ids=lambda each: each.__name__)
def test_annotated_numbers_of_jobs_may_be_negative(taker):
    assert is_allowed(-1, constructor_hints(taker)["n_jobs"])


TREES = make_treebank(30, random_state=0)
ROWS = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0], [0, 0, 1]] * 10)


@pytest.mark.parametrize(
    ("make", "predict"),
    [
        (
            lambda n: tw.TreeKernelClassifier(n_jobs=n).fit(TREES.constituents, list("ab") * 15),
            lambda model: model.decision_function(TREES.constituents[:9]),
        ),
        (
            lambda n: tw.TreeKernelNystroem(tw.SubsetTreeKernel(n_jobs=n), n_jobs=n).fit(TREES.constituents),
            lambda model: model.transform(TREES.constituents),
        ),
        (
            lambda n: tw.ConjunctionMiner(threshold=0.1, n_jobs=n).fit(ROWS, list("abcd") * 10),
            lambda model: model.transform(ROWS).toarray(),
        ),
        (
            lambda n: tw.L1BoostedTrees(n_jobs=n, max_trees=5).fit(ROWS, list("abcd") * 10),
            lambda model: model.predict_proba(ROWS),
        ),
        (
            lambda n: tw.ConstituentParser(tags="gold", lowest_penalty=10, n_jobs=n).fit(TREES.constituents),
            lambda model: [each[0].score for each in model.kbest(TREES.constituents[:5], k=1)],
        ),
    ],
    ids=["svm", "nystroem", "miner", "boosted", "constituents"],
)
def test_estimators_use_all_processors(monkeypatch, make, predict):
    monkeypatch.setattr("treewright._validate.count_processors", lambda: 2)
    np.testing.assert_array_equal(predict(make(-1)), predict(make(2)))
