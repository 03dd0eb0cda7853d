"""What commands print of their work: lines, progress bars, JSON, or nothing."""

import io
import json
import os
import re
import subprocess
import sys
from datetime import datetime

import pytest
from commands import run
from rich.console import Console

import treewright as tw
from treewright.cli import COMMANDS
from treewright.commands.bars import (
    SECONDS_UNSEEN,
    AboveBars,
    Bars,
    describe_count,
    describe_rate,
    describe_rest,
)
from treewright.commands.console import JsonLines
from treewright.commands.train import KINDS
from treewright.progress import Step

KEYS = ["time", "event", "text", "task", "done", "total", "unit", "rate", "seconds_left"]
POSIX = pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals are those of POSIX")
TRAIN = ("train", "tagger", "bank.conllu", "--model", "model.tw", "--epochs", "1", "--runs", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a folder with a small treebank."""
    path = tmp_path_factory.mktemp("bank")
    tw.write_conllu(tw.make_treebank(30, random_state=0).dependencies, path / "bank.conllu")
    return path


@pytest.fixture(autouse=True)
def work_there(folder, monkeypatch):
    monkeypatch.chdir(folder)


def all_commands():
    """Return the words of every command."""
    return [(name,) for name in COMMANDS if name != "train"] + [("train", name) for name in KINDS]


def read_events(text):
    events = [json.loads(line) for line in text.splitlines()]
    for event in events:
        assert list(event) == KEYS
        assert datetime.fromisoformat(event["time"]).utcoffset().total_seconds() == 0
    return events


def test_lines_are_told_where_there_is_no_terminal():
    told = run(*TRAIN).stderr
    assert re.fullmatch(r"tags, epoch 1/1: .*\nlemmas: .*\nwritten: model.tw\n", told)


@pytest.mark.parametrize("flag", ["--quiet", "-q"])
@pytest.mark.parametrize("is_first", [True, False])
def test_quiet_tells_nothing_wherever_it_stands(flag, is_first):
    result = run(flag, *TRAIN) if is_first else run(*TRAIN, flag)
    assert result.stderr == ""


def test_quiet_leaves_results():
    found = run("evaluate", "bank.conllu", "bank.conllu", "--json", "--quiet")
    assert (json.loads(found.stdout)["uas"], found.stderr) == (100, "")


@pytest.mark.parametrize(
    "arguments",
    [("--log-json", *TRAIN), (*TRAIN, "--log-json"), ("train", "--log-json", *TRAIN[1:])],
    ids=["before", "after", "between"],
)
def test_log_json_tells_lines_progress_and_results_as_objects(arguments):
    events = read_events(run(*arguments).stderr)
    assert [event["text"] for event in events if event["event"] == "result"] == ["written: model.tw"]
    assert any(event["event"] == "line" and event["text"].startswith("tags, epoch 1") for event in events)
    progress = {event["task"]: event for event in events if event["event"] == "progress"}
    assert [progress["learning tags"][key] for key in ("done", "total", "unit")] == [30, 30, "sentences"]
    size = os.path.getsize("bank.conllu")
    assert [progress["reading bank.conllu"][key] for key in ("done", "total")] == [size, size]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("evaluate", "no.conllu", "no.conllu", "--log-json"), "no.conllu: No such file or directory"),
        (("--log-json", "evaluate"), "Missing argument 'GOLD' (see: treewright evaluate --help)"),
        (
            ("evaluate", "--log-json", "--colour"),
            "No such option: --colour (see: treewright evaluate --help)",
        ),
    ],
)
def test_errors_are_objects_too(fail, arguments, text):
    (event,) = read_events(fail(*arguments))
    assert (event["event"], event["text"]) == ("error", text)


def test_quiet_leaves_errors(fail):
    expected = "treewright: no.conllu: No such file or directory"
    assert fail("evaluate", "no.conllu", "no.conllu", "--quiet") == expected


@pytest.mark.parametrize(
    "arguments",
    [("--quiet", "--log-json", *TRAIN), ("--quiet", *TRAIN, "--log-json"), (*TRAIN, "-q", "--log-json")],
)
def test_quiet_and_log_json_are_refused_together(fail, arguments):
    (event,) = read_events(fail(*arguments))
    assert event["text"] == "--quiet and --log-json are both given; expected one of them"


def test_each_task_has_about_an_event_a_second_and_a_last_one(capsys):
    output = JsonLines()
    for tenth in range(31):
        output.show_step(Step(1, "work", tenth, 100, "steps", tenth / 10, is_over=False))
    output.show_step(Step(1, "work", 31, 100, "steps", 3.1, is_over=True))
    events = read_events(capsys.readouterr().err)
    assert [event["done"] for event in events] == [10, 20, 30, 31]
    assert (events[0]["rate"], events[0]["seconds_left"]) == (10, 9)


def test_every_command_has_the_options_and_an_example_in_its_help():
    commands = all_commands()
    assert len(commands) >= 13
    for words in commands:
        text = run(*words, "--help").output
        for part in ("--quiet", "-q", "--log-json", f"treewright {' '.join(words)} "):
            assert part in text, words


@pytest.mark.parametrize(
    ("step", "texts"),
    [
        (
            Step(1, "w", 1200, 4800, "sentences", 2.0, False),
            ("1,200/4,800 sentences", "600/s", "0:00:06"),
        ),
        (Step(1, "w", 3, None, "rounds", 2.0, False), ("3 rounds", "1.5/s", "-:--:--")),
        (Step(1, "w", 0, 9, "folds", 0.0, False), ("0/9 folds", "-/s", "-:--:--")),
        (
            Step(1, "w", 1_500_000, 2_000_000, "bytes", 1.0, False),
            ("1.5 M/2.0 MB", "1.5 MB/s", "0:00:00"),
        ),
        (Step(1, "w", 1, 7201, "steps", 1.0, False), ("1/7,201 steps", "1/s", "2:00:00")),
    ],
)
def test_counts_rates_and_times_are_written_to_be_read(step, texts):
    assert (describe_count(step), describe_rate(step), describe_rest(step)) == texts


def test_results_stand_above_the_bars_in_whole_lines():
    screen = io.StringIO()
    bars = Bars(screen)
    bars.show_step(Step(1, "working", 1, 2, "steps", 1.0, is_over=False))
    above = AboveBars(screen, bars)
    above.write("half a ")
    above.write("line\n")
    bars.forbid()
    assert "half a line\n" in screen.getvalue()


LONG = [
    Step(1, "run 2/4, epoch 1/6", 1200, 4800, "sentences", 2.0, False),
    Step(2, "finding the best trees", 1_234_567, 12_345_678, "sentences", 12.0, False),
    Step(
        3, "reading en_ewt-ud-train-of-a-very-long-name.conllu", 123_400_000, 999_900_000, "bytes", 9, False
    ),
    Step(4, "lists [of] candidates", 0, 10, "folds", 3600.0, False),
    Step(5, "class blue", 12_345, None, "rounds", 2.0, False),
]


@pytest.mark.parametrize("steps", [LONG, *([step] for step in LONG)])
def test_nothing_is_cut_off_on_80_columns(steps, monkeypatch):
    monkeypatch.setattr("treewright.commands.bars.SECONDS_UNSEEN", 0)
    screen = io.StringIO()
    bars = Bars(screen, width=80)
    bars.forbid()
    for step in steps:
        bars.show_step(step)
    Console(file=screen, width=80).print(bars.draw())
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in screen.getvalue()
    for step in steps:
        row = next(line for line in lines if describe_count(step) in line)
        assert row.split(describe_count(step))[1].split()[0] == describe_rate(step).split()[0]
        assert re.search(r"[\d-]:[\d-]{2}:[\d-]{2}$", row)
    room = min(line.index("━") if "━" in line else 80 for line in lines)
    shown = "".join(line[:room] for line in lines)
    for step in steps:
        assert "".join(step.what.split()) in "".join(shown.split())


def test_a_task_that_is_soon_over_has_no_bar():
    bars = Bars(io.StringIO(), width=80)
    bars.forbid()
    bars.show_step(LONG[0])
    assert SECONDS_UNSEEN > 0
    assert bars.draw() == ""


def run_on_terminal(code, *, keys=b"", after=None, **environment):
    """Run Python code on a pseudo-terminal, press keys when some text is seen, and return the screen."""
    import pty

    leader, follower = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", **environment},
        start_new_session=True,
        preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
    ) as child:
        os.close(follower)
        seen = b""
        while True:
            try:
                data = os.read(leader, 1 << 16)
            except OSError:  # how Linux says that nobody writes any more
                break
            if not data:
                break
            seen += data
            if after and after in seen:
                os.write(leader, keys)
                after = None
        os.close(leader)
    return seen.decode(), child.returncode


def program(body):
    """Return a program with a command `wait` that does something."""
    return (
        "import sys, time\nfrom treewright import cli\nfrom treewright.commands.options import BaseCommand\n"
        "from treewright.commands.work import say\nfrom treewright.progress import track\n"
        f"@cli.app.command(cls=BaseCommand)\ndef wait():\n    {body}\n"
        "sys.argv = ['treewright', *sys.argv[1:], 'wait']\n"
        "from treewright.__main__ import main\nmain()\n"
    )


STEPS = "for number in track(range(8), 'waiting', unit='steps')"
# Step 5 takes so long that the bar is drawn meanwhile, also by a machine that has much else to do.
SLOW = f"[(say('line 6') if number == 6 else None, time.sleep(2 if number == 5 else 0.01)) {STEPS}]"


@POSIX
def test_a_terminal_shows_a_bar_with_rate_and_time_left():
    screen, code = run_on_terminal(program(SLOW + "; print('result')"), NO_COLOR="1")
    assert code == 0
    assert re.search(r"waiting ━+\S*\s*[4-7]/8 steps \d+(\.\d+)?/s \d+:\d\d:\d\d", screen)
    assert "\nline 6\r\n" in screen.replace("\x1b[2K", "\n")
    assert screen.replace("\x1b[2K", "\n").endswith("\nresult\r\n")


@POSIX
def test_a_dumb_terminal_shows_lines_and_no_bars():
    screen, _ = run_on_terminal(program(SLOW), TERM="dumb")
    assert screen == "line 6\r\n"


@POSIX
def test_ctrl_c_leaves_the_terminal_clean():
    body = "[time.sleep(0.05) for _ in track(range(10_000), 'waiting', unit='steps')]"
    screen, code = run_on_terminal(program(body), keys=b"\x03", after=b"steps", NO_COLOR="1")
    assert code == 130
    ending = screen[screen.rindex("steps") :]
    assert "\x1b[?25h" in ending  # the cursor is seen again
    assert ending.endswith("\x1b[2Ktreewright: interrupted\r\n")  # where the bar was
