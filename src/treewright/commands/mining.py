"""The command `treewright mine`."""

import warnings
from pathlib import Path
from typing import Annotated

import typer

from treewright.commands.signatures import Chosen, Options, takes
from treewright.commands.work import (
    begin_checkpoint,
    check_results,
    check_writable,
    open_cluster,
    running,
    say,
)
from treewright.mining.gradient import PAPER_SETTINGS
from treewright.mining.miner import ConjunctionMiner
from treewright.progress import filtered


@takes(miner=Options(ConjunctionMiner, "Miner"), how=Options(running))
def mine(
    source: Annotated[
        str,
        typer.Argument(metavar="DATA", help="Samples, a label and features per line (- for standard input)."),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="File for the table of conjunctions.")],
    miner: Chosen,
    how: Chosen,
    model: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for the miner, for treewright.load.")
    ] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="Use the settings of Qian & Liu (2015) for mining.")
    ] = False,
) -> None:
    """Select conjunctions of binary features by gradient mining.

    Writes them with their weights.

    Example: `treewright mine data.svmlight --degree 4 --threshold 3 --out features.tsv`
    """
    import numpy as np

    from treewright.checkpoint import Checkpoint
    from treewright.data.formats import refuse_trees
    from treewright.data.svmlight import read_svmlight
    from treewright.report.mining import MiningLines, write_conjunctions

    if paper:
        miner.refuse("with --paper; expected it without", only=tuple(PAPER_SETTINGS))
    if model is None:
        miner.refuse("without --model; expected both", only=("sparse_output",))
    miner.refuse_without_effect()
    checkpoint = begin_checkpoint(out, resume=how.values["resume"])
    check_results({"--model": model, "--out": out}, {"DATA": source})
    for path in (out, model):
        if path is not None:
            check_writable(path)
    found = ConjunctionMiner(**miner.values | (PAPER_SETTINGS if paper else {}))
    refuse_trees(source, "samples, a label and features per line")
    samples = read_svmlight(source)
    with (
        open_cluster(how.values["scheduler"]) as client,
        warnings.catch_warnings(action="ignore", category=UserWarning),
        filtered(MiningLines()),
    ):
        found.fit(samples.X, samples.y, checkpoint=checkpoint, client=client)
    write_conjunctions(found, samples, out)
    if model is not None:
        found.feature_names_in_ = np.array(samples.names, dtype=object)
        found.save(model)
    Checkpoint.remove(checkpoint)
    say(
        f"threshold {found.threshold_:.4g}: {len(found.conjunctions_):,} conjunctions written: {out}",
        event="result",
    )
    if not found.conjunctions_:
        say("a lower --threshold selects more")
