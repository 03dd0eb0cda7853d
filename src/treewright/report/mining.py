"""Reports of mining: a log line for each round, and a table of conjunctions."""

import numpy as np

from treewright.data.files import Target, open_target
from treewright.data.svmlight import Samples
from treewright.mining.miner import ConjunctionMiner
from treewright.mining.reports import IterationReport, OrderReport
from treewright.progress import Message

MEBIBYTE = 1 << 20


class MiningLines:
    """A message filter (see `progress.filtered`) that makes one log line per round of a miner."""

    def __init__(self) -> None:
        self._orders: list[OrderReport] = []

    def __call__(self, message: Message) -> Message | None:
        """Keep the reports of single orders, and combine them with the report of their round."""
        found = message.record
        if isinstance(found, OrderReport):
            self._orders.append(found)
            return None
        if not isinstance(found, IterationReport):
            return message
        counted = ", ".join(
            f"{each.n_candidates:,} > {each.n_survivors:,} of order {each.order}" for each in self._orders
        )
        memory = max((each.n_bytes + each.n_bytes_on_disk for each in self._orders), default=0)
        self._orders = []
        text = f"{_headline(found)}; candidates > survivors: {counted}; {_size(memory)}"
        return Message(text, found)


def _headline(report: IterationReport) -> str:
    return (
        f"round {report.iteration}, threshold {report.threshold:.4g}, order {report.degree}: "
        f"{report.n_violators:,} violators, {report.n_entered:,} features added, "
        f"{report.n_selected:,} selected, objective {report.objective:,.1f}"
    )


def _size(n_bytes: int) -> str:
    return f"{n_bytes / MEBIBYTE:,.1f} MiB"


def write_conjunctions(miner: ConjunctionMiner, samples: Samples, target: Target) -> None:
    """Write the selected conjunctions as tab-separated values, largest weights first.

    The columns are the conjunction, its order, the number of samples that contain it, and its weight for each
    class (for two classes, the weight of the second).
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
