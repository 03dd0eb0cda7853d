"""Annotation of files of any size, one sentence after another; an interrupted run can be resumed."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

from treewright._typing import Jobs
from treewright._version import __version__
from treewright.annotation.contract import Analysis, Annotator, Formatter, Request
from treewright.checkpoint import Checkpoint
from treewright.data.files import open_target, track_writing
from treewright.errors import InputError
from treewright.model import State, identify
from treewright.progress import task, track
from treewright.scale import Client, iter_jobs

NOTE, OUTPUT = "note", "output"
"""Names of the steps of a checkpoint: the progress, and the partial output file."""


def annotate_file(
    model: Annotator,
    source: str,
    target: str,
    request: Request | None = None,
    *,
    n_jobs: Jobs = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    client: Client | None = None,
) -> None:
    """Annotate the sentences of a file, and write the analyses.

    Parameters
    ----------
    model : Annotator
        The fitted model.
    source, target : str
        Input and output file; ``"-"`` is standard input or output.
    request : Request, optional
        Options (default: one analysis per sentence).
    n_jobs : int
        Number of threads (-1: all processors), on each worker if there is a cluster; it does not change the
        results.
    checkpoint : path, optional
        Folder for the partial output, if both `source` and `target` are files. If the folder exists,
        annotation resumes from it, with the same output as without an interruption.
    client : distributed.Client, optional
        Client of a Dask cluster that annotates the sentences; this machine reads and writes the files.
    """
    request = request or Request()
    model = model.prepare_for(request, n_jobs=n_jobs)
    with model.open_sentences(source, request) as sentences:
        unfinished, begun = None, None
        if checkpoint is not None:
            unfinished = Unfinished(checkpoint, target, partial(_name_work, model, request, source))
            sentences = islice(sentences, unfinished.n_done, None)
            begun = unfinished.path if unfinished.n_done else None
        size = max(1, (model.n_at_once if client is None else model.n_sent) // request.k)
        batches = iter(lambda: list(islice(sentences, size)), [])
        annotate = partial(model.annotate_batch, request=request)
        found: Iterator[list[Analysis]] = chain.from_iterable(map(annotate, batches))
        if client is not None:
            sent = chain.from_iterable(iter_jobs(annotate, batches, client=client))
            found = track(sent, "parsing on the cluster", unit="trees")
        show = model.make_formatter(target, request, begun)
        if unfinished is not None:
            unfinished.write(found, show)
            return
        with open_target(target) as stream:
            for number, analyses in enumerate(track_writing(found, target), start=1):
                stream.write(show(number, analyses))


def _name_work(model: Annotator, request: Request, source: str) -> str:
    """Return a fingerprint of everything that affects the results."""
    digest = hashlib.sha256(repr([__version__, identify(model.get_state()), request]).encode())
    for name in (source, request.predicates_from):
        if name is None:
            digest.update(b"none")
        else:
            with open(name, "rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


class Unfinished:
    """A partial output file, from which annotation can resume.

    Parameters
    ----------
    checkpoint : path
        Folder for the file. If it exists, annotation resumes from it.
    target : str
        The final output file.
    name_work : callable
        Function that returns a fingerprint of everything that affects the results; it is called only if
        needed.

    Attributes
    ----------
    path : Path
        The partial file.
    n_done : int
        Number of sentences already written.
    """

    def __init__(self, checkpoint: str | os.PathLike[str], target: str, name_work: Callable[[], str]) -> None:
        self._kept, self._target, self._name_work = Checkpoint(checkpoint, ""), target, name_work
        self.path = self._kept.path(OUTPUT)
        self.n_done = self._n_bytes = 0
        if self._kept.folder.exists():
            self._kept.identity = name_work()
            state = self._kept.load(NOTE)
            if state is not None and self.path.exists():
                self.n_done, self._n_bytes = state.values["sentences"], state.values["bytes"]

    def write(self, found: Iterable[list[Analysis]], show: Formatter) -> None:
        """Write the analyses of the remaining sentences, and move the file to `target`."""
        target = Path(self._target)
        with self._kept.growing(OUTPUT, NOTE, target) as stream, task(f"writing {target.name}") as counted:
            stream.truncate(self._n_bytes)
            stream.seek(self._n_bytes)
            for number, analyses in enumerate(found, start=self.n_done + 1):
                text = show(number, analyses)
                try:
                    stream.write(text.encode())
                except UnicodeEncodeError as error:
                    wrong = f"the text contains {text[error.start]!r}"
                    raise InputError(f"{wrong}; expected characters that UTF-8 can encode") from error
                if self._kept.is_due:
                    self._note(stream, number)
                counted.advance()
        Checkpoint.remove(self._kept.folder)

    def _note(self, stream: BinaryIO, number: int) -> None:
        stream.flush()
        os.fsync(stream.fileno())
        self._kept.identity = self._kept.identity or self._name_work()
        self._kept.save(NOTE, State("Note", {"sentences": number, "bytes": stream.tell()}))
