"""The command `treewright reproduce`: a subcommand per experiment, with its settings as options."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treewright.commands.console import say
from treewright.commands.options import BaseCommand, Entry, LazyCommands, make_command
from treewright.commands.signatures import Chosen, Options, takes

if TYPE_CHECKING:
    from treewright.report.experiment import Experiment


class ExperimentCommand(BaseCommand):
    """A command that resumes when it is run again."""

    def _resume_command(self, values: Mapping[str, Any]) -> str:
        return shlex.join(["treewright", *sys.argv[1:]])


class Experiments(LazyCommands):
    """The experiments; each is imported on first use."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401
        from treewright.report.experiment import describe_experiment, list_experiments

        self.entries = {name: Entry("", describe_experiment(name)) for name in list_experiments()}
        super().__init__(**settings)

    def load(self, name: str) -> Any:  # noqa: ANN401
        """Import an experiment."""
        from treewright.report.experiment import find_experiment

        return make_experiment_command(find_experiment(name))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
        """Return the command of an experiment; for an unknown name, raise an error that lists the names."""
        from treewright.report.experiment import find_experiment

        if not ctx.resilient_parsing:  # not while completing in a shell
            find_experiment(args[0])
        return super().resolve_command(ctx, args)


def make_experiment_command(experiment: "Experiment") -> Any:  # noqa: ANN401
    """Return the command of an experiment."""
    from treewright.report import experiment as experiments

    @takes(chosen=Options(experiment.settings, "Experiment"))
    def run(
        data: Annotated[
            Path,
            typer.Option(metavar="DIR", help="Folder with treebanks, or the training file of a treebank."),
        ],
        out: Annotated[
            Path,
            typer.Option(metavar="DIR", help="Folder for tables, plots and HTML pages."),
        ],
        chosen: Chosen,
        cache: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for finished steps.")] = None,
    ) -> None:
        settings = experiment.settings(**chosen.values)
        files = experiments.reproduce(experiment.name, data, out, settings=settings, cache=cache)
        print(files[0].read_text(encoding="utf-8"))
        say(f"written: {', '.join(map(str, files))}", event="result")

    run.__doc__ = f"""{experiments.describe_experiment(experiment.name)}.

    Finished steps are kept: after an interruption, run the same command again to resume.

    Example: `treewright reproduce {experiment.name} --data treebank --out results`
    """
    return make_command(experiment.name, run, ExperimentCommand)


reproduce = typer.Typer(cls=Experiments, add_completion=False, rich_markup_mode="markdown")


@reproduce.callback()
def _describe() -> None:
    """Reproduce an experiment from a paper.

    Writes a table that compares the results with those of the paper.

    Example: `treewright reproduce qian-liu-table2 --data ewt --out results`
    """
