import numpy as np
import pytest

import treewright as tw
from treewright.checkpoint import Checkpoint
from treewright.data.files import replacing
from treewright.errors import InputError
from treewright.model import State
from treewright.native.dependency.pruning import choose_arcs, restore_arcs
from treewright.parsing.dependency.pruning import Pruner
from treewright.parsing.dependency.training import ParserTrainer
from treewright.progress import messages_to
from treewright.rerank import jackknife
from treewright.rerank.jackknife import jackknife_lists

OPTIONS = {"order": 1, "epochs": 1, "runs": 1, "table_bits": 14}


@pytest.fixture(scope="module")
def trees():
    return tw.make_treebank(60, random_state=3).dependencies


@pytest.fixture(scope="module")
def lists(trees, tmp_path_factory):
    return jackknife_lists(tw.DependencyParser(**OPTIONS), trees, k=4, folds=3)


def same(one, other):
    return all(
        np.array_equal(a, b)
        for name in ("heads", "scores", "probabilities")
        for a, b in zip(getattr(one, name), getattr(other, name), strict=True)
    )


def test_every_sentence_has_a_list_in_its_place(lists, trees):
    assert [tree.words for tree in lists.trees] == [tree.words for tree in trees]
    assert all(1 <= len(heads) <= 4 for heads in lists.heads)


def test_each_sentence_is_parsed_and_pruned_by_models_that_have_not_seen_it(trees, monkeypatch):
    pruned, learnt, parsed = [], [], []
    learn_fold, learn, structures = (
        Pruner.learn_fold,
        ParserTrainer._learn,
        tw.DependencyParser.structures,
    )

    def spy_on_pruning(self, corpus, mine, **options):
        pruned.append(mine)
        return learn_fold(self, corpus, mine, **options)

    def spy_on_training(self, prepared, dev, held_out):
        learnt.append({tuple(tree.words) for tree in prepared.trees})
        return learn(self, prepared, dev, held_out)

    def spy_on_parsing(self, sentences, k):
        parsed.append(([tuple(tree.words) for tree in sentences], self.decoder_.pruner_))
        return structures(self, sentences, k)

    monkeypatch.setattr(Pruner, "learn_fold", spy_on_pruning)
    monkeypatch.setattr(ParserTrainer, "_learn", spy_on_training)
    monkeypatch.setattr(tw.DependencyParser, "structures", spy_on_parsing)
    jackknife_lists(tw.DependencyParser(**OPTIONS), trees, k=2, folds=3)
    words = [tuple(tree.words) for tree in trees]
    assert sorted(word for mine, _ in parsed for word in mine) == sorted(words)
    assert len({id(pruner) for _, pruner in parsed}) == 3
    for part, rest, (mine, _) in zip(pruned, learnt, parsed, strict=True):
        assert mine == [words[number] for number in part]
        assert rest == set(words) - set(mine)


def test_folds_share_as_many_pruning_models_as_there_are_folds(trees, monkeypatch):
    trained = []
    train = Pruner._train
    monkeypatch.setattr(
        Pruner,
        "_train",
        lambda self, corpus, numbers: (trained.append(numbers), train(self, corpus, numbers))[1],
    )
    jackknife_lists(tw.DependencyParser(**OPTIONS), trees, k=2, folds=4)
    assert len(trained) == 4
    assert sum(len(trees) - len(numbers) for numbers in trained) == len(trees)


def test_training_sentences_of_a_fold_have_the_arcs_of_the_models_of_their_own_folds(trees):
    parts = [np.arange(at, len(trees), 3) for at in range(3)]
    parser = tw.DependencyParser(**OPTIONS)
    shared, pruners = parser.fold_trainer(trees).share_folds(trees, parts)
    corpus = shared.encoder.encode(shared.lifted)
    for part, pruner in zip(parts, pruners, strict=True):
        alone = pruner._room(corpus)
        choose_arcs(pruner.stages_, corpus, part, corpus.heads, alone)
        for number in part:
            n = len(trees[number])
            np.testing.assert_array_equal(
                restore_arcs(shared.arcs, number, n), restore_arcs(alone, number, n)
            )


@pytest.mark.slow
def test_lists_do_not_depend_on_the_number_of_threads(lists, trees):
    assert same(jackknife_lists(tw.DependencyParser(**OPTIONS), trees, k=4, folds=3, n_jobs=2), lists)


def test_kept_lists_are_not_made_again(lists, trees, tmp_path, monkeypatch):
    options = {"k": 4, "folds": 3, "cache": tmp_path}
    assert same(jackknife_lists(tw.DependencyParser(**OPTIONS), trees, **options), lists)
    monkeypatch.setattr(ParserTrainer, "_learn", lambda *args, **kwargs: pytest.fail("trained again"))
    monkeypatch.setattr(Pruner, "_train", lambda *args, **kwargs: pytest.fail("trained again"))
    assert same(jackknife_lists(tw.DependencyParser(**OPTIONS), trees, **options), lists)
    assert not [path for path in tmp_path.rglob("*") if path.is_dir() and path.name.startswith("fold")]
    assert not list(tmp_path.rglob("pruning*"))


def test_an_interrupted_run_goes_on_with_the_folds_that_are_missing(lists, trees, tmp_path, monkeypatch):
    options = {"k": 4, "folds": 3, "cache": tmp_path}
    trained, pruned = [], []
    learn, prune = ParserTrainer._learn, Pruner._train

    def stop_at_the_second(self, *args):
        if len(trained) == 1:
            raise KeyboardInterrupt
        trained.append(self)
        return learn(self, *args)

    monkeypatch.setattr(ParserTrainer, "_learn", stop_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        jackknife_lists(tw.DependencyParser(**OPTIONS), trees, **options)
    monkeypatch.setattr(ParserTrainer, "_learn", lambda self, *a: (trained.append(self), learn(self, *a))[1])
    monkeypatch.setattr(Pruner, "_train", lambda self, *a: (pruned.append(self), prune(self, *a))[1])
    assert same(jackknife_lists(tw.DependencyParser(**OPTIONS), trees, **options), lists)
    assert len(trained) == 3
    assert not pruned


def test_interrupted_pruning_goes_on_with_the_models_that_are_missing(lists, trees, tmp_path, monkeypatch):
    options = {"k": 4, "folds": 3, "cache": tmp_path}
    pruned = []
    prune = Pruner._train

    def stop_at_the_third(self, *args):
        if len(pruned) == 2:
            raise KeyboardInterrupt
        pruned.append(self)
        return prune(self, *args)

    monkeypatch.setattr(Pruner, "_train", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        jackknife_lists(tw.DependencyParser(**OPTIONS), trees, **options)
    monkeypatch.setattr(Pruner, "_train", lambda self, *a: (pruned.append(self), prune(self, *a))[1])
    assert same(jackknife_lists(tw.DependencyParser(**OPTIONS), trees, **options), lists)
    assert len(pruned) == 3


@pytest.mark.slow_cases
@pytest.mark.parametrize("change", [{"k": 5}, {"folds": 4}, {"epochs": 2}, {"parser": {"random_state": 1}}])
def test_other_options_have_other_lists(change, trees, tmp_path):
    def names(**options):
        parser = tw.DependencyParser(**OPTIONS, **options.pop("parser", {}))
        jackknife_lists(parser, trees, cache=tmp_path, **{"k": 2, "folds": 3, **options})
        return {path.name for path in tmp_path.iterdir()}

    before = names()
    assert len(names(**change) - before) == 1


@pytest.mark.slow
def test_predicted_tags_are_those_of_taggers_that_have_not_seen_the_sentence(trees, tmp_path):
    parser = tw.DependencyParser(**OPTIONS, tags="predicted", folds=2)
    options = {"k": 2, "folds": 2, "cache": tmp_path}
    found = jackknife_lists(parser, trees, **options)
    assert [tree.xpos for tree in found.trees] != [tree.xpos for tree in trees]
    again = jackknife_lists(parser, trees, **options)
    assert [tree.xpos for tree in again.trees] == [tree.xpos for tree in found.trees]


def test_too_few_sentences_are_refused(trees):
    with pytest.raises(InputError, match="2 sentences for 3 folds; expected at least one sentence per fold"):
        jackknife_lists(tw.DependencyParser(**OPTIONS), trees[:2], folds=3)


def test_progress_names_the_fold(trees):
    lines = []
    with messages_to(lines.append):
        jackknife.jackknife_lists(tw.DependencyParser(**OPTIONS), trees, k=2, folds=2)
    assert {line.split(":")[0] for line in lines} == {
        "candidate lists",
        "pruning of folds",
        "fold 1",
        "fold 2",
    }


def test_a_fold_that_is_kept_removes_no_step_that_another_training_is_writing(lists, tmp_path):
    kept = jackknife._KeptFolds(Checkpoint(tmp_path, "one"), with_tags=False)
    Checkpoint(tmp_path / "fold0", "one").save("epoch", State("Step"))
    with replacing(tmp_path / "fold0" / "other.step") as stream:
        stream.write(b"other")
        kept.save(0, lists)
    assert sorted(path.name for path in tmp_path.rglob("*.step")) == ["fold0.step", "other.step"]
