"""Trees that agree with what is fixed, compared with a filter on all trees."""

import numpy as np
import pytest
from oracle.dependency.arborescence import trees as trees_of

import treewright as tw
from treewright.data.projective import is_projective
from treewright.errors import InputError
from treewright.native.dependency.pruning import all_arcs, take_sentence
from treewright.parsing.dependency.constraints import check_fixed, has_tree, restrict
from treewright.parsing.dependency.pruning import StagedFilter, _widen, left_arcs

EVERYTHING = 4000
OPTIONS = {"epochs": 1, "runs": 1, "table_bits": 14}
WIDE = {"pruning_threshold": 0, "max_heads": 20}
KINDS = {
    "order 1": {"order": 1, **WIDE},
    "order 2": {"order": 2, **WIDE},
    "order 3": {"order": 3, **WIDE},
    "spanning": {"order": 1, "decoder": "spanning"},
}


@pytest.fixture(scope="module")
def bank():
    return tw.make_treebank(60, random_state=0).dependencies


@pytest.fixture(scope="module")
def parsers(bank):
    """Train a parser of each kind, which hardly prunes."""
    return {name: tw.DependencyParser(**OPTIONS, **more).fit(bank) for name, more in KINDS.items()}


@pytest.fixture(scope="module", params=KINDS)
def parser(request, parsers):
    return parsers[request.param]


@pytest.fixture(scope="module")
def strict(bank):
    """Return a parser that leaves one head per word."""
    return tw.DependencyParser(order=2, max_heads=1, **OPTIONS).fit(bank)


def draw(bank, random_state, sizes):
    """Return sentences of random words of a treebank."""
    rng = np.random.default_rng(random_state)
    words = [token for tree in bank for token in zip(tree.words, tree.upos, tree.xpos, strict=True)]
    drawn = [[words[at] for at in rng.integers(len(words), size=size)] for size in sizes]
    columns = [list(zip(*tokens, strict=True)) for tokens in drawn]
    return [tw.DepTree(list(forms), upos=list(upos), xpos=list(xpos)) for forms, upos, xpos in columns]


@pytest.fixture(scope="module")
def sentences(bank):
    return draw(bank, 1, [1, 2, 3, 4, 5, 5])


def agrees(tree, heads):
    return all(tree.heads[word - 1] == head for word, head in heads.items())


def some_arcs(rng, lists):
    """Fix some heads of each sentence, those of any of its trees."""
    fixed = []
    for candidates in lists:
        tree = candidates[rng.integers(len(candidates))].tree
        words = rng.choice(len(tree), size=rng.integers(len(tree) + 1), replace=False) + 1
        fixed.append({int(word): int(tree.heads[word - 1]) for word in words})
    return fixed


def test_trees_with_fixed_arcs_are_those_of_all_that_have_them(parser, sentences):
    rng, everything = np.random.default_rng(0), parser.kbest(sentences, EVERYTHING)
    for _ in range(8):
        fixed = some_arcs(rng, everything)
        found = parser.kbest(sentences, EVERYTHING, fixed=fixed)
        for heads, candidates, all_trees in zip(fixed, found, everything, strict=True):
            expected = [one for one in all_trees if agrees(one.tree, heads)]
            assert {one.tree.heads.tobytes() for one in candidates} == {
                one.tree.heads.tobytes() for one in expected
            }
            scores = [[one.score for one in some] for some in (candidates, expected)]
            np.testing.assert_allclose(*scores)
            total = sum(one.probability for one in expected)
            probabilities = [one.probability for one in candidates]
            np.testing.assert_allclose(probabilities, [one.probability / total for one in expected])
            assert sum(probabilities) == pytest.approx(1)


def test_marginals_with_fixed_arcs_are_sums_over_the_trees_that_have_them(parser, sentences):
    fixed = some_arcs(np.random.default_rng(3), parser.kbest(sentences, 10))
    lists = parser.kbest(sentences, EVERYTHING, fixed=fixed)
    for square, candidates in zip(parser.marginals(sentences, fixed=fixed), lists, strict=True):
        expected = np.zeros_like(square)
        for one in candidates:
            expected[np.arange(len(square)), one.tree.heads] += one.probability
        np.testing.assert_allclose(square, expected, atol=1e-9)


def test_the_prediction_is_the_best_of_the_trees_with_the_fixed_arcs(parser, sentences):
    fixed = some_arcs(np.random.default_rng(4), parser.kbest(sentences, 10))
    best = [candidates[0].tree for candidates in parser.kbest(sentences, 3, fixed=fixed)]
    assert parser.predict(sentences, fixed=fixed) == best


def test_sentences_without_fixed_arcs_are_parsed_as_ever(parser, sentences):
    fixed = [{} for _ in sentences]
    fixed[-1] = {1: 0}
    assert parser.kbest(sentences, 5, fixed=fixed)[:-1] == parser.kbest(sentences, 5)[:-1]
    assert parser.kbest(sentences, 5, fixed=[{}] * len(sentences)) == parser.kbest(sentences, 5)
    squares = parser.marginals(sentences, fixed=fixed)[:-1], parser.marginals(sentences)[:-1]
    for one, other in zip(*squares, strict=True):
        np.testing.assert_array_equal(one, other)


def test_threads_and_batches_do_not_mix_up_what_is_fixed(parsers, bank):
    parser = parsers["order 1"]
    many = draw(bank, 5, [4] * 12)
    fixed = [{1 + number % 4: 0} for number in range(12)]
    alone = [parser.kbest([tree], 200, fixed=[heads])[0] for tree, heads in zip(many, fixed, strict=True)]
    parser.n_jobs = 2
    together = parser.kbest(many, 200, fixed=fixed)
    parser.n_jobs = 1
    assert together == alone


def test_any_one_arc_can_be_had_however_strictly_a_parser_prunes(strict, bank):
    (sentence,) = draw(bank, 2, [6])
    for word in range(1, 7):
        for head in range(7):
            if head != word:
                (tree,) = strict.predict([sentence], fixed=[{word: head}])
                assert tree.heads[word - 1] == head
                assert tree.n_roots == 1


def test_as_many_allowed_arcs_come_back_as_it_takes_to_have_a_tree(strict, bank):
    (sentence,) = draw(bank, 2, [6])
    words = take_sentence(strict.encoder_.encode([sentence]), 0)
    allowed = restrict(all_arcs(6), {3: 5, 4: 3})
    pruning = StagedFilter(strict.decoder_.pruner_.stages_, words)
    widened = _widen(pruning, np.zeros_like(allowed), allowed)
    assert has_tree(widened, single_root=True)
    assert not (widened & ~allowed).any()
    assert widened.sum() < allowed.sum()


def test_a_pruning_threshold_may_be_a_whole_number(parsers):
    assert [stage.threshold for stage in parsers["order 2"].decoder_.pruner_.stages_] == [3e-4, 0.0]
    assert isinstance(parsers["order 2"].decoder_.pruner_.stages_[1].threshold, float)


def test_arcs_that_pruning_has_left_are_chosen_without_regard_to_what_is_fixed(parsers, bank):
    parser = parsers["order 1"]
    (sentence,) = draw(bank, 6, [6])
    words = take_sentence(parser.encoder_.encode([sentence]), 0)
    pruning = StagedFilter(parser.decoder_.pruner_.stages_, words)
    free = left_arcs(pruning)
    head = int(np.flatnonzero(free[:, 3])[0])
    np.testing.assert_array_equal(left_arcs(pruning, {3: head}), restrict(free, {3: head}))


def test_a_fixed_arc_stays_where_its_relation_says_that_it_was_lifted(parsers, sentences, monkeypatch):
    parser, tree = parsers["order 1"], sentences[2].with_heads([0, 1, 1])
    relations = ["root", "nsubj↓", "obj↑"]
    monkeypatch.setattr(parser.labeler_, "predict", lambda trees, corpus=None: [relations] * len(trees))
    assert parser.complete([tree])[0].heads.tolist() == [0, 1, 2]
    (kept,) = parser.complete([tree], fixed=[{3: 1}])
    assert kept.heads.tolist() == [0, 1, 1]
    assert kept.deprels == ["root", "nsubj", "obj"]
    for candidates in parser.kbest([tree], 5, fixed=[{1: 0, 2: 1, 3: 1}]):
        assert [one.tree.heads.tolist() for one in candidates] == [[0, 1, 1]]


def test_fixed_arcs_are_certain_though_others_that_cross_them_are_brought_back(parsers, bank, monkeypatch):
    parser = parsers["order 1"]
    (sentence,) = draw(bank, 7, [4])
    heads = {1: 0, 2: 4, 4: 1, 3: 1}
    relations = ["root", "a", "b↑", "c↓"]
    monkeypatch.setattr(parser.labeler_, "predict", lambda trees, corpus=None: [relations] * len(trees))
    fixed = {word: heads[word] for word in (1, 2, 4)}
    (square,) = parser.marginals([sentence], fixed=[fixed])
    (parsed,) = parser.predict([sentence], fixed=[fixed])
    shares = parser.confidence(parsed, square, fixed=fixed)
    assert shares[[0, 1, 3]].tolist() == pytest.approx([1, 1, 1])


def test_alternatives_are_the_most_probable_heads(parser, sentences):
    squares = parser.marginals(sentences)
    for square, words in zip(squares, parser.alternatives(sentences, n=2), strict=True):
        for row, heads in zip(square, words, strict=True):
            assert [share for _, share in heads] == sorted((row[row > 0]).tolist(), reverse=True)[:2]
            assert all(row[head] == share for head, share in heads)


def test_alternatives_to_a_fixed_head_are_none(parser, sentences):
    found = parser.alternatives(sentences[-1:], fixed=[{2: 1}])[0]
    assert found[1] == [(1, pytest.approx(1))]


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        ({6: 1}, "sentence 2: a fixed arc points to word 6; expected a word from 1 to 5"),
        ({0: 1}, "sentence 2: a fixed arc points to word 0; expected a word from 1 to 5"),
        ({1: 6}, "the head of word 1 is fixed to 6; expected another word from 1 to 5, or 0 for the root"),
        ({1: -1}, "the head of word 1 is fixed to -1"),
        ({1: "2"}, "the head of word 1 is fixed to '2'"),
        ({2: 2}, "the head of word 2 is fixed to 2"),
        ({1: 2, 2: 3, 3: 1}, "no tree has the fixed arcs 2 → 1, 3 → 2, 1 → 3, which form a cycle"),
        (
            {1: 0, 4: 0},
            "no tree has the fixed arcs 0 → 1, 0 → 4, because the parser was trained on trees",
        ),
    ],
)
def test_arcs_that_no_tree_has_are_named(parser, sentences, fixed, message):
    for method in (parser.predict, parser.kbest, parser.marginals, parser.structures, parser.alternatives):
        with pytest.raises(InputError, match=message):
            method(sentences[3:5], fixed=[{}, fixed])


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        (
            {3: 1, 2: 4},
            "sentence 1: no projective tree has the fixed arcs 4 → 2, 1 → 3, which cross; expected",
        ),
        ({2: 0, 1: 3}, "no projective tree has the fixed arcs 3 → 1, 0 → 2, which cross"),
        ({1: 2, 3: 1}, "no projective tree has all the fixed arcs 2 → 1, 1 → 3; expected fewer fixed arcs"),
    ],
)
def test_arcs_that_cross_are_named_unless_the_decoder_allows_them(parsers, sentences, fixed, message):
    for order in ("order 1", "order 2", "order 3"):
        with pytest.raises(InputError, match=message):
            parsers[order].predict(sentences[3:4], fixed=[fixed])
    (tree,) = parsers["spanning"].predict(sentences[3:4], fixed=[fixed])
    assert agrees(tree, fixed)
    assert not is_projective(tree)


def test_each_sentence_needs_its_own_mapping(parser, sentences):
    with pytest.raises(InputError, match="fixed has 1 mappings; expected 6, one per sentence"):
        parser.predict(sentences, fixed=[{}])


@pytest.mark.parametrize("single_root", [True, False])
def test_a_sentence_has_a_tree_with_fixed_arcs_where_enumeration_finds_one(single_root):
    words = list("abcd")
    trees = [heads for heads in trees_of(4, single_root) if is_projective(tw.DepTree(words, heads))]
    for choice in np.ndindex(*[6] * 4):
        fixed = {word: head - 1 for word, head in enumerate(choice, start=1) if head > 0}
        if any(word == head for word, head in fixed.items()):
            continue
        if any(all(tree[word - 1] == head for word, head in fixed.items()) for tree in trees):
            check_fixed([fixed], [4], projective=True, single_root=single_root)
        else:
            with pytest.raises(
                InputError, match=r"sentence 1: no (projective )?tree has (all )?the fixed arcs"
            ):
                check_fixed([fixed], [4], projective=True, single_root=single_root)


@pytest.mark.parametrize("single_root", [True, False])
def test_crossing_trees_have_all_fixed_arcs_but_those_of_cycles_and_too_many_roots(single_root):
    trees = trees_of(3, single_root)
    for choice in np.ndindex(*[5] * 3):
        fixed = {word: head - 1 for word, head in enumerate(choice, start=1) if head > 0}
        if any(word == head for word, head in fixed.items()):
            continue
        if any(all(tree[word - 1] == head for word, head in fixed.items()) for tree in trees):
            check_fixed([fixed], [3], projective=False, single_root=single_root)
        else:
            with pytest.raises(InputError, match="sentence 7: no tree has the fixed arcs"):
                check_fixed([fixed], [3], projective=False, single_root=single_root, start=7)


def test_a_square_without_arcs_to_a_word_has_no_tree():
    keep = np.zeros((3, 3), dtype=bool)
    keep[0, 1] = True
    assert not has_tree(keep, single_root=True)
    keep[1, 2] = True
    assert has_tree(keep, single_root=True)


@pytest.mark.parametrize("wrong", [{1: 2}, [{1: 2}, 3], "text", 7])
def test_fixed_heads_that_are_no_list_of_mappings_are_refused(parsers, sentences, wrong):
    with pytest.raises(InputError, match=r"fixed is .*; expected a list with a mapping .* for each sentence"):
        parsers["order 1"].predict(sentences[:2], fixed=wrong)
