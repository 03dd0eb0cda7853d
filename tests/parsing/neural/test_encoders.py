"""Pretrained encoders: their folders, words as subwords, and training with one, frozen or tuned."""

import json
import sys
from contextlib import nullcontext

import numpy as np
import pytest

import treewright as tw
from treewright.checkpoint import Checkpoint
from treewright.data.vocab import Vocabulary
from treewright.errors import FormatError, InputError, MissingDependencyError
from treewright.parsing.neural import encoders
from treewright.parsing.neural.encoders import PretrainedEncoder, _windows
from treewright.parsing.neural.inference import NetworkRunner
from treewright.parsing.neural.inputs import WordInputs
from treewright.parsing.neural.sizes import BiaffineSettings, weight_shapes

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import tokenizers  # noqa: E402
from tiny_encoder import make_folder, make_tokenizer  # noqa: E402

from treewright.parsing.neural.network import ParserNetwork, to_arrays  # noqa: E402
from treewright.parsing.neural.training import NetworkTrainer, TrainingSettings  # noqa: E402

TREES = tw.make_treebank(n_sentences=40, random_state=1).dependencies
LABELS = Vocabulary(sorted({label for tree in TREES for label in tree.deprels}))
SMALL = BiaffineSettings(units=8, layers=1, arc_size=6, label_size=6, dropout=0.2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_folder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture
def encoder(folder):
    return PretrainedEncoder.read(folder)


def train(encoder, folder=None, epochs=2, **options):
    inputs = WordInputs.from_trees(TREES, min_count=1, encoder=encoder)
    settings = TrainingSettings(
        **{
            "epochs": epochs,
            "learning_rate": 0.01,
            "loss": "head",
            "single_root": True,
            "device": "cpu",
            "precision": "float32",
            "patience": None,
            "random_state": 0,
            **options,
        }
    )
    checkpoint = Checkpoint(folder, "tiny") if folder else None
    weights = NetworkTrainer(inputs, LABELS, SMALL, settings, checkpoint).train(TREES[:30], TREES[30:])
    return inputs, weights


def predictions(inputs, weights):
    found = []
    runner = NetworkRunner(weights, inputs)
    for tree, each in zip(TREES, runner.read(TREES), strict=True):
        found += [each.arcs, *runner.label_scores([each], [tree.heads])]
    return found


def assert_same(left, right, **options):
    for one, other in zip(left, right, strict=True):
        np.testing.assert_allclose(one, other, **options)


def test_the_state_of_a_word_is_the_mean_over_subwords_and_layers(folder, encoder):
    words = ["The", "gardener", "saw", "it"]
    states = encoder.read_sentences([words, ["it"]])
    assert states.shape == (2, 5, 16)
    assert not states[:, 0].any()
    assert not states[1, 2:].any()
    model = transformers.AutoModel.from_pretrained(folder)
    ids = [2]
    spans = []
    for word in words:
        pieces = make_tokenizer().encode(word, add_special_tokens=False).ids
        spans.append((len(ids), len(ids) + len(pieces)))
        ids += pieces
    with torch.no_grad():
        layers = model(torch.tensor([[*ids, 3]]), output_hidden_states=True).hidden_states[1:]
    mean = ((layers[0] + layers[1]) / 2)[0].numpy()
    for at, (start, end) in enumerate(spans):
        expected = mean[start:end].mean(axis=0)
        expected = (expected - expected.mean()) / np.sqrt(expected.var() + 1e-5)
        np.testing.assert_allclose(states[0, at + 1], expected, atol=1e-5)


def test_sentences_are_read_alike_alone_and_together(encoder):
    sentences = [tree.words for tree in TREES[:20]]
    together = encoder.read_sentences(sentences)
    for words, found in zip(sentences, together, strict=True):
        alone = encoder.read_sentences([words])[0]
        np.testing.assert_allclose(found[: len(words) + 1], alone, atol=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_windows_ask_for_each_word_once_and_have_room(seed):
    rng = np.random.default_rng(seed)
    room = int(rng.integers(1, 20))
    sizes = rng.integers(1, 8, size=int(rng.integers(1, 60))).tolist()
    asked = []
    for first, last, start, end in _windows(sizes, room):
        assert first <= start <= end <= last
        assert sum(min(size, room) for size in sizes[first:last]) <= room
        asked += range(start, end)
    assert asked == list(range(len(sizes)))


def test_a_long_sentence_is_read_in_windows(encoder):
    words = [form for tree in TREES for form in tree.words][:300]
    pieces = encoder.split([words])
    assert len(pieces.ids) > 10
    assert pieces.ids.shape[1] <= 62
    states = encoder.read_sentences([words])[0]
    assert np.isfinite(states).all()
    assert states[1:].any(axis=1).all()


def test_words_of_which_nothing_is_left_and_empty_sentences_are_read(encoder):
    states = encoder.read_sentences([["\u200b", "it", "x" * 500], []])
    assert states.shape == (2, 4, 16)
    assert np.isfinite(states).all()
    assert not states[1].any()


def test_subwords_of_bytes_are_those_of_words_in_a_text():
    trained = tokenizers.ByteLevelBPETokenizer(add_prefix_space=False)
    trained.train_from_iterator(["it was it was it"] * 9, vocab_size=300, show_progress=False)
    text = json.dumps(encoders._spaced(json.loads(trained._tokenizer.to_str())))
    found = tokenizers.Tokenizer.from_str(text).encode(["it", "was"], is_pretokenized=True)
    assert found.tokens == ["Ġit", "Ġwas"]


def test_bytes_and_sentence_pieces_have_a_space_before_each_word():
    spaced = encoders._spaced(
        {
            "pre_tokenizer": {
                "type": "Sequence",
                "pretokenizers": [{"type": "ByteLevel", "add_prefix_space": False}],
            },
            "model": {"vocab": {"type": 0}},
            "decoder": {"type": "Metaspace", "prepend_scheme": "first"},
        }
    )
    assert spaced["pre_tokenizer"]["pretokenizers"][0]["add_prefix_space"] is True
    assert spaced["decoder"]["prepend_scheme"] == "always"
    assert spaced["model"] == {"vocab": {"type": 0}}


@pytest.mark.parametrize("tune", [False, True])
def test_a_network_is_trained_saved_and_loaded_elsewhere(tmp_path, encoder, tune):
    before = {name: array.copy() for name, array in encoder.weights.items()}
    inputs, weights = train(encoder, tune_encoder=tune, encoder_learning_rate=0.01)
    shapes = {name: array.shape for name, array in weights.items()}
    assert shapes == weight_shapes(inputs.sizes(), len(LABELS.strings), SMALL)
    changed = [name for name, array in before.items() if (encoder.weights[name] != array).any()]
    assert bool(changed) == tune
    assert not [name for name in weights if name.startswith("pretrained.module")]
    inputs.save(tmp_path / "inputs.tw")
    loaded = tw.load(tmp_path / "inputs.tw")
    assert_same(predictions(loaded, weights), predictions(inputs, weights), rtol=0, atol=0)


@pytest.mark.parametrize("tune", [False, True])
def test_the_network_is_the_same_with_and_without_torch(encoder, tune):
    inputs = WordInputs.from_trees(TREES, min_count=1, encoder=encoder)
    torch.manual_seed(0)
    network = ParserNetwork(inputs.sizes(), 3, SMALL)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    if tune:
        network.pretrained.tune(encoder.make_module())
    weights = to_arrays(network.eval())
    with encoder.training("cpu", tune=True) if tune else nullcontext(), torch.no_grad():
        batch = inputs.pad(TREES)
        assert (batch.pieces is not None) == tune
        expected = network.score_arcs(network.encode(batch)).transpose(1, 2).numpy()
    for tree, square, found in zip(TREES, expected, NetworkRunner(weights, inputs).read(TREES), strict=True):
        n = len(tree) + 1
        np.testing.assert_allclose(found.arcs, square[:n, :n], atol=1e-4)


@pytest.mark.parametrize("tune", [False, True])
def test_an_interrupted_training_ends_as_one_without_a_break(tmp_path, folder, tune):
    options = {"tune_encoder": tune, "encoder_learning_rate": 0.01}
    whole = predictions(*train(PretrainedEncoder.read(folder), **options))

    class StopError(Exception):
        pass

    keep = NetworkTrainer._keep

    def keep_and_stop(self, scores, best):
        keep(self, scores, best)
        raise StopError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NetworkTrainer, "_keep", keep_and_stop)
        with pytest.raises(StopError):
            train(PretrainedEncoder.read(folder), tmp_path / "kept", **options)
    resumed = predictions(*train(PretrainedEncoder.read(folder), tmp_path / "kept", **options))
    assert_same(resumed, whole, rtol=0, atol=0)


def test_states_are_computed_once_in_training(encoder, monkeypatch):
    sentences = []
    run = PretrainedEncoder._run
    monkeypatch.setattr(
        PretrainedEncoder, "_run", lambda self, pieces: sentences.append(pieces.shape[0]) or run(self, pieces)
    )
    train(encoder, epochs=3)
    assert sum(sentences) <= len(TREES)


def test_compact_files_are_half_as_large_and_read_nearly_the_same(tmp_path, encoder):
    encoder.save(tmp_path / "whole.tw")
    encoder.save(tmp_path / "compact.tw", compact=True)
    words = [TREES[0].words]
    found = tw.load(tmp_path / "compact.tw").read_sentences(words)
    np.testing.assert_allclose(found, encoder.read_sentences(words), atol=0.02)
    sizes = [(tmp_path / name).stat().st_size for name in ("whole.tw", "compact.tw")]
    assert sizes[1] < 0.8 * sizes[0]


def test_a_folder_that_is_not_there_or_not_whole_is_told(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"the folder does not exist; expected a folder with config.json"
    ):
        PretrainedEncoder.read(tmp_path / "none")
    folder = make_folder(tmp_path)
    for name in ("tokenizer.json", "model.safetensors", "config.json"):
        (folder / name).unlink()
        with pytest.raises(FileNotFoundError, match=f"{name} is missing; expected a folder with"):
            PretrainedEncoder.read(folder)


KINDS = {
    "roberta": {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "pad_token_id": 1},
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 16},
    "electra": {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "embedding_size": 8},
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "bos_token_id": 2, "eos_token_id": 3},
}


@pytest.mark.slow_cases
@pytest.mark.parametrize("kind", KINDS)
def test_encoders_of_other_kinds_are_read_saved_and_loaded(tmp_path, kind):
    tokenizer = make_tokenizer()
    config = transformers.CONFIG_MAPPING[kind](vocab_size=tokenizer.get_vocab_size(), **KINDS[kind])
    transformers.AutoModel.from_config(config).save_pretrained(tmp_path)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    encoder = PretrainedEncoder.read(tmp_path)
    encoder.save(tmp_path / "encoder.tw")
    sentences = [TREES[0].words, ["it"] * 400]
    states = encoder.read_sentences(sentences)
    assert states.shape == (2, 401, 16)
    assert np.isfinite(states).all()
    np.testing.assert_array_equal(tw.load(tmp_path / "encoder.tw").read_sentences(sentences), states)


def change_config(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("config.json", "{", r"config.json:1: .*; expected JSON in UTF-8"),
        ("config.json", "[]", r"config.json:1: '\[\]'; expected a JSON object"),
        (
            "config.json",
            '{"model_type": "none"}',
            r"config.json:1: model_type is 'none'; expected one of albert, bert",
        ),
        (
            "config.json",
            '{"model_type": "t5"}',
            r"config.json:1: model_type is 't5'; expected one of albert, bert",
        ),
        ("tokenizer.json", "{}", r"tokenizer.json:1: the tokenizer cannot be read \(.*; expected a file"),
        ("model.safetensors", "abc", r"model.safetensors:1: .*; expected the weights of an encoder"),
    ],
)
def test_what_is_wrong_with_a_folder_is_told_in_one_line(tmp_path, name, text, message):
    folder = make_folder(tmp_path)
    (folder / name).write_text(text)
    with pytest.raises(FormatError, match=message) as caught:
        PretrainedEncoder.read(folder)
    assert "\n" not in str(caught.value)


def test_weights_that_are_missing_or_of_another_size_are_told(tmp_path):
    folder = make_folder(tmp_path)
    change_config(folder, num_hidden_layers=3)
    with pytest.raises(FormatError, match=r"model.safetensors:1: weights 'encoder.layer.2"):
        PretrainedEncoder.read(folder)
    change_config(folder, num_hidden_layers=2, intermediate_size=8)
    with pytest.raises(FormatError, match=r"model.safetensors:1: .*; expected the weights of an encoder"):
        PretrainedEncoder.read(folder)


def test_a_tokenizer_of_another_encoder_is_told(tmp_path):
    folder = make_folder(tmp_path)
    tokenizer = make_tokenizer()
    tokenizer.add_tokens(["more"])
    tokenizer.save(str(folder / "tokenizer.json"))
    with pytest.raises(FormatError, match=r"tokenizer.json:1: the tokenizer has \d+ subwords, the encoder"):
        PretrainedEncoder.read(folder)


def test_code_that_a_configuration_names_is_never_looked_at(tmp_path):
    folder = make_folder(tmp_path)
    change_config(
        folder,
        auto_map={"AutoModel": "mine.Model"},
        _attn_implementation="someone/kernel",
        quantization_config={"quant_method": "bitsandbytes"},
    )
    (folder / "mine.py").write_text("raise SystemExit")
    encoder = PretrainedEncoder.read(folder)
    assert not {"auto_map", "_attn_implementation", "quantization_config"} & set(encoder.config)
    state = encoder.get_state()
    state.values["config"] |= {"auto_map": {"AutoModel": "mine.Model"}}
    with pytest.raises(InputError, match="a configuration without references to code"):
        PretrainedEncoder.from_state(state)


def test_a_file_whose_weights_do_not_fit_takes_no_memory_for_them(encoder):
    state = encoder.get_state()
    state.values["config"] |= {"intermediate_size": 1 << 40}
    with pytest.raises(InputError, match="the weights of the configuration"):
        PretrainedEncoder.from_state(state).read_sentences([["it"]])


def test_a_missing_package_is_told_with_its_command(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingDependencyError, match=r"transformers is not installed; .*\[encoder\]"):
        PretrainedEncoder.read(folder)


def test_nothing_is_written_to_the_terminal(folder, capfd):
    PretrainedEncoder.read(folder).read_sentences([["it"]])
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""
