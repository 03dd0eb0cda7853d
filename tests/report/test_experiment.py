"""How experiments are declared and found."""

import subprocess
import sys
from dataclasses import dataclass

import pytest
from commands import run

from treewright._typing import Count
from treewright.errors import InputError
from treewright.report import experiment as registry
from treewright.report.experiment import (
    Settings,
    choose_rows,
    describe_experiment,
    experiment,
    find_experiment,
    list_experiments,
    reproduce,
)
from treewright.report.tables import Column, Findings, Table


@dataclass(frozen=True)
class TinySettings(Settings):
    """The settings of an experiment.

    Parameters
    ----------
    sizes : tuple of int
        Sizes to try.
    """

    sizes: tuple[Count, ...] = (1, 2)


@pytest.fixture
def tiny(monkeypatch):
    """Register an experiment; return the settings that it is run with."""
    asked = []
    monkeypatch.setattr(registry, "_REGISTERED", {})

    @experiment("tiny-table", TinySettings)
    def table(settings, inputs):
        """Try some sizes."""
        asked.append(settings)
        rows = [{"size": size} for size in settings.sizes]
        columns = (Column("size", "size"),)
        return Findings(
            "Sizes", (Table("All", columns, rows),), lambda figure: figure.subplots(), "Nothing.", {}
        )

    return asked


def test_every_experiment_has_a_description_and_is_registered_under_the_name_of_its_file():
    for name in list_experiments():
        assert find_experiment(name).name == name
        assert len(describe_experiment(name)) > 20
        find_experiment(name).settings().check()


def test_every_setting_of_an_experiment_has_a_text_in_its_help():
    for name in list_experiments():
        shown = run("reproduce", name, "--help").output
        assert "Finished steps are kept" in shown
        for line in shown.splitlines():
            assert not line.replace("│", "").rstrip().endswith(("<str>", "<path>", "N [x>=1]")), (name, line)


def test_an_experiment_that_registers_itself_is_a_subcommand_with_its_own_options(tiny, tmp_path):
    assert "tiny-table" in run("reproduce", "--help").output
    assert "Sizes to try." in run("reproduce", "tiny-table", "--help").output
    run("reproduce", "tiny-table", "--data", tmp_path, "--out", tmp_path / "out", "--sizes", "3,4")
    assert tiny == [TinySettings(sizes=(3, 4))]
    assert (tmp_path / "out" / "tiny-table.html").exists()


def test_values_that_annotations_forbid_are_refused(tiny, tmp_path):
    with pytest.raises(InputError, match="sizes is 0; expected an integer of at least 1"):
        reproduce("tiny-table", tmp_path, tmp_path / "out", settings=TinySettings(sizes=(1, 0)))
    assert not (tmp_path / "out").exists()


def test_an_unknown_experiment_is_refused_with_those_that_are_known(tmp_path):
    with pytest.raises(InputError, match="experiment is 'table9'; expected one of moschitti-figure4, "):
        reproduce("table9", tmp_path, tmp_path)


def test_experiments_are_listed_without_importing_them():
    lines = [
        "import sys",
        "from treewright.report.experiment import describe_experiment, list_experiments",
        "assert all(describe_experiment(name) for name in list_experiments())",
        "assert not [name for name in sys.modules if name.startswith('treewright.report.experiments.')]",
    ]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)


def test_rows_are_chosen_in_their_order_with_those_they_are_compared_with():
    assert choose_rows("abcd", None) == list("abcd")
    assert choose_rows("abcd", ("d", "b"), always=("a",)) == ["a", "b", "d"]
    with pytest.raises(InputError, match="system is 'e'; expected one or more of a, b, c, d"):
        choose_rows("abcd", ("e",))
