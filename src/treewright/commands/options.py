"""The options that every command has, before its name and after it."""

from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from treewright.commands.telling import telling
from treewright.errors import InputError

QUIET, LOG_JSON = "--quiet", "--log-json"


def _keep(context: typer.Context, parameter: typer.CallbackParam, value: bool) -> None:
    """Remember an option that was given, for whichever command it was given to."""
    if value:
        context.meta[f"treewright.{parameter.name}"] = True


def _declare(
    quiet: Annotated[
        bool, typer.Option(QUIET, "-q", callback=_keep, expose_value=False, help="Tell nothing but errors.")
    ] = False,
    log_json: Annotated[
        bool,
        typer.Option(
            LOG_JSON, callback=_keep, expose_value=False, help="Tell lines, progress and errors as JSON."
        ),
    ] = False,
) -> None:
    """Have options from which Typer makes those that are added to commands."""


@cache
def shared_parameters() -> list[Any]:
    """Return the options of all commands, as Typer makes them."""
    declared = typer.Typer(add_completion=False)
    declared.command()(_declare)
    return list(typer.main.get_command(declared).params)


class ToldCommand(TyperCommand):
    """A command that tells what it does as the user wants it."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401
        """Return its own options and those of all commands."""
        return [*super().get_params(ctx), *shared_parameters()]

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Run the command."""
        quiet, log_json = (bool(ctx.meta.get(f"treewright.{name}")) for name in ("quiet", "log_json"))
        if quiet and log_json:
            raise InputError(f"{QUIET} and {LOG_JSON} are both given; expected one of them")
        with telling(quiet=quiet, log_json=log_json):
            return super().invoke(ctx)


class ToldCommands(TyperGroup):
    """A group of commands that takes the options of all of them before their names."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401
        """Return its own options and those of all commands."""
        return [*super().get_params(ctx), *shared_parameters()]
