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
from pathlib import Path
from typing import NamedTuple

import treewright as tw
from treewright._cache import cache_folder

OLD = b"what was there before"
SECONDS_BETWEEN_LOOKS = 0.005
DYING = """
import os, signal, sys
from treewright.checkpoint import Checkpoint
from treewright.cli import run

n_saved, moment, save = int(sys.argv[1]), sys.argv[2], Checkpoint.save

def save_or_die(*step):
    global n_saved
    n_saved -= 1
    if n_saved < 0 and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    save(*step)
    if n_saved < 0:
        os.kill(os.getpid(), signal.SIGKILL)

Checkpoint.save = save_or_die
sys.argv[:] = ["treewright", *sys.argv[3:]]
sys.exit(run())
"""
"""A command that kills itself when it has kept so many steps, before the next one or right after it."""


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
    "tagger": "train tagger bank.conllu --epochs 30 --model result",
    "roles": "train roles bank.mrg --props bank.props --kernel sst --model result",
    "constituent": "train constituent bank.mrg --lowest-penalty 5 --model result",
    "leftcorner": f"train leftcorner bank.mrg {NEURAL} --model result",
    "leftcorner reranker": f"train leftcorner bank.mrg {NEURAL} --rerank sst --candidates 5 --model result",
    "kernel": "kernel bank.mrg --kernel pt --memory-limit 1 --out result",
    "parse": "parse tagger.tw large.conllu --output result",
    "demo": "demo --sentences 40 --out result",
}
COMMANDS = {
    name: Command([*line.split(), "--quiet"], "result/model.tw" if name == "demo" else "result")
    for name, line in LINES.items()
}


def kill_campaign(command, n_kills, random_state):
    """Kill a command so many times at random moments, go on each time, and compare what comes of it.

    Returns
    -------
    dict
        How many kills there were, after how many a checkpoint was there, how many results came, and how many
        of these, or of the results that were there before, were lost: not, byte for byte, what an
        uninterrupted run makes.
    """
    rng = random.Random(f"{command} {random_state}")
    with tempfile.TemporaryDirectory() as name:
        campaign = _Campaign(COMMANDS[command], Path(name))
        while campaign.counts["kills"] < n_kills:
            campaign.run(rng)
        campaign.finish()
        return dict(campaign.counts)


def kill_in_a_row(command, n_kills, random_state):
    """Kill one run of a command so many times, each time at one of its next steps, and go on to its end.

    Returns
    -------
    dict
        As of `kill_campaign`, and how many kills there were before the first result.
    """
    rng = random.Random(f"{command} {random_state} in a row")
    with tempfile.TemporaryDirectory() as name:
        campaign = _Campaign(COMMANDS[command], Path(name))
        while campaign.counts["kills"] < n_kills and not campaign.counts["results"]:
            campaign.kill_at_step(rng)
        campaign.finish()
        return {**campaign.counts, "in a row": campaign.counts["kills"]}


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
        assert self._start().wait() == 0
        self.seconds = time.monotonic() - begun
        self._whole = self._result.read_bytes()
        shutil.rmtree(folder / "cache", ignore_errors=True)
        self._result.write_bytes(OLD)

    @property
    def _result(self):
        return self._folder / self._command.result

    @property
    def _checkpoint(self):
        return self._folder / f"{self._command.result}.checkpoint"

    def _start(self, *program):
        resume = ["--resume"] if self._checkpoint.exists() else []
        program = [sys.executable, *(program or ("-m", "treewright")), *self._command.arguments, *resume]
        return subprocess.Popen(program, cwd=self._folder, env=self._environment, stdout=subprocess.DEVNULL)

    def run(self, rng):
        """Begin or go on; kill the command at some moment, if it is not over."""
        is_begun, begun, process = self._checkpoint.exists(), time.monotonic(), self._start()
        try:
            code = self._wait(process, rng, is_begun=is_begun)
        except subprocess.TimeoutExpired:
            self._kill(process)
        else:
            self.seconds = min(self.seconds, time.monotonic() - begun)  # the machine may have less to do now
            self._compare(code)

    def kill_at_step(self, rng):
        """Begin or go on; let the command be killed at one of its next steps, if it is not over by then."""
        n_saved, moment = rng.choice((0, 0, 1)), rng.choice(("before", "after", "after"))
        code = self._start("-c", DYING, str(n_saved), moment).wait()
        if code == -signal.SIGKILL:
            self._count_kill()
        else:
            self._compare(code)

    def _kill(self, process):
        process.send_signal(signal.SIGKILL)
        process.wait()
        self._count_kill()

    def _count_kill(self):
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


def make_inputs(folder, command):
    """Write what a command reads."""
    bank = tw.make_treebank(40, random_state=0)
    tw.write_conllu(bank.dependencies, folder / "bank.conllu")
    tw.write_brackets(bank.constituents, folder / "bank.mrg")
    tw.write_props(bank.propositions, folder / "bank.props")
    if "data.svmlight" in command.arguments:
        data = tw.make_conjunctions(n_samples=400, n_features=40, random_state=0)
        lines = [
            f"{label} {' '.join(f'{column + 1}:1' for column in row.indices)}\n"
            for row, label in zip(data.X, data.y, strict=True)
        ]
        (folder / "data.svmlight").write_text("".join(lines))
    if "tagger.tw" in command.arguments:
        tw.Tagger(epochs=1).fit(bank.dependencies).save(folder / "tagger.tw")
        tw.write_conllu(bank.dependencies * 250, folder / "large.conllu")
