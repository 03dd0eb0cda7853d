"""Work on a cluster of separate processes: the same results as on one machine, even if a worker is lost."""

import os
import signal
import sys
import threading
import time
from itertools import count
from pathlib import Path
from weakref import WeakSet

import pytest

from treewright import scale
from treewright.errors import ClusterError, FormatError, InputError
from treewright.progress import listening
from treewright.scale import LARGE, iter_jobs, map_jobs

distributed = pytest.importorskip("distributed", reason="the extra cluster is not installed")

SECONDS = 60
"""For which a test waits for another process, at the most."""


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as started:
        yield started


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster, set_as_default=False) as connected:
        yield connected


def wait_until(is_so):
    end = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def map_remotely(function, items, *, client):
    return map_jobs(function, items, jobs=1, client=client)


def processes_at_work(folder):
    return {int(path.name.split("-")[1]) for path in folder.glob("[0-9]*-*")}


def make_waiting(folder):
    """Return a function that writes down which process runs it, and the first time waits for a signal."""

    def work(number):
        place = Path(folder)
        is_first = not any(place.glob(f"{number}-*"))
        (place / f"{number}-{os.getpid()}").touch()
        while is_first and not (place / "go").exists():
            time.sleep(0.01)
        return number * number

    return work


def test_results_come_in_the_order_of_the_items_from_other_processes(client):
    offset = 10

    def work(number):
        return number + offset, os.getpid()

    found = map_jobs(work, range(6), jobs=1, client=client)
    assert [number for number, _ in found] == list(range(10, 16))
    assert os.getpid() not in {process for _, process in found}


def test_no_items_have_no_results(client):
    assert map_jobs(len, [], jobs=1, client=client) == []
    assert list(iter_jobs(len, [], client=client)) == []


def test_large_items_arrive_whole(client):
    items = [bytes([number]) * (LARGE + number) for number in range(3)]
    assert map_jobs(lambda item: (item[0], len(item)), items, jobs=1, client=client) == [
        (number, LARGE + number) for number in range(3)
    ]


def test_tuples_of_functions_are_items_like_others(client):
    assert map_jobs(len, [(len, "ab"), (len,)], jobs=1, client=client) == [2, 1]


def test_items_are_taken_as_their_results_are(client):
    taken = []

    def items():
        for number in count():
            taken.append(number)
            yield number

    found = iter_jobs(lambda number: number * 2, items(), client=client)
    assert [next(found) for _ in range(30)] == list(range(0, 60, 2))
    found.close()
    assert len(taken) < 45


def test_results_are_kept_as_they_come(client):
    kept = {}
    map_jobs(lambda number: number * 3, [5, 7], jobs=1, client=client, keep=kept.__setitem__)
    assert kept == {5: 15, 7: 21}


def test_progress_counts_what_has_come_back(client):
    steps = []
    with listening(steps.append, every=0):
        map_jobs(len, ["ab", "cde"], jobs=1, client=client, what="measuring", unit="letters", count=len)
    assert (steps[0].what, steps[0].done, steps[0].total, steps[0].unit) == ("measuring", 0, 5, "letters")
    assert (steps[-1].done, steps[-1].is_over) == (5, True)


@pytest.mark.parametrize("spread", [map_remotely, iter_jobs])
def test_an_error_on_a_worker_comes_out_with_its_type_and_text(client, spread):
    def refuse(number):
        if number == 1:
            raise FormatError("words.txt", 3, "a comma", "a tab")
        return number

    with pytest.raises(FormatError, match=r"^words.txt:3: a comma; expected a tab$"):
        list(spread(refuse, [0, 1, 2], client=client))


def test_what_cannot_be_pickled_is_refused_before_anything_is_sent(client):
    lock = threading.Lock()
    with pytest.raises(TypeError, match="cannot pickle"):
        map_jobs(lambda item: lock, [1], jobs=1, client=client)
    assert map_jobs(abs, [-1], jobs=1, client=client) == [1]


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise")
@pytest.mark.parametrize(("spread", "n_killed"), [(map_remotely, 1), (map_remotely, 2), (iter_jobs, 1)])
def test_results_are_the_same_when_workers_are_killed_at_work(client, tmp_path, spread, n_killed):
    killed = set()

    def kill():
        wait_until(lambda: len(processes_at_work(tmp_path)) >= n_killed)
        killed.update(list(processes_at_work(tmp_path))[:n_killed])
        for process in killed:
            os.kill(process, signal.SIGKILL)
        (tmp_path / "go").touch()

    killer = threading.Thread(target=kill)
    killer.start()
    found = list(spread(make_waiting(tmp_path), range(6), client=client))
    killer.join()
    assert found == [number * number for number in range(6)]
    assert len(killed) == n_killed
    assert processes_at_work(tmp_path) > killed


def test_a_job_that_always_ends_its_worker_is_given_up(cluster, client):
    allowed, cluster.scheduler.allowed_failures = cluster.scheduler.allowed_failures, 0
    try:
        with pytest.raises(ClusterError, match=r"^job 1 was lost with its worker, 1 in a row; expected"):
            map_jobs(lambda item: os._exit(1), [1], jobs=1, client=client)
    finally:
        cluster.scheduler.allowed_failures = allowed


def test_a_client_must_be_one(client):
    with pytest.raises(InputError, match=r"^client is str; expected a distributed.Client$"):
        map_jobs(abs, [1], jobs=1, client="tcp://127.0.0.1:8786")


def test_workers_with_another_version_are_refused(client, monkeypatch):
    ask = client.get_versions

    def pretend(packages):
        found = ask(packages=packages)
        found["client"]["packages"]["treewright"] = "99"
        return found

    client.wait_for_workers(1)
    monkeypatch.setattr(scale, "_checked", WeakSet())
    monkeypatch.setattr(client, "get_versions", pretend)
    with pytest.raises(ClusterError, match=r"^the worker tcp:\S+ has treewright \S+; expected treewright 99"):
        map_jobs(abs, [1], jobs=1, client=client)
