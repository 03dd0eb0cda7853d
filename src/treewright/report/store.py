"""Finished pieces of experiments, so that nothing is done twice and an interrupted run goes on.

Each piece lies in a folder of its kind, under a name made of the data and all settings it depends on. Files
are written whole or not at all.
"""

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from treewright._version import __version__
from treewright.checkpoint import fingerprint
from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.data.files import replacing
from treewright.errors import InputError
from treewright.model import Model, load
from treewright.progress import report
from treewright.report.separate_process import Values

NAME_LENGTH = 24
"""Of the names of files: the beginning of a hash of all that they depend on."""
AnyModel = TypeVar("AnyModel", bound=Model)


def make_name(*what: object, trees: Sequence[Sequence[DepTree] | Sequence[ConstTree]] = ()) -> str:
    """Return the name of what depends on some values, on treebanks, and on the version of the package."""
    return fingerprint([__version__, *what], *trees)[:NAME_LENGTH]


def hash_file(path: Path) -> str:
    """Return a name for what is in a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def load_parser(path: Path, model: type[AnyModel], *, n_jobs: int) -> AnyModel:
    """Return a saved parser, which must be of some class."""
    parser = load(path)
    if not isinstance(parser, model):
        raise InputError(f"{path} is a {type(parser).__name__}; expected a {model.__name__}")
    return parser.using(n_jobs=n_jobs)


class ResultStore:
    """A folder of finished pieces.

    Parameters
    ----------
    folder : Path
        Made when something is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, kind: str, name: str) -> Path:
        """Return the path of a piece in the folder of its kind, which is made if need be."""
        folder = self._folder / kind
        folder.mkdir(parents=True, exist_ok=True)
        return folder / name

    def get(self, name: str) -> Values | None:
        """Return the values under a name; None if there are none."""
        path = self.path("outcomes", f"{name}.json")
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def put(self, name: str, values: Values) -> Values:
        """Keep values under a name, and return them."""
        self.write(self.path("outcomes", f"{name}.json"), json.dumps(values).encode())
        return values

    def find(self, name: str, make: Callable[[], Values]) -> Values:
        """Return the values under a name, which are made if there are none."""
        kept = self.get(name)
        return self.put(name, make()) if kept is None else kept

    def write(self, path: Path, content: bytes) -> None:
        """Write a file, whole or not at all."""
        with replacing(path) as stream:
            stream.write(content)

    def unfinished(self, name: str) -> Path:
        """Return the folder in which an unfinished training of this name is kept."""
        return self.path("unfinished", name)

    def forget_unfinished(self, name: str) -> None:
        """Remove what is kept of a training that is finished."""
        shutil.rmtree(self.unfinished(name), ignore_errors=True)

    def train(
        self,
        name: str,
        make: Callable[[], Any],
        parts: Callable[[], tuple[Any, Any]],
        *,
        about: str,
        facts: Callable[[Any], Values] = lambda parser: {},
    ) -> Path:
        """Return the file of a parser, which is trained if it is not there.

        Parameters
        ----------
        name : str
            Of the parser.
        make : callable
            Returns a parser that is not fitted.
        parts : callable
            Returns the trees to train on and the dev trees or None.
        about : str
            A message that is reported before the training.
        facts : callable
            Returns what is kept about a trained parser, under its name, beside ``seconds``: the time of the
            training, or None if it was interrupted.
        """
        path = self.path("parsers", f"{name}.tw")
        if not path.exists():
            unfinished = self.unfinished(name)
            is_resumed = unfinished.exists()
            report(about)
            parser, (trees, dev) = make(), parts()
            start = time.perf_counter()
            parser.fit(trees, dev, checkpoint=unfinished)
            seconds = None if is_resumed else time.perf_counter() - start
            self.put(name, {"seconds": seconds, **facts(parser)})
            parser.save(path)
            self.forget_unfinished(name)
        return path
