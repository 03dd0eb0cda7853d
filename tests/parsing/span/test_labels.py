import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import treewright as tw
from treewright.parsing.constituent.inferences import TaggedSentence
from treewright.parsing.span.labels import SpanLabels, all_spans, collect_chains, span_rows

TEXTS = [
    "(TOP (S (NP (DT the) (NN cat)) (VP (VBD sat))))",
    "(TOP (NN cat))",
    "(TOP (NP (NN cat)) (. .))",
    "(TOP (S (VP (VB go) (NP (NP (NN home)) (ADVP (RB now))) (, ,) (RB please))))",
    "(TOP (S (S (VP (VB go)))))",
]


@st.composite
def nested(draw, depth=3):
    """Draw a constituent of words with tags; one with a single child is part of a chain."""
    label = draw(st.sampled_from(["NP", "VP", "S"]))
    if depth == 0:
        return f"({draw(st.sampled_from(['NN', 'VB']))} {draw(st.sampled_from(['a', 'b', 'NP']))})"
    children = draw(st.lists(nested(depth=draw(st.integers(0, depth - 1))), min_size=1, max_size=4))
    return f"({label} {' '.join(children)})"


def read(tree):
    return TaggedSentence(tree.words(), tree.tags())


@pytest.mark.parametrize("text", TEXTS)
def test_a_tree_is_the_one_with_its_spans(text):
    tree = tw.ConstTree.parse(text)
    for root in ("TOP", None):
        labels = SpanLabels.from_trees([tree], root)
        assert labels.decode(read(tree), labels.encode(tree)) == tree


@given(nested())
def test_any_tree_is_the_one_with_its_spans(text):
    tree = tw.ConstTree.parse(f"(TOP {text})")
    labels = SpanLabels.from_trees([tree], "TOP")
    assert labels.decode(read(tree), labels.encode(tree)) == tree
    bare = tree.children[0]
    labels = SpanLabels.from_trees([bare], None)
    assert labels.decode(read(bare), labels.encode(bare)) == bare


def test_constituents_over_the_same_words_are_one_label():
    tree = tw.ConstTree.parse(TEXTS[4])
    assert collect_chains(tree, "TOP") == {(0, 1): ("S", "S", "VP")}
    assert collect_chains(tree, None) == {(0, 1): ("TOP", "S", "S", "VP")}


def test_what_was_not_seen_has_no_labels():
    labels = SpanLabels.from_trees([tw.ConstTree.parse(TEXTS[0])], "TOP")
    assert labels.encode(tw.ConstTree.parse("(TOP (S (NP (DT the) (NN cat)) (PP (VBD sat))))")) is None
    assert labels.encode(tw.ConstTree.parse("(ROOT (S (NP (DT the) (NN cat)) (VP (VBD sat))))")) is None
    assert labels.encode(tw.ConstTree("cat")) is None


def test_frequent_labels_come_first_and_the_empty_one_before_all():
    labels = SpanLabels.from_trees([tw.ConstTree.parse(text) for text in TEXTS], "TOP")
    assert labels.chains[:2] == [(), ("NP",)]
    assert len(set(labels.chains)) == len(labels)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_all_spans_are_in_the_order_of_their_rows(n):
    starts, ends = all_spans(n)
    assert span_rows(n, starts, ends).tolist() == list(range(n * (n + 1) // 2))
    assert (np.minimum(starts, ends - 1) >= 0).all()
