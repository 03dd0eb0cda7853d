"""Training and parsing from the command line."""

import json

import pytest
from commands import run

import treewright as tw
from treewright.model import State, load_state, save_state
from treewright.progress import messages_to


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a folder with a small treebank and a parser trained on it."""
    folder = tmp_path_factory.mktemp("parsing")
    bank = tw.make_treebank(80, random_state=0).dependencies
    tw.write_conllu(bank[:60], folder / "train.conllu")
    tw.write_conllu(bank[60:], folder / "test.conllu")
    options = ["--order", "1", "--epochs", "2", "--runs", "1", "--dev", folder / "test.conllu"]
    run("train", "dependency", folder / "train.conllu", "--model", folder / "parser.tw", *options)
    return folder


def test_training_leaves_a_model_and_nothing_else(folder):
    assert sorted(path.name for path in folder.iterdir()) == ["parser.tw", "test.conllu", "train.conllu"]


def test_training_says_how_it_goes(folder, tmp_path):
    arguments = [
        folder / "train.conllu",
        "--model",
        tmp_path / "m",
        "--order",
        "1",
        "--epochs",
        "1",
        "--runs",
        "1",
    ]
    shown = run("train", "dependency", *arguments, "--dev", folder / "test.conllu").stderr
    assert "epoch 1/1: loss" in shown
    assert "dev UAS" in shown


def test_parse_keeps_comments_multiword_tokens_and_columns(folder, tmp_path):
    text = "# sent_id = 7\n1-2\tTheox\t_\t_\t_\t_\t_\t_\t_\tA=b\n"
    text += "1\tThe\tthe\tDET\tDT\t_\t_\t_\t_\t_\n2\tox\tox\tNOUN\tNN\t_\t_\t_\t_\tNote=x\n"
    text += "3\tsang\tsing\tVERB\tVBD\t_\t_\t_\t3:x\t_\n\n"
    source, out = tmp_path / "in.conllu", tmp_path / "out.conllu"
    source.write_text(text)
    run("parse", folder / "parser.tw", source, "--output", out)
    (before,) = tw.read_conllu(source, require_heads=False)
    (after,) = tw.read_conllu(out)
    assert (after.heads >= 0).all()
    assert after.with_heads(before.heads, before.deprels) == before


def test_confidence_is_drawn_behind_relations(folder, tmp_path):
    options = ["--draw", "--confidence", "--output", tmp_path / "out.txt"]
    run("parse", folder / "parser.tw", folder / "test.conllu", *options)
    lines = [line for line in (tmp_path / "out.txt").read_text("utf-8").splitlines() if line]
    assert len(lines) == sum(map(len, tw.read_conllu(folder / "test.conllu")))
    assert all(line.endswith("%") for line in lines)


def test_parse_scores_well_on_what_it_was_trained_for(folder, tmp_path):
    run("parse", folder / "parser.tw", folder / "test.conllu", "--output", tmp_path / "out.conllu")
    gold, parsed = tw.read_conllu(folder / "test.conllu"), tw.read_conllu(tmp_path / "out.conllu")
    assert tw.metrics.attachment(gold, parsed).uas > 80


def test_candidates_are_written_with_rank_score_and_probability(folder, tmp_path):
    out = tmp_path / "out.conllu"
    run("parse", folder / "parser.tw", folder / "test.conllu", "--kbest", "3", "--output", out)
    trees = tw.read_conllu(out)
    first = trees[0].metadata
    assert first["parse_rank"] == "1"
    assert float(first["score"]) >= float(trees[1].metadata["score"])
    assert 0 < float(first["probability"]) <= 1
    assert trees[1].metadata["sent_id"] == first["sent_id"]


def test_confidence_is_added_to_misc(folder, tmp_path):
    out = tmp_path / "out.conllu"
    run("parse", folder / "parser.tw", folder / "test.conllu", "--confidence", "--output", out)
    for tree in tw.read_conllu(out):
        shares = [float(misc.rpartition("Confidence=")[2]) for misc in tree.misc]
        assert all(0 <= share <= 1 for share in shares)


def test_nothing_else_in_misc_is_lost(folder, tmp_path):
    source, out = tmp_path / "in.conllu", tmp_path / "out.conllu"
    tree = tw.read_conllu(folder / "test.conllu")[0]
    comments = [*tree.comments, "# parse_rank = 7"]
    tw.write_conllu(
        [tree.with_misc(["_odd=1|X=y|Confidence=0.2"] * len(tree)).with_comments(comments)], source
    )
    run("parse", folder / "parser.tw", source, "--confidence", "--output", out)
    (parsed,) = tw.read_conllu(out)
    assert all(field.startswith("_odd=1|X=y|Confidence=") for field in parsed.misc)
    assert parsed.comments == tree.comments  # a rank of another parse is not kept


def test_candidates_can_have_confidence_too(folder, tmp_path):
    out = tmp_path / "out.conllu"
    run("parse", folder / "parser.tw", folder / "test.conllu", "--confidence", "--kbest", 2, "--output", out)
    trees = tw.read_conllu(out)
    assert [tree.metadata["parse_rank"] for tree in trees[:3]] == ["1", "2", "1"]
    assert all("Confidence=" in field for tree in trees for field in tree.misc)


def partly_annotated(path, *heads):
    """Write sentences of five words with some heads, as text."""
    words = zip(["A", "fox", "found", "a", "key"], ["DT", "NN", "VBD", "DT", "NN"], strict=True)
    tokens = [f"{number}\t{word}\t_\t_\t{tag}" for number, (word, tag) in enumerate(words, start=1)]
    blocks = [
        "".join(f"{token}\t_\t{head}\t_\t_\t_\n" for token, head in zip(tokens, each.split(), strict=True))
        for each in heads
    ]
    path.write_text("\n".join(blocks) + "\n")
    return path


@pytest.mark.parametrize("k", [1, 3])
def test_heads_that_are_known_can_be_kept(folder, tmp_path, k):
    source = partly_annotated(tmp_path / "in.conllu", "_ _ _ _ _", "3 1 0 _ _", "2 4 2 0 4")
    out = tmp_path / "out.conllu"
    options = ["--fixed-heads", "--confidence", "--kbest", k, "--output", out]
    run("parse", folder / "parser.tw", source, *options)
    found = tw.read_conllu(out)
    assert len(found) > k + 1
    for tree in found[k:-1]:
        assert tree.heads[:3].tolist() == [3, 1, 0]
        assert [misc.rpartition("Confidence=")[2] for misc in tree.misc[:3]] == ["1.0000"] * 3
    assert found[-1].heads.tolist() == [2, 4, 2, 0, 4]
    free = tmp_path / "free.conllu"
    run("parse", folder / "parser.tw", source, "--output", free)
    assert found[0].heads.tolist() == tw.read_conllu(free)[0].heads.tolist()


def test_known_heads_that_no_tree_has_are_one_line(fail, folder, tmp_path):
    source = partly_annotated(tmp_path / "in.conllu", "_ _ _ _ _", "3 4 _ _ _")
    line = fail("parse", folder / "parser.tw", source, "--fixed-heads")
    assert line.startswith(
        f"treewright: {source}: sentence 2: no projective tree has the fixed arcs 3 → 1, 4 → 2, which"
    )


def test_plain_text_has_no_heads_to_keep(fail, own_tags, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("A fox found a key.")
    assert "--fixed-heads does not work with --raw" in fail("parse", own_tags, text, "--raw", "--fixed-heads")


def test_confidence_is_scored_and_plotted(folder, tmp_path):
    pytest.importorskip("matplotlib")
    out, plot = tmp_path / "out.conllu", tmp_path / "plot.svg"
    run("parse", folder / "parser.tw", folder / "test.conllu", "--confidence", "--output", out)
    shown = run("evaluate", folder / "test.conllu", out, "--plot", plot).stdout
    assert "expected calibration error" in shown
    assert plot.read_text().startswith("<?xml")
    as_json = json.loads(run("evaluate", folder / "test.conllu", out, "--json").stdout)
    assert sum(as_json["calibration"]["counts"]) == sum(map(len, tw.read_conllu(out)))


def test_what_cannot_be_plotted_is_one_line(fail, folder, tmp_path):
    gold = folder / "test.conllu"
    message = fail("evaluate", gold, gold, "--plot", tmp_path / "plot.png")
    assert (
        message == f"treewright: {gold} has no confidence in MISC to plot; "
        "expected Confidence=...; parse again with --confidence"
    )
    out = tmp_path / "out.conllu"
    run("parse", folder / "parser.tw", gold, "--confidence", "--output", out)
    message = fail("evaluate", gold, out, "--plot", tmp_path / "plot.txt")
    assert message.endswith("plot.txt is not a plot file; expected a name that ends in .png, .svg, .pdf")


def test_the_number_of_jobs_does_not_show_in_the_result(folder, tmp_path):
    for n_jobs in (1, 3):
        out = tmp_path / f"{n_jobs}.conllu"
        run("parse", folder / "parser.tw", folder / "test.conllu", "--jobs", n_jobs, "--output", out)
    assert (tmp_path / "1.conllu").read_bytes() == (tmp_path / "3.conllu").read_bytes()


@pytest.fixture(scope="module")
def own_tags(folder, tmp_path_factory):
    """Make a parser that tags."""
    model = tmp_path_factory.mktemp("tagging") / "parser.tw"
    options = ["--order", "1", "--epochs", "1", "--runs", "1", "--tags", "predicted", "--jobs", "2"]
    run("train", "dependency", folder / "train.conllu", "--model", model, *options)
    return model


def test_options_of_the_command_itself_are_named_as_options(own_tags, folder, tmp_path, fail):
    (tmp_path / "in.txt").write_text("The fox sang.")
    message = fail("parse", own_tags, tmp_path / "in.txt", "--language", "en", "--tags", "gold")
    assert message == (
        "treewright: --tags gold does not work with --language, because plain text has no tags; "
        "expected --tags predicted"
    )


def test_plain_text_is_split_into_sentences_and_words(own_tags, tmp_path):
    pytest.importorskip("spacy")
    (tmp_path / "in.txt").write_text("The fox sang. A sailor\nslept!\n\nWhy?\n")
    run("parse", own_tags, tmp_path / "in.txt", "--raw", "--output", tmp_path / "out.conllu")
    trees = tw.read_conllu(tmp_path / "out.conllu")
    assert [tree.words for tree in trees] == [
        ["The", "fox", "sang", "."],
        ["A", "sailor", "slept", "!"],
        ["Why", "?"],
    ]
    assert all(tag != "_" for tree in trees for tag in tree.upos)


def test_a_parser_that_needs_tags_refuses_sentences_without(fail, folder, tmp_path):
    source = tmp_path / "bare.conllu"
    tw.write_conllu([tw.DepTree(["a", "fox"])], source)
    message = fail("parse", folder / "parser.tw", source, "--output", tmp_path / "out")
    found = f"{source}: sentence 1 has no tags, but this DependencyParser needs tags"
    remedy = "expected tags, or a model trained with --tags predicted"
    assert message == f"treewright: {found}; {remedy} (see docs/howto/troubleshooting.md#tags)"
    assert not (tmp_path / "out").exists()


def test_a_parser_that_tags_can_take_gold_tags(own_tags, folder, tmp_path):
    run("parse", own_tags, folder / "test.conllu", "--tags", "gold", "--output", tmp_path / "out")
    gold, parsed = tw.read_conllu(folder / "test.conllu"), tw.read_conllu(tmp_path / "out")
    assert [tree.lemmas for tree in parsed] == [tree.lemmas for tree in gold]


def test_a_tagger_is_trained_and_tags_files(fail, folder, tmp_path):
    model, out = tmp_path / "tagger.tw", tmp_path / "out.conllu"
    options = ["--dev", folder / "test.conllu", "--epochs", "3"]
    shown = run("train", "tagger", folder / "train.conllu", "--model", model, *options).stderr
    assert "UPOS" in shown
    run("parse", model, folder / "test.conllu", "--output", out)
    gold, tagged = tw.read_conllu(folder / "test.conllu"), tw.read_conllu(out)
    assert [tree.heads.tolist() for tree in tagged] == [tree.heads.tolist() for tree in gold]
    assert all(tag != "_" for tree in tagged for tag in tree.upos)
    message = fail("parse", model, folder / "test.conllu", "--kbest", "2")
    assert message == (
        "treewright: --kbest does not work with a Tagger, which predicts tags; expected a model that "
        "predicts k-best trees"
    )
    message = fail("parse", model, folder / "test.conllu", "--fixed-heads")
    assert (
        "--fixed-heads does not work with a Tagger, which predicts tags; expected a model that predicts "
        "dependencies"
    ) in message


def test_a_file_that_is_no_model_is_one_line(fail, folder):
    message = fail("parse", folder / "test.conllu", folder / "test.conllu")
    assert message.startswith(f"treewright: {folder / 'test.conllu'}:1: not a readable model")


def test_a_model_of_another_kind_is_one_line(fail, folder, tmp_path):
    save_state(State("Other"), tmp_path / "other")
    message = fail("parse", tmp_path / "other", folder / "test.conllu")
    assert "a file of kind 'Other'; expected a treewright model" in message


def test_an_interrupted_training_is_not_thrown_away(fail, folder, tmp_path):
    model = tmp_path / "parser.tw"
    arguments = [
        "train",
        "dependency",
        folder / "train.conllu",
        "--model",
        model,
        "--order",
        "1",
        "--epochs",
        "2",
        "--runs",
        "1",
    ]
    checkpoint = tmp_path / "parser.tw.checkpoint"

    def stop_after_an_epoch(line):
        if line.startswith("epoch 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), messages_to(stop_after_an_epoch):
        tw.DependencyParser(order=1, epochs=2, runs=1).fit(
            tw.read_conllu(folder / "train.conllu"), checkpoint=checkpoint
        )
    expected = f"{checkpoint} exists from an interrupted run; add --resume, or delete the folder"
    assert fail(*arguments) == f"treewright: {expected}"
    assert "epoch 1/2" not in run(*arguments, "--resume").stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parser.tw"]


def test_a_model_that_cannot_be_written_is_found_out_before_training(fail, folder):
    path = folder / "none" / "parser.tw"
    message = fail("train", "dependency", folder / "train.conllu", "--model", path)
    found = f"the folder {folder / 'none'} does not exist; create it, or choose another name"
    assert message == f"treewright: {path}: {found}"


@pytest.mark.parametrize("kind", ["dependency", "tagger"])
def test_a_folder_is_no_name_for_a_model(fail, folder, kind):
    message = fail("train", kind, folder / "train.conllu", "--model", folder)
    assert message == f"treewright: {folder} is a folder; expected the name of a file"


@pytest.mark.parametrize("kind", ["dependency", "tagger"])
@pytest.mark.parametrize("name", ["TRAIN", "--dev"])
def test_a_treebank_is_not_written_over_by_a_model(fail, folder, kind, name):
    paths = {"TRAIN": folder / "train.conllu", "--dev": folder / "test.conllu"}
    before = paths[name].read_bytes()
    message = fail("train", kind, paths["TRAIN"], "--dev", paths["--dev"], "--model", paths[name])
    assert message == f"treewright: --model is {paths[name]}, which is also {name}; expected another file"
    assert paths[name].read_bytes() == before


def test_neither_a_model_nor_plain_text_is_written_over_by_parses(fail, folder, tmp_path):
    model, text = folder / "parser.tw", tmp_path / "text"
    text.write_text("Mary sleeps.")
    message = fail("parse", model, folder / "test.conllu", "--output", model)
    assert message == f"treewright: --output is {model}, which is also MODEL; expected another file"
    message = fail("parse", model, text, "--raw", "--output", text)
    assert message == f"treewright: --output is {text}, which is also INPUT; expected another file"
    assert text.read_text() == "Mary sleeps."
    tw.load(model)


def test_a_treebank_may_be_parsed_in_its_place(folder, tmp_path):
    path = tmp_path / "copy.conllu"
    path.write_bytes((folder / "test.conllu").read_bytes())
    run("parse", folder / "parser.tw", path, "--output", path)
    run("parse", folder / "parser.tw", folder / "test.conllu", "--output", tmp_path / "other.conllu")
    assert path.read_bytes() == (tmp_path / "other.conllu").read_bytes()


def test_options_of_parse_that_have_no_meaning_are_one_line(fail, folder):
    model, source = folder / "parser.tw", folder / "test.conllu"
    assert (
        fail("parse", model, source, "--tags", "x")
        == "treewright: --tags is 'x'; expected one of gold, predicted"
    )


def test_a_damaged_model_is_one_line(fail, folder, tmp_path):
    state = load_state(folder / "parser.tw")
    weights = state.parts["scorer_"].arrays
    weights["weights.book"] = weights["weights.book"][:3]
    save_state(state, tmp_path / "damaged.tw")
    message = fail("parse", tmp_path / "damaged.tw", folder / "test.conllu")
    assert message.startswith(f"treewright: {tmp_path / 'damaged.tw'}:1: a corrupt DependencyParser (")


@pytest.mark.slow
def test_only_what_training_has_left_is_deleted(folder, tmp_path):
    mine = tmp_path / "parser.tw.checkpoint" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("keep me")
    options = ["--order", 1, "--epochs", 1, "--runs", 1, "--resume"]
    run("train", "dependency", folder / "train.conllu", "--model", tmp_path / "parser.tw", *options)
    assert [path.name for path in mine.parent.iterdir()] == ["mine.txt"]


def test_training_sentences_without_heads_are_one_line(fail, folder, tmp_path):
    source = tmp_path / "bare.conllu"
    tw.write_conllu([tw.DepTree(["a", "b"])], source)
    message = fail("train", "dependency", source, "--model", tmp_path / "m")
    found = f"{source}:1: HEAD is '_'; expected an integer from 0 to 2"
    assert message == f"treewright: {found} (see docs/howto/troubleshooting.md#files)"
