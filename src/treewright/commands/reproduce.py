"""`reproduce`: a subcommand for each experiment of a paper, with options made of its settings."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treewright.commands.console import say
from treewright.commands.options import ToldCommand, ToldCommands
from treewright.commands.signatures import Chosen, Options, takes

if TYPE_CHECKING:
    from treewright.report.experiment import Experiment


class ExperimentCommand(ToldCommand):
    """A command that goes on after an interruption when it is called again."""

    def _way_on(self, values: Mapping[str, Any]) -> str:
        return shlex.join(["treewright", *sys.argv[1:]])


class Experiments(ToldCommands):
    """The experiments; one is imported only when it is asked for by name."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401
        """Return the names of all experiments."""
        from treewright.report.experiment import list_experiments

        return list_experiments()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
        """Return a command that knows what its experiment is about, as lists of commands need it."""
        from treewright.report.experiment import describe_experiment

        return ExperimentCommand(cmd_name, help=describe_experiment(cmd_name))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:  # noqa: ANN401
        """Return the command of an experiment with all of its options."""
        from treewright.report.experiment import find_experiment, list_experiments

        if ctx.resilient_parsing and args[0] not in list_experiments():  # a shell asks what to offer
            return None, None, args
        return args[0], make_command(find_experiment(args[0])), args[1:]


def make_command(experiment: "Experiment") -> Any:  # noqa: ANN401
    """Return the command of an experiment."""
    from treewright.report import experiment as experiments

    @takes(chosen=Options(experiment.settings, "Experiment"))
    def run(
        data: Annotated[Path, typer.Option(help="Folder with treebanks, or the training file of one.")],
        out: Annotated[
            Path, typer.Option(help="Folder for tables, plot and page, and an index of all pages.")
        ],
        chosen: Chosen,
        cache: Annotated[Path | None, typer.Option(help="Folder to keep finished steps in.")] = None,
    ) -> None:
        settings = experiment.settings(**chosen.values)
        files = experiments.reproduce(
            experiment.name, data, out, settings=settings, cache=cache, progress=say
        )
        print(files[0].read_text(encoding="utf-8"))
        say(f"written: {', '.join(map(str, files))}", event="result")

    app = typer.Typer(add_completion=False, rich_markup_mode="markdown")
    text = f"""{experiments.describe_experiment(experiment.name)}.

    Finished steps are kept: the same command goes on after an interruption.

    Example: `treewright reproduce {experiment.name} --data treebank --out results`
    """
    app.command(experiment.name, cls=ExperimentCommand, help=text)(run)
    return typer.main.get_command(app)


reproduce = typer.Typer(cls=Experiments, add_completion=False)


@reproduce.callback()
def _describe() -> None:
    """Run an experiment of a paper, and write its table beside the paper's figures."""
