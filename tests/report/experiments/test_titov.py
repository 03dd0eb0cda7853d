"""Experiments with kernels that are derived from left-corner parsers."""

import csv
import json

import numpy as np
import pytest
from commands import run as run_command

import treewright as tw
from treewright.errors import InputError
from treewright.parsing.constituent.parser import ConstituentParser
from treewright.parsing.leftcorner.parser import LeftCornerParser
from treewright.progress import messages_to
from treewright.report.experiment import Settings, find_experiment, reproduce
from treewright.report.experiments.titov_table1 import TABLE1, TitovTable1Settings
from treewright.report.experiments.titov_table2 import TABLE2, TitovTable2Settings
from treewright.report.titov.candidates import ListReranker
from treewright.rerank.any_candidates import CandidateReranker
from treewright.rerank.constituents import ConstituentReranker
from treewright.rerank.parse_lists import ParseList

pytest.importorskip("torch", reason="left-corner parsers are trained with PyTorch")

TREES = list(tw.make_treebank(64, 0).constituents)
PARTS = {"train": TREES[:40], "dev": TREES[40:52], "test": TREES[52:]}
REST = [tree for at, tree in enumerate(PARTS["train"], 1) if at % 10]
ASIDE = PARTS["train"][9::10]
QUICK = {"units": 8, "epochs": 3, "k": 4, "large_threshold": 2}
TABLE1_QUICK = {**QUICK, "small_threshold": 6, "all_sentences": 5}
SUFFIXES = ("txt", "csv", "svg", "html", "json")


def write_treebank(folder, parts=PARTS):
    folder.mkdir(parents=True, exist_ok=True)
    for part, trees in parts.items():
        tw.write_brackets(trees, folder / f"xx_toy-{part}.mrg")
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_treebank(tmp_path_factory.mktemp("treebank"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Return a folder that tests share, so that each parser is trained once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return the files of two parsers that have learnt."""
    folder = tmp_path_factory.mktemp("models")
    neural = LeftCornerParser(units=8, epochs=3, min_count=2, beam=8).fit(PARTS["train"], PARTS["dev"])
    classifying = ConstituentParser(lowest_penalty=5.0).fit(PARTS["train"], PARTS["dev"])
    paths = {"leftcorner_parser": folder / "neural.tw", "constituent_parser": folder / "classifying.tw"}
    for parser, path in zip((neural, classifying), paths.values(), strict=True):
        parser.save(path)
    return paths


def run(name, data, cache, out, told=None, **settings):
    chosen = find_experiment(name).settings(**settings)
    with messages_to((told if told is not None else []).append):
        written = reproduce(name, data, out, settings=chosen, cache=cache)
    assert [path.name for path in written] == [*(f"{name}.{suffix}" for suffix in SUFFIXES), "index.html"]
    (table,) = json.loads(written[4].read_text(encoding="utf-8"))["tables"]
    return written[0].read_text(encoding="utf-8"), {
        row.get("name", row["title"]): row for row in table["rows"]
    }


@pytest.fixture(scope="module")
def table1(data, cache, tmp_path_factory):
    told = []
    text, rows = run("titov-table1", data, cache, tmp_path_factory.mktemp("out"), told, **TABLE1_QUICK)
    return text, rows, told


@pytest.mark.slow
def test_table_1_has_a_row_for_each_kernel_beside_the_figures_of_the_paper(table1):
    text, rows, told = table1
    assert list(rows) == [system.name for system in TABLE1]
    assert [row["paper_f1"] for row in rows.values()] == [
        87.8,
        87.9,
        87.9,
        88.1,
        88.1,
        87.6,
        88.6,
        88.9,
        None,
    ]
    assert all(
        0 <= row[name] <= 100 for row in rows.values() for name in ("f1", "recall", "precision", "exact")
    )
    assert all(row["n_sentences"] == len(PARTS["dev"]) for row in rows.values())
    assert rows["top-rerank-all-small"]["paper_gain"] == pytest.approx(-0.2)
    assert rows["top-small"]["title"] == "TOP-Out, Freq >= 6"
    assert any(line.startswith("Fisher-Out, Freq >= 6: F1") for line in told)
    assert "The dev set was not used for training" in text
    assert "first 5 sentences only" in text
    assert "36 training, 4 tuning, 12 scored" in text


@pytest.mark.slow
def test_rows_of_rerankers_tell_time_features_and_how_sure_the_gain_is(table1):
    _, rows, _ = table1
    for name, row in rows.items():
        if name.startswith("ssn"):
            assert "p_value" not in row
            continue
        assert 0 < row["network_seconds"] < row["seconds"]
        assert 0 < row["p_value"] <= 1
        assert row["n_nonzero"] > 0
        own = rows[f"ssn-{row['vocabulary']}"]
        assert row["difference"] == pytest.approx(row["f1"] - own["f1"])
    for size in ("small", "large"):
        assert rows[f"efficient-top-{size}"]["n_nonzero"] < rows[f"top-rerank-{size}"]["n_nonzero"]
    assert rows["ssn-small"]["n_words"] < rows["ssn-large"]["n_words"]


@pytest.mark.slow
def test_a_note_compares_the_efficient_with_the_plain_kernel(table1):
    text, rows, _ = table1
    efficient, plain = rows["efficient-top-large"], rows["top-rerank-large"]
    sparser = plain["n_nonzero"] / efficient["n_nonzero"]
    faster = plain["seconds"] / efficient["seconds"]
    assert f"features {sparser:.1f} times sparser, training {faster:.1f} times faster (" in text
    assert "times without the network), F1 " in text


@pytest.mark.slow
def test_the_parser_of_table_1_has_not_seen_what_is_set_aside_or_scored(table1):
    _, rows, _ = table1
    parser = LeftCornerParser(units=8, epochs=3, min_count=2).fit(REST, ASIDE)
    expected = tw.metrics.parseval(PARTS["dev"], parser.predict(PARTS["dev"]))
    assert rows["ssn-large"]["f1"] == pytest.approx(expected.f1)


@pytest.mark.slow
def test_a_row_is_what_a_reranker_finds_that_makes_its_own_lists(table1):
    _, rows, _ = table1
    parser = LeftCornerParser(units=8, epochs=3, min_count=2)
    reranker = ConstituentReranker(parser=parser, kernel="efficient-top", k=4).fit(REST, ASIDE)
    expected = tw.metrics.parseval(PARTS["dev"], reranker.predict(PARTS["dev"]))
    row = rows["efficient-top-large"]
    assert [row[name] for name in ("f1", "recall", "precision", "exact")] == pytest.approx(
        [expected.f1, expected.recall, expected.precision, expected.exact]
    )
    assert row["tuning_kernel_weight"] == reranker.tuning_.kernel_weight


def fail_at(monkeypatch, *methods):
    for owner, name in methods:
        monkeypatch.setattr(owner, name, lambda *arguments, name=name, **options: pytest.fail(name))


@pytest.mark.slow
def test_a_second_run_trains_and_parses_nothing_and_finds_the_same(
    table1, data, cache, tmp_path, monkeypatch
):
    fail_at(monkeypatch, (LeftCornerParser, "fit"), (LeftCornerParser, "kbest"), (CandidateReranker, "fit"))
    fail_at(monkeypatch, (ListReranker, "tune"))
    _, rows = run("titov-table1", data, cache, tmp_path, **TABLE1_QUICK)
    assert rows == table1[1]
    assert not list((cache / "unfinished").iterdir())
    with open(tmp_path / "titov-table1.csv", newline="") as stream:
        found = [float(row["f1"]) for row in csv.DictReader(stream)]
    assert found == [row["f1"] for row in rows.values()]


@pytest.mark.slow
def test_another_row_learns_from_the_lists_that_are_there(table1, data, cache, tmp_path, monkeypatch):
    fail_at(monkeypatch, (LeftCornerParser, "fit"), (LeftCornerParser, "kbest"))
    text, rows = run(
        "titov-table1", data, cache, tmp_path, **TABLE1_QUICK, reranker_epochs=2, systems=("fisher-small",)
    )
    assert list(rows) == ["fisher-small"]
    assert rows["fisher-small"]["seconds"] != table1[1]["fisher-small"]["seconds"]
    assert "times sparser" not in text
    assert "sentences only" not in text


@pytest.mark.slow
def test_rerankers_learn_as_the_settings_say(table1, data, cache, tmp_path):
    chosen = {"systems": ("efficient-top-large",), "voting": True, "shuffle": False, "score_weight": 1.0}
    text, rows = run("titov-table1", data, cache, tmp_path, **TABLE1_QUICK, **chosen)
    parser = LeftCornerParser(units=8, epochs=3, min_count=2)
    reranker = ConstituentReranker(parser=parser, k=4, voting=True, shuffle=False, score_weight=1.0)
    reranker.fit(REST, ASIDE)
    expected = tw.metrics.parseval(PARTS["dev"], reranker.predict(PARTS["dev"]))
    assert rows["efficient-top-large"]["f1"] == pytest.approx(expected.f1)
    assert "epochs 1, votes, lists in the order of the corpus" in text
    chosen = {"systems": ("efficient-top-large",), "learner": "expected-loss", "kernel_weight": 0.5}
    text, rows = run("titov-table1", data, cache, tmp_path, **TABLE1_QUICK, **chosen, penalty=3.0)
    assert rows["efficient-top-large"]["tuning_kernel_weight"] == 0.5
    assert "expected-loss, penalty 3" in text


@pytest.mark.slow
def test_networks_are_trained_as_the_settings_say(data, cache, tmp_path):
    changed = {"cell": "sigmoid", "optimizer": "momentum", "learning_rate": 0.3, "batch_size": 50}
    changed |= {"dropout": 0.0, "average": False, "dev_beam": 5}
    text, rows = run("titov-table1", data, cache, tmp_path, **QUICK, **changed, systems=("ssn-large",))
    parser = LeftCornerParser(units=8, epochs=3, min_count=2, **changed).fit(REST, ASIDE)
    expected = tw.metrics.parseval(PARTS["dev"], parser.predict(PARTS["dev"]))
    assert rows["ssn-large"]["f1"] == pytest.approx(expected.f1)
    assert "sigmoid cells, 8 units, at most 3 epochs by momentum, rate 0.3" in text


@pytest.mark.slow
def test_scores_of_several_seeds_are_means_with_their_spread(table1, data, cache, tmp_path):
    options = {**TABLE1_QUICK, "systems": ("ssn-large", "efficient-top-large")}
    single = [run("titov-table1", data, cache, tmp_path, **options, random_state=seed)[1] for seed in (0, 1)]
    settings = TitovTable1Settings(**options, n_seeds=2)
    written = reproduce("titov-table1", data, tmp_path, settings=settings, cache=cache)
    means, by_seed = (table["rows"] for table in json.loads(written[4].read_text())["tables"])
    for row in means:
        scores = [each[row["name"]]["f1"] for each in single]
        assert row["f1"] == pytest.approx(np.mean(scores))
        assert row["f1_spread"] == pytest.approx(np.std(scores, ddof=1))
        assert "p_value" not in row
    gains = [each["efficient-top-large"]["difference"] for each in single]
    assert means[1]["difference"] == pytest.approx(np.mean(gains))
    assert means[1]["difference_spread"] == pytest.approx(np.std(gains, ddof=1))
    assert [(row["name"], row["seed"]) for row in by_seed] == [
        (name, seed) for name in options["systems"] for seed in (0, 1)
    ]
    assert [row["f1"] for row in by_seed] == [
        each[name]["f1"] for name in options["systems"] for each in single
    ]
    text = written[0].read_text(encoding="utf-8")
    assert "Seed 1: Freq >= 2" in text
    assert "random_state: 0, 1" in text


def test_a_penalty_of_the_perceptron_is_refused(data, tmp_path):
    with pytest.raises(InputError, match="penalty has no effect with learner='perceptron'; remove it"):
        reproduce("titov-table1", data, tmp_path, settings=TitovTable1Settings(penalty=2.0))


@pytest.mark.slow
def test_an_interrupted_run_goes_on(table1, data, cache, tmp_path):
    def stop(line):
        if "best trees of" in line:
            raise KeyboardInterrupt

    options = {**TABLE1_QUICK, "systems": ("ssn-large", "efficient-top-large"), "k": 3}
    with pytest.raises(KeyboardInterrupt), messages_to(stop):
        reproduce("titov-table1", data, tmp_path, settings=TitovTable1Settings(**options), cache=cache)
    _, rows = run("titov-table1", data, cache, tmp_path, **options)
    assert rows["ssn-large"]["f1"] == table1[1]["ssn-large"]["f1"]


@pytest.mark.slow
def test_lists_by_parsers_of_folds_are_others(table1, data, cache, tmp_path):
    options = {**TABLE1_QUICK, "folds": 2, "systems": ("ssn-large", "efficient-top-large")}
    told = []
    text, rows = run("titov-table1", data, cache, tmp_path, told, **options, list_sentences=20)
    assert any(line.startswith("fold2: epoch 3") for line in told)
    assert any("efficient-top, output weights, 20 lists" in line for line in told)
    assert rows["ssn-large"]["f1"] == table1[1]["ssn-large"]["f1"]
    assert "2 jackknife folds" in text


@pytest.fixture(scope="module")
def table2(data, cache, models, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    return run("titov-table2", data, cache, out, k=4, sst_sentences=10, **models)


@pytest.mark.slow
def test_table_2_has_rows_of_both_parsers_and_those_of_the_paper(table2):
    text, rows = table2
    assert list(rows)[: len(TABLE2)] == [system.name for system in TABLE2]
    own = list(rows.values())[: len(TABLE2)]
    assert [row["f1"] for row in rows.values()][len(own) :] == [
        *(88.2, 88.7, 88.8, 89.1, 89.5, 89.6, 89.7, 89.8, 89.8, 90.1, 90.7)
    ]
    assert all(row["n_sentences"] == len(PARTS["test"]) for row in own)
    assert all(row["oracle"] >= row["f1"] - 1e-9 for row in own)
    assert "on 10, since their time is quadratic" in text
    assert "tuned on 12 dev sentences" in text
    assert "pretrained model neural.tw" in text


@pytest.mark.slow
def test_rows_of_table_2_are_beside_their_parser_or_the_better_of_both(table2, models):
    _, rows = table2
    for name in ("leftcorner", "constituent"):
        parser = tw.load(models[f"{name}_parser"])
        expected = tw.metrics.parseval(PARTS["test"], parser.predict(PARTS["test"])).f1
        assert rows[name]["f1"] == pytest.approx(expected)
        sst = rows[f"{name}-sst"]
        assert sst["difference"] == pytest.approx(sst["f1"] - expected)
    better = max(rows[name]["f1"] for name in ("leftcorner", "constituent"))
    for name in ("both", "both-efficient-top"):
        assert rows[name]["difference"] == pytest.approx(rows[name]["f1"] - better)
        assert rows[name]["oracle"] >= rows["leftcorner"]["oracle"] - 1e-9
    assert rows["both-efficient-top"]["seconds"] == rows["leftcorner-efficient-top"]["seconds"]


@pytest.mark.slow
def test_the_score_of_both_parsers_is_that_of_their_reranker(table2, models):
    parsers = [tw.load(path) for path in models.values()]
    reranker = ConstituentReranker(
        parser=parsers[0], others=(parsers[1],), kernel="none", k=4, predict_by="score"
    )
    reranker.fit(PARTS["train"], PARTS["dev"])
    expected = tw.metrics.parseval(PARTS["test"], reranker.predict(PARTS["test"]))
    assert table2[1]["both"]["f1"] == pytest.approx(expected.f1)


@pytest.mark.slow
def test_table_2_trains_parsers_that_are_not_given(data, cache, tmp_path):
    options = {**QUICK, "lowest_penalty": 5.0, "systems": ("leftcorner", "constituent")}
    text, rows = run("titov-table2", data, cache, tmp_path, **options)
    parser = ConstituentParser(lowest_penalty=5.0).fit(PARTS["train"], PARTS["dev"])
    expected = tw.metrics.parseval(PARTS["test"], parser.predict(PARTS["test"])).f1
    assert rows["constituent"]["f1"] == pytest.approx(expected)
    assert rows["leftcorner"]["n_sentences"] == len(PARTS["test"])
    assert "their time is quadratic" not in text


@pytest.mark.slow
def test_table_1_needs_dev_sentences_and_table_2_does_not(cache, tmp_path, models):
    folder = write_treebank(tmp_path / "no-dev", {name: PARTS[name] for name in ("train", "test")})
    with pytest.raises(InputError, match=r"^xx_toy has no dev set; expected one for scoring$"):
        run("titov-table1", folder, cache, tmp_path, **TABLE1_QUICK)
    text, _ = run("titov-table2", folder, cache, tmp_path, k=4, systems=("both",), **models)
    assert "36 training, 4 tuning, 12 scored" in text
    assert "tuned on 4 training sentences" in text


@pytest.mark.slow
def test_what_cannot_be_used_is_refused_in_one_line(data, cache, tmp_path, models):
    with pytest.raises(
        InputError, match=r"^system is 'ssn'; expected one or more of ssn-small, fisher-small, "
    ):
        run("titov-table1", data, cache, tmp_path, systems=("ssn",))
    with pytest.raises(InputError, match=r"neural\.tw is a LeftCornerParser; expected a ConstituentParser$"):
        run(
            "titov-table2",
            data,
            cache,
            tmp_path,
            constituent_parser=models["leftcorner_parser"],
            systems=("constituent",),
        )
    own = ConstituentParser(tags="predicted", lowest_penalty=5.0).fit(PARTS["train"], PARTS["dev"])
    own.save(tmp_path / "own.tw")
    with pytest.raises(InputError, match=r"own\.tw predicts tags; expected a parser trained"):
        run(
            "titov-table2",
            data,
            cache,
            tmp_path,
            constituent_parser=tmp_path / "own.tw",
            systems=("constituent",),
        )
    few = write_treebank(tmp_path / "few", {**PARTS, "train": TREES[:9]})
    with pytest.raises(InputError, match=r"^xx_toy has 9 training sentences; expected at least 10, since"):
        run("titov-table1", few, cache, tmp_path)
    with pytest.raises(
        InputError, match=r"settings of titov-table1 are Settings; expected TitovTable1Settings"
    ):
        reproduce("titov-table1", data, tmp_path, settings=Settings(), cache=cache)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cell": "round"}, "cell is 'round'; expected"),
        ({"k": 1}, "k is 1; expected"),
        ({"folds": 1}, "folds is 1; expected"),
        ({"all_sentences": 0}, "all_sentences is 0; expected"),
        ({"epochs": 0}, "epochs is 0; expected"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        TitovTable1Settings(**settings).check()


def test_rerankers_learn_from_as_many_lists_as_settings_say():
    assert TitovTable1Settings(all_sentences=5).n_lists("efficient-top") is None
    assert TitovTable1Settings(all_sentences=5).n_lists("top-rerank", "all") == 5
    assert TitovTable2Settings(sst_sentences=7).n_lists("sst") == 7
    assert TitovTable2Settings(list_sentences=3).n_lists("sst") == 3


@pytest.mark.slow
def test_features_are_counted_once_for_each_list_of_a_sample(models):
    parser = tw.load(models["leftcorner_parser"])
    kernel = tw.EfficientTopRerankingKernel()
    found = [
        ParseList([parse.tree for parse in parses], [parse.score for parse in parses])
        for parses in parser.kbest(TREES[:6], 3)
    ]
    reranker = ListReranker(parser=parser)
    reranker.parser_ = parser
    rows = kernel.features([parser.trace(each.trees) for each in found])
    assert reranker._count_features(found) == pytest.approx((rows.toarray() != 0).sum() / rows.shape[0])


@pytest.mark.slow
def test_the_command_line_passes_settings_on(data, cache, tmp_path, table1):
    options = ("--units", 8, "--epochs", 3, "--k", 4, "--large-threshold", 2, "--systems", "ssn-large")
    done = run_command(
        *("reproduce", "titov-table1", "--data", data, "--out", tmp_path, "--cache", cache), *options
    )
    assert f"{table1[1]['ssn-large']['f1']:.2f}" in done.stdout


def test_options_of_the_other_table_are_refused(data, tmp_path, fail):
    line = fail("reproduce", "titov-table1", "--data", data, "--out", tmp_path, "--sst-sentences", 3)
    assert line.startswith("treewright: No such option: --sst-sentences")
