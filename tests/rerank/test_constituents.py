"""ConstituentReranker: what it chooses, how training goes on, what it refuses."""

import itertools

import numpy as np
import pytest
from oracle import voted

import treewright as tw
from treewright.annotation.contract import Analysis
from treewright.errors import FormatError, InputError
from treewright.model import State, save_state
from treewright.progress import messages_to
from treewright.rerank import constituents
from treewright.rerank.constituents import KERNELS, ConstituentReranker
from treewright.rerank.parse_lists import count_brackets, f1_losses, list_parses
from treewright.rerank.voting import join_brackets

K = 4
DERIVED = [name for name in KERNELS if name != "sst"]


def make_reranker(parser, **options):
    return ConstituentReranker(parser=parser, **({"kernel": "efficient-top", "k": K} | options))


def make_parser(**options):
    """Make a parser that learns, and parses, in little time."""
    return tw.ConstituentParser(lowest_penalty=3.0, max_inferences=200, **options)


@pytest.fixture(scope="module")
def train(brackets):
    return brackets[:10]


@pytest.fixture(scope="module")
def dev(brackets):
    return brackets[30:35]


@pytest.fixture(scope="module")
def test(brackets):
    return brackets[46:]


@pytest.fixture(scope="module")
def both(leftcorner, constituent, train, dev):
    """Train a reranker of the trees of two parsers."""
    return make_reranker(leftcorner, others=(constituent,)).fit(train, dev)


def f1(gold, found):
    return tw.metrics.parseval(gold, found).f1


class StoppedError(Exception):
    """Stops a training."""


def stop_at(beginning):
    def tell(line):
        if line.startswith(beginning):
            raise StoppedError

    return tell


@pytest.mark.slow_cases
@pytest.mark.parametrize("kernel", [*KERNELS, tw.FisherKernel(score_scale=0.5)], ids=str)
def test_every_kernel_learns_and_chooses_among_the_parsers_trees(leftcorner, train, dev, test, kernel):
    reranker = make_reranker(leftcorner, kernel=kernel).fit(train, dev)
    own = leftcorner.kbest(test, K)
    for parses, tree in zip(own, reranker.predict(test), strict=True):
        assert tree in [parse.tree for parse in parses]
    assert reranker.tuning_.base == pytest.approx(f1(dev, leftcorner.predict(dev)))
    assert reranker.tuning_.chosen == pytest.approx(f1(dev, reranker.predict(dev)))
    assert reranker.tuning_.base <= reranker.tuning_.chosen <= reranker.tuning_.best


@pytest.mark.slow_cases
@pytest.mark.parametrize("kernel", ["fisher", "top-rerank"])
def test_all_weights_can_be_derived_by(leftcorner, train, dev, test, kernel):
    reranker = make_reranker(leftcorner, kernel=kernel, weights="all").fit(train[:6], dev[:4])
    n_weights = sum(array.size for array in leftcorner.weights_.values())
    assert reranker.reranker_.ranker_.coef_.shape == (1 + n_weights,)
    assert [tree.words() for tree in reranker.predict(test)] == [tree.words() for tree in test]


def test_a_support_vector_machine_can_learn(leftcorner, train, dev, test):
    reranker = make_reranker(leftcorner, learner="svm", penalty=10.0).fit(train, dev)
    assert reranker.reranker_.ranker_.penalty == 10.0
    assert len(reranker.predict(test)) == len(test)


@pytest.mark.parametrize("learner", ["softmax", "expected-loss"])
def test_a_softmax_over_each_list_can_learn(leftcorner, train, dev, test, learner, tmp_path):
    reranker = make_reranker(leftcorner, learner=learner, penalty=10.0).fit(train, dev)
    ranker = reranker.reranker_.ranker_
    assert (ranker.objective == "likelihood") == (learner == "softmax")
    assert ranker.penalty == 10.0
    reranker.save(tmp_path / "model")
    assert tw.load(tmp_path / "model").kbest(test) == reranker.kbest(test)


def listed_candidates(reranker, trees, losses=None):
    """Return lists of candidates as the slow perceptron takes them: features, loss, weighted score."""
    lists = list_parses([reranker.parser_], trees, K)
    scores = reranker._score_weight * reranker._base_scores(lists)
    rows = reranker._make_kernel().features(reranker._see(lists)).toarray()
    sizes = np.cumsum([len(each.trees) for each in lists])[:-1]
    losses = [np.zeros(len(each.trees)) for each in lists] if losses is None else losses
    parts = zip(np.split(rows, sizes), losses, np.split(scores, sizes), strict=True)
    return lists, [list(zip(*map(np.ndarray.tolist, part), strict=True)) for part in parts]


def test_every_weight_vector_of_the_training_votes(leftcorner, train, dev, test, tmp_path):
    """The votes of a slow perceptron choose the trees, in the order of the corpus, as in the paper."""
    reranker = make_reranker(leftcorner, voting=True, shuffle=False, epochs=2, kernel_weight=1e9)
    reranker.fit(train, dev)
    losses = [f1_losses(each) for each in count_brackets(train, list_parses([leftcorner], train, K))]
    _, passed = voted.pass_through(listed_candidates(reranker, train, losses)[1], epochs=2)
    assert len({tuple(weights) for weights in passed}) > 3
    lists, candidates = listed_candidates(reranker, test)
    for tree, found, each in zip(reranker.predict(test), lists, candidates, strict=True):
        votes = voted.votes(passed, each)
        assert votes[found.trees.index(tree)] == max(votes)
    reranker.save(tmp_path / "model")
    assert tw.load(tmp_path / "model").kbest(test) == reranker.kbest(test)


def test_the_weight_of_the_reranker_can_be_given(leftcorner, train, dev, test):
    reranker = make_reranker(leftcorner, kernel_weight=1.0).fit(train, dev)
    assert reranker.tuning_.kernel_weight == 1.0
    lists, candidates = listed_candidates(reranker, test)
    coef = reranker.reranker_.ranker_.coef_
    for tree, found, each in zip(reranker.predict(test), lists, candidates, strict=True):
        finals = [np.dot(features, coef) + score for features, _, score in each]
        assert tree == found.trees[int(np.argmax(finals))]


def test_trees_of_a_parser_by_classification_are_reranked_by_their_fragments(constituent, train, dev, test):
    reranker = make_reranker(constituent, kernel="sst", epochs=2).fit(train, dev)
    assert reranker.tuning_.base == pytest.approx(f1(dev, constituent.predict(dev)))
    for parses, tree in zip(constituent.kbest(test, K), reranker.predict(test), strict=True):
        assert tree in [parse.tree for parse in parses]


def test_two_parsers_choose_together_without_a_kernel(leftcorner, constituent, train, dev, test):
    reranker = make_reranker(constituent, others=(leftcorner,), kernel="none").fit(train, dev)
    assert reranker.reranker_ is None
    assert reranker.tuning_.others > (0.0,)
    assert reranker.tuning_.chosen > reranker.tuning_.base
    assert reranker.tuning_.chosen == pytest.approx(f1(dev, reranker.predict(dev)))
    lists = list_parses([constituent, leftcorner], test, K)
    for found, parses in zip(lists, reranker.kbest(test, K), strict=True):
        final = found.scores @ [1.0, *reranker.tuning_.others]
        assert [parse.score for parse in parses] == pytest.approx(sorted(final, reverse=True)[:K])
        assert parses[0].tree == found.trees[int(final.argmax())]


def test_three_parsers_choose_together(leftcorner, constituent, span, train, dev, test, tmp_path):
    reranker = make_reranker(constituent, others=(leftcorner, span), kernel="none").fit(train, dev)
    assert len(reranker.tuning_.others) == 2
    assert reranker.tuning_.chosen == pytest.approx(f1(dev, reranker.using(predict_by="score").predict(dev)))
    lists = list_parses([constituent, leftcorner, span], test, K)
    for found, parses in zip(lists, reranker.kbest(test, K), strict=True):
        final = found.scores @ [1.0, *reranker.tuning_.others]
        assert [parse.score for parse in parses] == pytest.approx(sorted(final, reverse=True)[:K])
    reranker.save(tmp_path / "model")
    again = tw.load(tmp_path / "model")
    assert [type(each) for each in again.others] == [tw.LeftCornerParser, tw.SpanParser]
    assert again.predict(test) == reranker.predict(test)


def test_a_second_parser_joins_with_its_trees_and_score(both, leftcorner, constituent, test):
    lists = list_parses([leftcorner, constituent], test, K)
    for found, parses in zip(lists, both.kbest(test, 100), strict=True):
        assert {parse.tree for parse in parses} == set(found.trees)
        assert len(parses) == len(found.trees)


def assert_same(found, expected):
    """Check that trees are the same, and scores but for the last bits, which some BLAS kernels change."""
    assert [[parse.tree for parse in parses] for parses in found] == [
        [parse.tree for parse in parses] for parses in expected
    ]
    for some, others in zip(found, expected, strict=True):
        np.testing.assert_allclose([each.score for each in some], [each.score for each in others], rtol=1e-5)


def test_scores_of_the_best_are_sorted_and_lists_are_cut(both, test):
    whole = both.kbest(test)
    for parses in whole:
        scores = [parse.score for parse in parses]
        assert scores == sorted(scores, reverse=True)
    assert_same(both.kbest(test[:3], 2), [parses[:2] for parses in whole[:3]])
    assert both.predict(test) == [parses[0].tree for parses in whole]


def test_folds_are_parsed_by_parsers_that_have_not_seen_them(train, dev, test, monkeypatch):
    trained, listed = [], []
    fit = tw.ConstituentParser.fit

    def note_training(self, trees, *arguments, **options):
        trained.append(set(trees))
        return fit(self, trees, *arguments, **options)

    def note_parsing(parsers, sentences, k, **options):
        listed.append(set(sentences))
        return list_parses(parsers, sentences, k, **options)

    monkeypatch.setattr(tw.ConstituentParser, "fit", note_training)
    monkeypatch.setattr(constituents, "list_parses", note_parsing)
    lines = []
    parser = make_parser()
    with messages_to(lines.append):
        reranker = make_reranker(parser, kernel="sst", folds=2).fit(train, dev)
    assert trained[0] == set(train)
    for rest, part in zip(trained[1:], listed[:2], strict=True):
        assert not rest & part
        assert rest | part == set(train)
    assert listed[2] == set(dev)
    assert {line.split(":")[0] for line in lines if line.startswith("fold")} == {"fold1", "fold2"}
    assert not parser.is_fitted
    assert len(reranker.predict(test)) == len(test)


@pytest.mark.slow
def test_folds_go_with_derived_kernels(leftcorner, train, dev, test):
    small = leftcorner.with_params(epochs=1).fit(train, dev)
    reranker = make_reranker(small, folds=2).fit(train[:10], dev)
    assert reranker.parser_ is small
    assert len(reranker.predict(test)) == len(test)


def test_a_parser_that_has_learnt_is_taken_as_it_is(both, leftcorner):
    assert both.parser_ is leftcorner


def test_without_dev_trees_some_training_trees_are_held_out(leftcorner, train):
    lines = []
    with messages_to(lines.append):
        make_reranker(leftcorner).fit(train)
    assert lines[0] == "k-best trees of 9 of 9 sentences"
    assert "k-best trees of 1 of 1 sentences" in lines
    assert lines[-1].startswith("dev F1 ")


def test_a_saved_reranker_chooses_the_same(both, test, tmp_path):
    both.save(tmp_path / "model")
    again = tw.load(tmp_path / "model")
    assert again.kbest(test) == both.kbest(test)
    assert again.tuning_ == both.tuning_
    for name in {*both.param_names()} - {"parser", "others"}:
        assert getattr(again, name) == getattr(both, name)


def _with_votes(scales, shares):
    """Return a function that changes the votes of a saved reranker."""
    return lambda state: state.values.update(tuning=[1.0, [1.0], 1.0, 1.0, 1.0, [scales, shares], 1.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.parts.update(parser=State("Tagger")), "parser is a Tagger; expected LeftCorner"),
        (
            lambda state: state.parts.update(parser=state.parts["others0"]),
            "a kernel that matches the parser",
        ),
        (lambda state: state.parts.pop("reranker"), "a reranker trained with this kernel"),
        (lambda state: state.values.update(kernel="x"), "kernel is 'x'; expected one of fisher"),
        (lambda state: state.values.update(kernel="top"), "a reranker trained with this kernel"),
        (lambda state: state.values.update(tuning=[1.0, [1.0]]), "not enough values to unpack"),
        (
            lambda state: state.values.update(tuning=[1.0, [], 1.0, 1.0, 1.0, None, 0.0]),
            "a weight for each of the other parsers",
        ),
        (
            lambda state: state.values.update(tuning=[1.0, [1.0], 1.0, 1.0, 1.0, None, np.nan]),
            "finite F1 scores",
        ),
        (_with_votes([1.0], [1.0]), "a scale and a share of each parser"),
        (_with_votes([1.0, np.inf], [0.5, 0.5]), "scales of at least 0"),
        (_with_votes([1.0, 1.0], [1.5, -0.5]), "shares between 0 and 1"),
        (_with_votes([1.0, 1.0], [0.5, 0.25]), "shares whose sum is 1"),
        (lambda state: state.values["params"].update(k=0), "k is 0; expected an integer from 2 to 10000"),
    ],
)
def test_what_is_no_reranker_is_refused(both, tmp_path, change, message):
    state = both.get_state()
    change(state)
    save_state(state, tmp_path / "model")
    with pytest.raises(FormatError, match=message):
        tw.load(tmp_path / "model")


def test_parsers_are_not_changed_by_their_reranker(leftcorner, constituent, train, dev, test):
    before = vars(leftcorner).copy(), vars(constituent).copy()
    make_reranker(leftcorner, others=(constituent,), n_jobs=2).fit(train[:4], dev[:3]).predict(test[:2])
    assert (vars(leftcorner), vars(constituent)) == before


@pytest.mark.parametrize("kernel", ["sst", tw.SubsetTreeKernel(decay=0.3)], ids=["name", "object"])
def test_a_saved_reranker_by_fragments_chooses_the_same(constituent, train, dev, test, tmp_path, kernel):
    reranker = make_reranker(constituent, kernel=kernel).fit(train, dev)
    reranker.save(tmp_path / "model")
    assert tw.load(tmp_path / "model").kbest(test) == reranker.kbest(test)


@pytest.mark.slow
def test_an_interrupted_training_goes_on_and_parses_nothing_again(
    leftcorner, constituent, train, dev, test, tmp_path, monkeypatch
):
    monkeypatch.setattr(constituents, "BATCH_SIZE", 5)
    n_listed = itertools.count()

    def count(parsers, sentences, k, **options):
        next(n_listed)
        return list_parses(parsers, sentences, k, **options)

    monkeypatch.setattr(constituents, "list_parses", count)
    whole = make_reranker(leftcorner, others=(constituent,)).fit(train, dev)
    n_lists = next(n_listed)
    assert n_lists == 3  # two of training sentences, one of dev sentences
    for line in ("k-best trees of 5 of 10", "base weight 1"):
        with pytest.raises(StoppedError), messages_to(stop_at(line)):
            make_reranker(leftcorner, others=(constituent,)).fit(train, dev, checkpoint=tmp_path / "kept")
    again = make_reranker(leftcorner, others=(constituent,)).fit(train, dev, checkpoint=tmp_path / "kept")
    assert next(n_listed) - n_lists - 1 == n_lists
    assert again.tuning_ == whole.tuning_
    assert again.kbest(test) == whole.kbest(test)
    # Lists of training sentences do not depend on the second parser; those of dev sentences do.
    with pytest.raises(
        InputError, match="dev is a checkpoint of a run with other data or options; use the data"
    ):
        make_reranker(leftcorner).fit(train, dev, checkpoint=tmp_path / "kept")
    with pytest.raises(
        InputError, match="lists is a checkpoint of a run with other data or options; use the data"
    ):
        make_reranker(leftcorner, k=3).fit(train, dev, checkpoint=tmp_path / "kept")


def test_the_training_of_the_parser_is_kept_too(train, dev, test, tmp_path):
    def make():
        return make_reranker(make_parser(), kernel="sst")

    whole = make().fit(train, dev)
    with pytest.raises(StoppedError), messages_to(stop_at("k-best trees")):
        make().fit(train, dev, checkpoint=tmp_path / "kept")
    lines = []
    with messages_to(lines.append):
        again = make().fit(train, dev, checkpoint=tmp_path / "kept")
    assert not any(line.startswith("penalty") for line in lines)
    assert again.kbest(test) == whole.kbest(test)


def test_what_is_interrupted_leaves_the_reranker_as_it_was(both, train, dev, test):
    before = both.kbest(test), both.tuning_
    with pytest.raises(StoppedError), messages_to(stop_at("base weight")):
        both.fit(train[:5], dev)
    assert (both.kbest(test), both.tuning_) == before


def test_neither_threads_nor_batches_show_in_the_result(both, test, monkeypatch):
    expected = both.kbest(test)
    monkeypatch.setattr(constituents, "BATCH_SIZE", 3)
    monkeypatch.setattr(both, "n_jobs", 2)
    assert_same(both.kbest(test), expected)


@pytest.mark.slow_cases
@pytest.mark.parametrize("kernel", ["efficient-top", "top"])
def test_a_tree_without_words_is_its_own_parse(leftcorner, train, dev, test, kernel):
    reranker = make_reranker(leftcorner, kernel=kernel).fit(train[:3], dev[:3])
    empty = tw.ConstTree.parse("(X (NP-SBJ (-NONE- *)))")
    lists = reranker.kbest([test[0], empty, test[1]], 2)
    assert lists[1] == [(empty, 0.0, None)]
    assert [lists[0], lists[2]] == reranker.kbest(test[:2], 2)


def test_sentences_of_any_kind_are_taken(both, test):
    test = test[:3]
    expected = both.predict(test)
    assert both.predict(tree for tree in test) == expected
    pairs = [list(zip(tree.words(), tree.tags(), strict=True)) for tree in test]
    assert both.predict(pairs) == expected
    assert both.predict([tw.DepTree(tree.words(), xpos=tree.tags()) for tree in test]) == expected
    assert both.predict([]) == []


def test_wrong_sentences_are_named(both, test, monkeypatch):
    monkeypatch.setattr(constituents, "BATCH_SIZE", 1)
    for sentences, message in [
        (test[0], r"^one tree was given, .*; expected a list of sentences: \[tree\]$"),
        ("The cat", r"^the sentences are the text 'The cat', but a ConstituentReranker reads words"),
        (["The", "cat"], r"^one sentence was given, \['The', 'cat'\]; expected a list of sentences"),
        (None, r"^the sentences are of type NoneType; expected a list of sentences"),
        ([test[0], []], r"^sentence 2 has no words; expected at least one$"),
        (
            [test[0], ["The", "cat"]],
            r"^sentence 2 has no tags, but this ConstituentReranker needs tags",
        ),
    ]:
        with pytest.raises(InputError, match=message):
            both.predict(sentences)
    with pytest.raises(InputError, match="k is 0; expected an integer of at least 1"):
        both.kbest(test, 0)


def test_tags_are_those_of_the_parser(train, dev, test):
    parser = make_parser(tags="predicted", folds=2).fit(train, dev)
    reranker = make_reranker(parser, kernel="sst").fit(train[:10], dev)
    assert (reranker.tags, reranker.needs_tags) == ("predicted", False)
    assert reranker.tagger_ is parser.tagger_
    assert [tree.words() for tree in reranker.predict([each.words() for each in test])] == [
        each.words() for each in test
    ]
    reranker = reranker.using(tags="gold")
    assert reranker.needs_tags
    assert [tree.tags() for tree in reranker.predict(test)] == [each.tags() for each in test]


def test_two_parsers_take_tags_as_they_are_given(both):
    assert (both.tags, both.needs_tags, both.tagger_) == ("gold", True, None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "x"}, "kernel is 'x'; expected one of fisher, top, top-rerank, efficient-top, sst, none"),
        ({"kernel": "none"}, "kernel='none' and no others; expected another kernel"),
        ({"weights": "some"}, "weights is 'some'; expected one of output, all"),
        ({"learner": "x"}, "learner is 'x'; expected one of perceptron, svm"),
        ({"k": 1}, "k is 1; expected an integer from 2 to 10000"),
        ({"folds": 1}, "folds is 1; expected an integer of at least 2"),
        ({"epochs": 0}, "epochs is 0; expected an integer of at least 1"),
        ({"n_jobs": 0}, "n_jobs is 0; expected an integer of at least 1"),
        ({"random_state": "x"}, "random_state is 'x'; expected an integer"),
        ({"penalty": 0}, "penalty is 0; expected a number from"),
        (
            {"kernel": "sst", "learner": "svm"},
            "kernel='sst' and learner='svm'; expected learner='perceptron'",
        ),
        (
            {"kernel": "top", "weights": "all"},
            "kernel='top' and weights='all'; expected weights='output', or",
        ),
        ({"weights": "all"}, "kernel='efficient-top' and weights='all'; expected weights='output'"),
        ({"parser": 3}, "parser is int; expected a LeftCornerParser or a ConstituentParser or a SpanParser"),
        ({"others": "x"}, "others is str; expected a tuple of parsers"),
        ({"others": ("x",)}, "others is str; expected a LeftCornerParser or a ConstituentParser or a SpanP"),
        (
            {"others": (tw.LeftCornerParser(),)},
            "others has an untrained parser; expected trained parsers",
        ),
    ],
)
def test_wrong_options_are_named_before_anything_is_learnt(train, options, message):
    with pytest.raises(InputError) as caught:
        ConstituentReranker(**options).fit(train)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kernel", DERIVED)
def test_derived_kernels_need_the_network_of_a_left_corner_parser(train, kernel):
    with pytest.raises(InputError) as caught:
        make_reranker(tw.ConstituentParser(), kernel=kernel).fit(train)
    assert str(caught.value) == (
        f"kernel={kernel!r} does not work with a ConstituentParser; "
        "expected a LeftCornerParser, whose network defines the kernel"
    )


def test_of_two_parsers_neither_may_predict_tags(constituent, train):
    with pytest.raises(InputError, match="parser has a parser that predicts its own tags"):
        make_reranker(tw.LeftCornerParser(tags="predicted"), others=(constituent,)).fit(train)
    own = make_parser(tags="predicted", folds=2).fit(train)
    with pytest.raises(InputError, match="others has a parser that predicts its own tags"):
        make_reranker(constituent, kernel="none", others=(own,)).fit(train)


def test_a_reranker_that_has_learnt_nothing_says_so(test, tmp_path):
    reranker = ConstituentReranker()
    assert not reranker.is_fitted
    for use in (lambda: reranker.predict(test), lambda: reranker.save(tmp_path / "m"), lambda: reranker.tags):
        with pytest.raises(
            InputError, match="this ConstituentReranker is not fitted; call fit first, or load"
        ):
            use()


def test_trees_can_be_predicted_by_their_brackets(leftcorner, constituent, span, train, dev, test, tmp_path):
    reranker = make_reranker(constituent, others=(leftcorner, span), kernel="none").fit(train, dev)
    tuning = reranker.tuning_
    by_brackets, by_score = (reranker.using(predict_by=way) for way in ("brackets", "score"))
    assert tuning.by_brackets == pytest.approx(f1(dev, by_brackets.predict(dev)))
    assert tuning.chosen == pytest.approx(f1(dev, by_score.predict(dev)))
    better = by_brackets if tuning.by_brackets > tuning.chosen else by_score
    assert reranker.predict(test) == better.predict(test)
    assert f"{tuning.by_brackets:.2f} by brackets (shares " in str(tuning)
    lists = list_parses([constituent, leftcorner, span], test, K)
    for found, tree in zip(lists, by_brackets.predict(test), strict=True):
        logs = found.scores * tuning.votes.scales
        shares = np.exp(logs - np.logaddexp.reduce(logs)) @ tuning.votes.shares
        assert tree == join_brackets(found.trees, shares)
    assert [one for (one,) in by_brackets.annotate(test)] == [
        Analysis(tree) for tree in by_brackets.predict(test)
    ]
    assert [parses[0].score for parses in by_brackets.kbest(test)] == [
        parses[0].score for parses in by_score.kbest(test)
    ]
    by_brackets.save(tmp_path / "model")
    assert tw.load(tmp_path / "model").predict(test) == by_brackets.predict(test)


def test_brackets_need_votes_that_were_tuned(leftcorner, train, dev, test):
    reranker = make_reranker(leftcorner, kernel="sst", predict_by="score").fit(train[:8], dev[:4])
    assert reranker.tuning_.votes is None
    with pytest.raises(InputError, match="predict_by='brackets'; expected predict_by='score', as in"):
        reranker.using(predict_by="brackets").predict(test)


def test_a_list_of_too_many_trees_is_refused(train, dev):
    with pytest.raises(InputError, match="expected an integer from 2 to 10000"):
        make_reranker(tw.LeftCornerParser(), k=10**20).fit(train, dev)
