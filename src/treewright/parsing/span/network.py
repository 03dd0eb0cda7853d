"""The PyTorch network that scores the labels of spans (Stern et al. 2017; Kitaev & Klein 2018).

A bidirectional LSTM encodes the words. A span is represented by the differences between the forward states,
and between the backward states, at its ends. A normalised hidden layer over this representation scores every
label. The layer before normalisation is linear in the states, so it is computed once per boundary between
words, and the vectors of two boundaries are subtracted. Only training imports this module: parsing does not
need PyTorch.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from treewright._typing import Integers
from treewright.parsing.neural.network import SentenceEncoder, to_device
from treewright.parsing.neural.sizes import SLOPE
from treewright.parsing.span.inference import EPSILON


@dataclass(frozen=True)
class SpanNetworkSettings:
    """The sizes of a network.

    Attributes
    ----------
    units : int
        Number of LSTM units in each direction.
    layers : int
        Number of LSTM layers.
    dropout : float
        Dropout of the inputs of each layer.
    span_size : int
        Size of the vectors of spans.
    """

    units: int
    layers: int
    span_size: int
    dropout: float


class SpanNetwork(SentenceEncoder):
    """Scores the labels of spans.

    Parameters
    ----------
    sizes : dict of str to int
        Sizes of the vocabularies; unused inputs have size 0.
    n_labels : int
        Number of labels, not counting the empty label, whose score is 0.
    settings : SpanNetworkSettings
        Sizes of the network.
    """

    def __init__(self, sizes: dict[str, int], n_labels: int, settings: SpanNetworkSettings) -> None:
        super().__init__(sizes, units=settings.units, layers=settings.layers, dropout=settings.dropout)
        self.units = settings.units
        self.boundary = nn.Linear(self.width, settings.span_size, bias=False)
        nn.init.orthogonal_(self.boundary.weight)
        self.span_bias = nn.Parameter(torch.zeros(settings.span_size))
        self.span_norm = nn.LayerNorm(settings.span_size, eps=EPSILON)
        self.label = nn.Linear(settings.span_size, n_labels)
        nn.init.zeros_(self.label.weight)
        nn.init.zeros_(self.label.bias)

    def score_spans(self, states: Tensor, starts: Integers, ends: Integers) -> Tensor:
        """Return the scores of labels, (spans, labels).

        Parameters
        ----------
        states : Tensor, (sentences, longest, 2 * units)
            States of the root and the words.
        starts, ends : array of int, (spans,)
            Flat rows in `states` of the word before each span, and of its last word.
        """
        forward, backward = states[..., : self.units], states[..., self.units :]
        following = nn.functional.pad(backward[:, 1:], (0, 0, 0, 1))
        boundaries = self.boundary(torch.cat([forward, -following], dim=-1)).flatten(0, 1)
        first, last = (to_device(each, states.device) for each in (starts, ends))
        hidden = boundaries.index_select(0, last) - boundaries.index_select(0, first) + self.span_bias
        hidden = nn.functional.leaky_relu(self.span_norm(hidden), SLOPE)
        scores: Tensor = self.label(nn.functional.dropout(hidden, self.dropout, self.training))
        return scores
