import treewright as tw
from treewright.drawing.terminal import draw_constituents, draw_dependencies


def test_dependencies_are_drawn_as_arcs_beside_the_words():
    tree = tw.DepTree(
        ["the", "old", "cat", "sleeps", "."],
        [3, 3, 4, 0, 4],
        ["det", "amod", "nsubj", "root", "punct"],
        upos=["DET", "ADJ", "NOUN", "VERB", "PUNCT"],
    )
    assert draw_dependencies(tree).split("\n") == [
        "┌─────► the     DET    det",
        "│   ┌─► old     ADJ    amod",
        "└─┬─┴─► cat     NOUN   nsubj",
        "  └─┬── sleeps  VERB   root",
        "    └─► .       PUNCT  punct",
    ]


def test_crossing_arcs_get_columns_of_their_own():
    drawn = draw_dependencies(tw.DepTree(["a", "b", "c", "d"], [3, 4, 0, 3], ["w", "x", "r", "z"]))
    assert all(line.count("►") <= 1 for line in drawn.split("\n"))
    assert "┼" in drawn


def test_an_empty_sentence_draws_nothing():
    assert draw_dependencies(tw.DepTree([])) == ""


def test_penn_tags_stand_in_for_missing_universal_ones():
    assert "NN" in draw_dependencies(tw.DepTree(["a"], [0], ["root"], xpos=["NN"]))


def test_constituents_are_drawn_indented_with_tags_beside_words():
    tree = tw.ConstTree.parse("(S (NP (D the) (N cat)) (VP (V sleeps)))")
    assert draw_constituents(tree).split("\n") == [
        "S",
        "├─ NP",
        "│  ├─ D the",
        "│  └─ N cat",
        "└─ VP",
        "   └─ V sleeps",
    ]


def test_deep_trees_can_be_drawn():
    depth = 3000
    tree = tw.ConstTree.parse("(A " * depth + "x" + ")" * depth)
    assert draw_constituents(tree).count("\n") == depth - 1
