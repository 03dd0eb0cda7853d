"""Robustness tests of treewright: damaged inputs, models and requests, killed processes and lost workers.

    python benchmarks/reliability.py readers --count 300000
    python benchmarks/reliability.py models --count 10000
    python benchmarks/reliability.py table

Each campaign appends a line of counts to a file (`--out`); `table` prints all lines as a table. Every case
has a number and can be repeated: `--seed 0 --first 1234 --count 1`. Campaigns need Linux.
"""

import argparse
import json
import logging
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from batches import case_generator, run_cases

PACKAGES = ("numpy", "scipy", "numba", "safetensors", "torch", "fastapi")
LIMIT = 120
"""Seconds that a case may take; many, since the machine may have other things to do."""


class Outcome(NamedTuple):
    """What a campaign came to."""

    counts: dict
    defects: list
    seconds: float
    n_bytes: int = 0
    """Bytes that were damaged, where they are counted."""


def run_readers(options):
    """Let readers read damaged texts, and some that are made to take time or memory."""
    import fuzz_readers

    with tempfile.TemporaryDirectory() as folder:
        texts = fuzz_readers.make_seeds(folder)
    hostile = [(name, data) for data in fuzz_readers.make_hostile().values() for name in fuzz_readers.NAMES]

    def judge(number):
        if number < len(hostile):
            name, data = hostile[number]
        else:
            name, data = fuzz_readers.make_case(case_generator(options.random_state, number), texts)
        return name, fuzz_readers.judge(name, data)

    return run(options, judge, lambda outcome: outcome in ("value", "refused"), batch=10_000)


def run_models(options):
    """Load damaged models."""
    import fuzz_models

    models = fuzz_models.Models(options.models)

    def judge(number):
        return fuzz_models.judge_damaged(models, case_generator(options.random_state, number))

    return run(options, judge, fuzz_models.is_allowed)


def run_hostile(options):
    """Load models that were changed by somebody who has set the checksum right, and use them."""
    import fuzz_models

    models = fuzz_models.Models(options.models)
    models.warm_up()

    def judge(number):
        return fuzz_models.judge_hostile(models, case_generator(options.random_state, number))

    return run(options, judge, fuzz_models.is_allowed, batch=100)


def run_parse(options):
    """Give damaged files to `treewright parse`."""
    import fuzz_readers
    import fuzz_service
    from small_models import train_models

    paths = train_models(options.models)
    with tempfile.TemporaryDirectory() as folder:
        texts = fuzz_readers.make_seeds(folder)

    def judge(number):
        return fuzz_service.judge_parse(paths, texts, case_generator(options.random_state, number))

    return run(options, judge, fuzz_service.is_allowed, batch=100)


def run_service(options):
    """Send damaged requests to the service."""
    import fuzz_service
    from small_models import train_models

    paths = train_models(options.models)
    asked = []  # each process makes its own, as threads do not come along when it is forked

    def judge(number):
        if not asked:
            asked.append(fuzz_service.Asked(paths))
        return asked[0].judge(case_generator(options.random_state, number))

    return run(options, judge, fuzz_service.is_allowed, batch=250)


def run_load(options):
    """Ask a service over the network, many clients at once."""
    import fuzz_service
    from small_models import train_models

    begun = time.monotonic()
    counts = fuzz_service.load_service(train_models(options.models), options.count, options.clients)
    defects = [{"label": "load", "outcome": "lost or wrong"}] * counts["lost or wrong"]
    return Outcome({f"load\t{name}": n for name, n in counts.items()}, defects, time.monotonic() - begun)


def run_kills(options):
    """Kill commands at random moments and let them go on, until the result is there."""
    from kills import COMMANDS, kill_campaign, kill_in_a_row

    return _count_killed(kill_in_a_row if options.row else kill_campaign, COMMANDS, options)


def run_workers(options):
    """Kill workers of a cluster in the middle of a run."""
    from lost_workers import JOBS, worker_campaign

    return _count_killed(worker_campaign, JOBS, options)


def _count_killed(campaign, names, options):
    """Kill so often in all, the jobs one after the other."""
    begun = time.monotonic()
    counts, defects = Counter(), []
    chosen = [name for name in names if not options.only or name in options.only]
    share = -(-options.count // len(chosen))
    for name in chosen:
        found = campaign(name, share, options.random_state)
        counts.update({f"{name}\t{what}": n for what, n in found.items()})
        if found.get("lost", 0):
            defects.append({"label": name, "outcome": "another result"})
    return Outcome(dict(counts), defects, time.monotonic() - begun)


def run(options, judge, allowed, *, batch=1000):
    """Run the cases that were asked for."""
    until = time.monotonic() + options.seconds
    numbers = range(options.first, options.first + options.count)
    found = run_cases(judge, numbers, allowed=allowed, batch=batch, limit=LIMIT, until=until)
    counts = {"\t".join(key): n for key, n in sorted(found.counts.items())}
    return Outcome(counts, found.defects, found.seconds, found.n_bytes)


CAMPAIGNS = {
    "readers": run_readers,
    "models": run_models,
    "hostile": run_hostile,
    "parse": run_parse,
    "service": run_service,
    "load": run_load,
    "kills": run_kills,
    "workers": run_workers,
}
KILLING = ("kills", "workers")
UNTOLD = ("kills", "in a row", "lost")
"""Counts of those that are the number of cases, or that of defects."""
COUNTS = dict(zip(CAMPAIGNS, (300_000, 10_000, 2_000, 5_000, 5_000, 5_000, 20, 10), strict=True))
"""How many cases there are where nobody says."""
ROWS = {
    "readers": "damaged texts given to readers",
    "models": "damaged models loaded",
    "hostile": "models changed with a right checksum, loaded and used",
    "parse": "damaged files given to `treewright parse`",
    "service": "damaged requests to the service",
    "load": "requests under load",
    "kills": "commands killed by SIGKILL at random moments, and gone on with to the same bytes",
    "workers": "workers of a cluster killed",
}


def record(name, options):
    """Run a campaign and write down what it came to; return the number of defects."""
    counts, defects, seconds, n_bytes = CAMPAIGNS[name](options)
    import treewright as tw

    line = {
        "campaign": name,
        "n_cases": sum(n for key, n in counts.items() if name not in KILLING or key.endswith("\tkills")),
        "counts": counts,
        "defects": defects,
        "seconds": round(seconds, 1),
        "n_bytes": n_bytes,
        "command": " ".join(["python", "benchmarks/reliability.py", *sys.argv[1:]]),
        "random_state": options.random_state,
        "bounds_checked": os.environ.get("NUMBA_BOUNDSCHECK") == "1",
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {"python": platform.python_version(), "treewright": tw.__version__}
        | {package: version(package) for package in PACKAGES},
    }
    with open(options.out, "a", encoding="utf-8") as stream:
        print(json.dumps(line), file=stream)
    print(f"{name}: {line['n_cases']:,} cases, {len(defects)} defects, {seconds:.0f} s")
    for defect in defects[:20]:
        print(f"  {defect}")
    return len(defects)


def table(path):
    """Return the table of all campaigns of a file."""
    lines = [json.loads(text) for text in Path(path).read_text(encoding="utf-8").splitlines()]
    rows = ["| what | how many | came to | crashes, hangs, lost results |", "| --- | ---: | --- | ---: |"]
    for name, text in ROWS.items():
        if chosen := [line for line in lines if line["campaign"] == name]:
            n_cases = sum(line["n_cases"] for line in chosen)
            n_defects = sum(len(line["defects"]) for line in chosen)
            rows.append(f"| {text} | {n_cases:,} | {_describe_outcomes(chosen)} | {n_defects:,} |")
    n_bytes = sum(line.get("n_bytes", 0) for line in lines)
    rows.append(f"| bytes corrupted in models, of both kinds | {n_bytes:,} | | |")
    return "\n".join(rows)


def _describe_outcomes(lines):
    """Say how often campaigns of one name came to what; what was lost or is wrong has a column of its own."""
    outcomes = Counter()
    for line in lines:
        for key, n in line["counts"].items():
            outcomes[key.partition("\t")[2]] += n
    told = [(outcome, n) for outcome, n in outcomes.most_common() if outcome not in UNTOLD]
    return ", ".join(f"{n:,} × {outcome}" for outcome, n in told)


def main():
    """Run campaigns, or print the table of those that were run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("campaign", choices=[*CAMPAIGNS, "all", "table"])
    parser.add_argument("--count", type=int, help="number of cases (default: depends on the campaign)")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="time limit after which no case is started"
    )
    parser.add_argument("--seed", dest="random_state", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument(
        "--only", nargs="*", help="commands or jobs to run, in campaigns that kill processes or workers"
    )
    parser.add_argument(
        "--row",
        action="store_true",
        help="kill and resume the same run of a command until all kills are done",
    )
    parser.add_argument("--clients", type=int, default=32, help="number of simultaneous clients under load")
    parser.add_argument("--models", type=Path, default=Path(tempfile.gettempdir(), "treewright-small-models"))
    parser.add_argument("--out", type=Path, default=Path("reliability.jsonl"))
    options = parser.parse_args()
    if options.campaign == "table":
        print(table(options.out))
        return
    logging.disable()
    chosen, asked = (CAMPAIGNS if options.campaign == "all" else [options.campaign]), options.count
    n_defects = 0
    for name in chosen:
        options.count = asked or COUNTS[name]
        n_defects += record(name, options)
    sys.exit(n_defects > 0)


if __name__ == "__main__":
    main()
