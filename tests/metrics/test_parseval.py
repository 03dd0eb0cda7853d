import json
import random
from itertools import pairwise
from pathlib import Path

import pytest
from oracle import parseval as oracle

import treewright as tw
from treewright.errors import InputError
from treewright.metrics.parseval import COUNTS, sentence_counts, sentence_length

GOLDEN = Path(__file__).parents[1] / "golden" / "evalb.json"
LABELS = ["S", "NP", "VP", "PRT", "ADVP", "NP-SBJ", "TOP", "X=2", "X", "-FOO", "PP"]
TAGS = ["N", "N", "N", "V", ",", ".", "``", "-NONE-", "''", ":", "ADVP", "PRT", "-LRB-", "TOP"]


def random_tree(rng, words, tags, depth=0):
    n = len(words)
    if n == 1 and (depth > 6 or rng.random() < 0.6):
        return tw.ConstTree(tags[0], words)
    n_children = n if depth > 6 else rng.randint(1, min(n, 3))
    edges = [0, *sorted(rng.sample(range(1, n), n_children - 1)), n]
    children = [
        random_tree(rng, words[start:end], tags[start:end], depth + 1) for start, end in pairwise(edges)
    ]
    return tw.ConstTree(rng.choice(LABELS), children)


def random_pair(rng):
    words = [f"w{rng.randrange(5)}" for _ in range(rng.randint(1, 8))]
    tags = [rng.choice(TAGS) for _ in words]
    guessed_tags = [rng.choice(TAGS) if rng.random() < 0.1 else tag for tag in tags]
    guessed_words = ["other", *words[1:]] if rng.random() < 0.05 else words
    return random_tree(rng, words, tags), random_tree(rng, guessed_words, guessed_tags)


def as_dict(row):
    counts = dict(zip(COUNTS, row.tolist(), strict=True))
    if counts["errors"] or counts["skipped"]:
        return {"status": 1 if counts["errors"] else 2}
    names = ("matched", "gold", "predicted", "crossing", "words", "tags")
    return {"status": 0, **{name: counts[name] for name in names}}


def test_parseval_equals_the_definition_on_random_pairs():
    rng = random.Random(0)
    pairs = [random_pair(rng) for _ in range(4000)]
    rows = sentence_counts([gold for gold, _ in pairs], [guess for _, guess in pairs])
    statuses = set()
    for (gold, guess), row in zip(pairs, rows, strict=True):
        expected = oracle.score_pair(str(gold), str(guess))
        statuses.add(expected["status"])
        assert as_dict(row) == expected, (gold, guess)
    assert statuses == {0, 1, 2}


def test_parseval_equals_what_evalb_printed():
    pairs = json.loads(GOLDEN.read_text())["pairs"]
    for pair in pairs:
        gold = tw.ConstTree.parse(pair.pop("gold_tree"))
        guess = tw.ConstTree.parse(pair.pop("predicted_tree"))
        assert sentence_length(gold) == pair.pop("length")
        (row,) = sentence_counts([gold], [guess])
        expected = pair if pair["status"] == 0 else {"status": pair["status"]}
        assert as_dict(row) == expected


def test_parseval_equals_the_sums_over_sentences():
    rng = random.Random(1)
    pairs = [random_pair(rng) for _ in range(300)]
    score = tw.metrics.parseval([gold for gold, _ in pairs], [guess for _, guess in pairs])
    scored = [oracle.score_pair(str(gold), str(guess)) for gold, guess in pairs]
    valid = [one for one in scored if one["status"] == 0]
    matched, gold, predicted = (sum(one[name] for one in valid) for name in ("matched", "gold", "predicted"))
    exact = sum(one["matched"] == one["gold"] == one["predicted"] for one in valid)
    assert (score.n_matched, score.n_gold, score.n_predicted) == (matched, gold, predicted)
    assert score.n_errors == sum(one["status"] == 1 for one in scored)
    assert score.n_skipped == sum(one["status"] == 2 for one in scored)
    assert score.recall == pytest.approx(100 * matched / gold)
    assert score.precision == pytest.approx(100 * matched / predicted)
    assert score.f1 == pytest.approx(2 * score.precision * score.recall / (score.precision + score.recall))
    assert score.exact == pytest.approx(100 * exact / len(valid))
    assert score.crossing == pytest.approx(sum(one["crossing"] for one in valid) / len(valid))


def test_a_tree_scores_full_marks_against_itself():
    tree = tw.ConstTree.parse("(TOP (S (NP (N Mary)) (VP (V sleeps)) (. .)))")
    score = tw.metrics.parseval([tree], [tree])
    assert (score.precision, score.recall, score.f1, score.exact, score.n_gold) == (100, 100, 100, 100, 3)


def test_particles_and_adverb_phrases_are_one_label():
    gold = tw.ConstTree.parse("(S (VP (V look) (PRT (R up))))")
    guess = tw.ConstTree.parse("(S (VP (V look) (ADVP (R up))))")
    assert tw.metrics.parseval([gold], [guess]).f1 == 100


def test_the_length_limit_counts_punctuation_but_no_traces():
    tree = tw.ConstTree.parse("(S (NP (N we)) (VP (V saw) (NP (-NONE- *))) (. .))")
    assert tw.metrics.parseval([tree], [tree], max_length=3).n_sentences == 1
    assert tw.metrics.parseval([tree], [tree], max_length=2).n_sentences == 0


def test_a_missing_prediction_is_skipped():
    tree = tw.ConstTree.parse("(S (N we))")
    score = tw.metrics.parseval([tree, tree], [None, tree])
    assert (score.n_skipped, score.n_sentences, score.f1) == (1, 1, 100)


def test_nothing_to_score_gives_zeros():
    assert tw.metrics.parseval([], []).f1 == 0


def test_parseval_rejects_lists_of_different_lengths():
    tree = tw.ConstTree.parse("(S (N we))")
    with pytest.raises(InputError, match="1 gold trees but 2 predicted; expected the same number"):
        tw.metrics.parseval([tree], [tree, tree])


def test_parseval_rejects_a_length_limit_below_one():
    with pytest.raises(InputError, match="max_length is 0; expected a positive number or None"):
        tw.metrics.parseval([], [], max_length=0)


def test_what_is_no_tree_is_not_scored():
    with pytest.raises(InputError, match=r"^a tree is of type int; expected a ConstTree$"):
        tw.metrics.parseval([3], [3])
