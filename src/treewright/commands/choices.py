"""What shells offer for the values of options.

The names stand here once more, as importing what knows them would take longer than a user waits for an offer.
"""

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

Offer: TypeAlias = Callable[[str], list[str]]

TAGS = ("gold", "predicted")
DECODERS = ("projective", "spanning")
LIFTINGS = ("baseline", "head", "path", "head+path")
SPACES = ("subtree", "polynomial", "template")
HEAD_RULES = ("yamada-matsumoto", "collins")
FORMATS = ("conllu", "conllx", "conll2009", "brackets", "props")
STRATEGIES = ("shift-reduce", "original")
CELLS = ("gated", "tanh", "sigmoid")
OPTIMIZERS = ("adam", "momentum")
DEVICES = ("auto", "cpu", "cuda")
TREE_RERANKERS = ("sst", "none")
DERIVED_RERANKERS = ("fisher", "top", "top-rerank", "efficient-top", *TREE_RERANKERS)
KERNELS = ("st", "sst", "pt", "spt")
WORDS = ("nodes", "none", "bag")
CENTRES = ("relation", "tag", "word")
PREDICATES = ("verbs", "all")
ROLE_KERNELS = (
    *("linear", "st", "sst", "pt", "linear+st", "linear+sst", "linear+pt"),
    *("fragments", "linear+fragments", "mined"),
)
ROLE_FEATURES = ("standard", "extended")


def offer(values: Iterable[str]) -> Offer:
    """Return what offers those of some values that begin as the user has."""

    def complete(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return complete


def offer_languages(incomplete: str) -> list[str]:
    """Offer the languages that spaCy can split, if it is there, without loading it."""
    found = find_spec("spacy")
    places = list(found.submodule_search_locations or ()) if found else []
    names = sorted(path.parent.name for place in places for path in Path(place, "lang").glob("*/__init__.py"))
    return [name for name in names if name.startswith(incomplete)]


def offer_treebanks(incomplete: str) -> list[str]:
    """Offer the treebanks that can be fetched, by either of their names."""
    from treewright.data.languages import REPOSITORIES

    names = REPOSITORIES if incomplete and incomplete[0].islower() else REPOSITORIES.values()
    return [name for name in names if name.startswith(incomplete)]
