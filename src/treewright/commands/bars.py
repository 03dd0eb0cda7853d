"""Progress bars on a terminal, with rate and remaining time, below all printed lines."""

import sys
import textwrap
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import IO, TYPE_CHECKING, Any, BinaryIO, TextIO, cast

from treewright.progress import Step

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.progress import TaskID

SECONDS_UNSEEN = 0.3
"""A task gets a bar only if it takes longer than this number of seconds."""
MAX_BARS = 8
BAR_WIDTH, MIN_BAR_WIDTH = 28, 8
MIN_WIDTH = 10
"""Minimum width of descriptions, which are wrapped if they are longer."""
NUMBERS = ("count", "rate", "rest")
"""The columns to the right of a bar."""
DRAWN_A_SECOND = 8
UNITS = ("", "k", "M", "G", "T")


class Bars:
    """A progress bar for each running task, refreshed several times a second.

    Parameters
    ----------
    stream : file
        The terminal.
    width : int, optional
        Columns of the terminal (by default, detected).
    """

    def __init__(self, stream: TextIO, width: int | None = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        self._console = Console(file=stream, width=width)
        bar = Column(min_width=MIN_BAR_WIDTH, max_width=BAR_WIDTH)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None, table_column=bar),
            *(TextColumn(f"{{task.fields[{name}]}}", markup=False) for name in NUMBERS),
            console=self._console,
        )
        self._tasks: dict[int, TaskID] = {}
        self._live: Live | None = None
        self._is_allowed = self._is_at_line_start = True
        self._lock = threading.RLock()

    def print_line(self, line: str, kind: str) -> None:
        """Print a line above the bars."""
        self.write_above(self._console.file, f"{line}\n")

    def show_step(self, step: Step) -> None:
        """Update the bar of a task, or remove it when the task is over."""
        with self._lock:
            if step.is_over:
                if step.task in self._tasks:
                    self._progress.remove_task(self._tasks.pop(step.task))
                return
            if step.task not in self._tasks:
                self._tasks[step.task] = self._progress.add_task(step.what, step=step)
            self._progress.update(self._tasks[step.task], completed=step.done, total=step.total, step=step)
            self._show()

    def write_above(self, stream: IO[str], text: str) -> int:
        """Write to a stream of the same terminal while the bars are hidden."""
        with self._lock:
            self._hide()
            n_written = stream.write(text)
            stream.flush()
            if text:
                self._is_at_line_start = text.endswith("\n")
            if self._tasks:
                self._show()
        return n_written

    def forbid(self) -> None:
        """Stop drawing bars."""
        with self._lock:
            self._is_allowed = False
            self._hide()

    def _show(self) -> None:
        from rich.live import Live

        # The live display of `Progress` cannot be restarted, so each start makes a new one.
        if self._live is None and self._is_allowed and self._is_at_line_start:
            self._live = Live(
                get_renderable=self.draw,
                console=self._console,
                transient=True,
                refresh_per_second=DRAWN_A_SECOND,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()

    def _hide(self) -> None:
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()

    def draw(self) -> "RenderableType":
        """Return the bars of the latest tasks that have run long enough."""
        shown = [task for task in self._progress.tasks if (task.elapsed or 0.0) >= SECONDS_UNSEEN][-MAX_BARS:]
        if not shown:
            return ""
        for task in shown:
            step = task.fields["step"]
            rest = describe_rest(step, (task.elapsed or 0.0) - step.seconds)
            task.fields.update(count=describe_count(step), rate=describe_rate(step), rest=rest)
        widths = [max(len(task.fields[name]) for task in shown) + 1 for name in NUMBERS]
        room = max(MIN_WIDTH, self._console.width - MIN_BAR_WIDTH - 1 - sum(widths))
        for task in shown:
            task.description = "\n".join(textwrap.wrap(task.fields["step"].what, room))
        return self._progress.make_tasks_table(shown)


def describe_count(step: Step) -> str:
    """Format the number of items done and the total."""
    if step.unit == "bytes":
        total = "" if step.total is None else f"/{_shorten(step.total)}"
        return f"{_shorten(step.done)}{total}B"
    total = "" if step.total is None else f"/{step.total:,}"
    return f"{step.done:,}{total} {step.unit}"


def describe_rate(step: Step) -> str:
    """Format the number of items per second."""
    if step.rate is None:
        return "-/s"
    if step.unit == "bytes":
        return f"{_shorten(step.rate)}B/s"
    return f"{step.rate:,.0f}/s" if step.rate >= 10 else f"{step.rate:.2g}/s"


def describe_rest(step: Step, since: float = 0.0) -> str:
    """Format the remaining time, `since` seconds after the last step, such as 0:02:10."""
    if step.seconds_left is None:
        return "-:--:--"
    seconds = round(max(0.0, step.seconds_left - max(0.0, since)))
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _shorten(number: float) -> str:
    """Format a number of bytes with a unit prefix, such as 1.5 M."""
    power = 0
    while number >= 1000 and power < len(UNITS) - 1:
        number, power = number / 1000, power + 1
    return f"{number:.1f} {UNITS[power]}" if power else f"{number:.0f} "


class AboveBars:
    """A stream to the terminal on which the bars are drawn; its output appears above them.

    Parameters
    ----------
    stream : file
        The terminal.
    bars : Bars
        The bars on the terminal.
    """

    def __init__(self, stream: TextIO, bars: Bars) -> None:
        self._stream = stream
        self._bars = bars

    def write(self, text: str) -> int:
        """Write a text while the bars are hidden."""
        return self._bars.write_above(self._stream, text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts while the bars are hidden."""
        self.write("".join(lines))

    @property
    def buffer(self) -> BinaryIO:
        """The underlying binary stream; no bars are drawn after this, since results are written to it."""
        self._bars.forbid()
        return self._stream.buffer

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._stream, name)


@contextmanager
def drawn_bars() -> Iterator[Bars]:
    """Draw bars on the terminal of standard error, and remove them at the end, also after an error."""
    bars = Bars(sys.stderr)
    with ExitStack() as stack:
        stack.callback(bars.forbid)
        stack.enter_context(redirect_stderr(cast(TextIO, AboveBars(sys.stderr, bars))))
        if sys.stdout is not None and sys.stdout.isatty():
            stack.enter_context(redirect_stdout(cast(TextIO, AboveBars(sys.stdout, bars))))
        yield bars
