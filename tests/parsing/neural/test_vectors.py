"""Word vectors: their files, and the network that reads them with and without PyTorch."""

import gzip
import io
import tracemalloc

import numpy as np
import pytest

import treewright as tw
from treewright.data.vocab import Vocabulary
from treewright.errors import FormatError, InputError
from treewright.parsing.neural.inference import NetworkRunner
from treewright.parsing.neural.inputs import WordInputs
from treewright.parsing.neural.sizes import BiaffineSettings, weight_shapes
from treewright.parsing.neural.vectors import BLOCK, WordVectors, read_vectors

TREES = tw.make_treebank(n_sentences=30, random_state=1).dependencies
LINES = ["the 1 0 0", "heron 0 2 0", "Paris 0 0 3", ". -1 -1 0.5"]


def write(folder, lines, name="vectors.vec"):
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def random_vectors(words, size=5):
    table = np.random.default_rng(0).normal(size=(len(words), size)).astype(np.float16)
    return WordVectors(Vocabulary(words), table)


def test_the_first_line_may_say_how_many_there_are(tmp_path):
    bare = read_vectors(write(tmp_path, LINES))
    headed = read_vectors(write(tmp_path, ["4 3", *LINES]))
    assert headed.vocabulary.strings == bare.vocabulary.strings == ["the", "heron", "Paris", "."]
    np.testing.assert_array_equal(headed.table, bare.table)


def test_fasttext_ends_its_lines_in_spaces_and_other_files_have_tabs(tmp_path):
    expected = read_vectors(write(tmp_path, LINES)).table
    for change in (lambda line: line + " ", lambda line: line.replace(" ", "\t")):
        np.testing.assert_array_equal(read_vectors(write(tmp_path, map(change, LINES))).table, expected)


def test_gzip_is_told_by_content(tmp_path):
    path = tmp_path / "vectors.vec"
    path.write_bytes(gzip.compress("\n".join(LINES).encode()))
    assert read_vectors(path).size == 3


def test_an_open_file_is_read():
    assert read_vectors(io.StringIO("\n".join(LINES))).size == 3


def test_vectors_have_a_mean_length_of_1(tmp_path):
    table = read_vectors(write(tmp_path, LINES)).table.astype(np.float64)
    lengths = np.linalg.norm(table, axis=1)
    assert lengths.mean() == pytest.approx(1, abs=1e-3)
    assert lengths[1] == pytest.approx(2 * lengths[0], rel=1e-3)


def test_the_case_of_a_form_counts_first_and_then_lower_case(tmp_path):
    vectors = read_vectors(write(tmp_path, [*LINES, "paris 9 9 9"]))
    assert [vectors.number(form) for form in ("Paris", "paris", "PARIS", "The", "oslo")] == [3, 5, 5, 1, 0]
    found = vectors.look_up(["THE", "oslo"])
    np.testing.assert_array_equal(found, [vectors.table[0].astype(np.float32), [0, 0, 0]])


def test_a_word_may_have_spaces_in_it(tmp_path):
    vectors = read_vectors(write(tmp_path, [*LINES, ". . . 4 5 6", "new york 4 5 6"]))
    assert vectors.vocabulary.strings[4:] == [". . .", "new york"]


def test_the_first_vectors_and_those_of_words_are_kept(tmp_path):
    path = write(tmp_path, ["4 3", *LINES])
    kept = lambda **options: read_vectors(path, **options).vocabulary.strings  # noqa: E731
    assert kept(max_vectors=2) == ["the", "heron"]
    assert kept(max_vectors=1, words=["PARIS", "."]) == ["the", "."]
    assert kept(max_vectors=0, words=["Heron", "Paris"]) == ["heron", "Paris"]
    assert kept(max_vectors=None) == ["the", "heron", "Paris", "."]


def test_a_file_is_read_no_further_than_needed(tmp_path):
    path = write(tmp_path, [*LINES, "broken 1"])
    assert len(read_vectors(path, max_vectors=4).table) == 4


def test_more_vectors_than_a_block_are_read_in_order(tmp_path):
    lines = [f"w{number} {number + 1} 1" for number in range(BLOCK + 2)]
    table = read_vectors(write(tmp_path, lines)).table.astype(np.float64)
    assert len(table) == BLOCK + 2
    assert (np.diff(table[:, 0]) >= 0).all()


def test_memory_is_that_of_the_vectors_that_are_kept(tmp_path):
    numbers = " 0.25" * 50
    path = write(tmp_path, (f"w{number}{numbers}" for number in range(20_000)))
    tracemalloc.start()
    read_vectors(path, words=["w3", "w19999"], max_vectors=10)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < path.stat().st_size / 3


@pytest.mark.parametrize(
    ("lines", "line", "found"),
    [
        ([], 1, "no vectors; expected a word and its numbers per line"),
        (["4 3"], 1, "no vectors; expected a word and its numbers per line"),
        (["the"], 1, "'the'; expected a word and its numbers"),
        ([*LINES, "new 1 2"], 5, "2 numbers after 'new'; expected a word and 3 numbers"),
        ([*LINES, "new 1 2 3 4"], 5, "4 numbers after 'new'; expected a word and 3 numbers"),
        (["9 2", *LINES], 2, "3 numbers after 'the'; expected a word and 2 numbers"),
        ([*LINES, " 1 2 3"], 5, "3 numbers after ''; expected a word and 3 numbers"),
        ([*LINES, "new 1 x 3"], 5, "'x'; expected a number"),
        ([*LINES, "new 1 nan 3"], 5, "'nan'; expected a finite number"),
        ([*LINES, "new 1 1e99 3"], 5, "'1e99'; expected a finite number"),
        ([*LINES, "the 1 2 3"], 5, "'the', which already has a vector in line 1; expected each word once"),
        (["5 3", *LINES], 5, "4 vectors; expected 5, the number in line 1"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path, lines, line, found):
    path = write(tmp_path, lines)
    with pytest.raises(FormatError) as caught:
        read_vectors(path)
    assert str(caught.value) == f"{path}:{line}: {found}"


def test_one_enormous_vector_is_refused(tmp_path):
    lines = [*(f"w{number} 1 1" for number in range(20_000)), "odd 1e9 1"]
    with pytest.raises(
        FormatError, match=r":20001: a vector of length 1e\+09; expected lengths close to the mean"
    ):
        read_vectors(write(tmp_path, lines))


def test_other_encodings_and_binary_files_are_told(tmp_path):
    path = tmp_path / "latin.vec"
    path.write_bytes("the 1 2\ncafé 1 2\n".encode("latin-1"))
    with pytest.raises(FormatError, match=r"latin.vec:2: byte 0xe9 at byte 4; expected UTF-8"):
        read_vectors(path)
    path.write_bytes(b"2 2\nthe \0\1\2\3")
    with pytest.raises(FormatError, match=r"latin.vec:2: a NUL byte"):
        read_vectors(path)


def test_a_file_of_another_language_is_told(tmp_path):
    with pytest.raises(FormatError, match="no vector of the 2 requested words"):
        read_vectors(write(tmp_path, LINES), words=["Haus", "haus"], max_vectors=0)


def test_a_number_of_vectors_below_0_is_refused(tmp_path):
    with pytest.raises(InputError, match="max_vectors is -1; expected an integer of at least 0"):
        read_vectors(write(tmp_path, LINES), max_vectors=-1)


def test_vectors_are_saved_and_loaded_with_the_inputs(tmp_path):
    words = sorted({form for tree in TREES for form in tree.words})[:20]
    inputs = WordInputs.from_trees(TREES, min_count=1, vectors=random_vectors(words))
    inputs.save(tmp_path / "inputs.tw")
    loaded = tw.load(tmp_path / "inputs.tw")
    np.testing.assert_array_equal(loaded.pad(TREES).vectors, inputs.pad(TREES).vectors)
    assert loaded.vectors.vocabulary.strings == words


@pytest.mark.parametrize(("words", "n_rows"), [(["a", "a"], 2), (["a", 3], 2), (["a"], 2), ([], 0)])
def test_vectors_that_do_not_fit_their_words_are_not_loaded(tmp_path, words, n_rows):
    state = random_vectors(["a", "b"]).get_state()
    state.values["vocabulary"] = words
    state.arrays["table"] = np.ones((n_rows, 4), dtype=np.float16)
    with pytest.raises(InputError, match="the arrays are inconsistent"):
        WordVectors.from_state(state)


def test_inputs_read_a_file_and_keep_the_words_of_sentences(tmp_path):
    form = TREES[0].words[0]
    inputs = WordInputs.from_trees(
        TREES, min_count=1, vectors=write(tmp_path, [*LINES, f"{form} 1 1 1"]), max_vectors=2
    )
    assert inputs.vectors.vocabulary.strings == ["the", "heron", ".", form]


def test_a_network_reads_vectors_alike_with_and_without_torch():
    torch = pytest.importorskip("torch")
    from treewright.parsing.neural.network import ParserNetwork, to_arrays

    words = sorted({form for tree in TREES for form in tree.words})[::2]
    inputs = WordInputs.from_trees(TREES, min_count=1, vectors=random_vectors(words))
    torch.manual_seed(0)
    network = ParserNetwork(inputs.sizes(), 3, BiaffineSettings(8, 2, 6, 6, 0.3)).eval()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    weights = to_arrays(network)
    shapes = {name: array.shape for name, array in weights.items()}
    settings = BiaffineSettings(8, 2, 6, 6, 0.3)
    assert shapes == weight_shapes(inputs.sizes(), 3, settings)
    batch = inputs.pad(TREES)
    with torch.no_grad():
        expected = network.score_arcs(network.encode(batch)).transpose(1, 2).numpy()
    for tree, square, found in zip(TREES, expected, NetworkRunner(weights, inputs).read(TREES), strict=True):
        n = len(tree) + 1
        np.testing.assert_allclose(found.arcs, square[:n, :n], atol=1e-4)
    for other in (None, random_vectors(words, size=6)):
        assert shapes != weight_shapes(WordInputs(inputs.vocabularies, other).sizes(), 3, settings)


def test_a_vector_tells_something_of_a_word_that_training_does_not_have():
    torch = pytest.importorskip("torch")
    from treewright.parsing.neural.network import ParserNetwork, to_arrays

    sentence = tw.DepTree(words=["zq", "sleeps"])
    inputs = WordInputs.from_trees(TREES, min_count=1, vectors=random_vectors(["zq"]))
    others = WordInputs(inputs.vocabularies, random_vectors(["other"]))
    torch.manual_seed(0)
    network = ParserNetwork(inputs.sizes(), 3, BiaffineSettings(8, 1, 6, 6, 0.3))
    weights = to_arrays(network)
    with_vector, without = (
        NetworkRunner(weights, each).read([sentence])[0].label_heads for each in (inputs, others)
    )
    assert not np.allclose(with_vector, without)
