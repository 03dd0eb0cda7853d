"""The shapes that the weights of an encoder must have, so that a file of any origin can be checked."""

from collections.abc import Mapping

from treewright.model import expect
from treewright.parsing.neural.inference import Weights

Shape = tuple[int, ...]


def encoder_shapes(
    weights: Weights, sizes: Mapping[str, int], *, units: int, layers: int
) -> dict[str, Shape]:
    """Return the shapes of the weights of an encoder with these vocabularies, units and layers, by name.

    The sizes of embeddings and filters are those that `weights` has.

    Raises
    ------
    InputError
        If a weight without which the others have no size is missing.
    """
    embedded = {
        f"embeddings.{name}.weight": size for name, size in sizes.items() if name != "characters" and size
    }
    n_dimensions = {**dict.fromkeys(embedded, 2), "characters.weight": 2, "narrow.weight": 3}
    for name, expected in n_dimensions.items():
        is_there = name in weights and weights[name].ndim == expected
        expect(is_there, f"a weight {name} of {expected} dimensions")
    filters, window = weights["narrow.weight"].shape[0], weights["narrow.weight"].shape[2]
    expect(window % 2 == 1, "an odd number of characters in a window")
    character = weights["characters.weight"].shape[1]
    shapes: dict[str, Shape] = {name: (size, weights[name].shape[1]) for name, size in embedded.items()}
    width = filters + sum(shape[1] for shape in shapes.values())
    shapes |= {
        "characters.weight": (sizes["characters"], character),
        "narrow.weight": (filters, character, window),
        "narrow.bias": (filters,),
        "wide.weight": (filters, filters, window),
        "wide.bias": (filters,),
    }
    for layer in range(layers):
        for suffix in ("l0", "l0_reverse"):
            shapes |= {
                f"lstms.{layer}.weight_ih_{suffix}": (4 * units, width),
                f"lstms.{layer}.weight_hh_{suffix}": (4 * units, units),
                f"lstms.{layer}.bias_ih_{suffix}": (4 * units,),
                f"lstms.{layer}.bias_hh_{suffix}": (4 * units,),
            }
        width = 2 * units
    return shapes
