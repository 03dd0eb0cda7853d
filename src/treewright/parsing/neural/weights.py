"""The weights of a network in saved models."""

import numpy as np

from treewright.model import State, expect
from treewright.parsing.neural.inference import Weights
from treewright.parsing.neural.rounding import UNITS, Floats, HalfPrecision


class NetworkWeights:
    """Weights of a network, as a field of a model, in half precision (lower in compact files)."""

    item = HalfPrecision()

    def put(self, state: State, name: str, value: Weights) -> None:
        """Add the weights to a saved state."""
        for key, array in value.items():
            self.item.put(state, f"{name}.{key}", array)

    def take(self, state: State, name: str) -> dict[str, Floats]:
        """Remove and return the weights from a saved state."""
        prefix = f"{name}."
        keys = [key for key in state.arrays if key.startswith(prefix) and not key.endswith(UNITS)]
        expect(bool(keys), f"the weights of {name}")
        return {key.removeprefix(prefix): self.item.take(state, key) for key in keys}


def round_weights(weights: Weights) -> dict[str, Floats]:
    """Round weights to the precision of saved models, so that saving does not change scores."""
    return {key: array.astype(np.float16).astype(np.float32) for key, array in weights.items()}
