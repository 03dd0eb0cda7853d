"""Finished pieces of experiments."""

import pytest

import treewright as tw
from treewright.errors import InputError
from treewright.progress import messages_to, report
from treewright.report.store import ResultStore, load_parser, make_name

TREES = tw.make_treebank(6, random_state=0).dependencies


class Parser:
    """A parser that can be interrupted."""

    def __init__(self, *, is_interrupted=False):
        self.is_interrupted = is_interrupted

    def fit(self, trees, dev, *, checkpoint):
        checkpoint.mkdir(exist_ok=True)
        report(f"{len(trees)} trees")
        if self.is_interrupted:
            raise KeyboardInterrupt

    def save(self, path):
        path.write_text("a model")


@pytest.fixture
def store(tmp_path):
    return ResultStore(tmp_path / "cache")


def test_names_depend_on_values_and_trees():
    names = {make_name(1), make_name(2), make_name(1, trees=(TREES[:1],)), make_name(1, trees=(TREES[:2],))}
    assert len(names) == 4
    assert make_name(1, trees=(TREES,)) == make_name(1, trees=(TREES,))


def test_values_are_made_once(store, tmp_path):
    made = []

    def make():
        made.append(None)
        return {"uas": 90.5, "words": ["a", None]}

    assert store.find("x", make) == store.find("x", make) == {"uas": 90.5, "words": ["a", None]}
    assert ResultStore(tmp_path / "cache").get("x") == {"uas": 90.5, "words": ["a", None]}
    assert len(made) == 1
    assert store.get("y") is None


def test_nothing_is_kept_of_what_fails(store, tmp_path):
    with pytest.raises(TypeError):
        store.put("x", {"not for JSON": object()})
    assert store.get("x") is None
    assert not list((tmp_path / "cache" / "outcomes").iterdir())


def train(store, told, parser):
    with messages_to(told.append):
        return store.train(
            "p", lambda: parser, lambda: (TREES, None), about="training", facts=lambda parser: {"n": 3}
        )


def test_a_parser_is_trained_once_and_its_time_kept(store):
    told = []
    assert train(store, told, Parser()) == train(store, told, Parser())
    assert told == ["training", "6 trees"]
    kept = store.get("p")
    assert kept["n"] == 3
    assert kept["seconds"] >= 0
    assert not store.unfinished("p").exists()


def test_a_training_that_was_interrupted_has_no_time(store):
    with pytest.raises(KeyboardInterrupt):
        train(store, [], Parser(is_interrupted=True))
    assert store.unfinished("p").exists()
    train(store, [], Parser())
    assert store.get("p") == {"seconds": None, "n": 3}


def test_a_model_of_another_class_is_refused(tmp_path):
    tw.Tagger().fit(TREES).save(tmp_path / "t.tw")
    with pytest.raises(InputError, match=r"t\.tw is a Tagger; expected a DependencyParser$"):
        load_parser(tmp_path / "t.tw", tw.DependencyParser, n_jobs=1)
