"""`reproduce`: a subcommand for each experiment of a paper, with options made of its settings."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treewright.commands.console import say
from treewright.commands.options import Entry, LazyCommands, ToldCommand, make_command
from treewright.commands.signatures import Chosen, Options, takes

if TYPE_CHECKING:
    from treewright.report.experiment import Experiment


class ExperimentCommand(ToldCommand):
    """A command that goes on after an interruption when it is called again."""

    def _way_on(self, values: Mapping[str, Any]) -> str:
        return shlex.join(["treewright", *sys.argv[1:]])


class Experiments(LazyCommands):
    """The experiments; one is imported only when it is asked for by name."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401
        from treewright.report.experiment import describe_experiment, list_experiments

        self.entries = {name: Entry("", describe_experiment(name)) for name in list_experiments()}
        super().__init__(**settings)

    def load(self, name: str) -> Any:  # noqa: ANN401
        """Import an experiment."""
        from treewright.report.experiment import find_experiment

        return make_experiment_command(find_experiment(name))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
        """Return the command of an experiment; refuse names of no experiment with those that there are."""
        from treewright.report.experiment import find_experiment

        if not ctx.resilient_parsing:  # a shell may ask what to offer
            find_experiment(args[0])
        return super().resolve_command(ctx, args)


def make_experiment_command(experiment: "Experiment") -> Any:  # noqa: ANN401
    """Return the command of an experiment."""
    from treewright.report import experiment as experiments

    @takes(chosen=Options(experiment.settings, "Experiment"))
    def run(
        data: Annotated[
            Path, typer.Option(metavar="DIR", help="Folder with treebanks, or the training file of one.")
        ],
        out: Annotated[
            Path,
            typer.Option(metavar="DIR", help="Folder for tables, plot and page, and an index of all pages."),
        ],
        chosen: Chosen,
        cache: Annotated[
            Path | None, typer.Option(metavar="DIR", help="Folder to keep finished steps in.")
        ] = None,
    ) -> None:
        settings = experiment.settings(**chosen.values)
        files = experiments.reproduce(experiment.name, data, out, settings=settings, cache=cache)
        print(files[0].read_text(encoding="utf-8"))
        say(f"written: {', '.join(map(str, files))}", event="result")

    run.__doc__ = f"""{experiments.describe_experiment(experiment.name)}.

    Finished steps are kept: the same command goes on after an interruption.

    Example: `treewright reproduce {experiment.name} --data treebank --out results`
    """
    return make_command(experiment.name, run, ExperimentCommand)


reproduce = typer.Typer(cls=Experiments, add_completion=False, rich_markup_mode="markdown")


@reproduce.callback()
def _describe() -> None:
    """Run an experiment of a paper.

    Writes its table beside the paper's figures.

    Example: `treewright reproduce qian-liu-table2 --data ewt --out results`
    """
