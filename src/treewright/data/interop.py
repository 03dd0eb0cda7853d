"""Conversion from and to nltk trees, spaCy Docs and Stanza Documents."""

import io
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np

from treewright._optional import require
from treewright._validate import check_items, check_type
from treewright.data.conllu import format_tree, iter_conllu
from treewright.data.consttree import ConstTree
from treewright.data.deptree import UNKNOWN_HEAD, DepTree
from treewright.data.word import NO_SPACE
from treewright.errors import InputError, quote

if TYPE_CHECKING:
    from nltk import Tree
    from nltk.parse import DependencyGraph
    from spacy.tokens import Doc, Span, Token
    from spacy.vocab import Vocab
    from stanza import Document

WHOLE = "a tree has words without a head; expected a head for every word"


class Graph(Protocol):
    """The part of nltk's DependencyGraph that is used here."""

    nodes: Mapping[int, Any]

    def get_by_address(self, node_address: int) -> Any:  # noqa: ANN401
        """Return a node."""


@overload
def from_nltk(tree: Graph) -> DepTree: ...


@overload
def from_nltk(tree: Any) -> ConstTree: ...  # noqa: ANN401


def from_nltk(tree: Any) -> ConstTree | DepTree:
    """Convert an nltk.Tree to a `ConstTree`, or a DependencyGraph to a `DepTree`.

    In an nltk.Tree, strings become leaves, and a (word, tag) pair becomes a tag node over the word.

    Parameters
    ----------
    tree : nltk.Tree or nltk.parse.DependencyGraph
        The tree.

    Returns
    -------
    ConstTree or DepTree
        The converted tree.

    See Also
    --------
    to_nltk : The inverse.

    Examples
    --------
    >>> import nltk
    >>> print(tw.from_nltk(nltk.Tree.fromstring("(S (NP Mary) (VP sleeps))")))
    (S (NP Mary) (VP sleeps))
    """
    return _from_graph(tree) if hasattr(tree, "get_by_address") else _from_tree(tree)


def _from_tree(tree: "Tree") -> ConstTree:
    labels: list[str] = []
    n_children: list[int] = []
    waiting: list[Any] = [tree]
    while waiting:  # parents first, right to left: reversed post-order
        label, children = _split_nltk(waiting.pop())
        labels.append(label)
        n_children.append(len(children))
        waiting.extend(children)
    return ConstTree.from_child_counts(labels[::-1], n_children[::-1])


def _split_nltk(node: Any) -> tuple[str, Sequence[Any]]:  # noqa: ANN401
    """Return the label of a node and its children."""
    if isinstance(node, str):
        return node, ()
    if callable(getattr(node, "label", None)):
        return str(node.label()), node
    if isinstance(node, tuple) and len(node) == 2 and all(isinstance(part, str) for part in node):
        return node[1], node[:1]
    raise InputError(f"a leaf has the type {type(node).__name__}; expected a string or a (word, tag) pair")


def _from_graph(graph: Graph) -> DepTree:
    nodes = [graph.nodes[address] for address in sorted(address for address in graph.nodes if address)]
    position = {node["address"]: number for number, node in enumerate(nodes, start=1)} | {0: 0}
    parents = {child: address for address, node in graph.nodes.items() for child in _graph_children(node)}

    def find_head(node: Mapping[str, Any]) -> int:
        head = parents.get(node["address"]) if node["head"] is None else node["head"]
        if head is not None and head not in position:
            raise InputError(f"node {node['address']} has the head {head}; expected a node of the graph")
        return UNKNOWN_HEAD if head is None else position[head]

    def column(name: str) -> list[str]:
        return [str(node[name] or "_") for node in nodes]

    return DepTree(
        column("word"),
        [find_head(node) for node in nodes],
        column("rel"),
        lemmas=column("lemma"),
        upos=column("ctag"),
        xpos=column("tag"),
        feats=column("feats"),
    )


def _graph_children(node: Mapping[str, Any]) -> Iterable[int]:
    """Return the addresses of a node's children; nltk keeps them in one list, or in one list per relation."""
    children: Any = node["deps"]
    return chain.from_iterable(children.values()) if isinstance(children, Mapping) else children


@overload
def to_nltk(tree: ConstTree) -> "Tree": ...


@overload
def to_nltk(tree: DepTree) -> "DependencyGraph": ...


def to_nltk(tree: ConstTree | DepTree) -> "Tree | DependencyGraph":
    """Convert a `ConstTree` to an nltk.Tree with strings as leaves, or a `DepTree` to a DependencyGraph.

    Parameters
    ----------
    tree : ConstTree or DepTree
        The tree.

    Returns
    -------
    nltk.Tree or nltk.parse.DependencyGraph
        The converted tree.

    See Also
    --------
    from_nltk : The inverse.

    Examples
    --------
    >>> tw.to_nltk(tw.ConstTree.parse("(S (NP Mary) (VP sleeps))")).leaves()
    ['Mary', 'sleeps']
    """
    check_type("tree", tree, (ConstTree, DepTree), "a ConstTree or a DepTree")
    return _to_graph(tree) if isinstance(tree, DepTree) else _to_tree(tree)


def _to_graph(tree: DepTree) -> "DependencyGraph":
    """Make the graph that nltk would make from CoNLL columns; its root is the first root of the tree."""
    graph: DependencyGraph = require("nltk.parse", "nltk").DependencyGraph()
    if (tree.heads < 0).any():
        raise InputError(WHOLE)
    columns = (tree.words, tree.lemmas, tree.upos, tree.xpos, tree.feats, tree.heads.tolist(), tree.deprels)
    names = ("word", "lemma", "ctag", "tag", "feats", "head", "rel")
    for address, values in enumerate(zip(*columns, strict=True), start=1):
        graph.nodes[address].update({"address": address, **dict(zip(names, values, strict=True))})
        graph.add_arc(graph.nodes[address]["head"], address)
    roots = np.flatnonzero(tree.heads == 0).tolist()
    if roots:
        graph.root = graph.nodes[roots[0] + 1]
        graph.top_relation_label = tree.deprels[roots[0]]
    return graph


def _to_tree(tree: ConstTree) -> "Tree":
    make = require("nltk.tree", "nltk").Tree
    labels = tree.labels
    made: list[Any] = []
    for node, children in enumerate(tree.child_positions()):
        made.append(make(labels[node], [made[child] for child in children]) if children else labels[node])
    return made[-1] if not tree.is_leaf else make(tree.label, [])


def from_spacy(doc: "Doc") -> list[DepTree]:
    """Convert the sentences of a spaCy Doc to dependency trees, without whitespace tokens.

    Parameters
    ----------
    doc : spacy.tokens.Doc
        A parsed Doc.

    Returns
    -------
    list of DepTree
        One tree per sentence.

    See Also
    --------
    to_spacy : The inverse.

    Examples
    --------
    >>> tree = tw.DepTree(["Birds", "sing"], [2, 0], ["nsubj", "root"])
    >>> tw.from_spacy(tw.to_spacy([tree]))[0].words
    ['Birds', 'sing']
    """
    if not callable(getattr(doc, "has_annotation", None)):
        raise InputError(f"doc is {quote(repr(doc))}; expected a spaCy Doc, the result of nlp(text)")
    if not doc.has_annotation("DEP"):
        raise InputError(
            "the Doc has no dependencies; expected a parsed Doc; add a parser to the spaCy pipeline"
        )
    return [_from_spacy_sentence(sentence) for sentence in doc.sents]


def to_spacy(trees: Sequence[DepTree], vocab: "Vocab | None" = None) -> "Doc":
    """Convert dependency trees to one spaCy Doc, one sentence per tree.

    Parameters
    ----------
    trees : sequence of DepTree
        Trees with known heads.
    vocab : spacy.vocab.Vocab, optional
        Vocabulary of the Doc (by default, a new one).

    Returns
    -------
    spacy.tokens.Doc
        The Doc.

    See Also
    --------
    from_spacy : The inverse.

    Examples
    --------
    >>> tree = tw.DepTree(["Birds", "sing"], [2, 0], ["nsubj", "root"])
    >>> tw.to_spacy([tree])[0].head
    sing
    """
    check_items("trees", trees, DepTree, "DepTree")
    tokens = require("spacy.tokens", "spacy")
    vocabulary = require("spacy.vocab", "spacy")
    if any((tree.heads < 0).any() for tree in trees):
        raise InputError(WHOLE)
    offsets = np.cumsum([0, *map(len, trees)]).tolist()
    doc: Doc = tokens.Doc(
        vocabulary.Vocab() if vocab is None else vocab,
        words=_joined(tree.words for tree in trees),
        spaces=_joined([NO_SPACE not in misc.split("|") for misc in tree.misc] for tree in trees),
        heads=_joined(_spacy_heads(tree, offset) for tree, offset in zip(trees, offsets, strict=False)),
        deps=_joined(["ROOT" if one == "root" else one for one in tree.deprels] for tree in trees),
        pos=_joined(_blanked(tree.upos) for tree in trees),
        tags=_joined(_blanked(tree.xpos) for tree in trees),
        lemmas=_joined(_blanked(tree.lemmas) for tree in trees),
        morphs=_joined(_blanked(tree.feats) for tree in trees),
        sent_starts=_joined([True] + [False] * (len(tree) - 1) for tree in trees if len(tree)),
    )
    return doc


def from_stanza(document: "Document") -> list[DepTree]:
    """Convert the sentences of a Stanza Document to dependency trees.

    Multiword tokens, empty nodes and comments are kept, and character offsets go to MISC, as in the CoNLL-U
    that Stanza writes. Without a parser in Stanza's pipeline, the heads are unknown.

    Parameters
    ----------
    document : stanza.models.common.doc.Document
        The result of a Stanza pipeline.

    Returns
    -------
    list of DepTree
        One tree per sentence.

    See Also
    --------
    to_stanza : The inverse.

    Examples
    --------
    >>> trees = tw.from_stanza(stanza.Pipeline("en")("Birds sing."))  # doctest: +SKIP
    """
    if not hasattr(document, "sentences"):
        found = f"document is {quote(repr(document))}"
        raise InputError(f"{found}; expected a Stanza Document, the result of nlp(text)")
    trees = list(iter_conllu(io.StringIO(f"{document:C}\n\n"), require_heads=False))
    heads = [[word.head for word in sentence.words] for sentence in document.sentences]
    # Stanza writes a head even for words without one.
    return [
        tree.with_heads([UNKNOWN_HEAD if head is None else head for head in each])
        for tree, each in zip(trees, heads, strict=True)
    ]


def to_stanza(trees: Sequence[DepTree]) -> "Document":
    """Convert dependency trees to one Stanza Document, one sentence per tree; no Stanza model is needed.

    Parameters
    ----------
    trees : sequence of DepTree
        The trees.

    Returns
    -------
    stanza.models.common.doc.Document
        The document.

    See Also
    --------
    from_stanza : The inverse.

    Examples
    --------
    >>> document = tw.to_stanza([tw.DepTree(["Birds", "sing"], [2, 0])])  # doctest: +SKIP
    """
    check_items("trees", trees, DepTree, "DepTree")
    if not trees:
        empty: Document = require("stanza", "stanza").Document([])
        return empty
    convert = require("stanza.utils.conll", "stanza").CoNLL.conll2doc
    made: Document = convert(input_str="".join(map(format_tree, trees)), ignore_gapping=False)
    return made


def list_words(tokens: Iterable["Token"]) -> list["Token"]:
    """Return the tokens that are not whitespace."""
    return [token for token in tokens if not token.text.isspace()]


def read_tokens(words: Sequence["Token"]) -> DepTree:
    """Return a sentence with all of spaCy's annotation except heads."""
    return DepTree(
        [token.text for token in words],
        lemmas=[token.lemma_ or "_" for token in words],
        upos=[token.pos_ or "_" for token in words],
        xpos=[token.tag_ or "_" for token in words],
        feats=[_sorted_features(str(token.morph)) for token in words],
        misc=["_" if token.whitespace_ else NO_SPACE for token in words],
    )


def _from_spacy_sentence(sentence: "Span") -> DepTree:
    words = list_words(sentence)
    position = {token.i: number for number, token in enumerate(words, start=1)}
    return read_tokens(words).with_heads(
        [_head_position(token, position) for token in words],
        ["root" if token.dep_ == "ROOT" else token.dep_ or "_" for token in words],
    )


def _head_position(token: "Token", position: dict[int, int]) -> int:
    """Return the id of the nearest ancestor of `token` that is a word; 0 if there is none."""
    while token.head.i != token.i:
        token = token.head
        if token.i in position:
            return position[token.i]
    return 0


def _spacy_heads(tree: DepTree, offset: int) -> list[int]:
    """Return heads as token indices of the whole Doc; a root is its own head."""
    own = np.arange(1, len(tree) + 1)
    heads: list[int] = (np.where(tree.heads == 0, own, tree.heads) + offset - 1).tolist()
    return heads


def _sorted_features(morph: str) -> str:
    """Sort features as Universal Dependencies prescribe, ignoring case; spaCy's order depends on case."""
    return "|".join(sorted(morph.split("|"), key=str.lower)) or "_"


def _joined(parts: Iterable[list[Any]]) -> list[Any]:
    return list(chain.from_iterable(parts))


def _blanked(values: list[str]) -> list[str]:
    return ["" if value == "_" else value for value in values]
