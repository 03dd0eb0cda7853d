"""Times of tree kernels by the size of trees."""

import csv
import itertools
import json

import numpy as np
import pytest

import treewright as tw
from treewright.errors import InputError
from treewright.progress import messages_to
from treewright.report.experiment import reproduce
from treewright.report.experiments import moschitti_figure4
from treewright.report.experiments.moschitti_figure4 import (
    MoschittiFigure4Settings,
    choose_pairs,
    fit_polynomial,
    group_by_size,
    list_systems,
    read_trees,
    time_pairs,
)
from treewright.report.moschitti.times import fit_exponent

BANK = tw.make_treebank(300, 0)
TREES = list(BANK.constituents)


@pytest.fixture
def quick(monkeypatch):
    """Let few trees and pairs be enough."""
    for name, value in {"LEAST_TREES": 4, "N_PAIRS": 20, "REPEATS": 1}.items():
        monkeypatch.setattr(moschitti_figure4, name, value)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data" / "trees.mrg"
    path.parent.mkdir()
    tw.write_brackets(TREES, path)
    return path


def test_all_files_of_the_experiment_are_written(quick, data, tmp_path):
    told = []
    with messages_to(told.append):
        written = reproduce("moschitti-figure4", data, tmp_path / "out")
    assert [path.suffix for path in written] == [".txt", ".csv", ".svg", ".html", ".json", ".html"]
    rows = list(csv.DictReader(written[1].read_text().splitlines()))
    assert [row["size"] for row in rows][:3] == ["20", "30", "40"]
    assert all(float(row[name]) > 0 for row in rows for name in ("naive", "subset", "partial"))
    assert all(abs(float(row["n_nodes"]) - int(row["size"])) <= 2 for row in rows)
    assert len(told) == len(rows)
    text = written[0].read_text()
    assert "gives no numbers" in text
    fits = json.loads(written[4].read_text())["tables"][1]["rows"]
    assert [fit["title"] for fit in fits] == ["naive SST", "fast SST", "fast PT"]
    assert [len(fits[0][name]) for name in ("line_coefficients", "curve_coefficients")] == [2, 3]


def test_all_pairs_of_trees_of_exactly_one_size_can_be_timed(quick, data, tmp_path, monkeypatch):
    monkeypatch.setattr(moschitti_figure4, "LEAST_TREES", 2)
    settings = MoschittiFigure4Settings(all_pairs=True, tolerance=0)
    written = reproduce("moschitti-figure4", data, tmp_path / "out", settings=settings)
    rows = json.loads(written[4].read_text())["tables"][0]["rows"]
    sizes = [tree.n_nodes for tree in TREES]
    for row in rows:
        assert row["n_nodes"] == row["size"]
        assert row["n_trees"] == sizes.count(row["size"])
        assert row["n_pairs"] == row["n_trees"] ** 2
    assert "vary by up to 0 nodes. All pairs are evaluated." in written[0].read_text()


def test_random_pairs_are_of_the_trees_of_a_size():
    pairs = choose_pairs(3, 100, np.random.default_rng(0))
    assert {tuple(pair) for pair in pairs.tolist()} == set(itertools.product(range(3), repeat=2))


def test_the_naive_kernel_and_the_fast_one_agree():
    systems = list_systems(TREES[:20])
    pairs = np.random.default_rng(0).integers(20, size=(50, 2))
    np.testing.assert_allclose(systems["naive"](pairs), systems["subset"](pairs), rtol=1e-10)
    expected = tw.PartialTreeKernel(decay=0.8, depth_decay=0.4)(TREES[:20])[tuple(pairs.T)]
    np.testing.assert_allclose(systems["partial"](pairs), expected, rtol=1e-10)


def test_trees_are_grouped_by_their_sizes():
    groups = dict(group_by_size(TREES, np.random.default_rng(0)))
    assert groups
    for size, chosen in groups.items():
        assert size % 10 == 0
        assert len(chosen) >= moschitti_figure4.LEAST_TREES
        assert all(abs(tree.n_nodes - size) <= 2 for tree in chosen)


def test_a_seed_chooses_the_same_trees(monkeypatch):
    monkeypatch.setattr(moschitti_figure4, "N_TREES", 10)
    one, same, other = (
        list(group_by_size(TREES, np.random.default_rng(random_state))) for random_state in (0, 0, 1)
    )
    assert one == same
    assert one != other


def test_a_polynomial_is_found_again():
    sizes = np.arange(10.0, 100, 10)
    fit = fit_polynomial(sizes, 3 - 2 * sizes + 0.5 * sizes**2, 2)
    np.testing.assert_allclose(fit.coefficients, [3, -2, 0.5])
    assert fit.share == pytest.approx(1)
    assert fit_polynomial(sizes, sizes**2, 1).share < 0.99


def test_an_exponent_is_found_again_with_its_error():
    sizes = np.arange(10.0, 100, 10)
    assert fit_exponent(sizes, 3 * sizes**1.5) == pytest.approx((1.5, 0))
    noise = np.random.default_rng(0).normal(scale=0.1, size=len(sizes))
    exponent, error = fit_exponent(sizes, sizes * np.exp(noise))
    assert 0 < error < 0.1
    assert abs(exponent - 1) < 3 * error


def test_times_are_for_each_pair_and_not_negative():
    assert time_pairs(lambda pairs: np.zeros(len(pairs)), np.zeros((5, 2), dtype=np.int64)) >= 0


def test_a_folder_gives_the_trees_of_all_its_files(data):
    tw.write_brackets(TREES[:3], data.parent / "more.mrg")
    (data.parent / "README").write_text("nothing to be read")
    assert len(read_trees(data.parent)) == 303


def test_dependency_trees_are_read_where_there_are_no_others(tmp_path):
    tw.write_conllu(BANK.dependencies[:5], tmp_path / "a.conllu")
    assert [tree.label for tree in read_trees(tmp_path)] == ["ROOT"] * 5


def test_the_first_trees_alone_can_be_taken(quick, data, tmp_path):
    settings = MoschittiFigure4Settings(n_sentences=10)
    with pytest.raises(
        InputError, match=r"trees\.mrg has enough trees for only [0-3] sizes; expected 4 trees for"
    ):
        reproduce("moschitti-figure4", data, tmp_path / "out", settings=settings)


def test_a_refused_run_leaves_no_folder(quick, data, tmp_path):
    (tmp_path / "kept").mkdir()
    for out in (tmp_path / "new" / "deep", tmp_path / "kept"):
        with pytest.raises(InputError, match="none does not exist"):
            reproduce("moschitti-figure4", tmp_path / "none", out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "kept"]


@pytest.mark.parametrize("option", [("--systems", "naive"), ("--k", "10"), ("--thresholds", "1")])
def test_options_of_other_experiments_are_refused(data, tmp_path, fail, option):
    arguments = ["moschitti-figure4", "--data", data, "--out", tmp_path / "out"]
    assert fail("reproduce", *arguments, *option).startswith(f"treewright: No such option: {option[0]}")
    assert not (tmp_path / "out").exists()


def test_data_without_trees_are_told(tmp_path):
    with pytest.raises(InputError, match=r"has no trees; expected \*\.mrg"):
        read_trees(tmp_path)
    with pytest.raises(InputError, match="none does not exist; expected a file of trees or a folder"):
        read_trees(tmp_path / "none")
