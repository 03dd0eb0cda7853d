"""Predicates and their arguments in constituency trees.

The role of an argument is classified by the smallest subtree that contains the predicate and the argument,
pruned to the path between them (Moschitti 2004, "A study on convolution kernels for shallow semantic
parsing"). Candidate arguments are found by the algorithm of Xue and Palmer (2004, "Calibrating features for
semantic role labeling").
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._validate import check_param, check_type
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
"""Suffix of the label of the argument node."""
HEAD_RULES = "collins"


class Argument(NamedTuple):
    """A constituent that is an argument of a predicate, or a candidate for one.

    Attributes
    ----------
    tree : ConstTree
        The constituency tree of the whole sentence.
    predicate : int
        Position of the predicate among the words, from 0.
    node : int
        Position of the constituent among the nodes of the tree in post-order.
    label : str or None
        Semantic role, or None if it is unknown.
    lemma : str
        Lemma of the predicate; if empty, its lower-cased word is used.

    See Also
    --------
    find_arguments : Extracts the arguments of a treebank with PropBank annotation.
    RoleClassifier : Classifies the roles of arguments.

    Examples
    --------
    >>> import treewright as tw
    >>> tree = tw.ConstTree.parse("(S (NP (NNP Mary)) (VP (VBD slept)))")
    >>> tw.Argument(tree, predicate=1, node=2, label="ARG0").label
    'ARG0'
    """

    tree: ConstTree
    predicate: int
    node: int
    label: str | None = None
    lemma: str = ""


class FoundArguments(NamedTuple):
    """The arguments of a treebank that match constituents, and the number of other arguments.

    Attributes
    ----------
    arguments : list of Argument
        Arguments that are constituents.
    n_unmatched : int
        Number of arguments whose words are not exactly one constituent; they are not included.

    See Also
    --------
    find_arguments : Returns this tuple.

    Examples
    --------
    >>> import treewright as tw
    >>> bank = tw.make_treebank(10, random_state=0)
    >>> tw.find_arguments(bank.constituents, bank.propositions).matched > 90
    True
    """

    arguments: list[Argument]
    n_unmatched: int

    @property
    def matched(self) -> float:
        """Percentage of the arguments that match a constituent."""
        n_all = len(self.arguments) + self.n_unmatched
        return 100 * len(self.arguments) / n_all if n_all else 100.0


class Shape(NamedTuple):
    """Precomputed structure of a tree, for its nodes in post-order.

    `starts` and `ends` are word positions, `heads` has the head word of each node, and `leaves` has the leaf
    node of each word.
    """

    labels: Sequence[str]
    parents: list[int]
    children: list[list[int]]
    starts: list[int]
    ends: list[int]
    heads: list[int]
    leaves: list[int]

    def path_to_root(self, node: int) -> list[int]:
        """Return a node and all its ancestors, up to the root."""
        found = [node]
        while self.parents[found[-1]] >= 0:
            found.append(self.parents[found[-1]])
        return found

    def preterminal(self, word: int) -> int:
        """Return the preterminal node of a word."""
        parent = self.parents[self.leaves[word]]
        return parent if parent >= 0 else self.leaves[word]

    def lowest_common_ancestor(self, node: int, other: int) -> int:
        """Return the lowest common ancestor of two nodes."""
        above = set(self.path_to_root(node))
        return next(each for each in self.path_to_root(other) if each in above)


def shape_of(tree: ConstTree) -> Shape:
    """Compute the structure of a tree."""
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
    """Yield arguments with the shapes of their trees; consecutive arguments of one tree share its shape."""
    tree, shape = None, None
    for argument in arguments:
        check_type("argument", argument, Argument, "an Argument")
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
    """Extract the arguments of all predicates, with their roles, from trees with PropBank annotation.

    If several constituents have the same words, the highest one is taken. Predicates themselves are not
    extracted.

    Parameters
    ----------
    trees : iterable of ConstTree
        Constituency trees of the sentences.
    sentences : iterable of PropSentence
        PropBank annotation of the same sentences.
    verbal : bool
        Use only predicates with a verb tag.
    parts : bool
        Also extract continuations (``C-ARG1``), references (``R-ARG1``) and the other parts of a predicate,
        such as particles (``C-V``).

    Returns
    -------
    FoundArguments
        The arguments, and the number of arguments that match no constituent.

    See Also
    --------
    RoleClassifier : Classifies the roles of arguments.
    RoleLabeler : Finds predicates and arguments and labels their roles.

    Examples
    --------
    >>> import treewright as tw
    >>> bank = tw.make_treebank(10, random_state=0)
    >>> found = tw.find_arguments(bank.constituents, bank.propositions)
    >>> found.arguments[0].lemma, found.arguments[0].label
    ('swear', 'ARG0')
    """
    check_param("parts", parts, bool)
    check_param("verbal", verbal, bool)
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
    """Return whether a predicate has a verb tag."""
    return sentence.tags[proposition.predicate].startswith(VERB)


def keep_verbal(sentences: Iterable[PropSentence]) -> list[PropSentence]:
    """Return the sentences with only the propositions of verbal predicates."""
    return [
        sentence._replace(propositions=[one for one in sentence.propositions if is_verbal(sentence, one)])
        for sentence in sentences
    ]


def list_roles(proposition: Proposition, *, parts: bool = False) -> list[Span]:
    """Return the argument spans of a predicate; see `find_arguments`."""
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
    """Return whether a label is a role, and not the predicate, a continuation or a reference."""
    return label != PREDICATE and not label.startswith((CONTINUED, REFERRING))


def cut_discourse(label: str) -> str:
    """Return a role without its suffix (``ARG1-DSP`` becomes ``ARG1``), except for adjuncts."""
    return label if label.startswith(ADJUNCT) else label.partition("-")[0]


def merge_adjuncts(label: str) -> str:
    """Return a role, with one common role for all adjuncts."""
    return ADJUNCT if label.startswith(ADJUNCT) else label


def pair_sentences(
    trees: Iterable[ConstTree], sentences: Iterable[PropSentence]
) -> Iterator[tuple[ConstTree, PropSentence]]:
    """Yield trees with their PropBank sentences; check that both have the same words."""
    for name, given in (("trees", trees), ("sentences", sentences)):
        check_type(name, given, Iterable, "a list")
    trees, sentences = list(trees), list(sentences)
    if len(trees) != len(sentences):
        raise InputError(
            f"{len(trees)} trees but {len(sentences)} sentences with roles; expected equal numbers"
        )
    for number, (tree, sentence) in enumerate(zip(trees, sentences, strict=True), 1):
        for one, kind in ((tree, ConstTree), (sentence, PropSentence)):
            if not isinstance(one, kind):
                found = f"sentence {number} is a {type(one).__name__}"
                raise InputError(f"{found}; expected a {kind.__name__}")
        check_words(tree, sentence, f"tree {number}", "its sentence with roles")
        n_words = len(sentence.words)
        for proposition in sentence.propositions:
            if not 0 <= proposition.predicate < n_words:
                found = f"sentence {number} has a predicate at word {proposition.predicate} of {n_words}"
                raise InputError(f"{found}; expected 0 to {n_words - 1}")
        yield tree, sentence


def check_words(tree: ConstTree, sentence: PropSentence, name: str, other: str) -> None:
    """Check that a tree and a sentence have the same words; brackets may be escaped or not."""
    words = tree.words()
    if len(words) != len(sentence.words):
        found = f"{name} has {len(words)} words, but {other} has {len(sentence.words)}"
        raise InputError(f"{found}; expected the same words")
    for place, (word, known) in enumerate(zip(words, sentence.words, strict=True), 1):
        if word != known and unescape_word(word) != unescape_word(known):
            found = f"word {place} of {name} is {quote(word)}, but {quote(known)} in {other}"
            raise InputError(f"{found}; expected the same words")


def node_places(shape: Shape) -> dict[tuple[int, int], int]:
    """Return the highest non-leaf node over each word span that is a constituent."""
    # In post-order, parents come after their children.
    return {
        (shape.starts[node], shape.ends[node]): node
        for node, children in enumerate(shape.children)
        if children
    }


def find_candidates(shape: Shape, predicate: int) -> list[int]:
    """Return the candidate arguments of a predicate, from left to right.

    These are the sisters of the predicate and of its ancestors, except conjuncts; the children of
    prepositional phrases among these sisters; and the head nouns of noun phrases after the predicate, which
    may carry the meaning if the predicate is a light verb.
    """
    verb = shape.preterminal(predicate)
    found = [noun for sister in _sisters(shape, verb) for noun in _light_object(shape, sister, predicate)]
    for node in shape.path_to_root(verb)[:-1]:
        for sister in _sisters(shape, node):
            found.append(sister)
            if shape.labels[sister] == "PP":
                found.extend(shape.children[sister])
    inner = [node for node in found if shape.children[node] and shape.labels[node] not in PUNCTUATION]
    return sorted(inner, key=lambda node: (shape.starts[node], -shape.ends[node]))


def _sisters(shape: Shape, node: int) -> list[int]:
    """Return the sisters of a node, without its conjuncts and the conjunctions."""
    sisters = shape.children[shape.parents[node]] if shape.parents[node] >= 0 else []
    # A conjunction in first position joins the sentence to the previous one.
    is_joined = any(shape.labels[sister] in CONJUNCTIONS for sister in sisters[1:])
    alike = (_kind(shape.labels[node]), *CONJUNCTIONS) if is_joined else ()
    return [sister for sister in sisters if sister != node and _kind(shape.labels[sister]) not in alike]


def _kind(label: str) -> str:
    """Return a label, with one common label for all verb tags."""
    return VERB if label.startswith(VERB) else label


def _light_object(shape: Shape, node: int, predicate: int) -> list[int]:
    """Return the preterminal of the head noun if the node is a complex noun phrase after the predicate."""
    if shape.labels[node] != "NP" or len(shape.children[node]) == 1 or shape.starts[node] <= predicate:
        return []
    return [shape.preterminal(shape.heads[node])]


def argument_trees(arguments: Iterable[Argument]) -> list[ConstTree]:
    """Return the predicate-argument trees of arguments; see `argument_tree`."""
    return [_enclose(argument, shape) for argument, shape in iter_shapes(arguments)]


def argument_tree(argument: Argument) -> ConstTree:
    """Return the subtree that contains a predicate and its argument (the PAF of Moschitti 2004).

    It contains the marked argument with all its descendants, the tag and lemma of the predicate, and the path
    between the two.

    Parameters
    ----------
    argument : Argument
        The argument and its sentence.

    Returns
    -------
    ConstTree
        The predicate-argument tree.

    See Also
    --------
    RoleClassifier : Classifies roles with tree kernels over these trees.

    Examples
    --------
    >>> import treewright as tw
    >>> tree = tw.ConstTree.parse("(S (NP (NNP Mary)) (VP (VBD slept) (ADVP (RB well))))")
    >>> print(tw.argument_tree(tw.Argument(tree, predicate=1, node=2)))
    (S (NP-ARG (NNP Mary)) (VP (VBD slept)))
    """
    return argument_trees([argument])[0]


def _enclose(argument: Argument, shape: Shape) -> ConstTree:
    tree, predicate, node, _, lemma = argument
    verb = shape.preterminal(predicate)
    top = shape.lowest_common_ancestor(node, verb)
    is_kept = np.zeros(len(shape.labels), dtype=np.bool_)
    for end in (node, verb):
        way = shape.path_to_root(end)
        is_kept[way[: way.index(top) + 1]] = True
    is_kept[shape.leaves[predicate]] = True
    is_kept[node - int(tree.sizes[node]) + 1 : node + 1] = True
    labels = list(shape.labels)
    labels[node] += MARK
    if lemma:
        labels[shape.leaves[predicate]] = lemma
    return _cut(labels, tree.sizes, is_kept)


def _cut(labels: list[str], sizes: npt.NDArray[np.int32], is_kept: npt.NDArray[np.bool_]) -> ConstTree:
    """Return the tree that consists of the kept nodes."""
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
            found = f"the {name} is {kind} {value} of a tree with {n_all} {kind}s"
            raise InputError(f"{found}; expected 0 to {n_all - 1}")
