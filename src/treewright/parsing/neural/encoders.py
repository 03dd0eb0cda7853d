"""Pretrained encoders: local Hugging Face models, which read sentences as subwords.

The state of a word is the mean over its subwords and over the last layers, normalised to mean 0 and variance
1. A sentence with more subwords than the encoder accepts is encoded in overlapping windows; the state of a
word comes from the window in which it has most context. This module needs PyTorch and transformers, which are
imported on first use. Nothing is ever downloaded, and code that comes with a model is never run.
"""

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._optional import require
from treewright._typing import Range
from treewright.errors import FormatError, InputError, quote
from treewright.model import Array, Model, State, Value, expect, saved
from treewright.parsing.neural.pretrained import TUNED_PREFIX

if TYPE_CHECKING:  # imported on first use
    from torch import Tensor, nn

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
EXTRA = "encoder"
CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
"""Names of the files in the folder of an encoder."""
N_LAYERS = 4
"""Number of layers to average, counted from the last."""
MAX_WINDOW, N_SPARE = 256, 2
"""Maximum number of subwords per window, and number of positions that some models reserve."""
SENTENCES_AT_A_TIME = 64
MOST_CACHED_BYTES = 4 << 30
"""Maximum size of the cache of states during training; states are cached in half precision."""
MOST_CACHED_WORDS = 1 << 18
"""Maximum number of words whose subwords are cached."""
KINDS = (
    *("albert", "bert", "camembert", "deberta", "deberta-v2", "distilbert", "electra", "ernie", "eurobert"),
    *("gpt2", "megatron-bert", "modernbert", "mpnet", "nomic_bert", "roberta", "roberta-prelayernorm"),
    *("roformer", "xlm-roberta", "xlm-roberta-xl"),
)
"""Supported model types: text-only models that need no additional downloads."""
NEVER_KEPT = ("auto_map", "quantization_config", "attn_implementation", "dtype", "torch_dtype")
"""Entries of a configuration that are ignored, because they refer to code, packages or a precision."""


class SubwordWindows(NamedTuple):
    """Sentences as windows of subwords.

    Attributes
    ----------
    ids : array, (n_windows, longest)
        Subwords.
    is_piece : array, (n_windows, longest)
        Attention mask: true for subwords, false for padding.
    pieces : array, (n,)
        Flat positions in `ids` of the subwords whose states are used.
    words : array, (n,)
        For each of these subwords, the flat position of its word in a padded array of sentences, in which a
        root precedes each sentence.
    shape : tuple of int
        Shape of that padded array.
    """

    ids: Ids
    is_piece: npt.NDArray[np.bool_]
    pieces: Ids
    words: Ids
    shape: tuple[int, int]


class _Tensors:
    """Arrays by name; a compact file has them in half precision."""

    def put(self, state: State, name: str, value: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add the arrays to a saved state."""
        arrays = {
            key: array.astype(np.float16) if state.compact and array.dtype.kind == "f" else array
            for key, array in value.items()
        }
        state.parts[name] = State("Tensors", arrays=arrays)

    def take(self, state: State, name: str) -> dict[str, npt.NDArray[Any]]:
        """Remove and return the arrays from a saved state."""
        part = state.parts.pop(name)
        expect(not part.values and not part.parts and bool(part.arrays), f"only arrays in {name}")
        found = {key: Array("fiub", None).take(part, key) for key in list(part.arrays)}
        return {
            key: array.astype(np.float32) if array.dtype.kind == "f" else array
            for key, array in found.items()
        }


class PretrainedEncoder(Model):
    """A pretrained encoder: configuration, tokenizer and weights.

    Parameters
    ----------
    config : dict
        The configuration of the transformers model.
    tokenizer : str
        The tokenizer, as JSON.
    weights : dict of str to array
        Weights by their names in transformers.
    size : int
        Size of the state of a word.
    """

    fields = saved(
        config=Value(dict), tokenizer=Value(str), weights=_Tensors(), size=Value(Annotated[int, Range(1)])
    )

    def __init__(
        self, config: dict[str, Any], tokenizer: str, weights: Mapping[str, npt.NDArray[Any]], size: int
    ) -> None:
        self.config, self.tokenizer, self.weights, self.size = config, tokenizer, weights, size
        self._splitter: _Splitter | None = None
        self._module: nn.Module | None = None
        self._device = "cpu"
        self._is_tuning = False
        self._known: dict[tuple[str, ...], npt.NDArray[np.float16]] | None = None
        self._n_bytes = 0

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> "PretrainedEncoder":
        """Read an encoder from a folder with config.json, model.safetensors and tokenizer.json.

        Raises
        ------
        FormatError
            If the files are not a valid encoder.
        FileNotFoundError
            If the folder or a file is missing.
        MissingDependencyError
            If transformers or PyTorch is not installed.
        """
        path = check_folder(folder)
        config = _clean(_read_json(path / CONFIG))
        tokenizer = json.dumps(_spaced(_read_json(path / TOKENIZER)), ensure_ascii=False)
        transformers, _ = _packages()
        with _quiet(transformers):
            try:
                module, notes = transformers.AutoModel.from_pretrained(
                    os.fspath(path),
                    config=_make_config(transformers, config),
                    local_files_only=True,
                    trust_remote_code=False,
                    use_safetensors=True,
                    attn_implementation="eager",
                    output_loading_info=True,
                )
            except InputError as error:
                raise _of_file(path / CONFIG, error) from error
            except Exception as error:  # errors of transformers have no common base class
                expected = "the weights of an encoder"
                raise FormatError(os.fspath(path / WEIGHTS), 1, _in_one_line(error), expected) from error
        _leave_out_pooler(module)
        missing = sorted(name for name in notes["missing_keys"] if name in module.state_dict())
        if missing:
            found = f"weights {quote(missing[0])} are missing"
            raise FormatError(os.fspath(path / WEIGHTS), 1, found, f"all weights of {CONFIG}")
        encoder = cls(config, tokenizer, to_numpy(module.float()), int(module.config.hidden_size))
        try:
            encoder.split([["a"]])
        except InputError as error:
            raise _of_file(path / TOKENIZER, error) from error
        return encoder

    def __repr__(self) -> str:
        n_weights = sum(array.size for array in self.weights.values())
        return f"PretrainedEncoder {self.config.get('model_type')!r} of {n_weights:,} weights"

    @property
    def is_tuning(self) -> bool:
        """Whether the encoder is being fine-tuned as part of a network."""
        return self._is_tuning

    def check_fitted_state(self) -> None:
        """Validate the configuration without running any code that it refers to."""
        expect(isinstance(self.config.get("model_type"), str), "a model type")
        expect(self.config == _clean(self.config), "a configuration without references to code")

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without PyTorch objects, which are rebuilt on use."""
        return vars(self) | {"_splitter": None, "_module": None, "_known": None, "_device": "cpu"}

    def read_sentences(self, sentences: Sequence[Sequence[str]]) -> Floats:
        """Return the states of words, (n_sentences, longest + 1, size); row 0, the root, is all zeros."""
        longest = 1 + max(map(len, sentences), default=0)
        states = np.zeros((len(sentences), longest, self.size), dtype=np.float32)
        missing = []
        for at, words in enumerate(sentences):
            known = self._known.get(tuple(words)) if self._known is not None else None
            if known is not None:
                states[at, 1 : len(words) + 1] = known
            else:
                missing.append(at)
        missing.sort(key=lambda at: len(sentences[at]))
        for start in range(0, len(missing), SENTENCES_AT_A_TIME):
            places = missing[start : start + SENTENCES_AT_A_TIME]
            found = self._run(self.split([sentences[at] for at in places]))
            if self._known is not None:
                found = found.astype(np.float16)  # so that the first epoch equals those that use the cache
                for at, one in zip(places, found, strict=True):
                    if self._n_bytes < MOST_CACHED_BYTES:
                        known = self._known[tuple(sentences[at])] = one[1 : len(sentences[at]) + 1].copy()
                        self._n_bytes += known.nbytes
            states[places, : found.shape[1]] = found
        return states

    def split(self, sentences: Sequence[Sequence[str]]) -> SubwordWindows:
        """Return sentences as windows of subwords."""
        splitter = self._splitting()
        width = 1 + max(map(len, sentences), default=0)
        windows: list[list[int]] = []
        places: list[tuple[int, int, int]] = []
        for at, words in enumerate(sentences):
            split = splitter.split(words)
            for first, last, start, end in _windows([len(each) for each in split], splitter.room):
                column = len(splitter.before)
                window = [*splitter.before]
                for word in range(first, last):
                    pieces = split[word][: splitter.room]
                    if start <= word < end:
                        number = at * width + word + 1
                        places += [(len(windows), column + k, number) for k in range(len(pieces))]
                    column += len(pieces)
                    window += pieces
                windows.append(window + splitter.after)
        longest = max(map(len, windows), default=0)
        ids = np.full((len(windows), longest), splitter.padding, dtype=np.int64)
        is_piece = np.zeros(ids.shape, dtype=bool)
        for at, window in enumerate(windows):
            ids[at, : len(window)] = window
            is_piece[at, : len(window)] = True
        found = np.array(places, dtype=np.int64).reshape(-1, 3)
        return SubwordWindows(
            ids, is_piece, found[:, 0] * longest + found[:, 1], found[:, 2], (len(sentences), width)
        )

    def make_module(self) -> "nn.Module":
        """Return the encoder as a PyTorch module with these weights."""
        transformers, torch = _packages()
        with _quiet(transformers):
            try:
                config = _make_config(transformers, self.config)
                options = {"trust_remote_code": False, "attn_implementation": "eager"}
                with torch.device("meta"):  # compare sizes before allocating memory
                    plan = _leave_out_pooler(transformers.AutoModel.from_config(config, **options))
                planned = {name: tuple(each.shape) for name, each in plan.state_dict().items()}
                given = {name: array.shape for name, array in self.weights.items()}
                expect(planned == given, "the weights of the configuration")
                expect(config.hidden_size == self.size, "states of the saved size")
                with torch.random.fork_rng(devices=[]):  # initial weights are random, then replaced
                    module: nn.Module = transformers.AutoModel.from_config(config, **options)
                _leave_out_pooler(module).float()
                weights = {name: torch.from_numpy(np.array(array)) for name, array in self.weights.items()}
                module.load_state_dict(weights)
            except InputError:
                raise
            except Exception as error:  # errors of transformers have no common base class
                found = f"the encoder cannot be built ({_in_one_line(error)})"
                raise InputError(f"{found}; expected a model saved by save_pretrained") from error
        return module.eval()

    def place(self, device: str) -> None:
        """Move the encoder to a PyTorch device; it starts on the CPU."""
        self._device = device
        if self._module is not None:
            self._module.to(device)

    @contextmanager
    def training(self, device: str, *, tune: bool) -> Iterator[None]:
        """Use a device, and cache all states; with `tune`, the network runs the encoder instead."""
        before = self._device
        self.place(device)
        self._is_tuning, self._known, self._n_bytes = tune, None if tune else {}, 0
        try:
            yield
        finally:
            self._is_tuning, self._known = False, None
            self.place(before)

    def take_tuned(self, weights: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """Copy the fine-tuned encoder weights from those of a network; return the other weights."""
        self.weights = {name: np.asarray(weights[TUNED_PREFIX + name]) for name in self.weights}
        self._module = None
        return {name: array for name, array in weights.items() if not name.startswith(TUNED_PREFIX)}

    def _run(self, pieces: SubwordWindows) -> Floats:
        _, torch = _packages()
        if self._module is None:
            self._module = self.make_module().to(self._device)
        with torch.no_grad():
            found: Floats = word_states(self._module, pieces).cpu().numpy()
        return found

    def _splitting(self) -> "_Splitter":
        if self._splitter is None:
            self._splitter = _Splitter(self.tokenizer, _make_config(_packages()[0], self.config))
        return self._splitter


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """Return the folder of an encoder; raise an error if a file is missing."""
    path = Path(folder)
    for name in (CONFIG, WEIGHTS, TOKENIZER):
        if not (path / name).is_file():
            what = f"{name} is missing" if path.is_dir() else "the folder does not exist"
            expected = f"a folder with {CONFIG}, {WEIGHTS} and {TOKENIZER}, as save_pretrained writes it"
            raise FileNotFoundError(errno.ENOENT, f"{what}; expected {expected}", os.fspath(folder))
    return path


class _Splitter:
    """Splits words into subwords, each word separately.

    Attributes
    ----------
    before, after : list of int
        Special subwords at the start and end of each window.
    padding : int
        The padding subword.
    room : int
        Maximum number of subwords in a window, without special subwords.
    """

    def __init__(self, text: str, config: Any) -> None:  # noqa: ANN401
        tokenizers = require("tokenizers", EXTRA)
        try:
            self._tokenizer = tokenizers.Tokenizer.from_str(text)
        except Exception as error:  # the package has no error classes of its own
            found = f"the tokenizer cannot be read ({_in_one_line(error)})"
            raise InputError(f"{found}; expected a file written by the tokenizers package") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._cache: dict[str, list[int]] = {}
        probe = ["a"]
        inner = self._tokenizer.encode(probe, is_pretokenized=True, add_special_tokens=False).ids
        whole = self._tokenizer.encode(probe, is_pretokenized=True).ids
        n_before = next(at for at in range(len(whole) + 1) if whole[at : at + len(inner)] == inner)
        self.before, self.after = whole[:n_before], whole[n_before + len(inner) :]
        self.padding = int(getattr(config, "pad_token_id", None) or 0)
        n_positions = int(getattr(config, "max_position_embeddings", None) or MAX_WINDOW)
        self.room = min(MAX_WINDOW, n_positions - N_SPARE) - len(self.before) - len(self.after)
        if self.room < 1:
            raise InputError(
                f"the encoder has {n_positions} positions; expected enough for at least one word"
            )
        n_ids = self._tokenizer.get_vocab_size()
        if n_ids > config.vocab_size:
            found = f"the tokenizer has {n_ids:,} subwords, the encoder {config.vocab_size:,}"
            raise InputError(f"{found}; expected no more subwords in the tokenizer than in the encoder")

    def split(self, words: Sequence[str]) -> list[list[int]]:
        """Return the subwords of each word; a word without subwords gets a padding subword."""
        if len(self._cache) > MOST_CACHED_WORDS:
            self._cache.clear()
        return [self._cache.get(word) or self._split_word(word) for word in words]

    def _split_word(self, word: str) -> list[int]:
        """Return the subwords of a word and cache them."""
        encoded = self._tokenizer.encode([word], is_pretokenized=True, add_special_tokens=False)
        found = self._cache[word] = encoded.ids or [self.padding]
        return found


def word_states(module: "nn.Module", pieces: SubwordWindows) -> "Tensor":
    """Return the states of words from a PyTorch module, (sentences, longest, size); roots are all zeros."""
    import torch
    from torch.nn.functional import layer_norm

    device = next(module.parameters()).device
    n_words = pieces.shape[0] * pieces.shape[1]
    if not len(pieces.words):
        config: Any = module.config
        return torch.zeros(*pieces.shape, config.hidden_size, device=device)
    found = module(
        input_ids=torch.from_numpy(pieces.ids).to(device),
        attention_mask=torch.from_numpy(pieces.is_piece).to(device).long(),
        output_hidden_states=True,
    ).hidden_states[1:]
    layers = found[-N_LAYERS:]
    states = (sum(layers) / len(layers)).flatten(0, 1)
    words = torch.from_numpy(pieces.words).to(device)
    chosen = states[torch.from_numpy(pieces.pieces).to(device)]
    sums = states.new_zeros(n_words, states.shape[-1]).index_add(0, words, chosen)
    counts = torch.from_numpy(np.bincount(pieces.words, minlength=n_words)).to(sums)
    means = sums / counts.clamp(min=1).unsqueeze(1)
    normed = layer_norm(means.float(), means.shape[-1:]) * (counts > 0).unsqueeze(1)
    return normed.view(*pieces.shape, -1)


def to_numpy(module: "nn.Module") -> dict[str, npt.NDArray[Any]]:
    """Return the weights of a module by name."""
    return {name: each.detach().cpu().numpy() for name, each in module.state_dict().items()}


def _windows(sizes: Sequence[int], room: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield overlapping windows of words, and the words whose states each window provides.

    Windows overlap by about half; the state of a word comes from the window in which it is farthest from both
    ends.
    """
    ends = np.cumsum([0, *(min(size, room) for size in sizes)])
    first, start = 0, 0
    n_words = len(sizes)
    while start < n_words:
        last = int(np.searchsorted(ends, ends[first] + room, side="right")) - 1
        if last == n_words:
            yield first, last, start, n_words
            return
        following = max(first + 1, int(np.searchsorted(ends, ends[last] - room // 2)))
        end = max(start, (following + last) // 2)
        yield first, last, start, end
        first, start = following, end


def _packages() -> tuple[Any, Any]:
    torch = require("torch", EXTRA)
    return require("transformers", EXTRA), torch


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:  # noqa: ANN401
    """Prevent transformers from writing to the terminal."""
    logging = transformers.utils.logging
    verbosity, has_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if has_bar:
            logging.enable_progress_bar()


def _make_config(transformers: Any, config: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return a transformers configuration."""
    kind = config.get("model_type")
    known = [each for each in KINDS if each in transformers.CONFIG_MAPPING]
    if kind not in known:
        raise InputError(f"model_type is {kind!r}; expected one of {', '.join(known)}")
    with _quiet(transformers):
        return transformers.CONFIG_MAPPING[kind].from_dict(json.loads(json.dumps(config)))


def _leave_out_pooler(module: Any) -> Any:  # noqa: ANN401
    """Remove the pooling layer, which is not used."""
    if getattr(module, "pooler", None) is not None:
        module.pooler = None
    return module


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        raise FormatError(os.fspath(path), line, _in_one_line(error), "JSON in UTF-8") from error
    if not isinstance(found, dict):
        raise FormatError(os.fspath(path), 1, quote(str(found)), "a JSON object")
    return found


def _clean(config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration without references to code or packages, also in nested configurations."""
    return {
        key: _clean(value) if isinstance(value, dict) else value
        for key, value in config.items()
        if key not in NEVER_KEPT and not key.startswith("_")
    }


def _spaced(part: Any) -> Any:  # noqa: ANN401
    """Return a tokenizer that treats every word as if a space preceded it."""
    if isinstance(part, list):
        return [_spaced(each) for each in part]
    if not isinstance(part, dict):
        return part
    found = {key: _spaced(value) if key != "vocab" else value for key, value in part.items()}
    if found.get("type") == "ByteLevel" and "add_prefix_space" in found:
        found["add_prefix_space"] = True
    if found.get("type") == "Metaspace":
        found["prepend_scheme"] = "always"
    return found


def _of_file(path: Path, error: InputError) -> FormatError:
    """Turn an error about a value into an error about its file."""
    found, _, expected = str(error).partition("; expected ")
    return FormatError(os.fspath(path), 1, found, expected)


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
