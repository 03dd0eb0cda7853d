"""Hypothesis strategies: valid trees and sentences, random bytes, and valid files with damage."""

import numpy as np
from hypothesis import strategies as st
from oracle.consttree import Node

from treewright.data.conllu import CONLLU
from treewright.data.consttree import ConstTree, Span
from treewright.data.deptree import DepTree, ExtraLine
from treewright.data.propbank import Proposition, PropSentence
from treewright.native.learn.boosting import DecisionTree

ODD_FIELDS = [
    "_",
    "#",
    "-",
    "*",
    "(",
    ")",
    "1",
    "1-2",
    "0.1",
    "# x = y",
    "a\u00a0b",
    "\u2028",
    "\x85",
    "\x0b",
]
PENN_LABELS = ["S", "NP", "NP-SBJ", "NP-SBJ-1", "NP=2", "N", "-NONE-", "-LRB-", "PRP$", "-", "X-", "=a=b"]
PENN_WORDS = ["a", "b", "*", "*T*-1", "0", "-LRB-", "-NONE-", "1\\/2", "#", "a-b", "a\u00a0b"]
DAMAGE = [
    *(
        b"\t",
        b"\n",
        b"\n\n",
        b"\r",
        b"\r\n",
        b"\0",
        b" ",
        b"#",
        b"(",
        b")",
        b"*",
        b"_",
        b"-",
        b".",
        b"0",
        b"1",
    ),
    *(
        b"\xff",
        b"\x80",
        b"\xef\xbb\xbf",
        b"\xc2\xa0",
        b"\xd9\xa3",
        b"9" * 20,
        b"# global.columns = ID FORM\n",
    ),
]


def fields():
    """Draw what may stand in a column: anything but tabs, line ends and NUL."""
    characters = st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\0")
    return st.sampled_from(ODD_FIELDS) | st.text(characters, min_size=1, max_size=6)


def labels():
    """Draw what may label a node and is written as it stands: no white space, no brackets."""
    characters = st.characters(exclude_categories=["Cs"], exclude_characters=" \t\n\r\x0b\x0c\0()")
    return st.sampled_from(PENN_LABELS) | st.text(characters, min_size=1, max_size=4)


@st.composite
def heads(draw, n):
    """Draw heads without a cycle: each word hangs on 0 or on a word that was placed before it."""
    order = draw(st.permutations(range(1, n + 1)))
    chosen = [0] * n
    for placed, word in enumerate(order):
        chosen[word - 1] = draw(st.sampled_from([0, *order[:placed]]))
    return chosen


@st.composite
def extra_lines(draw, n, n_columns):
    """Draw empty nodes and multiword tokens in the order in which a file must have them."""
    found = []
    range_end = 0
    rest = "\t".join(draw(st.lists(fields(), min_size=n_columns - 1, max_size=n_columns - 1)))
    for position in range(n + 1):
        n_empty = draw(st.sampled_from([0, 0, 0, 1, 2]))
        found += [ExtraLine(position, f"{position}.{k + 1}\t{rest}") for k in range(n_empty)]
        if range_end <= position < n and draw(st.booleans()):
            range_end = draw(st.integers(position + 1, n))
            found.append(ExtraLine(position, f"{position + 1}-{range_end}\t{rest}"))
    return found


@st.composite
def dep_trees(draw, max_words=6, *, extras=True, comments=True, columns=()):
    """Draw a sentence with heads; `columns` names further columns to fill."""
    n = draw(st.integers(1, max_words))
    column = st.lists(fields(), min_size=n, max_size=n)
    return DepTree(
        draw(column),
        draw(heads(n)),
        draw(column),
        lemmas=draw(column),
        upos=draw(column),
        xpos=draw(column),
        feats=draw(column),
        deps=draw(column),
        misc=draw(column),
        comments=draw(st.lists(fields().map("#".__add__), max_size=2)) if comments else (),
        extra_lines=draw(extra_lines(n, len(CONLLU))) if extras else (),
        columns={name: draw(column) for name in columns},
    )


@st.composite
def analyses(draw, max_characters=12):
    """Draw two analyses of one text, with tokens, words, sentences, tags and trees of their own.

    All values come from few, so that the two often agree.
    """
    text = draw(st.text(st.sampled_from("abAİ"), min_size=1, max_size=max_characters))
    return [draw(_analysis(text)) for _ in range(2)]


@st.composite
def _analysis(draw, text):
    """Cut a text into tokens and these into sentences, and annotate them."""
    trees, words, extra = [], [], []
    place = 0
    while place < len(text):
        end = place + draw(st.integers(1, min(4, len(text) - place)))
        form = draw(st.sampled_from([" ", "\u3000", *[""] * 6])).join(text[place:end])
        if draw(st.sampled_from([True, False, False])):
            parts = draw(st.lists(st.sampled_from(["a", "b", "B", "ab", "b a"]), min_size=1, max_size=3))
            span = f"{len(words) + 1}-{len(words) + len(parts)}"
            extra.append(ExtraLine(len(words), f"{span}\t{form}" + "\t_" * 8))
            words += parts
        else:
            words.append(form)
        if draw(st.sampled_from([True, False, False, False, False])):
            extra.append(ExtraLine(len(words), f"{len(words)}.1\ta" + "\t_" * 8))
        place = end
        if place == len(text) or draw(st.sampled_from([True, False, False])):
            trees.append(draw(_annotated(words, extra)))
            words, extra = [], []
    return trees


@st.composite
def _annotated(draw, words, extra):
    """Draw a tree with one root over given words, and tags, features and lemmas."""
    n = len(words)

    def column(*values):
        return draw(st.lists(st.sampled_from(values), min_size=n, max_size=n))

    order = draw(st.permutations(range(1, n + 1)))
    chosen = [0] * n
    for placed, word in enumerate(order[1:], start=1):
        chosen[word - 1] = draw(st.sampled_from(order[:placed]))
    return DepTree(
        words,
        chosen,
        column("nsubj", "nsubj:pass", "root", "case", "case:x", "det", "punct", "x:nsubj"),
        lemmas=column("a", "b", "_"),
        upos=column("N", "N", "V"),
        xpos=column("_", "_", "X"),
        feats=column(
            "_", "Case=Nom", "Number=Sing|Case=Nom", "Case=Nom|Number=Sing", "Own=Yes|Case=Nom", "Own=No"
        ),
        extra_lines=extra,
    )


@st.composite
def conllx_trees(draw, max_words=6):
    """Draw a sentence with the columns of CoNLL-X and no others."""
    tree = draw(dep_trees(max_words, extras=False, comments=False, columns=("PHEAD", "PDEPREL")))
    tree.deps = tree.misc = ["_"] * len(tree)
    return tree


@st.composite
def conll2009_trees(draw, max_words=5):
    """Draw a sentence with the columns of CoNLL-2009 and no others."""
    names = ("PLEMMA", "PPOS", "PFEAT", "PHEAD", "PDEPREL", "FILLPRED", "PRED")
    tree = draw(dep_trees(max_words, extras=False, comments=False, columns=names))
    n = len(tree)
    fillpred = draw(st.lists(st.sampled_from("Y_"), min_size=n, max_size=n))
    tree.columns["FILLPRED"] = fillpred
    for number in range(fillpred.count("Y")):
        tree.columns[f"APRED{number + 1}"] = draw(st.lists(fields(), min_size=n, max_size=n))
    tree.upos = tree.deps = tree.misc = ["_"] * n
    return tree


def nodes(max_leaves=10):
    """Draw a tree of nested tuples whose root is no leaf."""
    words = (st.sampled_from(PENN_WORDS) | labels()).map(Node)

    def over(children):
        return st.builds(Node, labels(), st.lists(children, min_size=1, max_size=4).map(tuple))

    return over(st.recursive(words, over, max_leaves=max_leaves))


def as_const_tree(node):
    """Build the ConstTree of nested tuples."""
    return ConstTree(node.label, [as_const_tree(child) for child in node.children])


def const_trees(max_leaves=10):
    """Draw a ConstTree whose root is no leaf."""
    return nodes(max_leaves).map(as_const_tree)


PHRASES = ["S", "NP", "VP", "PP", "ADJP"]
TAGS = ["NN", "VBD", "DT", "CC", "IN", ",", "-LRB-", "XX"]


def _put_over(label, children):
    """Return a label over children, or the only child where the label stands over the same words already."""
    chain = children[0]
    while len(children) == 1 and len(chain.children) == 1 and not chain.children[0].is_leaf:
        if chain.label == label:
            return children[0]
        chain = chain.children[0]
    return children[0] if len(children) == 1 and chain.label == label else ConstTree(label, children)


def phrase_trees(max_leaves=10):
    """Draw a tree of tagged words with a top and no label twice over the same words; some nodes are wide."""
    words = st.builds(
        lambda tag, word: ConstTree(tag, [word]),
        st.sampled_from(TAGS),
        st.sampled_from(["a", "bb", "Cc", "d"]),
    )

    def over(children):
        return st.builds(_put_over, st.sampled_from(PHRASES), st.lists(children, min_size=1, max_size=7))

    items = st.recursive(words, over, max_leaves=max_leaves)
    return st.lists(items, min_size=1, max_size=7).map(lambda children: ConstTree("TOP", children))


@st.composite
def nested_spans(draw, n):
    """Draw labelled spans that nest, in the order in which they open."""
    roles = st.sampled_from(["V", "ARG0", "ARG1", "ARGM-TMP", "R-ARG0", "#"])
    edges = st.tuples(st.integers(0, n - 1), st.integers(1, n)).filter(lambda edge: edge[0] < edge[1])
    kept = []
    for label, (start, end) in draw(st.lists(st.tuples(roles, edges), max_size=5)):
        if not any(a < start < b < end or start < a < end < b for _, a, b in kept):
            kept.append(Span(label, start, end))
    return tuple(sorted(kept, key=lambda span: (span.start, -span.end)))


@st.composite
def prop_sentences(draw, max_words=6):
    """Draw a sentence with propositions on some of its words."""
    n = draw(st.integers(1, max_words))
    names = fields().filter(lambda name: name != "-")
    column = st.lists(fields(), min_size=n, max_size=n)
    predicates = sorted(draw(st.sets(st.integers(0, n - 1), max_size=3)))
    propositions = [Proposition(at, draw(names), draw(names), draw(nested_spans(n))) for at in predicates]
    comments = draw(st.lists(fields().map("#".__add__), max_size=2))
    return PropSentence(draw(column), draw(column), propositions, comments)


def random_bytes():
    """Draw bytes: anything at all, and what the formats are made of in any order."""
    pieces = st.sampled_from([*DAMAGE, b"1\ta", b"\t_" * 8, b"(S (N a))", b"# x", b"\x1f\x8b"])
    return st.binary(max_size=60) | st.lists(pieces, max_size=20).map(b"".join)


@st.composite
def mutations(draw, contents):
    """Draw the bytes of a file from `contents` and damage them in one to three places."""
    data = draw(contents)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 8)))
        pieces = [*DAMAGE, b"", data[start:end] * 2, data[:start]]
        piece = draw(st.sampled_from(pieces) | st.binary(max_size=3))
        data = data[:start] + piece + data[end:]
    return data


def as_flat(nested):
    """Return a decision tree of tuples (feature, tree if present, tree if absent) as flat arrays."""
    nodes = []

    def place(tree):
        number = len(nodes)
        nodes.append([-1, -1, -1, tree])
        if isinstance(tree, tuple):
            nodes[number] = [tree[0], place(tree[1]), place(tree[2]), 0.0]
        return number

    place(nested)
    features, present, absent, values = zip(*nodes, strict=True)
    return DecisionTree(
        *(np.array(each, dtype=np.int32) for each in (features, present, absent)), np.array(values)
    )
