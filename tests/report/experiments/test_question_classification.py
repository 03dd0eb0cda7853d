"""Classification of questions, on made-up ones."""

import csv
import json

import numpy as np
import pytest

import treewright as tw
from treewright.errors import FormatError, InputError
from treewright.progress import messages_to
from treewright.report.experiment import Inputs, reproduce
from treewright.report.experiments import question_classification
from treewright.report.experiments.question_classification import (
    SYSTEMS,
    Machines,
    make_examples,
    make_kernels,
    mcnemar,
)
from treewright.report.questions import parses
from treewright.report.questions.parses import (
    LabelledQuestion,
    Parses,
    QuestionSettings,
    find_questions,
    read_questions,
)
from treewright.report.store import ResultStore

NOUNS = {
    "HUM": ["king", "poet", "nurse"],
    "LOC": ["town", "river", "island"],
    "NUM": ["year", "price", "size"],
}
OPENINGS = [("What is the", "WP VBZ DT"), ("Which", "WDT")]
ENDS = [("of Rome ?", "IN NNP ."), ("?", "."), ("in Peru ?", "IN NNP .")]


def make_questions(n_questions, random_state):
    rng = np.random.default_rng(random_state)
    made = []
    for _ in range(n_questions):
        label = str(rng.choice(list(NOUNS)))
        opening, end = OPENINGS[rng.integers(len(OPENINGS))], ENDS[rng.integers(len(ENDS))]
        text = f"{opening[0]} {rng.choice(NOUNS[label])} {end[0]}"
        made.append((label, tuple(text.split()), f"{opening[1]} NN {end[1]}".split()))
    return made


def write_questions(path, made):
    path.write_text("".join(f"{label}:other {' '.join(words)}\n" for label, words, _ in made))


def dependency_tree(words, tags):
    head = tags.index("NN") + 1
    heads = [0 if at == head else head for at in range(1, len(words) + 1)]
    return tw.DepTree(words, heads, ["root" if up == 0 else "dep" for up in heads], xpos=tags, upos=tags)


def constituent_tree(words, tags):
    leaves = [tw.ConstTree(tag, [word]) for word, tag in zip(words, tags, strict=True)]
    return tw.ConstTree("TOP", [tw.ConstTree("SBARQ", leaves)])


TRAIN, TEST = make_questions(60, 0), make_questions(12, 1)
TREES = [dependency_tree(words, tags) for _, words, tags in [*TRAIN, *TEST]]
PARSES = Parses([constituent_tree(tree.words, tree.xpos) for tree in TREES], TREES)
EXAMPLES = make_examples(
    [LabelledQuestion(label, "other", words) for label, words, _ in [*TRAIN, *TEST]], PARSES
)
LABELS = [label for label, _, _ in TRAIN]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return files of two parsers that have learnt from the questions."""
    folder = tmp_path_factory.mktemp("models")
    options = {"order": 1, "runs": 1, "epochs": 2, "tags": "predicted", "table_bits": 16}
    tw.DependencyParser(**options).fit(TREES).save(folder / "dependency.tw")
    tw.ConstituentParser(lowest_penalty=2.0).fit(PARSES.constituents).save(folder / "constituent.tw")
    return folder


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "qc"
    folder.mkdir(parents=True)
    write_questions(folder / "train.txt", TRAIN)
    write_questions(folder / "test.txt", TEST)
    return folder


@pytest.fixture
def settings(models):
    return QuestionSettings(
        constituent_parser=models / "constituent.tw",
        dependency_parser=models / "dependency.tw",
        folds=3,
        systems=("bag", "sst", "bag+focus+spt", "squared"),
    )


@pytest.mark.slow
def test_all_files_of_the_experiment_are_written(data, settings, tmp_path):
    written = reproduce(
        "question-classification", data, tmp_path / "out", settings=settings, cache=tmp_path / "cache"
    )
    assert [path.suffix for path in written] == [".txt", ".csv", ".svg", ".html", ".json", ".html"]
    rows = list(csv.DictReader(written[1].read_text().splitlines()))
    assert len(rows) == 5  # what others are compared with is always there
    assert [row["title"].endswith("best") for row in rows].count(True) == 1
    assert all(0 <= float(row[part]) <= 100 for row in rows for part in ("unseen", "test"))
    text = written[0].read_text()
    assert "Constituent parser: pretrained model constituent.tw, strategy shift-reduce" in text
    assert "tags by the tagger of the dependency parser" in text
    assert "questions: 60 training, 12 test" in text
    classes = json.loads(written[4].read_text())["tables"][1]["rows"]
    assert [row["label"] for row in classes] == ["HUM", "LOC", "NUM"]
    assert sum(row["test_n"] for row in classes) == len(TEST)


@pytest.mark.slow
def test_the_best_row_is_chosen_by_cross_validation(data, settings, tmp_path):
    reproduce("question-classification", data, tmp_path / "out", settings=settings, cache=tmp_path / "cache")
    table = json.loads((tmp_path / "out" / "question-classification.json").read_text())["tables"][0]
    best = next(row for row in table["rows"] if row["title"].endswith("best"))
    assert best["unseen"] == max(row["unseen"] for row in table["rows"])


@pytest.mark.slow
def test_a_second_run_neither_parses_nor_trains(data, settings, tmp_path, monkeypatch):
    def run(name):
        reproduce(
            "question-classification", data, tmp_path / name, settings=settings, cache=tmp_path / "cache"
        )
        return (tmp_path / name / "question-classification.csv").read_text()

    first = run("one")
    monkeypatch.setattr(parses.Readers, "parses", None)
    monkeypatch.setattr(question_classification, "Machines", None)
    assert run("two") == first


@pytest.mark.slow
def test_trees_are_kept_as_they_were_parsed(data, settings, tmp_path, monkeypatch):
    inputs = Inputs(data, ResultStore(tmp_path / "cache"))
    first = parses.Readers(settings, inputs).parses()
    monkeypatch.setattr(parses.Readers, "_parser", None)
    second = parses.Readers(settings, inputs).parses()
    assert [str(tree) for tree in second.constituents] == [str(tree) for tree in first.constituents]
    assert [tree.words for tree in second.dependencies] == [list(words) for _, words, _ in [*TRAIN, *TEST]]


@pytest.mark.parametrize("name", ["bag", "bag+focus", "bag+2focus+spt", "squared"])
def test_sums_of_matrices_are_the_matrices_of_sums(name):
    kernels = make_kernels({"king": np.array([1.0, 0.2]), "poet": np.array([0.8, 0.6])})
    matrices = {each: tw.gram(kernel, EXAMPLES, dtype=np.float32) for each, kernel in kernels.items()}
    whole = SYSTEMS[name].kernel(kernels)(EXAMPLES)
    assert np.allclose(SYSTEMS[name].matrix(matrices), whole, atol=1e-5)


def test_machines_on_a_matrix_decide_as_the_classifier_does():
    kernels = make_kernels({"king": np.array([1.0, 0.2])})
    kernel = SYSTEMS["bag+sst"].kernel(kernels)
    found = Machines(tw.gram(kernel, EXAMPLES, dtype=np.float32), LABELS).predict(1.0)
    classifier = tw.TreeKernelClassifier(kernel=kernel, C=1.0).fit(EXAMPLES[: len(TRAIN)], LABELS)
    assert found == classifier.predict(EXAMPLES[len(TRAIN) :]).tolist()


def test_each_fold_is_decided_by_machines_that_have_not_seen_it():
    # A kernel that knows examples only by their numbers can repeat labels, not guess them.
    machines = Machines(np.eye(len(LABELS), dtype=np.float32), LABELS)
    folds = np.arange(len(LABELS)) % 3
    assert len(set(machines.cross_validate(1.0, folds)[0::3])) == 1


def test_the_p_value_is_that_of_a_fair_coin():
    assert mcnemar("aaaa", "bbbb", "aaaa") == pytest.approx(2 / 16)
    assert mcnemar("ab", "ab", "aa") == 1.0


def test_questions_are_read_in_both_encodings(tmp_path):
    for encoding in ("utf-8", "latin-1"):
        path = tmp_path / "train.txt"
        path.write_bytes("LOC:city Où est  Orléans ?\n\n".encode(encoding))
        assert read_questions(path) == [LabelledQuestion("LOC", "city", ("Où", "est", "Orléans", "?"))]


def test_a_line_without_a_class_is_refused_with_its_number(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("LOC:city Where is Rome ?\nWhere is Oslo ?\n")
    with pytest.raises(
        FormatError, match=r"train.txt:2: the line is 'Where is Oslo \?'; expected CLASS:SUBCLASS"
    ):
        read_questions(path)


def test_a_folder_without_questions_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"has 0 pairs of train.txt and test.txt; expected one"):
        find_questions(tmp_path)


def test_questions_may_lie_in_a_folder_of_the_folder(data):
    assert find_questions(data.parent) == (data / "train.txt", data / "test.txt")


@pytest.mark.slow
def test_a_parser_of_the_wrong_kind_is_refused(data, models, tmp_path):
    wrong = QuestionSettings(
        constituent_parser=models / "constituent.tw", dependency_parser=models / "constituent.tw"
    )
    with pytest.raises(InputError, match="is a ConstituentParser; expected a DependencyParser"):
        reproduce("question-classification", data, tmp_path / "out", settings=wrong, cache=tmp_path / "cache")


def test_an_unknown_system_is_refused(data, tmp_path):
    wrong = QuestionSettings(systems=("bag", "guess"))
    with pytest.raises(InputError, match="system is 'guess'; expected one or more of bag, bag-normalized"):
        reproduce("question-classification", data, tmp_path / "out", settings=wrong, cache=tmp_path / "cache")


@pytest.mark.slow
def test_parsers_that_are_not_given_are_trained_once(data, tmp_path, monkeypatch):
    trees = tmp_path / "data" / "toy"
    trees.mkdir()
    for part in ("train", "dev", "test"):
        tw.write_conllu(TREES[:40], trees / f"xx_toy-ud-{part}.conllu")
        tw.write_brackets(PARSES.constituents[:40], trees / f"xx_toy-{part}.mrg")
    quick = tw.ConstituentParser(tags="predicted", lowest_penalty=5.0, folds=2)
    monkeypatch.setattr(parses.Readers, "_untrained_constituent", lambda self: quick)
    settings = QuestionSettings(folds=3, epochs=1, runs=1, systems=("bag+sst",))
    told = []
    for name in ("one", "two"):
        out, cache = tmp_path / name, tmp_path / "cache"
        with messages_to(told.append):
            reproduce("question-classification", data.parent, out, settings=settings, cache=cache)
    assert [line for line in told if line.startswith("training the")] == [
        "training the dependency parser",
        "training the constituent parser",
    ]
    text = (tmp_path / "two" / "question-classification.txt").read_text()
    assert "Constituent parser: trained on xx_toy, 40 sentences, strategy shift-reduce" in text
    assert "trained on the treebank and the training questions" in text
