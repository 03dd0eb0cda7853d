"""What was mined: progress on the terminal, and a table of conjunctions."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.table import Table

from treewright.data.files import Target, open_target
from treewright.data.svmlight import Samples
from treewright.mining.miner import ConjunctionMiner
from treewright.mining.reports import IterationReport, OrderReport, Progress, Report

MEBIBYTE = 1 << 20


@contextmanager
def mining_display() -> Iterator[Progress]:
    """Yield a callback for `fit` that shows each round on standard error.

    On a terminal it is a table of the orders that changes as they are counted; elsewhere, a line a round.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(console)
        return
    with Live(console=console, transient=True) as live:
        yield _LiveTable(live)


class _Lines:
    """A line for each round."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._orders: list[OrderReport] = []

    def __call__(self, report: Report) -> None:
        if isinstance(report, OrderReport):
            self._orders.append(report)
            return
        counted = ", ".join(
            f"{each.n_candidates:,} > {each.n_survivors:,} of order {each.order}" for each in self._orders
        )
        memory = max((each.n_bytes + each.n_bytes_on_disk for each in self._orders), default=0)
        self._orders = []
        text = f"{_headline(report)}; candidates > survivors: {counted}; {_size(memory)}"
        self._console.print(text, soft_wrap=True, highlight=False, markup=False)


class _LiveTable:
    """A table that is drawn anew with each order."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._orders: dict[int, OrderReport] = {}
        self._title = "mining"

    def __call__(self, report: Report) -> None:
        if isinstance(report, IterationReport):
            self._title = _headline(report)
        else:
            if report.order == 1:
                self._orders = {}
            self._orders[report.order] = report
        table = Table("order", "candidates", "survivors", "enter", "memory", "disk", title=self._title)
        for each in self._orders.values():
            counts = (each.order, each.n_candidates, each.n_survivors, each.n_entering)
            sizes = (_size(each.n_bytes), _size(each.n_bytes_on_disk))
            table.add_row(*(f"{count:,}" for count in counts), *sizes)
        self._live.update(table)


def _headline(report: IterationReport) -> str:
    return (
        f"round {report.iteration}, threshold {report.threshold:.4g}, order {report.degree}: "
        f"{report.n_violators:,} violators, {report.n_entered:,} enter, {report.n_selected:,} selected, "
        f"objective {report.objective:,.1f}"
    )


def _size(n_bytes: int) -> str:
    return f"{n_bytes / MEBIBYTE:,.1f} MiB"


def write_conjunctions(miner: ConjunctionMiner, samples: Samples, target: Target) -> None:
    """Write the selected conjunctions as a table with tabs, the weightiest first.

    Columns: the conjunction, its order, in how many samples it is present, and its weight for each class, or
    for the second of two.
    """
    names = miner.get_feature_names_out(samples.names)
    counts = np.asarray(miner.transform(samples.X).sum(axis=0)).ravel().astype(int)
    classes = miner.classes_[-1:] if len(miner.classes_) == 2 else miner.classes_
    sequence = np.argsort(-np.abs(miner.coef_).max(axis=0, initial=0), kind="stable")
    with open_target(target) as stream:
        heads = ["conjunction", "order", "count", *(f"weight:{each}" for each in classes)]
        stream.write("\t".join(heads) + "\n")
        for each in sequence.tolist():
            weights = [f"{weight:.6g}" for weight in miner.coef_[:, each]]
            row = [names[each], str(len(miner.conjunctions_[each])), str(counts[each]), *weights]
            stream.write("\t".join(row) + "\n")
