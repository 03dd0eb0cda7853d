"""What the settings of experiments are called on the command line, and the command that has made a result."""

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

SHOWN = {
    "random_state": "--seed",
    "n_jobs": "--jobs",
    "epochs": "--epochs",
    "runs": "--runs",
    "k": "--k",
    "folds": "--folds",
    "threshold": "--threshold",
    "thresholds": "--thresholds",
    "degrees": "--degrees",
    "systems": "--systems",
    "tags": "--tags",
    "punctuation": "--punctuation",
    "n_sentences": "--sentences",
    "strategies": "--strategies",
    "max_lengths": "--max-length",
    "lowest_penalty": "--lowest-penalty",
    "sample_size": "--sample-size",
    "label": "--label",
    "penalty": "--penalty",
    "n_trees": "--trees",
    "most_seconds": "--most-seconds",
    "treebank": "--treebank",
    "constituent_parser": "--constituent-parser",
    "dependency_parser": "--dependency-parser",
    "adjuncts": "--adjuncts",
    "framenet": "--framenet",
    "small_threshold": "--small-threshold",
    "large_threshold": "--large-threshold",
    "units": "--units",
    "cell": "--cell",
    "list_sentences": "--list-sentences",
    "all_sentences": "--all-sentences",
    "sst_sentences": "--sst-sentences",
    "reranker_epochs": "--reranker-epochs",
    "leftcorner_parser": "--leftcorner-parser",
}
"""The options of experiments, by the names of settings."""
PUNCTUATION_CHOICES: dict[str, bool | str] = {"all": True, "unicode": "unicode", "penn": "penn"}


def show_value(value: object) -> str:
    """Write the value of a setting as it is given on the command line.

    Examples
    --------
    >>> show_value((1.0, 2.5)), show_value((15, None)), show_value(True)
    ('1,2.5', '15,all', 'all')
    """
    if isinstance(value, tuple):
        return ",".join(map(show_value, value))
    if value is None or value is True:
        return "all"
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def write_command(
    name: str, data: Path, out: Path, changed: Mapping[str, object], *, cache: Path | None = None
) -> str:
    """Return the command line that runs an experiment.

    Parameters
    ----------
    name : str
        Of the experiment.
    data, out : Path
    changed : mapping
        The settings that are not what they are by default, by name.
    cache : Path, optional
    """
    parts = ["treewright", "reproduce", name, "--data", str(data), "--out", str(out)]
    for setting, value in changed.items():
        parts += [SHOWN[setting], show_value(value)]
    return shlex.join([*parts, *(["--cache", str(cache)] if cache else [])])


def describe_options(values: Mapping[str, object], used: Iterable[str]) -> dict[str, str]:
    """Return the settings that an experiment uses as texts, by their options."""
    return {
        SHOWN[name]: "not given" if value is None else show_value(value)
        for name, value in values.items()
        if name in used
    }
