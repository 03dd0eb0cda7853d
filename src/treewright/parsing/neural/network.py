"""The PyTorch network that scores arcs and relations (Dozat & Manning 2017).

The vectors of a word's form, characters, lemma, tag and features are concatenated. A bidirectional LSTM
encodes them. Biaffine functions of its states score each pair of words as head and modifier, and each
relation between them. Only training imports this module: parsing does not need PyTorch.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from treewright.parsing.neural.inputs import COLUMNS, Padded
from treewright.parsing.neural.pretrained_layers import PretrainedLayers
from treewright.parsing.neural.sizes import (
    CHARACTER_SIZE,
    EMBEDDING_SIZES,
    FORM_SIZE,
    PART_ROLES,
    SLOPE,
    WINDOW,
    BiaffineSettings,
)


class SentenceEncoder(nn.Module):
    """Base class of networks that encode sentences.

    Parameters
    ----------
    sizes : dict of str to int
        Sizes of the vocabularies and pretrained vectors; unused inputs have size 0.
    units : int
        Number of LSTM units in each direction.
    layers : int
        Number of LSTM layers.
    dropout : float
        Dropout of the inputs of each layer.

    Attributes
    ----------
    width : int
        Size of the states of words.
    """

    def __init__(self, sizes: dict[str, int], *, units: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.embeddings = nn.ModuleDict(
            {
                name: _embedding(sizes[name], size, is_bag=name == "feats")
                for name, size in EMBEDDING_SIZES.items()
                if sizes[name]
            }
        )
        # The vector of padding is 0, so that a form does not depend on the length of others.
        self.characters = _embedding(sizes["characters"], CHARACTER_SIZE, is_bag=True)
        padding = WINDOW // 2
        self.narrow = nn.Conv1d(CHARACTER_SIZE, FORM_SIZE, WINDOW, padding=padding)
        self.wide = nn.Conv1d(FORM_SIZE, FORM_SIZE, WINDOW, padding=padding)
        self.pretrained = PretrainedLayers(sizes)
        embedded = sum(EMBEDDING_SIZES[name] for name in self.embeddings)
        self.width = FORM_SIZE + embedded + self.pretrained.width
        self.lstms = nn.ModuleList()
        for _ in range(layers):
            self.lstms.append(nn.LSTM(self.width, units, bidirectional=True, batch_first=True))
            self.width = 2 * units

    def encode(self, batch: Padded) -> Tensor:
        """Return the states of words, (sentences, longest, 2 * units)."""
        device = self.characters.weight.device
        parts = [self._read_forms(batch, device)]
        for name in COLUMNS:
            if name in self.embeddings:
                parts.append(self.embeddings[name](to_device(batch.columns[name], device)))
        if "feats" in self.embeddings:
            parts.append(self.embeddings["feats"](to_device(batch.feats, device)).sum(dim=2))
        parts += self.pretrained.read(batch, device)
        padded = torch.cat([self._drop_words(part) for part in parts], dim=-1)
        steps = TimeSteps.of(batch.lengths, padded.shape[1], device)
        states = padded.flatten(0, 1).index_select(0, steps.rows)
        for lstm in self.lstms:
            states = self._drop_shared(states, steps)
            states = lstm(nn.utils.rnn.PackedSequence(states, steps.sizes))[0].data
        found = states.new_zeros(padded.shape[0] * padded.shape[1], self.width)
        found = found.index_copy(0, steps.rows, self._drop_shared(states, steps))
        return found.view(*padded.shape[:2], self.width)

    def _read_forms(self, batch: Padded, device: torch.device) -> Tensor:
        """Return the vectors of forms, computed from their characters."""
        characters = to_device(batch.characters, device)
        vectors = self.characters(characters).transpose(1, 2)
        is_character = (characters > 0).unsqueeze(1)
        vectors = nn.functional.leaky_relu(self.narrow(vectors), SLOPE) * is_character
        found = self.wide(vectors).masked_fill(~is_character, -torch.inf).amax(dim=2)
        forms: Tensor = found[to_device(batch.forms, device)]
        return forms

    def _drop_words(self, vectors: Tensor) -> Tensor:
        """Drop all inputs of random words."""
        if not self.training:
            return vectors
        kept = torch.rand(*vectors.shape[:2], 1, device=vectors.device) >= self.dropout
        return vectors * kept / (1 - self.dropout)

    def _drop_shared(self, vectors: Tensor, steps: "TimeSteps | None" = None) -> Tensor:
        """Drop random units, the same units for all words of a sentence.

        Vectors are padded, (sentences, longest, units), or those of the words of `steps`, (words, units).
        """
        if not self.training:
            return vectors
        n_sentences = len(vectors) if steps is None else int(steps.sizes[0])
        kept = torch.rand(n_sentences, 1, vectors.shape[-1], device=vectors.device) >= self.dropout
        if steps is not None:
            kept = kept.squeeze(1).index_select(0, steps.sentences)
        return vectors * kept / (1 - self.dropout)


class TimeSteps(NamedTuple):
    """The words of a batch in the order in which an LSTM reads them: first words, second words, and so on.

    PyTorch's functions for this copy each time step separately, which is slow on a GPU.

    Attributes
    ----------
    rows : Tensor, (n_words,)
        Rows of the padded batch, (sentences * longest).
    sentences : Tensor, (n_words,)
        Sentence of each word.
    sizes : Tensor, (longest,)
        Number of sentences that have a word at each time step, on the CPU.
    """

    rows: Tensor
    sentences: Tensor
    sizes: Tensor

    @classmethod
    def of(cls, lengths: npt.NDArray[np.int32], longest: int, device: torch.device) -> "TimeSteps":
        """Return the time steps of sentences of these lengths; longer sentences come first."""
        order = np.argsort(-lengths, kind="stable")
        is_word = np.arange(longest)[:, None] < lengths[order]
        times, places = np.nonzero(is_word)
        sentences = order[places]
        rows = sentences * longest + times
        sizes = torch.from_numpy(is_word.sum(axis=1))
        return cls(to_device(rows, device), to_device(sentences, device), sizes)


class ParserNetwork(SentenceEncoder):
    """Scores arcs and relations.

    Parameters
    ----------
    sizes : dict of str to int
        Sizes of the vocabularies; unused inputs have size 0.
    n_labels : int
        Number of relations.
    settings : BiaffineSettings
        Sizes of the network.
    """

    def __init__(self, sizes: dict[str, int], n_labels: int, settings: BiaffineSettings) -> None:
        super().__init__(sizes, units=settings.units, layers=settings.layers, dropout=settings.dropout)
        width = self.width
        self.arc_head, self.arc_modifier = _layer(width, settings.arc_size), _layer(width, settings.arc_size)
        self.label_head = _layer(width, settings.label_size)
        self.label_modifier = _layer(width, settings.label_size)
        self.arc_matrix = nn.Parameter(torch.zeros(settings.arc_size, settings.arc_size))
        self.arc_bias = nn.Parameter(torch.zeros(settings.arc_size))
        size = settings.label_size
        self.label_tensor = nn.Parameter(torch.zeros(n_labels, size + 1, size + 1))
        self.has_parts = settings.part_size > 0
        if self.has_parts:
            self.parts = nn.ModuleDict(
                {
                    f"{kind}_{role}": _layer(width, settings.part_size)
                    for kind, roles in PART_ROLES.items()
                    for role in roles
                }
            )
            self.absent = nn.Parameter(torch.ones(settings.part_size))
            self.pair_weights = nn.Parameter(torch.zeros(settings.part_size))
            self.grandchild_weights = nn.Parameter(torch.zeros(settings.part_size))

    def score_arcs(self, states: Tensor) -> Tensor:
        """Return the scores of arcs, (sentences, modifiers, heads)."""
        heads = self._drop_shared(self.arc_head(states))
        modifiers = self._drop_shared(self.arc_modifier(states))
        return (modifiers @ self.arc_matrix + self.arc_bias) @ heads.transpose(1, 2)

    def score_labels(self, states: Tensor, heads: Tensor) -> Tensor:
        """Return the scores of the relations of words to the given heads, (sentences, longest, labels)."""
        above = self._drop_shared(self.label_head(states))
        below = self._drop_shared(self.label_modifier(states))
        above = above.gather(1, heads.unsqueeze(-1).expand(-1, -1, above.shape[-1]))
        one = torch.ones_like(above[..., :1])
        above, below = torch.cat([above, one], dim=-1), torch.cat([below, one], dim=-1)
        return torch.einsum("bnx,lxy,bny->bnl", below, self.label_tensor, above)

    def read_parts(self, states: Tensor) -> dict[str, Tensor]:
        """Return the vectors of words in each role, (sentences, longest + 1, size).

        The last position stands for no word.
        """
        last = self.absent.expand(len(states), 1, -1)
        return {
            name: torch.cat([self._drop_shared(layer(states)), last], dim=1)
            for name, layer in self.parts.items()
        }

    def score_parts(self, kind: str, vectors: dict[str, Tensor], number: int, words: Tensor) -> Tensor:
        """Return the scores of the parts of a sentence; rows of `words` are their words, -1 means none."""
        product: Tensor = self.get_parameter(f"{kind}_weights")
        for column, role in enumerate(PART_ROLES[kind]):
            product = product * vectors[f"{kind}_{role}"][number, words[:, column]]
        return product.sum(dim=1)


def to_device(array: npt.NDArray[np.integer[Any]], device: torch.device | str) -> Tensor:
    """Return integers on a device, without waiting for the work that a GPU still has to do.

    On the CPU, the result may share the memory of the array.
    """
    found = torch.from_numpy(array.astype(np.int64, copy=False))
    if torch.device(device).type != "cuda":
        return found.to(device)
    return found.pin_memory().to(device, non_blocking=True)


def to_arrays(network: nn.Module) -> dict[str, npt.NDArray[np.float32]]:
    """Return copies of the weights of a network, by name."""
    return {name: each.detach().float().cpu().numpy().copy() for name, each in network.state_dict().items()}


def _embedding(n: int, size: int, *, is_bag: bool = False) -> nn.Embedding:
    """Return a randomly initialised embedding; with `is_bag`, number 0 is padding."""
    found = nn.Embedding(n, size, padding_idx=0 if is_bag else None)
    nn.init.normal_(found.weight, std=size**-0.5)
    if is_bag:
        nn.init.zeros_(found.weight[0])
    return found


def _layer(width: int, size: int) -> nn.Sequential:
    linear = nn.Linear(width, size)
    nn.init.orthogonal_(linear.weight)
    nn.init.zeros_(linear.bias)
    return nn.Sequential(linear, nn.LeakyReLU(SLOPE))
