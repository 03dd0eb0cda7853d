"""What a network takes from word vectors and a pretrained encoder, run without PyTorch.

Each goes through a linear layer and stands beside the embeddings that the network learns.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from treewright.model import expect

if TYPE_CHECKING:  # inputs know what is pretrained, not the other way round
    from treewright.parsing.neural.inputs import Padded, WordInputs

Floats = npt.NDArray[np.float32]
CHANNEL_SIZES = {"vectors": 100, "encoder": 200}
"""Of what the network takes from each."""
PREFIX, TUNED_PREFIX = "pretrained.", "pretrained.module."
"""Of the names of these weights, and of those of an encoder that is tuned."""


def read_pretrained(weights: Mapping[str, Floats], batch: "Padded") -> list[Floats]:
    """Return what the network takes, (sentences, longest, size) each; nothing where nothing is pretrained."""
    found: list[Floats] = []
    if batch.vectors is not None:
        found.append(_project(weights, "vectors", batch.vectors)[batch.forms])
    if batch.states is not None:
        found.append(_project(weights, "encoder", batch.states))
    return found


def check_pretrained(weights: Mapping[str, Floats], inputs: "WordInputs") -> None:
    """Check that a network that was loaded fits what is pretrained."""
    given = {"vectors": inputs.vectors, "encoder": inputs.encoder}
    for name, size in CHANNEL_SIZES.items():
        one = given[name]
        shapes = {
            part: weights[key].shape
            for part in ("weight", "bias")
            if (key := f"{PREFIX}{name}.{part}") in weights
        }
        expected = {"weight": (size, one.size), "bias": (size,)} if one is not None else {}
        expect(shapes == expected, f"a layer for {name} of {size} units" if expected else f"no {name}")


def _project(weights: Mapping[str, Floats], name: str, values: Floats) -> Floats:
    found: Floats = values @ weights[f"{PREFIX}{name}.weight"].T + weights[f"{PREFIX}{name}.bias"]
    return found
