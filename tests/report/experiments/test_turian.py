"""Experiments with parsing by classification."""

import csv
import json

import numpy as np
import pytest
from commands import run as run_command

import treewright as tw
from treewright.errors import InputError
from treewright.learn.boosting import Seconds, TreeRecord
from treewright.learn.trees import TreeBuilder
from treewright.native.learn.boosting import FeatureRows
from treewright.parsing.constituent.parser import ConstituentParser
from treewright.progress import messages_to
from treewright.report.corpora import find_treebank, read_treebank
from treewright.report.experiment import find_experiment, reproduce
from treewright.report.experiments import turian_table1
from treewright.report.experiments.turian_table1 import TurianTable1Settings
from treewright.report.turian import profiling
from treewright.report.turian.bench import ConstituentSettings, ParserSystem, TaggedSettings
from treewright.report.turian.profiling import choose_label, describe_ensemble, make_ensemble, measure_memory
from treewright.report.turian.sampling import (
    Target,
    UncachedBuilder,
    build_sampled,
    example_bytes,
    next_target,
    profile,
)

TREES = list(tw.make_treebank(110, 0).constituents)
QUICK = {"lowest_penalty": 5.0, "max_lengths": (12, None)}
SUFFIXES = ("txt", "csv", "svg", "html", "json")


def write_treebank(folder, stem="xx_toy-"):
    folder.mkdir(parents=True, exist_ok=True)
    for part, trees in {"train": TREES[:60], "dev": TREES[60:75], "test": TREES[75:]}.items():
        tw.write_brackets(trees, folder / f"{stem}{part}.mrg")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("treebank")
    write_treebank(folder)
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Return a folder that all tests share, so that each parser is trained once."""
    return tmp_path_factory.mktemp("cache")


def run(name, data, cache, out, told=None, **settings):
    tags = {} if name == "turian-table2" else {"tags": "gold"}
    chosen = find_experiment(name).settings(**{**QUICK, **tags, **settings})
    with messages_to((told if told is not None else []).append):
        written = reproduce(name, data, out, settings=chosen, cache=cache)
    assert [path.name for path in written] == [*(f"{name}.{suffix}" for suffix in SUFFIXES), "index.html"]
    found = json.loads(written[4].read_text(encoding="utf-8"))
    return written[0].read_text(encoding="utf-8"), [table["rows"] for table in found["tables"]]


@pytest.fixture(scope="module")
def learnt():
    """Return the examples of NP for the original strategy, and an ensemble that is done at a penalty."""
    parser = ConstituentParser(strategy="original", sample_size=300)
    training = parser.make_training(TREES[:60])
    examples = training.examples(choose_label(training, "NP"))
    ensemble = make_ensemble(parser, examples)
    ensemble.grow_to(1.0, max_trees=1000)
    return examples, ensemble


@pytest.mark.slow
def test_table_1_has_rows_for_each_length_beside_those_of_the_paper(data, cache, tmp_path):
    told = []
    text, (rows,) = run("turian-table1", data, cache, tmp_path, told)
    assert [row["tested_on"] for row in rows[:3]] == ["<= 12 words", "<= 12 words", "all lengths"]
    assert [row["trained_on"] for row in rows[:3]] == ["<= 12 words", "all lengths", "all lengths"]
    assert all(0 < row["f1"] <= 100 and row["rate"] > 0 and row["n_trees"] > 0 for row in rows[:3])
    assert [row["f1"] for row in rows[3:]] == [87.13, 88.30, 89.12, 89.40]
    assert [row["recall"] for row in rows[3:]] == [86.47, 87.85, 89.10, 89.26]
    assert [row["precision"] for row in rows[3:]] == [87.80, 88.75, 89.14, 89.55]
    assert "Other data: not comparable" in text
    assert any("shift-reduce, gold tags, all lengths: F1" in line for line in told)


@pytest.mark.slow
def test_the_scores_of_table_1_are_those_of_a_parser_that_is_trained_alone(data, cache, tmp_path):
    _, (rows,) = run("turian-table1", data, cache, tmp_path, max_lengths=(None,))
    parser = ConstituentParser(lowest_penalty=5.0).fit(TREES[:60], TREES[60:75])
    expected = tw.metrics.parseval(TREES[75:], parser.predict(TREES[75:]))
    assert [rows[0][name] for name in ("f1", "recall", "precision")] == [
        *(expected.f1, expected.recall, expected.precision)
    ]


@pytest.mark.slow
def test_a_second_run_trains_nothing_and_finds_the_same(data, cache, tmp_path, monkeypatch):
    tables = []
    for name in ("first", "second"):
        run("turian-table1", data, cache, tmp_path / name)
        tables.append((tmp_path / name / "turian-table1.csv").read_text())
        monkeypatch.setattr(ConstituentParser, "fit", lambda *trees, **options: pytest.fail("trained"))
    assert tables[0] == tables[1]
    assert not list((cache / "unfinished").iterdir())


@pytest.mark.slow
def test_an_interrupted_training_goes_on_and_its_time_is_not_told(data, tmp_path):
    def stop(line):
        told.append(line)
        if sum(each.startswith("penalty") for each in told) == 2:
            raise KeyboardInterrupt

    told = []
    settings = TurianTable1Settings(lowest_penalty=5.0, tags="gold", max_lengths=(None,))
    with pytest.raises(KeyboardInterrupt), messages_to(stop):
        reproduce("turian-table1", data, tmp_path, settings=settings, cache=tmp_path / "c")
    assert list((tmp_path / "c" / "unfinished").iterdir())
    _, (rows,) = run("turian-table1", data, tmp_path / "c", tmp_path, max_lengths=(None,))
    assert rows[0]["seconds"] is None
    assert not list((tmp_path / "c" / "unfinished").iterdir())


@pytest.mark.slow
def test_figure_1_has_a_row_for_each_step_of_the_training(data, cache, tmp_path):
    text, (rows,) = run("turian-figure1", data, cache, tmp_path, lowest_penalty=2.0)
    titles = [f"shift-reduce, gold tags, trained on {length}" for length in ("<= 12 words", "all lengths")]
    assert list(dict.fromkeys(row["title"] for row in rows)) == titles
    own = [row for row in rows if row["title"] == titles[1]]
    history = ConstituentParser(lowest_penalty=2.0).fit(TREES[:60], TREES[60:75]).history_
    for name in ("penalty", "n_trees", "n_nonzero", "f1", "sizes"):
        assert [row[name] for row in own] == [getattr(step, name) for step in history]
    assert [row["lost"] for row in own] == [100 * step.lost for step in history]
    assert np.all(np.diff([row["seconds"] for row in own]) >= 0)
    assert "90.55" in text
    with open(tmp_path / "turian-figure1.csv", newline="") as stream:
        assert [float(row["f1"]) for row in csv.DictReader(stream)] == [row["f1"] for row in rows]


@pytest.mark.slow
def test_figure_1_with_the_strategy_of_the_paper_and_predicted_tags(data, cache, tmp_path):
    options = {"strategies": ("original",), "max_lengths": (12,), "tags": "predicted"}
    text, (rows,) = run("turian-figure1", data, cache, tmp_path, **options)
    short = [[tree for tree in trees if len(tree.words()) <= 12] for trees in (TREES[:60], TREES[60:75])]
    parser = ConstituentParser(strategy="original", tags="predicted", lowest_penalty=5.0).fit(*short)
    assert [row["f1"] for row in rows] == [step.f1 for step in parser.history_]
    assert "original, predicted tags, trained on <= 12 words" in text


@pytest.mark.slow
def test_table_2_profiles_the_steps_and_compares_samples_with_all_examples(data, cache, tmp_path):
    options = {"max_lengths": (None,), "penalty": 1.0, "sample_size": 300, "label": "NP"}
    text, (steps, costs, ensembles) = run("turian-table2", data, cache, tmp_path, **options)
    assert [row["title"] for row in steps] == [
        *("sample", "extraction", "build tree", "percolation", "leaf updates", "total")
    ]
    assert sum(row["percent"] for row in steps[:-1]) == pytest.approx(100)
    assert sum(row["mean"] for row in steps[:-1]) == pytest.approx(steps[-1]["mean"])
    assert [row["paper_mean"] for row in steps] == [1.5, 38.2, 127.6, 31.4, 6.2, 204.9]
    own, paper = costs
    assert (own["label"], own["sample_size"], own["is_whole"]) == ("NP", 300, True)
    assert own["speed_up"] == pytest.approx(own["uncached"] / own["sampled"])
    assert 1 < own["iteration_speed_up"] < own["speed_up"]
    assert own["extractions"] > 1
    assert own["bytes"] < own["direct_bytes"]
    assert paper["bytes"] == 32
    trees, paper = ensembles
    assert trees["n_leaves"] >= trees["n_nonzero"] > 0
    assert trees["n_leaves"] >= trees["n_trees"]
    assert 0 <= trees["only_negated"] <= trees["negated"] <= 1
    assert (paper["n_leaves"], paper["right_margin"]) == (96871, [11.7, 2.92])
    assert "40.4 ± 7.4" in text
    assert "original, gold tags, trained on all lengths" in text


@pytest.mark.slow
def test_table_2_takes_the_penalty_of_the_best_parser_and_grows_its_trees_once(
    data, cache, tmp_path, monkeypatch
):
    options = {"strategies": ("shift-reduce",), "max_lengths": (None,), "sample_size": 300}
    _, (_, costs, _) = run("turian-table2", data, cache, tmp_path, **options)
    assert costs[0]["penalty"] >= 5.0
    monkeypatch.setattr(profiling, "make_ensemble", lambda *arguments: pytest.fail("grown"))
    _, (_, again, _) = run("turian-table2", data, cache, tmp_path, **options)
    assert again == costs
    run("turian-table2", data, cache, tmp_path, **options, n_trees=3)


@pytest.mark.slow
@pytest.mark.parametrize("size", [500, None])
def test_a_tree_without_kept_features_is_that_with_them(learnt, size):
    examples, ensemble = learnt
    target = next_target(ensemble, examples.signs, examples.biases)
    rng = np.random.default_rng(0)
    signed = target.signed * rng.random(len(target.signed)) if size else target.signed
    target = Target(signed, target.limits._replace(penalty=target.limits.penalty / (4 if size else 1)))
    builder = TreeBuilder(examples.n_features)
    rows = FeatureRows(*examples.extract(np.arange(examples.n_examples)))
    builder.start(rows, target.signed, target.lightest)
    expected = builder.build(target.limits)
    found = UncachedBuilder(examples, target).build()
    assert found.is_whole
    assert len(expected.features) > 3
    for one, other in zip(found.tree, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_examples_are_extracted_once_for_the_root_and_for_each_split_above_them(learnt):
    examples, ensemble = learnt
    found = UncachedBuilder(examples, next_target(ensemble, examples.signs, examples.biases)).build()
    leaves = np.zeros(examples.n_examples, dtype=np.int32)
    examples.percolate(found.tree, leaves)
    depths = np.zeros(len(found.tree.features), dtype=int)
    for node in np.flatnonzero(found.tree.features >= 0):
        depths[[found.tree.present[node], found.tree.absent[node]]] = depths[node] + 1
    assert found.n_extracted == examples.n_examples + depths[leaves].sum()


@pytest.mark.slow
def test_blocks_do_not_change_the_tree(learnt, monkeypatch):
    examples, ensemble = learnt
    target = next_target(ensemble, examples.signs, examples.biases)
    expected = UncachedBuilder(examples, target).build()
    monkeypatch.setattr("treewright.report.turian.sampling.BLOCK", 100)
    for one, other in zip(UncachedBuilder(examples, target).build().tree, expected.tree, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_tree_whose_time_is_up_is_told(learnt):
    examples, ensemble = learnt
    target = next_target(ensemble, examples.signs, examples.biases)
    found = UncachedBuilder(examples, target, most_seconds=0).build()
    assert not found.is_whole
    assert found.tree.features.tolist() == [-1]


@pytest.mark.slow
def test_a_sample_of_all_examples_gives_the_tree_of_all(learnt):
    examples, ensemble = learnt
    target = next_target(ensemble, examples.signs, examples.biases)
    builder = TreeBuilder(examples.n_features)
    found = build_sampled(examples, target, builder, size=examples.n_examples, random_state=(0,))
    expected = UncachedBuilder(examples, target).build()
    np.testing.assert_array_equal(found.tree.features, expected.tree.features)
    assert found.seconds == found.sampling + found.extraction + found.building


@pytest.mark.slow
def test_the_next_tree_of_an_ensemble_has_its_weights_and_limits(learnt):
    examples, ensemble = learnt
    target = next_target(ensemble, examples.signs, examples.biases)
    margins = examples.signs * ensemble.confidences
    np.testing.assert_allclose(target.signed, examples.signs * examples.biases / (1 + np.exp(margins)))
    assert target.limits.penalty == ensemble.eta * ensemble.largest < ensemble.penalty * 1.05
    assert target.limits.least == pytest.approx(ensemble.min_gain * target.limits.penalty)


def test_a_profile_is_of_means_and_shares():
    records = [
        TreeRecord(1.0, 2, 1, 0.5, 0.1, Seconds(1.0, 2.0, 3.0, 4.0, 0.0)),
        TreeRecord(1.0, 2, 1, 0.5, 0.1, Seconds(3.0, 2.0, 5.0, 0.0, 0.0)),
    ]
    found = profile(records)
    assert found["sample"] == pytest.approx((2.0, 1.0, 20.0))
    assert found["building"] == pytest.approx((4.0, 1.0, 40.0))
    assert found["total"] == pytest.approx((10.0, 0.0, 100.0))


def test_bytes_of_examples_are_those_of_arrays_as_long_each_once():
    class Holder:
        def __init__(self, **arrays):
            self.__dict__ |= arrays

    shared = np.zeros(10)
    one = Holder(a=shared, b=np.zeros(10, np.int8), other=np.zeros(7), name="x")
    assert example_bytes(10, one, Holder(c=shared, d=np.zeros((10, 3)))) == 90


@pytest.mark.slow
def test_fewer_bytes_are_kept_than_features_would_take(learnt):
    examples, ensemble = learnt
    found = measure_memory(ensemble, examples)
    _, columns = examples.extract(np.arange(examples.n_examples))
    assert found["n_features"] == pytest.approx(len(columns) / examples.n_examples)
    assert found["bytes"] < found["direct_bytes"] == 4 * found["n_features"]


def test_an_example_is_its_number_sign_bias_confidence_weight_and_leaf(learnt):
    examples, ensemble = learnt
    assert measure_memory(ensemble, examples)["bytes"] == 4 + 1 + 8 + 8 + 8 + 4


@pytest.mark.parametrize("strategy", ["original", "shift-reduce"])
def test_examples_are_those_that_the_parser_learns_from(strategy, monkeypatch):
    made = []
    monkeypatch.setattr(
        ConstituentParser, "_learn", lambda parser, trees, *rest: made.append(parser._make_training(trees))
    )
    monkeypatch.setattr(ConstituentParser, "take_fitted", lambda parser, fresh: parser)
    parser = ConstituentParser(strategy=strategy)
    parser.fit(TREES[:10], TREES[10:12])
    found = parser.make_training(TREES[:10])
    assert found.names == made[0].names
    for one, other in zip(found.inferences, made[0].inferences, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(found.items.values, made[0].items.values)


def walk(tree, node=0, answers=()):
    """Yield the answers on the way to each leaf, and its value."""
    if tree.features[node] < 0:
        yield answers, tree.values[node]
        return
    for answer, child in ((True, tree.present[node]), (False, tree.absent[node])):
        yield from walk(tree, child, (*answers, answer))


def test_an_ensemble_is_described_by_its_paths_and_margins(learnt):
    examples, ensemble = learnt
    found = describe_ensemble(ensemble, examples.signs)
    paths = [(answers, value) for tree in ensemble.trees for answers, value in walk(tree) if value]
    questions = [answer for answers, _ in paths for answer in answers]
    assert found["n_nonzero"] == len(paths) == ensemble.n_nonzero
    assert found["n_trees"] == len(ensemble.records)
    assert found["n_leaves"] == sum(record.n_leaves for record in ensemble.records)
    assert found["negated"] == questions.count(False) / len(questions)
    assert found["only_negated"] == sum(not any(answers) for answers, _ in paths) / len(paths)
    lengths = [len(answers) for answers, _ in paths]
    assert found["depth"] == pytest.approx([np.mean(lengths), np.std(lengths)])
    sizes = [abs(value) for _, value in paths]
    assert found["confidence"] == pytest.approx([np.mean(sizes), np.std(sizes)])
    scores = np.zeros(examples.n_examples)
    indptr, columns = examples.extract(np.arange(examples.n_examples))
    for at in range(examples.n_examples):
        own = set(columns[indptr[at] : indptr[at + 1]].tolist())
        for tree in ensemble.trees:
            node = 0
            while tree.features[node] >= 0:
                node = tree.present[node] if tree.features[node] in own else tree.absent[node]
            scores[at] += tree.values[node]
    for sign, name in ((1, "right_margin"), (-1, "wrong_margin")):
        margins = sign * scores[examples.signs == sign]
        assert found[name] == pytest.approx([margins.mean(), margins.std()])


def test_an_empty_ensemble_has_no_leaves():
    parser = ConstituentParser(strategy="original")
    examples = parser.make_training(TREES[:3]).examples(0)
    found = describe_ensemble(make_ensemble(parser, examples), examples.signs)
    assert (found["n_leaves"], found["n_nonzero"], found["depth"]) == (0, 0, [0.0, 0.0])


@pytest.mark.slow
def test_settings_reach_the_parsers(data, cache, tmp_path):
    changed = {"eta": 0.7, "min_gain": 0.0, "slack": 0.0, "prune": False, "min_count": 1, "atoms": "paper"}
    changed |= {"any_children": True, "max_inferences": 300, "sample_size": 200}
    text, (rows,) = run("turian-table1", data, cache, tmp_path, max_lengths=(None,), **changed)
    parser = ConstituentParser(lowest_penalty=5.0, **changed).fit(TREES[:60], TREES[60:75])
    expected = tw.metrics.parseval(TREES[75:], parser.predict(TREES[75:]))
    assert rows[0]["f1"] == expected.f1
    assert "splits that improve only the sample" in text
    assert "0.7, with a slack of 0" in text


def test_the_label_with_the_most_examples_is_chosen():
    found = ConstituentParser().make_training(TREES[:20])
    counts = [found.examples(label).n_examples for label in range(found.n_classifiers)]
    assert counts[choose_label(found, None)] == max(counts)
    with pytest.raises(InputError, match="label is 'XP'; expected one of TOP, "):
        choose_label(found, "XP")


def test_systems_are_all_combinations_of_what_is_chosen():
    chosen = TaggedSettings(strategies=("original",), max_lengths=(15, None)).systems()
    assert chosen == [
        ParserSystem("original", tags, length) for length in (15, None) for tags in ("gold", "predicted")
    ]
    assert ConstituentSettings(max_lengths=(None,)).systems() == [ParserSystem("shift-reduce", "gold", None)]


def test_a_treebank_is_found_by_its_training_file(data):
    files = find_treebank(data)
    assert (files.name, files.dev.name) == ("xx_toy", "xx_toy-dev.mrg")
    assert find_treebank(data / "xx_toy-train.mrg") == files
    bank = read_treebank(files, 20)
    assert (len(bank.train), len(bank.dev), len(bank.test)) == (20, 15, 35)
    short = bank.up_to(10)
    assert all(len(tree.words()) <= 10 for part in short[1:] for tree in part)
    assert short.describe().startswith(f"xx_toy: {len(short.train)} training sentences, ")


def test_a_folder_without_one_constituency_treebank_is_refused(tmp_path, data):
    tw.write_conllu([tw.DepTree(["a"], [0])], tmp_path / "xx-train.conllu")
    with pytest.raises(InputError, match=r"has 0 constituency treebanks; expected one \*train\*\.mrg"):
        find_treebank(tmp_path)
    for stem in ("a-", "b-"):
        write_treebank(tmp_path, stem)
    with pytest.raises(InputError, match=r"has 2 constituency treebanks \(a, b\); expected one"):
        find_treebank(tmp_path)
    with pytest.raises(InputError, match="none does not exist; expected a folder"):
        find_treebank(tmp_path / "none")


def test_a_length_that_no_sentence_has_is_refused(data, tmp_path):
    with pytest.raises(
        InputError, match="xx_toy has no train sentences of <= 1 words; expected at least one"
    ):
        run("turian-table1", data, tmp_path, tmp_path / "out", max_lengths=(1,))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tags": "none"}, "tags is 'none'; expected one of both, gold, predicted"),
        ({"strategies": ("left",)}, "strategies is 'left'; expected one of shift-reduce, original"),
        ({"max_lengths": (0,)}, "max_lengths is 0; expected an integer of at least 1"),
        ({"lowest_penalty": 0.0}, "lowest_penalty is 0.0; expected a number from 1e-06"),
        ({"sample_size": 0}, "sample_size is 0; expected"),
        ({"n_jobs": 0}, "n_jobs is 0; expected"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings, message, data, tmp_path):
    with pytest.raises(InputError, match=message):
        reproduce("turian-table1", data, tmp_path / "out", settings=TurianTable1Settings(**settings))
    assert not (tmp_path / "out").exists()


def test_settings_of_other_experiments_are_refused(data, tmp_path):
    with pytest.raises(InputError, match="are TaggedSettings; expected TurianTable1Settings"):
        reproduce("turian-table1", data, tmp_path, settings=TaggedSettings())


@pytest.mark.slow
def test_the_command_line_chooses_lengths_and_penalties(data, cache, tmp_path, monkeypatch):
    asked = []
    found = turian_table1.ConstituentBench
    monkeypatch.setattr(
        turian_table1,
        "ConstituentBench",
        lambda settings, inputs: asked.append(settings) or found(settings, inputs),
    )
    options = ["--max-length", "12,all", "--lowest-penalty", "5", "--tags", "gold", "--cache", cache]
    result = run_command("reproduce", "turian-table1", "--data", data, "--out", tmp_path, *options)
    assert result.exit_code == 0
    assert "Bikel (2004)" in result.output
    assert asked == [TurianTable1Settings(tags="gold", max_lengths=(12, None), lowest_penalty=5.0)]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--k", "10"), "No such option: --k"),
        (("--trees", "10"), "No such option: --trees"),
        (
            ("--max-length", "15,some"),
            "--max-length is '15,some'; expected integers or all, separated by commas",
        ),
        (("--strategies", "left"), "--strategies is 'left'; expected one of shift-reduce, original"),
    ],
)
def test_options_that_cannot_be_used_are_one_line(option, message, data, tmp_path, fail):
    line = fail("reproduce", "turian-table1", "--data", data, "--out", tmp_path / "out", *option)
    assert line.startswith(f"treewright: {message}")
    assert not (tmp_path / "out").exists()
