"""Training and using a labeler of semantic roles from the command line."""

import gzip
import json

import pytest
from commands import run

import treewright as tw
from treewright.srl import labeler as labeling
from treewright.srl.arguments import keep_verbal

TRAIN = ("train", "roles")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a folder with a small treebank, its roles, and a labeler trained on it."""
    folder = tmp_path_factory.mktemp("roles")
    bank = tw.make_treebank(80, random_state=0)
    for name, part in (("train", slice(60)), ("test", slice(60, None))):
        tw.write_brackets(bank.constituents[part], folder / f"{name}.mrg")
        tw.write_props(bank.propositions[part], folder / f"{name}.props")
    tw.write_conllu(bank.dependencies[60:], folder / "test.conllu")
    train(folder, folder / "roles.tw")
    return folder


def train(folder, model, *options):
    return run(*TRAIN, folder / "train.mrg", "--props", folder / "train.props", "--model", model, *options)


def parse(folder, out, *options):
    run("parse", folder / "roles.tw", folder / "test.mrg", "--output", out, *options)
    return tw.read_props(out)


def test_training_leaves_a_model_and_nothing_else(folder):
    assert sorted(path.name for path in folder.iterdir()) == [
        "roles.tw", "test.conllu", "test.mrg", "test.props", "train.mrg", "train.props"
    ]  # fmt: skip


def test_training_says_how_it_goes_and_scores_dev(folder, tmp_path):
    dev = ["--dev", folder / "test.mrg", "--dev-props", folder / "test.props"]
    shown = train(folder, tmp_path / "m", *dev).stderr
    assert shown.startswith("60 sentences, ")
    assert f"written: {tmp_path / 'm'}\n" in shown
    assert "Number of Sentences    :          20" in shown
    assert "dev with gold predicates: precision " in shown


def test_options_reach_the_labeler(folder, tmp_path):
    options = {"predicates": "all", "kernel": "sst", "features": "standard", "cost": 2.0, "seed": 7}
    train(folder, tmp_path / "m", *(text for name, value in options.items() for text in (f"--{name}", value)))
    labeler = tw.load(tmp_path / "m")
    names = {"cost": "C", "seed": "random_state"}
    found = {name: getattr(labeler, names.get(name, name)) for name in options}
    assert found == options


def test_defaults_are_those_of_the_labeler(folder):
    labeler, plain = tw.load(folder / "roles.tw"), tw.RoleLabeler()
    assert [getattr(labeler, name) for name in vars(plain)] == list(vars(plain).values())


def test_roles_are_written_as_columns_that_score_well(folder, tmp_path):
    out = tmp_path / "out.props"
    found = parse(folder, out)
    assert [one.words for one in found] == [tree.words() for tree in tw.read_brackets(folder / "test.mrg")]
    score = json.loads(run("evaluate", folder / "test.props", out, "--json").stdout)
    assert score["f1"] > 80
    assert score["predicates"]["f1"] > 80
    assert score["labels"]["ARG0"]["n_gold"] > 0


def test_known_predicates_and_comments_are_kept(folder, tmp_path):
    gold = tw.read_props(folder / "test.props")
    found = parse(folder, tmp_path / "out.props", "--predicates-from", folder / "test.props")
    assert [one.comments for one in found] == [one.comments for one in gold]
    assert [[each[:3] for each in one.propositions] for one in found] == [
        [each[:3] for each in one.propositions] for one in gold
    ]


def test_a_long_file_is_labelled_in_batches(folder, tmp_path, monkeypatch):
    expected = parse(folder, tmp_path / "one.props")
    monkeypatch.setattr(tw.RoleLabeler, "n_at_once", 3)
    assert parse(folder, tmp_path / "other.props") == expected
    known = ["--predicates-from", folder / "test.props"]
    assert len(parse(folder, tmp_path / "known.props", *known)) == len(expected)


def test_roles_go_to_standard_output(folder, tmp_path):
    parse(folder, tmp_path / "out.props")
    shown = run("parse", folder / "roles.tw", folder / "test.mrg").stdout
    assert shown == (tmp_path / "out.props").read_text()


def test_trees_are_told_by_content(folder, tmp_path):
    (tmp_path / "trees").write_bytes(gzip.compress((folder / "test.mrg").read_bytes()))
    shown = run("parse", folder / "roles.tw", tmp_path / "trees").stdout
    assert shown == run("parse", folder / "roles.tw", folder / "test.mrg").stdout


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--predicates", "x", "--predicates is 'x'; expected one of verbs, all"),
        ("--kernel", "x", "--kernel is 'x'; expected one of linear, "),
        ("--features", "x", "template 'x' has 'x'; expected standard, extended or lines of"),
        ("--cost", "0", "--cost is '0'; expected a number"),
        ("--seed", "-1", "--seed is '-1'; expected an integer of at least 0"),
        ("--dev", "x", "only one of --dev and --dev-props is given; expected both"),
    ],
)
def test_options_of_training_that_have_no_meaning_are_one_line(
    fail, folder, tmp_path, option, value, expected
):
    given = [folder / "train.mrg", "--props", folder / "train.props", "--model", tmp_path / "m"]
    assert fail(*TRAIN, *given, option, value).startswith(f"treewright: {expected}")
    assert not (tmp_path / "m").exists()


def test_what_cannot_be_learnt_from_is_one_line(fail, folder, tmp_path):
    trees, props, model = folder / "train.mrg", folder / "train.props", tmp_path / "m"
    other, none = folder / "test.props", tmp_path / "none.props"
    message = fail(*TRAIN, trees, "--props", none, "--model", model)
    assert message == f"treewright: {none}: No such file or directory"
    none.write_text("")
    message = fail(*TRAIN, trees, "--props", none, "--model", model)
    expected = f"{trees} has more sentences than {none} (0); expected equal numbers"
    assert message == f"treewright: {expected}"
    message = fail(*TRAIN, none, "--props", none, "--model", model)
    assert message == f"treewright: {none} looks like PropBank columns; expected trees in brackets"
    message = fail(*TRAIN, trees, "--props", other, "--model", model)
    assert message.startswith(f"treewright: sentence 1 of {trees} has ")
    assert message.endswith("; expected the same words")
    message = fail(*TRAIN, trees, "--props", trees, "--model", model)
    assert message == f"treewright: {trees} looks like trees in brackets; expected PropBank columns"
    message = fail(*TRAIN, "-", "--props", "-", "--model", model)
    assert message == "treewright: trees and roles are both standard input; expected a file for one of them"
    message = fail(*TRAIN, props, "--props", props, "--model", model)
    assert message == f"treewright: {props} looks like PropBank columns; expected trees in brackets"
    assert not model.exists()


@pytest.mark.parametrize("name", ["TRAIN", "--props", "--dev", "--dev-props"])
def test_data_are_not_written_over_by_a_model(fail, folder, name):
    paths = {
        "TRAIN": folder / "train.mrg",
        "--props": folder / "train.props",
        "--dev": folder / "test.mrg",
        "--dev-props": folder / "test.props",
    }
    given = [text for option, path in paths.items() if option != "TRAIN" for text in (option, path)]
    message = fail(*TRAIN, paths["TRAIN"], *given, "--model", paths[name])
    assert message == f"treewright: --model is {paths[name]}, which is also {name}; expected another file"


def test_broken_trees_are_one_line_and_leave_no_output(fail, folder, tmp_path):
    source, out = tmp_path / "in.mrg", tmp_path / "out.props"
    source.write_text("(S (NN fox))\n(S (NN fox)))\n")
    message = fail("parse", folder / "roles.tw", source, "--output", out)
    assert message == f"treewright: {source}:2: an unmatched ')'; expected '(' or the end"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.mrg"]


def test_predicates_of_other_sentences_are_one_line_and_leave_no_output(fail, folder, tmp_path):
    model, source, out = folder / "roles.tw", folder / "test.mrg", tmp_path / "out.props"
    short = tmp_path / "short.props"
    tw.write_props(tw.read_props(folder / "test.props")[:3], short)
    message = fail("parse", model, source, "--output", out, "--predicates-from", short)
    assert message == f"treewright: {source} has more sentences than {short} (3); expected equal numbers"
    message = fail("parse", model, source, "--output", out, "--predicates-from", folder / "train.props")
    assert message.startswith(f"treewright: sentence 1 of {source} has ")
    assert not out.exists()


@pytest.mark.parametrize("option", [["--kbest", "2"], ["--confidence"], ["--raw"], ["--tags", "gold"]])
def test_options_of_parse_that_have_no_meaning_are_one_line(fail, folder, option):
    model = folder / "roles.tw"
    message = fail("parse", model, folder / "test.mrg", *option)
    assert message.startswith(
        f"treewright: {option[0]} does not work with a RoleLabeler, which predicts roles; expected a model"
    )


def test_predicates_are_for_roles_only(fail, folder, tmp_path):
    tagger = tmp_path / "tagger.tw"
    tw.Tagger(epochs=1).fit(tw.make_treebank(5, random_state=0).dependencies).save(tagger)
    props = folder / "test.props"
    message = fail("parse", tagger, folder / "test.conllu", "--predicates-from", props)
    expected = (
        "--predicates-from does not work with a Tagger, which predicts tags; "
        "expected a model that predicts roles"
    )
    assert message == f"treewright: {expected}"


@pytest.mark.parametrize(("name", "form"), [("test.conllu", "CoNLL-U"), ("test.props", "PropBank columns")])
def test_roles_need_trees(fail, folder, name, form):
    message = fail("parse", folder / "roles.tw", folder / name)
    assert message == f"treewright: {folder / name} looks like {form}; expected trees in brackets"


@pytest.mark.parametrize("name", ["INPUT", "--predicates-from", "MODEL"])
def test_files_are_not_written_over_by_roles(fail, folder, name):
    paths = {
        "INPUT": folder / "test.mrg", "--predicates-from": folder / "test.props", "MODEL": folder / "roles.tw"
    }  # fmt: skip
    before = paths[name].read_bytes()
    given = ["--predicates-from", paths["--predicates-from"], "--output", paths[name]]
    message = fail("parse", paths["MODEL"], paths["INPUT"], *given)
    assert message == f"treewright: --output is {paths[name]}, which is also {name}; expected another file"
    assert paths[name].read_bytes() == before


def test_an_interrupted_training_goes_on(fail, folder, tmp_path, monkeypatch):
    def stop(line):
        if "arguments to classify" in line:
            raise RuntimeError

    monkeypatch.setattr(labeling, "report", stop)
    with pytest.raises(RuntimeError):
        train(folder, tmp_path / "m")
    monkeypatch.undo()
    checkpoint = tmp_path / "m.checkpoint"
    assert sorted(path.name for path in checkpoint.iterdir()) == ["arguments.step", "predicates.step"]
    arguments = ["train", "roles", folder / "train.mrg", "--props", folder / "train.props"]
    message = fail(*arguments, "--model", tmp_path / "m")
    assert (
        message
        == f"treewright: {checkpoint} exists from an interrupted run; add --resume, or delete the folder"
    )
    train(folder, tmp_path / "m", "--resume")
    train(folder, tmp_path / "whole")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
    assert not checkpoint.exists()


def test_evaluate_prints_the_table_of_roles(folder):
    gold = folder / "test.props"
    shown = run("evaluate", gold, gold).stdout
    n = sum(len(one.propositions) for one in keep_verbal(tw.read_props(gold)))
    assert f"Number of Propositions :      {n:6d}" in shown
    assert "Overall" in shown
    assert "lAcc" in shown


def test_evaluate_leaves_out_predicates_that_are_no_verbs_where_asked_to(fail, folder, tmp_path):
    gold = tw.read_props(folder / "test.props")
    place = gold[0].propositions[0].predicate
    tags = ["NN" if at == place else tag for at, tag in enumerate(gold[0].tags)]
    tw.write_props([gold[0]._replace(tags=tags), *gold[1:]], tmp_path / "gold.props")
    rest = gold[0]._replace(propositions=gold[0].propositions[1:])
    tw.write_props([rest, *gold[1:]], tmp_path / "found.props")
    files = tmp_path / "gold.props", tmp_path / "found.props"
    recalls = [
        json.loads(run("evaluate", *files, "--json", *more).stdout)["recall"] for more in ([], ["--verbs"])
    ]
    assert recalls[0] < recalls[1] == 100
    assert "--verbs has no effect on brackets; expected semantic roles" in fail(
        "evaluate", folder / "test.mrg", folder / "test.mrg", "--verbs"
    )


def test_evaluate_compares_two_labellings(folder, tmp_path):
    gold, out = folder / "test.props", tmp_path / "out.props"
    parse(folder, out)
    shown = run("evaluate", gold, gold, "--against", out).stdout
    assert shown.index("PREDICTED") < shown.index("AGAINST") < shown.index("role-f1: +")
    options = ["--against", out, "--json", "--metric", "recall"]
    found = json.loads(run("evaluate", gold, gold, *options).stdout)
    assert found["significance"]["metric"] == "role-recall"
    assert found["against"]["f1"] < found["f1"] == found["identification"]["f1"] == 100


def test_evaluate_refuses_options_that_roles_do_not_have(fail, folder):
    gold = folder / "test.props"
    message = fail("evaluate", gold, gold, "--max-length", 5)
    assert message == "treewright: --max-length has no effect on semantic roles; expected brackets"
    assert "options for punctuation have no effect on semantic roles" in fail(
        "evaluate", gold, gold, "--no-punctuation"
    )
    message = fail("evaluate", gold, folder / "test.mrg")
    found = f"test.mrg looks like trees in brackets, {gold} like PropBank columns"
    assert message.endswith(f"{found}; expected the same format")


NO_PREDICATE = "1\tfoxes\tNNS\t-\t-\n\n"
FIVE_PREDICATES = "1\tgo\tVB\tgo\tgo.01\t(V*)" + "\t*" * 4 + "\n"
FIVE_PREDICATES += "".join(f"{n}\tgo\tVB\tgo\tgo.01" + "\t*" * 5 + "\n" for n in range(2, 6)) + "\n"


@pytest.mark.parametrize("text", [NO_PREDICATE, FIVE_PREDICATES, NO_PREDICATE.replace("\n", "\r\n")])
@pytest.mark.parametrize("comments", ["", "# a comment\n# (another\n", "\ufeff"])
def test_propositions_are_told_by_content(tmp_path, text, comments):
    path = tmp_path / "data"
    path.write_bytes((comments + text).encode())
    assert "Number of Sentences" in run("evaluate", path, path).stdout


@pytest.mark.parametrize(
    "text",
    [
        "1\tfox\t_\tNOUN\tNN\t_\t0\troot\t_\t_\n\n",
        "# global.columns = ID FORM UPOS HEAD DEPREL\n1\tfox\tNOUN\t0\troot\n\n",
    ],
)
def test_dependencies_are_told_from_propositions(tmp_path, text):
    path = tmp_path / "data"
    path.write_text(text)
    assert json.loads(run("evaluate", path, path, "--json").stdout)["uas"] == 100
