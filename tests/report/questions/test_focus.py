"""What questions ask for."""

import pytest

import treewright as tw
from treewright.report.questions.focus import find_focus, list_features

QUESTIONS = {
    "What/WP is/VBZ the/DT name/NN of/IN the/DT river/NN ?/.": ("what", ("is",), ["name", "river"]),
    "What/WDT big/JJ river/NN crosses/VBZ Rome/NNP ?/.": ("what", (), ["river"]),
    "In/IN which/WDT old/JJ town/NN is/VBZ it/PRP ?/.": ("which", (), ["town"]),
    "How/WRB many/JJ towns/NNS burnt/VBD ?/.": ("how many", (), ["towns"]),
    "Name/VB a/DT town/NN ./.": ("name", (), ["town"]),
    "What/WP is/VBZ Rome/NNP 's/POS port/NN ?/.": ("what", ("is",), ["port"]),
    "Who/WP sang/VBD ?/.": ("who", ("sang",), []),
    "Why/WRB": ("why", (), []),
}


def read(text):
    words, tags = zip(*(part.rsplit("/", 1) for part in text.split()), strict=True)
    heads = [0] + [1] * (len(words) - 1)
    return tw.DepTree(words, heads, ["dep"] * len(words), xpos=tags)


@pytest.mark.parametrize("text", QUESTIONS)
def test_the_focus_is_the_noun_phrase_after_the_question_word(text):
    tree = read(text)
    focus = find_focus(tree)
    nouns = [tree.words[phrase.head] for phrase in focus.phrases]
    assert (focus.question, focus.gap, nouns) == QUESTIONS[text]


def test_the_phrase_is_not_looked_for_far_away():
    assert not find_focus(read("Why/WRB do/VBP we/WP so/RB often/RB then/RB go/VB to/TO Rome/NNP")).phrases


@pytest.mark.parametrize("text", QUESTIONS)
def test_all_questions_have_features(text):
    features = list_features(read(text))
    assert len(features) >= 8
    assert len(set(features)) == len(features)


def test_features_name_what_is_asked_for():
    features = list_features(read("What/WP is/VBZ the/DT Capital/NN of/IN Peru/NNP ?/."))
    assert {"question=what", "noun 0=capital", "noun 1=peru", "after=of", "shape=Aa"} <= set(features)
