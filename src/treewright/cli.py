"""The command line. Every expected error prints one line to standard error and exits with code 2."""

import io
import logging
import os
import sys
import threading
from typing import Annotated, Any, cast

import typer

from treewright._version import __version__
from treewright.commands.console import say, write_event
from treewright.commands.interruption import THREAD_NAME, InterruptedRunError, describe_interruption, leave
from treewright.commands.options import (
    LOG_JSON,
    Entry,
    LazyCommands,
    ServingCommand,
    UsageError,
    describe_misuse,
)
from treewright.data.files import STANDARD_OUTPUT
from treewright.errors import TreewrightError

INTERRUPTED = 130


class ClosedPipeError(Exception):
    """The reader of standard output has closed the pipe."""


COMMANDS = {
    "demo": Entry("experiments:demo", "Train on a generated treebank and show the results."),
    "convert": Entry("treebanks:convert", "Convert a treebank to another format."),
    "evaluate": Entry("treebanks:evaluate", "Score predictions against gold annotation."),
    "train": Entry("train:app", "Train a model."),
    "parse": Entry("parse:parse", "Parse sentences with a trained model."),
    "explain": Entry("parse:explain", "Show why a parser or reranker chose a tree."),
    "serve": Entry("serving:serve", "Serve parsers as a web page and a JSON API.", ServingCommand),
    "mine": Entry("mining:mine", "Select conjunctions of binary features by gradient mining."),
    "kernel": Entry("kernels:kernel", "Compute the Gram matrix of a tree kernel."),
    "reproduce": Entry("reproduce:reproduce", "Reproduce an experiment from a paper."),
    "fetch": Entry("treebanks:fetch", "Download a Universal Dependencies treebank."),
}
"""All commands; each is imported from `treewright.commands` on first use."""


class _Commands(LazyCommands):
    """All commands. Interruptions are passed on to `run`; Typer would exit without a message."""

    entries = COMMANDS

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise describe_interruption(error, None) from error
        except BrokenPipeError as error:
            raise ClosedPipeError from error


class _SayHandler(logging.Handler):
    """Prints log records in the same form as the output of a command."""

    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record))


app = typer.Typer(
    name="treewright",
    cls=_Commands,
    help="Learn from trees: parsers, tree kernels and feature mining in huge structured spaces.",
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def run() -> int:
    """Run the command line, print each expected error as one line, and return the exit code."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING, handlers=[_SayHandler()])
    # Print drawings under any system encoding: UTF-8 to files, replacement characters on old terminals.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")
    try:
        code = app(prog_name="treewright", standalone_mode=False) or 0
        # Typer turns Ctrl-C into this exit code before a command starts.
        return fail("interrupted", code=code) if code == INTERRUPTED else code
    except UsageError as error:
        return fail(describe_misuse(cast(typer.BadParameter, error)))
    except TreewrightError as error:
        return fail(f"{error} (see docs/{error.help})" if error.help else str(error))
    except ClosedPipeError:
        _discard_output()
        return 0
    except OSError as error:
        if error.filename == STANDARD_OUTPUT:
            _discard_output()
        return fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (InterruptedRunError, KeyboardInterrupt, typer.Abort) as error:
        found = error if isinstance(error, InterruptedRunError) else describe_interruption(error, None)
        code = fail(str(found), code=found.code)
        is_left = found.is_running or any(thread.name == THREAD_NAME for thread in threading.enumerate())
        return leave(code) if is_left else code


def _discard_output() -> None:
    """Redirect standard output to the null device, since its reader is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(message: str, *, code: int = 2) -> int:
    """Print an error as one line and return the exit code."""
    line = " ".join(message.split())
    if LOG_JSON in sys.argv[1:]:  # anywhere: the arguments may not have been parsed
        write_event("error", text=line)
    else:
        print(f"treewright: {line}", file=sys.stderr)
    return code


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"treewright {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
