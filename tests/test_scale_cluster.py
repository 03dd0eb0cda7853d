"""Work on a cluster of separate processes: the same results as on one machine, even if a worker is lost."""

import os
import pickle
import signal
import sys
import threading
import time
from itertools import count
from pathlib import Path
from weakref import WeakSet

import numpy as np
import pytest

import treewright as tw
from treewright import scale
from treewright.annotation.contract import Request
from treewright.annotation.files import annotate_file
from treewright.errors import ClusterError, FormatError, InputError
from treewright.kernels import gram
from treewright.kernels.compose import VectorKernel
from treewright.mining import polynomial
from treewright.progress import listening, messages_to
from treewright.scale import LARGE, iter_jobs, map_jobs
from treewright.tagging.tagger import jackknife

distributed = pytest.importorskip("distributed", reason="the extra cluster is not installed")

SECONDS = 600
"""Maximum number of seconds that a test waits for another process."""


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as started:
        yield started


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster, set_as_default=False) as connected:
        yield connected


@pytest.fixture(autouse=True)
def no_compiled_code(monkeypatch):
    """Let nothing be sent that each worker would compile again."""
    dump = scale._pickle

    def check(value):
        content = dump(value)
        assert b"numba.core" not in content
        return content

    monkeypatch.setattr(scale, "_pickle", check)


def wait_until(is_so):
    end = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def wait_for_both(client):
    """Wait until two workers answer: after one is lost, the scheduler may count it for a while."""
    wait_until(lambda: len(set(client.run(os.getpid, on_error="ignore").values())) == 2)


def map_remotely(function, items, *, client):
    return map_jobs(function, items, n_jobs=1, client=client)


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

    found = map_jobs(work, range(6), n_jobs=1, client=client)
    assert [number for number, _ in found] == list(range(10, 16))
    assert os.getpid() not in {process for _, process in found}


def test_no_items_have_no_results(client):
    assert map_jobs(len, [], n_jobs=1, client=client) == []
    assert list(iter_jobs(len, [], client=client)) == []


def test_large_items_arrive_whole(client):
    items = [bytes([number]) * (LARGE + number) for number in range(3)]
    assert map_jobs(lambda item: (item[0], len(item)), items, n_jobs=1, client=client) == [
        (number, LARGE + number) for number in range(3)
    ]


def test_tuples_of_functions_are_items_like_others(client):
    assert map_jobs(len, [(len, "ab"), (len,)], n_jobs=1, client=client) == [2, 1]


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
    map_jobs(lambda number: number * 3, [5, 7], n_jobs=1, client=client, keep=kept.__setitem__)
    assert kept == {5: 15, 7: 21}


def test_progress_counts_what_has_come_back(client):
    steps = []
    with listening(steps.append, every=0):
        map_jobs(len, ["ab", "cde"], n_jobs=1, client=client, what="measuring", unit="letters", count=len)
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
        map_jobs(lambda item: lock, [1], n_jobs=1, client=client)
    assert map_jobs(abs, [-1], n_jobs=1, client=client) == [1]


@pytest.fixture(scope="module")
def samples():
    return tw.make_conjunctions(n_samples=300, n_features=40, random_state=1)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"memory_limit": 5 << 20, "filter_memory": 4096}])
def test_the_same_conjunctions_are_mined_with_the_same_weights(client, samples, monkeypatch, options):
    monkeypatch.setattr(polynomial, "WORK", 5000)
    monkeypatch.setattr(polynomial, "SENT_TOGETHER", 3)
    options = {"degree": 3, "threshold": 12, "max_iter": 1, "path": False, **options}
    here = tw.ConjunctionMiner(**options).fit(samples.X, samples.y)
    there = tw.ConjunctionMiner(**options).fit(samples.X, samples.y, client=client)
    assert max(map(len, here.conjunctions_)) == 3
    assert there.conjunctions_ == here.conjunctions_
    assert np.array_equal(there.coef_, here.coef_)
    assert there.history_ == here.history_


@pytest.fixture(scope="module")
def sentences():
    return tw.make_treebank(40, random_state=3).dependencies


@pytest.fixture(scope="module")
def parser(sentences):
    return tw.DependencyParser(order=1, epochs=1, runs=1, table_bits=14, folds=2).fit(sentences)


@pytest.fixture(scope="module")
def kept_lists(parser, sentences, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lists")
    tw.jackknife_lists(parser, sentences, k=4, folds=2, cache=folder)
    return folder


@pytest.mark.slow
def test_the_folds_of_candidate_lists_are_the_same(client, parser, sentences, kept_lists, tmp_path):
    lines = []
    options = {"k": 4, "folds": 2}
    here = tw.jackknife_lists(parser, sentences, cache=kept_lists, **options)
    with messages_to(lines.append):
        there = tw.jackknife_lists(parser, sentences, cache=tmp_path, client=client, **options)
    for name in ("heads", "scores", "probabilities"):
        assert all(map(np.array_equal, getattr(there, name), getattr(here, name)))
    assert [tree.words for tree in there.trees] == [tree.words for tree in sentences]
    told = [f"fold {number}: lists of 20 sentences done" for number in (1, 2)]
    *known, pruning = sorted(lines)
    assert known == ["candidate lists: 2 folds of blocks of 2 consecutive sentences", *told]
    assert pruning.startswith("pruning of folds: keeps ")
    assert len(list(tmp_path.rglob("*.step"))) == 2


def same_states(one, other):
    assert one.parts.keys() == other.parts.keys()
    assert one.arrays.keys() == other.arrays.keys()
    return (
        one.values == other.values
        and all(np.array_equal(array, other.arrays[name]) for name, array in one.arrays.items())
        and all(same_states(part, other.parts[name]) for name, part in one.parts.items())
    )


@pytest.mark.slow
def test_a_parser_that_learns_from_folds_is_the_same(client, sentences):
    options = {"order": 1, "epochs": 1, "runs": 1, "table_bits": 14, "folds": 2, "jackknife": True}
    here = tw.DependencyParser(**options).fit(sentences[:20])
    there = tw.DependencyParser(**options).fit(sentences[:20], client=client)
    assert same_states(here.get_state(), there.get_state())


@pytest.mark.slow
def test_sentences_tagged_as_if_they_were_new_have_the_same_tags(client, sentences):
    options = {"folds": 2, "tagger": tw.Tagger(epochs=1)}
    here, there = (jackknife(sentences[:10], client=where, **options) for where in (None, client))
    assert [tree.upos for tree in there] == [tree.upos for tree in here]
    assert [tree.lemmas for tree in there] == [tree.lemmas for tree in here]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{"threshold": 1}, {"space": "polynomial", "threshold": 4}, {"learner": "kernel", "chunks": 3}],
    ids=["subtrees", "conjunctions", "kernel perceptrons"],
)
def test_rerankers_have_the_same_features_and_weights(client, parser, sentences, kept_lists, options):
    options = {"parser": parser, "k": 4, "folds": 2, **options}
    here = tw.DependencyReranker(**options).fit(sentences, cache=kept_lists)
    there = tw.DependencyReranker(**options).fit(sentences, cache=kept_lists, client=client)
    assert there.n_features_ > 0
    assert same_states(there.get_state(), here.get_state())


@pytest.mark.slow_cases
@pytest.mark.parametrize("options", [{}, {"logs": True}, {"memory_limit": 20_000}])
def test_matrices_of_kernels_have_the_same_values(client, options):
    trees = tw.make_treebank(30, random_state=5).constituents
    kernel = tw.SubsetTreeKernel(normalize=not options.get("logs"))
    assert np.array_equal(tw.gram(kernel, trees, client=client, **options), tw.gram(kernel, trees, **options))
    values = tw.gram(kernel, trees[:9], trees, client=client)
    assert np.array_equal(values, tw.gram(kernel, trees[:9], trees))


@pytest.mark.slow
@pytest.mark.parametrize("with_others", [False, True])
def test_matrices_whose_rounding_depends_on_strips_have_the_same_values(client, monkeypatch, with_others):
    monkeypatch.setattr(gram, "ROWS_AT_A_TIME", 60)
    trees = tw.make_treebank(150, random_state=5).constituents
    kernel, examples = tw.SubsetTreeKernel(decay=0.4, normalize=True), trees
    if not with_others:
        kernel, examples = VectorKernel(), np.random.default_rng(0).normal(size=(150, 37))
    others = examples[:40] if with_others else None
    values = tw.gram(kernel, examples, others)
    assert np.array_equal(tw.gram(kernel, examples, others, client=client), values)


@pytest.mark.slow_cases
@pytest.mark.parametrize("options", [{}, {"k": 3, "confidence": True}, {"fixed_heads": True}])
def test_files_are_parsed_to_the_same_bytes(client, parser, sentences, tmp_path, monkeypatch, options):
    monkeypatch.setattr(tw.DependencyParser, "n_sent", 7)
    paths = [str(tmp_path / name) for name in ("source", "here", "there")]
    tw.write_conllu(sentences, paths[0])
    annotate_file(parser, paths[0], paths[1], Request(**options))
    annotate_file(parser, paths[0], paths[2], Request(**options), client=client)
    assert Path(paths[2]).read_bytes() == Path(paths[1]).read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise")
@pytest.mark.parametrize(("spread", "n_killed"), [(map_remotely, 1), (map_remotely, 2), (iter_jobs, 1)])
def test_results_are_the_same_when_workers_are_killed_at_work(client, tmp_path, spread, n_killed):
    wait_for_both(client)
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


def make_fatal(folder, n_arrivals):
    """Return a function for which a worker dies on receiving it, after it has come to so many others."""

    class Fatal:
        def __init__(self):
            self.place = folder

        def __setstate__(self, state):
            self.__dict__ = state
            n_before = len(list(self.place.iterdir()))
            (self.place / f"{n_before}-{os.getpid()}").touch()
            if n_before == n_arrivals:
                os._exit(1)

        def __call__(self, number):
            return -number

    return Fatal()


@pytest.mark.slow
@pytest.mark.parametrize("n_arrivals", [0, 1])
def test_a_worker_that_is_lost_while_it_is_sent_the_function_keeps_nobody_waiting(
    client, tmp_path, n_arrivals
):
    wait_for_both(client)
    assert map_jobs(make_fatal(tmp_path, n_arrivals), range(5), n_jobs=1, client=client) == [
        0,
        -1,
        -2,
        -3,
        -4,
    ]
    assert len(processes_at_work(tmp_path)) > n_arrivals


def test_a_function_that_has_changed_at_work_is_handed_on_as_it_was_sent():
    class Changing:
        def __init__(self):
            self.locks = []

        def __call__(self, number):
            self.locks.append(threading.Lock())  # which cannot be pickled
            return number + len(self.locks)

    sent = scale._Sent(scale._pickle(Changing()))
    assert [sent(10), sent(10)] == [11, 12]
    assert pickle.loads(scale._pickle(sent))(10) == 11


@pytest.mark.slow
def test_few_jobs_are_divided_among_workers_though_one_has_the_function_first(client, tmp_path):
    wait_for_both(client)

    def meet(number):
        (tmp_path / f"{number}-{os.getpid()}").touch()
        end = time.monotonic() + SECONDS
        while len(processes_at_work(tmp_path)) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        return os.getpid()

    assert len(set(map_jobs(meet, [0, 1], n_jobs=1, client=client))) == 2


@pytest.mark.slow
def test_a_cluster_whose_workers_all_go_is_told_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "PATIENCE", 1)
    told = r"^tcp:\S+ has no workers; expected at least one; start one with: dask worker tcp:\S+\s"
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as own,
        distributed.Client(own, set_as_default=False) as client,
    ):

        def leave():
            wait_until(lambda: processes_at_work(tmp_path))
            own.scale(0)

        leaving = threading.Thread(target=leave)
        leaving.start()
        with pytest.raises(ClusterError, match=told):
            map_remotely(make_waiting(tmp_path), [1], client=client)
        leaving.join()
        with pytest.raises(ClusterError, match=told):
            next(iter_jobs(abs, [1], client=client))


@pytest.mark.slow
def test_a_job_that_always_ends_its_worker_is_given_up(cluster, client):
    allowed, cluster.scheduler.allowed_failures = cluster.scheduler.allowed_failures, 0
    try:
        with pytest.raises(ClusterError, match=r"^job 1 was lost with its worker 1 times in a row; see"):
            map_jobs(lambda item: os._exit(1), [1], n_jobs=1, client=client)
    finally:
        cluster.scheduler.allowed_failures = allowed


def test_a_client_must_be_one(client):
    with pytest.raises(InputError, match=r"^client is str; expected a distributed.Client$"):
        map_jobs(abs, [1], n_jobs=1, client="tcp://127.0.0.1:8786")


def test_workers_with_another_version_are_refused(client, monkeypatch):
    ask = client.get_versions

    def pretend(packages):
        found = ask(packages=packages)
        found["client"]["packages"]["treewright"] = "99"
        return found

    client.wait_for_workers(1, timeout=SECONDS)
    monkeypatch.setattr(scale, "_checked", WeakSet())
    monkeypatch.setattr(client, "get_versions", pretend)
    with pytest.raises(ClusterError, match=r"^worker tcp:\S+ has treewright \S+; expected treewright 99"):
        map_jobs(abs, [1], n_jobs=1, client=client)
