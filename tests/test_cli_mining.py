"""Mining from the command line."""

import re

import numpy as np
import pytest
from commands import run

import treewright as tw
from treewright.errors import InputError
from treewright.progress import filtered, messages_to
from treewright.report import mining


@pytest.fixture
def data(tmp_path):
    """Write samples whose label needs a conjunction of two named features."""
    rng = np.random.default_rng(0)
    rows = rng.random((300, 6)) < 0.5
    path = tmp_path / "data.svmlight"
    with path.open("w") as stream:
        for row in rows:
            label = "yes" if row[1] != row[4] else "no"
            stream.write(" ".join([label, *(f"f={column}:1" for column in np.flatnonzero(row))]) + "\n")
    return path


def read_table(path):
    lines = path.read_text().splitlines()
    return lines[0].split("\t"), [line.split("\t") for line in lines[1:]]


def test_mine_writes_a_table_of_conjunctions_the_weightiest_first(data, tmp_path):
    out = tmp_path / "features.tsv"
    run("mine", data, "--degree", "2", "--threshold", "5", "--out", out)
    heads, rows = read_table(out)
    assert heads == ["conjunction", "order", "count", "weight:yes"]
    by_name = {row[0]: row[1:] for row in rows}
    assert by_name["f=1 & f=4"][0] == "2"
    assert float(by_name["f=1 & f=4"][2]) < 0
    weights = [abs(float(row[3])) for row in rows]
    assert weights == sorted(weights, reverse=True)


def test_mine_tells_order_candidates_survivors_and_memory(data, tmp_path):
    shown = run("mine", data, "--degree", "2", "--threshold", "5", "--out", tmp_path / "f.tsv").stderr
    assert "round 1, threshold" in shown
    assert "candidates > survivors: 6 > " in shown
    assert "of order 2; " in shown
    assert "MiB" in shown
    assert "conjunctions written:" in shown


def test_mine_leaves_a_table_and_a_model_and_nothing_else(data, tmp_path):
    run("mine", data, "--degree", "2", "--out", tmp_path / "f.tsv", "--model", tmp_path / "m.tw")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.svmlight", "f.tsv", "m.tw"]
    miner = tw.load(tmp_path / "m.tw")
    names = [row[0] for row in read_table(tmp_path / "f.tsv")[1]]
    assert sorted(miner.get_feature_names_out()) == sorted(names)
    again = tw.read_svmlight(data, names=miner.feature_names_in_)
    assert again.names == [f"f={column}" for column in range(6)]


@pytest.mark.parametrize(
    "options",
    [["--jobs", "2"], ["--memory-limit", "2M"], ["--filter-memory", "1M"]],
    ids=lambda each: each[0],
)
def test_the_table_does_not_depend_on_how_it_was_made(data, tmp_path, options):
    plain, other = tmp_path / "a.tsv", tmp_path / "b.tsv"
    run("mine", data, "--degree", "3", "--threshold", "3", "--out", plain)
    run("mine", data, "--degree", "3", "--threshold", "3", "--out", other, *options)
    assert plain.read_bytes() == other.read_bytes()


def test_mine_has_the_settings_of_the_paper(data, tmp_path):
    run("mine", data, "--degree", "3", "--threshold", "30", "--paper", "--out", tmp_path / "f.tsv")
    _, rows = read_table(tmp_path / "f.tsv")
    assert all(float(row[3]) == int(float(row[3])) for row in rows)


def test_an_interrupted_run_is_refused_or_resumed(data, tmp_path, monkeypatch, fail):
    out = tmp_path / "f.tsv"
    arguments = ["mine", data, "--degree", "2", "--threshold", "5", "--out", out]
    run(*arguments)
    whole = out.read_bytes()
    out.unlink()

    class StoppedError(Exception):
        pass

    def stop(miner, samples, target):
        raise StoppedError

    monkeypatch.setattr(mining, "write_conjunctions", stop)
    with pytest.raises(StoppedError):
        run(*arguments)
    monkeypatch.undo()
    checkpoint = f"{out}.checkpoint"
    expected = f"treewright: {checkpoint} exists from an interrupted run; add --resume, or delete the folder"
    assert fail(*arguments) == expected
    resumed = run(*arguments, "--resume")
    assert out.read_bytes() == whole
    assert "round" not in resumed.stderr


def test_a_threshold_that_selects_nothing_is_told_in_one_line(data, tmp_path):
    shown = run("mine", data, "--threshold", "10000", "--out", tmp_path / "f.tsv").stderr
    assert shown.endswith("a lower --threshold selects more conjunctions\n")
    assert "Warning" not in shown


def test_two_results_cannot_go_to_one_file(data, tmp_path, fail):
    out = tmp_path / "f"
    assert fail("mine", data, "--out", out, "--model", out).endswith(f"are both {out}; expected two files")


@pytest.mark.parametrize("option", ["--out", "--model"])
def test_the_samples_are_not_written_over(data, tmp_path, fail, option):
    before = data.read_bytes()
    others = ["--out", tmp_path / "f.tsv"] if option == "--model" else []
    expected = f"treewright: {option} is {data}, which is also DATA; expected another file"
    assert fail("mine", data, option, data, *others) == expected
    assert data.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a 1:2\n", [], "data.svmlight:1: '1:2'; expected the value 0 or 1"),
        ("a 1:1\na 2:1\n", ["--threshold", "1"], "y has only one class, 'a'; expected at least two"),
        (
            "a 1:1\nb 2:1\n",
            ["--threshold", "x"],
            "--threshold is 'x'; expected a number of at least 0 or auto",
        ),
        ("a 1:1\nb 2:1\n", ["--threshold", "-1"], "--threshold is '-1'; expected a number of at least 0"),
        ("a 1:1\nb 2:1\n", ["--degree", "0"], "--degree is '0'; expected an integer of at least 1"),
        ("1\n0\n", [], "data.svmlight:1: no features; expected lines such as"),
    ],
)
def test_bad_input_is_one_line(tmp_path, fail, text, options, message):
    path = tmp_path / "data.svmlight"
    path.write_text(text)
    assert message in fail("mine", path, "--out", tmp_path / "f.tsv", *options)
    assert not (tmp_path / "f.tsv").exists()


def test_a_line_is_told_for_each_round():
    lines = []
    X = np.random.default_rng(0).integers(2, size=(60, 5))
    with messages_to(lines.append), filtered(mining.MiningLines()):
        miner = tw.ConjunctionMiner(degree=2, threshold=2).fit(X, X[:, 0] ^ X[:, 1])
    n_rounds = len(lines)
    assert miner.conjunctions_
    assert [line.split(",")[0] for line in lines] == [f"round {number}" for number in range(1, n_rounds + 1)]
    assert re.search(r"threshold 2, .*; candidates > survivors: \d+ > \d+ of order 1.*; .* MiB$", lines[-1])


@pytest.mark.parametrize("suffix", [".md", ".txt", ".csv"])
def test_mine_writes_rules_and_a_plot(data, tmp_path, suffix):
    rules, plot = tmp_path / f"rules{suffix}", tmp_path / "rules.svg"
    options = ("--degree", "2", "--threshold", "5", "--out", tmp_path / "f.tsv")
    run("mine", data, *options, "--rules", rules, "--plot", plot)
    text = rules.read_text()
    assert "f=1 & f=4" in text
    assert ("Conjunctions change" in text) == (suffix != ".csv")
    assert plot.read_text().startswith("<?xml")
    samples = tw.read_svmlight(data)
    if suffix == ".txt":
        line = next(line for line in text.splitlines() if line.startswith("f=1 & f=4"))
        first = int(line.rsplit("  ", 1)[1].split(",")[0])
        row = samples.X[first - 1].toarray()[0]
        assert row[[samples.names.index(name) for name in ("f=1", "f=4")]].all()


@pytest.mark.parametrize(("option", "what"), [("--rules", "a table of rules"), ("--plot", "a plot")])
def test_mine_refuses_names_that_say_no_format(data, tmp_path, option, what):
    path = tmp_path / "rules.xyz"
    with pytest.raises(InputError, match=f"rules.xyz is not a file name for {what}; expected one ending in"):
        run("mine", data, "--out", tmp_path / "f.tsv", option, path)
