import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import const_trees, dep_trees, heads

import treewright as tw
from treewright.data.deptree import ExtraLine
from treewright.errors import InputError, MissingDependencyError

nltk = pytest.importorskip("nltk")
spacy = pytest.importorskip("spacy")
pytest.importorskip("stanza")


def sentences():
    """Return two sentences with all the annotation that spaCy can hold."""
    first = tw.DepTree(
        ["Mary", "sleeps", "."],
        [2, 0, 2],
        ["nsubj", "root", "punct"],
        lemmas=["Mary", "sleep", "."],
        upos=["PROPN", "VERB", "PUNCT"],
        xpos=["NNP", "VBZ", "."],
        feats=["Number=Sing", "Number=Sing|NumType=Card|Person=3", "_"],
        misc=["_", "SpaceAfter=No", "_"],
    )
    second = tw.DepTree(["Why", "?"], [0, 1], ["root", "punct"], misc=["SpaceAfter=No", "_"])
    return [first, second.with_tags(upos=["ADV", "PUNCT"], xpos=["WRB", "."], lemmas=["why", "?"])]


def test_nltk_trees_have_the_same_labels_and_leaves():
    made = tw.to_nltk(tw.ConstTree.parse("(S (NP (N Mary)) (VP (V sleeps)))"))
    assert isinstance(made, nltk.Tree)
    assert made == nltk.Tree.fromstring("(S (NP (N Mary)) (VP (V sleeps)))")


@given(const_trees())
def test_nltk_and_back_changes_nothing(tree):
    assert tw.from_nltk(tw.to_nltk(tree)) == tree


def test_deep_trees_survive_nltk():
    depth = 20_000
    tree = tw.ConstTree.parse("(A " * depth + "x" + ")" * depth)
    assert tw.from_nltk(tw.to_nltk(tree)) == tree


def test_an_nltk_label_with_white_space_is_refused():
    with pytest.raises(InputError, match="label is 'a b'"):
        tw.from_nltk(nltk.Tree("a b", ["c"]))


@given(dep_trees(extras=False, comments=False))
def test_graphs_of_nltk_and_back_keep_what_they_hold(tree):
    held = tw.DepTree(
        tree.words,
        tree.heads,
        tree.deprels,
        lemmas=tree.lemmas,
        upos=tree.upos,
        xpos=tree.xpos,
        feats=tree.feats,
    )
    assert tw.from_nltk(tw.to_nltk(tree)) == held


def test_graphs_of_nltk_are_those_that_it_reads_itself():
    lines = ["1 Mary Mary N NNP _ 2 nsubj _ _", "2 sleeps sleep V VBZ _ 0 root _ _"]
    read = nltk.parse.DependencyGraph("\n".join(lines), top_relation_label="root")
    tree = tw.DepTree(
        ["Mary", "sleeps"],
        [2, 0],
        ["nsubj", "root"],
        lemmas=["Mary", "sleep"],
        upos=["N", "V"],
        xpos=["NNP", "VBZ"],
    )
    made = tw.to_nltk(tree)
    assert made.nodes == read.nodes
    assert made.root == read.root
    assert made.tree() == nltk.Tree("sleeps", ["Mary"])
    assert tw.from_nltk(read) == tree


def test_graphs_of_nltk_without_heads_are_read_by_their_arcs():
    graph = nltk.parse.DependencyGraph()
    for address, word in enumerate(["Mary", "sleeps"], start=1):
        graph.add_node({"address": address, "word": word})
    graph.add_arc(0, 2)
    graph.add_arc(2, 1)
    tree = tw.from_nltk(graph)
    assert (tree.words, tree.heads.tolist(), tree.deprels) == (["Mary", "sleeps"], [2, 0], ["_", "_"])


def test_a_graph_whose_head_is_no_node_is_refused():
    graph = nltk.parse.DependencyGraph("a N 2\nb N 0", top_relation_label="ROOT")
    graph.remove_by_address(2)
    with pytest.raises(InputError, match="node 1 has the head 2; expected a node of the graph"):
        tw.from_nltk(graph)


def test_trees_without_heads_are_no_graphs():
    with pytest.raises(InputError, match="a tree has words without a head; expected a head for every word"):
        tw.to_nltk(tw.DepTree(["a"]))


@st.composite
def stanza_trees(draw):
    """Draw a sentence of columns that Stanza hands on as they are."""
    n = draw(st.integers(1, 5))
    column = st.lists(st.text("aB1-.é字", min_size=1, max_size=4), min_size=n, max_size=n)
    known = {name: draw(column) for name in ("deprels", "lemmas", "upos", "xpos")}
    return tw.DepTree(draw(column), draw(heads(n)), comments=["# sent_id = s"], **known)


@given(st.lists(stanza_trees(), max_size=3))
def test_stanza_and_back_changes_nothing(trees):
    assert tw.from_stanza(tw.to_stanza(trees)) == trees


def test_stanza_keeps_multiword_tokens_empty_nodes_and_spaces():
    tree = tw.DepTree(
        ["I", "do", "n't", "."],
        [2, 0, 2, 2],
        ["nsubj", "root", "advmod", "punct"],
        feats=["_", "Mood=Ind|Tense=Pres", "_", "_"],
        misc=["_", "_", "_", "Extra=1|SpaceAfter=No"],
        comments=["# sent_id = one", "# text = I don't."],
        extra_lines=[
            ExtraLine(1, "2-3\tdon't" + "\t_" * 7 + "\tSpaceAfter=No"),
            ExtraLine(4, "4.1\tgo" + "\t_" * 8),
        ],
    )
    document = tw.to_stanza([tree])
    (sentence,) = document.sentences
    assert [token.text for token in sentence.tokens] == ["I", "don't", "."]
    assert [word.head for word in sentence.words] == [2, 0, 2, 2]
    assert tw.from_stanza(document) == [tree]


def test_words_of_stanza_that_no_parser_has_seen_have_unknown_heads():
    tree = tw.DepTree(["a", "b"], comments=["# sent_id = x"])
    document = tw.to_stanza([tree])
    assert [word.head for word in document.sentences[0].words] == [None, None]
    assert tw.from_stanza(document) == [tree]


def test_a_sentence_without_words_is_no_sentence_of_stanza():
    with pytest.raises(InputError, match="a sentence has no words; expected at least one"):
        tw.to_stanza([tw.DepTree([])])


def test_spacy_and_back_changes_nothing():
    doc = tw.to_spacy(sentences())
    assert doc.text.strip() == "Mary sleeps. Why?"
    assert [token.head.text for token in doc] == ["sleeps", "sleeps", "sleeps", "Why", "Why"]
    assert [token.dep_ for token in doc][1] == "ROOT"
    back = tw.from_spacy(doc)
    expected = sentences()
    expected[0].feats[1] = "Number=Sing|NumType=Card|Person=3"
    assert back == expected


def test_spacy_uses_the_vocabulary_it_is_given():
    vocab = spacy.vocab.Vocab()
    assert tw.to_spacy(sentences(), vocab).vocab is vocab


def test_white_space_tokens_of_spacy_are_left_out():
    doc = spacy.tokens.Doc(
        spacy.vocab.Vocab(),
        words=["a", "\n", "b"],
        heads=[0, 0, 1],
        deps=["ROOT", "dep", "obj"],
        sent_starts=[1, 0, 0],
    )
    (tree,) = tw.from_spacy(doc)
    assert (tree.words, tree.heads.tolist(), tree.deprels) == (["a", "b"], [0, 1], ["root", "obj"])


def test_a_doc_without_dependencies_is_refused():
    doc = spacy.tokens.Doc(spacy.vocab.Vocab(), words=["a"])
    with pytest.raises(InputError, match="the Doc has no dependencies"):
        tw.from_spacy(doc)


@pytest.mark.parametrize(
    ("convert", "expected"),
    [
        (tw.from_spacy, "doc is .*; expected a spaCy Doc"),
        (tw.from_stanza, "document is .*; expected a Stanza Document"),
    ],
)
@pytest.mark.parametrize("found", ["The heron sings.", None, [tw.DepTree(["Herons", "sing"])]])
def test_what_no_other_library_has_made_is_refused(convert, expected, found):
    with pytest.raises(InputError, match=expected):
        convert(found)


def test_trees_without_heads_are_refused():
    with pytest.raises(InputError, match="a tree has words without a head; expected a head for every word"):
        tw.to_spacy([tw.DepTree(["a"])])


def test_a_missing_package_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk.tree", None)
    with pytest.raises(MissingDependencyError, match=r"install it with: .*\[nltk\]"):
        tw.to_nltk(tw.ConstTree.parse("(S (N a))"))
