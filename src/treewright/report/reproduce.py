"""Experiments of papers, by name."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path

from treewright._cache import cache_folder
from treewright.errors import InputError
from treewright.progress import report
from treewright.report import moschitti, qianliu, questions, roles, titov, turian
from treewright.report.constituents import ConstituentSettings
from treewright.report.derived_bench import DerivedSettings
from treewright.report.experiment import Experiment, Inputs, Settings
from treewright.report.options import describe_options, write_command
from treewright.report.pages import INDEX, Making, write_findings, write_index
from treewright.report.parses import QuestionSettings
from treewright.report.role_data import RoleSettings
from treewright.report.tables import check_extras

TREES = frozenset({"random_state", "n_sentences"})
RERANKING = TREES | {"n_jobs", "epochs", "runs", "k", "folds", "tags", "punctuation"}
PARSED = TREES | {"n_jobs", "epochs", "runs", "folds", "systems"}
QUESTIONS = PARSED | {"treebank", "constituent_parser", "dependency_parser"}
ROLES = TREES | {"n_jobs", "systems"}
TRAINING = TREES | {"n_jobs", "runs", "strategies", "max_lengths", "lowest_penalty", "sample_size"}
DERIVED = TREES | {
    *("n_jobs", "epochs", "k", "folds", "systems", "large_threshold", "units", "cell", "list_sentences"),
    "reranker_epochs",
}
EXPERIMENTS = {
    "qian-liu-table2": Experiment(
        "kernels against features selected in their spaces",
        qianliu.table2,
        RERANKING | {"threshold", "degrees", "systems"},
    ),
    "qian-liu-table3": Experiment(
        "what the threshold of the selection changes", qianliu.table3, RERANKING | {"thresholds"}
    ),
    "qian-liu-table4": Experiment(
        "every treebank of a folder, reranked", qianliu.table4, RERANKING | {"threshold"}
    ),
    "moschitti-figure4": Experiment("time of tree kernels by the size of trees", moschitti.figure4, TREES),
    "moschitti-table1": Experiment("semantic roles on gold trees", roles.table1, ROLES | {"adjuncts"}),
    "moschitti-figure5": Experiment(
        "semantic roles by the share of the training data, and training time",
        roles.figure5,
        ROLES | {"most_seconds"},
    ),
    "moschitti-table2": Experiment(
        "semantic roles in automatic parses",
        roles.table2,
        ROLES | {"adjuncts", "treebank", "constituent_parser", "framenet"},
    ),
    "question-classification": Experiment(
        "tree kernels against a bag of words on questions", questions.classification, QUESTIONS
    ),
    "turian-table1": Experiment("parsing by classification: scores", turian.table1, TRAINING | {"tags"}),
    "turian-figure1": Experiment("dev scores as training goes on", turian.figure1, TRAINING | {"tags"}),
    "turian-table2": Experiment(
        "what a training iteration costs, on samples and without",
        turian.table2,
        TRAINING | {"label", "penalty", "n_trees", "most_seconds"},
    ),
    "titov-table1": Experiment(
        "kernels derived from a left-corner parser",
        titov.table1,
        DERIVED | {"small_threshold", "all_sentences"},
    ),
    "titov-table2": Experiment(
        "two constituency parsers, reranked with derived and tree kernels",
        titov.table2,
        DERIVED | {"leftcorner_parser", "constituent_parser", "sst_sentences", "runs", "lowest_penalty"},
    ),
}
SETTINGS: dict[str, type[Settings]] = {
    name: ConstituentSettings if each.options >= TRAINING else Settings for name, each in EXPERIMENTS.items()
} | {
    "question-classification": QuestionSettings,
    **dict.fromkeys(("moschitti-table1", "moschitti-figure5", "moschitti-table2"), RoleSettings),
    **dict.fromkeys(("titov-table1", "titov-table2"), DerivedSettings),
}
"""The settings that each experiment is given."""


def reproduce(
    name: str,
    data: Path,
    out: Path,
    *,
    settings: Settings | None = None,
    cache: Path | None = None,
) -> list[Path]:
    """Run an experiment and write what it finds: text, CSV, JSON, a plot and a page.

    The page says how it was made; ``index.html`` beside it lists all pages of the folder. What is finished is
    kept: a second run does not train again, and an interrupted one goes on.

    Parameters
    ----------
    name : str
        One of `EXPERIMENTS`.
    data : Path
        A folder with treebanks, or the file to train on of one that has others beside it.
    out : Path
        Folder for the result; made if need be.
    settings : Settings, optional
        Of the class in `SETTINGS`; those that the experiment does not use must be what they are by default.
    cache : Path, optional
        Folder for what is kept; one in the user's cache without it.

    Returns
    -------
    list of Path
        The files of the experiment, and the index if it was written.
    """
    settings = settings or find_settings(name)()
    changed = [each.name for each in fields(settings) if _is_changed(settings, each.name)]
    check_options(name, changed)
    if type(settings) is not SETTINGS[name]:
        found, expected = type(settings).__name__, SETTINGS[name].__name__
        raise InputError(f"settings of {name} are {found}; expected {expected}")
    settings.check()
    check_extras()
    inputs = Inputs(data, settings, cache or cache_folder("reproduce"))
    own = {each.name: getattr(settings, each.name) for each in fields(settings)}
    made = Making(
        write_command(name, data, out, {each: own[each] for each in changed}, cache=cache),
        data.absolute().name,
        describe_options(own, EXPERIMENTS[name].options),
    )
    with _folder(out):
        files = write_findings(name, EXPERIMENTS[name].run(inputs), out, made=made)
        if write_index(out):
            return [*files, out / INDEX]
        report(f"{out / INDEX} is not one of treewright; it was left as it is")
        return files


def check_options(name: str, given: Iterable[str], *, shown: dict[str, str] | None = None) -> None:
    """Refuse settings that an experiment would ignore.

    Parameters
    ----------
    name : str
        Of an experiment; one of `EXPERIMENTS`.
    given : iterable of str
        Settings, by name.
    shown : dict of str to str, optional
        What the user calls settings, if not by their names.
    """
    known = [each.name for each in fields(find_settings(name)) if each.name in EXPERIMENTS[name].options]
    shown = shown or {}
    for setting in given:
        if setting not in known:
            found, *others = (shown.get(each, each) for each in (setting, *known))
            raise InputError(f"{name} does not use {found}; expected some of {', '.join(others)}")


def find_settings(name: str) -> type[Settings]:
    """Return the class of the settings of an experiment."""
    if name not in SETTINGS:
        raise InputError(f"experiment is {name!r}; expected one of {', '.join(SETTINGS)}")
    return SETTINGS[name]


def _is_changed(settings: Settings, name: str) -> bool:
    return bool(getattr(settings, name) != getattr(type(settings), name))


@contextmanager
def _folder(path: Path) -> Iterator[None]:
    """Make a folder before long work; after a failure, those that were made and are empty go again."""
    made = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for each in made:
                each.rmdir()
        raise
