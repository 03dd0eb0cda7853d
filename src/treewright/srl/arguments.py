"""Predicates and their arguments in constituency trees.

A. Moschitti (2004), A study on convolution kernels for shallow semantic parsing: the smallest subtree that
holds a predicate and an argument, without what is on neither way, tells the role of the argument. Candidates
for arguments are found as N. Xue and M. Palmer (2004), Calibrating features for semantic role labeling, do.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright.data.consttree import ConstTree, Span, unescape_word
from treewright.data.heads import PUNCTUATION, head_words
from treewright.data.propbank import Proposition, PropSentence
from treewright.errors import InputError, quote

PREDICATE = "V"
CONTINUED, REFERRING = "C-", "R-"
ADJUNCT = "ARGM"
VERB = "VB"
CONJUNCTIONS = ("CC", "CONJP")
MARK = "-ARG"
"""Put behind the label of the argument's node."""
HEAD_RULES = "collins"


class Argument(NamedTuple):
    """A constituent that is, or may be, an argument of a predicate.

    Attributes
    ----------
    tree : ConstTree
        Of the whole sentence.
    predicate : int
        Position of the predicate among the words, from 0.
    node : int
        Position of the constituent among the nodes of the tree in post-order.
    label : str or None
        Its role, if that is known.
    lemma : str
        Of the predicate; without it, its word in lower case stands for it.
    """

    tree: ConstTree
    predicate: int
    node: int
    label: str | None = None
    lemma: str = ""


class FoundArguments(NamedTuple):
    """Arguments of sentences.

    Attributes
    ----------
    arguments : list of Argument
    n_unmatched : int
        Arguments over words that no constituent has for itself; they are left out.
    """

    arguments: list[Argument]
    n_unmatched: int

    @property
    def matched(self) -> float:
        """The percentage of arguments that have a constituent."""
        n_all = len(self.arguments) + self.n_unmatched
        return 100 * len(self.arguments) / n_all if n_all else 100.0


class Shape(NamedTuple):
    """What is asked of a tree again and again, for its nodes in post-order.

    `starts` and `ends` are in words, `heads` the word that is the head of each node, `leaves` the node of
    each word.
    """

    labels: Sequence[str]
    parents: list[int]
    children: list[list[int]]
    starts: list[int]
    ends: list[int]
    heads: list[int]
    leaves: list[int]

    def ways_up(self, node: int) -> list[int]:
        """Return a node and all above it, up to the root."""
        found = [node]
        while self.parents[found[-1]] >= 0:
            found.append(self.parents[found[-1]])
        return found

    def above_word(self, word: int) -> int:
        """Return the node of the tag of a word."""
        parent = self.parents[self.leaves[word]]
        return parent if parent >= 0 else self.leaves[word]

    def meeting(self, node: int, other: int) -> int:
        """Return the lowest node that two have above them."""
        above = set(self.ways_up(node))
        return next(each for each in self.ways_up(other) if each in above)


def shape_of(tree: ConstTree) -> Shape:
    """Return what is asked of a tree."""
    sizes = tree.sizes
    before = np.concatenate([[0], np.cumsum(sizes == 1)])
    nodes = np.arange(len(sizes))
    return Shape(
        list(tree.labels),
        tree.parents().tolist(),
        tree.child_positions(),
        before[nodes - sizes + 1].tolist(),
        before[nodes + 1].tolist(),
        head_words(tree, rules=HEAD_RULES),
        np.flatnonzero(sizes == 1).tolist(),
    )


def iter_shapes(arguments: Iterable[Argument]) -> Iterator[tuple[Argument, Shape]]:
    """Yield arguments with the shapes of their trees, made once where several of one tree follow."""
    tree, shape = None, None
    for argument in arguments:
        if shape is None or argument.tree is not tree:
            tree, shape = argument.tree, shape_of(argument.tree)
        _check(argument, shape)
        yield argument, shape


def find_arguments(
    trees: Iterable[ConstTree],
    sentences: Iterable[PropSentence],
    *,
    verbal: bool = True,
    parts: bool = False,
) -> FoundArguments:
    """Return the arguments of all predicates, with their roles.

    Of several constituents over the same words the highest is taken. Predicates themselves are left out.

    Parameters
    ----------
    trees : iterable of ConstTree
    sentences : iterable of PropSentence
        Of the same words.
    verbal : bool
        Take only predicates that are verbs by their tags.
    parts : bool
        Take also what goes on after a gap (``C-ARG1``), what refers to another (``R-ARG1``), and what a
        predicate has beside its word, as particles (``C-V``).
    """
    found = []
    n_unmatched = 0
    for tree, sentence in pair_sentences(trees, sentences):
        places = node_places(shape_of(tree)) if sentence.propositions else {}
        for proposition in sentence.propositions:
            if verbal and not is_verbal(sentence, proposition):
                continue
            for label, start, end in list_roles(proposition, parts=parts):
                node = places.get((start, end))
                n_unmatched += node is None
                if node is not None:
                    found.append(Argument(tree, proposition.predicate, node, label, proposition.lemma))
    return FoundArguments(found, n_unmatched)


def is_verbal(sentence: PropSentence, proposition: Proposition) -> bool:
    """Tell whether a predicate is a verb by its tag."""
    return sentence.tags[proposition.predicate].startswith(VERB)


def keep_verbal(sentences: Iterable[PropSentence]) -> list[PropSentence]:
    """Return sentences with only those propositions whose predicates are verbs by their tags."""
    return [
        sentence._replace(propositions=[one for one in sentence.propositions if is_verbal(sentence, one)])
        for sentence in sentences
    ]


def list_roles(proposition: Proposition, *, parts: bool = False) -> list[Span]:
    """Return the arguments of a predicate; see `find_arguments`."""
    roles = []
    for label, start, end in proposition.arguments:
        if is_argument(label):
            roles.append(Span(cut_discourse(label), start, end))
        elif parts and label == PREDICATE:
            behind = max(start, proposition.predicate + 1)
            roles += [Span(CONTINUED + PREDICATE, behind, end)] if behind < end else []
        elif parts:
            roles.append(Span(label[:2] + cut_discourse(label[2:]), start, end))
    return roles


def is_argument(label: str) -> bool:
    """Tell whether a label of a column is a role of its own."""
    return label != PREDICATE and not label.startswith((CONTINUED, REFERRING))


def cut_discourse(label: str) -> str:
    """Return a role without what is said behind it, but for the kind of adjunct: ``ARG1-DSP`` is ``ARG1``."""
    return label if label.startswith(ADJUNCT) else label.partition("-")[0]


def merge_adjuncts(label: str) -> str:
    """Return a role; all adjuncts have the same."""
    return ADJUNCT if label.startswith(ADJUNCT) else label


def pair_sentences(
    trees: Iterable[ConstTree], sentences: Iterable[PropSentence]
) -> Iterator[tuple[ConstTree, PropSentence]]:
    """Yield trees with their sentences, of which there must be as many, with as many words each."""
    trees, sentences = list(trees), list(sentences)
    if len(trees) != len(sentences):
        raise InputError(
            f"there are {len(trees)} trees and {len(sentences)} sentences with roles; expected as many"
        )
    for number, (tree, sentence) in enumerate(zip(trees, sentences, strict=True), 1):
        for one, kind in ((tree, ConstTree), (sentence, PropSentence)):
            if not isinstance(one, kind):
                found = f"{type(one).__name__} where a {kind.__name__} is expected"
                raise InputError(f"sentence {number} has a {found}; expected trees, and sentences with roles")
        check_words(tree, sentence, f"tree {number}", "its sentence with roles")
        n_words = len(sentence.words)
        for proposition in sentence.propositions:
            if not 0 <= proposition.predicate < n_words:
                found = f"sentence {number} has a predicate at word {proposition.predicate} of {n_words}"
                raise InputError(f"{found}; expected 0 to {n_words - 1}")
        yield tree, sentence


def check_words(tree: ConstTree, sentence: PropSentence, name: str, other: str) -> None:
    """Check that a tree and a sentence have the same words, brackets in whatever notation."""
    words = tree.words()
    if len(words) != len(sentence.words):
        found = f"{name} has {len(words)} words, {other} {len(sentence.words)}"
        raise InputError(f"{found}; expected the same words")
    for place, (word, known) in enumerate(zip(words, sentence.words, strict=True), 1):
        if word != known and unescape_word(word) != unescape_word(known):
            found = f"word {place} of {name} is {quote(word)}, of {other} {quote(known)}"
            raise InputError(f"{found}; expected the same words")


def node_places(shape: Shape) -> dict[tuple[int, int], int]:
    """Return the highest node, words not counted, over each stretch of words that has one."""
    # Nodes stand after those below them.
    return {
        (shape.starts[node], shape.ends[node]): node
        for node, children in enumerate(shape.children)
        if children
    }


def find_candidates(shape: Shape, predicate: int) -> list[int]:
    """Return the nodes that may be arguments of a predicate, from left to right.

    These are the sisters of the predicate and of all that is above it, but for those that it is coordinated
    with; the children of such sisters that are prepositional phrases; and the nouns that head the noun
    phrases behind the predicate, which may be what is done if the predicate is a light verb.
    """
    verb = shape.above_word(predicate)
    found = [noun for sister in _sisters(shape, verb) for noun in _light_object(shape, sister, predicate)]
    for node in shape.ways_up(verb)[:-1]:
        for sister in _sisters(shape, node):
            found.append(sister)
            if shape.labels[sister] == "PP":
                found.extend(shape.children[sister])
    inner = [node for node in found if shape.children[node] and shape.labels[node] not in PUNCTUATION]
    return sorted(inner, key=lambda node: (shape.starts[node], -shape.ends[node]))


def _sisters(shape: Shape, node: int) -> list[int]:
    """Return the sisters of a node, without those that it is coordinated with and the conjunctions."""
    sisters = shape.children[shape.parents[node]] if shape.parents[node] >= 0 else []
    # A conjunction in front of all others joins the sentence to the one before.
    is_joined = any(shape.labels[sister] in CONJUNCTIONS for sister in sisters[1:])
    alike = (_kind(shape.labels[node]), *CONJUNCTIONS) if is_joined else ()
    return [sister for sister in sisters if sister != node and _kind(shape.labels[sister]) not in alike]


def _kind(label: str) -> str:
    """Return a label, the same for the tags of all verbs."""
    return VERB if label.startswith(VERB) else label


def _light_object(shape: Shape, node: int, predicate: int) -> list[int]:
    """Return the node of the tag of the head noun, if this is a noun phrase of several parts behind."""
    if shape.labels[node] != "NP" or len(shape.children[node]) == 1 or shape.starts[node] <= predicate:
        return []
    return [shape.above_word(shape.heads[node])]


def argument_trees(arguments: Iterable[Argument]) -> list[ConstTree]:
    """Return the trees of predicates and arguments; see `argument_tree`."""
    return [_enclose(argument, shape) for argument, shape in iter_shapes(arguments)]


def argument_tree(argument: Argument) -> ConstTree:
    """Return the tree of a predicate and an argument (Moschitti's PAF).

    It has all that is under the argument, whose node is marked, the tag and the lemma of the predicate, and
    what is on the way between both.
    """
    return argument_trees([argument])[0]


def _enclose(argument: Argument, shape: Shape) -> ConstTree:
    tree, predicate, node, _, lemma = argument
    verb = shape.above_word(predicate)
    top = shape.meeting(node, verb)
    is_kept = np.zeros(len(shape.labels), dtype=np.bool_)
    for end in (node, verb):
        way = shape.ways_up(end)
        is_kept[way[: way.index(top) + 1]] = True
    is_kept[shape.leaves[predicate]] = True
    is_kept[node - int(tree.sizes[node]) + 1 : node + 1] = True
    labels = list(shape.labels)
    labels[node] += MARK
    if lemma:
        labels[shape.leaves[predicate]] = lemma
    return _cut(labels, tree.sizes, is_kept)


def _cut(labels: list[str], sizes: npt.NDArray[np.int32], is_kept: npt.NDArray[np.bool_]) -> ConstTree:
    """Return the nodes of a tree that are kept."""
    before = np.concatenate([[0], np.cumsum(is_kept)])
    nodes = np.flatnonzero(is_kept)
    return ConstTree.from_arrays(
        [labels[node] for node in nodes.tolist()],
        (before[nodes + 1] - before[nodes - sizes[nodes] + 1]).astype(np.int32),
    )


def _check(argument: Argument, shape: Shape) -> None:
    for name, value, kind, n_all in (
        ("predicate", argument.predicate, "word", len(shape.leaves)),
        ("argument", argument.node, "node", len(shape.labels)),
    ):
        if not 0 <= value < n_all:
            raise InputError(f"the {name} is {kind} {value} of a tree of {n_all}; expected 0 to {n_all - 1}")
