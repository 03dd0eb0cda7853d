import pytest

import treewright as tw
from treewright.data.heads import RULES, head_words
from treewright.errors import InputError


def heads_of(text, rules="yamada-matsumoto"):
    return tw.to_dependencies(tw.ConstTree.parse(text), rules=rules).heads.tolist()


def test_a_sentence_gets_the_heads_one_expects():
    tree = tw.ConstTree.parse(
        "(S (NP (DT the) (JJ old) (NN cat)) (VP (VBZ sleeps) (PP (IN on) (NP (NN rugs)))) (. .))"
    )
    found = tw.to_dependencies(tree)
    assert found.words == ["the", "old", "cat", "sleeps", "on", "rugs", "."]
    assert found.heads.tolist() == [3, 3, 4, 0, 4, 5, 4]
    assert found.xpos == tree.tags()
    assert found.deprels == ["dep", "dep", "dep", "root", "dep", "dep", "dep"]


@pytest.mark.parametrize(
    ("text", "rules", "head"),
    [
        ("(NP (NN tax) (NNS cuts) (JJ new))", "yamada-matsumoto", 2),
        ("(NP (NN tax) (NNP Ltd) (POS 's))", "yamada-matsumoto", 3),
        ("(NP ($ $) (CD 5))", "yamada-matsumoto", 2),
        ("(NP ($ $) (CD 5))", "collins", 1),
        ("(VP (TO to) (VP (VB go)))", "yamada-matsumoto", 2),
        ("(VP (TO to) (VP (VB go)))", "collins", 1),
        ("(VP (VB eat) (CC and) (VB drink))", "yamada-matsumoto", 1),
        ("(NP (NN salt) (CC and) (NN pepper))", "yamada-matsumoto", 3),
        ("(NP (NN salt) (CC and) (NN pepper))", "collins", 1),
        ("(NP (NN salt) (, ,) (NN oil) (, ,) (CC and) (NN pepper))", "collins", 3),
        ("(NP (NP (NN end)) (PP (IN of) (NN time)))", "collins", 1),
        ("(PP (IN of) (NN time))", "collins", 1),
        ("(X (. .) (, ,))", "yamada-matsumoto", 2),
        ("(FRAG (UH oh) (: --) (UH no))", "yamada-matsumoto", 1),
        ("(FRAG (UH oh) (: --) (UH no) (. !))", "collins", 3),
        ("(UNHEARD-OF (A a) (B b))", "collins", 2),
    ],
)
def test_rules_choose_the_head_of_a_phrase(text, rules, head):
    assert heads_of(text, rules).index(0) + 1 == head


def test_traces_are_left_out_and_function_tags_ignored():
    assert heads_of("(S (NP-SBJ-1 (PRP we)) (VP=2 (VBD ran) (NP (-NONE- *-1))))") == [2, 0]


def test_every_node_is_headed_by_a_word_under_it():
    tree = tw.ConstTree.parse("(S (NP (DT the) (NN cat)) (VP (VBZ sleeps) (ADVP (RB well))))")
    governors = head_words(tree, rules="collins")
    spans = [(node.words(), node) for node in tree.subtrees()]
    words = tree.words()
    assert all(words[governor] in under for governor, (under, _) in zip(governors, spans, strict=True))
    assert words[governors[-1]] == "sleeps"


def test_deep_trees_have_heads():
    depth = 20_000
    assert heads_of("(S " * depth + "(N a)" + ")" * depth) == [0]


def test_unknown_rules_are_rejected():
    with pytest.raises(InputError, match="rules is 'magerman'; expected one of yamada-matsumoto, collins"):
        heads_of("(S (N a))", rules="magerman")


@pytest.mark.parametrize("tree", [tw.ConstTree("word"), tw.ConstTree.parse("(S (-NONE- *))")])
def test_a_tree_without_tagged_words_is_rejected(tree):
    with pytest.raises(InputError, match="has no tagged word; expected at least one"):
        tw.to_dependencies(tree)


def test_both_tables_cover_the_same_labels():
    assert RULES["collins"].searches.keys() == RULES["yamada-matsumoto"].searches.keys()


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_heads_agree_with_the_outside_conversion_of_the_penn_sample(data_folder, part):
    folder = data_folder / "wsj_sample"
    gold = tw.read_conllu(folder / f"wsj-{part}.dep.conllu")
    trees = tw.read_brackets(folder / f"wsj-{part}.mrg")
    assert tw.metrics.attachment(gold, [tw.to_dependencies(tree) for tree in trees]).uas >= 99.5


def test_what_is_no_tree_is_not_converted():
    with pytest.raises(InputError, match=r"^the tree is of type str; expected a ConstTree$"):
        tw.to_dependencies("(S (N a))")
