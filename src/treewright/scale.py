"""How work is spread over threads."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from joblib import Parallel, delayed

from treewright._validate import check_integer
from treewright.progress import task

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_jobs(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    jobs: int,
    what: str | None = None,
    unit: str = "sentences",
    count: Callable[[Item], int] = lambda item: 1,
) -> list[Result]:
    """Return the results of `function` for `items`, in their order.

    Compiled code runs side by side and shares its arrays. An error ends the work and comes out as it was
    raised; so does Ctrl-C.

    Parameters
    ----------
    function : callable
    items : sequence
    jobs : int
        How many threads work; with 1, all is done in the calling thread.
    what : str, optional
        What is done, if it may take so long that somebody wants to hear of it (see `treewright.progress`).
    unit : str
        What is counted then.
    count : callable
        Returns how many of these are in an item.
    """
    check_integer("jobs", jobs, minimum=1)
    if what is None:
        return _map(function, items, jobs)
    with task(what, total=sum(map(count, items)), unit=unit) as counted:

        def work(item: Item) -> Result:
            result = function(item)
            counted.advance(count(item))
            return result

        return _map(work, items, jobs)


def _map(function: Callable[[Item], Result], items: Sequence[Item], jobs: int) -> list[Result]:
    if jobs == 1 or len(items) < 2:
        return [function(item) for item in items]
    results: list[Result] = Parallel(n_jobs=min(jobs, len(items)), backend="threading", batch_size=1)(
        delayed(function)(item) for item in items
    )
    return results


def map_slices(function: Callable[[slice], None], size: int, *, jobs: int) -> None:
    """Call `function` with the slices into which the threads divide a range from 0 to `size`."""
    step = max(1, -(-size // jobs))
    map_jobs(function, [slice(begin, min(begin + step, size)) for begin in range(0, size, step)], jobs=jobs)
