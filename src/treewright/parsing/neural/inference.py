"""A trained network, run without PyTorch: sentences in, scores of arcs and relations out.

Sentences of similar length are read together, so that nearly all of the work is products of matrices.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright.data.deptree import DepTree
from treewright.parsing.neural.inputs import COLUMNS, Padded, WordInputs

Floats = npt.NDArray[np.float32]
Weights = Mapping[str, Floats]
"""Weights of a network by the names that `treewright.parsing.neural.network` gives them."""
SENTENCES_AT_A_TIME = 64
SLOPE = np.float32(0.1)


class ReadSentence(NamedTuple):
    """What a network finds in a sentence; row 0 is the root.

    Attributes
    ----------
    arcs : array, (n + 1, n + 1)
        Scores of arcs, heads in rows.
    label_heads, label_modifiers : array, (n + 1, size)
        What relations are scored by.
    """

    arcs: Floats
    label_heads: Floats
    label_modifiers: Floats


def read_sentences(weights: Weights, inputs: WordInputs, trees: Sequence[DepTree]) -> list[ReadSentence]:
    """Return what the network finds in each sentence."""
    order = np.argsort([len(tree) for tree in trees], kind="stable").tolist()
    found: dict[int, ReadSentence] = {}
    for start in range(0, len(order), SENTENCES_AT_A_TIME):
        numbers = order[start : start + SENTENCES_AT_A_TIME]
        batch = inputs.pad([trees[number] for number in numbers])
        for number, one in zip(numbers, _read_batch(weights, batch), strict=True):
            found[number] = one
    return [found[number] for number in range(len(trees))]


def label_scores(weights: Weights, sentence: ReadSentence, heads: npt.NDArray[np.int32]) -> Floats:
    """Return the scores of the relations of each word to its head, (n, n_labels)."""
    one = np.ones((len(heads), 1), dtype=np.float32)
    above = np.hstack([sentence.label_heads[heads], one])
    below = np.hstack([sentence.label_modifiers[1:], one])
    tensor = weights["label_tensor"]
    products = below @ tensor.transpose(1, 0, 2).reshape(tensor.shape[1], -1)
    found: Floats = np.einsum("nly,ny->nl", products.reshape(len(heads), -1, tensor.shape[2]), above)
    return found


def encode_batch(weights: Weights, batch: Padded) -> Floats:
    """Return the states of words, (sentences, longest, 2 * units), undefined beyond the end of a sentence."""
    parts = [_read_forms(weights, batch)]
    for name in COLUMNS:
        if f"embeddings.{name}.weight" in weights:
            parts.append(weights[f"embeddings.{name}.weight"][batch.columns[name]])
    if "embeddings.feats.weight" in weights:
        parts.append(weights["embeddings.feats.weight"][batch.feats].sum(axis=2))
    states = np.concatenate(parts, axis=2)
    n_layers = sum(name.endswith("weight_ih_l0") for name in weights)
    for layer in range(n_layers):
        ways = [_run_lstm(weights, layer, suffix, states, batch.lengths) for suffix in ("", "_reverse")]
        states = np.concatenate(ways, axis=2)
    return states


def _read_batch(weights: Weights, batch: Padded) -> list[ReadSentence]:
    states = encode_batch(weights, batch)
    heads, modifiers, label_heads, label_modifiers = (
        _rectify(states @ weights[f"{name}.0.weight"].T + weights[f"{name}.0.bias"])
        for name in ("arc_head", "arc_modifier", "label_head", "label_modifier")
    )
    arcs = heads @ (modifiers @ weights["arc_matrix"] + weights["arc_bias"]).transpose(0, 2, 1)
    return [
        ReadSentence(arcs[at, :n, :n], label_heads[at, :n], label_modifiers[at, :n])
        for at, n in enumerate(batch.lengths.tolist())
    ]


def _read_forms(weights: Weights, batch: Padded) -> Floats:
    """Return the vectors of forms, made of their characters."""
    is_character = (batch.characters > 0)[:, :, np.newaxis]
    vectors = weights["characters.weight"][batch.characters]
    vectors = _rectify(_convolve(vectors, weights["narrow.weight"], weights["narrow.bias"])) * is_character
    found = _convolve(vectors, weights["wide.weight"], weights["wide.bias"])
    forms: Floats = np.where(is_character, found, -np.inf).max(axis=1)
    return forms[batch.forms]


def _convolve(vectors: Floats, filters: Floats, bias: Floats) -> Floats:
    """Return filters over the neighbouring rows of vectors, (n, length, size), 0 beyond the ends."""
    half = filters.shape[2] // 2
    length = vectors.shape[1]
    padded = np.pad(vectors, ((0, 0), (half, half), (0, 0)))
    found: Floats = bias + sum(
        padded[:, at : at + length] @ filters[:, :, at].T for at in range(filters.shape[2])
    )
    return found


def _run_lstm(
    weights: Weights, layer: int, suffix: str, inputs: Floats, lengths: npt.NDArray[np.int32]
) -> Floats:
    """Return the states of one LSTM, (sentences, longest, units); one with a suffix reads from the end."""
    name = f"lstms.{layer}."
    into, back = weights[f"{name}weight_ih_l0{suffix}"], weights[f"{name}weight_hh_l0{suffix}"]
    bias = weights[f"{name}bias_ih_l0{suffix}"] + weights[f"{name}bias_hh_l0{suffix}"]
    n_sentences, longest, _ = inputs.shape
    units = back.shape[1]
    gates = inputs @ into.T + bias
    states = np.zeros((n_sentences, longest, units), dtype=np.float32)
    hidden = np.zeros((n_sentences, units), dtype=np.float32)
    memory = np.zeros_like(hidden)
    order = range(longest) if not suffix else range(longest - 1, -1, -1)
    for at in order:
        now = gates[:, at] + hidden @ back.T
        enter, forget, output = (_sigmoid(now[:, units * k : units * (k + 1)]) for k in (0, 1, 3))
        memory = forget * memory + enter * np.tanh(now[:, 2 * units : 3 * units])
        hidden = output * np.tanh(memory)
        if suffix:  # beyond the end, nothing is read
            is_word = (at < lengths)[:, np.newaxis]
            memory, hidden = memory * is_word, hidden * is_word
        states[:, at] = hidden
    return states


def _sigmoid(values: Floats) -> Floats:
    found: Floats = np.float32(0.5) * (np.tanh(np.float32(0.5) * values) + np.float32(1))
    return found


def _rectify(values: Floats) -> Floats:
    found: Floats = np.maximum(values, SLOPE * values)
    return found
