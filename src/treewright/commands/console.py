"""Output of a command about its progress: log lines, progress bars on a terminal, JSON, or nothing.

It goes to standard error; results go to standard output and to files.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Literal, Protocol, TypeAlias

from treewright.commands.bars import drawn_bars
from treewright.progress import Event, Message, Step, listening, warnings_reported

Kind: TypeAlias = Literal["line", "progress", "error", "result"]

SECONDS_BETWEEN = 1.0
"""Minimum seconds between two JSON events of one task; the last event is always written."""


class Output(Protocol):
    """Prints log lines and the progress of tasks."""

    def print_line(self, line: str, kind: Kind) -> None:
        """Print a line."""

    def show_step(self, step: Step) -> None:
        """Show the progress of a task."""


class PlainLines:
    """Prints log lines unchanged, and ignores tasks."""

    def print_line(self, line: str, kind: Kind) -> None:
        """Print a line."""
        print(line, file=sys.stderr, flush=True)

    def show_step(self, step: Step) -> None:
        """Print nothing."""


class JsonLines:
    """Prints a JSON object for each log line, and about one per second for each task."""

    def __init__(self) -> None:
        self._printed: dict[int, float] = {}
        """Time of the last object of each task, in seconds since its start."""

    def print_line(self, line: str, kind: Kind) -> None:
        """Write a text event."""
        write_event(kind, text=line)

    def show_step(self, step: Step) -> None:
        """Write a progress event, at most about one per second; always write the last one."""
        if step.is_over:
            self._printed.pop(step.task, None)
        elif step.seconds - self._printed.setdefault(step.task, 0.0) < SECONDS_BETWEEN:
            return
        else:
            self._printed[step.task] = step.seconds
        write_event("progress", step=step)


def write_event(event: Kind, *, text: str | None = None, step: Step | None = None) -> None:
    """Write a JSON object to standard error. All objects have the same keys; missing values are null."""
    content = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "event": event,
        "text": text,
        "task": step and step.what,
        "done": step and step.done,
        "total": step and step.total,
        "unit": step and step.unit,
        "rate": step and _rounded(step.rate),
        "seconds_left": step and _rounded(step.seconds_left),
    }
    print(json.dumps(content, ensure_ascii=False), file=sys.stderr, flush=True)


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 3)


_output: Output | None = PlainLines()
"""The current output; None prints nothing."""


def say(line: str, *, event: Kind = "line") -> None:
    """Print a log line; the event "result" is a line about a written result."""
    if _output is not None:
        _output.print_line(line, event)


def _print_event(event: Event) -> None:
    """Print an event that the library reports."""
    if isinstance(event, Message):
        say(event.text)
    elif _output is not None:
        _output.show_step(event)


@contextmanager
def console_output(*, quiet: bool, log_json: bool) -> Iterator[None]:
    """Print log lines and progress in the format that the user chose.

    Parameters
    ----------
    quiet : bool
        Print nothing.
    log_json : bool
        Print events as JSON, instead of log lines and progress bars.
    """
    global _output
    before = _output
    with ExitStack() as stack:
        if quiet:
            _output = None
        elif log_json:
            _output = JsonLines()
            stack.enter_context(warnings_reported())
        else:
            is_terminal = sys.stderr is not None and sys.stderr.isatty()
            can_draw = is_terminal and os.environ.get("TERM") not in ("dumb", "unknown")
            _output = stack.enter_context(drawn_bars()) if can_draw else PlainLines()
        if _output is not None:
            stack.enter_context(listening(_print_event, has_tasks=not isinstance(_output, PlainLines)))
        try:
            yield
        finally:
            _output = before
