import signal
import subprocess
import sys
import threading
import time

import pytest

from treewright.errors import InputError
from treewright.scale import AbandonedError, check_wanted, map_jobs

SLOW_WORK = """
import signal, sys, time
from treewright.scale import map_jobs
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started this may ignore it

def wait(number):
    print("started", flush=True)
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


def test_a_number_of_jobs_below_one_is_refused():
    with pytest.raises(InputError, match="n_jobs is 0; expected an integer of at least 1"):
        map_jobs(square, [1], n_jobs=0)
