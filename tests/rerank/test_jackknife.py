import numpy as np
import pytest

import treewright as tw
from treewright.checkpoint import Checkpoint
from treewright.data.files import replacing
from treewright.errors import InputError
from treewright.model import State
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


def test_each_sentence_is_parsed_by_a_parser_that_has_not_seen_it(trees, monkeypatch):
    seen = []

    class Spy(tw.DependencyParser):
        def fit(self, rest, dev=None, **options):
            seen.append((rest, dev))
            return super().fit(rest, dev, **options)

    jackknife_lists(Spy(**OPTIONS), trees, k=2, folds=3)
    assert sum(len(dev) for _, dev in seen) == len(trees)
    for rest, dev in seen:
        assert len(rest) + len(dev) == len(trees)
        assert not {id(tree) for tree in rest} & {id(tree) for tree in dev}


@pytest.mark.slow
def test_lists_do_not_depend_on_the_number_of_threads(lists, trees):
    assert same(jackknife_lists(tw.DependencyParser(**OPTIONS), trees, k=4, folds=3, n_jobs=2), lists)


def test_kept_lists_are_not_made_again(lists, trees, tmp_path, monkeypatch):
    options = {"k": 4, "folds": 3, "cache": tmp_path}
    assert same(jackknife_lists(tw.DependencyParser(**OPTIONS), trees, **options), lists)
    monkeypatch.setattr(tw.DependencyParser, "fit", lambda *args, **kwargs: pytest.fail("trained again"))
    assert same(jackknife_lists(tw.DependencyParser(**OPTIONS), trees, **options), lists)
    assert not [path for path in tmp_path.rglob("*") if path.is_dir() and path.name.startswith("fold")]


def test_an_interrupted_run_goes_on_with_the_folds_that_are_missing(lists, trees, tmp_path, monkeypatch):
    options = {"k": 4, "folds": 3, "cache": tmp_path}
    trained = []
    fit = tw.DependencyParser.fit

    def stop_at_the_second(self, *args, **kwargs):
        if len(trained) == 1:
            raise KeyboardInterrupt
        trained.append(self)
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(tw.DependencyParser, "fit", stop_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        jackknife_lists(tw.DependencyParser(**OPTIONS), trees, **options)
    monkeypatch.setattr(
        tw.DependencyParser, "fit", lambda self, *a, **k: (trained.append(self), fit(self, *a, **k))[1]
    )
    assert same(jackknife_lists(tw.DependencyParser(**OPTIONS), trees, **options), lists)
    assert len(trained) == 3


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
    with pytest.raises(InputError, match="2 sentences for 3 folds; expected a sentence a fold or more"):
        jackknife_lists(tw.DependencyParser(**OPTIONS), trees[:2], folds=3)


def test_progress_names_the_fold(trees):
    lines = []
    with messages_to(lines.append):
        jackknife.jackknife_lists(tw.DependencyParser(**OPTIONS), trees, k=2, folds=2)
    assert {line.split(":")[0] for line in lines} == {"lists of candidates", "fold 1", "fold 2"}


def test_a_fold_that_is_kept_removes_no_step_that_another_training_is_writing(lists, tmp_path):
    kept = jackknife._KeptFolds(Checkpoint(tmp_path, "one"), with_tags=False)
    Checkpoint(tmp_path / "fold0", "one").save("epoch", State("Step"))
    with replacing(tmp_path / "fold0" / "other.step") as stream:
        stream.write(b"other")
        kept.save(0, lists)
    assert sorted(path.name for path in tmp_path.rglob("*.step")) == ["fold0.step", "other.step"]
