"""The options that every command has, before its name and after it."""

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
    run_aside,
    with_resume,
)
from treewright.errors import InputError, quote

UsageError = cast(type[Exception], typer.BadParameter.__base__)  # Typer does not export it by name
QUIET, LOG_JSON, IMPORT = "--quiet", "--log-json", "--import"
KEEPING = ("fetch",)
"""Commands that go on when they are called again."""
RESULTS, NO_FILE = ("out", "output"), (None, "-")
"""Parameters that name a result beside which unfinished work is kept, and what they are without one."""
BOUNDS = {"ge": "at least", "le": "at most"}
SHORT_TYPES = {"int": "N", "integer": "N", "float": "X", "str": "TEXT", "text": "TEXT", "path": "FILE"}
"""What the help shows for the types of options, by what versions of Typer call them."""
KINDS = {"int_parsing": "an integer", "int_from_float": "an integer", "float_parsing": "a number"}
"""What is expected, by what pydantic calls an error."""


def describe_misuse(error: typer.BadParameter) -> str:
    """Say which option or argument has which value, and what was expected.

    Other errors name the help of the command, as they do not say what was expected.
    """
    # Typer checks numbers by pydantic, or in versions before by click, which tells the value that it found.
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
    """Say in a few words what pydantic expected."""
    bounds = problem.get("ctx", {})
    for name, words in BOUNDS.items():
        if name in bounds:
            return f"{words} {bounds[name]:.10g}"
    return KINDS.get(problem["type"], str(problem["msg"]).removeprefix("Input should be "))


def _keep(context: typer.Context, parameter: typer.CallbackParam, value: bool) -> None:
    """Remember an option that was given, for whichever command it was given to."""
    if value:
        context.meta[f"treewright.{parameter.name}"] = True


def _import(names: list[str] | None) -> None:
    """Import modules, from the current folder or wherever Python finds them."""
    for name in names or ():
        import_here(name)


def import_here(name: str) -> ModuleType:
    """Import a module, from the current folder or wherever Python finds it."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return import_module(name)
    except (ImportError, SyntaxError) as error:
        raise InputError(f"{name} cannot be imported ({error}); expected a module of Python") from error


def _declare(
    quiet: Annotated[
        bool,
        typer.Option(
            QUIET,
            "-q",
            callback=_keep,
            expose_value=False,
            help="Print results and errors, but no log lines and no progress.",
            rich_help_panel="Running",
        ),
    ] = False,
    log_json: Annotated[
        bool,
        typer.Option(
            LOG_JSON,
            callback=_keep,
            expose_value=False,
            help="Log lines, progress and errors as JSON.",
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
            help="Import a module of yours first, which defines models.",
            rich_help_panel="Running",
        ),
    ] = None,
) -> None:
    """Have options from which Typer makes those that are added to commands."""


@cache
def shared_parameters() -> list[Any]:
    """Return the options of all commands, as Typer makes them."""
    declared = typer.Typer(add_completion=False)
    declared.command()(_declare)
    return list(typer.main.get_command(declared).params)


class _SharedOptions:
    """What commands and groups of them have in common: the options of all, and how these are shown."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401
        """Return its own options and those of all commands."""
        own: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        return _with_short_types([*own, *shared_parameters()])

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401
        """Return the words of the usage line, without the braces that Typer puts around arguments."""
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [piece.replace("{", "").replace("}", "") for piece in pieces]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Read arguments; an error knows whose they are."""
        try:
            rest: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        except UsageError as error:
            cast(typer.BadParameter, error).ctx = cast(typer.BadParameter, error).ctx or ctx
            raise
        return rest


class ToldCommand(_SharedOptions, TyperCommand):
    """A command that tells what it does as the user wants it.

    Attributes
    ----------
    hears_signals : bool
        Whether it deals with Ctrl-C itself.
    """

    hears_signals: ClassVar[bool] = False

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Run the command."""
        quiet, log_json = (bool(ctx.meta.get(f"treewright.{name}")) for name in ("quiet", "log_json"))
        if quiet and log_json:
            raise InputError(f"{QUIET} and {LOG_JSON} are both given; expected one of them")
        work = partial(super().invoke, ctx)
        with console_output(quiet=quiet, log_json=log_json):
            try:
                return work() if self.hears_signals else run_aside(work)
            except (InterruptedRunError, KeyboardInterrupt) as error:
                raise describe_interruption(error, self._way_on(ctx.params)) from error

    def _way_on(self, values: Mapping[str, Any]) -> str | None:
        """Return the command that goes on after an interruption, if this one can."""
        if any(values.get(name, "a file") in NO_FILE for name in RESULTS):
            return None
        if any(RESUME in parameter.opts for parameter in self.params):
            return with_resume(sys.argv[1:])
        return shlex.join(["treewright", *sys.argv[1:]]) if self.name in KEEPING else None


class ServingCommand(ToldCommand):
    """A command that hears signals itself."""

    hears_signals = True


class Entry(NamedTuple):
    """A command: ``"module:function"``, or a group of commands, and what it does in one line."""

    target: str
    help: str
    kind: type[ToldCommand] = ToldCommand


class LazyCommands(_SharedOptions, TyperGroup):
    """A group of commands that are imported when they are asked for.

    It takes the options that all of them have before their names.

    Attributes
    ----------
    entries : mapping of str to Entry
        The commands by name; where `load` is another, whatever has a `help` in one line.
    """

    entries: Mapping[str, Any]

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401
        super().__init__(**settings)
        listed = {name: TyperCommand(name, help=entry.help) for name, entry in self.entries.items()}
        self.commands = {**listed, **self.commands}

    def load(self, name: str) -> Any:  # noqa: ANN401
        """Import a command."""
        module, _, attribute = self.entries[name].target.partition(":")
        found = getattr(import_module(f"treewright.commands.{module}"), attribute)
        if isinstance(found, typer.Typer):
            return typer.main.get_command(found)
        return make_command(name, found, self.entries[name].kind)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
        """Return the command that arguments begin with, for which it has to be there."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and name in self.entries:
            command = self.load(str(name))
        return name, command, rest


def make_command(name: str, function: Callable[..., Any], kind: type[TyperCommand]) -> Any:  # noqa: ANN401
    """Return a command as Typer makes it from a function."""
    made = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)
    made.command(name, cls=kind)(function)
    return typer.main.get_command(made)


def _with_short_types(parameters: list[Any]) -> list[Any]:
    """Let the help show what options take in a few letters, and nothing for flags and arguments."""
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            parameter.display_type_rich = _show_nothing
        elif parameter.metavar is None:
            kind = parameter.bare_type() if hasattr(parameter, "bare_type") else parameter.type.name
            parameter.metavar = "" if parameter.is_flag else SHORT_TYPES.get(kind.lower())
        if parameter.param_type_name == "option" and parameter.show_default:
            # Typer would give a default a line of its own.
            if not any(parameter.default is each for each in (None, False, True)):
                parameter.help = f"{parameter.help} [default: {parameter.default}]"
            parameter.show_default = False
    return parameters


def _show_nothing(ctx: Any) -> str:  # noqa: ANN401
    return ""
