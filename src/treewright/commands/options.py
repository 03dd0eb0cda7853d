"""Options that every command accepts, before or after its name."""

import shlex
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any, ClassVar, NamedTuple, cast

import typer
from typer.core import TyperCommand, TyperGroup

from treewright.commands.console import console_output
from treewright.commands.interruption import (
    RESUME,
    InterruptedRunError,
    describe_interruption,
    run_in_thread,
    with_resume,
)
from treewright.errors import InputError, quote

UsageError = cast(type[Exception], typer.BadParameter.__base__)  # Typer does not export it
QUIET, LOG_JSON, IMPORT = "--quiet", "--log-json", "--import"
FLAGS = ("quiet", "log_json")
KEEPING = ("fetch",)
"""Commands that resume their work when they are run again."""
RESULTS, NO_FILE = ("out", "output"), (None, "-")
"""Parameters that name the output file, and values that do not name a file.

Checkpoints are stored next to the output file, so that only work with an output file can be resumed.
"""
BOUNDS = {"ge": "at least", "le": "at most"}
SHORT_TYPES = {"int": "N", "integer": "N", "float": "X", "str": "TEXT", "text": "TEXT", "path": "FILE"}
"""Short type names for the help, keyed by the names that different Typer versions use."""
KINDS = {"int_parsing": "an integer", "int_from_float": "an integer", "float_parsing": "a number"}
"""Descriptions of expected values, by pydantic's error types."""


def describe_misuse(error: typer.BadParameter) -> str:
    """Describe a usage error: the option or argument, its value, and the expected value.

    If the expected value is not known, the description refers to the help of the command.
    """
    # Typer checks numbers with pydantic; older versions use click, whose message includes the value.
    problem: Any = error.__cause__
    parameter: Any = getattr(error, "param", None)
    if parameter is None or not hasattr(problem, "errors"):
        command = error.ctx.command_path if error.ctx else "treewright"
        return f"{error.format_message().rstrip('.')} (see: {command} --help)"
    first = problem.errors()[0]
    return (
        f"{' / '.join(parameter.opts)} is {quote(str(first['input']))}; expected {_describe_expected(first)}"
    )


def _describe_expected(problem: Mapping[str, Any]) -> str:
    """Describe the value that pydantic expected."""
    bounds = problem.get("ctx", {})
    for name, words in BOUNDS.items():
        if name in bounds:
            return f"{words} {bounds[name]:.10g}"
    return KINDS.get(problem["type"], str(problem["msg"]).removeprefix("Input should be "))


def _import(names: list[str] | None) -> None:
    """Import modules from the current folder or Python's path."""
    for name in names or ():
        import_here(name)


def import_here(name: str) -> ModuleType:
    """Import a module from the current folder or Python's path."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return import_module(name)
    except (ImportError, SyntaxError) as error:
        raise InputError(f"{name} cannot be imported ({error}); expected a Python module") from error


def _declare(
    quiet: Annotated[
        bool,
        typer.Option(
            QUIET,
            "-q",
            help="Print no log lines and no progress bars, only results and errors.",
            rich_help_panel="Running",
        ),
    ] = False,
    log_json: Annotated[
        bool,
        typer.Option(
            LOG_JSON,
            help="Print log lines, progress and errors as JSON.",
            rich_help_panel="Running",
        ),
    ] = False,
    modules: Annotated[
        list[str] | None,
        typer.Option(
            IMPORT,
            callback=_import,
            is_eager=True,
            expose_value=False,
            metavar="MODULE",
            help="Import a module first, such as one that defines a model class.",
            rich_help_panel="Running",
        ),
    ] = None,
) -> None:
    """Declare the options that are added to every command."""


@cache
def shared_parameters() -> list[Any]:
    """Return the options that every command accepts, as Typer objects."""
    declared = typer.Typer(add_completion=False)
    declared.command()(_declare)
    return list(typer.main.get_command(declared).params)


class _SharedOptions:
    """Base of commands and groups of commands: reads the shared options and formats the help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Print the help with short type names for options, and no types for flags and arguments."""
        for parameter in self.get_params(ctx):  # type: ignore[attr-defined]
            if parameter.param_type_name == "argument":
                parameter.display_type_rich = lambda ctx: ""
            elif parameter.metavar is None:
                kind = parameter.bare_type() if hasattr(parameter, "bare_type") else parameter.type.name
                parameter.metavar = "" if parameter.is_flag else SHORT_TYPES.get(kind.lower())
            if parameter.param_type_name == "option" and parameter.show_default:
                # Typer would print the default on a separate line.
                if not any(parameter.default is each for each in (None, False, True)):
                    parameter.help = f"{parameter.help} [default: {parameter.default}]"
                parameter.show_default = False
        super().format_help(ctx, formatter)  # type: ignore[misc]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401
        """Return the words of the usage line without Typer's braces around arguments."""
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [piece.replace("{", "").replace("}", "") for piece in pieces]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Parse arguments; usage errors are raised with the context of the command."""
        try:
            rest: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        except UsageError as error:
            cast(typer.BadParameter, error).ctx = cast(typer.BadParameter, error).ctx or ctx
            raise
        for name in FLAGS:  # for the command that runs, whether they were given before or after its name
            if ctx.params.pop(name, False):
                ctx.meta[f"treewright.{name}"] = True
        return rest


class BaseCommand(_SharedOptions, TyperCommand):
    """A command that prints its progress in the format that the user chose.

    Attributes
    ----------
    handles_signals : bool
        Whether the command handles Ctrl-C itself.
    """

    handles_signals: ClassVar[bool] = False

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Run the command."""
        quiet, log_json = (bool(ctx.meta.get(f"treewright.{name}")) for name in FLAGS)
        if quiet and log_json:
            raise InputError(f"{QUIET} and {LOG_JSON} are both given; expected one of them")
        work = partial(super().invoke, ctx)
        with console_output(quiet=quiet, log_json=log_json):
            try:
                return work() if self.handles_signals else run_in_thread(work)
            except (InterruptedRunError, KeyboardInterrupt) as error:
                raise describe_interruption(error, self._resume_command(ctx.params)) from error

    def _resume_command(self, values: Mapping[str, Any]) -> str | None:
        """Return the command that resumes this one after an interruption; None if it cannot be resumed."""
        if any(values.get(name, "a file") in NO_FILE for name in RESULTS):
            return None
        if any(RESUME in parameter.opts for parameter in self.params):
            return with_resume(sys.argv[1:])
        return shlex.join(["treewright", *sys.argv[1:]]) if self.name in KEEPING else None


class ServingCommand(BaseCommand):
    """A command that handles signals itself."""

    handles_signals = True


class Entry(NamedTuple):
    """A command, or a group of commands: ``"module:function"`` and a one-line description."""

    target: str
    help: str
    kind: type[BaseCommand] = BaseCommand


class LazyCommands(_SharedOptions, TyperGroup):
    """A group of commands that are imported on first use.

    It accepts the shared options before the name of a command.

    Attributes
    ----------
    entries : mapping of str to Entry
        The commands by name; a subclass with its own `load` may use any objects with a one-line `help`.
    """

    entries: Mapping[str, Any]

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401
        super().__init__(**settings)
        listed = {name: TyperCommand(name, help=entry.help) for name, entry in self.entries.items()}
        self.commands = {**listed, **self.commands}
        self.params += shared_parameters()

    def load(self, name: str) -> Any:  # noqa: ANN401
        """Import a command."""
        module, _, attribute = self.entries[name].target.partition(":")
        found = getattr(import_module(f"treewright.commands.{module}"), attribute)
        if isinstance(found, typer.Typer):
            return typer.main.get_command(found)
        return make_command(name, found, self.entries[name].kind)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
        """Import and return the command whose name is the first argument."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and name in self.entries:
            command = self.load(str(name))
        return name, command, rest


def make_command(name: str, function: Callable[..., Any], kind: type[TyperCommand]) -> Any:  # noqa: ANN401
    """Make a Typer command from a function."""
    made = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)
    made.command(name, cls=kind)(function)
    command = typer.main.get_command(made)
    command.params += shared_parameters()
    return command
