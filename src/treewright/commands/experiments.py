"""The command `treewright demo`."""

from rich.console import Console

from treewright.commands.signatures import Chosen, Options, takes
from treewright.commands.work import begin_checkpoint, running
from treewright.report.demo import MODEL, run_demo

SETTINGS = ("out", "n_sentences", "random_state", "n_jobs")


@takes(
    chosen=Options(run_demo, only=SETTINGS, defaults={"n_jobs": 2}),
    how=Options(running, leave_out=("scheduler",)),
)
def demo(chosen: Chosen, how: Chosen) -> None:
    """Train on a generated treebank and show the results.

    Trains a tagger, a parser and a reranker. Writes the treebank, the model and an HTML page to a folder, and
    prints commands to try with them.

    Example: `treewright demo --out demo`
    """
    from treewright.checkpoint import Checkpoint

    checkpoint = begin_checkpoint(chosen.values["out"] / MODEL, resume=how.values["resume"])
    run_demo(Console(record=True), checkpoint=checkpoint, **chosen.values)
    Checkpoint.remove(checkpoint)
