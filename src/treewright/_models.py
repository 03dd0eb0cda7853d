"""The models that can be saved, and loading any of them."""

import importlib
import os
from typing import Any

from treewright._soundness import check_state
from treewright.errors import FormatError, MissingDependencyError
from treewright.model import REGISTRY, Model
from treewright.model import load as load_model
from treewright.persist import load_state

MODELS = {
    "CandidateReranker": "rerank.any_candidates",
    "ConjunctionClassifier": "mining.classifier",
    "ConjunctionMiner": "mining.miner",
    "ConstituentParser": "parsing.constituent.parser",
    "ConstituentReranker": "rerank.constituents",
    "DependencyParser": "parsing.dependency.parser",
    "DependencyReranker": "rerank.reranker",
    "LeftCornerParser": "parsing.leftcorner.parser",
    "LinearizedTreeClassifier": "kernels.linearize",
    "L1BoostedTrees": "mining.boosted",
    "RoleClassifier": "srl.roles",
    "RoleLabeler": "srl.labeler",
    "Tagger": "tagging.tagger",
    "TreeKernelClassifier": "kernels.machines",
    "TreeKernelRegressor": "kernels.machines",
}
"""Where the class of each kind of model is."""


def load(path: str | os.PathLike[str]) -> Any:  # noqa: ANN401
    """Load a model that was written by its `save`.

    Raises
    ------
    FormatError
        For a file that is no model, is damaged, or comes from a newer treewright.
    """
    state = load_state(path)
    if state.kind in REGISTRY:
        return load_model(path)
    if state.kind not in MODELS:
        raise FormatError(os.fspath(path), 1, f"a file of kind {state.kind!r}", f"one of {', '.join(MODELS)}")
    module = importlib.import_module(f"treewright.{MODELS[state.kind]}")
    try:
        kind = getattr(module, state.kind)
        if not issubclass(kind, Model):
            check_state(state)
        return kind.from_state(state)
    except MissingDependencyError:
        raise
    except Exception as error:  # values that somebody has changed can go wrong anywhere
        found = f"a damaged {state.kind} ({' '.join(str(error).split())[:200]})"
        raise FormatError(os.fspath(path), 1, found, "a model as it was saved") from error
