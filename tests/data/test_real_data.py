"""Real treebanks through the readers and writers; see the README of the data folder."""

import os
from pathlib import Path

import pytest

import treewright as tw
from treewright.data.consttree import TRACE

N_SENTENCES = {
    "ewt/en_ewt-ud-train.conllu": 12544,
    "ewt/en_ewt-ud-dev.conllu": 2001,
    "ewt/en_ewt-ud-test.conllu": 2077,
    "ewt/en_ewt-train.mrg": 12506,
    "ewt/en_ewt-dev.mrg": 1963,
    "ewt/en_ewt-test.mrg": 2054,
    "ewt/en_ewt-train.props": 12506,
    "ewt/en_ewt-dev.props": 1963,
    "ewt/en_ewt-test.props": 2054,
    "wsj_sample/wsj-train.mrg": 3396,
    "wsj_sample/wsj-dev.mrg": 273,
    "wsj_sample/wsj-test.mrg": 245,
    "wsj_sample/wsj-train.dep.conllu": 3396,
    "wsj_sample/wsj-dev.dep.conllu": 273,
    "wsj_sample/wsj-test.dep.conllu": 245,
    "conll2007/es_cess-train.conll": 2949,
    "conll2007/es_cess-test.conll": 563,
}
READERS = {
    ".conllu": (tw.iter_conllu, tw.write_conllu),
    ".conll": (tw.iter_conllx, tw.write_conllx),
    ".props": (tw.iter_props, tw.write_props),
}


def files(*suffixes):
    """Parametrise over the real files with these suffixes."""
    folder = Path(os.environ.get("TREEWRIGHT_DATA", "nowhere"))
    found = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.suffix in suffixes
    )
    none = pytest.param(
        "", marks=pytest.mark.skip(reason="no real data: TREEWRIGHT_DATA is not set or empty")
    )
    return pytest.mark.parametrize("name", found or [none])


def path_of(data_folder, name):
    if not (data_folder / name).exists():
        pytest.skip(f"TREEWRIGHT_DATA has no {name}")
    return data_folder / name


@files(".conllu", ".conll", ".props")
def test_reading_and_writing_gives_back_the_same_bytes(data_folder, tmp_path, name):
    path = path_of(data_folder, name)
    read, write = READERS[path.suffix]
    write(read(path), tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", N_SENTENCES)
def test_number_of_sentences_is_that_of_the_readme(data_folder, name):
    path = path_of(data_folder, name)
    read = tw.iter_brackets if path.suffix == ".mrg" else READERS[path.suffix][0]
    assert sum(1 for _ in read(path)) == N_SENTENCES[name]


@files(".mrg")
def test_trees_survive_writing_and_reading(data_folder, tmp_path, name):
    trees = tw.read_brackets(path_of(data_folder, name), functions=True, traces=True)
    tw.write_brackets(trees, tmp_path / "copy")
    assert tw.read_brackets(tmp_path / "copy", functions=True, traces=True) == trees


@pytest.mark.parametrize("name", [f"ewt/en_ewt-{part}.mrg" for part in ("train", "dev", "test")])
def test_trees_on_one_line_each_are_written_as_they_stand(data_folder, tmp_path, name):
    path = path_of(data_folder, name)
    tw.write_brackets(tw.iter_brackets(path, functions=True, traces=True), tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == path.read_bytes()


@files(".mrg")
@pytest.mark.parametrize("functions", [True, False])
@pytest.mark.parametrize("traces", [True, False])
def test_options_give_what_the_methods_of_the_whole_trees_give(data_folder, name, functions, traces):
    path = path_of(data_folder, name)
    whole = tw.iter_brackets(path, functions=True, traces=True)
    for tree, full in zip(tw.iter_brackets(path, functions=functions, traces=traces), whole, strict=True):
        expected = full if traces else full.without_traces()
        assert tree == (expected if functions else expected.without_functions())


@files(".mrg")
def test_trees_without_traces_have_the_other_words_in_order(data_folder, name):
    path = path_of(data_folder, name)
    whole = tw.iter_brackets(path, functions=True, traces=True)
    for tree, full in zip(tw.iter_brackets(path), whole, strict=True):
        kept = [pair for pair in zip(full.words(), full.tags(), strict=True) if pair[1] != TRACE]
        assert tree.words() == [word for word, _ in kept]


@files(".props")
def test_words_of_propositions_are_the_words_of_the_trees(data_folder, name):
    path = path_of(data_folder, name)
    trees = tw.iter_brackets(path.with_suffix(".mrg"), unescape=True)
    for sentence, tree in zip(tw.iter_props(path), trees, strict=True):
        assert sentence.words == tree.words()
