"""The sizes of a network and the shapes of its weights."""

from collections.abc import Mapping
from dataclasses import dataclass

from treewright.parsing.neural.pretrained import CHANNEL_SIZES, PREFIX

Shape = tuple[int, ...]
EMBEDDING_SIZES = {"word": 100, "lemma": 64, "upos": 32, "xpos": 32, "feats": 64}
CHARACTER_SIZE, FORM_SIZE = 32, 100
"""Sizes of the vectors of characters, and of forms computed from them."""
WINDOW = 3
"""Width of a convolution filter, in characters."""
SLOPE = 0.1
"""Slope of the activation function for negative values."""
PART_ROLES = {"pair": ("head", "sibling", "modifier"), "grandchild": ("top", "head", "modifier")}
"""Roles of the words of second-order parts, in the order of `Lattice.words`."""


@dataclass(frozen=True)
class BiaffineSettings:
    """The sizes of a network.

    Attributes
    ----------
    units : int
        Number of LSTM units in each direction.
    layers : int
        Number of LSTM layers.
    arc_size, label_size : int
        Sizes of the vectors of heads and modifiers, for arcs and for relations.
    dropout : float
        Dropout of the inputs of each layer.
    part_size : int
        Size of the vectors of words in second-order parts; 0 if there are no such parts.
    """

    units: int
    layers: int
    arc_size: int
    label_size: int
    dropout: float
    part_size: int = 0


def encoder_shapes(sizes: Mapping[str, int], *, units: int, layers: int) -> dict[str, Shape]:
    """Return the shapes of the weights of a network's encoder, by name.

    Parameters
    ----------
    sizes : mapping of str to int
        Sizes of the vocabularies and pretrained vectors; unused inputs have size 0.
    units : int
        Number of LSTM units in each direction.
    layers : int
        Number of LSTM layers.
    """
    used = {name: size for name, size in EMBEDDING_SIZES.items() if sizes[name]}
    found: dict[str, Shape] = {
        f"embeddings.{name}.weight": (sizes[name], size) for name, size in used.items()
    }
    found |= {
        "characters.weight": (sizes["characters"], CHARACTER_SIZE),
        "narrow.weight": (FORM_SIZE, CHARACTER_SIZE, WINDOW),
        "narrow.bias": (FORM_SIZE,),
        "wide.weight": (FORM_SIZE, FORM_SIZE, WINDOW),
        "wide.bias": (FORM_SIZE,),
    }
    width, gates = FORM_SIZE + sum(used.values()), 4 * units
    for name, size in CHANNEL_SIZES.items():
        if sizes.get(name):
            found |= {f"{PREFIX}{name}.weight": (size, sizes[name]), f"{PREFIX}{name}.bias": (size,)}
            width += size
    for layer in range(layers):
        for suffix in ("l0", "l0_reverse"):
            found |= {
                f"lstms.{layer}.weight_ih_{suffix}": (gates, width),
                f"lstms.{layer}.weight_hh_{suffix}": (gates, units),
                f"lstms.{layer}.bias_ih_{suffix}": (gates,),
                f"lstms.{layer}.bias_hh_{suffix}": (gates,),
            }
        width = 2 * units
    return found


def weight_shapes(sizes: Mapping[str, int], n_labels: int, settings: BiaffineSettings) -> dict[str, Shape]:
    """Return the shapes of the weights of a network that scores arcs and relations, by name."""
    found = encoder_shapes(sizes, units=settings.units, layers=settings.layers)
    width = 2 * settings.units
    for kind, size in (("arc", settings.arc_size), ("label", settings.label_size)):
        for role in ("head", "modifier"):
            found |= {f"{kind}_{role}.0.weight": (size, width), f"{kind}_{role}.0.bias": (size,)}
    part_size = settings.part_size
    if part_size:
        for kind, roles in PART_ROLES.items():
            for role in roles:
                name = f"parts.{kind}_{role}.0"
                found |= {f"{name}.weight": (part_size, width), f"{name}.bias": (part_size,)}
            found[f"{kind}_weights"] = (part_size,)
        found["absent"] = (part_size,)
    size = settings.label_size + 1
    return found | {
        "arc_matrix": (settings.arc_size, settings.arc_size),
        "arc_bias": (settings.arc_size,),
        "label_tensor": (n_labels, size, size),
    }
