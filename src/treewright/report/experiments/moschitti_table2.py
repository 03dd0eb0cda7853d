"""Moschitti (2006), Table 2: semantic roles in automatic parses."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from treewright._typing import Folder
from treewright.report.experiment import Inputs, experiment
from treewright.report.moschitti.arguments import read_propbank
from treewright.report.moschitti.parses import (
    LEAST_EXAMPLES,
    N_ROLES,
    OwnParser,
    parse_framenet,
    parse_propbank,
    read_frames,
)
from treewright.report.moschitti.role_systems import SEPARATE, AdjunctSettings, RoleBench
from treewright.report.moschitti.tables import (
    ABOUT_TESTS,
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

REPORTED = {"linear": 82.3, "st": 80.0, "sst": 81.2, "pt": 79.9}
"""Accuracies that the paper prints."""


@dataclass(frozen=True)
class MoschittiTable2Settings(AdjunctSettings):
    """The settings of Table 2.

    Parameters
    ----------
    treebank : Path, optional
        Folder of the treebank to train the constituency parser on, if not that of --data.
    constituent_parser : Path, optional
        Model of a constituency parser; one is trained without it.
    framenet : Path, optional
        Folder of FrameNet's XML release, for a second table.
    """

    treebank: Folder | None = None
    constituent_parser: Path | None = None
    framenet: Folder | None = None


@experiment("moschitti-table2", MoschittiTable2Settings)
def table2(settings: MoschittiTable2Settings, inputs: Inputs) -> Findings:
    """Compare the same systems on automatic parses, of PropBank and perhaps of FrameNet."""
    names = settings.choose_systems()
    frames = read_frames(settings.framenet) if settings.framenet else []
    bank = read_propbank(inputs.data, settings.n_sentences)
    parser = OwnParser(
        settings,
        inputs,
        bank.trees["train"],
        model=settings.constituent_parser,
        treebank=settings.treebank,
    )
    bench = RoleBench(parse_propbank(bank, parser), settings, inputs)
    found = try_systems(bench, names, settings.kinds)
    rows = result_rows(bench, names, found)
    notes = (
        "Of all: arguments whose words are no constituent of the parse count as wrong. They are not learnt "
        "from.",
        f"Parser: {parser.describe()}. A parser that was trained on the sentences to train roles on makes "
        "fewer errors in them than in those to test on.",
        *NOTES,
        *failures(rows),
    )
    columns = result_columns(settings.kinds, of_all=True)
    tables = [Table(f"Accuracy on {bench.corpus.name}, automatic parses", columns, rows, notes)]
    corpora = [bench.corpus]
    if frames:
        corpora.append(
            parse_framenet(
                frames, parser, random_state=settings.random_state, n_sentences=settings.n_sentences
            )
        )
        tables.append(_frame_table(RoleBench(corpora[-1], settings, inputs), names))
    return Findings(
        f"{PAPER}, Table 2: semantic roles in automatic parses",
        (*tables, *role_tables(bench, names, found), counts_table(corpora)),
        partial(draw_accuracies, rows=rows, kinds=settings.kinds),
        "Accuracy on the arguments to test on that are constituents of the automatic parse.",
        describe_settings(settings),
    )


def _frame_table(bench: RoleBench, names: Sequence[str]) -> Table:
    """Compare systems on FrameNet, whose roles know no adjuncts."""
    rows = result_rows(bench, names, try_systems(bench, names, (SEPARATE,)), REPORTED)
    notes = (
        f"paper: {PAPER}, Table 2: 40 frames of FrameNet as of Senseval 3, the 18 most frequent roles, "
        "37,948 examples, 30% of the sentences to test on, parses of Collins' parser: other data.",
        f"Here: all frames, the {N_ROLES} most frequent roles of at least {LEAST_EXAMPLES} examples; 70% of "
        "the sentences to train, 15% dev (not used), 15% test, by the seed. The predicate is the first word "
        "of the target.",
        ABOUT_TESTS,
        *failures(rows),
    )
    columns = result_columns((SEPARATE,), paper="paper, other data", of_all=True, group="FrameNet")
    return Table("Accuracy on FrameNet, automatic parses", columns, rows, notes)
