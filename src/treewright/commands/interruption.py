"""Commands that can be interrupted at once, and say how to go on."""

import ctypes
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import NoReturn, TypeVar

from treewright._ending import finish
from treewright.errors import TerminatedError

Result = TypeVar("Result")

RESUME = "--resume"
SECONDS_TO_TIDY = 0.4
"""In which an interrupted command can put things in order, before it is left where it is."""
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
    is_stuck : bool
        Whether something still runs that does not end.
    """

    def __init__(self, *, is_terminated: bool, way_on: str | None = None, is_stuck: bool = False) -> None:
        what = "terminated" if is_terminated else "interrupted"
        super().__init__(f"{what}; go on with: {way_on}" if way_on else what)
        self.code = 128 + (signal.SIGTERM if is_terminated else signal.SIGINT)
        self.is_terminated = is_terminated
        self.is_stuck = is_stuck


def describe_interruption(error: BaseException, way_on: str | None) -> InterruptedRunError:
    """Return an interruption that says how to go on."""
    found = error if isinstance(error, InterruptedRunError) else None
    is_terminated = found.is_terminated if found else isinstance(error, TerminatedError)
    is_stuck = found is not None and found.is_stuck
    return InterruptedRunError(is_terminated=is_terminated, is_stuck=is_stuck, way_on=way_on)


def run_aside(function: Callable[[], Result]) -> Result:
    """Run a function in a thread of its own, so that Ctrl-C is heard while compiled code runs, too.

    Raises
    ------
    InterruptedRunError
        After Ctrl-C or `TerminatedError`, within half a second.
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
    thread = threading.Thread(target=copy_context().run, args=(work,), daemon=True)
    thread.start()
    try:
        while not over.wait(SECONDS_DEAF):
            pass
    except KeyboardInterrupt as interrupt:
        is_stuck = not _stop(thread, over)
        is_terminated = isinstance(interrupt, TerminatedError)
        raise InterruptedRunError(is_terminated=is_terminated, is_stuck=is_stuck) from interrupt
    if errors:
        raise errors[0]
    return results[0]


def _stop(thread: threading.Thread, over: threading.Event) -> bool:
    """Raise KeyboardInterrupt in a thread; return whether it has ended."""
    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident), ctypes.py_object(KeyboardInterrupt)
    )
    try:
        return over.wait(SECONDS_TO_TIDY)
    except KeyboardInterrupt:  # who asks twice does not want to wait
        return False


def leave(code: int) -> NoReturn:
    """End the program while something in it still runs."""
    finish()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(code)


def with_resume(arguments: Sequence[str]) -> str:
    """Return the command that goes on with work that was begun with some arguments."""
    words = list(arguments)
    if RESUME not in words:
        words.insert(words.index("--") if "--" in words else len(words), RESUME)
    return shlex.join(["treewright", *words])
