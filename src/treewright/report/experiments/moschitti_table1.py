"""Moschitti (2006), Table 1: semantic roles on gold trees.

Syntactic Kernels for Natural Language Learning: the Semantic Role Labeling Case. NAACL 2006, short papers.
The paper's figures are for the Wall Street Journal and FrameNet; the experiment uses other data.
"""

from functools import partial

from treewright.report.experiment import Inputs, experiment
from treewright.report.moschitti.arguments import read_propbank
from treewright.report.moschitti.role_systems import AdjunctSettings, RoleBench
from treewright.report.moschitti.tables import (
    NOTES,
    counts_table,
    describe_settings,
    draw_accuracies,
    result_columns,
    result_rows,
    role_tables,
    try_systems,
)
from treewright.report.moschitti.times import PAPER
from treewright.report.tables import Findings, Table, failures

REPORTED = {"linear": 87.6, "st": 84.6, "sst": 87.7, "pt": 86.7}
"""Accuracies reported in the paper."""


@experiment("moschitti-table1", AdjunctSettings)
def table1(settings: AdjunctSettings, inputs: Inputs) -> Findings:
    """Compare linear features, tree kernels and sums of them on gold trees."""
    names = settings.choose_systems()
    bench = RoleBench(read_propbank(inputs.data, settings.n_sentences).corpus(), settings, inputs)
    found = try_systems(bench, names, settings.kinds)
    rows = result_rows(bench, names, found, REPORTED)
    notes = (
        f"paper: {PAPER}, Table 1: PropBank and gold trees of the Wall Street Journal (122,774 training and "
        "7,359 test arguments), ArgM merged; accuracies. Other data: only the order of systems can be "
        "compared. The paper reports gains of 2 to 3 points for sums of kernels.",
        *NOTES,
        *failures(rows),
    )
    columns = result_columns(settings.kinds, paper="paper, other data")
    return Findings(
        f"{PAPER}, Table 1: semantic roles on gold trees",
        (
            Table(f"Accuracy on {bench.corpus.name}, gold trees", columns, rows, notes),
            *role_tables(bench, names, found),
            counts_table([bench.corpus]),
        ),
        partial(draw_accuracies, rows=rows, kinds=settings.kinds),
        "Accuracy on test arguments, here and in the paper (other data).",
        describe_settings(settings),
    )
