import csv
import json
import os
import re
import shutil

import numpy as np
import pytest

import treewright as tw
from treewright.data.conllu import write_conllx
from treewright.errors import InputError, MissingDependencyError
from treewright.progress import messages_to, report
from treewright.report import tables
from treewright.report.corpora import find_corpora, find_corpus, read_corpus
from treewright.report.experiment import Inputs, reproduce
from treewright.report.experiments.qian_liu_table2 import QianLiuTable2Settings, choose_systems
from treewright.report.experiments.qian_liu_table3 import QianLiuTable3Settings
from treewright.report.qian_liu import bench
from treewright.report.separate_process import LostProcessError
from treewright.report.store import ResultStore
from treewright.rerank.reranker import DependencyReranker

QUICK = {"epochs": 1, "runs": 1, "folds": 2, "tags": "gold"}
TREES = tw.make_treebank(110, 0).dependencies
SUFFIXES = ("txt", "csv", "svg", "html", "json")


class FakeReranker(DependencyReranker):
    """Finds every head if it mines subtrees, and otherwise what the parser finds."""

    n_features_ = 1234
    n_templates_ = 56
    coverage_ = ""
    beta_ = 5.0
    oracle_ = 99.0

    def fit(self, trees, dev=None, **options):
        report(f"{self.space} {self.learner} {self.degree} {self.threshold}")
        return self

    def predict(self, trees):
        return (
            list(trees) if (self.space, self.learner) == ("subtree", "mined") else self.parser.predict(trees)
        )


def write_triple(folder, stem="xx_toy-ud-", end=".conllu"):
    folder.mkdir(parents=True, exist_ok=True)
    for part, trees in {"train": TREES[:60], "dev": TREES[60:80], "test": TREES[80:]}.items():
        tw.write_conllu(trees, folder / f"{stem}{part}{end}")


def write_pair(folder, stem="es_toy-"):
    folder.mkdir(parents=True, exist_ok=True)
    write_conllx(TREES[:30], folder / f"{stem}train.conll")
    write_conllx(TREES[80:], folder / f"{stem}test.conll")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return a folder in which a parser is kept, so that it is trained once for all tests."""
    folder = tmp_path_factory.mktemp("trained")
    write_triple(folder / "data")
    inputs = Inputs(folder / "data", ResultStore(folder / "cache"))
    bench.Bench(find_corpus(inputs.data), QianLiuTable2Settings(**QUICK), inputs).base()
    return folder / "cache"


@pytest.fixture
def cache(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "cache", copy_function=os.link)


@pytest.fixture
def data(tmp_path):
    write_triple(tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def fake(monkeypatch):
    """Put the fake reranker in the place of the true one; return the rankings it was trained for."""
    trained = []

    def run_here(function, argument):
        assert function == "treewright.report.qian_liu.bench:train_reranker"
        trained.append(argument["options"])
        return json.loads(json.dumps(bench.train_reranker(json.loads(json.dumps(argument)))))

    monkeypatch.setattr(bench, "DependencyReranker", FakeReranker)
    monkeypatch.setattr(bench, "run_alone", run_here)
    monkeypatch.setattr(bench, "jackknife_lists", lambda *trees, **options: None)
    return trained


def texts(out, name):
    return {suffix: (out / f"{name}.{suffix}").read_text(encoding="utf-8") for suffix in SUFFIXES}


def test_table_2_is_written_with_an_index_and_the_figures_of_the_paper(fake, data, cache, tmp_path):
    written = reproduce(
        "qian-liu-table2", data, tmp_path / "out", settings=QianLiuTable2Settings(**QUICK), cache=cache
    )
    names = [f"qian-liu-table2.{suffix}" for suffix in SUFFIXES]
    assert [path.name for path in written] == [*names, "index.html"]
    found = texts(tmp_path / "out", "qian-liu-table2")
    for suffix in ("txt", "html"):
        for figure in ("93.07", "93.72", "10 days", "93.57", "Koo and Collins, 2010", "xx_toy"):
            assert figure in found[suffix], (suffix, figure)
    rows = list(csv.DictReader(found["csv"].splitlines()))
    assert [float(row["paper_uas"]) for row in rows] == [
        *(93.07, 93.41, 93.45, 93.27, 93.65),
        *(93.39, 93.39, 93.44, 93.30, 93.72),
    ]
    assert float(rows[-1]["uas"]) == 100
    assert len(fake) == 9


def test_the_page_needs_nothing_from_outside_and_its_tables_say_what_their_cells_are(
    fake, data, cache, tmp_path
):
    settings = QianLiuTable2Settings(**QUICK, systems=("mined-tree",))
    reproduce("qian-liu-table2", data, tmp_path, settings=settings, cache=cache)
    page = texts(tmp_path, "qian-liu-table2")["html"]
    assert not re.search(r"https?:|<script|<link|<img|@import", page)
    assert page.count("<caption>") == page.count("<table") == 5
    for expected in ('scope="row"', 'scope="col"', 'scope="colgroup" colspan="6"', "<svg", 'name="viewport"'):
        assert expected in page
    for fact in ("numba", "numpy", "python", tw.__version__, "date", "random_state", "scored"):
        assert fact in page


def test_significant_differences_are_marked(fake, data, cache, tmp_path):
    settings = QianLiuTable2Settings(**QUICK, systems=("template", "mined-tree"))
    reproduce("qian-liu-table2", data, tmp_path, settings=settings, cache=cache)
    found = texts(tmp_path, "qian-liu-table2")
    lines = {line.split("  ")[0]: line for line in found["txt"].splitlines()}
    assert "1.0000  " in lines["linear, template features"]
    assert re.search(r"0\.00\d\d \*", lines["linear, features in DTK"])
    rows = json.loads(found["json"])["tables"][0]["rows"]
    assert [row.get("p_value", 1) < 0.05 for row in rows] == [False, False, True]


def test_a_second_run_trains_nothing_and_finds_the_same(fake, data, cache, tmp_path, monkeypatch):
    settings = QianLiuTable2Settings(**QUICK, systems=("mined-tree", "kernel-tree"))
    reproduce("qian-liu-table2", data, tmp_path / "first", settings=settings, cache=cache)
    fake.clear()
    monkeypatch.setattr(bench.DependencyParser, "fit", lambda *trees, **options: pytest.fail("trained"))
    reproduce("qian-liu-table2", data, tmp_path / "second", settings=settings, cache=cache)
    assert not fake
    tables = [texts(tmp_path / out, "qian-liu-table2")["csv"] for out in ("first", "second")]
    assert tables[0] == tables[1]


@pytest.mark.slow
def test_what_is_scored_can_change_without_another_training(fake, data, cache, tmp_path):
    scores = []
    for rule in ("all", "penn"):
        settings = QianLiuTable2Settings(**QUICK, systems=("template",), punctuation=rule)
        reproduce("qian-liu-table2", data, tmp_path, settings=settings, cache=cache)
        scores.append(json.loads(texts(tmp_path, "qian-liu-table2")["json"])["tables"][0]["rows"][0]["uas"])
    assert len(fake) == 1
    assert scores[0] != scores[1]


@pytest.mark.slow
def test_table_3_has_a_row_for_each_threshold_with_memory_and_time(fake, data, cache, tmp_path):
    reproduce("qian-liu-table3", data, tmp_path, settings=QianLiuTable3Settings(**QUICK), cache=cache)
    found = texts(tmp_path, "qian-liu-table3")
    assert [options["threshold"] for options in fake] == [1, 2, 3, 5, 10]
    for figure in ("0.34G", "stalled", "OOM", "33.1M", "11.4K", "36 h", "4.0 G", "93.55", "1,234", "56"):
        assert figure in found["txt"], figure
    rows = json.loads(found["json"])["tables"][0]["rows"]
    assert all(row["memory"] > 0 and row["seconds"] >= 0 for row in rows)


def test_a_process_without_enough_memory_leaves_its_row_empty_and_the_others_whole(
    fake, data, cache, tmp_path, monkeypatch
):
    def run_or_fail(function, argument):
        if argument["options"]["threshold"] < 7:
            raise LostProcessError("ran out of memory")
        return bench.train_reranker(argument)

    monkeypatch.setattr(bench, "run_alone", run_or_fail)
    settings = QianLiuTable3Settings(**QUICK, thresholds=(6.0, 7.0))
    reproduce("qian-liu-table3", data, tmp_path, settings=settings, cache=cache)
    found = texts(tmp_path, "qian-liu-table3")
    assert "C = 6: ran out of memory." in found["txt"]
    rows = json.loads(found["json"])["tables"][0]["rows"]
    assert [row["uas"] for row in rows] == [None, 100.0]


@pytest.mark.slow
def test_table_4_has_a_row_for_each_treebank_and_the_paper_s_languages_apart(fake, data, cache, tmp_path):
    write_pair(data / "spanish")
    reproduce("qian-liu-table4", data, tmp_path / "out", settings=bench.MiningSettings(**QUICK), cache=cache)
    found = texts(tmp_path / "out", "qian-liu-table4")
    result, paper = json.loads(found["json"])["tables"]
    assert [row["title"] for row in result["rows"]] == ["es_toy", "xx_toy"]
    assert all(row["base_uas"] < row["uas"] == 100 for row in result["rows"])
    assert all(row["las_p_value"] <= 1 for row in result["rows"])
    assert [row["paper_las"] for row in paper["rows"]] == [76.77, 92.68, 87.40, 87.82, 80.51, 86.98]
    assert "other data" in found["html"]


@pytest.mark.slow
def test_the_true_reranker_is_trained_in_a_process_of_its_own(data, cache, tmp_path):
    told = []
    settings = QianLiuTable2Settings(**QUICK, systems=("template",), k=3)
    with messages_to(told.append):
        reproduce("qian-liu-table2", data, tmp_path, settings=settings, cache=cache)
    row = json.loads(texts(tmp_path, "qian-liu-table2")["json"])["tables"][0]["rows"][1]
    assert row["n_features"] > 0
    assert row["memory"] > 1 << 24
    assert any("tuning" in line for line in told)
    assert not list((cache / "unfinished").iterdir())


def test_treebanks_are_found_in_folders_with_and_without_a_dev_part(tmp_path):
    write_triple(tmp_path / "ud")
    write_triple(tmp_path / "penn", stem="wsj-", end=".dep.conllu")
    write_triple(tmp_path / "plain", stem="")
    write_pair(tmp_path / "conll")
    (tmp_path / "penn" / "wsj-train.mrg").write_text("((S (X x)))\n")
    (tmp_path / "penn" / "wsj-test.mrg").write_text("((S (X x)))\n")
    found = find_corpora(tmp_path)
    assert [files.name for files in found] == ["es_toy", "plain", "wsj", "xx_toy"]
    assert [files.dev is None for files in found] == [True, False, False, False]
    one = find_corpus(tmp_path / "penn" / "wsj-train.dep.conllu")
    assert one.test.name == "wsj-test.dep.conllu"


def test_every_tenth_sentence_is_held_out_where_there_is_no_dev_part(tmp_path):
    write_pair(tmp_path)
    corpus = read_corpus(find_corpus(tmp_path), 30)
    assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == (27, 3, 30)
    assert [tree.words for tree in corpus.dev] == [TREES[number].words for number in (9, 19, 29)]
    np.testing.assert_array_equal(corpus.train[9].heads, TREES[10].heads)
    assert "3 dev (held out of the training set)" in corpus.describe()


def test_a_folder_without_treebanks_is_refused_with_what_was_looked_for(tmp_path):
    (tmp_path / "train.txt").write_text("no treebank")
    with pytest.raises(
        InputError, match=r"has no treebank; expected \*train\*\.conllu or .*in the same folder$"
    ):
        find_corpora(tmp_path)
    with pytest.raises(InputError, match="does not exist; expected a folder"):
        find_corpora(tmp_path / "nothing")


def test_several_treebanks_are_refused_where_one_is_needed(data, tmp_path):
    write_pair(data)
    with pytest.raises(InputError, match=r"has 2 treebanks \(es_toy, xx_toy\); expected one"):
        reproduce("qian-liu-table2", data, tmp_path / "out", cache=tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"folds": 1}, "folds is 1; expected an integer of at least 2"),
        ({"tags": "none"}, "tags is 'none'; expected one of gold, predicted"),
        ({"punctuation": "none"}, "punctuation is 'none'; expected one of all, unicode, penn"),
        ({"systems": ("best",)}, "system is 'best'; expected one or more of kernel-2, .*mined-tree"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings, message, data, tmp_path):
    with pytest.raises(InputError, match=message):
        reproduce(
            "qian-liu-table2",
            data,
            tmp_path / "out",
            settings=QianLiuTable2Settings(**settings),
            cache=tmp_path,
        )


@pytest.mark.parametrize("option", [("--systems", "mined-tree"), ("--degrees", "2,4,8")])
def test_options_of_other_experiments_are_refused(option, data, tmp_path, fail):
    arguments = ["qian-liu-table3", "--data", data, "--out", tmp_path / "out"]
    message = fail("reproduce", *arguments, *option)
    assert message.startswith(f"treewright: No such option: {option[0]}")
    assert not (tmp_path / "out").exists()


def test_missing_packages_are_named_before_the_work(data, tmp_path, monkeypatch):
    def fail(module, extra):
        raise MissingDependencyError(f"{module} is not installed; it comes with treewright[{extra}]")

    monkeypatch.setattr(tables, "require", fail)
    with pytest.raises(MissingDependencyError, match=r"matplotlib.figure is not installed.*\[report\]"):
        reproduce("qian-liu-table2", data, tmp_path, cache=tmp_path)


def test_kernels_of_other_degrees_have_a_name_too():
    titles = [system.title for system in choose_systems(QianLiuTable2Settings(degrees=(3,)))]
    assert titles[0] == "polynomial kernel of degree 3 (3K)"
    assert "linear, features in 3K" in titles
