"""Hand-crafted features of arguments, as templates (see `treewright.data.templates`).

Each feature describes one argument, so the atoms of templates are just the names of functions.

The standard set is that of the CoNLL-2005 shared task, which is based on Gildea and Jurafsky (2002,
"Automatic labeling of semantic roles"). The extended set adds neighbours, prepositions, the frame of the
predicate (Xue and Palmer 2004), and conjunctions of two or three features.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import NamedTuple, Self

import numpy as np
from scipy.sparse import csr_matrix

from treewright.data.templates import Template, TemplateLanguage
from treewright.errors import InputError
from treewright.model import Model, Value, saved
from treewright.progress import track
from treewright.srl.arguments import Argument, Shape, iter_shapes
from treewright.srl.linear import read_names

STANDARD = """
predicate
path
phrase
position
voice
head
head_tag
subcategorisation
first_word
last_word
first_tag
last_tag
governing
"""
"""The standard features, one per line."""

EXTENDED = (
    STANDARD
    + """
predicate_tag
half_path
length
distance
parent
left_phrase
right_phrase
before
after
inner_head
inner_tag
marker
rule
frame
place
rank
suffix
voice position
voice position phrase
predicate phrase
predicate path
predicate half_path
predicate position
predicate voice position
predicate voice position phrase
predicate head
predicate inner_head
predicate marker
predicate rank
predicate frame
predicate place
predicate voice frame
phrase marker
phrase head
phrase inner_head
phrase first_word
phrase last_word
phrase path
phrase parent
phrase position head
path voice
marker inner_head
marker inner_tag
marker position
marker path
marker last_word
frame voice
place voice
first_word last_word
first_word head
head suffix
head position
phrase rank voice
phrase distance position
half_path marker
head parent
"""
)
"""The extended features, one per line; several names on a line form a conjunction."""
SETS = {"standard": STANDARD, "extended": EXTENDED}
NOTHING = "-"
BE = frozenset(["be", "is", "are", "was", "were", "been", "being", "am", "'s", "'re", "'m", "s", "m", "re"])
GET = frozenset(["get", "gets", "got", "gotten", "getting"])
HAVE = frozenset(["have", "has", "had", "having", "'ve", "'d"])
AROUND_VERBS = ("VP", "SQ", "SINV", "SBARQ")
"""Labels of phrases that may contain an auxiliary of a lower verb."""
LONGEST = 10
"""Maximum distance; larger distances are reduced to it."""


class ArgumentView(NamedTuple):
    """An argument with the nodes that its features need."""

    argument: Argument
    shape: Shape
    verb: int
    """The preterminal node of the predicate."""
    top: int
    """The lowest common ancestor of argument and predicate."""

    @property
    def node(self) -> int:
        """The node of the argument."""
        return self.argument.node

    def word(self, place: int) -> str:
        """Return the lower-cased word at a position, or a placeholder outside the sentence."""
        shape = self.shape
        return shape.labels[shape.leaves[place]].lower() if 0 <= place < len(shape.leaves) else NOTHING

    def tag(self, place: int) -> str:
        """Return the tag of the word at a position, or a placeholder outside the sentence."""
        shape = self.shape
        return shape.labels[shape.preterminal(place)] if 0 <= place < len(shape.leaves) else NOTHING

    def label(self, node: int) -> str:
        """Return the label of a node, or a placeholder if there is none."""
        return self.shape.labels[node] if node >= 0 else NOTHING


def view_argument(argument: Argument, shape: Shape) -> ArgumentView:
    """Return an argument with the nodes that its features need."""
    verb = shape.preterminal(argument.predicate)
    return ArgumentView(argument, shape, verb, shape.lowest_common_ancestor(argument.node, verb))


def predicate(view: ArgumentView) -> str:
    """Return the lemma of the predicate, or its word if the lemma is unknown."""
    return view.argument.lemma or view.word(view.argument.predicate)


def path(view: ArgumentView) -> str:
    """Return the labels on the path from the argument up and then down to the predicate."""
    down = view.shape.path_to_root(view.verb)
    labels = [view.label(node) for node in down[: down.index(view.top)]]
    return half_path(view) + "".join("!" + label for label in reversed(labels))


def half_path(view: ArgumentView) -> str:
    """Return the labels from the argument up to the lowest common ancestor."""
    up = view.shape.path_to_root(view.node)
    return "^".join(view.label(node) for node in up[: up.index(view.top) + 1])


def length(view: ArgumentView) -> str:
    """Return the number of nodes in each half of the path."""
    ups = (
        view.shape.path_to_root(view.node).index(view.top),
        view.shape.path_to_root(view.verb).index(view.top),
    )
    return f"{min(ups[0], LONGEST)} {min(ups[1], LONGEST)}"


def phrase(view: ArgumentView) -> str:
    """Return the label of the argument."""
    return view.label(view.node)


def position(view: ArgumentView) -> str:
    """Return whether the argument is before, after or around the predicate."""
    if view.shape.ends[view.node] <= view.argument.predicate:
        return "before"
    return "after" if view.shape.starts[view.node] > view.argument.predicate else "around"


def voice(view: ArgumentView) -> str:
    """Return the voice of the predicate: active, passive (with "be" or "get"), or reduced passive."""
    if view.tag(view.argument.predicate) != "VBN":
        return "active"
    shape, node = view.shape, view.verb
    while shape.parents[node] >= 0 and view.label(shape.parents[node]) in AROUND_VERBS:
        parent = shape.parents[node]
        verbs = [child for child in shape.children[parent] if child < node and view.label(child)[:2] == "VB"]
        words = {view.word(shape.starts[child]) for child in verbs}
        if words & HAVE:
            return "active"
        if words & (BE | GET):
            return "passive"
        node = parent
    return "reduced"


def head(view: ArgumentView) -> str:
    """Return the head word of the argument."""
    return view.word(view.shape.heads[view.node])


def head_tag(view: ArgumentView) -> str:
    """Return the tag of the head word of the argument."""
    return view.tag(view.shape.heads[view.node])


def suffix(view: ArgumentView) -> str:
    """Return the last three letters of the head word."""
    return head(view)[-3:]


def subcategorisation(view: ArgumentView) -> str:
    """Return the phrase-structure rule that expands the parent of the predicate."""
    return _rule(view, view.shape.parents[view.verb])


def rule(view: ArgumentView) -> str:
    """Return the phrase-structure rule that expands the parent of the argument."""
    return _rule(view, view.shape.parents[view.node])


def _rule(view: ArgumentView, node: int) -> str:
    if node < 0:
        return NOTHING
    return view.label(node) + ">" + " ".join(map(view.label, view.shape.children[node]))


def governing(view: ArgumentView) -> str:
    """Return the governing category of a noun phrase: the lowest clause or verb phrase above it."""
    if not view.label(view.node).startswith("NP"):
        return NOTHING
    above = (view.label(node) for node in view.shape.path_to_root(view.node)[1:])
    return next((label for label in above if label in ("S", "VP", "SQ", "SINV", "SBARQ")), NOTHING)


def first_word(view: ArgumentView) -> str:
    """Return the first word of the argument."""
    return view.word(view.shape.starts[view.node])


def last_word(view: ArgumentView) -> str:
    """Return the last word of the argument."""
    return view.word(view.shape.ends[view.node] - 1)


def first_tag(view: ArgumentView) -> str:
    """Return the tag of the first word of the argument."""
    return view.tag(view.shape.starts[view.node])


def last_tag(view: ArgumentView) -> str:
    """Return the tag of the last word of the argument."""
    return view.tag(view.shape.ends[view.node] - 1)


def predicate_tag(view: ArgumentView) -> str:
    """Return the tag of the predicate."""
    return view.tag(view.argument.predicate)


def distance(view: ArgumentView) -> str:
    """Return the binned number of words between the argument and the predicate."""
    start, end, at = view.shape.starts[view.node], view.shape.ends[view.node], view.argument.predicate
    between = max(-1, at - end if end <= at else start - at - 1)
    return str(min(between, LONGEST).bit_length() if between > 1 else between)


def parent(view: ArgumentView) -> str:
    """Return the label of the parent of the argument."""
    return view.label(view.shape.parents[view.node])


def _sister(view: ArgumentView, step: int) -> str:
    above = view.shape.parents[view.node]
    if above < 0:
        return NOTHING
    sisters = view.shape.children[above]
    at = sisters.index(view.node) + step
    return view.label(sisters[at]) if 0 <= at < len(sisters) else NOTHING


def left_phrase(view: ArgumentView) -> str:
    """Return the label of the left sister of the argument."""
    return _sister(view, -1)


def right_phrase(view: ArgumentView) -> str:
    """Return the label of the right sister of the argument."""
    return _sister(view, 1)


def before(view: ArgumentView) -> str:
    """Return the word before the argument."""
    return view.word(view.shape.starts[view.node] - 1)


def after(view: ArgumentView) -> str:
    """Return the word after the argument."""
    return view.word(view.shape.ends[view.node])


def _inner(view: ArgumentView) -> int:
    """Return the complement of a preposition or conjunction, or else the argument itself."""
    children = view.shape.children[view.node]
    inner = [child for child in children if view.label(child) in ("NP", "S", "VP", "PP", "SBAR", "ADJP")]
    return inner[-1] if phrase(view) in ("PP", "SBAR") and inner else view.node


def inner_head(view: ArgumentView) -> str:
    """Return the head word of the complement of a preposition or conjunction."""
    return view.word(view.shape.heads[_inner(view)])


def inner_tag(view: ArgumentView) -> str:
    """Return the tag of the head word of the complement."""
    return view.tag(view.shape.heads[_inner(view)])


def marker(view: ArgumentView) -> str:
    """Return the preposition or conjunction at the start of the argument."""
    return first_word(view) if phrase(view) in ("PP", "SBAR", "WHPP", "ADVP", "S") else NOTHING


def _sisters_of_chain(view: ArgumentView) -> list[int]:
    """Return the phrases around the predicate within its clause, from left to right."""
    shape, node = view.shape, view.verb
    found = []
    for above in shape.path_to_root(view.verb)[1:]:
        found += [child for child in shape.children[above] if child != node and shape.children[child]]
        node = above
        if view.label(above) not in ("VP",):
            break
    wanted = [child for child in found if view.label(child) in ("NP", "PP", "S", "SBAR", "PRT", "ADJP")]
    return sorted(wanted, key=lambda child: shape.starts[child])


def frame(view: ArgumentView) -> str:
    """Return the labels of the phrases around the predicate, with the argument marked."""
    marks = {True: "*", False: ""}
    sides: tuple[list[str], list[str]] = ([], [])
    for node in _sisters_of_chain(view):
        is_behind = view.shape.starts[node] > view.argument.predicate
        sides[is_behind].append(marks[node == view.node] + view.label(node))
    return " ".join([*sides[0], "_", *sides[1]])


def place(view: ArgumentView) -> str:
    """Return the number of noun phrases before the argument, and of all noun phrases in the frame."""
    nouns = [node for node in _sisters_of_chain(view) if view.label(node) == "NP"]
    n_before = sum(view.shape.starts[node] < view.shape.starts[view.node] for node in nouns)
    return f"{n_before} {len(nouns)}"


def rank(view: ArgumentView) -> str:
    """Return the rank of the argument among the phrases with the same label on its side of the predicate."""
    same = [node for node in _sisters_of_chain(view) if view.label(node) == phrase(view)]
    side = position(view)
    at, start = view.argument.predicate, view.shape.starts[view.node]
    if side == "before":
        count = sum(start < view.shape.starts[node] < at for node in same)
    else:
        count = sum(at < view.shape.starts[node] < start for node in same)
    return f"{side} {count}"


VALUES: dict[str, Callable[[ArgumentView], str]] = {
    function.__name__: function
    for function in (
        predicate, path, half_path, length, phrase, position, voice, head, head_tag, suffix,
        subcategorisation, rule, governing, first_word, last_word, first_tag, last_tag, predicate_tag,
        distance, parent, left_phrase, right_phrase, before, after, inner_head, inner_tag, marker, frame,
        place, rank,
    )
}  # fmt: skip
"""The functions that compute the features, by name."""
LANGUAGE = TemplateLanguage(VALUES, sets=SETS)


class FeatureTable(Model):
    """Converts arguments to rows of a binary feature matrix.

    Parameters
    ----------
    features : {"standard", "extended"} or str
        Name of a feature set, or templates, one per line, as in `STANDARD`.

    Attributes
    ----------
    names_ : list of str
        Names of the columns, each of which is a template with its values.

    Examples
    --------
    >>> import treewright as tw
    >>> tree = tw.ConstTree.parse("(S (NP (NNP Mary)) (VP (VBD brought) (NP (DT a) (NN cat))))")
    >>> table = FeatureTable("phrase position").fit([Argument(tree, 1, 2), Argument(tree, 1, 9)])
    >>> table.names_
    ['phrase position|NP|after', 'phrase position|NP|before']
    """

    fields = saved(names_=Value(decode=read_names))

    def __init__(self, features: str = "standard") -> None:
        self.features = features
        self._templates = read_templates(features)

    def fit(self, arguments: Sequence[Argument]) -> Self:
        """Collect the features of the arguments."""
        self.fit_transform(arguments)
        return self

    def fit_transform(self, arguments: Sequence[Argument]) -> csr_matrix:
        """Collect the features of the arguments and return their rows."""
        found = self._list(arguments)
        self._set_names(sorted({name for row in found for name in row}))
        return self._make_rows(found)

    def transform(self, arguments: Sequence[Argument]) -> csr_matrix:
        """Return a row for each argument; unknown features are ignored."""
        return self._make_rows(self._list(arguments))

    def _set_names(self, names: list[str]) -> None:
        self.names_ = names
        self._columns = {name: column for column, name in enumerate(names)}

    def _list(self, arguments: Iterable[Argument]) -> list[list[str]]:
        used = {name: VALUES[name] for template in self._templates for name in template.attributes}
        heads = [(str(template), template.attributes) for template in self._templates]
        found = []
        for argument, shape in track(iter_shapes(arguments), "describing arguments", unit="arguments"):
            view = view_argument(argument, shape)
            values = {name: function(view) for name, function in used.items()}
            found.append(["|".join([head, *(values[name] for name in names)]) for head, names in heads])
        return found

    def _make_rows(self, found: list[list[str]]) -> csr_matrix:
        columns = [sorted(self._columns[name] for name in row if name in self._columns) for row in found]
        indptr = np.cumsum([0, *map(len, columns)])
        flat = np.fromiter(chain.from_iterable(columns), dtype=np.int32, count=int(indptr[-1]))
        return csr_matrix((np.ones(len(flat)), flat, indptr), shape=(len(found), len(self.names_)))

    def restore(self) -> None:
        """Rebuild the column index of the features."""
        self._set_names(self.names_)


def read_templates(features: str) -> list[Template]:
    """Return the templates of a named set, or parse template lines."""
    if not isinstance(features, str) or not features.strip():
        expected = "'standard', 'extended' or templates, one per line"
        raise InputError(f"features is {features!r}; expected {expected}")
    return LANGUAGE.parse(features)
