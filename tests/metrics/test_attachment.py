import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import attachment as oracle
from strategies import heads

import treewright as tw
from treewright.errors import InputError

RELATIONS = ["nsubj", "nsubj:pass", "obj", "root", "punct"]


@st.composite
def scored_trees(draw):
    """Draw sentences and another analysis of each."""
    gold, predicted = [], []
    for n in draw(st.lists(st.integers(1, 5), max_size=3)):
        relations = st.lists(st.sampled_from(RELATIONS), min_size=n, max_size=n)
        tree = tw.DepTree(["w"] * n, draw(heads(n)), draw(relations))
        gold.append(tree)
        tree.words = draw(
            st.lists(st.sampled_from(["a", ".", "...", "$", "»", "a."]), min_size=n, max_size=n)
        )
        tree.xpos = draw(st.lists(st.sampled_from(["N", ".", ",", "``", "$"]), min_size=n, max_size=n))
        other = draw(st.sampled_from([tree.heads.tolist(), draw(heads(n))]))
        predicted.append(tree.with_heads(other, draw(relations)))
    return gold, predicted


@given(scored_trees(), st.sampled_from([True, "unicode", "penn"]))
def test_attachment_equals_the_definition(trees, punctuation):
    gold, predicted = trees
    score = tw.metrics.attachment(gold, predicted, punctuation=punctuation)
    found = (score.uas, score.las, score.las_full, score.complete)
    assert found == pytest.approx(oracle.scores(gold, predicted, punctuation))


@given(scored_trees())
def test_relations_add_up_to_the_whole(trees):
    gold, predicted = trees
    score = tw.metrics.attachment(gold, predicted)
    assert sum(one.n_gold for one in score.relations) == score.n_tokens
    assert sum(one.n_predicted for one in score.relations) == score.n_tokens
    assert sum(one.n_heads for one in score.relations) == round(score.uas * score.n_tokens / 100)
    assert sum(one.n_correct for one in score.relations) == round(score.las * score.n_tokens / 100)


def test_relation_scores_are_those_of_a_worked_example():
    gold = tw.DepTree(["we", "saw", "her", "cat"], [2, 0, 4, 2], ["nsubj", "root", "nmod:poss", "obj"])
    guess = gold.with_heads([2, 0, 2, 2], ["nsubj", "root", "obj", "obj"])
    (obj,) = [one for one in tw.metrics.attachment([gold], [guess]).relations if one.relation == "obj"]
    assert (obj.n_gold, obj.n_predicted, obj.n_correct, obj.uas) == (1, 2, 1, 100)
    assert (obj.precision, obj.recall, obj.f1) == pytest.approx((50, 100, 200 / 3))


def test_subtypes_count_only_in_the_full_score():
    gold = tw.DepTree(["a", "b"], [2, 0], ["nmod:poss", "root"])
    score = tw.metrics.attachment([gold], [gold.with_heads([2, 0], ["nmod", "root"])])
    assert (score.las, score.las_full) == (100, 50)


def test_a_word_of_punctuation_and_letters_is_no_punctuation():
    gold = tw.DepTree(["a.", "?!", "$"], [2, 0, 2])
    assert tw.metrics.attachment([gold], [gold], punctuation="unicode").n_tokens == 2


def test_a_predicted_word_without_head_is_wrong():
    gold = tw.DepTree(["a", "b"], [2, 0])
    assert tw.metrics.attachment([gold], [gold.with_heads([-1, 0])]).uas == 50


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([["a"]], [], "1 gold sentences but 0 predicted; expected the same words"),
        ([["a", "b"]], [["a"]], "sentence 1: 2 gold words but 1 predicted; expected the same words"),
        (
            [["a", "b"]],
            [["a", "c"]],
            "sentence 1, word 2: gold has 'b', predicted has 'c'; expected the same words",
        ),
    ],
)
def test_attachment_says_where_the_sentences_differ(gold, predicted, message):
    make = [[tw.DepTree(words, [0] * len(words)) for words in side] for side in (gold, predicted)]
    with pytest.raises(InputError) as caught:
        tw.metrics.attachment(*make)
    assert str(caught.value) == message


def test_attachment_rejects_gold_without_heads():
    with pytest.raises(
        InputError, match="sentence 1: gold word 1 has no head; expected a head for every word"
    ):
        tw.metrics.attachment([tw.DepTree(["a"])], [tw.DepTree(["a"], [0])])


def test_attachment_rejects_an_unknown_punctuation_rule():
    tree = tw.DepTree(["a"], [0])
    for trees in ([tree], []):
        with pytest.raises(InputError, match="punctuation is 'none'; expected one of True, unicode, penn"):
            tw.metrics.attachment(trees, trees, punctuation="none")


def test_what_is_no_list_of_trees_is_not_scored():
    with pytest.raises(InputError, match=r"^the sentences are of type NoneType; expected a list of DepTree$"):
        tw.metrics.attachment(None, None)
    with pytest.raises(InputError, match=r"^sentence 1 is of type int; expected a DepTree$"):
        tw.metrics.attachment([3], [3])
