import numpy as np
import pytest

import treewright as tw
from treewright.errors import FormatError, InputError
from treewright.model import save_state
from treewright.progress import messages_to
from treewright.rerank.reranker import DependencyReranker

PARSER = {"order": 2, "epochs": 2, "runs": 1, "table_bits": 16}
SETTINGS = {
    "subtree": {"degree": 2, "threshold": 2},
    "polynomial": {"space": "polynomial", "degree": 2, "threshold": 4},
    "template": {"space": "template"},
    "polynomial kernel": {"space": "polynomial", "learner": "kernel", "degree": 2, "chunks": 2},
    "tree kernel": {"learner": "kernel", "chunks": 2},
}
QUICK = {"k": 5, "folds": 2, "max_iter": 1, "significance_level": None}


@pytest.fixture(scope="module")
def bank():
    return tw.make_treebank(260, random_state=2).dependencies


@pytest.fixture(scope="module")
def train(bank):
    return bank[:160]


@pytest.fixture(scope="module")
def dev(bank):
    return bank[160:210]


@pytest.fixture(scope="module")
def test(bank):
    return bank[210:]


@pytest.fixture(scope="module")
def parser(train, dev):
    return tw.DependencyParser(**PARSER).fit(train, dev)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("lists")


SLOW = {"polynomial", "polynomial kernel", "tree kernel"}


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in SETTINGS],
)
def reranker(request, parser, train, dev, cache):
    return DependencyReranker(parser=parser, **QUICK, **SETTINGS[request.param]).fit(train, dev, cache=cache)


@pytest.fixture(scope="module")
def distrusted(parser, train, dev, cache):
    """Return a reranker whose gain is not significant at a level of 0, and what was told."""
    lines = []
    options = {**QUICK, **SETTINGS["subtree"], "significance_level": 0.0}
    reranker = DependencyReranker(parser=parser, **options)
    with messages_to(lines.append):
        return reranker.fit(train, dev, cache=cache), lines


@pytest.fixture(scope="module")
def subtrees(parser, train, dev, cache):
    return DependencyReranker(parser=parser, **QUICK, **SETTINGS["subtree"]).fit(train, dev, cache=cache)


def test_trees_are_among_those_of_the_parser(reranker, parser, test):
    found = reranker.predict(test)
    for tree, candidates in zip(found, parser.kbest(test, 5), strict=True):
        assert any(np.array_equal(tree.heads, one.tree.heads) for one in candidates)


def test_dev_sentences_are_parsed_no_worse_than_by_the_parser(reranker, parser, dev):
    base = tw.metrics.attachment(dev, parser.predict(dev)).uas
    assert tw.metrics.attachment(dev, reranker.predict(dev)).uas >= base


@pytest.mark.slow_cases
def test_a_saved_reranker_gives_the_same_trees(reranker, test, tmp_path):
    reranker.save(tmp_path / "model.tw")
    again = tw.load(tmp_path / "model.tw")
    assert again.predict(test) == reranker.predict(test)
    assert again.n_features_ == reranker.n_features_
    again.save(tmp_path / "again.tw")
    assert (tmp_path / "again.tw").read_bytes() == (tmp_path / "model.tw").read_bytes()


def test_the_best_candidate_is_the_prediction(reranker, test):
    best = [candidates[0].tree for candidates in reranker.kbest(test, 3)]
    assert best == reranker.predict(test)


def test_candidates_come_by_score_and_their_probabilities_are_at_most_one(reranker, test):
    for candidates in reranker.kbest(test, 5):
        scores = [one.score for one in candidates]
        assert scores == sorted(scores, reverse=True)
        assert 0 < sum(one.probability for one in candidates) <= 1 + 1e-9


def test_more_candidates_than_are_reranked_come_after_them(subtrees, parser, test):
    few, many = subtrees.kbest(test, 5), subtrees.kbest(test, 8)
    for some, more, base in zip(few, many, parser.kbest(test, 8), strict=True):
        assert len(more) == len(base)
        assert [one.tree.heads.tolist() for one in more[: len(some)]] == [
            one.tree.heads.tolist() for one in some
        ]
        scores = [one.score for one in more]
        assert scores == sorted(scores, reverse=True)


def test_threads_change_nothing(subtrees, test):
    subtrees.n_jobs = 2
    two = subtrees.predict(test * 5)
    subtrees.n_jobs = 1
    assert two == subtrees.predict(test * 5)


def test_marginals_sum_to_one_and_follow_the_reranked_trees(subtrees, test):
    for tree, square in zip(test, subtrees.marginals(test), strict=True):
        assert square.shape == (len(tree), len(tree) + 1)
        np.testing.assert_allclose(square.sum(axis=1), 1, atol=1e-6)
    parsed = subtrees.predict(test)
    confidence = [subtrees.confidence(*pair) for pair in zip(parsed, subtrees.marginals(test), strict=True)]
    assert min(map(min, confidence)) > 0


def test_reasons_add_up_to_the_difference_of_the_scores(subtrees, test):
    compared = [one for one in subtrees.explain(test) if len(one.candidates) > 1]
    assert compared
    for one in compared:
        total = sum(each.weight for each in one.reasons)
        assert total == pytest.approx(one.scores[0] - one.scores[1], abs=1e-9)
        weights = [abs(each.weight) for each in one.reasons]
        assert weights == sorted(weights, reverse=True)


def test_final_scores_are_those_of_parser_and_reranker_together(subtrees, test):
    for one in subtrees.explain(test):
        sums = np.add(one.parser_scores, one.scores)
        np.testing.assert_allclose(sums, [candidate.score for candidate in one.candidates])


def test_the_weightiest_features_are_named_with_their_words(subtrees):
    top = subtrees.weightiest(20)
    assert len(top) == min(20, subtrees.n_features_)
    assert all("→" in feature.text or ".." in feature.text for feature in top)
    assert all(word in feature.text for feature in top for word in feature.words)
    weights = [abs(feature.weight) for feature in top]
    assert weights == sorted(weights, reverse=True)


def test_other_rerankers_have_no_subtree_features_to_name(parser, train, dev, cache):
    reranker = DependencyReranker(parser=parser, space="template", **QUICK).fit(train, dev, cache=cache)
    with pytest.raises(InputError, match="no subtree features; expected space 'subtree'"):
        reranker.weightiest()


def test_the_perceptron_of_the_paper_is_an_option(parser, train, dev, test, cache):
    options = {**QUICK, **SETTINGS["subtree"], "ranker": "perceptron"}
    reranker = DependencyReranker(parser=parser, **options).fit(train, dev, cache=cache)
    assert len(reranker.predict(test)) == len(test)


@pytest.mark.slow
def test_the_best_tree_of_a_list_can_be_the_target(parser, train, dev, test, cache):
    lines = []
    reranker = DependencyReranker(parser=parser, space="template", target="best", **QUICK)
    with messages_to(lines.append):
        reranker.fit(train, dev, cache=cache)
    assert any("the gold tree is missing in" in line for line in lines)
    assert len(reranker.predict(test)) == len(test)


def test_without_a_dev_set_some_lists_are_put_aside(parser, train, test, cache):
    lines = []
    reranker = DependencyReranker(parser=parser, **QUICK, **SETTINGS["template"])
    with messages_to(lines.append):
        reranker.fit(train, cache=cache)
    assert len(reranker.predict(test)) == len(test)
    assert any("of 144 lists" in line for line in lines)


def test_a_single_training_sentence_is_refused(train):
    with pytest.raises(InputError, match=r"^there is one training sentence; expected at least two"):
        tw.DependencyReranker(parser=tw.DependencyParser(epochs=1, runs=1)).fit(train[:1])


def test_a_parser_without_training_is_trained_first(train, dev):
    options = tw.DependencyParser(order=1, epochs=1, runs=1, table_bits=14)
    reranker = DependencyReranker(parser=options, space="template", **QUICK).fit(train[:40], dev[:10])
    assert reranker.parser_.is_fitted
    assert not options.is_fitted


def test_progress_tells_of_the_lists_and_the_gain(parser, train, dev, cache):
    lines = []
    with messages_to(lines.append):
        DependencyReranker(parser=parser, space="template", **QUICK).fit(train, dev, cache=cache)
    assert any("with k = 5" in line for line in lines)
    assert any("reranked with beta" in line for line in lines)


@pytest.mark.slow
def test_the_line_about_tuning_tells_the_gain_and_its_p_value(distrusted):
    reranker, lines = distrusted
    line = next(line for line in lines if line.startswith("tuning: UAS"))
    assert f"cross-validated gain {reranker.gain_:+.2f} (p = {reranker.p_value_:.4f})" in line


def test_without_a_significant_gain_trees_are_ranked_as_by_the_parser(distrusted, parser, test):
    reranker, lines = distrusted
    assert not reranker.is_trusted_
    assert lines[-1] == "the gain is not significant at 0: the parser's ranking is used"
    assert reranker.predict(test) == parser.predict(test)
    for mine, base in zip(reranker.kbest(test, 8), parser.kbest(test, 8), strict=True):
        assert [one.tree for one in mine] == [one.tree for one in base]
        np.testing.assert_allclose([one.score for one in mine[:5]], [one.score for one in base[:5]])
        some = [one.probability for one in mine[:5]], [one.probability for one in base[:5]]
        np.testing.assert_allclose(*some, rtol=0.02)


def test_a_reranker_that_is_not_trusted_keeps_its_weights_and_gives_no_reasons(distrusted, subtrees, test):
    reranker, _ = distrusted
    assert reranker.weightiest() == subtrees.weightiest()
    for one in reranker.explain(test):
        assert not any(one.scores)
        assert not one.reasons
        assert one.parser_scores == [candidate.score for candidate in one.candidates]


def test_a_reranker_that_is_not_trusted_is_saved_as_such(distrusted, test, tmp_path):
    reranker, _ = distrusted
    reranker.save(tmp_path / "model.tw")
    again = tw.load(tmp_path / "model.tw")
    assert not again.is_trusted_
    assert (again.gain_, again.p_value_) == (reranker.gain_, reranker.p_value_)
    assert again.significance_level == 0
    assert again.predict(test) == reranker.predict(test)


def test_without_a_level_the_reranker_is_trusted_whatever_it_gains(subtrees):
    assert subtrees.is_trusted_


@pytest.mark.parametrize("name", ["gain", "p_value", "is_trusted"])
def test_a_model_that_says_nothing_of_its_gain_is_refused(name, subtrees, tmp_path):
    state = subtrees.get_state()
    del state.values[name]
    save_state(state, tmp_path / "reranker.tw")
    with pytest.raises(
        FormatError, match=f"a corrupt DependencyReranker .'{name}'.; expected an intact model"
    ):
        tw.load(tmp_path / "reranker.tw")


@pytest.mark.slow
def test_an_interrupted_training_ends_as_if_it_had_not_been(parser, train, dev, cache, tmp_path, monkeypatch):
    def train_it(**options):
        reranker = DependencyReranker(parser=parser, **QUICK, **SETTINGS["subtree"])
        return reranker.fit(train, dev, cache=cache, checkpoint=tmp_path / "steps", **options)

    def stop(line):
        if line.startswith("log-linear"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), messages_to(stop):
        train_it()
    assert list((tmp_path / "steps" / "mining").iterdir())
    lines = []
    with messages_to(lines.append):
        resumed = train_it()
    assert not any(line.startswith("mining") for line in lines)
    whole = DependencyReranker(parser=parser, **QUICK, **SETTINGS["subtree"]).fit(train, dev, cache=cache)
    assert resumed.weightiest() == whole.weightiest()


def test_an_empty_sentence_and_one_word_are_no_problem(subtrees):
    one = tw.DepTree(["yes"], upos=["INTJ"], xpos=["UH"])
    empty, single = subtrees.predict([tw.DepTree([]), one])
    assert len(empty) == 0
    assert single.heads.tolist() == [0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"space": "forest"}, "space is 'forest'; expected one of"),
        ({"learner": "deep"}, "learner is 'deep'; expected one of"),
        ({"target": "oracle"}, "target is 'oracle'; expected one of"),
        ({"ranker": "svm"}, "ranker is 'svm'; expected one of"),
        (
            {"space": "template", "learner": "kernel"},
            "learner='kernel' and space='template'; expected space='subtree' or 'polynomial'",
        ),
        ({"folds": 1}, "folds is 1"),
        ({"k": 64}, "k is 64"),
        ({"degree": 0}, "degree is 0"),
        ({"significance_level": 2}, "significance_level is 2; expected a number from 0 to 1"),
        ({"parser": "parser.tw"}, "parser is str; expected a DependencyParser"),
    ],
)
def test_bad_options_are_named(options, message, train):
    with pytest.raises(InputError, match=message):
        DependencyReranker(**options).fit(train)


def test_an_untrained_reranker_says_so(test):
    with pytest.raises(InputError, match="this DependencyReranker is not fitted"):
        DependencyReranker().predict(test)


def test_pairs_of_words_and_tags_are_reranked_as_trees(reranker, test):
    trees = [tw.DepTree(tree.words, upos=tree.upos) for tree in test[:3]]
    pairs = [list(zip(tree.words, tree.upos, strict=True)) for tree in trees]
    assert reranker.tag_column == "upos"
    assert reranker.predict(pairs) == reranker.predict(trees)
    assert reranker.kbest(pairs, 2) == reranker.kbest(trees, 2)
    for found, expected in zip(reranker.marginals(pairs), reranker.marginals(trees), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert len(reranker.explain(pairs)) == 3


@pytest.mark.parametrize("door", ["predict", "kbest", "marginals", "alternatives", "explain", "annotate"])
def test_what_is_no_list_of_tagged_sentences_is_refused(reranker, door):
    for sentences, message in [
        ("The cat", "the sentences are the text 'The cat', but a DependencyReranker reads words"),
        (["The", "cat"], "one sentence was given, ['The', 'cat']; expected a list of sentences: [[...]]"),
        (tw.DepTree(["a"]), "one tree was given, DepTree('a', n=1); expected a list of sentences: [tree]"),
        (None, "the sentences are of type NoneType; expected a list of sentences"),
        ([["The", "cat"]], "sentence 1 has no tags, but this DependencyReranker needs tags"),
    ]:
        with pytest.raises(InputError) as caught:
            getattr(reranker, door)(sentences)
        assert str(caught.value).startswith(message)
