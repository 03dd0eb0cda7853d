"""The command `treewright mine`."""

import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from treewright._optional import require
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
        typer.Argument(
            metavar="DATA",
            help="Samples in svmlight format, with a label and features per line (- is standard input).",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="File for the table of conjunctions.")],
    miner: Chosen,
    how: Chosen,
    model: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for the fitted miner (see treewright.load).")
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File for the rules with support, lift and examples (.md, .txt, .csv).",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File for a plot of the strongest rules (.svg, .png, .pdf)."),
    ] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="Use the settings of Qian & Liu (2015) for mining.")
    ] = False,
) -> None:
    """Select conjunctions of binary features by gradient mining.

    Writes a table of conjunctions with their weights. With `--rules`, support and lift are computed on the
    same samples, and examples are sample numbers, from 1.

    Example: `treewright mine data.svmlight --degree 4 --threshold 3 --out features.tsv`
    """
    import numpy as np

    from treewright.checkpoint import Checkpoint
    from treewright.data.formats import refuse_trees
    from treewright.data.svmlight import read_svmlight
    from treewright.mining.rules import compare_parts, list_rules
    from treewright.report.mining import MiningLines, write_conjunctions
    from treewright.report.rules import check_plot_name, check_table_name, plot_rules, write_rules

    if paper:
        miner.refuse("with --paper; remove one of them", only=tuple(PAPER_SETTINGS))
    if model is None:
        miner.refuse("without --model; add --model", only=("sparse_output",))
    miner.refuse_without_effect()
    checkpoint = begin_checkpoint(out, resume=how.values["resume"])
    check_results({"--model": model, "--out": out, "--rules": rules, "--plot": plot}, {"DATA": source})
    if rules is not None:
        check_table_name(rules)
    if plot is not None:
        check_plot_name(plot)
        require("matplotlib", "report")
    for path in (out, model, rules, plot):
        if path is not None:
            check_writable(path)
    found = ConjunctionMiner(**miner.values | (PAPER_SETTINGS if paper else {}))
    refuse_trees(source, "samples, a label and features per line")
    samples = read_svmlight(source)
    scheduler = how.values["scheduler"]
    with (
        open_cluster(scheduler) if scheduler is not None else nullcontext() as client,
        warnings.catch_warnings(action="ignore", category=UserWarning),
        filtered(MiningLines()),
    ):
        found.fit(samples.X, samples.y, checkpoint=checkpoint, client=client)
    write_conjunctions(found, samples, out)
    if rules is not None or plot is not None:
        listed = list_rules(found, samples.X, samples.y, names=samples.names, first_number=1)
        if rules is not None:
            write_rules(listed, compare_parts(found, samples.X, samples.y), rules)
        if plot is not None and len(listed):
            plot_rules(listed, plot)
    if model is not None:
        found.feature_names_in_ = np.array(samples.names, dtype=object)
        found.save(model)
    Checkpoint.remove(checkpoint)
    say(
        f"threshold {found.threshold_:.4g}: {len(found.conjunctions_):,} conjunctions written: {out}",
        event="result",
    )
    if not found.conjunctions_:
        say("a lower --threshold selects more conjunctions")
