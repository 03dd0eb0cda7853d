"""Storage of finished steps of experiments, so that they are reused and interrupted runs are resumed.

The results of a step are stored in a folder for their kind, under a fingerprint of the data and all settings
that affect them. Files are written completely or not at all.
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
"""Length of file names, which are prefixes of hashes."""
AnyModel = TypeVar("AnyModel", bound=Model)


def make_name(*what: object, trees: Sequence[Sequence[DepTree] | Sequence[ConstTree]] = ()) -> str:
    """Return a fingerprint of some values, treebanks and the version of the package."""
    return fingerprint([__version__, *what], *trees)[:NAME_LENGTH]


def hash_file(path: Path) -> str:
    """Return a hash of the content of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def load_parser(path: Path, model: type[AnyModel], *, n_jobs: int) -> AnyModel:
    """Load a parser; raise `InputError` if it is of another class."""
    parser = load(path)
    if not isinstance(parser, model):
        raise InputError(f"{path} is a {type(parser).__name__}; expected a {model.__name__}")
    return parser.using(n_jobs=n_jobs)


class ResultStore:
    """A folder of finished steps.

    Parameters
    ----------
    folder : Path
        The folder; created when something is stored.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, kind: str, name: str) -> Path:
        """Return the path of a step in the folder of its kind, which is created if necessary."""
        folder = self._folder / kind
        folder.mkdir(parents=True, exist_ok=True)
        return folder / name

    def get(self, name: str) -> Values | None:
        """Return the values stored under a name; None if there are none."""
        path = self.path("outcomes", f"{name}.json")
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def put(self, name: str, values: Values) -> Values:
        """Store values under a name, and return them."""
        self.write(self.path("outcomes", f"{name}.json"), json.dumps(values).encode())
        return values

    def find(self, name: str, make: Callable[[], Values]) -> Values:
        """Return the values stored under a name; compute and store them if there are none."""
        kept = self.get(name)
        return self.put(name, make()) if kept is None else kept

    def write(self, path: Path, content: bytes) -> None:
        """Write a file completely or not at all."""
        with replacing(path) as stream:
            stream.write(content)

    def unfinished(self, name: str) -> Path:
        """Return the checkpoint folder of a training run."""
        return self.path("unfinished", name)

    def forget_unfinished(self, name: str) -> None:
        """Remove the checkpoint of a finished training run."""
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
        """Return the file of a parser; train it if necessary.

        Parameters
        ----------
        name : str
            Name of the parser.
        make : callable
            Returns an unfitted parser.
        parts : callable
            Returns the training trees, and the dev trees or None.
        about : str
            Log line before training.
        facts : callable
            Returns facts about the trained parser, which are stored together with ``seconds``: the training
            time, or None if training was interrupted.
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
