"""The command `treewright mine`."""

import warnings
from pathlib import Path
from typing import Annotated

import typer

from treewright.commands.work import (
    Scheduler,
    begin_checkpoint,
    check_results,
    check_writable,
    open_cluster,
    say,
)
from treewright.errors import InputError
from treewright.progress import filtered


def mine(
    source: Annotated[
        str,
        typer.Argument(metavar="DATA", help="Samples, a line each: a label, then its features; - is input."),
    ],
    out: Annotated[Path, typer.Option(help="File for the table of conjunctions.")],
    degree: Annotated[int, typer.Option(min=1, help="The most features in a conjunction.")] = 3,
    threshold: Annotated[
        str, typer.Option(help="A number: more select less; auto: chosen on held-out samples.")
    ] = "auto",
    max_iter: Annotated[int, typer.Option(min=1, help="Rounds through the space.")] = 20,
    paper: Annotated[
        bool, typer.Option("--paper", help="The settings of Qian & Liu (2015); --max-iter has no effect.")
    ] = False,
    memory_limit: Annotated[
        int | None, typer.Option(min=1, help="MiB beside the samples; what survives goes to disk.")
    ] = None,
    filter_memory: Annotated[
        int | None, typer.Option(min=1, help="MiB for a Bloom filter before candidates are counted.")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="File for the miner, for `treewright.load`.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same conjunctions.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Threads; the result does not depend on them.")] = 1,
    scheduler: Scheduler = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last finished round.")] = False,
) -> None:
    """Select conjunctions of binary features by gradient mining, and write them with their weights.

    Example: `treewright mine data.svmlight --degree 4 --threshold 3 --out features.tsv`
    """
    import numpy as np

    from treewright.checkpoint import Checkpoint
    from treewright.data.svmlight import read_svmlight
    from treewright.mining.gradient import PAPER_SETTINGS
    from treewright.mining.miner import ConjunctionMiner
    from treewright.report.mining import MiningLines, write_conjunctions

    checkpoint = begin_checkpoint(out, resume=resume)
    check_results({"--model": model, "--out": out}, {"DATA": source})
    for path in (out, model):
        if path is not None:
            check_writable(path)
    options = PAPER_SETTINGS if paper else {"max_iter": max_iter}
    miner = ConjunctionMiner(
        degree=degree,
        threshold=_parse_threshold(threshold),
        memory_limit=memory_limit and memory_limit << 20,
        filter_memory=filter_memory and filter_memory << 20,
        random_state=seed,
        n_jobs=jobs,
        **options,
    )
    samples = read_svmlight(source)
    with (
        open_cluster(scheduler) as client,
        warnings.catch_warnings(action="ignore", category=UserWarning),
        filtered(MiningLines()),
    ):
        miner.fit(samples.X, samples.y, checkpoint=checkpoint, client=client)
    write_conjunctions(miner, samples, out)
    if model is not None:
        miner.feature_names_in_ = np.array(samples.names, dtype=object)
        miner.save(model)
    Checkpoint.remove(checkpoint)
    say(
        f"threshold {miner.threshold_:.4g}: {len(miner.conjunctions_):,} conjunctions written: {out}",
        event="result",
    )
    if not miner.conjunctions_:
        say("a lower --threshold selects more")


def _parse_threshold(text: str) -> float | str:
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise InputError(f"--threshold is {text!r}; expected a number or auto") from None
