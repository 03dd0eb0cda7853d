import numpy as np
import pytest

import treewright as tw
from treewright.errors import InputError, TreewrightError
from treewright.parsing.contract import Batch
from treewright.progress import messages_to

OPTIONS = {"epochs": 3, "runs": 1, "table_bits": 18, "folds": 2}


class KilledError(Exception):
    """Stands for whatever ends a training."""


def fit_until(parser, line, *data, checkpoint):
    """Train until something is told that begins with `line`."""

    def tell(told):
        if told.startswith(line):
            raise KilledError

    with pytest.raises(KilledError), messages_to(tell):
        parser.fit(*data, checkpoint=checkpoint)


@pytest.fixture(scope="module")
def train():
    return tw.make_treebank(250, random_state=0).dependencies


@pytest.fixture(scope="module")
def test():
    return tw.make_treebank(60, random_state=1).dependencies


@pytest.fixture(scope="module")
def parser(train):
    return tw.DependencyParser(**OPTIONS).fit(train[:200], train[200:])


def heads_of(trees):
    return [tree.heads.tolist() for tree in trees]


@pytest.mark.slow_cases
@pytest.mark.parametrize("order", [3, 1, 2])
def test_parsers_of_every_order_learn_a_made_up_language(train, test, order):
    parsed = tw.DependencyParser(order=order, **OPTIONS).fit(train).predict(test)
    score = tw.metrics.attachment(test, parsed)
    assert score.uas > 90
    assert score.las > 88


@pytest.mark.slow
def test_predict_looks_at_neither_heads_nor_relations(parser, test):
    stripped = [tree.with_heads([-1] * len(tree), ["_"] * len(tree)) for tree in test]
    parsed = parser.predict(test)
    assert heads_of(parser.predict(stripped)) == heads_of(parsed)
    assert [tree.deprels for tree in parser.predict(stripped)] == [tree.deprels for tree in parsed]


def test_predict_keeps_everything_but_heads_and_relations(parser, test):
    for tree, parsed in zip(test, parser.predict(test), strict=True):
        assert parsed.with_heads(tree.heads, tree.deprels) == tree


def test_candidates_come_best_first_without_duplicates_and_the_first_is_the_prediction(parser, test):
    predicted = parser.predict(test)
    for first, candidates in zip(predicted, parser.kbest(test, k=6), strict=True):
        scores = [one.score for one in candidates]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(one.tree.heads.tolist()) for one in candidates}) == len(candidates)
        assert candidates[0].tree == first


@pytest.fixture(scope="module")
def spanning(train):
    return tw.DependencyParser(decoder="spanning", order=1, epochs=2, runs=1, table_bits=16).fit(train[:60])


@pytest.mark.parametrize("name", ["parser", "spanning"])
def test_trees_predicted_by_heads_have_the_most_expected_heads_of_all_trees(name, test, request):
    parser = request.getfixturevalue(name).using(predict_by="heads")
    pairs = [list(zip(tree.words, tree.upos, strict=True)) for tree in test[:15]]
    short = [each[at : at + 5] for each in pairs for at in (0, 3)]
    n_other = 0
    for tree, found in zip(short, parser.predict(short), strict=True):
        rows = parser.marginals([tree])[0]
        every = [parser.lifted(each.tree) for each in parser.kbest([tree], k=5000)[0]]
        expected = [rows[np.arange(len(tree)), each.heads].sum() for each in every]
        heads = parser.lifted(found).heads
        assert rows[np.arange(len(tree)), heads].sum() == pytest.approx(max(expected))
        n_other += heads.tolist() != every[0].heads.tolist()
    assert n_other > 0


@pytest.mark.parametrize("name", ["parser", "spanning"])
def test_trees_predicted_by_heads_keep_fixed_heads(name, test, request):
    by_heads = request.getfixturevalue(name).using(predict_by="heads")
    fixed = [{1: len(tree)} for tree in test[:10]]
    found = by_heads.predict(test[:10], fixed=fixed)
    assert [tree.heads[0] for tree in found] == [len(tree) for tree in found]


def test_the_best_tree_is_predicted_where_probabilities_underflow(spanning, test):
    by_heads = spanning.using(predict_by="heads")
    by_heads.scale_ = 1e6
    batch = Batch(test[:10], spanning.encoder_.encode(test[:10]))
    log_sums, _ = spanning.decoder_.marginals(spanning.scorer_, batch, by_heads.scale_)
    assert not np.isfinite(log_sums).all()
    assert heads_of(by_heads.predict(test[:10])) == heads_of(spanning.predict(test[:10]))


def test_long_sentences_are_predicted_by_heads(parser, test):
    by_heads = parser.using(predict_by="heads")
    words = [pair for tree in test[:50] for pair in zip(tree.words, tree.upos, strict=True)]
    (found,) = by_heads.predict([words * 2])
    assert (found.heads == 0).sum() == 1
    assert by_heads.predict([[]]) == parser.predict([[]])


def test_probabilities_of_all_trees_of_a_short_sentence_add_up_to_one(parser):
    sentence = tw.DepTree(["the", "fox", "sang"], xpos=["DT", "NN", "VBD"], upos=["DET", "NOUN", "VERB"])
    (candidates,) = parser.kbest([sentence], k=50)
    assert sum(one.probability for one in candidates) == pytest.approx(1)
    assert len(candidates) <= 7


def test_marginals_are_the_probabilities_of_heads_summed_over_trees(parser):
    sentence = tw.DepTree(["the", "fox", "sang"], xpos=["DT", "NN", "VBD"], upos=["DET", "NOUN", "VERB"])
    (marginals,) = parser.marginals([sentence])
    expected = np.zeros((3, 4))
    for one in parser.kbest([sentence], k=50)[0]:
        expected[np.arange(3), one.tree.heads] += one.probability
    np.testing.assert_allclose(marginals, expected, atol=1e-9)


def test_marginals_of_each_word_add_up_to_one(parser, test):
    for tree, marginals in zip(test, parser.marginals(test), strict=True):
        assert marginals.shape == (len(tree), len(tree) + 1)
        np.testing.assert_allclose(marginals.sum(axis=1), 1, atol=1e-9)


def test_every_tree_has_one_root_where_the_treebank_has(parser, test):
    assert all(tree.n_roots == 1 for tree in parser.predict(test))


def test_a_saved_parser_gives_the_same_trees(parser, test, tmp_path):
    parser.save(tmp_path / "parser.tw")
    again = tw.load(tmp_path / "parser.tw")
    assert again.predict(test) == parser.predict(test)
    again.save(tmp_path / "again.tw")
    assert (tmp_path / "again.tw").read_bytes() == (tmp_path / "parser.tw").read_bytes()
    assert again.scale_ == parser.scale_


@pytest.mark.slow
def test_a_loaded_parser_goes_on_with_the_steps_of_one_that_was_made_new(train, tmp_path):
    options = {**OPTIONS, "order": 1}
    made = tw.DependencyParser(**options).fit(train[:40], checkpoint=tmp_path / "steps")
    made.save(tmp_path / "parser.tw")
    again = tw.load(tmp_path / "parser.tw").with_params().fit(train[:40], checkpoint=tmp_path / "steps")
    assert again.predict(train[:5]) == made.predict(train[:5])


def test_the_same_seed_gives_the_same_parser(train, test):
    one, other = (tw.DependencyParser(order=1, **OPTIONS).fit(train[:60]) for _ in range(2))
    np.testing.assert_array_equal(one.scorer_.weights_, other.scorer_.weights_)
    assert heads_of(one.predict(test)) == heads_of(other.predict(test))


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "more",
    [
        {"order": 2},
        {"order": 1, "tags": "predicted", "jackknife": True},
        {"order": 1, "decoder": "spanning", "folds": 5},
    ],
)
def test_training_goes_on_from_a_checkpoint_to_the_same_parser(train, tmp_path, more):
    checkpoint = tmp_path / "training"
    options = {**OPTIONS, **more, "epochs": 2, "runs": 2}
    whole = tw.DependencyParser(**options).fit(train[:80])
    for line in ("run 1/2, epoch 2/2: ", "run 2/2, epoch 1/2: ", "run 2/2, epoch 2/2: "):
        fit_until(tw.DependencyParser(**options), line, train[:80], checkpoint=checkpoint)
    lines = []
    with messages_to(lines.append):
        resumed = tw.DependencyParser(**options).fit(train[:80], checkpoint=checkpoint)
    assert lines[0].startswith("run 2/2, epoch 2/2: ")  # all before is kept
    for parser, name in ((whole, "whole"), (resumed, "resumed")):
        parser.save(tmp_path / name)
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()


def test_the_mean_of_runs_is_taken(train):
    def weights(**options):
        return tw.DependencyParser(order=1, **{**OPTIONS, **options}).fit(train[:40]).scorer_.weights_

    first, both = weights(runs=1), weights(runs=2)
    second = 2 * both - first
    assert np.abs(second - first).max() > 0.01
    assert np.abs(second).max() < 3 * np.abs(first).max()


@pytest.mark.slow
def test_early_stopping_goes_on_from_a_checkpoint_to_the_same_parser(train, tmp_path):
    checkpoint = tmp_path / "training"
    options = {**OPTIONS, "order": 1, "patience": 1, "epochs": 20}
    data = (train[:60], train[200:])
    whole = tw.DependencyParser(**options).fit(*data)
    for epoch in (2, 3):
        fit_until(tw.DependencyParser(**options), f"epoch {epoch}/20", *data, checkpoint=checkpoint)
    resumed = tw.DependencyParser(**options).fit(*data, checkpoint=checkpoint)
    np.testing.assert_array_equal(resumed.scorer_.weights_, whole.scorer_.weights_)


@pytest.mark.parametrize(
    "change", [{"table_bits": 17}, {"random_state": 1}, {"epochs": 2}, {"n_sentences": 29}]
)
def test_a_checkpoint_of_another_training_is_refused(train, tmp_path, change):
    checkpoint = tmp_path / "training"

    def fit(n_sentences=30, **options):
        options = {"order": 1, "epochs": 1, "runs": 1, "table_bits": 16, "folds": 2} | options
        tw.DependencyParser(**options).fit(train[:n_sentences], checkpoint=checkpoint)

    fit()
    with pytest.raises(InputError, match=r"training is a checkpoint of a run with other data or options"):
        fit(**change)


def test_crossing_arcs_are_lifted_in_training_and_brought_back(test):
    train = tw.make_treebank(400, random_state=2, crossing=0.5).dependencies
    unseen = tw.make_treebank(80, random_state=3, crossing=0.5).dependencies
    parsed = tw.DependencyParser(**OPTIONS).fit(train).predict(unseen)
    assert any(not tw.is_projective(tree) for tree in parsed)
    assert not any("↑" in relation or "↓" in relation for tree in parsed for relation in tree.deprels)
    assert tw.metrics.attachment(unseen, parsed).uas > 85


@pytest.mark.slow
def test_arcs_brought_back_are_as_sure_as_where_they_were_lifted_to():
    train = tw.make_treebank(400, random_state=2, crossing=0.5).dependencies
    unseen = tw.make_treebank(80, random_state=3, crossing=0.5).dependencies
    parser = tw.DependencyParser(**OPTIONS).fit(train)
    parsed = parser.predict(unseen)
    marginals = parser.marginals(unseen)
    found = [parser.confidence(tree, rows) for tree, rows in zip(parsed, marginals, strict=True)]
    crossing = [number for number, tree in enumerate(parsed) if not tw.is_projective(tree)]
    assert crossing
    for number in crossing:
        lifted = tw.projectivize(parsed[number], scheme="path")
        expected = [row[head] for row, head in zip(marginals[number], lifted.heads, strict=True)]
        np.testing.assert_allclose(found[number], expected)


@pytest.mark.slow
def test_any_tree_can_be_found_without_lifting(tmp_path):
    train = tw.make_treebank(300, random_state=2, crossing=0.5).dependencies
    unseen = tw.make_treebank(60, random_state=3, crossing=0.5).dependencies
    parser = tw.DependencyParser(order=1, decoder="spanning", epochs=3, runs=1, table_bits=18).fit(train)
    parsed = parser.predict(unseen)
    assert any(not tw.is_projective(tree) for tree in parsed)
    assert tw.metrics.attachment(unseen, parsed).uas > 80
    candidates = parser.kbest(unseen[:10], k=4)
    assert [one[0].tree for one in candidates] == parsed[:10]
    for tree, marginals in zip(unseen, parser.marginals(unseen), strict=True):
        np.testing.assert_allclose(marginals.sum(axis=1), 1, atol=1e-6)
        assert marginals.shape == (len(tree), len(tree) + 1)
    parser.save(tmp_path / "parser.tw")
    again = tw.load(tmp_path / "parser.tw")
    assert again.predict(unseen) == parsed


@pytest.mark.slow
def test_folds_teach_labels_and_probabilities(train, test):
    lines = []
    with messages_to(lines.append):
        parser = tw.DependencyParser(order=1, jackknife=True, **OPTIONS).fit(train[:100])
    assert "parsed 100 training sentences by cross-validation" in lines
    assert 0.02 < parser.scale_ < 20
    assert tw.metrics.attachment(test, parser.predict(test)).las > 75


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_parsers_of_folds_and_the_models_inside_report_nothing(train, n_jobs):
    lines = []
    options = {**OPTIONS, "order": 1, "tags": "predicted", "jackknife": True, "n_jobs": n_jobs}
    with messages_to(lines.append):
        tw.DependencyParser(**options).fit(train[:40])
    begins = [
        "cross-validated tags",
        "jackknifing: 2 folds",
        "pruning keeps",
        "parsed 40",
        *(f"epoch {n}/3: " for n in (1, 2, 3)),
    ]
    assert len(lines) == len(begins)
    assert all(line.startswith(begin) for line, begin in zip(lines, begins, strict=True))


def test_trees_with_several_roots_are_learnt():
    bank = tw.make_treebank(160, random_state=4).dependencies
    split = [
        tree.with_heads(
            [
                0 if head == 0 or rel == "advmod" else head
                for head, rel in zip(tree.heads, tree.deprels, strict=True)
            ],
            tree.deprels,
        )
        for tree in bank
    ]
    assert any(tree.n_roots > 1 for tree in split)
    parser = tw.DependencyParser(**OPTIONS).fit(split[:120])
    assert parser.recall_ > 97
    parsed = parser.predict(split[120:])
    assert any(tree.n_roots > 1 for tree in parsed)
    assert tw.metrics.attachment(split[120:], parsed).uas > 85


def with_second_root(tree):
    """Hang the last word on the root too, if it governs nothing."""
    heads = tree.heads.copy()
    heads[-1] = 0 if (heads != len(heads)).all() else heads[-1]
    return tree.with_heads(heads, [*tree.deprels[:-1], "root" if heads[-1] == 0 else tree.deprels[-1]])


def test_probabilities_of_trees_with_several_roots_add_up(train):
    split = [with_second_root(tree) for tree in train[:80]]
    parser = tw.DependencyParser(order=1, decoder="spanning", epochs=3, runs=1, table_bits=18).fit(split)
    sentence = tw.DepTree(["fox", "sang", "."], xpos=["NN", "VBD", "."], upos=["NOUN", "VERB", "PUNCT"])
    (candidates,) = parser.kbest([sentence], k=50)
    assert len(candidates) == 16
    assert sum(one.probability for one in candidates) == pytest.approx(1)


def test_roots_are_called_so_whatever_their_tag(parser, test):
    odd = [tree.with_tags(upos=["X"] * len(tree), xpos=["X"] * len(tree)) for tree in test]
    for tree in [*parser.predict(test), *parser.predict(odd)]:
        assert [rel for head, rel in zip(tree.heads, tree.deprels, strict=True) if head == 0] == ["root"]


@pytest.fixture(scope="module")
def own_tags(train):
    """Make a parser that tags."""
    return tw.DependencyParser(order=1, tags="predicted", **OPTIONS).fit(train[:120])


def test_with_predicted_tags_nothing_but_words_is_read(own_tags, test):
    bare = [tw.DepTree(tree.words) for tree in test]
    parsed = own_tags.predict(test)
    from_bare = own_tags.predict(bare)
    assert heads_of(from_bare) == heads_of(parsed)
    for name in ("deprels", "upos", "xpos", "feats", "lemmas"):
        assert [getattr(tree, name) for tree in from_bare] == [getattr(tree, name) for tree in parsed]
    assert tw.metrics.attachment(test, parsed).uas > 80


def test_a_saved_parser_keeps_its_tagger(own_tags, test, tmp_path):
    own_tags.save(tmp_path / "parser.tw")
    again = tw.load(tmp_path / "parser.tw")
    assert [tree.xpos for tree in again.predict(test)] == [tree.xpos for tree in own_tags.predict(test)]


def test_how_well_training_sentences_are_tagged_is_said(train):
    lines = []
    options = {**OPTIONS, "order": 1, "tags": "predicted", "epochs": 1}
    with messages_to(lines.append):
        tw.DependencyParser(**options).fit(train[:40])
    assert lines[0].startswith("cross-validated tags: UPOS ")


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_jobs(train, test):
    one, other = (
        tw.DependencyParser(order=1, tags="predicted", n_jobs=n_jobs, **OPTIONS).fit(train[:60])
        for n_jobs in (1, 3)
    )
    np.testing.assert_array_equal(one.scorer_.weights_, other.scorer_.weights_)
    many = test * 20
    assert one.predict(many) == other.predict(many)


def test_training_can_stop_early_and_keeps_the_best(train):
    lines = []
    options = {**OPTIONS, "order": 1, "epochs": 30, "patience": 2}
    with messages_to(lines.append):
        tw.DependencyParser(**options).fit(train[:60], train[200:])
    epochs = [line for line in lines if line.startswith("epoch")]
    assert len(epochs) < 30
    assert "dev UAS" in epochs[0]


def test_odd_sentences_are_parsed(parser):
    odd = [
        tw.DepTree([]),
        tw.DepTree(["hello"], upos=["INTJ"]),
        tw.DepTree(["\u2603", "\U0001f600", "zz"], xpos=["NEW", "TAG", "."], feats=["A=b|C=d", "_", "_"]),
        tw.DepTree(["w"] * 150, xpos=["NN"] * 150),
    ]
    parsed = parser.predict(odd)
    assert [len(tree) for tree in parsed] == [0, 1, 3, 150]
    assert all((tree.heads >= 0).all() for tree in parsed)
    assert [len(one) for one in parser.kbest(odd[:2], k=3)] == [1, 1]


def test_own_templates_are_used_and_saved(train, tmp_path):
    mine = tw.TemplateSet(arc="h.tag m.tag *\nm.word", triple="t.tag m.tag")
    parser = tw.DependencyParser(templates=mine, **OPTIONS).fit(train[:60])
    parser.save(tmp_path / "parser.tw")
    assert tw.load(tmp_path / "parser.tw").templates == mine


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 4}, "order is 4; expected one of 1, 2, 3"),
        ({"tags": "own"}, "tags is 'own'; expected one of gold, predicted"),
        ({"decoder": "any"}, "decoder is 'any'; expected one of projective, spanning"),
        ({"decoder": "spanning"}, "decoder='spanning' does not work with order=3; expected order=1"),
        ({"patience": 2}, "patience=2 is given without a dev set; expected a dev set for early stopping"),
        ({"jackknife": True, "folds": 1}, "5 sentences and 1 folds; expected at least two of each"),
        ({"table_bits": 18.5}, "table_bits is 18.5; expected an integer from 10 to 28"),
        ({"bound": "x"}, "bound is 'x'; expected a number of at least 0"),
        ({"templates": "h.tag"}, "templates is 'h.tag'; expected a TemplateSet"),
        ({"templates": tw.TemplateSet(arc="h.tag\n*")}, "template '.' has no atom; expected ROLE"),
        ({"n_jobs": 0}, "n_jobs is 0; expected an integer of at least 1"),
        ({"k": 0}, "k is 0; expected an integer of at least 1"),
        ({"pruning_threshold": 2}, "pruning_threshold is 2; expected a number from 0 to 1"),
        ({"lifting": "up"}, "lifting is 'up'; expected one of baseline, head, path, head.path"),
        (
            {"templates": tw.TemplateSet(arc="h.tag x.tag")},
            "template 'h.tag x.tag' has 'x.tag'; expected ROLE.* \\(roles: h, m; offsets",
        ),
    ],
)
def test_bad_options_are_refused(train, options, message):
    with pytest.raises(TreewrightError, match=message):
        tw.DependencyParser(**options).fit(train[:5])


def test_small_treebanks_are_calibrated_on_a_tenth(train):
    lines = []
    with messages_to(lines.append):
        parser = tw.DependencyParser(order=1, **OPTIONS).fit(train[:40])
    assert lines[-1].startswith("probabilities: scale ")
    assert parser.scale_ != 1
    with messages_to(lines.append):
        tw.DependencyParser(order=1, **OPTIONS).fit(train[:9])
    assert lines[-1] == "probabilities: not calibrated, because there are no held-out sentences"


def test_a_parser_that_has_learnt_nothing_says_so(test, tmp_path):
    parser = tw.DependencyParser()
    for use in (parser.predict, parser.kbest, parser.marginals, parser.lattices):
        with pytest.raises(
            InputError, match="this DependencyParser is not fitted; call fit first, or load a fitted one"
        ):
            use(test)
    with pytest.raises(InputError, match="this DependencyParser is not fitted"):
        parser.save(tmp_path / "parser")


def test_words_with_halves_of_surrogate_pairs_can_be_saved(tmp_path):
    odd = [tw.DepTree(["a\ud800", "b"], [2, 0], ["x", "root"])] * 3
    parser = tw.DependencyParser(order=1, **OPTIONS).fit(odd)
    parser.save(tmp_path / "parser")
    assert tw.load(tmp_path / "parser").predict(odd) == parser.predict(odd)


def test_an_empty_dev_set_is_refused(train):
    with pytest.raises(
        InputError, match="the dev set has no words; expected sentences with words, or no dev set"
    ):
        tw.DependencyParser().fit(train[:5], [])


def test_training_without_sentences_is_refused():
    with pytest.raises(InputError, match="no training sentences with words"):
        tw.DependencyParser().fit([tw.DepTree([])])


def test_training_sentences_need_heads():
    with pytest.raises(InputError, match="sentence 1 has words without a head; expected complete trees"):
        tw.DependencyParser().fit([tw.DepTree(["a"])])


def test_a_parser_without_a_tagger_cannot_tag(train, test):
    parser = tw.DependencyParser(order=1, **OPTIONS).fit(train[:30])
    parser.tags = "predicted"
    with pytest.raises(InputError, match="the parser was trained on gold tags and has no tagger"):
        parser.predict(test)


DOORS = ["predict", "kbest", "marginals", "alternatives", "lattices", "annotate"]


def pairs_of(tree, column="upos"):
    return list(zip(tree.words, getattr(tree, column), strict=True))


def test_pairs_of_words_and_tags_are_parsed_as_trees_with_universal_tags(parser, test):
    trees = [tw.DepTree(tree.words, upos=tree.upos) for tree in test[:5]]
    pairs = [pairs_of(tree) for tree in trees]
    assert parser.tag_column == "upos"
    assert parser.predict(pairs) == parser.predict(trees)
    assert parser.kbest(pairs, 3) == parser.kbest(trees, 3)
    for found, expected in zip(parser.marginals(pairs), parser.marginals(trees), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert parser.annotate(iter([trees[0], pairs[1]])) == parser.annotate(trees[:2])


def test_a_parser_with_a_tagger_takes_words(train, test):
    parser = tw.DependencyParser(order=1, tags="predicted", **OPTIONS).fit(train)
    expected = parser.predict([tw.DepTree(tree.words) for tree in test[:5]])
    assert parser.predict([tree.words for tree in test[:5]]) == expected
    assert [
        tree.heads.tolist() for tree in parser.predict([pairs_of(tree) for tree in test[:5]])
    ] == heads_of(expected)
    assert parser.predict([[(word, None) for word in tree.words] for tree in test[:5]]) == expected


def test_tags_of_pairs_are_those_of_the_only_column_in_training(train, test):
    only_xpos = [tree.with_tags(upos=["_"] * len(tree)) for tree in train]
    parser = tw.DependencyParser(order=1, **OPTIONS).fit(only_xpos)
    assert parser.tag_column == "xpos"
    (found,) = parser.predict([pairs_of(test[0], "xpos")])
    assert (found.xpos, set(found.upos)) == (test[0].xpos, {"_"})
    expected = parser.predict([tw.DepTree(test[0].words, xpos=test[0].xpos)])
    assert parser.predict([pairs_of(test[0], "xpos")]) == expected
    only_upos = [tree.with_tags(xpos=["_"] * len(tree)) for tree in train]
    assert tw.DependencyParser(order=1, **OPTIONS).fit(only_upos).tag_column == "upos"


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        (
            "The cat sleeps.",
            "the sentences are the text 'The cat sleeps.', but a DependencyParser reads words",
        ),
        (["The cat."], "sentence 1 is the text 'The cat.', but a DependencyParser reads words"),
        (["The", "cat"], "one sentence was given, ['The', 'cat']; expected a list of sentences: [[...]]"),
        (tw.DepTree(["a"]), "one tree was given, DepTree('a', n=1); expected a list of sentences: [tree]"),
        (
            None,
            "the sentences are of type NoneType; expected a list of sentences, each a tree, a list of words",
        ),
        (
            [["The", "cat"]],
            "sentence 1 has no tags, but this DependencyParser needs tags; expected (word, tag)",
        ),
        ([tw.DepTree(["The", "cat"])], "sentence 1 has no tags, but this DependencyParser needs tags"),
        ([[("The", "DET"), ("cat", None)]], "sentence 1: word 2, 'cat', has no tag, but this"),
        (
            [[("The", "DT"), ("cat", "NN")]],
            "sentence 1 has the tag 'DT', and none of its tags occurred in the training data",
        ),
        ([7], "sentence 1 is of type int; expected a tree, a list of words or a list of (word, tag) pairs"),
    ],
)
def test_what_is_no_list_of_tagged_sentences_is_refused(parser, door, sentences, message):
    with pytest.raises(InputError) as caught:
        getattr(parser, door)(sentences)
    assert str(caught.value).startswith(message)


def test_more_trees_than_fit_into_memory_are_refused(parser, test):
    with pytest.raises(InputError, match=r"^k is 1000000000; expected an integer from 1 to 10000$"):
        parser.kbest(test, k=10**9)


def test_a_treebank_that_is_tagged_in_part_is_parsed(parser, test):
    untagged = tw.DepTree(test[0].words)
    assert len(parser.predict([test[1], untagged])) == 2
