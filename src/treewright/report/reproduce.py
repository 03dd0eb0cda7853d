"""Experiments of papers, by name."""

from pathlib import Path

from treewright._cache import cache_folder
from treewright.errors import InputError
from treewright.report import moschitti, qianliu
from treewright.report.alone import Progress
from treewright.report.experiment import Experiment, Inputs, Settings
from treewright.report.tables import check_extras, write_findings

EXPERIMENTS = {
    "qian-liu-table2": Experiment("kernels against features selected in their spaces", qianliu.table2),
    "qian-liu-table3": Experiment("what the threshold of the selection changes", qianliu.table3),
    "qian-liu-table4": Experiment("every treebank of a folder, reranked", qianliu.table4),
    "moschitti-figure4": Experiment("time of tree kernels by the size of trees", moschitti.figure4),
}


def reproduce(
    name: str,
    data: Path,
    out: Path,
    *,
    settings: Settings | None = None,
    cache: Path | None = None,
    command: str = "",
    progress: Progress | None = None,
) -> list[Path]:
    """Run an experiment and write what it finds: text, CSV, JSON, a plot and a page.

    What is finished is kept: a second run does not train again, and an interrupted one goes on.

    Parameters
    ----------
    name : str
        One of `EXPERIMENTS`.
    data : Path
        A folder with treebanks, or the file to train on of one that has others beside it.
    out : Path
        Folder for the result; made if need be.
    settings : Settings, optional
    cache : Path, optional
        Folder for what is kept; one in the user's cache without it.
    command : str
        To be shown with the result; the call of this function without it.
    progress : callable, optional
        Called with a line of text after each step.

    Returns
    -------
    list of Path
        The files written.
    """
    if name not in EXPERIMENTS:
        raise InputError(f"experiment is {name!r}; expected one of {', '.join(EXPERIMENTS)}")
    settings = settings or Settings()
    settings.check()
    check_extras()
    out.mkdir(parents=True, exist_ok=True)
    tell = progress or (lambda line: None)
    inputs = Inputs(data, settings, cache or cache_folder("reproduce"), tell)
    findings = EXPERIMENTS[name].run(inputs)
    call = command or f"reproduce({name!r}, {str(data)!r}, {str(out)!r}, settings={settings!r})"
    return write_findings(name, findings, out, command=call)
