"""The weights of a network as they are saved."""

import numpy as np
import numpy.typing as npt

from treewright.model import Array, State, expect
from treewright.parsing.neural.inference import Weights

Floats = npt.NDArray[np.float32]
LARGEST = 6e4
"""Weight that half precision can hold."""


class NetworkWeights:
    """The weights of a network as a field of a model, in half precision."""

    item = Array("f", n_dimensions=None, low=-LARGEST, high=LARGEST)

    def put(self, state: State, name: str, value: Weights) -> None:
        """Add the weights."""
        state.arrays |= {f"{name}.{key}": array.astype(np.float16) for key, array in value.items()}

    def take(self, state: State, name: str) -> dict[str, Floats]:
        """Remove and return the weights."""
        prefix = f"{name}."
        keys = [key for key in state.arrays if key.startswith(prefix)]
        expect(bool(keys), f"the weights of {name}")
        return {key.removeprefix(prefix): self.item.take(state, key).astype(np.float32) for key in keys}


def round_weights(weights: Weights) -> dict[str, Floats]:
    """Return weights in the precision that they are saved in, so that saving changes no score."""
    return {key: array.astype(np.float16).astype(np.float32) for key, array in weights.items()}
