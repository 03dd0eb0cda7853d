import sys

import pytest
from hypothesis import given
from strategies import const_trees

import treewright as tw
from treewright.errors import InputError, MissingDependencyError

nltk = pytest.importorskip("nltk")
spacy = pytest.importorskip("spacy")


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


def test_trees_without_heads_are_refused():
    with pytest.raises(InputError, match="a tree has words without a head; expected whole trees"):
        tw.to_spacy([tw.DepTree(["a"])])


def test_a_missing_package_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk.tree", None)
    with pytest.raises(MissingDependencyError, match=r"comes with: pip install 'treewright\[nltk\]'"):
        tw.to_nltk(tw.ConstTree.parse("(S (N a))"))
