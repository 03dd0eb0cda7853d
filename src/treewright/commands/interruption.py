"""Commands that can be interrupted at once, and say how to go on."""

import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import NoReturn, TypeVar

from treewright._cleanup import clean_up
from treewright.errors import TerminatedError

Result = TypeVar("Result")

RESUME = "--resume"
ASIDE = "command"
"""The name of the thread in which a command runs."""
SECONDS_DEAF = 0.2
"""On some systems waiting cannot be interrupted, so there is none without an end."""


class InterruptedRunError(Exception):
    """The user pressed Ctrl-C, or the system asked the program to end.

    Parameters
    ----------
    is_terminated : bool
        Whether it was the system.
    way_on : str, optional
        The command that goes on.
    is_running : bool
        Whether the command still runs, so that the program must be left.
    """

    def __init__(self, *, is_terminated: bool, way_on: str | None = None, is_running: bool = False) -> None:
        what = "terminated" if is_terminated else "interrupted"
        super().__init__(f"{what}; go on with: {way_on}" if way_on else what)
        self.code = 128 + (signal.SIGTERM if is_terminated else signal.SIGINT)
        self.is_terminated = is_terminated
        self.is_running = is_running


def describe_interruption(error: BaseException, way_on: str | None) -> InterruptedRunError:
    """Return an interruption that says how to go on."""
    found = error if isinstance(error, InterruptedRunError) else None
    is_terminated = found.is_terminated if found else isinstance(error, TerminatedError)
    is_running = found is not None and found.is_running
    return InterruptedRunError(is_terminated=is_terminated, is_running=is_running, way_on=way_on)


def run_aside(function: Callable[[], Result]) -> Result:
    """Run a function in a thread of its own, so that Ctrl-C is heard while compiled code runs, too.

    Nothing is raised in that thread, as what calls Python from compiled code does not outlive it. It goes on
    until `leave` ends the program, which is no more than what SIGKILL does, but for temporary files.

    In the main thread, Python hears a signal only when a compiled call returns. Single calls took 33 s where
    liblinear learned the roles of the English Web Treebank, 12 s where Numba compiled the parser, 2.3 s for a
    Gram matrix of 2,000 trees.

    Raises
    ------
    InterruptedRunError
        After Ctrl-C or `TerminatedError`, at once.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)
        finally:
            over.set()

    over = threading.Event()  # to join a thread and be interrupted may make it look as if it had ended
    thread = threading.Thread(target=copy_context().run, args=(work,), name=ASIDE, daemon=True)
    try:
        thread.start()
        while not over.wait(SECONDS_DEAF):
            pass
    except KeyboardInterrupt as interrupt:
        is_terminated = isinstance(interrupt, TerminatedError)
        raise InterruptedRunError(is_terminated=is_terminated, is_running=True) from interrupt
    if errors:
        raise errors[0]
    return results[0]


def leave(code: int) -> NoReturn:
    """End the program while a command still runs in its thread, which nothing but `os._exit` ends."""
    clean_up()
    if sys.stderr is not None:
        sys.stderr.flush()
    os._exit(code)


def with_resume(arguments: Sequence[str]) -> str:
    """Return the command that goes on with work that was begun with some arguments."""
    words = list(arguments)
    if RESUME not in words:
        words.insert(words.index("--") if "--" in words else len(words), RESUME)
    return shlex.join(["treewright", *words])
