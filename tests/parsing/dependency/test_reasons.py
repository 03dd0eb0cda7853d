"""The features behind arcs add up to the scores that the parser finds."""

import pytest
from oracle.dependency.parts import tree_parts, words_in

import treewright as tw
from treewright.errors import InputError
from treewright.parsing.dependency.reasons import PartFeatures, parts_of

BANK = tw.make_treebank(60, random_state=0).dependencies
NO_WORD = -1


@pytest.fixture(scope="module", params=[1, 3])
def parser(request):
    """Return a small parser of an order."""
    return tw.DependencyParser(order=request.param, epochs=2, runs=1, table_bits=12, folds=2).fit(BANK[:50])


def words_of(part):
    """Return the words of a part in the order of `Lattice.words`."""
    order = {"arc": "hm", "pair": "hsm", "grandchild": "ghm", "grand_sibling": "ghsm", "triple": "htsm"}
    return tuple(NO_WORD if part.words[role] is None else part.words[role] for role in order[part.kind])


def test_parts_are_those_of_the_tree(parser):
    for tree in parser.predict(BANK[50:]):
        parts = list(parts_of(tree.heads.tolist(), 3))
        for kind in ("arc", "pair", "grandchild", "grand_sibling", "triple"):
            expected = words_in(kind, tree_parts(tuple(tree.heads.tolist())))
            # To the left of the root there is nothing, which no tree can change.
            found = {words_of(part) for part in parts if part.kind == kind} - {(0, NO_WORD, NO_WORD)}
            assert found == set(expected)


def test_weights_of_a_parts_features_add_up_to_its_score(parser):
    found = parser.predict(BANK[50:])
    for tree, lattice in zip(found, parser.lattices(BANK[50:]), strict=True):
        features = PartFeatures(tree, parser.scorer_, parser.encoder_)
        scores = {
            (kind, *words): score
            for kind in lattice.kinds
            for words, score in zip(lattice.words(kind).tolist(), lattice.scores[kind].tolist(), strict=True)
        }
        n_compared = 0
        for part in parts_of(tree.heads.tolist(), parser.order):
            is_empty = "s" in part.words and part.words["s"] is part.words["m"] is None
            # Both sides of a head without dependents look the same there.
            if not is_empty and (part.kind, *words_of(part)) in scores:
                expected = scores[part.kind, *words_of(part)]
                assert sum(one.weight for one in features.of(part)) == pytest.approx(expected, abs=1e-5)
                n_compared += 1
        assert n_compared >= len(tree)


def test_features_of_an_arc_involve_it_and_come_weightiest_first(parser):
    (tree,) = parser.predict(BANK[50:51])
    for word, features in enumerate(parser.arc_reasons([tree], n=20)[0], start=1):
        assert 0 < len(features) <= 20
        assert all(word in one.arcs for one in features)
        weights = [abs(one.weight) for one in features]
        assert weights == sorted(weights, reverse=True)


def test_features_are_told_in_sentences(parser):
    (tree,) = parser.predict(BANK[50:51])
    for features in parser.arc_reasons([tree], n=1000)[0]:
        for one in features:
            assert one.sentence.endswith(".")
            assert all(word in one.sentence for word in one.words)


def test_a_parser_knows_the_words_of_its_training_sentences(parser):
    word = next(word for word in BANK[0].words if word.isalpha())
    assert parser.knows_words([word, word.upper(), "frobnicate"]) == [True, True, False]


def test_n_must_be_positive(parser):
    with pytest.raises(InputError, match="n is 0"):
        parser.arc_reasons(BANK[:1], n=0)


def test_reasons_add_up_to_the_difference_of_the_two_best_scores(parser):
    for comparison in parser.explain(BANK[50:]):
        first, second = comparison.parser_scores[:2]
        assert sum(one.weight for one in comparison.reasons) == pytest.approx(first - second, abs=1e-4)
        assert [each.score for each in comparison.candidates] == comparison.parser_scores
        assert {one.rank for one in comparison.reasons} <= {1, 2}
        assert comparison.scores == []


def test_a_sentence_of_one_tree_has_no_reasons(parser):
    (comparison,) = parser.explain(BANK[50:51], fixed=[dict(enumerate(BANK[50].heads.tolist(), start=1))])
    assert len(comparison.candidates) == 1
    assert comparison.reasons == []


def test_arc_reasons_of_text_are_refused(parser):
    with pytest.raises(InputError, match="the sentences are of type str; expected a list of DepTree"):
        parser.arc_reasons("text")
