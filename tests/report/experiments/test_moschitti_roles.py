"""Experiments with semantic roles, on a made-up treebank."""

import csv
import json
from itertools import product

import numpy as np
import pytest
from framenet_sample import TEXT, UNIT

import treewright as tw
from treewright.errors import InputError
from treewright.progress import messages_to
from treewright.report.experiment import Inputs, reproduce
from treewright.report.experiments.moschitti_figure5 import MoschittiFigure5Settings
from treewright.report.experiments.moschitti_table2 import MoschittiTable2Settings
from treewright.report.moschitti import parses, role_systems, times
from treewright.report.moschitti.arguments import (
    find_propbank,
    read_arguments,
    read_propbank,
    write_arguments,
)
from treewright.report.moschitti.parses import OwnParser, parse_framenet, read_frames
from treewright.report.moschitti.role_systems import (
    SYSTEMS,
    AdjunctSettings,
    RoleBench,
    RoleSettings,
    choose_arguments,
)
from treewright.report.moschitti.times import NaiveTrees, pack_fast, time_kernels, time_rows
from treewright.report.separate_process import LostProcessError
from treewright.report.store import ResultStore
from treewright.report.turian.bench import ConstituentBench
from treewright.srl.arguments import argument_trees, merge_adjuncts
from treewright.srl.roles import RoleClassifier

SIZES = {"train": 60, "dev": 15, "test": 40}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a folder with a treebank and its roles."""
    folder = tmp_path_factory.mktemp("bank")
    bank = tw.make_treebank(n_sentences=sum(SIZES.values()), random_state=0)
    begin = 0
    for part, size in SIZES.items():
        chosen = slice(begin, begin + size)
        tw.write_brackets(bank.constituents[chosen], folder / f"toy-{part}.mrg")
        tw.write_props(bank.propositions[chosen], folder / f"toy-{part}.props")
        begin += size
    return folder


@pytest.fixture(scope="module")
def model(data):
    """Return the file of a parser that needs tags."""
    path = data / "parser.tw"
    tw.ConstituentParser(lowest_penalty=3.0).fit(tw.read_brackets(data / "toy-train.mrg")).save(path)
    return path


@pytest.fixture
def started(monkeypatch):
    """Run in this process what has one of its own, and list what is run."""
    found = []

    def run_here(function, task):
        found.append(task)
        run = {"train_roles": role_systems.train_roles, "time_kernels": time_kernels}
        return json.loads(json.dumps(run[function.rpartition(":")[2]](json.loads(json.dumps(task)))))

    for module in (role_systems, times):
        monkeypatch.setattr(module, "run_alone", run_here)
    return found


@pytest.fixture
def bench(data, tmp_path):
    inputs = Inputs(data, ResultStore(tmp_path / "cache"))
    return RoleBench(read_propbank(data).corpus(), RoleSettings(), inputs)


def run(name, data, tmp_path, settings, out="out", **options):
    return reproduce(name, data, tmp_path / out, settings=settings, cache=tmp_path / "cache", **options)


def tables_of(written):
    return {table["caption"]: table["rows"] for table in json.loads(written[4].read_text())["tables"]}


def test_table1_has_a_row_for_each_system_and_for_what_it_is_compared_with(data, tmp_path, started):
    told = []
    settings = AdjunctSettings(systems=("sst", "linear-extended+sst"))
    with messages_to(told.append):
        written = run("moschitti-table1", data, tmp_path, settings)
    rows = list(csv.DictReader(written[1].read_text().splitlines()))
    assert [row["title"] for row in rows] == [
        "linear",
        "SST",
        "linear, extended",
        "linear, extended + SST",
    ]
    assert [row["paper"] for row in rows] == ["87.6", "87.7", "", ""]
    assert [bool(row["merged_p"]) for row in rows] == [False, True, False, True]
    assert all(float(row["merged_accuracy"]) >= float(row["separate_accuracy"]) - 5 for row in rows)
    assert len(started) == 8
    assert "toy, SST, adjuncts merged: training on all sentences" in told
    assert "Other data" in written[0].read_text()


@pytest.mark.slow
def test_f1_of_roles_and_the_numbers_of_arguments_are_told(data, tmp_path, started):
    settings = AdjunctSettings(systems=("linear",))
    tables = tables_of(run("moschitti-table1", data, tmp_path, settings))
    merged, separate = tables["F1 of roles, ArgM merged"], tables["F1 of roles, ArgM separate"]
    assert [row["role"] for row in merged][:8] == [*(f"ARG{n}" for n in range(6)), "ARGA", "ARGM"]
    assert sum(row["n"] for row in merged) == sum(row["n"] for row in separate)
    assert "ARGM-TMP" in {row["role"] for row in separate}
    train, dev, test = tables["Arguments"]
    assert [row["n_sentences"] for row in (train, dev, test)] == list(SIZES.values())
    assert test["n_arguments"] == sum(row["n"] for row in merged)
    assert test["matched"] == 100


@pytest.mark.slow
def test_a_second_run_trains_nothing(data, tmp_path, started):
    settings = AdjunctSettings(systems=("st", "linear"), adjuncts="merged")
    first = run("moschitti-table1", data, tmp_path, settings)[1].read_text()
    assert len(started) == 2
    assert run("moschitti-table1", data, tmp_path, settings, out="again")[1].read_text() == first
    assert len(started) == 2


@pytest.mark.slow
def test_an_interrupted_run_goes_on_where_it_was(data, tmp_path, started, monkeypatch):
    settings = AdjunctSettings(systems=("linear", "sst"), adjuncts="merged")
    run_here = role_systems.run_alone

    def interrupt(function, task):
        if task["system"] == "sst":
            raise KeyboardInterrupt
        return run_here(function, task)

    with monkeypatch.context() as patch:
        patch.setattr(role_systems, "run_alone", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run("moschitti-table1", data, tmp_path, settings)
    run("moschitti-table1", data, tmp_path, settings)
    assert [task["system"] for task in started] == ["linear", "sst"]


def test_a_lost_process_leaves_its_cells_empty_and_is_tried_again(data, tmp_path, monkeypatch):
    def lose(function, task):
        raise LostProcessError("ran out of memory")

    monkeypatch.setattr(role_systems, "run_alone", lose)
    settings = AdjunctSettings(systems=("linear", "sst"), adjuncts="merged")
    for _ in range(2):
        text = run("moschitti-table1", data, tmp_path, settings)[0].read_text()
        assert "SST: merged ran out of memory." in text


@pytest.mark.slow
def test_a_process_of_its_own_finds_what_this_one_does(bench):
    task = {"arguments": str(bench.path), "system": "linear", "adjuncts": "merged", "learning": {}}
    here = role_systems.train_roles({**task, "n_sentences": None, "random_state": 0, "n_jobs": 1})
    alone = bench.outcome("linear", "merged")
    assert alone["predicted"] == here["predicted"]
    assert alone["size"] == here["size"] > 0
    assert bench.accuracy(alone["predicted"], "merged") > 80


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_can_be_trained_and_counted(bench, name, started):
    found = bench.outcome(name, "separate", 25)
    assert len(found["predicted"]) == len(bench.corpus.test.arguments)
    assert set(found["predicted"]) <= {one.label for one in bench.corpus.train.arguments}
    assert found["size"] > 0


@pytest.mark.slow
def test_names_of_outcomes_depend_on_what_matters_alone(bench, monkeypatch):
    options = [("merged", "separate"), (None, 10)]
    names = {
        bench._name(SYSTEMS[name], *rest)
        for name in ("linear", "linear-extended", "sst")
        for rest in product(*options)
    }
    assert len(names) == 12
    before = {name: bench._name(SYSTEMS[name], "merged", None) for name in ("linear", "sst")}
    monkeypatch.setitem(role_systems.SETS, "standard", "phrase\n")
    assert bench._name(SYSTEMS["sst"], "merged", None) == before["sst"]
    assert bench._name(SYSTEMS["linear"], "merged", None) != before["linear"]


def test_weights_and_costs_reach_the_classifiers_that_have_them(data, tmp_path, started):
    settings = RoleSettings(weight=1.5, C=0.25)
    bench = RoleBench(read_propbank(data).corpus(), settings, Inputs(data, ResultStore(tmp_path)))
    made = {name: SYSTEMS[name].make("merged", random_state=0, **settings.learning) for name in SYSTEMS}
    defaults = RoleClassifier()
    for name, classifier in made.items():
        assert classifier.get_params()["C"] == (None if name == "mined" else 0.25)
        is_sum = name.startswith("linear") and name.endswith(("+st", "+sst", "+pt"))
        assert classifier.weight == (1.5 if is_sum else defaults.weight)
    found = bench.outcome("linear+st", "merged")
    expected = made["linear+st"].fit(bench.corpus.train.arguments).predict(bench.corpus.test.arguments)
    assert found["predicted"] == expected
    assert started[-1]["learning"] == {"weight": 1.5, "C": 0.25}


def test_arguments_are_read_as_they_were_written(data, tmp_path):
    corpus = read_propbank(data).corpus()
    store = ResultStore(tmp_path)
    path = write_arguments(corpus, store)
    for name, kept in read_arguments(path).items():
        part = getattr(corpus, name)
        assert kept.n_sentences == len(part.trees)
        assert [(str(one.tree), one[1:]) for one in kept.arguments] == [
            (str(one.tree), one[1:]) for one in part.arguments
        ]
    assert write_arguments(corpus, store) == path
    assert write_arguments(read_propbank(data, 30).corpus(), store) != path


@pytest.mark.slow
def test_a_share_is_part_of_any_larger_one(bench):
    part = read_arguments(bench.path)["train"]
    small, large = (choose_arguments(part, size, 3) for size in (10, 20))
    assert 0 < len(small) < len(large) < len(part.arguments)
    assert {id(one) for one in small} <= {id(one) for one in large}
    assert choose_arguments(part, None, 3) == part.arguments


@pytest.mark.slow
def test_accuracy_and_f1_are_those_of_counted_roles(bench):
    labels = bench.labels("merged")
    predicted = ["ARG0"] * len(labels)
    n_right = labels.count("ARG0")
    assert bench.accuracy(predicted, "merged") == 100 * n_right / len(labels)
    scores = bench.scores(predicted, "merged")
    assert scores["ARG0"].f1 == 100 * 2 * n_right / (len(labels) + n_right)
    assert scores["ARG1"].f1 == 0
    assert labels == list(map(merge_adjuncts, bench.labels("separate")))


@pytest.mark.slow
def test_figure5_has_a_row_a_share_and_ends_with_table1(data, tmp_path, started):
    settings = MoschittiFigure5Settings(systems=("linear", "st"), most_seconds=0.0)
    written = run("moschitti-figure5", data, tmp_path, settings)
    tables = tables_of(written)
    curve = tables["Accuracy on toy, gold trees"]
    assert [row["n_sentences"] for row in curve] == [6 * n for n in range(1, 11)]
    assert [row["n_arguments"] for row in curve] == sorted(row["n_arguments"] for row in curve)
    n_started = len(started)
    table1 = tables_of(
        run("moschitti-table1", data, tmp_path, AdjunctSettings(systems=("linear", "st"), adjuncts="merged"))
    )
    assert len(started) == n_started  # all data are those of Table 1
    rows = table1["Accuracy on toy, gold trees"]
    assert [row["merged_accuracy"] for row in rows] == [curve[-1]["linear"], curve[-1]["st"]]
    assert [row["n_arguments"] for row in tables["Training time with the fast and the naive kernel"]] == []


@pytest.mark.slow
def test_naive_kernel_values_are_those_of_the_fast_kernel(bench):
    trees = argument_trees(bench.corpus.train.arguments[:40])
    rows, columns = np.array([3, 0, 17]), np.arange(40)
    naive, fast = NaiveTrees(trees), pack_fast(trees)
    assert np.allclose(naive.block(rows, columns), fast.block(rows, columns))
    assert np.allclose(naive.diagonal(), fast.diagonal())
    assert np.allclose(naive.compare([5]), fast.block([5], columns))


@pytest.mark.slow
def test_both_kernels_train_the_same_machine(bench):
    task = {"arguments": str(bench.path), "random_state": 0, "first": 20, "most_seconds": 60.0}
    found = time_kernels(task)
    assert [row["n_arguments"] for row in found["rows"]] == [20, 40, 80, 160, found["n_arguments"]]
    for row in found["rows"]:
        assert row["fast_support"] == row["naive_support"] > 0
        assert row["fast_objective"] == pytest.approx(row["naive_objective"], rel=1e-4)
    assert {row["title"] for row in time_rows(found)} == {"measured"}


def test_times_are_extrapolated_by_their_exponent():
    measured = [{"n_arguments": n, "fast": n / 100, "naive": n**2 / 100} for n in (10, 20, 40)]
    *_, last = time_rows({"rows": measured, "n_arguments": 1000})
    assert last["title"] == "extrapolated"
    assert (last["fast"], last["naive"]) == pytest.approx((10, 10_000))
    assert last["ratio"] == pytest.approx(1000)
    assert len(time_rows({"rows": measured[:2], "n_arguments": 1000})) == 2


@pytest.mark.slow
def test_table2_is_on_parses_of_a_given_parser(data, model, tmp_path, started):
    settings = MoschittiTable2Settings(systems=("linear", "sst"), constituent_parser=model)
    written = run("moschitti-table2", data, tmp_path, settings)
    text = written[0].read_text()
    assert "Parser: pretrained model parser.tw, strategy shift-reduce" in text
    assert "tags by a tagger trained on 60 sentences" in text
    tables = tables_of(written)
    rows = tables["Accuracy on toy, automatic parses"]
    counts = tables["Arguments"][2]
    share = 1 - counts["n_unmatched"] / counts["n_arguments"]
    for row in rows:
        assert row["merged_of_all"] == pytest.approx(share * row["merged_accuracy"])


@pytest.mark.slow
def test_sentences_are_parsed_once(data, model, tmp_path, monkeypatch):
    monkeypatch.setattr(parses, "AT_A_TIME", 25)
    told = []
    trees = []
    for _ in range(2):
        inputs = Inputs(data, ResultStore(tmp_path))
        parser = OwnParser(RoleSettings(), inputs, read_propbank(data).trees["train"], model=model)
        with messages_to(told.append):
            trees.append(list(map(str, parser.parse_training())))
        assert told.count("parsed 50 of 60 sentences") == 1
    assert trees[0] == trees[1]


@pytest.mark.slow
def test_a_parser_that_is_not_given_is_trained_once(data, tmp_path, started, monkeypatch):
    quick = tw.ConstituentParser(tags="predicted", lowest_penalty=5.0, folds=2)
    monkeypatch.setattr(ConstituentBench, "make_parser", lambda self, system: quick)
    settings = MoschittiTable2Settings(systems=("linear",), adjuncts="merged")
    told = []
    for name in ("one", "two"):
        with messages_to(told.append):
            written = run("moschitti-table2", data, tmp_path, settings, out=name)
    assert sum(line.startswith("toy: shift-reduce") for line in told) == 1
    assert "Parser: trained on toy, 60 sentences" in written[0].read_text()


def note_calls(monkeypatch, owner, name, noted):
    """Note the sentences with which a method is called."""
    method = getattr(owner, name)

    def call(self, trees, *arguments, **options):
        noted.append(
            [tuple(each.words() if isinstance(each, tw.ConstTree) else each.words) for each in trees]
        )
        return method(self, trees, *arguments, **options)

    monkeypatch.setattr(owner, name, call)


@pytest.mark.slow
@pytest.mark.parametrize("is_given", [False, True])
def test_training_sentences_are_parsed_by_parsers_that_have_not_seen_their_documents(
    data, model, tmp_path, monkeypatch, is_given
):
    quick = tw.ConstituentParser(tags="predicted", lowest_penalty=5.0, folds=2)
    monkeypatch.setattr(ConstituentBench, "make_parser", lambda self, system: quick.with_params())
    bank = read_propbank(data)
    gold, comments = bank.trees["train"], [[f"# sent_id = text{at // 6}-{at}"] for at in range(60)]
    whole = [tuple(tree.words()) for tree in gold]

    def make(folder=tmp_path, folds=3):
        inputs = Inputs(data, ResultStore(folder))
        options = {"model": model if is_given else None, "comments": comments, "folds": folds}
        return OwnParser(RoleSettings(), inputs, gold, **options)

    trained, tagged, parsed = [], [], []
    note_calls(monkeypatch, tw.ConstituentParser, "fit", trained)
    note_calls(monkeypatch, tw.Tagger, "fit", tagged)
    note_calls(monkeypatch, tw.ConstituentParser, "predict", parsed)
    parser = make()
    trees = parser.parse_training()
    assert [tuple(tree.words()) for tree in trees] == whole
    assert len(parsed) == 3
    assert "3 folds of 10 documents (by sent_id)" in parser.describe_training()
    documents = {words: at // 6 for at, words in enumerate(whole)}
    for rest, part in zip(trained[-3:], parsed, strict=True):
        assert sorted([*rest, *part]) == sorted(whole)
        assert not {documents[each] for each in rest} & {documents[each] for each in part}
    if is_given:
        # The taggers of the same folds; the tags of the treebank are not used.
        assert sorted(map(sorted, tagged)) == sorted(map(sorted, trained[-3:]))
    assert list(map(str, make().parse_training())) == list(map(str, trees))
    assert len(parsed) == 3


def test_more_folds_than_sentences_are_refused(data, model, tmp_path):
    gold = read_propbank(data).trees["train"][:2]
    parser = OwnParser(RoleSettings(), Inputs(data, ResultStore(tmp_path)), gold, model=model, folds=3)
    with pytest.raises(InputError, match="2 training sentences for 3 folds; expected at least one"):
        parser.parse_training()


def test_folds_of_another_treebank_are_refused(tmp_path):
    settings = MoschittiTable2Settings(folds=3, treebank=tmp_path)
    with pytest.raises(InputError, match="folds has no effect with treebank, whose parser is trained on"):
        settings.check()


@pytest.mark.slow
def test_table2_says_how_training_sentences_were_parsed(data, model, tmp_path, started):
    settings = MoschittiTable2Settings(
        systems=("linear", "linear+st", "linear+pt"), constituent_parser=model, folds=2, adjuncts="separate"
    )
    written = run("moschitti-table2", data, tmp_path, settings)
    text = " ".join(written[0].read_text().split())
    assert "parsers and taggers that were not trained on its sentences: 2 folds of" in text
    assert "makes fewer errors" not in text
    assert len(tables_of(written)["Accuracy on toy, automatic parses"]) == 3


@pytest.fixture
def frames(tmp_path, monkeypatch):
    """Return a folder with files of FrameNet."""
    monkeypatch.setattr(parses, "LEAST_EXAMPLES", 5)
    folder = tmp_path / "framenet"
    (folder / "lu").mkdir(parents=True)
    (folder / "fulltext").mkdir()
    for number, (lender, borrower) in enumerate(product(("Ann", "Eva", "Ida", "Una"), ("Bob", "Tom", "Max"))):
        unit = UNIT.replace("Ann", lender).replace("Bob", borrower)
        (folder / "lu" / f"lu{number}.xml").write_text(unit, encoding="utf-8")
        (folder / "lu" / f"lu{number}9.xml").write_text(unit, encoding="utf-8")  # the same sentence again
    (folder / "fulltext" / "one.xml").write_text(TEXT, encoding="utf-8")
    return folder


@pytest.mark.slow
def test_framenet_is_split_by_sentence_and_keeps_frequent_roles(data, model, frames, tmp_path):
    inputs = Inputs(data, ResultStore(tmp_path))
    parser = OwnParser(RoleSettings(), inputs, read_propbank(data).trees["train"], model=model)
    corpus = parse_framenet(read_frames(frames), parser, random_state=0)
    parts = [{" ".join(tree.words()) for tree in part.trees} for part in corpus[1:]]
    assert [len(part) for part in parts] == [9, 0, 4]
    assert len(set.union(*parts)) == 13
    labels = {one.label for part in corpus[1:] for one in part.arguments}
    assert {"Lender", "Borrower"} <= labels <= {"Lender", "Borrower", "Theme"}
    arguments = [one for part in corpus[1:] for one in part.arguments]
    predicates = {(one.tree.words()[one.predicate], one.lemma) for one in arguments}
    assert predicates <= {("lent", "lend"), ("picked", "pick_up")}
    assert sum(part.n_all for part in corpus[1:]) == 12 * len(labels) + ("Theme" in labels)


def test_chosen_frames_of_framenet_are_kept(frames):
    kept = read_frames(frames, ["Taking"])
    assert [frame.frame for sentence in kept for frame in sentence.frames] == ["Taking"]
    both = read_frames(frames, ["Lending", "Taking"])
    assert len(both) == len(read_frames(frames)) == 13


def test_a_frame_that_framenet_does_not_have_is_refused(frames):
    with pytest.raises(
        InputError, match=r"^frame is 'Cooking'; expected a frame with annotated elements in "
    ):
        read_frames(frames, ["Lending", "Cooking"])


@pytest.mark.slow
def test_rare_roles_of_framenet_can_be_kept(data, model, frames, tmp_path):
    parser = OwnParser(
        RoleSettings(), Inputs(data, ResultStore(tmp_path)), read_propbank(data).trees["train"], model=model
    )
    some, all_roles = (
        parse_framenet(read_frames(frames), parser, random_state=0, least_examples=least) for least in (5, 1)
    )
    counts = [
        len({one.label for one in (*each.train.arguments, *each.test.arguments)})
        for each in (some, all_roles)
    ]
    assert counts[0] < counts[1]


def test_frames_without_framenet_are_refused():
    with pytest.raises(InputError, match=r"^frames has no effect without framenet; remove it$"):
        MoschittiTable2Settings(frames=("Lending",)).check()


@pytest.mark.slow
def test_table2_has_framenet_beside_propbank(data, model, frames, tmp_path, started):
    settings = MoschittiTable2Settings(systems=("linear", "sst"), constituent_parser=model, framenet=frames)
    written = run("moschitti-table2", data, tmp_path, settings)
    rows = tables_of(written)["Accuracy on FrameNet, automatic parses"]
    assert [row["paper"] for row in rows] == [82.3, 81.2]
    assert all(0 <= row["separate_of_all"] <= row["separate_accuracy"] <= 100 for row in rows)
    assert "FrameNet, test" in written[0].read_text()
    assert "Here: all frames" in written[0].read_text()


@pytest.mark.slow
def test_table2_says_how_many_frames_were_chosen(data, model, frames, tmp_path, started):
    settings = MoschittiTable2Settings(
        systems=("linear",), constituent_parser=model, framenet=frames, frames=("Lending",)
    )
    assert "Here: 1 frame, the 18" in run("moschitti-table2", data, tmp_path, settings)[0].read_text()


@pytest.mark.slow
def test_a_framenet_of_rare_roles_is_refused(data, model, frames, tmp_path, monkeypatch):
    monkeypatch.setattr(parses, "LEAST_EXAMPLES", 100)
    inputs = Inputs(data, ResultStore(tmp_path))
    parser = OwnParser(RoleSettings(), inputs, read_propbank(data).trees["train"], model=model)
    with pytest.raises(
        InputError, match="no FrameNet role has 100 examples in these parses; expected at least one such role"
    ):
        parse_framenet(read_frames(frames), parser, random_state=0)


def test_trees_without_roles_are_refused(data, tmp_path):
    for part in SIZES:
        (tmp_path / f"toy-{part}.mrg").write_bytes((data / f"toy-{part}.mrg").read_bytes())
    with pytest.raises(
        InputError, match=r"toy-train.props does not exist; expected a file with the roles of toy"
    ):
        find_propbank(tmp_path)


def test_a_folder_without_trees_is_refused(tmp_path):
    with pytest.raises(InputError, match="has 0 constituency treebanks; expected one"):
        find_propbank(tmp_path)


@pytest.mark.slow
def test_a_model_of_another_kind_is_refused(data, bench, tmp_path):
    path = tmp_path / "roles.tw"
    tw.RoleClassifier("linear").fit(bench.corpus.train.arguments[:5]).save(path)
    settings = MoschittiTable2Settings(constituent_parser=path)
    with pytest.raises(InputError, match="is a RoleClassifier; expected a ConstituentParser"):
        run("moschitti-table2", data, tmp_path, settings)


def test_an_unknown_system_is_refused():
    with pytest.raises(InputError, match="system is 'guess'; expected one or more of linear, st"):
        RoleSettings(systems=("guess",)).choose_systems()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (AdjunctSettings(adjuncts="some"), "adjuncts is 'some'; expected"),
        (MoschittiFigure5Settings(most_seconds=-1.0), "most_seconds"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        settings.check()
