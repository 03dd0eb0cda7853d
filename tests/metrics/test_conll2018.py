"""Scores of the CoNLL 2018 shared task: equal to those of its official script."""

import io
import os
import sys
import unicodedata
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import analyses

import treewright as tw
from treewright.data.conllu import format_tree
from treewright.data.deptree import ExtraLine, find_head_problem
from treewright.errors import FormatError, InputError
from treewright.metrics.conll2018 import LABELS, SPACES

NEEDS_SCRIPT = "udtools, which has the official script, is not installed"


def load_officially(trees, *, multiple_roots=False):
    udeval = pytest.importorskip("udtools.udeval", reason=NEEDS_SCRIPT)
    lines = io.StringIO("".join(map(format_tree, trees)), newline="\n")
    return udeval.load_conllu(lines, "file", {"multiple_roots_okay": multiple_roots})


def score_officially(gold, predicted, **options):
    udeval = pytest.importorskip("udtools.udeval", reason=NEEDS_SCRIPT)
    return udeval.evaluate(*(load_officially(trees, **options) for trees in (gold, predicted)))


def figures(score):
    counts = score.n_gold, score.n_predicted, score.n_correct, score.n_aligned
    return *counts, score.precision, score.recall, score.f1, score.aligned_accuracy


def official_figures(score):
    counts = score.gold_total, score.system_total, score.correct, score.aligned_total
    accuracy = score.aligned_accuracy
    shares = score.precision, score.recall, score.f1
    return *counts, *(100 * share for share in shares), None if accuracy is None else 100 * accuracy


def assert_equal_to_script(gold, predicted, **options):
    expected = score_officially(gold, predicted, **options)
    found = tw.metrics.conll2018(gold, predicted, **options)
    assert len(found.items()) == 13
    for name, score in found.items():
        assert figures(score) == official_figures(expected[LABELS[name]]), name


def tree(tokens, heads=None, **columns):
    """Make a tree of tokens: a form, or a form and the words of a multiword token in one string."""
    words, extra = [], []
    for token in tokens:
        form, *parts = token.split()
        if parts:
            extra.append(
                ExtraLine(len(words), f"{len(words) + 1}-{len(words) + len(parts)}\t{form}" + "\t_" * 8)
            )
        words += parts or [form]
    chain = [0, *range(1, len(words))]
    return tw.DepTree(words, heads or chain, columns.pop("deprels", None), extra_lines=extra, **columns)


@settings(max_examples=300)
@given(analyses())
def test_every_figure_equals_that_of_the_official_script(pair):
    assert_equal_to_script(*pair)


@given(analyses(), st.randoms(use_true_random=False))
def test_every_figure_equals_that_of_the_script_with_several_roots(pair, random):
    for trees in pair:
        for number, one in enumerate(trees):
            heads = [0 if random.random() < 0.3 else head for head in one.heads.tolist()]
            trees[number] = one.with_heads(heads)
    assert_equal_to_script(*pair, multiple_roots=True)


@given(analyses(max_characters=6))
def test_the_table_is_that_of_the_script(pair):
    udeval = pytest.importorskip("udtools.udeval", reason=NEEDS_SCRIPT)
    assert str(tw.metrics.conll2018(*pair)) == udeval.build_evaluation_table(score_officially(*pair))


GOLD = [
    tree(
        ["Vámonos vamos nos", "al a el", "mar", "."],
        [0, 1, 5, 5, 1, 1],
        deprels=["root", "obj", "case", "det", "obl:arg", "punct"],
        upos=["VERB", "PRON", "ADP", "DET", "NOUN", "PUNCT"],
        xpos=["V", "P", "A", "D", "N", "F"],
        feats=["Mood=Imp", "Case=Acc", "_", "Definite=Def", "Gender=Masc|Own=Yes", "_"],
        lemmas=["ir", "nosotros", "a", "el", "mar", "_"],
    ),
    tree(["Sí", "!"], [0, 1], deprels=["root", "punct"], upos=["INTJ", "PUNCT"], lemmas=["sí", "!"]),
    tree(
        ["El", "mar", "canta"],
        [2, 3, 0],
        deprels=["det", "nsubj", "root"],
        upos=["DET", "NOUN", "VERB"],
        lemmas=["el", "mar", "cantar"],
    ),
]
GUESS = [
    tree(
        ["Vámonos vamos os", "al a El", "mar", ".", "Sí!"],
        [0, 1, 5, 5, 1, 1, 1],
        deprels=["root", "obj", "case", "det", "obl", "punct", "discourse"],
        upos=["VERB", "PRON", "ADP", "DET", "NOUN", "PUNCT", "INTJ"],
        xpos=["V", "P", "A", "D", "M", "F", "_"],
        feats=["Mood=Imp", "Case=Acc", "_", "Definite=Def", "Gender=Masc", "_", "_"],
        lemmas=["ir", "vosotros", "a", "el", "Mar", ".", "sí"],
    ),
    tree(
        ["El", "mar", "canta"],
        [2, 3, 0],
        deprels=["det", "nsubj", "root"],
        upos=["PRON", "NOUN", "VERB"],
        lemmas=["él", "mar", "cantar"],
    ),
]
# What udeval of udtools 0.2.9, which has the official script, printed for GOLD and GUESS.
PRINTED = """\
Metric     | Precision |    Recall |  F1 Score | AligndAcc
-----------+-----------+-----------+-----------+-----------
Tokens     |     87.50 |     77.78 |     82.35 |
Sentences  |     50.00 |     33.33 |     40.00 |
Words      |     80.00 |     72.73 |     76.19 |
UPOS       |     70.00 |     63.64 |     66.67 |     87.50
XPOS       |     70.00 |     63.64 |     66.67 |     87.50
UFeats     |     80.00 |     72.73 |     76.19 |    100.00
AllTags    |     60.00 |     54.55 |     57.14 |     75.00
Lemmas     |     60.00 |     54.55 |     57.14 |     75.00
UAS        |     80.00 |     72.73 |     76.19 |    100.00
LAS        |     80.00 |     72.73 |     76.19 |    100.00
CLAS       |     66.67 |     66.67 |     66.67 |    100.00
MLAS       |     50.00 |     50.00 |     50.00 |     75.00
BLEX       |     50.00 |     50.00 |     50.00 |     75.00"""


def test_the_table_of_an_example_is_what_the_script_printed():
    assert str(tw.metrics.conll2018(GOLD, GUESS)) == PRINTED


@pytest.mark.parametrize(
    ("gold", "predicted", "n_aligned"),
    [
        (["ab", "c"], ["a", "b", "c"], 1),
        (["ab a b"], ["a", "b"], 2),
        (["ab a b"], ["ab"], 0),
        (["abc a c"], ["ab a b", "c"], 2),
        (["abc a b c", "de d e"], ["a", "bcd b c d", "e"], 5),
        (["ab A x"], ["ab y a"], 1),
    ],
)
def test_words_of_multiword_tokens_are_aligned_by_a_common_subsequence(gold, predicted, n_aligned):
    assert tw.metrics.conll2018([tree(gold)], [tree(predicted)]).words.n_correct == n_aligned


def test_white_space_in_forms_and_empty_nodes_do_not_count():
    gold = tw.DepTree(["a\u00a0b", "c"], [0, 1])
    guess = tw.DepTree(["ab", "c"], [0, 1], extra_lines=[ExtraLine(1, "1.1\tx" + "\t_" * 8)])
    scores = tw.metrics.conll2018([gold], [guess])
    assert (scores.tokens.f1, scores.words.f1, scores.las.f1) == (100, 100, 100)


def test_white_space_is_what_unicode_calls_a_space_separator():
    characters = "".join(map(chr, range(sys.maxunicode + 1)))
    spaces = [character for character in characters if unicodedata.category(character) == "Zs"]
    assert SPACES.findall(characters) == spaces


def test_a_sentence_is_right_if_both_its_ends_are():
    gold = [tree(["a", "b"]), tree(["c"]), tree(["d", "e"])]
    guess = [tree(["a"]), tree(["b"]), tree(["c"]), tree(["de"])]
    score = tw.metrics.conll2018(gold, guess).sentences
    assert (score.n_gold, score.n_predicted, score.n_correct) == (3, 4, 2)


def test_any_lemma_is_right_where_gold_has_none():
    gold = tree(["a", "b"], lemmas=["_", "b"], deprels=["root", "nsubj"])
    guess = tree(["a", "b"], lemmas=["x", "_"], deprels=["root", "nsubj"])
    scores = tw.metrics.conll2018([gold], [guess])
    assert (scores.lemmas.n_correct, scores.blex.n_correct) == (1, 1)


def test_only_universal_features_and_relations_count():
    gold = tree(["a"], feats=["Case=Nom|Own=Yes|Number=Sing"], deprels=["nsubj:pass"])
    guess = tree(["a"], feats=["Number=Sing|Case=Nom"], deprels=["nsubj"])
    scores = tw.metrics.conll2018([gold], [guess])
    assert (scores.ufeats.f1, scores.all_tags.f1, scores.clas.f1) == (100, 100, 100)


@pytest.mark.parametrize(
    ("deprels", "upos"),
    [
        (["case", "root"], ["DET", "NOUN"]),
        (["det", "root"], ["PRON", "NOUN"]),
        (["punct", "root"], ["DET", "NOUN"]),
    ],
)
def test_a_wrong_function_word_costs_its_head_in_mlas_alone(deprels, upos):
    gold = tree(["a", "b"], [2, 0], deprels=["det", "root"], upos=["DET", "NOUN"])
    guess = gold.with_heads([2, 0], deprels).with_tags(upos=upos)
    for pair in ([gold], [guess]), ([guess], [gold]):
        scores = tw.metrics.conll2018(*pair)
        assert (scores.clas.f1, scores.mlas.f1, scores.blex.f1) == (100, 0, 100)


@given(analyses(max_characters=8))
def test_the_same_words_have_the_attachment_scores_of_before(pair):
    gold, _ = pair
    guess = [one.with_heads(one.heads, one.deprels[::-1]) for one in gold]
    score, scores = tw.metrics.attachment(gold, guess), tw.metrics.conll2018(gold, guess)
    assert (scores.uas.f1, scores.las.f1) == pytest.approx((score.uas, score.las))


def test_files_are_scored_as_their_trees_are(tmp_path):
    tw.write_conllu(GOLD, tmp_path / "gold.conllu")
    tw.write_conllu(GUESS, tmp_path / "guess.conllu")
    scores = tw.metrics.conll2018(tmp_path / "gold.conllu", str(tmp_path / "guess.conllu"))
    assert scores == tw.metrics.conll2018(GOLD, GUESS)


def test_multiword_tokens_have_their_forms_where_a_file_declares_them(tmp_path):
    path = tmp_path / "plus.conllu"
    columns = "# global.columns = ID LEMMA FORM HEAD\n"
    path.write_text(columns + "1-2\t_\tal\t_\n1\ta\ta\t0\n2\tel\tel\t1\n\n")
    assert tw.metrics.conll2018(path, [tree(["al a el"])]).words.n_correct == 2


def test_no_sentences_score_nothing():
    assert {score.f1 for _, score in tw.metrics.conll2018([], []).items()} == {0}


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        (
            [["ab", "c"], ["d", "efg"]],
            [["a", "bcd"], ["ex", "g"]],
            "the texts differ: gold has 'fg' (sentence 2, token 2), "
            "predicted has 'xg' (sentence 2, token 1); expected the same characters except whitespace",
        ),
        (
            [["ab", "c"]],
            [["a"], ["b"]],
            "the texts differ: gold has 'c' (sentence 1, token 2), predicted ends after sentence 2; "
            "expected the same characters except whitespace",
        ),
        (
            [],
            [["a"]],
            "the texts differ: gold is empty, predicted has 'a' (sentence 1, token 1); "
            "expected the same characters except whitespace",
        ),
    ],
)
def test_it_says_where_the_texts_differ(gold, predicted, message):
    with pytest.raises(InputError) as caught:
        tw.metrics.conll2018(*([tree(tokens) for tokens in side] for side in (gold, predicted)))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            tree(["a", "b", "c"], [0, 1, 0]),
            "has 2 roots (words 1, 3); expected one, or multiple_roots=True",
        ),
        (tw.DepTree(["a"]), "word 1 has no head; expected a head for every word"),
        (tw.DepTree([]), "has no words; expected at least one"),
        (tw.DepTree(["a", " \u3000"], [0, 1]), "word 2: FORM is empty; expected a form"),
        (
            tw.DepTree(["a", "b"], [0, 1], extra_lines=[ExtraLine(1, "2-3\tb")]),
            "a multiword token has ID '2-3'; expected a range of words from 1 to 2",
        ),
        (
            tw.DepTree(["a", "b"], [0, 1], extra_lines=[ExtraLine(0, "1-2\tb"), ExtraLine(1, "2-2\tb")]),
            "a multiword token has ID '2-2'; expected no more multiword tokens",
        ),
        (
            tw.DepTree(["a", "b"], [0, 1], extra_lines=[ExtraLine(0, "x\tb")]),
            "a multiword token has ID 'x'; expected a range of words from 1 to 2",
        ),
        (
            tw.DepTree(["a", "b"], [0, 1], extra_lines=[ExtraLine(0, "1-2")]),
            "multiword token 1-2: FORM is empty; expected a form",
        ),
    ],
)
def test_a_sentence_that_cannot_be_scored_is_named(wrong, message):
    fine = tree(["a"])
    for pair, place in (([fine, wrong], [fine]), "gold"), (([fine], [fine, wrong]), "predicted"):
        with pytest.raises(InputError) as caught:
            tw.metrics.conll2018(*pair)
        assert str(caught.value).startswith(f"{place} sentence 2")
        assert str(caught.value).endswith(message)


def test_what_is_no_tree_is_refused(tmp_path):
    with pytest.raises(InputError, match="sentence 1 is of type str; expected a DepTree"):
        tw.metrics.conll2018(["a"], [])
    path = tmp_path / "cycle.conllu"
    path.write_text("".join(f"{word}\ta{chr(9) + '_'}\t_\t_\t_\t{3 - word}\t_\t_\t_\n" for word in (1, 2)))
    with pytest.raises(FormatError, match="cycle"):
        tw.metrics.conll2018(path, path)


def real_files():
    folder = Path(os.environ.get("TREEWRIGHT_DATA", "nowhere"))
    return sorted(folder.glob("ud/*dev.conllu")) or [
        pytest.param("", marks=pytest.mark.skip(reason="no real data: TREEWRIGHT_DATA is not set or empty"))
    ]


class Word:
    """A word that knows its head by itself, so that it can be moved to another sentence."""

    def __init__(self, form, columns, head=None):
        self.form, self.columns, self.head = form, columns, head


def sentences_of(trees):
    """Return sentences as lists of tokens: the form, the words, whether it is a multiword token."""
    for one in trees:
        columns = zip(one.deprels, one.lemmas, one.upos, one.xpos, one.feats, strict=True)
        words = [Word(form, list(values)) for form, values in zip(one.words, columns, strict=True)]
        for word, head in zip(words, one.heads.tolist(), strict=True):
            word.head = words[head - 1] if head else None
        tokens, done = [], 0
        for extra in one.extra_lines:
            token_id, form = extra.text.split("\t")[:2]
            if "-" in token_id:
                first, last = map(int, token_id.split("-"))
                tokens += [(word.form, [word], False) for word in words[done : first - 1]]
                tokens.append((form, words[first - 1 : last], True))
                done = last
        yield tokens + [(word.form, [word], False) for word in words[done:]]


def perturbed(trees, random, rate=0.05):
    """Split and merge tokens and sentences, make and undo multiword tokens, change tags, heads and lemmas."""
    sentences = []
    for tokens in sentences_of(trees):
        if sentences and random.random() < rate:
            sentences[-1] += tokens
        else:
            sentences.append(tokens)
        if len(sentences[-1]) > 1 and random.random() < rate:
            cut = random.randrange(1, len(sentences[-1]))
            sentences[-1:] = sentences[-1][:cut], sentences[-1][cut:]
    return [made_of(perturbed_tokens(tokens, random, rate)) for tokens in sentences]


def perturbed_tokens(tokens, random, rate):
    changed = []
    for form, words, is_multiword in tokens:
        dice = random.random() / rate
        first = words[0]
        if dice < 1 and len(form) > 1:
            cut = random.randrange(1, len(form))
            behind = Word(form[cut:], [*first.columns], first)
            changed += [(form[:cut], [first], False), (form[cut:], [behind], False)]
        elif dice < 2 and changed:
            before, others, was_multiword = changed.pop()
            both = [*others, *words]
            keep = random.random() < 0.5 or was_multiword or is_multiword
            changed.append((before + form, both if keep else others[:1], keep))
        elif dice < 3 and len(form) > 1:
            behind = Word(random.choice([form[-1], form, first.form]), [*first.columns], first)
            changed.append((form, [*words, behind], True))
        elif dice < 4:
            changed.append((form, [first], False))
        else:
            changed.append((form, words, is_multiword))
    for _, words, is_multiword in changed:
        for word in words:
            if random.random() < rate and is_multiword:
                word.form = word.form.upper()
            for column, values in enumerate(
                (("nsubj", "det", "case"), ("_", "x"), ("X",), ("x",), ("_", "Case=Nom"))
            ):
                if random.random() < rate:
                    word.columns[column] = random.choice(values)
            if random.random() < rate:
                word.head = random.choice(words)
    return changed


def made_of(tokens):
    """Make a tree with one root of tokens whose words may have lost their heads."""
    words, extra = [], []
    for form, parts, is_multiword in tokens:
        if is_multiword:
            span = f"{len(words) + 1}-{len(words) + len(parts)}"
            extra.append(ExtraLine(len(words), f"{span}\t{form}" + "\t_" * 8))
        else:
            parts[0].form = form
        words += parts
    places = {id(word): place for place, word in enumerate(words, start=1)}
    heads = [places.get(id(word.head), 0) for word in words]
    while problem := find_head_problem(heads):
        heads[problem[0]] = 0
    root = heads.index(0) + 1
    heads = [head or root * (place != root) for place, head in enumerate(heads, start=1)]
    deprels, lemmas, upos, xpos, feats = zip(*(word.columns for word in words), strict=True)
    forms = [word.form for word in words]
    tags = {"lemmas": lemmas, "upos": upos, "xpos": xpos, "feats": feats}
    return tw.DepTree(forms, heads, deprels, extra_lines=extra, **tags)


@pytest.mark.slow_cases
@pytest.mark.parametrize("path", real_files(), ids=lambda path: getattr(path, "name", "none"))
def test_every_figure_of_a_real_file_that_is_perturbed_equals_that_of_the_script(path):
    gold = tw.read_conllu(path)
    assert_equal_to_script(gold, gold, multiple_roots=True)
    for seed, rate in enumerate((0.02, 0.15)):
        guess = perturbed(gold, Random(seed), rate)
        assert_equal_to_script(gold, guess, multiple_roots=True)
        assert_equal_to_script(guess, gold, multiple_roots=True)


@pytest.mark.parametrize("wrong", [tw.DepTree(["a"], [0], ["root"]), 3, iter([])])
def test_what_is_neither_a_list_nor_a_file_is_refused(wrong):
    with pytest.raises(InputError, match=r"the sentences are of type \w+; expected a list of DepTree"):
        tw.metrics.conll2018(wrong, wrong)
