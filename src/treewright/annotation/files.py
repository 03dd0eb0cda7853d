"""Files annotated sentence by sentence, whatever their size."""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import TypeVar

from treewright._typing import Count
from treewright.annotation.contract import Annotator, Request
from treewright.annotation.resumable_output import Unfinished, name_work, write_results
from treewright.persist import identify
from treewright.progress import task
from treewright.scale import Client, iter_jobs

Sentence = TypeVar("Sentence")
Found = TypeVar("Found")


def annotate_file(
    model: Annotator,
    source: str,
    target: str,
    request: Request | None = None,
    *,
    n_jobs: Count = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    client: Client | None = None,
) -> None:
    """Annotate the sentences of a file, and write what is found in them.

    Parameters
    ----------
    model : Annotator
    source, target : str
        Files, or ``"-"``.
    request : Request, optional
        What is wanted; one analysis per sentence without it.
    n_jobs : int
        Number of threads; results do not depend on it. With a client, of each of its workers.
    checkpoint : path, optional
        A folder in which what is done is kept, for files alone. If it exists, work goes on from it, to the
        same file.
    client : distributed.Client, optional
        A cluster that does the work; sentences are read and written here.
    """
    request = request or Request()
    model = model.prepare_for(request, n_jobs=n_jobs)
    with model.open_sentences(source, request) as sentences:
        unfinished = None
        if checkpoint is not None:
            unfinished = Unfinished(checkpoint, target, partial(_name_work, model, request, source))
            sentences = unfinished.skip(sentences)
        size = max(1, (model.n_at_once if client is None else model.n_sent) // request.k)
        found = annotate_batches(partial(model.annotate_batch, request=request), sentences, size, client)
        begun = unfinished.path if unfinished is not None and unfinished.n_done else None
        write_results(found, target, model.make_formatter(target, request, begun), unfinished)


def _name_work(model: Annotator, request: Request, source: str) -> str:
    return name_work(identify(model.get_state()), [request], source, request.predicates_from)


def in_batches(sentences: Iterable[Sentence], size: int) -> Iterator[list[Sentence]]:
    """Hand sentences on in lists of a size; the last may be shorter."""
    waiting = iter(sentences)
    while batch := list(islice(waiting, size)):
        yield batch


def annotate_batches(
    annotate: Callable[[list[Sentence]], list[Found]],
    sentences: Iterable[Sentence],
    size: int,
    client: Client | None,
) -> Iterator[Found]:
    """Yield what `annotate` finds in sentences, so many at a time, here or on a cluster."""
    batches = in_batches(sentences, size)
    if client is None:
        for batch in batches:
            yield from annotate(batch)
        return
    with task("parsing on the cluster", unit="trees") as counted:
        for found in iter_jobs(annotate, batches, client=client):
            yield from found
            counted.advance(len(found))
