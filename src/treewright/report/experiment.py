"""Experiments: declaration, lookup and running.

Each module in `treewright.report.experiments` is one experiment; its name is the file name, with hyphens. The
first line of the module's docstring describes it. The module declares a dataclass of settings, whose fields
become command-line options, and decorates a function with `experiment`. There is no other registry.
"""

import ast
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from treewright._cache import cache_folder
from treewright._naming import option_name, show_value
from treewright._typing import Count, Jobs, NonNegativeInt
from treewright._validate import check_params
from treewright.errors import InputError
from treewright.progress import report
from treewright.report.pages import INDEX, Provenance, write_findings, write_index
from treewright.report.store import ResultStore
from treewright.report.tables import Findings, check_extras

MODULES = f"{__package__}.experiments"


@dataclass(frozen=True)
class Settings:
    """Settings of all experiments.

    Parameters
    ----------
    random_state : int
        Random seed.
    n_sentences : int, optional
        Train on the first N sentences only.
    """

    random_state: NonNegativeInt = 0
    n_sentences: Count | None = None

    def check(self) -> None:
        """Raise `InputError` for an invalid value."""
        check_params(self)


@dataclass(frozen=True)
class ThreadedSettings(Settings):
    """Settings of experiments that use threads.

    Parameters
    ----------
    n_jobs : int
        Number of threads (-1: all processors). Results do not depend on it.
    """

    n_jobs: Jobs = 1


class Inputs(NamedTuple):
    """Inputs of an experiment other than its settings."""

    data: Path
    store: ResultStore


AnySettings = TypeVar("AnySettings", bound=Settings)
Run = Callable[[AnySettings, Inputs], Findings]


class Experiment(NamedTuple):
    """A registered experiment."""

    name: str
    settings: type[Settings]
    run: Callable[[Any, Inputs], Findings]


_REGISTERED: dict[str, Experiment] = {}


def experiment(name: str, settings: type[AnySettings]) -> Callable[[Run[AnySettings]], Run[AnySettings]]:
    """Register the decorated function as an experiment with this class of settings."""

    def register(run: Run[AnySettings]) -> Run[AnySettings]:
        _REGISTERED[name] = Experiment(name, settings, run)
        return run

    return register


def list_experiments() -> list[str]:
    """Return the names of all experiments in alphabetical order, without importing them."""
    modules = (Path(each.name) for each in files(MODULES).iterdir())
    found = {
        path.stem.replace("_", "-") for path in modules if path.suffix == ".py" and path.stem != "__init__"
    }
    return sorted(found | set(_REGISTERED))


def describe_experiment(name: str) -> str:
    """Return the first line of the docstring of an experiment, without importing it."""
    source = files(MODULES).joinpath(f"{name.replace('-', '_')}.py")
    if source.is_file():
        text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8")))
    else:
        text = find_experiment(name).run.__doc__
    return (text or "").strip().partition("\n")[0].rstrip(".")


def find_experiment(name: str) -> Experiment:
    """Return the experiment of this name."""
    if name not in _REGISTERED:
        if name not in list_experiments():
            raise InputError(f"experiment is {name!r}; expected one of {', '.join(list_experiments())}")
        import_module(f"{MODULES}.{name.replace('-', '_')}")
    return _REGISTERED[name]


def reproduce(
    name: str,
    data: Path,
    out: Path,
    *,
    settings: Settings | None = None,
    cache: Path | None = None,
) -> list[Path]:
    """Run an experiment and write its results as text, CSV, JSON, plot and HTML page.

    The page includes the command and settings; ``index.html`` lists all pages of the folder. Finished steps
    are stored: a second run does not train again, and an interrupted run is resumed.

    Parameters
    ----------
    name : str
        One of `list_experiments`.
    data : Path
        A folder with treebanks, or the training file of a treebank.
    out : Path
        Folder for the results; created if necessary.
    settings : Settings, optional
        Settings, of the class that the experiment declares.
    cache : Path, optional
        Folder for finished steps (by default, in the user's cache).

    Returns
    -------
    list of Path
        The files of the experiment, and the index if it was written.
    """
    found = find_experiment(name)
    settings = settings or found.settings()
    if type(settings) is not found.settings:
        raise InputError(
            f"settings of {name} are {type(settings).__name__}; expected {found.settings.__name__}"
        )
    settings.check()
    check_extras()
    inputs = Inputs(data, ResultStore(cache or cache_folder("reproduce")))
    made = Provenance(
        write_command(name, data, out, settings, cache=cache),
        data.absolute().name,
        describe_options(settings),
    )
    with _folder(out):
        written = write_findings(name, found.run(settings, inputs), out, made=made)
        if write_index(out):
            return [*written, out / INDEX]
        report(f"{out / INDEX} was not written by treewright and is kept unchanged")
        return written


def write_command(name: str, data: Path, out: Path, settings: Settings, *, cache: Path | None = None) -> str:
    """Return the command line that runs an experiment with these settings."""
    parts = ["treewright", "reproduce", name, "--data", str(data), "--out", str(out)]
    for each in fields(settings):
        value = getattr(settings, each.name)
        if isinstance(value, bool) and value != each.default:
            option = option_name(each.name)
            parts.append(option if value else f"--no-{option.removeprefix('--')}")
        elif value != each.default:
            parts += [option_name(each.name), show_value(value)]
    return shlex.join([*parts, *(["--cache", str(cache)] if cache else [])])


def describe_options(settings: Settings) -> dict[str, str]:
    """Return settings as text, by option."""
    values = {option_name(each.name): getattr(settings, each.name) for each in fields(settings)}
    return {name: "default" if value is None else show_value(value) for name, value in values.items()}


def given_options(settings: Settings, names: Iterable[str]) -> dict[str, Any]:
    """Return the settings with these names that are not None; they replace the defaults of a model."""
    values = {name: getattr(settings, name, None) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def choose_rows(
    known: Sequence[str], wanted: Sequence[str] | None, *, always: Sequence[str] = ()
) -> list[str]:
    """Return the names of the requested rows of a table, in order.

    Parameters
    ----------
    known : sequence of str
        All names.
    wanted : sequence of str, optional
        Requested names (by default, all).
    always : sequence of str
        Names of rows that are always included, since other rows are compared with them.
    """
    for name in wanted or ():
        if name not in known:
            raise InputError(f"system is {name!r}; expected one or more of {', '.join(known)}")
    return [name for name in known if wanted is None or name in wanted or name in always]


@contextmanager
def _folder(path: Path) -> Iterator[None]:
    """Make a folder before a long computation; if that fails, remove the new folders that are empty."""
    made = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for each in made:
                each.rmdir()
        raise
