"""Readers on damaged texts: a value, or one sentence that says what is wrong."""

import gzip
import io
from random import Random

import pytest
from framenet_sample import TEXT, UNIT
from mutations import make_garbage, mutate_text

import treewright as tw
from treewright.data.svmlight import read_svmlight, read_tree_examples
from treewright.errors import TreewrightError
from treewright.kernels.files import read_examples, read_vectors

N_CASES = 400
SAMPLES = b"+1 3:1 17:1 # first\n-1 qid:7 3:1 40:0\n+1 word=bank:1 word=river 5:1\n"
EXAMPLES = b"+1 |BT| (S (N a)) |BT| (S (N b)) |ET| 1:0.5 7:1 |BV| 2:1 |EV|\n-1 |BT| |ET| 3:1\n"
VECTORS = b"2 2\nkite 0.5 1\nthe 0 1\n"


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Return a sound text of each format."""
    folder = tmp_path_factory.mktemp("texts")
    bank = tw.make_treebank(n_sentences=2, random_state=0)
    tw.write_conllu(bank.dependencies, folder / "conllu")
    tw.write_conllx(bank.dependencies, folder / "conllx")
    tw.write_conll2009(bank.dependencies, folder / "conll2009")
    tw.write_brackets(bank.constituents, folder / "brackets")
    tw.write_props(bank.propositions, folder / "props")
    written = {path.name: path.read_bytes() for path in folder.iterdir()}
    made = {"unit": UNIT.encode(), "text": TEXT.encode(), "samples": SAMPLES, "examples": EXAMPLES}
    return written | made | {"vectors": VECTORS}


READERS = {
    "conllu": tw.read_conllu,
    "conllx": tw.read_conllx,
    "conll2009": tw.read_conll2009,
    "brackets": tw.read_brackets,
    "props": tw.read_props,
    "unit": tw.read_framenet,
    "text": tw.read_framenet,
    "samples": read_svmlight,
    "examples": read_tree_examples,
    "vectors": lambda source: read_vectors(source, {"kite", "the"}),
}


def reads_or_refuses(read, data):
    """Let a reader read; tell whether it gives a value, or refuses in one line."""
    found = True
    try:
        read(io.BytesIO(data))
    except TreewrightError as error:
        found = str(error)
    assert found is True or "\n" not in found
    return found is True


@pytest.mark.parametrize("name", READERS)
def test_damaged_texts_are_read_or_refused(name, texts):
    rng = Random(name)
    others = list(texts.values())
    found = {
        reads_or_refuses(READERS[name], mutate_text(rng, texts[name], rng.choice(others)))
        for _ in range(N_CASES)
    }
    assert found == {True, False}


@pytest.mark.parametrize("name", ["conllu", "brackets", "props", "examples"])
def test_damaged_texts_of_any_format_are_examples_of_kernels_or_refused(name, texts):
    rng = Random(name)
    for _ in range(N_CASES // 4):
        reads_or_refuses(read_examples, mutate_text(rng, texts[name], texts["samples"]))


@pytest.mark.parametrize("name", READERS)
def test_garbage_is_read_or_refused(name):
    rng = Random(name)
    for _ in range(N_CASES // 4):
        reads_or_refuses(READERS[name], make_garbage(rng))


def test_features_with_thousands_of_digits_are_names():
    digits = "9" * 6000
    samples = read_svmlight(io.BytesIO(f"+1 {digits}:1 3:1\n-1 3:1\n".encode()))
    assert sorted(samples.names) == sorted([digits, "3"])


@pytest.mark.parametrize("line", ["+1 |BT| (S a) |ET| 3:{} |EV|", "{} |BT| (S a) |ET|"])
def test_numbers_that_go_on_without_end_take_no_time_to_refuse(line):
    # With a pattern that tries all ways to cut them, these would take an hour.
    reads_or_refuses(read_tree_examples, line.format("1" * 300_000 + "x").encode())


def test_a_feature_twice_among_many_is_found():
    line = " ".join(f"{number}:1" for number in range(50_000))
    with pytest.raises(TreewrightError, match="'49999' twice"):
        read_svmlight(io.BytesIO(f"+1 {line} 49999:1\n".encode()))


def test_blanks_without_end_are_no_trees():
    assert not reads_or_refuses(read_examples, gzip.compress(b" " * (1 << 23)))


def test_entities_that_multiply_are_refused():
    doubled = "".join(f'<!ENTITY l{at} "{f"&l{at - 1};" * 10}">' for at in range(1, 12))
    text = f'<!DOCTYPE x [<!ENTITY l0 "lol">{doubled}]><lexUnit>&l11;</lexUnit>'
    assert not reads_or_refuses(tw.read_framenet, text.encode())
