"""A network as the scorer of a dependency parser, alone and beside the linear model."""

import dataclasses
import sys

import numpy as np
import pytest

import treewright as tw
from treewright.__main__ import main
from treewright.errors import FormatError, InputError
from treewright.model import load_state, save_state
from treewright.parsing.contract import Batch
from treewright.parsing.dependency.combined import FACTORS, CombinedScorer, most_accurate
from treewright.parsing.dependency.decoders import ProjectiveDecoder
from treewright.progress import messages_to

pytest.importorskip("torch")

SMALL = {"units": 16, "layers": 1, "arc_size": 24, "label_size": 8, "epochs": 15, "learning_rate": 0.01}
LINEAR = {"epochs": 2, "runs": 1, "table_bits": 16, "folds": 2}


@pytest.fixture(scope="module")
def bank():
    return tw.make_treebank(200, random_state=0).dependencies


@pytest.fixture(scope="module")
def alone(bank):
    return tw.DependencyParser(scorer=tw.NeuralScorer(**SMALL)).fit(bank[:150], bank[150:])


@pytest.fixture(scope="module")
def both(bank, alone):
    scorer = alone.scorer_
    return tw.DependencyParser(scorer=scorer, combine="sum", **LINEAR).fit(bank[:150], bank[150:])


@pytest.fixture(params=["alone", "both"])
def parser(request):
    return request.getfixturevalue(request.param)


def same(one, other):
    return [(tree.heads.tolist(), tree.deprels) for tree in one] == [
        (tree.heads.tolist(), tree.deprels) for tree in other
    ]


def test_it_learns(bank, alone):
    score = tw.metrics.attachment(bank[150:], alone.predict(bank[150:]))
    assert score.uas > 60
    assert score.las > 45


def test_both_together_are_at_least_as_good_as_the_network(bank, alone, both):
    found = [tw.metrics.attachment(bank[150:], each.predict(bank[150:])).las for each in (alone, both)]
    assert found[1] > found[0]


def test_the_best_tree_has_the_sum_of_the_scores_of_its_arcs(bank, alone):
    (candidates,) = alone.kbest(bank[150:151], k=5)
    square = alone.scorer_.score_arcs(alone.lifted(candidates[0].tree))
    for candidate in candidates:
        heads = alone.lifted(candidate.tree).heads
        assert candidate.score == pytest.approx(square[heads, np.arange(1, len(heads) + 1)].sum())


def test_probabilities_of_trees_and_arcs_agree(bank, parser):
    sentences = [tree for tree in bank if len(tree) <= 6][:5]
    squares = parser.marginals(sentences)
    assert all(square.sum(axis=1) == pytest.approx(np.ones(len(square))) for square in squares)
    for candidates in parser.kbest(sentences, k=10_000):
        assert sum(each.probability for each in candidates) == pytest.approx(1.0)


def test_fixed_heads_are_kept(bank, parser):
    tree = bank[150]
    word = 1 + int(np.flatnonzero(tree.heads != 0)[0])
    head = next(each for each in range(1, len(tree) + 1) if each not in (word, tree.heads[word - 1]))
    (found,) = parser.predict([tree], fixed=[{word: head}])
    assert found.heads[word - 1] == head


def test_sentences_are_parsed_alike_alone_and_together(bank, parser):
    assert same([parser.predict([tree])[0] for tree in bank[150:170]], parser.predict(bank[150:170]))


def test_a_saved_parser_finds_the_same(bank, parser, tmp_path):
    parser.save(tmp_path / "p.tw")
    loaded = tw.load(tmp_path / "p.tw")
    assert same(loaded.predict(bank[150:]), parser.predict(bank[150:]))


def test_a_fitted_scorer_is_used_as_it_is(alone, both):
    assert isinstance(both.scorer_, CombinedScorer)
    mine, others = alone.scorer_.weights_[0], both.scorer_.other.weights_[0]
    assert all(np.array_equal(mine[name], others[name]) for name in mine)


@pytest.mark.slow
def test_a_network_that_has_learnt_nothing_does_no_harm_to_the_linear_model(bank):
    scorer = tw.NeuralScorer(**{**SMALL, "epochs": 1, "learning_rate": 1e-6})
    parser = tw.DependencyParser(scorer=scorer, combine="sum", **LINEAR).fit(bank[:100], bank[150:])
    linear = tw.DependencyParser(**LINEAR).fit(bank[:100], bank[150:])
    found, expected = (
        tw.metrics.attachment(bank[150:], each.predict(bank[150:])).uas for each in (parser, linear)
    )
    assert found > expected - 2
    assert parser.decoder_.pruner_ is not None


@pytest.mark.slow_cases
@pytest.mark.parametrize("shift", [0.0, 1e-9])
def test_the_linear_model_does_not_prune_if_the_scorer_keeps_as_many_gold_arcs(
    monkeypatch, bank, alone, shift
):
    linear = tw.DependencyParser(**LINEAR).fit(bank[:100], bank[150:])

    def recall(decoder, scorer, batch):
        return 99.0 if decoder.pruner_ is None else 99.0 + shift

    monkeypatch.setattr(ProjectiveDecoder, "pruning_recall", recall)
    parser = linear.with_scorer(alone.scorer_, bank[150:])
    assert (parser.decoder_.pruner_ is None) == (shift == 0)
    assert linear.decoder_.pruner_ is not None


def test_no_other_weight_of_the_network_has_more_correct_heads(bank, both):
    lifted = [both.lifted(tree) for tree in bank[150:]]
    batch = Batch(lifted, both.encoder_.encode(lifted))

    def n_right(scorer):
        (heads,), _ = both.decoder_.best_trees(scorer, batch, 1)
        rows = [batch.corpus.words_of(number) for number in range(len(lifted))]
        return sum(int((heads[own] == tree.heads).sum()) for own, tree in zip(rows, lifted, strict=True))

    start = CombinedScorer(both.scorer_.linear, both.scorer_.other, 3.0)
    found = most_accurate(start, both.decoder_, batch)
    others = [CombinedScorer(start.linear, start.other, 3.0 * factor) for factor in FACTORS]
    assert n_right(found) == max(map(n_right, others))
    assert FACTORS[0] == 1
    assert n_right(found) > min(map(n_right, others)) or found.weight == start.weight


def test_the_recall_of_pruning_is_the_share_of_gold_arcs_in_lattices(bank, both):
    lifted = [both.lifted(tree) for tree in bank[150:]]
    batch = Batch(lifted, both.encoder_.encode(lifted))
    lattices = both.decoder_.lattices(both.scorer_, batch)
    kept = [
        [head, word] in lattice.words("arc").tolist()
        for tree, lattice in zip(lifted, lattices, strict=True)
        for word, head in enumerate(tree.heads.tolist(), start=1)
    ]
    assert both.decoder_.pruning_recall(both.scorer_, batch) == pytest.approx(100 * np.mean(kept))


def test_relations_that_the_network_does_not_know_can_be_learnt(bank, alone):
    renamed = [
        tree.with_heads(tree.heads, [each.replace("advmod", "adv") for each in tree.deprels]) for tree in bank
    ]
    parser = tw.DependencyParser(scorer=alone.scorer_, combine="sum", **LINEAR).fit(renamed[:150])
    assert any("adv" in tree.deprels for tree in parser.predict(renamed[150:]))


def test_a_combined_score_is_the_weighted_sum(bank, both):
    (lattice,) = both.lattices(bank[150:151])
    tree = both.scorer_
    linear = tree.linear.score(bank[150], lattice)
    other = tree.other.score(bank[150], lattice)
    for kind, scores in lattice.scores.items():
        assert scores == pytest.approx(linear[kind] + tree.weight * other.get(kind, 0.0))


@pytest.mark.slow
def test_the_linear_model_learns_on_top_of_the_network(bank):
    scorer = tw.NeuralScorer(**{**SMALL, "epochs": 4})
    told = []
    with messages_to(told.append):
        parser = tw.DependencyParser(scorer=scorer, combine="joint", **LINEAR).fit(bank[:60], bank[150:])
    assert sum(text.startswith("fold 1/2: network, epoch") for text in told) == 4
    score = tw.metrics.attachment(bank[150:], parser.predict(bank[150:]))
    alone = tw.DependencyParser(scorer=parser.scorer_.other).fit(bank[:60], bank[150:])
    assert score.uas > tw.metrics.attachment(bank[150:], alone.predict(bank[150:])).uas


def test_a_scorer_without_scores_of_arcs_cannot_be_learnt_on_top_of(bank):
    class Flat(tw.PartScorer):
        def score(self, tree, parts):
            return {}

    with pytest.raises(InputError, match="a scorer without arc scores; expected combine='sum'"):
        tw.DependencyParser(scorer=Flat(), combine="joint").fit(bank[:20])


def test_the_linear_share_is_explained(bank, alone, both):
    assert both.has_arc_reasons
    assert not alone.has_arc_reasons
    (arcs,) = both.arc_reasons(both.predict(bank[150:151]), n=3)
    assert all(len(features) == 3 for features in arcs)


def test_an_explanation_has_the_contribution_of_the_network_and_adds_up(bank, both):
    for comparison in both.explain(bank[150:155]):
        best, second, *_ = comparison.parser_scores
        assert sum(reason.weight for reason in comparison.reasons) == pytest.approx(best - second)
        (share,) = (reason for reason in comparison.reasons if reason.text == "score of the neural network")
        assert share.rank == (1 if share.weight > 0 else 2)


def test_any_trees_are_found_by_the_other_decoder(bank, alone):
    parser = tw.DependencyParser(scorer=alone.scorer_, decoder="spanning", order=1).fit(bank[:150])
    score = tw.metrics.attachment(bank[150:], parser.predict(bank[150:]))
    assert score.uas > 50
    assert parser.marginals(bank[150:151])[0].sum(axis=1) == pytest.approx(np.ones(len(bank[150])))


def test_siblings_and_grandchildren_are_learnt_too(bank, tmp_path):
    scorer = tw.NeuralScorer(**{**SMALL, "epochs": 4}, second_order=True, part_size=6)
    parser = tw.DependencyParser(scorer=scorer).fit(bank[:60], bank[150:160])
    (lattice,) = parser.lattices(bank[150:151])
    assert np.abs(lattice.scores["pair"]).max() > 0
    assert np.abs(lattice.scores["grandchild"]).max() > 0
    assert not lattice.scores["triple"].any()
    parser.save(tmp_path / "p.tw")
    assert same(tw.load(tmp_path / "p.tw").predict(bank[150:]), parser.predict(bank[150:]))


def test_several_networks_are_averaged(bank):
    scorer = tw.NeuralScorer(**{**SMALL, "epochs": 2}, networks=2)
    scorer.start(bank[:30])
    batch = Batch(bank[30:33], None)
    ready = scorer.prepare(batch)
    for tree in batch.trees:
        arcs = np.mean([one.arcs for one in ready._sentences(tree)], axis=0)
        found = scorer.score_arcs(tree)
        shift = (found - arcs)[0, 1:]
        assert found[0, 1:] - shift == pytest.approx(arcs[0, 1:], abs=1e-5)
        assert np.exp(found[:, 1:]).sum(axis=0) - 1 == pytest.approx(np.ones(len(tree)), abs=1e-6)


@pytest.mark.parametrize("option", ["--vectors", "--encoder"])
def test_a_file_that_is_missing_leaves_no_checkpoint(fail, bank, tmp_path, option):
    tw.write_conllu(bank[:20], tmp_path / "train.conllu")
    command = ["train", "dependency", tmp_path / "train.conllu", "--model", tmp_path / "n.tw"]
    told = fail(*command, "--scorer", "neural", option, tmp_path / "missing")
    assert told.startswith(f"treewright: {tmp_path / 'missing'}: ")
    assert [path.name for path in tmp_path.iterdir()] == ["train.conllu"]


def test_combining_needs_a_scorer(bank):
    with pytest.raises(InputError, match="combine='sum' is given without a scorer"):
        tw.DependencyParser(combine="sum").fit(bank[:20])


@pytest.mark.parametrize("change", ["shape", "missing", "labels", "huge"])
def test_a_file_with_other_weights_is_refused(alone, tmp_path, change):
    path = tmp_path / "p.tw"
    alone.save(path)
    state = load_state(path)
    scorer = state.parts["scorer_"]
    key = next(name for name in scorer.arrays if name.endswith("arc_bias"))
    if change == "shape":
        scorer.arrays[key] = scorer.arrays[key][:-1].copy()
    elif change == "missing":
        del scorer.arrays[key]
    elif change == "labels":
        scorer.values["labels"] = scorer.values["labels"][:-1]
    else:
        scorer.arrays[key] = np.full_like(scorer.arrays[key], np.inf)
    save_state(dataclasses.replace(state), path)
    with pytest.raises(FormatError, match="a corrupt DependencyParser"):
        tw.load(path)


def test_the_command_line_trains_a_network(fail, monkeypatch, bank, tmp_path):
    for name, part in (("train", bank[:60]), ("dev", bank[60:80])):
        tw.write_conllu(part, tmp_path / f"{name}.conllu")
    sizes = ["--units", "8", "--layers", "1", "--arc-size", "8", "--label-size", "4", "--network-epochs", "2"]
    command = ["train", "dependency", str(tmp_path / "train.conllu"), "--dev", str(tmp_path / "dev.conllu")]
    command += ["--model", str(tmp_path / "n.tw")]
    assert "--units has no effect without --scorer neural" in fail(*command, "--units", "8")
    monkeypatch.setattr(sys, "argv", ["treewright", *command, "--scorer", "neural", *sizes])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert tw.load(tmp_path / "n.tw").scorer_.units == 8


def test_a_trained_network_is_added_to_a_trained_parser(bank, alone, both):
    linear = tw.DependencyParser(**LINEAR).fit(bank[:150], bank[150:])
    found = linear.with_scorer(alone.scorer_, bank[150:])
    assert same(found.predict(bank[150:]), both.predict(bank[150:]))
    assert found.scale_ == both.scale_
    assert linear.linear_scorer is linear.scorer_  # as it was


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda bank, alone: (alone, tw.NeuralScorer(), bank), "expected a fitted PartScorer"),
        (lambda bank, alone: (alone, alone.scorer_, bank), "expected a parser with a linear model"),
        (lambda bank, alone: (alone, alone.scorer_, []), "expected"),
    ],
)
def test_what_cannot_be_added_is_refused(bank, alone, change, message):
    parser, scorer, dev = change(bank[150:], alone)
    with pytest.raises(InputError, match=message):
        parser.with_scorer(scorer, dev)


def test_the_temperature_makes_heads_of_other_sentences_most_probable(bank, alone):
    scorer = alone.scorer_
    batch = Batch(bank[150:], alone.encoder_.encode(bank[150:]))
    words = [np.arange(1, len(tree) + 1) for tree in bank[150:]]

    def loss(temperature):
        found = scorer.with_params()
        for name in ("inputs_", "labels_", "fits_", "weights_"):
            setattr(found, name, getattr(scorer, name))
        found.temperature_ = temperature
        found.restore()
        ready = found.prepare(batch)
        pairs = zip(bank[150:], words, strict=True)
        return -sum(ready.score_arcs(tree)[tree.heads, each].sum() for tree, each in pairs)

    best = loss(scorer.temperature_)
    assert best < loss(0.8 * scorer.temperature_)
    assert best < loss(1.25 * scorer.temperature_)


def test_only_words_under_the_root_are_roots(bank):
    scorer = tw.NeuralScorer(**{**SMALL, "epochs": 1, "learning_rate": 1e-6})
    scorer.start(bank[:40])
    names = np.array(scorer.relations)
    for tree in bank[150:160]:
        (scores,) = scorer.score_relations([tree], [tree.heads])
        np.testing.assert_allclose(np.exp(scores).sum(axis=1), 1)
        assert ((names[scores.argmax(axis=1)] == "root") == (tree.heads == 0)).all()


def test_order_follows_the_parts_that_are_scored():
    scorer = tw.NeuralScorer()
    assert scorer.order == 1
    assert scorer.set_params(second_order=True).order == 2


@pytest.mark.parametrize(
    ("params", "scorer", "message"),
    [
        ({"epochs": 3}, {}, "epochs=3 has no effect on a scorer that trains itself"),
        (
            {"decoder": "spanning"},
            {"second_order": True},
            "of order 2; expected a scorer of order 1",
        ),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(bank, params, scorer, message):
    with pytest.raises(InputError, match=message):
        tw.DependencyParser(scorer=tw.NeuralScorer(**SMALL, **scorer), **params).fit(bank[:10])


def test_without_a_dev_set_sentences_put_aside_choose_the_epoch(bank):
    told = []
    with messages_to(told.append):
        tw.DependencyParser(scorer=tw.NeuralScorer(**{**SMALL, "epochs": 2})).fit(bank[:60])
    assert any("dev UAS" in text for text in told)


def test_a_compact_file_is_smaller_and_scores_are_nearly_the_same(bank, tmp_path):
    scorer = tw.NeuralScorer(**{**SMALL, "units": 64, "arc_size": 64})
    scorer.start(bank[:100])
    sizes, found = {}, {}
    for compact in (False, True):
        path = tmp_path / f"{compact}.network"
        scorer.save(path, compact=compact)
        sizes[compact], found[compact] = path.stat().st_size, tw.load(path)
    assert sizes[True] < 0.75 * sizes[False]
    heads = [
        np.concatenate([each.score_arcs(tree)[:, 1:].argmax(axis=0) for tree in bank[150:]])
        for each in found.values()
    ]
    assert (heads[0] == heads[1]).mean() > 0.9
    found[True].save(tmp_path / "again", compact=True)
    assert tw.load(tmp_path / "again").score_arcs(bank[150]).shape == (len(bank[150]) + 1,) * 2


def test_units_of_another_size_are_refused(alone, tmp_path):
    alone.scorer_.save(tmp_path / "model", compact=True)
    state = load_state(tmp_path / "model")
    name = next(each for each in state.arrays if each.endswith(":units"))
    state.arrays[name] = state.arrays[name][:-1]
    save_state(state, tmp_path / "damaged")
    with pytest.raises(FormatError, match="a unit for each row"):
        tw.load(tmp_path / "damaged")
