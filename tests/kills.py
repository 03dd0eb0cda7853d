"""Commands that are killed at random moments and go on: how often, and whether anything is lost."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import treewright as tw
from treewright._cache import cache_folder

OLD = b"what was there before"
SECONDS_BETWEEN_LOOKS = 0.005
MOST_ROWS = 3
"""Rows that are begun, as one ends too early where a command was faster than when it was measured."""


class Command(NamedTuple):
    """A command that takes some seconds, and can go on after it was killed."""

    arguments: list[str]
    result: str


SMALL = "--epochs 3 --runs 2 --order 2 --table-bits 14 --folds 2"
NEURAL = "--units 8 --embedding 8 --epochs 4 --threshold 1 --device cpu --beam 5"
LINES = {
    "dependency": f"train dependency bank.conllu {SMALL} --model result",
    "jackknife": f"train dependency bank.conllu {SMALL} --jackknife --tags predicted --model result",
    "reranker": f"train dependency bank.conllu {SMALL} --rerank --rerank-folds 2 --model result",
    "mine": "mine data.svmlight --degree 3 --threshold 3 --out result",
    "tagger": "train tagger bank.conllu --epochs 12 --model result",
    "roles": "train roles bank.mrg --props bank.props --kernel sst --model result",
    "constituent": "train constituent bank.mrg --lowest-penalty 5 --model result",
    "leftcorner": f"train leftcorner bank.mrg {NEURAL} --model result",
    "leftcorner reranker": f"train leftcorner bank.mrg {NEURAL} --rerank sst --candidates 5 --model result",
    "kernel": "kernel bank.mrg --kernel pt --memory 1 --out result",
    "parse": "parse tagger.tw large.conllu --output result",
    "demo": "demo --sentences 40 --out result",
}
COMMANDS = {
    name: Command([*line.split(), "--quiet"], "result/model.tw" if name == "demo" else "result")
    for name, line in LINES.items()
}


def kill_campaign(command, n_kills, seed):
    """Kill a command so many times at random moments, go on each time, and compare what comes of it.

    Returns
    -------
    dict
        How many kills there were, after how many a checkpoint was there, how many results came, and how many
        of these, or of the results that were there before, were lost: not, byte for byte, what an
        uninterrupted run makes.
    """
    rng = random.Random(f"{command} {seed}")
    with tempfile.TemporaryDirectory() as name:
        campaign = _Campaign(COMMANDS[command], Path(name))
        while campaign.counts["kills"] < n_kills:
            campaign.run(rng)
        campaign.finish()
        return dict(campaign.counts)


def kill_in_a_row(command, n_kills, seed):
    """Kill one run of a command so many times, at moments drawn over the whole of its work.

    Returns
    -------
    dict
        How many kills there were, how many of them in a row, before how many something had been kept since
        the one before, how many results came, and how many of these, or of those before, were lost.
    """
    rng = random.Random(f"{command} {seed} in a row")
    with tempfile.TemporaryDirectory() as name:
        row = _Row(COMMANDS[command], Path(name))
        for _ in range(MOST_ROWS):
            row.begin()
            # Not up to the very end, as a step that is not noticed makes the next kill a late one.
            moments = sorted(rng.uniform(0, 0.9 * row.n_steps) for _ in range(n_kills))
            if all(row.kill_at(moment) for moment in moments):
                break
        row.finish()
        return dict(row.counts)


class _Campaign:
    """The runs of one command in a folder of its own."""

    def __init__(self, command, folder):
        self._command, self._folder = command, folder
        # Lists of candidates are of this campaign alone; compiled code is that of all.
        code = os.environ.get("NUMBA_CACHE_DIR") or str(cache_folder("numba"))
        own = {"TREEWRIGHT_CACHE": str(folder / "cache"), "NUMBA_CACHE_DIR": code}
        self._environment = {**os.environ, **own, "OPENBLAS_NUM_THREADS": "1"}
        self.counts = Counter({"kills": 0, "with a checkpoint": 0, "results": 0, "lost": 0})
        make_inputs(folder, command)
        self._before = sorted(path.name for path in folder.iterdir())
        begun = time.monotonic()
        assert self._wait_for_all(self._start()) == 0
        self.seconds = time.monotonic() - begun
        self._whole = self._result.read_bytes()
        shutil.rmtree(folder / "cache", ignore_errors=True)
        self._result.write_bytes(OLD)

    def _wait_for_all(self, process):
        return process.wait()

    @property
    def _result(self):
        return self._folder / self._command.result

    @property
    def _checkpoint(self):
        return self._folder / f"{self._command.result}.checkpoint"

    def _start(self):
        resume = ["--resume"] if self._checkpoint.exists() else []
        program = [sys.executable, "-m", "treewright", *self._command.arguments, *resume]
        return subprocess.Popen(program, cwd=self._folder, env=self._environment, stdout=subprocess.DEVNULL)

    def run(self, rng):
        """Begin or go on; kill the command at some moment, if it is not over."""
        is_begun, process = self._checkpoint.exists(), self._start()
        try:
            code = self._wait(process, rng, is_begun=is_begun)
        except subprocess.TimeoutExpired:
            self._kill(process)
        else:
            self._compare(code)

    def _kill(self, process):
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.counts["kills"] += 1
        self.counts["with a checkpoint"] += self._checkpoint.exists()
        self.counts["lost"] += self._result.read_bytes() not in (OLD, self._whole)

    def _wait(self, process, rng, *, is_begun):
        """Wait for a moment anywhere in a run or, as most of it may be its start, after its first step."""
        until = time.monotonic() + self.seconds
        if is_begun or rng.random() < 0.3:
            return process.wait(rng.uniform(0.2, 1) * self.seconds)
        while process.poll() is None and not self._checkpoint.exists() and time.monotonic() < until:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        return process.wait(rng.uniform(0, 0.2) * self.seconds)

    def _compare(self, code):
        self.counts["results"] += 1
        left = sorted(path.name for path in self._folder.iterdir() if path.name != "cache")
        top, _, _ = self._command.result.partition("/")
        is_clean = left == sorted([*self._before, top]) and not self._checkpoint.exists()
        self.counts["lost"] += code != 0 or self._result.read_bytes() != self._whole or not is_clean
        self._result.write_bytes(OLD)

    def finish(self):
        """Go on to the end."""
        if self._checkpoint.exists() or not self.counts["results"]:
            self._compare(self._start().wait())


class _Row(_Campaign):
    """Kills of a command that is not over between them; what it keeps tells how far it has come."""

    def __init__(self, command, folder):
        self._seconds_before = None
        self.begin()
        super().__init__(command, folder)
        self.n_steps = self._n_kept
        self._pace = (self.seconds - self._seconds_before) / self.n_steps
        self.counts.update({"with progress": 0, "in a row": 0})

    def begin(self):
        """Let nothing have been kept, and nothing been killed."""
        self._kept, self._n_kept, self._n_row = frozenset(), 0, 0

    def _wait_for_all(self, process):
        begun = time.monotonic()
        self._wait_until(process, lambda: self._n_kept > 0)
        self._seconds_before = time.monotonic() - begun
        return self._wait_until(process, lambda: False)

    def _wait_until(self, process, is_time):
        """Count what is kept until it is time, or the process is over; return its code then."""
        while process.poll() is None and not is_time():
            kept = self._look()
            self._n_kept += bool(kept - self._kept)
            self._kept = kept
            time.sleep(SECONDS_BETWEEN_LOOKS)
        return process.returncode

    def _look(self):
        """Return what is kept, each version of a file being another thing."""
        found = set()
        for folder in (self._checkpoint, self._folder / "cache"):
            for path in folder.rglob("*.step"):
                with suppress(FileNotFoundError):
                    found.add((path, path.stat().st_mtime_ns))
        return frozenset(found)

    def kill_at(self, moment):
        """Begin or go on, and kill the command when it has kept so much; return whether it was not over."""
        n_before, process = self._n_kept, self._start()
        is_there = n_before >= int(moment)  # then the moment is one of the time before the first step
        self._wait_until(process, lambda: self._n_kept >= int(moment))
        until = time.monotonic() + moment % 1 * (self._seconds_before if is_there else self._pace)
        code = self._wait_until(process, lambda: time.monotonic() >= until)
        if code is not None:
            self._compare(code)
            return False
        self._kill(process)
        self._n_row += 1
        self.counts["in a row"] = max(self.counts["in a row"], self._n_row)
        self.counts["with progress"] += self._n_kept > n_before
        return True


def make_inputs(folder, command):
    """Write what a command reads."""
    bank = tw.make_treebank(40, seed=0)
    tw.write_conllu(bank.dependencies, folder / "bank.conllu")
    tw.write_brackets(bank.constituents, folder / "bank.mrg")
    tw.write_props(bank.propositions, folder / "bank.props")
    if "data.svmlight" in command.arguments:
        data = tw.make_conjunctions(n_samples=400, n_features=40, seed=0)
        lines = [
            f"{label} {' '.join(f'{column + 1}:1' for column in row.indices)}\n"
            for row, label in zip(data.X, data.y, strict=True)
        ]
        (folder / "data.svmlight").write_text("".join(lines))
    if "tagger.tw" in command.arguments:
        tw.Tagger(epochs=1).fit(bank.dependencies).save(folder / "tagger.tw")
        tw.write_conllu(bank.dependencies * 250, folder / "large.conllu")
