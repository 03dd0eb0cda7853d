"""The PyTorch layers that connect word vectors or a pretrained encoder to a network."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from treewright.parsing.neural.encoders import word_states
from treewright.parsing.neural.inputs import Padded
from treewright.parsing.neural.pretrained import CHANNEL_SIZES


class PretrainedLayers(nn.Module):
    """Linear layers over pretrained inputs.

    Parameters
    ----------
    sizes : mapping of str to int
        Sizes of word vectors ("vectors") and of encoder states ("encoder"); the size of an unused input is 0
        or missing.
    """

    vectors: nn.Linear
    encoder: nn.Linear
    module: nn.Module

    def __init__(self, sizes: Mapping[str, int]) -> None:
        super().__init__()
        for name, size in CHANNEL_SIZES.items():
            if sizes.get(name):
                layer = nn.Linear(sizes[name], size)
                nn.init.orthogonal_(layer.weight)
                nn.init.zeros_(layer.bias)
                self.add_module(name, layer)

    @property
    def width(self) -> int:
        """Total output size of all layers."""
        return sum(size for name, size in CHANNEL_SIZES.items() if hasattr(self, name))

    def tune(self, module: nn.Module) -> None:
        """Run an encoder as part of the network, so that training changes it."""
        self.module = module

    def read(self, batch: Padded, device: torch.device) -> Iterator[Tensor]:
        """Yield the outputs of the layers, (sentences, longest, size) each."""
        if batch.vectors is not None:
            forms = torch.from_numpy(batch.forms).long().to(device)
            yield self.vectors(torch.from_numpy(batch.vectors).to(device))[forms]
        if batch.pieces is not None:
            yield self.encoder(word_states(self.module, batch.pieces))
        elif batch.states is not None:
            yield self.encoder(torch.from_numpy(batch.states).to(device))
