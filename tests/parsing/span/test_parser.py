"""SpanParser: what it returns for any sentence, how training goes on, what it refuses."""

import sys

import numpy as np
import pytest

import treewright as tw
from treewright.errors import FormatError, InputError, MissingDependencyError
from treewright.model import State, save_state
from treewright.parsing.constituent.inferences import TaggedSentence
from treewright.parsing.span import chart
from treewright.parsing.span.labels import collect_chains
from treewright.parsing.span.parser import SpanParser
from treewright.progress import messages_to

pytest.importorskip("torch")

N_TRAINING = 60
ODD_SENTENCES = {
    "one word": (["Cat"], ["NN"]),
    "one word and a stop": (["Cat", "."], ["NN", "."]),
    "punctuation": (["!", '"', "?"], [".", "''", "."]),
    "unknown tags": (["The", "Cat", "sat", "Down"], ["QQ", "ZZ", "YY", "QQ"]),
    "brackets": (["(", "a", ")"], ["-LRB-", "NN", "-RRB-"]),
    "unknown characters": (["日本語", "\u00e9\u4e00"], ["NN", "NN"]),
}


@pytest.fixture(scope="module")
def treebank():
    return tw.make_treebank(n_sentences=80, random_state=0).constituents


def make_parser(**options):
    small = {"units": 16, "layers": 1, "span_size": 20, "dropout": 0.1, "learning_rate": 0.03, "epochs": 2}
    return SpanParser(**(small | {"device": "cpu", "patience": 30} | options))


@pytest.fixture(scope="module")
def parsers(treebank):
    """Train some parsers; the last has trees without a root of their own."""
    options = {
        "gold": {"epochs": 20},
        "predicted": {"epochs": 3, "tags": "predicted", "folds": 2},
        "margin": {"epochs": 4, "layers": 2, "loss": "margin"},
    }
    found = {
        name: make_parser(**each).fit(treebank[:N_TRAINING], treebank[N_TRAINING:])
        for name, each in options.items()
    }
    bare = [tree.children[0] for tree in treebank if tree.children[0].n_nodes > 2]
    return found | {"bare": make_parser(epochs=4).fit(bare[:50], bare[50:])}


@pytest.fixture
def parser(parsers):
    return parsers["gold"]


def tagged(words, tags):
    return tw.DepTree(words, xpos=tags)


def test_parses_are_far_better_than_chance(parser, treebank):
    found = parser.predict(treebank[N_TRAINING:])
    assert tw.metrics.parseval(treebank[N_TRAINING:], found).f1 > 70


@pytest.mark.parametrize("name", ["gold", "margin", "bare"])
def test_every_sentence_gets_a_tree_over_its_words_as_they_were_written(parsers, treebank, name):
    for tree, found in zip(treebank, parsers[name].predict(treebank), strict=True):
        assert (found.words(), found.tags()) == (tree.words(), tree.tags())
        assert (found.label == "TOP") == (name != "bare")
        assert "TOP" not in found.labels[:-1]


@pytest.mark.parametrize("name", ["gold", "bare"])
@pytest.mark.parametrize("odd", ODD_SENTENCES)
def test_odd_sentences_get_a_tree_over_their_words(parsers, name, odd):
    words, tags = ODD_SENTENCES[odd]
    for found in parsers[name].kbest([tagged(words, tags)], k=3)[0]:
        assert (found.tree.words(), found.tree.tags()) == (words, tags)
        assert np.isfinite(found.score)


@pytest.mark.parametrize("name", ["gold", "bare"])
def test_a_long_sentence_is_parsed_in_pieces(parsers, treebank, name, monkeypatch):
    words = [word for tree in treebank for word in tree.words()][:90]
    tags = [tag for tree in treebank for tag in tree.tags()][:90]
    monkeypatch.setattr(chart, "LONGEST", 30)
    (parses,) = parsers[name].kbest([tagged(words, tags)], k=4)
    scores = [each.score for each in parses]
    assert scores == sorted(scores, reverse=True)
    assert len({each.tree for each in parses}) == 4
    assert all((each.tree.words(), each.tree.tags()) == (words, tags) for each in parses)
    logs = parsers[name].log_probabilities([each.tree for each in parses])
    np.testing.assert_allclose(logs, scores, rtol=1e-4)
    (found,) = parsers[name].marginals([tagged(words, tags)])
    assert {each.end for each in found} <= set(range(1, 91))
    whole = tw.ConstTree(parses[0].tree.label, [tw.ConstTree("NP", parses[0].tree.children)])
    if name == "gold":
        assert parsers[name].log_probabilities([whole]) == [-np.inf]


def test_a_tree_without_words_is_its_own_parse(parser, treebank):
    empty = tw.ConstTree.parse("(X (NP-SBJ (-NONE- *)))")
    lists = parser.kbest([treebank[0], empty, treebank[1]], k=2)
    assert lists[1] == [(empty, 0.0, None)]
    assert parser.predict([empty]) == [empty]
    assert parser.marginals([empty, treebank[0]])[0] == []


@pytest.mark.parametrize("empty", [[], tw.DepTree([])])
def test_a_sentence_of_no_words_is_refused(parser, treebank, empty):
    with pytest.raises(InputError, match=r"^sentence 2 has no words; expected at least one$"):
        parser.predict([treebank[0], empty])


def test_no_sentences_give_no_trees(parser):
    assert parser.predict([]) == []
    assert parser.log_probabilities([]).tolist() == []


def test_only_words_and_tags_of_a_tree_are_looked_at(parser, treebank):
    words = [
        [tw.ConstTree(tag, [word]) for word, tag in zip(tree.words(), tree.tags(), strict=True)]
        for tree in treebank[60:70]
    ]
    expected = parser.predict(treebank[60:70])
    assert parser.predict([tw.ConstTree("X", each) for each in words]) == expected
    assert parser.predict([tagged(tree.words(), tree.tags()) for tree in treebank[60:70]]) == expected


@pytest.mark.parametrize("name", ["gold", "margin", "bare"])
def test_the_best_parses_differ_and_have_the_probabilities_of_their_trees(parsers, treebank, name):
    for parses in parsers[name].kbest(treebank[60:66], k=7):
        scores = [parse.score for parse in parses]
        assert scores == sorted(scores, reverse=True)
        assert len({parse.tree for parse in parses}) == len(parses) == 7
        np.testing.assert_allclose([parse.probability for parse in parses], np.exp(scores))
        logs = parsers[name].log_probabilities([parse.tree for parse in parses])
        np.testing.assert_allclose(scores, logs, rtol=1e-4)


def test_probabilities_of_all_trees_over_a_sentence_sum_to_1(parser):
    n_labels = len(parser.labels_)
    (found,) = parser.kbest([tagged(["The", "dog"], ["DT", "NN"])], k=20_000)
    assert len(found) == n_labels**3  # both words, and both together; none of the labels may be the empty one
    assert sum(each.probability for each in found) == pytest.approx(1.0)
    (spans,) = parser.marginals([tagged(["The", "dog"], ["DT", "NN"])], min_probability=0.0)
    for label in ("NP", "VP"):
        expected = sum(each.probability for each in found if (label, 0, 2) in each.tree.spans())
        own = next(each for each in spans if each[:3] == (label, 0, 2))
        assert own.probability == pytest.approx(expected)


def test_marginals_are_probabilities_of_constituents_in_order(parser, treebank):
    for tree, found in zip(treebank[60:65], parser.marginals(treebank[60:65]), strict=True):
        assert all(0.01 <= each.probability <= 1 and each.end <= len(tree.words()) for each in found)
        places = [(each.start, -each.end) for each in found]
        assert places == sorted(places)
    with pytest.raises(InputError, match="min_probability is 2; expected a number from 0 to 1"):
        parser.marginals(treebank[:1], min_probability=2)


def test_trees_the_parser_cannot_make_have_no_probability(parser, treebank):
    odd = tw.ConstTree("TOP", [tw.ConstTree("ODD", treebank[0].children)])
    bare = tw.ConstTree("TOP", ["word", tw.ConstTree("NN", ["dog"])])
    logs = parser.log_probabilities([odd, treebank[0], bare, tw.ConstTree("word")])
    assert logs[0] == -np.inf < logs[1] < 0
    assert logs[2] == logs[3] == -np.inf


def test_results_do_not_depend_on_threads(parser, treebank, monkeypatch):
    monkeypatch.setattr("treewright.parsing.span.parser.SENTENCES_AT_A_TIME", 5)
    assert parser.kbest(treebank[:30], 3, n_jobs=2) == parser.kbest(treebank[:30], 3, n_jobs=1)


def test_a_parser_with_a_tagger_reads_words_alone(parsers, treebank):
    parser = parsers["predicted"]
    sentences = [tree.words() for tree in treebank[60:64]]
    assert [tree.words() for tree in parser.predict(sentences)] == sentences
    assert not parser.needs_tags
    gold = parser.using(tags="gold")
    assert [tree.tags() for tree in gold.predict(treebank[60:64])] == [
        tree.tags() for tree in treebank[60:64]
    ]
    with pytest.raises(InputError, match="sentence 1 has no tags"):
        gold.predict(sentences)


def test_trees_are_predicted_by_their_brackets_or_by_their_probability(parser, treebank):
    trees = treebank[60:]
    by_score = parser.using(predict_by="score")
    best = [parses[0] for parses in parser.kbest(trees, k=1)]
    assert by_score.predict(trees) == [each.tree for each in best]
    assert [one.tree for (one,) in by_score.annotate(trees)] == by_score.predict(trees)
    found = parser.annotate(trees)
    assert [one.tree for (one,) in found] == parser.predict(trees)
    logs = parser.log_probabilities([one.tree for (one,) in found])
    np.testing.assert_allclose([one.score for (one,) in found], logs, atol=1e-4)
    assert all(one.probability <= each.probability + 1e-9 for (one,), each in zip(found, best, strict=True))
    for tree, probable in zip(parser.predict(trees), parser.marginals(trees, min_probability=0), strict=True):
        spans = [(label, *span) for span, chain in collect_chains(tree, "TOP").items() for label in chain]
        winners = [(each.label, each.start, each.end) for each in probable if each.probability > 0.5 + 1e-6]
        assert sorted(spans) == sorted(winners)


def test_analyses_have_probabilities(parser, treebank):
    (analyses,) = parser.annotate(treebank[60:61], k=3)
    (parses,) = parser.kbest(treebank[60:61], k=3)
    assert [each.probability for each in analyses] == pytest.approx([each.probability for each in parses])


@pytest.mark.parametrize("name", ["gold", "predicted", "bare"])
def test_a_saved_parser_parses_the_same(parsers, treebank, name, tmp_path):
    parsers[name].save(tmp_path / "parser")
    again = tw.load(tmp_path / "parser")
    assert again.get_state().values == parsers[name].get_state().values
    assert again.kbest(treebank[60:70], k=3) == parsers[name].kbest(treebank[60:70], k=3)


def test_several_networks_are_averaged(treebank, tmp_path):
    parser = make_parser(networks=2).fit(treebank[:20], treebank[20:25])
    words = [TaggedSentence(treebank[30].words(), treebank[30].tags())]
    (both,) = parser._score(words)
    parts = []
    for weights in parser.weights_:
        single = SpanParser.from_state(parser.get_state())
        single.weights_ = [weights]
        single.restore()
        parts += list(single._score(words))
    assert not np.allclose(*parts)
    np.testing.assert_allclose(both, np.mean(parts, axis=0))
    parser.save(tmp_path / "m")
    assert tw.load(tmp_path / "m").kbest(treebank[30:32], 2) == parser.kbest(treebank[30:32], 2)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (
            "weights0.label.weight",
            lambda weights: weights[1:],
            "weights that match the vocabularies and labels",
        ),
        (
            "weights0.span_bias",
            lambda weights: weights + np.float16(np.inf),
            "span_bias contains NaN or infinity",
        ),
        ("weights0.strange", lambda nothing: np.zeros(1), "weights that match the vocabularies and labels"),
        (
            "weights0.narrow.weight",
            lambda weights: weights[0],
            "weights that match the vocabularies and labels",
        ),
        ("weights0.characters.weight", lambda weights: weights[:-1], "weights that match the vocabularies"),
        (
            "strange",
            lambda nothing: np.zeros(1),
            "SpanParser has an unknown array 'strange'; expected only its fields",
        ),
        ("temperature", lambda number: 0.0, "temperature is 0.0; expected a number from 0.01 to 100"),
        ("weights", lambda number: 10**9, "the weights of weights1"),
        ("params", lambda params: params | {"networks": 2}, "expected 2 networks"),
        ("params", lambda params: params | {"units": 3}, "weights that match the vocabularies and labels"),
        (
            "params",
            lambda params: params | {"layers": 1 << 63},
            "layers is .*; expected an integer from 1 to",
        ),
        ("params", lambda params: params | {"loss": "x"}, "loss is 'x'; expected one of crf, margin"),
        ("labels", lambda labels: State("Tagger"), "labels is a Tagger; expected SpanLabels"),
        ("labels", lambda labels: with_chains(labels, [["NP"]]), "the empty chain first"),
        ("labels", lambda labels: with_chains(labels, [[], ["N P"]]), "a label is 'N P'; expected a string"),
        ("labels", lambda labels: with_chains(labels, [[], ["NP"], ["NP"]]), "distinct chains"),
        ("labels", lambda labels: with_chains(labels, 3), "expected a list of lists of labels"),
    ],
)
def test_what_is_no_parser_is_refused(parser, tmp_path, name, change, message):
    state = parser.get_state()
    holders = (state.values, state.parts, state.arrays)
    holder = next((each for each in holders if name in each), state.arrays)
    with np.errstate(invalid="ignore"):
        holder[name] = change(holder.get(name))
    save_state(state, tmp_path / "parser")
    with pytest.raises(FormatError, match=message):
        tw.load(tmp_path / "parser")


def with_chains(state, chains):
    return State(state.kind, state.values | {"chains": chains}, state.arrays, state.parts)


def test_weights_of_any_size_lead_to_a_tree(parser, treebank):
    state = parser.get_state()
    state.arrays = {key: np.full_like(each, 6e4) for key, each in state.arrays.items()}
    with np.errstate(all="ignore"):
        found = SpanParser.from_state(state).predict(treebank[:2])
    assert [tree.words() for tree in found] == [tree.words() for tree in treebank[:2]]


def test_parsing_needs_no_pytorch(parser, treebank, monkeypatch):
    expected = parser.predict(treebank[60:62])
    monkeypatch.setitem(sys.modules, "torch", None)
    assert SpanParser.from_state(parser.get_state()).predict(treebank[60:62]) == expected
    with pytest.raises(MissingDependencyError, match=r"torch is not installed; .*neural"):
        make_parser().fit(treebank[:5])


def test_training_goes_on_where_it_was_interrupted(treebank, tmp_path):
    whole = make_parser(epochs=3).fit(treebank[:20], treebank[20:25])

    def stop_at_the_second_epoch(line):
        if line.startswith("network, epoch 2"):
            raise RuntimeError

    with pytest.raises(RuntimeError), messages_to(stop_at_the_second_epoch):
        make_parser(epochs=3).fit(treebank[:20], treebank[20:25], checkpoint=tmp_path / "kept")
    again = make_parser(epochs=3).fit(treebank[:20], treebank[20:25], checkpoint=tmp_path / "kept")
    for name, array in whole.weights_[0].items():
        np.testing.assert_array_equal(array, again.weights_[0][name])
    assert whole.temperature_ == again.temperature_


def test_trees_without_constituents_are_refused():
    trees = [tw.ConstTree.parse("(TOP (NN cat))")] * 3
    with pytest.raises(InputError, match="the training trees have no constituents; expected at least one"):
        make_parser().fit(trees)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "x"}, "loss is 'x'; expected one of crf, margin"),
        ({"units": 0}, "units is 0; expected an integer of at least 1"),
        ({"dropout": 1}, "dropout is 1; expected a number from 0 to 0.9"),
        ({"tags": "x"}, "tags is 'x'; expected one of gold, predicted"),
        ({"device": "abacus"}, "device is 'abacus'; expected a device that PyTorch can use"),
    ],
)
def test_wrong_options_are_named_before_anything_is_learnt(treebank, options, message):
    with pytest.raises(InputError) as caught:
        make_parser(**options).fit(treebank[:5])
    assert str(caught.value).startswith(message)
