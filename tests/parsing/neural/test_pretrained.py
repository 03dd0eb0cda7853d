"""Parsers whose networks read word vectors or a pretrained encoder."""

import shutil
import sys

import commands
import pytest

import treewright as tw
from treewright.errors import InputError, MissingDependencyError

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tiny_encoder import make_folder

SMALL = {"units": 8, "layers": 1, "arc_size": 12, "label_size": 8, "epochs": 3, "learning_rate": 0.01}
SPANS = {"units": 8, "layers": 1, "span_size": 8, "epochs": 2, "learning_rate": 0.01}
BANK = tw.make_treebank(80, random_state=0).dependencies


@pytest.fixture
def vectors(tmp_path):
    words = sorted({form.lower() for tree in BANK for form in tree.words})
    path = tmp_path / "small.vec"
    lines = [f"{word} {len(word)} {at % 7} {at % 3}\n" for at, word in enumerate(words)]
    path.write_text(f"{len(words)} 3\n{''.join(lines)}")
    return path


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "encoder"
    place.mkdir()
    return make_folder(place)


def trees_of(parser):
    return [(tree.heads.tolist(), tree.deprels) for tree in parser.predict(BANK[60:])]


def test_vectors_are_part_of_the_saved_parser(tmp_path, vectors):
    scorer = tw.NeuralScorer(vectors=str(vectors), max_vectors=5, **SMALL)
    parser = tw.DependencyParser(scorer=scorer).fit(BANK[:60])
    vectors.unlink()
    parser.save(tmp_path / "parser.tw")
    loaded = tw.load(tmp_path / "parser.tw")
    assert loaded.scorer_.inputs_.vectors.size == 3
    assert trees_of(loaded) == trees_of(parser)


@pytest.mark.parametrize("tune", [False, True])
def test_an_encoder_is_part_of_the_saved_parser(tmp_path, vectors, folder, tune):
    scorer = tw.NeuralScorer(encoder=str(folder), vectors=str(vectors), tune_encoder=tune, **SMALL)
    parser = tw.DependencyParser(scorer=scorer).fit(BANK[:60])
    shutil.rmtree(folder)
    parser.save(tmp_path / "parser.tw")
    assert trees_of(tw.load(tmp_path / "parser.tw")) == trees_of(parser)


@pytest.mark.parametrize("tune", [False, True])
def test_vectors_and_an_encoder_are_part_of_a_saved_span_parser(tmp_path, vectors, folder, tune):
    trees = tw.make_treebank(80, random_state=0).constituents
    plain = tw.SpanParser(**SPANS).fit(trees[:60], trees[60:70])
    parser = tw.SpanParser(vectors=str(vectors), encoder=str(folder), tune_encoder=tune, **SPANS)
    parser.fit(trees[:60], trees[60:70])
    vectors.unlink()
    shutil.rmtree(folder)
    parser.save(tmp_path / "parser.tw")
    loaded = tw.load(tmp_path / "parser.tw")
    assert (loaded.inputs_.vectors.size, loaded.inputs_.encoder.size) == (3, 16)
    found = parser.log_probabilities(trees[70:])
    assert loaded.log_probabilities(trees[70:]) == pytest.approx(found)
    assert found != pytest.approx(plain.log_probabilities(trees[70:]))


def test_a_span_parser_refuses_files_that_are_missing_before_it_trains(tmp_path):
    trees = tw.make_treebank(10, random_state=0).constituents
    with pytest.raises(FileNotFoundError, match=r"none\.vec"):
        tw.SpanParser(vectors=str(tmp_path / "none.vec")).fit(trees)
    with pytest.raises(FileNotFoundError, match="the folder does not exist; expected a folder with"):
        tw.SpanParser(encoder=str(tmp_path / "none")).fit(trees)
    with pytest.raises(InputError, match="networks=2 does not work with tune_encoder=True"):
        tw.SpanParser(encoder=str(make_folder(tmp_path)), tune_encoder=True, networks=2).fit(trees)


@pytest.mark.parametrize("kind", ["span", "dependency"])
def test_a_checkpoint_notices_that_the_vectors_have_changed(tmp_path, vectors, kind):
    bank = tw.make_treebank(20, random_state=0)

    def fit(folder):
        if kind == "span":
            parser = tw.SpanParser(vectors=str(vectors), **SPANS)
            return parser.fit(bank.constituents[:15], bank.constituents[15:], checkpoint=folder)
        parser = tw.DependencyParser(scorer=tw.NeuralScorer(vectors=str(vectors), **SMALL))
        return parser.fit(bank.dependencies, checkpoint=folder)

    fit(tmp_path / "steps")
    first, *rest = vectors.read_text().splitlines()
    vectors.write_text("\n".join([first.replace(" 3", " 4"), *(f"{line} 1" for line in rest)]))
    with pytest.raises(InputError, match="is a checkpoint of a run with other data or options"):
        fit(tmp_path / "steps")


def test_parsing_with_an_encoder_tells_what_is_not_installed(tmp_path, folder, monkeypatch):
    scorer = tw.NeuralScorer(encoder=str(folder), **SMALL)
    tw.DependencyParser(scorer=scorer).fit(BANK[:20]).save(tmp_path / "parser.tw")
    monkeypatch.setitem(sys.modules, "transformers", None)
    parser = tw.load(tmp_path / "parser.tw")
    with pytest.raises(MissingDependencyError, match=r"transformers is not installed; .*\[encoder\]"):
        parser.predict(BANK[:1])


def test_options_that_have_no_effect_are_refused(folder):
    for params, message in [
        ({"max_vectors": 5}, "max_vectors has no effect with vectors=None"),
        ({"tune_encoder": True}, "tune_encoder has no effect with encoder=None"),
        ({"encoder": str(folder), "encoder_learning_rate": 0.1}, "has no effect with tune_encoder=False"),
        (
            {"encoder": str(folder), "tune_encoder": True, "networks": 2},
            "networks=2 does not work with tune_encoder=True",
        ),
    ]:
        with pytest.raises(InputError, match=message):
            tw.NeuralScorer(**params).start(BANK)


def test_the_command_line_takes_vectors_and_encoders(tmp_path, vectors, folder, fail):
    train, model = tmp_path / "train.conllu", tmp_path / "parser.tw"
    tw.write_conllu(BANK[:40], train)
    command = ["train", "dependency", train, "--model", model, "--scorer", "neural", "--network-epochs", "1"]
    command += ["--units", "8", "--layers", "1"]
    commands.run(*command, "--vectors", vectors, "--max-vectors", "5", "--encoder", folder, "--tune-encoder")
    assert tw.load(model).scorer_.inputs_.encoder.size == 16
    assert fail(*command, "--quiet", "--vectors", train).startswith(f"treewright: {train}:")
    command[4] = tmp_path / "other.tw"
    found = fail(*command, "--quiet", "--encoder", tmp_path / "none")
    assert found.startswith(
        f"treewright: {tmp_path / 'none'}: the folder does not exist; expected a folder with"
    )
