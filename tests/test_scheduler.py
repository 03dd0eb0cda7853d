"""Commands whose work is done by a cluster write the files that they write without it."""

import socket
import sys
import threading
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from commands import run

import treewright as tw
from treewright import _cache, checkpoint, scale
from treewright._optional import install_command
from treewright.commands import work
from treewright.kernels import gram
from treewright.mining import polynomial

distributed = pytest.importorskip("distributed", reason="the extra cluster is not installed")

SMALL = ["--order", "1", "--epochs", "1", "--runs", "1", "--table-bits", "14", "--folds", "2"]
RERANK = ["--rerank", "--rerank-folds", "2", "--degree", "2", "--threshold", "1", "--significance-level", "1"]


class CutOffError(Exception):
    """A command was stopped."""


@pytest.fixture(scope="module")
def address():
    """Start a cluster; return where its scheduler is."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a folder with data of all kinds, and a parser of each."""
    folder = tmp_path_factory.mktemp("data")
    bank = tw.make_treebank(40, random_state=3)
    tw.write_conllu(bank.dependencies, folder / "bank.conllu")
    tw.write_brackets(bank.constituents, folder / "bank.mrg")
    tw.write_brackets(bank.constituents[:25], folder / "some.mrg")
    rows = np.random.default_rng(0).random((200, 12)) < 0.4
    lines = [
        " ".join(["yes" if row[1] and row[4] else "no", *(f"f={column}:1" for column in np.flatnonzero(row))])
        for row in rows
    ]
    (folder / "data.svmlight").write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = {"order": 1, "epochs": 1, "runs": 1, "table_bits": 14, "folds": 2}
    tw.DependencyParser(**options).fit(bank.dependencies).save(folder / "parser.tw")
    tw.ConstituentParser(lowest_penalty=20.0, max_inferences=300).fit(bank.constituents[:20]).save(
        folder / "phrases.tw"
    )
    return folder


@pytest.fixture
def sent(monkeypatch):
    """Return a list of all that is sent to a cluster."""
    items, send = [], scale._Run.send

    def note_and_send(n_jobs, item):
        items.append(item)
        send(n_jobs, item)

    monkeypatch.setattr(scale._Run, "send", note_and_send)
    return items


@pytest.fixture
def in_small_parts(monkeypatch):
    """Divide small work as large work is."""
    monkeypatch.setattr(polynomial, "WORK", 500)
    monkeypatch.setattr(polynomial, "SENT_TOGETHER", 2)
    monkeypatch.setattr(gram, "ROWS_AT_A_TIME", 7)
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0)


COMMANDS = {
    "mine": ["mine", "data.svmlight", "--degree", "3", "--threshold", "4", "--out"],
    "kernel": ["kernel", "bank.mrg", "--kernel", "sst", "--normalize", "--out"],
    "kernel with others": ["kernel", "bank.mrg", "--other", "some.mrg", "--kernel", "sst", "--out"],
    "kernel, logarithms": ["kernel", "bank.mrg", "--kernel", "sst", "--logs", "--out"],
    "train": ["train", "dependency", "bank.conllu", *SMALL, "--jackknife", "--model"],
    "train with tags": ["train", "dependency", "bank.conllu", *SMALL, "--tags", "predicted", "--model"],
    "train a reranker": ["train", "dependency", "bank.conllu", *SMALL, *RERANK, "--model"],
    "parse": ["parse", "parser.tw", "bank.conllu", "--kbest", "3", "--output"],
    "parse to brackets": ["parse", "phrases.tw", "bank.mrg", "--output"],
}


@pytest.mark.slow_cases
@pytest.mark.usefixtures("in_small_parts")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_cluster_makes_the_same_file(address, folder, sent, tmp_path, monkeypatch, command):
    monkeypatch.chdir(folder)
    for name, options in (("here", []), ("there", ["--scheduler", address])):
        monkeypatch.setattr(_cache, "cache_folder", partial(Path, tmp_path, f"cache {name}"))
        assert not sent
        run(*COMMANDS[command], tmp_path / name, *options)
    assert sent
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


@pytest.mark.slow
@pytest.mark.usefixtures("in_small_parts")
@pytest.mark.parametrize("is_begun_there", [False, True])
@pytest.mark.parametrize("options", [[], ["--other", "some.mrg"]], ids=["itself", "others"])
def test_a_matrix_that_is_begun_here_or_there_is_finished_at_the_other_place(
    address, folder, sent, tmp_path, monkeypatch, is_begun_there, options
):
    monkeypatch.chdir(folder)
    command = ["kernel", "bank.mrg", *options, "--out"]
    run(*command, tmp_path / "whole")
    store, n_stored = gram._store, []

    def store_some(*strip, **options):
        if n_stored[3:]:
            raise CutOffError
        n_stored.append(strip)
        store(*strip, **options)

    monkeypatch.setattr(gram, "_store", store_some)
    places = [["--scheduler", address], []][:: 1 if is_begun_there else -1]
    with pytest.raises(CutOffError):
        run(*command, tmp_path / "cut", *places[0])
    assert bool(sent) == is_begun_there
    monkeypatch.setattr(gram, "_store", store)
    run(*command, tmp_path / "cut", *places[1], "--resume")
    assert sent
    assert (tmp_path / "cut").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.fixture
def strangers():
    """Return addresses of something that takes connections, and says nothing or speaks of other things."""
    with ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]

        def speak():
            with servers[1].accept()[0] as connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
                connection.recv(1 << 16)

        speaker = threading.Thread(target=speak, daemon=True)
        speaker.start()
        yield [f"tcp://127.0.0.1:{server.getsockname()[1]}" for server in servers]


@pytest.mark.parametrize("number", [None, 0, 1], ids=["nobody", "somebody mute", "a stranger"])
def test_an_address_without_a_scheduler_is_one_line(folder, fail, tmp_path, monkeypatch, strangers, number):
    monkeypatch.setattr(work, "SECONDS_TO_CONNECT", 0.5)
    where = "tcp://127.0.0.1:9" if number is None else strangers[number]
    line = fail("mine", folder / "data.svmlight", "--out", tmp_path / "found.tsv", "--scheduler", where)
    told = (
        f"no Dask scheduler answers at {where}; expected a running scheduler; start one with: dask scheduler"
    )
    assert line == f"treewright: {told} (see docs/{tw.errors.ClusterError.help})"
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_address_is_one_line(folder, fail, tmp_path):
    line = fail("mine", folder / "data.svmlight", "--out", tmp_path / "found.tsv", "--scheduler", "nonsense")
    found = "--scheduler is 'nonsense' (missing port number in address 'nonsense')"
    assert line == f"treewright: {found}; expected an address such as tcp://host:8786"


def test_without_the_extra_a_scheduler_needs_it(folder, fail, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    line = fail("mine", folder / "data.svmlight", "--out", tmp_path / "f", "--scheduler", "tcp://127.0.0.1:9")
    assert line.endswith(f"distributed is not installed; install it with: {install_command('cluster')}")
