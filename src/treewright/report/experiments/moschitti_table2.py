"""Moschitti (2006), Table 2: semantic roles in automatic parses."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from treewright._naming import named
from treewright._typing import Count, Folder, Range
from treewright.errors import InputError
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
"""Accuracies reported in the paper."""


@dataclass(frozen=True)
class MoschittiTable2Settings(AdjunctSettings):
    """Settings of Table 2.

    Parameters
    ----------
    treebank : Path, optional
        Folder of the treebank that trains the constituency parser (default: --data).
    constituent_parser : Path, optional
        Trained constituency parser (by default, one is trained).
    folds : int, optional
        Number of jackknife folds for parsing the training sentences (default: no jackknifing). Folds consist
        of whole documents; each is parsed and tagged by models that were not trained on it.
    framenet : Path, optional
        Folder of FrameNet's XML release, for a second table.
    frames : tuple of str, optional
        FrameNet frames to use, such as Lending,Taking (default: all; in the paper: the 40 frames of Senseval
        3).
    least_examples : int, optional
        Minimum number of examples of a FrameNet role (default: 100; in the paper: no minimum).
    """

    treebank: Folder | None = None
    constituent_parser: Path | None = None
    folds: Annotated[int, Range(2)] | None = None
    framenet: Folder | None = None
    frames: tuple[str, ...] | None = None
    least_examples: Count | None = None

    def check(self) -> None:
        """Raise `InputError` for an invalid value."""
        super().check()
        if self.folds and self.treebank is not None:
            found = f"{named('folds')} has no effect with {named('treebank')}"
            raise InputError(f"{found}, whose parser is trained on other sentences; remove one of them")
        for name in ("frames", "least_examples"):
            if getattr(self, name) and self.framenet is None:
                raise InputError(f"{named(name)} has no effect without {named('framenet')}; remove it")


@experiment("moschitti-table2", MoschittiTable2Settings)
def table2(settings: MoschittiTable2Settings, inputs: Inputs) -> Findings:
    """Compare the same systems on automatic parses of PropBank and optionally FrameNet."""
    names = settings.choose_systems()
    frames = read_frames(settings.framenet, settings.frames) if settings.framenet else []
    bank = read_propbank(inputs.data, settings.n_sentences)
    parser = OwnParser(
        settings,
        inputs,
        bank.trees["train"],
        model=settings.constituent_parser,
        treebank=settings.treebank,
        comments=[sentence.comments for sentence in bank.sentences["train"]],
        folds=settings.folds,
    )
    bench = RoleBench(parse_propbank(bank, parser), settings, inputs)
    found = try_systems(bench, names, settings.kinds)
    rows = result_rows(bench, names, found)
    notes = (
        "Of all: accuracy on all arguments, where those that are not constituents of the parse count as "
        "errors. They are not used for training.",
        f"Parser: {parser.describe()}. {parser.describe_training()}",
        *NOTES,
        *failures(rows),
    )
    columns = result_columns(settings.kinds, of_all=True)
    tables = [Table(f"Accuracy on {bench.corpus.name}, automatic parses", columns, rows, notes)]
    corpora = [bench.corpus]
    if frames:
        corpora.append(
            parse_framenet(
                frames,
                parser,
                random_state=settings.random_state,
                n_sentences=settings.n_sentences,
                least_examples=settings.least_examples,
            )
        )
        tables.append(_frame_table(RoleBench(corpora[-1], settings, inputs), names, settings))
    return Findings(
        f"{PAPER}, Table 2: semantic roles in automatic parses",
        (*tables, *role_tables(bench, names, found), counts_table(corpora)),
        partial(draw_accuracies, rows=rows, kinds=settings.kinds),
        "Accuracy on test arguments that are constituents of the automatic parse.",
        describe_settings(settings),
    )


def _frame_table(bench: RoleBench, names: Sequence[str], settings: MoschittiTable2Settings) -> Table:
    """Compare systems on FrameNet, whose roles do not distinguish adjuncts."""
    frames, least = settings.frames, settings.least_examples or LEAST_EXAMPLES
    kept = f"{len(frames)} frame{'s' if len(frames) > 1 else ''}" if frames else "all frames"
    rows = result_rows(bench, names, try_systems(bench, names, (SEPARATE,)), REPORTED)
    notes = (
        f"paper: {PAPER}, Table 2: 40 frames of FrameNet as of Senseval 3, the 18 most frequent roles, "
        "37,948 examples, 30% of the sentences for testing, parses of Collins' parser: other data.",
        f"Here: {kept}, the {N_ROLES} most frequent roles of at least {least} examples; 70% of "
        "the sentences for training and 30% for testing, at random. The predicate is the first word of the "
        "target.",
        ABOUT_TESTS,
        *failures(rows),
    )
    columns = result_columns((SEPARATE,), paper="paper, other data", of_all=True, group="FrameNet")
    return Table("Accuracy on FrameNet, automatic parses", columns, rows, notes)
