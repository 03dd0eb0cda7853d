"""Argument identification: which constituents are arguments of a predicate."""

from collections.abc import Callable, Mapping, Sequence

from treewright.data.consttree import ConstTree
from treewright.data.propbank import Proposition
from treewright.data.templates import TemplateLanguage
from treewright.progress import track
from treewright.srl.arguments import VERB, Argument, Shape, find_candidates, iter_shapes
from treewright.srl.codes import Codes, encode, join_codes
from treewright.srl.features import NOTHING, VALUES, ArgumentView, read_templates, view_argument

TEMPLATES = """
object
governor
subject
between
complement
predicate object
predicate object phrase
predicate object position
predicate complement
predicate complement phrase
predicate subcategorisation
complement path
object phrase position
governor path
governor phrase position
governor between phrase
governor subject path
subject path
subject half_path
subject between phrase
between path
between phrase position
between voice subject
predicate_tag path
predicate_tag subject between phrase
"""
"""Features of candidate constituents, in addition to those of arguments."""
LIMIT = 3
"""Maximum count of phrases; larger counts are reduced to it."""


def clause_of(view: ArgumentView) -> int:
    """Return the lowest ancestor of the predicate that is not a verb phrase, or the root."""
    way = view.shape.path_to_root(view.verb)[1:]
    return next((node for node in way if view.label(node) != "VP"), way[-1] if way else view.verb)


def object_noun(view: ArgumentView) -> str:
    """Return the head noun of the object, which disambiguates light verbs."""
    behind = (node for node in _sisters(view) if view.shape.starts[node] > view.argument.predicate)
    return next((view.word(view.shape.heads[node]) for node in behind if view.label(node) == "NP"), NOTHING)


def complement(view: ArgumentView) -> str:
    """Return the tag of the main verb if the predicate is an auxiliary verb."""
    behind = (node for node in _sisters(view) if view.shape.starts[node] > view.argument.predicate)
    return next((view.tag(view.shape.heads[node]) for node in behind if view.label(node) == "VP"), NOTHING)


def _sisters(view: ArgumentView) -> list[int]:
    parent = view.shape.parents[view.verb]
    return view.shape.children[parent] if parent >= 0 else []


def governor(view: ArgumentView) -> str:
    """Return the verb that governs the clause of the predicate."""
    shape = view.shape
    for node in shape.path_to_root(clause_of(view))[1:]:
        if view.label(node) == "VP":
            verbs = [child for child in shape.children[node] if view.label(child).startswith(VERB)]
            return view.word(shape.starts[verbs[0]]) if verbs else NOTHING
    return NOTHING


def subject(view: ArgumentView) -> str:
    """Return the labels of the predicate's clause and of its parent, and whether the clause has a subject."""
    shape, clause = view.shape, clause_of(view)
    nouns = [node for node in shape.children[clause] if view.label(node) == "NP"]
    is_there = any(shape.ends[node] <= view.argument.predicate for node in nouns)
    return f"{view.label(clause)} {view.label(shape.parents[clause])} {is_there}"


def between(view: ArgumentView) -> str:
    """Return the number of phrases with the argument's label between the argument and the predicate."""
    shape, node = view.shape, view.verb
    nearer = 0
    start, at = shape.starts[view.node], view.argument.predicate
    for above in shape.path_to_root(view.verb)[1:]:
        for child in shape.children[above]:
            place = shape.starts[child]
            is_nearer = start < place < at if start < at else at < place < start
            nearer += is_nearer and child != node and view.label(child) == view.label(view.node)
        node = above
        if above == view.top:
            break
    return str(min(nearer, LIMIT))


ALL_VALUES: dict[str, Callable[[ArgumentView], str]] = {
    **VALUES,
    "object": object_noun,
    "complement": complement,
    "governor": governor,
    "subject": subject,
    "between": between,
}
"""The functions that compute the features, by name."""
LANGUAGE = TemplateLanguage(ALL_VALUES)


def list_candidates(tree: ConstTree, shape: Shape, proposition: Proposition) -> list[Argument]:
    """Return the candidate arguments of a predicate; the highest of several nodes with the same words."""
    places: dict[tuple[int, int], int] = {}
    for node in sorted(find_candidates(shape, proposition.predicate)):
        places[shape.starts[node], shape.ends[node]] = node
    return [Argument(tree, proposition.predicate, node, None, proposition.lemma) for node in places.values()]


def encode_candidates(candidates: Sequence[Argument], features: str) -> Codes:
    """Return the hashed features of candidates: the features of arguments and those in `TEMPLATES`."""
    templates = read_templates(features) + LANGUAGE.parse(TEMPLATES)
    names = sorted({name for template in templates for name in template.attributes})
    functions = [ALL_VALUES[name] for name in names]
    shaped = track(iter_shapes(candidates), "describing constituents", total=len(candidates), unit="places")
    views = (view_argument(argument, shape) for argument, shape in shaped)
    values = encode(([function(view) for function in functions] for view in views), len(names))
    return join_codes(values, names, templates)


def choose_non_overlapping(shape: Shape, gains: Mapping[int, float]) -> list[int]:
    """Return the set of non-overlapping nodes with the largest total gain, from left to right.

    Parameters
    ----------
    shape : Shape
        Structure of the tree.
    gains : mapping of int to float
        Gain of each candidate node.
    """
    best: list[float] = []
    is_taken: list[bool] = []
    for node, children in enumerate(shape.children):
        below = sum(best[child] for child in children)
        gain = gains.get(node, 0.0)
        is_taken.append(gain > below)
        best.append(max(gain, below))
    chosen = []
    waiting = [len(best) - 1]
    while waiting:
        node = waiting.pop()
        if is_taken[node]:
            chosen.append(node)
        elif best[node] > 0:
            waiting.extend(reversed(shape.children[node]))
    return chosen
