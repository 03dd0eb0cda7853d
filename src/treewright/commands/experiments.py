"""The demonstration of what the package does."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from treewright.commands.work import begin_checkpoint
from treewright.errors import InputError


def demo(
    out: Annotated[
        Path | None, typer.Option(help="Folder for the treebank's files and a page with what was shown.")
    ] = None,
    sentences: Annotated[int, typer.Option(min=20, help="Size of the made-up treebank.")] = 2000,
    seed: Annotated[int, typer.Option(help="Same seed, same treebank.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Threads; the result does not depend on them.")] = 2,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last finished step, in the folder of --out.")
    ] = False,
) -> None:
    """Train on a made-up treebank and show the results.

    Trains a tagger, a parser and a reranker.

    Example: `treewright demo --out demo`
    """
    from treewright.checkpoint import Checkpoint
    from treewright.report.demo import MODEL, run_demo

    if resume and out is None:
        raise InputError("--resume without --out; expected the folder of the demonstration that goes on")
    checkpoint = begin_checkpoint(out / MODEL, resume=resume) if out is not None else None
    console = Console(record=True)
    run_demo(console, n_sentences=sentences, random_state=seed, out=out, n_jobs=jobs, checkpoint=checkpoint)
    if checkpoint is not None:
        Checkpoint.remove(checkpoint)
