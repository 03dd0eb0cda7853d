"""LeftCornerParser: what it returns for any sentence, how training goes on, what it refuses."""

import itertools

import numpy as np
import pytest

import treewright as tw
from treewright.errors import FormatError, InputError, MissingDependencyError
from treewright.kernels.decisions import candidate_logs
from treewright.kernels.derived import EfficientTopRerankingKernel, FisherKernel
from treewright.model import State, save_state
from treewright.parsing.leftcorner.decisions import encode
from treewright.parsing.leftcorner.derivations import derive, rebuild
from treewright.parsing.leftcorner.parser import Epoch, LeftCornerParser
from treewright.progress import messages_to

pytest.importorskip("torch")

N_TRAINING = 60
ODD_SENTENCES = {
    "one word": (["Cat"], ["NN"]),
    "one word and a stop": (["Cat", "."], ["NN", "."]),
    "punctuation": (["!", '"', "?"], [".", "''", "."]),
    "unknown tags": (["The", "Cat", "sat", "Down"], ["QQ", "ZZ", "YY", "QQ"]),
    "an unknown tag": (["The", "Cat", "sat"], ["DT", "ZZ", "VBD"]),
    "brackets": (["(", "a", ")"], ["-LRB-", "NN", "-RRB-"]),
}


@pytest.fixture(scope="module")
def treebank():
    return tw.make_treebank(n_sentences=80, random_state=0).constituents


def make_parser(**options):
    small = {"units": 16, "embedding": 8, "min_count": 2, "epochs": 3, "batch_size": 200, "beam": 8}
    return LeftCornerParser(**(small | {"learning_rate": 0.02, "patience": 30} | options))


@pytest.fixture(scope="module")
def parsers(treebank):
    options = {
        "gold": {"epochs": 12, "min_chain": 3},
        "predicted": {"epochs": 8, "tags": "predicted", "folds": 2},
        "sigmoid": {"epochs": 3, "cell": "sigmoid", "optimizer": "momentum", "learning_rate": 0.3},
    }
    return {
        name: make_parser(**each).fit(treebank[:N_TRAINING], treebank[N_TRAINING:])
        for name, each in options.items()
    }


@pytest.fixture
def parser(parsers):
    return parsers["gold"]


def as_bytes(parser):
    """Return the weights of a parser, and what it went through but for the time that took."""
    weights = {name: array.tobytes() for name, array in parser.weights_.items()}
    return weights, [epoch._replace(seconds=0) for epoch in parser.history_]


def tagged(words, tags):
    return tw.DepTree(words, xpos=tags)


def test_parses_are_far_better_than_chance(parser, treebank):
    found = parser.predict(treebank[N_TRAINING:])
    assert tw.metrics.parseval(treebank[N_TRAINING:], found).f1 > 70


@pytest.mark.parametrize("name", ["gold", "sigmoid"])
def test_every_sentence_gets_a_tree_over_its_words_as_they_were_written(parsers, treebank, name):
    for tree, found in zip(treebank, parsers[name].predict(treebank), strict=True):
        assert (found.words(), found.tags()) == (tree.words(), tree.tags())
        assert found.label == "TOP"
        assert "TOP" not in found.labels[:-1]


@pytest.mark.parametrize("name", ODD_SENTENCES)
def test_odd_sentences_get_a_tree_over_their_words(parser, name):
    words, tags = ODD_SENTENCES[name]
    for found in parser.kbest([tagged(words, tags)], k=3)[0]:
        assert (found.tree.words(), found.tree.tags()) == (words, tags)
        assert found.tree.label == "TOP"
        assert np.isfinite(found.score)


def test_a_long_sentence_gets_a_tree(parser, treebank):
    words = [word for tree in treebank for word in tree.words()][:150]
    tags = [tag for tree in treebank for tag in tree.tags()][:150]
    (found,) = parser.predict([tagged(words, tags)])
    assert (found.words(), found.tags()) == (words, tags)


@pytest.mark.parametrize("name", ["gold", "predicted"])
def test_a_tree_without_words_is_its_own_parse(parsers, treebank, name):
    empty = tw.ConstTree.parse("(X (NP-SBJ (-NONE- *)))")
    lists = parsers[name].kbest([treebank[0], empty, treebank[1]], k=2)
    assert lists[1] == [(empty, 0.0, None)]
    assert all(1 <= len(parses) <= 2 for parses in lists)
    assert parsers[name].predict([empty]) == [empty]


@pytest.mark.parametrize("empty", [[], tw.DepTree([])])
def test_a_sentence_of_no_words_is_refused(parser, treebank, empty):
    with pytest.raises(InputError, match=r"^sentence 2 has no words; expected at least one$"):
        parser.predict([treebank[0], empty])


def test_no_sentences_give_no_trees(parser):
    assert parser.predict([]) == []


def test_sentences_can_come_one_by_one(parser, treebank):
    assert parser.predict(tree for tree in treebank[:3]) == parser.predict(treebank[:3])


def test_only_words_and_tags_of_a_tree_are_looked_at(parser, treebank):
    words = [
        [tw.ConstTree(tag, [word]) for word, tag in zip(tree.words(), tree.tags(), strict=True)]
        for tree in treebank[60:70]
    ]
    trace = tw.ConstTree.parse("(NP (-NONE- *T*-1))")
    expected = parser.predict(treebank[60:70])
    assert parser.predict([tw.ConstTree("X", each) for each in words]) == expected
    assert parser.predict([tw.ConstTree("X", [trace, *each]) for each in words]) == expected
    assert parser.predict([tagged(tree.words(), tree.tags()) for tree in treebank[60:70]]) == expected


def test_traces_and_functions_of_training_trees_are_ignored(treebank):
    trace = tw.ConstTree.parse("(NP-SBJ-1 (-NONE- *T*-1))")
    changed = [
        tw.ConstTree(
            "TOP", [trace, *(tw.ConstTree(f"{each.label}-XX", each.children) for each in tree.children)]
        )
        for tree in treebank[:20]
    ]
    one, other = (make_parser(epochs=1).fit(trees) for trees in (changed, treebank[:20]))
    assert as_bytes(one) == as_bytes(other)


@pytest.mark.parametrize("name", ["gold", "predicted", "sigmoid"])
def test_the_best_parses_differ_and_have_the_probabilities_of_their_trees(parsers, treebank, name):
    for parses in parsers[name].kbest(treebank[60:], k=4):
        scores = [parse.score for parse in parses]
        assert scores == sorted(scores, reverse=True)
        assert len({str(parse.tree) for parse in parses}) == len(parses) <= 4
        logs = parsers[name].log_probabilities([parse.tree for parse in parses])
        np.testing.assert_allclose(scores, logs, rtol=1e-5)


def test_chains_are_merged_in_training_and_taken_apart_in_parses(parser, treebank):
    assert parser.chains_.chains
    merged = [parser.chains_.merge(tree) for tree in treebank]
    assert any(tree != whole for tree, whole in zip(merged, treebank, strict=True))
    names = {parser.chains_.separator.join(chain) for chain in parser.chains_.chains}
    assert names <= set(parser.vocabulary_.labels)
    assert not any(names & set(tree.labels) for tree in parser.predict(treebank))


def test_a_tree_of_unknown_labels_has_no_probability(parser, treebank):
    odd = tw.ConstTree("TOP", [tw.ConstTree("ODD", treebank[0].children)])
    logs = parser.log_probabilities([odd, treebank[0]])
    assert logs[0] == -np.inf < logs[1] < 0
    with pytest.raises(InputError, match="label is 'ODD'; expected a label of the training data"):
        parser.trace([odd])


def test_probabilities_of_all_trees_over_a_sentence_are_less_than_1(parser):
    parser = LeftCornerParser.from_state(parser.get_state())
    parser.beam, parser.branching = 500, 100
    (found,) = parser.kbest([tagged(["The", "dog"], ["DT", "NN"])], k=200)
    assert len(found) > 100
    assert 0 < np.exp([each.score for each in found]).sum() < 1


@pytest.mark.slow
def test_a_wider_beam_finds_trees_no_less_probable(parser, treebank):
    wide = LeftCornerParser.from_state(parser.get_state())
    wide.beam = 60
    pairs = zip(parser.kbest(treebank[60:], k=1), wide.kbest(treebank[60:], k=1), strict=True)
    gains = [found[0].score - narrow[0].score for narrow, found in pairs]
    assert np.mean(gains) >= -1e-6


def test_traces_are_lists_for_derived_kernels(parser, treebank):
    lists = parser.kbest(treebank[60:64], k=5)
    traces = [parser.trace(parses) for parses in lists]
    for parses, trace in zip(lists, traces, strict=True):
        np.testing.assert_allclose(candidate_logs(trace), [each.score for each in parses], rtol=1e-5)
        assert trace.hidden.shape[1] == parser.units
    for kernel in (FisherKernel(), EfficientTopRerankingKernel()):
        assert kernel.features(traces).shape[0] == sum(len(parses) for parses in lists)
    single = parser.trace(lists[0][0])
    np.testing.assert_allclose(candidate_logs(single), lists[0][0].score, rtol=1e-5)


def test_the_efficient_kernel_has_the_same_features_without_distributions(parser, treebank):
    (parses,) = parser.kbest(treebank[60:61], k=5)
    whole, lean = (parser.trace(parses, distributions=each) for each in (True, False))
    assert lean.distributions is None
    np.testing.assert_allclose(lean.log_probabilities, whole.log_probabilities, atol=1e-6)
    kernel = EfficientTopRerankingKernel()
    features = (kernel.features([each]).toarray() for each in (whole, lean))
    np.testing.assert_allclose(*features, atol=1e-5)
    with pytest.raises(InputError, match="no distributions; expected them, since the features of Fisher"):
        FisherKernel().features([lean])


def test_traces_are_of_one_sentence(parser, treebank):
    with pytest.raises(InputError, match="candidate 2 and the first have different words or tags; expected"):
        parser.trace(treebank[:2])
    with pytest.raises(InputError, match="the list of candidates is empty; expected at least one"):
        parser.trace([])


def split_gradient(parser, gradient):
    """Return derivatives by the names of their weights."""
    shapes = {name: parser.weights_[name].shape for name in sorted(parser.weights_)}
    parts = np.split(gradient, np.cumsum([np.prod(shape) for shape in shapes.values()])[:-1])
    return {name: part.reshape(shape) for part, (name, shape) in zip(parts, shapes.items(), strict=True)}


def with_weights(parser, name, change):
    """Return a parser with other weights of one name."""
    state = parser.get_state()
    key = f"weights.{name}"
    state.arrays[key] = (state.arrays[key] + change).astype(np.float32)
    return LeftCornerParser.from_state(state)


@pytest.mark.parametrize("name", ["gold", "sigmoid"])
def test_derivatives_by_all_weights_agree_with_finite_differences(parsers, treebank, name):
    parser, tree = parsers[name], treebank[60]
    found = parser.trace([tree], weights="all")
    np.testing.assert_allclose(found.log_probabilities, parser.log_probabilities([tree]), rtol=1e-5)
    for weights, slopes in split_gradient(parser, found.gradients[0]).items():
        length = np.linalg.norm(slopes)
        assert length > 0
        step = 0.1 / length**2 * slopes
        above, below = (
            with_weights(parser, weights, sign * step).log_probabilities([tree])[0] for sign in (1, -1)
        )
        assert above - below == pytest.approx(0.2, rel=0.02), weights


def test_derivatives_by_weights_of_the_output_layer_are_among_those_by_all(parser, treebank):
    parses = parser.kbest(treebank[60:61], k=4)[0]
    features = FisherKernel().features([parser.trace(parses)]).toarray()
    gradients = parser.trace(parses, weights="all").gradients
    for own, gradient in zip(features, gradients, strict=True):
        slopes = split_gradient(parser, gradient)
        expected = np.column_stack([slopes["output"], slopes["output_bias"]])
        np.testing.assert_allclose(own[1:].reshape(expected.shape), expected, atol=1e-3)


@pytest.mark.slow
def test_derivatives_by_all_weights_follow_the_weights(parser, treebank):
    again = LeftCornerParser.from_state(parser.get_state())
    before = again.trace(treebank[60], weights="all").gradients
    again.fit(treebank[:10], treebank[60:62])
    after = again.trace(treebank[0], weights="all")
    np.testing.assert_allclose(after.log_probabilities, again.log_probabilities(treebank[:1]), rtol=1e-5)
    np.testing.assert_array_equal(parser.trace(treebank[60], weights="all").gradients, before)


def test_weights_to_derive_by_are_output_or_all(parser, treebank):
    with pytest.raises(InputError, match="weights is 'some'; expected one of output, all"):
        parser.trace(treebank[:1], weights="some")


def test_an_untrained_parser_has_the_same_options_and_has_learnt_nothing(parser):
    again = parser.with_params()
    assert not again.is_fitted
    names = vars(LeftCornerParser())
    assert {name: getattr(again, name) for name in names} == {name: getattr(parser, name) for name in names}


@pytest.mark.parametrize("name", ["gold", "predicted"])
def test_a_saved_parser_parses_the_same(parsers, treebank, name, tmp_path):
    parsers[name].save(tmp_path / "parser")
    again = tw.load(tmp_path / "parser")
    assert again.get_state().values == parsers[name].get_state().values
    assert as_bytes(again) == as_bytes(parsers[name])
    sentences = [tree.words() for tree in treebank[60:70]] if name == "predicted" else treebank[60:70]
    assert again.kbest(sentences, k=3) == parsers[name].kbest(sentences, k=3)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("weights.output", lambda weights: weights[1:], "expected weights for the vocabulary"),
        ("weights.bias", lambda weights: weights * np.inf, "bias contains NaN or infinity; expected finite"),
        (
            "weights.bias",
            lambda weights: weights[:, None],
            "bias is a 2-dimensional array of float32; expected a 1-dimensional array of floats",
        ),
        (
            "strange",
            lambda nothing: np.zeros(1),
            "LeftCornerParser has an unknown array 'strange'; expected only its fields",
        ),
        ("root", lambda root: "no label", "expected a root that is one of the labels"),
        ("params", lambda params: params | {"units": 3}, "expected weights for the vocabulary"),
        ("params", lambda params: params | {"cell": "x"}, "cell is 'x'; expected one of gated"),
        ("chains", lambda chains: State("Tagger"), "chains is a Tagger; expected UnaryChains"),
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


def test_parsing_needs_no_pytorch(parser, treebank, monkeypatch):
    def refuse(module, extra):
        raise MissingDependencyError(f"{module} is not installed; it comes with: treewright[{extra}]")

    monkeypatch.setattr("treewright.parsing.leftcorner.training.require", refuse)
    again = LeftCornerParser.from_state(parser.get_state())
    assert again.predict(treebank[60:62]) == parser.predict(treebank[60:62])
    with pytest.raises(MissingDependencyError, match=r"torch is not installed; .*neural"):
        make_parser().fit(treebank[:5])


def test_a_parser_that_predicts_tags_takes_words_alone(parsers, treebank):
    parser = parsers["predicted"]
    words = [tree.words() for tree in treebank[60:]]
    found = parser.predict(words)
    assert [tree.words() for tree in found] == words
    assert tw.metrics.parseval(treebank[60:], found).f1 > 60
    wrong = [tagged(each, ["QQ"] * len(each)) for each in words]
    assert parser.predict(wrong) == parser.predict(treebank[60:]) == found


def test_a_parser_with_a_tagger_can_take_the_tags_of_the_input(parsers, treebank):
    parser = LeftCornerParser.from_state(parsers["predicted"].get_state())
    assert not parser.needs_tags
    parser.tags = "gold"
    assert parser.needs_tags
    assert [tree.tags() for tree in parser.predict(treebank[60:])] == [tree.tags() for tree in treebank[60:]]
    with pytest.raises(InputError, match="sentence 1 has no tags, but this LeftCornerParser needs"):
        parser.predict([["The", "cat"]])


def test_words_without_tags_can_be_learnt():
    text = "(S (NP the dog) (VP barks (NP loudly now)))"
    trees = [tw.ConstTree.parse(text)] * 30
    parser = make_parser(epochs=12).fit(trees, trees)
    assert str(parser.predict(trees[:1])[0]) == text


class StoppedError(Exception):
    """Stops a training."""


def interrupted_at(n_lines):
    seen = itertools.count(1)

    def tell(line):
        if next(seen) == n_lines:
            raise StoppedError

    return tell


@pytest.mark.slow_cases
@pytest.mark.parametrize("options", [{}, {"optimizer": "momentum", "cell": "tanh", "dropout": 0.0}])
def test_training_that_was_interrupted_ends_with_the_same_parser(treebank, tmp_path, options):
    trees = treebank[:30]
    whole = make_parser(epochs=4, **options).fit(trees)
    # The first line tells what there is to learn from; an epoch is told after it has been kept.
    for stop in (2, 3):
        with pytest.raises(StoppedError), messages_to(interrupted_at(stop)):
            make_parser(epochs=4, **options).fit(trees, checkpoint=tmp_path / "kept")
    again = make_parser(epochs=4, **options).fit(trees, checkpoint=tmp_path / "kept")
    assert as_bytes(again) == as_bytes(whole)
    assert as_bytes(make_parser(epochs=4, **options).fit(trees, checkpoint=tmp_path / "kept")) == as_bytes(
        whole
    )


def test_what_is_interrupted_leaves_the_parser_as_it_was(parser, treebank):
    again = LeftCornerParser.from_state(parser.get_state())
    with pytest.raises(StoppedError), messages_to(interrupted_at(2)):
        again.fit(treebank[:20])
    assert as_bytes(again) == as_bytes(parser)


def test_what_another_training_has_left_is_refused(treebank, tmp_path):
    make_parser(epochs=1).fit(treebank[:20], checkpoint=tmp_path / "kept")
    for trees, options in ((treebank[:21], {}), (treebank[:20], {"random_state": 1})):
        with pytest.raises(
            InputError, match="is a checkpoint of a run with other data or options; use the data and options"
        ):
            make_parser(epochs=1, **options).fit(trees, checkpoint=tmp_path / "kept")


@pytest.mark.slow
def test_threads_change_nothing(treebank):
    one, two = (make_parser(n_jobs=n_jobs).fit(treebank[:30]) for n_jobs in (1, 2))
    assert as_bytes(one) == as_bytes(two)
    assert one.kbest(treebank[60:], k=2) == two.kbest(treebank[60:], k=2)


@pytest.mark.slow
def test_the_parser_of_the_best_epoch_is_kept(treebank):
    parser = make_parser(epochs=8, patience=2, dev_beam=8).fit(treebank[:30], treebank[60:70])
    best = max(parser.history_, key=lambda epoch: epoch.f1)
    found = parser.predict(treebank[60:70])
    assert tw.metrics.parseval(treebank[60:70], found).f1 == pytest.approx(best.f1)
    assert len(parser.history_) - best.number <= 2


@pytest.mark.slow
def test_dev_scores_between_epochs_are_those_of_the_beam_for_them(treebank):
    trees, dev = treebank[:30], treebank[60:70]
    for dev_beam in (1, 3, 100):
        parser = make_parser(epochs=1, dev_beam=dev_beam).fit(trees, dev)
        found = parser.using(beam=min(dev_beam, parser.beam)).predict(dev)
        assert parser.history_[0].f1 == pytest.approx(tw.metrics.parseval(dev, found).f1)


def test_progress_tells_what_there_is_and_each_epoch(treebank):
    lines = []
    with messages_to(lines.append):
        parser = make_parser(epochs=2).fit(treebank[:20])
    assert lines[0].startswith("18 sentences, ")
    assert lines[1:] == [f"epoch {epoch.number}/2: {epoch}" for epoch in parser.history_]
    assert str(Epoch(3, 1.5, 80.0, 7.2)) == "loss 1.5000, dev F1 80.00, 7 s"


@pytest.mark.slow
def test_parses_have_no_root_where_training_trees_have_none(treebank):
    trees = [child for tree in treebank for child in tree.children]
    parser = make_parser().fit([*trees[:59], tw.ConstTree.parse("(NP (NN cat))")])
    assert parser.root_ is None
    assert [tree.words() for tree in parser.predict(trees)] == [tree.words() for tree in trees]


@pytest.mark.slow
def test_training_on_one_tree_gives_it_back(treebank):
    parser = make_parser(epochs=60, dropout=0.0, min_count=1).fit(treebank[:1])
    assert parser.predict(treebank[:1]) == treebank[:1]
    derivation = derive(parser.chains_.merge(treebank[0]))
    assert encode(derivation, parser.vocabulary_).kinds.tolist() == derivation.kinds
    assert parser.chains_.split(rebuild(derivation)) == treebank[0]


COUNTS = (
    "units", "embedding", "min_count", "min_chain", "batch_size", "epochs", "patience", "beam", "branching",
    "max_projections", "n_jobs",
)  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tags": "none"}, "tags is 'none'; expected one of gold, predicted"),
        ({"cell": "relu"}, "cell is 'relu'; expected one of gated, tanh, sigmoid"),
        ({"optimizer": "newton"}, "optimizer is 'newton'; expected one of adam, momentum"),
        ({"device": "abacus"}, "device is 'abacus'; expected a device that PyTorch can use"),
        ({"learning_rate": 0}, "learning_rate is 0; expected a number from 1e-08 to 10"),
        ({"weight_decay": -1}, "weight_decay is -1; expected a number from 0 to 1"),
        ({"dropout": 1.0}, "dropout is 1.0; expected a number from 0 to 0.9"),
        ({"folds": 1}, "folds is 1; expected an integer of at least 2"),
        ({"random_state": "x"}, "random_state is 'x'; expected an integer"),
        *(({name: 0}, f"{name} is 0; expected an integer of at least 1") for name in COUNTS),
    ],
)
def test_wrong_options_are_named(treebank, options, message):
    with pytest.raises(InputError) as caught:
        make_parser(**options).fit(treebank[:5])
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_wrong_trees_are_named(treebank):
    nothing = [tw.ConstTree.parse("(TOP (NP (-NONE- *)))")]
    for trees in ([], nothing):
        with pytest.raises(InputError, match="no training trees with words; expected at least"):
            make_parser().fit(trees)
        with pytest.raises(InputError, match="no dev trees with words; expected at least one"):
            make_parser().fit(treebank[:5], trees)
    with pytest.raises(InputError, match="tree 2 is 'cat'; expected a ConstTree"):
        make_parser().fit([treebank[0], "cat"])


def test_one_sentence_is_no_list(parser, treebank):
    with pytest.raises(InputError, match=r"one tree was given, .*; expected a list of sentences"):
        parser.predict(treebank[0])
    with pytest.raises(InputError, match="sentence 1 is of type int; expected a tree, a list of words"):
        parser.predict([3])
    with pytest.raises(InputError, match="the sentences are the text 'The cat', but a LeftCorner"):
        parser.predict("The cat")
    with pytest.raises(InputError, match="k is 0; expected an integer of at least 1"):
        parser.kbest(treebank[:1], k=0)


def test_a_parser_that_has_learnt_nothing_says_so(treebank):
    for use in ("predict", "kbest", "trace", "log_probabilities"):
        with pytest.raises(
            InputError, match="this LeftCornerParser is not fitted; call fit first, or load a fitted one"
        ):
            getattr(make_parser(), use)(treebank[:1])
