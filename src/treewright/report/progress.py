"""Progress as bars on the terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from treewright.data.remote import Progress


@contextmanager
def download_bar() -> Iterator[Progress]:
    """Yield a callback for `fetch_treebank` that draws a bar for each file.

    The bars go to standard error, and nowhere if that is not a terminal.

    Examples
    --------
    >>> with download_bar() as progress:  # doctest: +SKIP
    ...     files = fetch_treebank("UD_English-EWT", progress=progress)
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    tasks: dict[str, TaskID] = {}
    with Bars(*columns, console=console, disable=not console.is_terminal) as bars:

        def update(name: str, done: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done, total=total)

        yield update
