"""The demonstration of what the package does."""

from rich.console import Console

from treewright.commands.signatures import Chosen, Options, takes
from treewright.commands.work import begin_checkpoint, running
from treewright.errors import InputError
from treewright.report.demo import MODEL, run_demo

SETTINGS = ("out", "n_sentences", "random_state", "n_jobs")


@takes(
    chosen=Options(run_demo, only=SETTINGS, defaults={"n_jobs": 2}),
    how=Options(running, leave_out=("scheduler",)),
)
def demo(chosen: Chosen, how: Chosen) -> None:
    """Train on a made-up treebank and show the results.

    Trains a tagger, a parser and a reranker.

    Example: `treewright demo --out demo`
    """
    from treewright.checkpoint import Checkpoint

    out, resume = chosen.values["out"], how.values["resume"]
    if resume and out is None:
        raise InputError("--resume without --out; expected the folder of the demonstration that goes on")
    checkpoint = begin_checkpoint(out / MODEL, resume=resume) if out is not None else None
    run_demo(Console(record=True), checkpoint=checkpoint, **chosen.values)
    if checkpoint is not None:
        Checkpoint.remove(checkpoint)
