"""How a command tells what it does: in lines, with bars on a terminal, as JSON, or not at all.

All of it goes to standard error; results go to standard output and to files.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Literal, Protocol, TypeAlias

from treewright.commands.bars import drawn_bars
from treewright.progress import Step, listening, warnings_told

Event: TypeAlias = Literal["line", "progress", "error", "result"]

SECONDS_BETWEEN = 1.0
"""From one event of a task to the next, at the least, but for the last one."""


class Teller(Protocol):
    """What hears lines and steps."""

    def say(self, line: str, event: Event) -> None:
        """Tell a line."""

    def hear(self, step: Step) -> None:
        """Tell how far a task has come."""


class Lines:
    """Lines as they are, and nothing of steps."""

    def say(self, line: str, event: Event) -> None:
        """Print a line."""
        print(line, file=sys.stderr, flush=True)

    def hear(self, step: Step) -> None:
        """Keep silent."""


class Silence:
    """Nothing of anything."""

    def say(self, line: str, event: Event) -> None:
        """Keep silent."""

    def hear(self, step: Step) -> None:
        """Keep silent."""


class Json:
    """An object a line."""

    def __init__(self) -> None:
        self._told: dict[int, float] = {}
        """When a task was last heard of, in its own seconds."""

    def say(self, line: str, event: Event) -> None:
        """Write an event with a text."""
        write_event(event, text=line)

    def hear(self, step: Step) -> None:
        """Write an event with numbers, for each task about one a second and the last."""
        if step.is_over:
            self._told.pop(step.task, None)
        elif step.seconds - self._told.setdefault(step.task, 0.0) < SECONDS_BETWEEN:
            return
        else:
            self._told[step.task] = step.seconds
        write_event("progress", step=step)


def write_event(event: Event, *, text: str | None = None, step: Step | None = None) -> None:
    """Write an object to standard error; each has the same keys, and null where there is nothing to say."""
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


_teller: Teller = Lines()


def say(line: str, *, event: Event = "line") -> None:
    """Tell how far work has come, or with the event "result" what came of it."""
    _teller.say(line, event)


@contextmanager
def telling(*, quiet: bool, log_json: bool) -> Iterator[None]:
    """Let lines and steps be told as the user wants it.

    Parameters
    ----------
    quiet : bool
        Tell nothing.
    log_json : bool
        Tell events as JSON. Otherwise there are lines, and on a terminal bars.
    """
    if quiet:
        with _told_by(Silence()):
            yield
    elif log_json:
        with _told_by(Json()) as teller, listening(teller.hear), warnings_told(say):
            yield
    elif _can_draw():
        with drawn_bars() as bars, _told_by(bars), listening(bars.hear):
            yield
    else:
        with _told_by(Lines()):
            yield


def _can_draw() -> bool:
    """Tell whether standard error is a terminal on which lines can be drawn anew."""
    return (
        sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    )


@contextmanager
def _told_by(teller: Teller) -> Iterator[Teller]:
    global _teller
    before, _teller = _teller, teller
    try:
        yield teller
    finally:
        _teller = before
