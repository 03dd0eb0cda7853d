"""Serving models from the command line."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
from commands import run

import treewright as tw
from treewright._optional import install_command

pytest.importorskip("fastapi", reason="the service needs the extra web")
pytest.importorskip("uvicorn", reason="the service needs the extra web")

from treewright.web import server
from treewright.web.app import make_app

TAGLESS = (
    "small has no tagger and cannot parse plain text; use a model trained with --tags predicted, or --tagger"
)


@pytest.fixture(scope="module")
def parser():
    """Train a small parser."""
    bank = tw.make_treebank(30, random_state=0).dependencies
    return tw.DependencyParser(order=1, epochs=1, runs=1, table_bits=12, folds=2).fit(bank)


@pytest.fixture(scope="module")
def model(parser, tmp_path_factory):
    """Write the parser to a file."""
    path = tmp_path_factory.mktemp("serving") / "small.tw"
    parser.save(path)
    return path


def test_serve_says_where_answers_and_stops_at_ctrl_c(model):
    command = [sys.executable, "-m", "treewright", "serve", str(model), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        name, _, address = line.rstrip("\n").partition(" at ")
        with urllib.request.urlopen(f"{address}/health") as answer:
            health = json.load(answer)
        process.send_signal(signal.SIGINT)
        rest, complaints = process.communicate()
    assert name == "small"
    assert health["models"] == ["small"]
    assert (process.returncode, rest) == (0, "")
    told = [each for each in complaints.splitlines() if "compiles its inner loops" not in each]
    assert told == [f"loading {model}", TAGLESS]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_and_nothing_else(parser, number):
    before = signal.getsignal(signal.SIGINT)
    with server.listen("127.0.0.1", 0) as listener:
        server.run_server(make_app({"a": parser}), listener, tell=lambda: os.kill(os.getpid(), number))
    assert signal.getsignal(signal.SIGINT) is before


def test_models_of_one_name_are_numbered_and_all_options_arrive(model, tmp_path, monkeypatch):
    seen = {}

    def look(app, listener, *, tell, access_log):
        seen.update(service=app.state.service, access_log=access_log)
        tell()

    monkeypatch.setattr(server, "run_server", look)
    other = tmp_path / "small.tw"
    other.write_bytes(model.read_bytes())
    sizes = ["--max-characters", 70, "--max-words", 7, "--time-limit", 2.5, "--queue", 3, "--jobs", 1]
    shown = run("serve", model, other, "--port", 0, *sizes, "--access-log").stdout
    limits = seen["service"].limits
    assert shown.startswith("small, small-2 at http://127.0.0.1:")
    assert (limits.max_characters, limits.max_words, limits.seconds) == (70, 7, 2.5)
    assert (limits.queue, limits.n_jobs, seen["access_log"]) == (3, 1, True)


def test_a_model_with_a_tagger_is_served_without_a_word_about_tags(model, tmp_path, monkeypatch):
    monkeypatch.setattr(server, "run_server", lambda app, listener, *, tell, access_log: None)
    tagger = tmp_path / "tagger.tw"
    tw.Tagger(epochs=1).fit(tw.make_treebank(5, random_state=0).dependencies).save(tagger)
    assert "tagger" not in run("serve", model, "--port", 0, "--tagger", tagger).stderr


def test_nothing_is_told_of_loading_if_it_should_be_quiet(model, monkeypatch):
    monkeypatch.setattr(server, "run_server", lambda app, listener, *, tell, access_log: None)
    assert run("serve", model, "--port", 0, "--quiet").stderr == ""


def test_a_port_that_is_taken_is_one_line(fail, model):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = fail("serve", model, "--port", port)
    assert message == (
        f"treewright: port {port} at 127.0.0.1 is in use; expected a free port; "
        "use --port 0 for any free port"
    )


def test_an_address_that_is_none_is_one_line(fail, model):
    message = fail("serve", model, "--host", "256.0.0.1", "--port", 0)
    assert message.startswith("treewright: port 0 at 256.0.0.1 does not exist (")


def test_a_model_that_does_not_parse_is_one_line(fail, tmp_path):
    path = tmp_path / "tagger.tw"
    tw.Tagger(epochs=1).fit(tw.make_treebank(5, random_state=0).dependencies).save(path)
    message = fail("serve", path, "--port", 0, "--quiet")
    assert message == f"treewright: {path} is a Tagger; expected a parser or a reranker"


def test_a_tagger_that_is_none_is_one_line(fail, model):
    message = fail("serve", model, "--port", 0, "--tagger", model, "--quiet")
    assert message == f"treewright: {model} is a DependencyParser; expected a tagger"


def test_a_missing_extra_is_named(fail, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    message = fail("serve", model)
    assert message == f"treewright: fastapi is not installed; install it with: {install_command('web')}"
