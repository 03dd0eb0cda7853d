"""Pages of experiments: what each says of its making, and the index that collects them."""

import json
import re
import shlex
from dataclasses import fields
from html.parser import HTMLParser
from pathlib import Path

import pytest
from commands import run

import treewright as tw
from treewright._naming import option_name
from treewright.progress import messages_to
from treewright.report import experiment as registry
from treewright.report import show
from treewright.report.experiment import find_experiment, list_experiments, reproduce, write_command
from treewright.report.pages import Provenance, find_headline, write_findings, write_index
from treewright.report.tables import Column, Findings, Table

CHANGED = {
    "random_state": 3,
    "n_jobs": 2,
    "epochs": 4,
    "runs": 2,
    "k": 7,
    "folds": 3,
    "threshold": 2.5,
    "thresholds": (1.0, 2.5),
    "degrees": (2, 3),
    "systems": ("kernel-2", "template"),
    "tags": "gold",
    "punctuation": "penn",
    "n_sentences": 9,
    "strategies": ("original",),
    "max_lengths": (15, None),
    "lowest_penalty": 0.125,
    "sample_size": 100,
    "label": "NP",
    "penalty": 1e-05,
    "n_trees": 5,
    "most_seconds": 60.0,
    "treebank": Path("my treebank"),
    "constituent_parser": Path("c.tw"),
    "dependency_parser": Path("d.tw"),
    "adjuncts": "merged",
    "framenet": Path("frames"),
    "frames": ("Lending", "Taking"),
    "small_threshold": 20,
    "large_threshold": 4,
    "units": 8,
    "cell": "tanh",
    "list_sentences": 11,
    "all_sentences": 12,
    "sst_sentences": 13,
    "reranker_epochs": 2,
    "leftcorner_parser": Path("l.tw"),
    "eta": 0.75,
    "min_gain": 0.25,
    "slack": 0.125,
    "prune": False,
    "min_count": 3,
    "any_children": True,
    "max_inferences": 50,
    "atoms": "child 1 label word\nhead label",
    "all_pairs": True,
    "dev_inferences": 70,
    "optimizer": "momentum",
    "learning_rate": 0.5,
    "batch_size": 5,
    "dropout": 0.25,
    "average": False,
    "dev_beam": 3,
    "weight": 3.5,
    "C": 0.25,
    "least_examples": 6,
    "n_seeds": 3,
    "tolerance": 1,
    "learner": "softmax",
    "voting": True,
    "shuffle": False,
    "score_weight": 2.5,
    "kernel_weight": 0.5,
}
"""For each setting a value that is not its default."""
LEFT_OUT = {"moschitti-table2": ("treebank",)}
"""Settings that have no effect with others."""


def make_findings(title="A & B", score=91.25):
    columns = (Column("title", "system"), Column("uas", "UAS", show.score, "here"))
    rows = [{"title": "base", "uas": 90.0}, {"title": "<best>", "uas": score}]
    return Findings(
        title,
        (Table("Scores", columns, rows, ["A note."]),),
        lambda figure: figure.subplots().plot([90, score]),
        "Scores of both.",
        {"treebank": "toy", "random_state": "0"},
    )


def changed_settings(name):
    settings = find_experiment(name).settings
    names = [each.name for each in fields(settings) if each.name not in LEFT_OUT.get(name, ())]
    return settings(**{each: CHANGED[each] for each in names})


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "toy data"
    path.mkdir()
    return path


@pytest.fixture
def instant(monkeypatch):
    """Let every experiment find the same at once."""
    for name in list_experiments():
        found = find_experiment(name)._replace(run=lambda settings, inputs: make_findings())
        monkeypatch.setitem(registry._REGISTERED, name, found)


class Links(HTMLParser):
    """Collects what a page links to, and counts its elements."""

    def __init__(self, page):
        super().__init__()
        self.links, self.tags = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src")]


@pytest.mark.parametrize("name", list_experiments())
def test_every_page_has_plot_tables_settings_seed_versions_and_command(instant, data, tmp_path, name):
    settings = changed_settings(name)
    text, _, svg, page, record, _ = reproduce(name, data, tmp_path / "out", settings=settings)
    html = page.read_text(encoding="utf-8")
    found = json.loads(record.read_text(encoding="utf-8"))
    assert found["command"].startswith(f"treewright reproduce {name} --data '{data}' --out ")
    assert set(found["settings"]) == {option_name(each.name) for each in fields(settings)}
    assert found["settings"]["--seed"] == "3"
    assert {"treewright", "python", "numpy", "scipy", "scikit-learn", "numba", "machine"} <= set(
        found["origin"]
    )
    assert re.search(r"\d+ cores?$", found["origin"]["machine"])
    assert found["data"] == "toy data"
    assert "<svg" in svg.read_text(encoding="utf-8")
    assert {"figure", "svg", "table", "pre"} <= set(Links(html).tags)
    for told in (tw.__version__, *found["origin"], "--seed", found["date"], "scikit-learn"):
        assert told in html
        assert told in text.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", list_experiments())
def test_the_command_of_a_page_asks_for_the_same_again(name, data, tmp_path, monkeypatch):
    asked = []

    def keep(name, data, out, **options):
        asked.append((name, data, out, options["settings"], options["cache"]))
        return [Path(__file__)]

    monkeypatch.setattr(registry, "reproduce", keep)
    changed = changed_settings(name)
    command = write_command(name, data, tmp_path / "o", changed, cache=tmp_path / "it's kept")
    run(*shlex.split(command)[1:])
    assert asked == [(name, data, tmp_path / "o", changed, tmp_path / "it's kept")]


def test_settings_that_are_not_changed_are_not_in_the_command():
    assert write_command(
        "turian-table1", Path("a"), Path("b"), find_experiment("turian-table1").settings()
    ) == ("treewright reproduce turian-table1 --data a --out b")


def test_markup_in_what_is_told_is_shown_as_it_stands(tmp_path):
    made = Provenance("do <it>", "<data>", {"--seed": "<0>"})
    *_, page, _ = write_findings("x", make_findings("A <b>"), tmp_path, made=made)
    html = page.read_text(encoding="utf-8")
    for told in ("do &lt;it&gt;", "&lt;data&gt;", "&lt;0&gt;", "A &lt;b&gt;", "&lt;best&gt;: UAS 91.25"):
        assert told in html


def test_the_index_lists_all_pages_of_a_folder_the_latest_first(tmp_path):
    for name, title in {"one": "First", "two three": "Second"}.items():
        made = Provenance(f"treewright reproduce {name}", "toy", {})
        write_findings(name, make_findings(title), tmp_path, made=made)
    record = tmp_path / "one.json"
    older = json.loads(record.read_text(encoding="utf-8")) | {"date": "2001-02-03T04:05:06+00:00"}
    record.write_text(json.dumps(older), encoding="utf-8")
    assert write_index(tmp_path)
    html = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert Links(html).links == ["two%20three.html", "one.html"]
    for told in ("First", "2001-02-03 04:05", "toy", "treewright reproduce one", "&lt;best&gt;: UAS 91.25"):
        assert told in html
    assert not re.search(r"https?:|<script|<link|@import", html)


def test_each_run_adds_its_page_to_the_index(instant, data, tmp_path):
    for name in ("moschitti-table1", "titov-table2", "moschitti-table1"):
        reproduce(name, data, tmp_path / "out")
    links = Links((tmp_path / "out" / "index.html").read_text(encoding="utf-8")).links
    assert sorted(links) == ["moschitti-table1.html", "titov-table2.html"]
    page = (tmp_path / "out" / "titov-table2.html").read_text(encoding="utf-8")
    assert Links(page).links == ["index.html"]


@pytest.mark.parametrize("content", ["{", "[]", "3", '{"title": "x"}', '{"title": 3}', "\x00"])
def test_other_files_are_not_listed(tmp_path, content):
    (tmp_path / "other.json").write_text(content, encoding="utf-8")
    (tmp_path / "other.html").write_text("<p>", encoding="utf-8")
    assert write_index(tmp_path)
    assert not Links((tmp_path / "index.html").read_text(encoding="utf-8")).links


def test_records_without_their_page_are_not_listed(tmp_path):
    *_, page, _ = write_findings("x", make_findings(), tmp_path, made=Provenance("c", "d", {}))
    page.unlink()
    write_index(tmp_path)
    assert not Links((tmp_path / "index.html").read_text(encoding="utf-8")).links


def test_an_index_of_somebody_else_is_left_alone(instant, data, tmp_path):
    (tmp_path / "index.html").write_text("my own page", encoding="utf-8")
    told = []
    with messages_to(told.append):
        written = reproduce("moschitti-table1", data, tmp_path)
    assert tmp_path / "index.html" not in written
    assert (tmp_path / "index.html").read_text(encoding="utf-8") == "my own page"
    assert f"{tmp_path / 'index.html'} was not written by treewright and is kept unchanged" in told


def test_the_headline_is_the_best_score_that_is_no_paper_s():
    columns = (
        Column("title", "system"),
        Column("gain", "gain", show.difference),
        Column("paper", "F1", show.score, "paper"),
        Column("f1", "F1", show.score, "dev"),
    )
    rows = [
        {"title": "a", "f1": 80.0, "paper": 99.0},
        {"title": "b", "f1": 81.0, "gain": 1.0},
        {"title": "theirs", "f1": 90.0, "is_paper": True},
        {"title": "none", "f1": None},
    ]
    assert find_headline(Table("", columns, rows)) == "b: dev, F1 81.00"
    assert find_headline(Table("", columns[:3], rows)) == ""
    assert find_headline(Table("", columns, [])) == ""
