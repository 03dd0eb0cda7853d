"""The ensembles of all labels, grown side by side: what runs are, and how an interrupted one goes on."""

import itertools
from contextlib import suppress

import numpy as np
import pytest

import treewright as tw
from treewright.checkpoint import Checkpoint
from treewright.learn.trees import forest_arrays, join_trees
from treewright.native.learn.boosting import DecisionTree
from treewright.parsing.constituent.training import STEP, Learners

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")
LOWEST = 0.05
N_LOOKS = 3
WARM_UP = 0.1


@pytest.fixture(autouse=True)
def short_warm_up(monkeypatch):
    monkeypatch.setattr("treewright.parsing.constituent.training.WARM_UP", WARM_UP)


@pytest.fixture(scope="module", params=["shift-reduce", "original"])
def training(request):
    trees = tw.make_treebank(n_sentences=8, random_state=0).constituents
    return tw.ConstituentParser(strategy=request.param).make_training(trees)


def make_learners(training, **options):
    chosen = {
        "runs": 1,
        "eta": 0.8,
        "sample_size": 60,
        "min_gain": 0.1,
        "slack": 0.05,
        "prune": True,
        "random_state": 0,
        "n_jobs": 1,
    }
    return Learners(training, **(chosen | {"checkpoint": None} | options))


def learn(training, **options):
    """Go some steps down, with a look after each; the scores are made up."""
    learners = make_learners(training, **options)
    learners.begin(LOWEST)
    while len(learners.history) < N_LOOKS:
        learners.lower(LOWEST)
        learners.look(50.0 + len(learners.history))
    return learners


def as_bytes(learners):
    """Return all trees, and what the learners went through but for the time that took."""
    arrays = [
        array.tobytes() for trees in learners.forests() for array in forest_arrays(join_trees(trees)).values()
    ]
    return arrays, [step._replace(seconds=0) for step in learners.history]


def score(trees, features):
    total = 0.0
    for tree in trees:
        node = 0
        while tree.features[node] >= 0:
            node = (tree.present if tree.features[node] in features else tree.absent)[node]
        total += tree.values[node]
    return total


@pytest.mark.slow
def test_two_runs_are_the_mean_of_two_trainings(training):
    one, other = (learn(training, random_state=random_state).forests() for random_state in (3, 4))
    both = learn(training, runs=2, random_state=3).forests()
    assert [len(each) for each in both] == [len(a) + len(b) for a, b in zip(one, other, strict=True)]
    n_different = 0
    for label in range(training.n_classifiers):
        examples = training.examples(label)
        first, columns = examples.extract(np.arange(min(30, examples.n_examples)))
        for begin, end in itertools.pairwise(first.tolist()):
            features = set(columns[begin:end].tolist())
            scores = [score(each[label], features) for each in (one, other)]
            n_different += scores[0] != scores[1]
            assert score(both[label], features) == pytest.approx(np.mean(scores), abs=1e-12)
    assert n_different > 0


@pytest.mark.slow_cases
def test_sizes_of_a_step_give_its_trees_again(training):
    learners = learn(training, runs=2)
    step = learners.history[0]
    assert len(step.sizes) == 2 * training.n_classifiers
    early = learners.forests(step.sizes)
    assert sum(len(trees) for trees in early) == step.n_trees == sum(step.sizes)
    sizes = np.reshape(step.sizes, (2, -1)).sum(axis=0)
    assert [len(trees) for trees in early] == sizes.tolist()


def test_penalties_fall_by_a_step_from_where_trees_begin_to_tell(training):
    first = make_learners(training).penalty
    history = learn(training).history
    assert all(b.penalty == pytest.approx(a.penalty * STEP) for a, b in itertools.pairwise(history))
    end = WARM_UP * first
    assert end > LOWEST / STEP
    assert end * STEP < history[0].penalty <= end


def test_the_penalty_never_falls_below_the_lowest(training):
    learners = make_learners(training)
    lowest = 0.2 * learners.penalty
    learners.begin(lowest)
    for _ in range(4):
        learners.lower(lowest)
    assert learners.penalty == lowest


def test_what_was_lost_is_that_of_the_last_sample(training):
    learners = learn(training)
    largest = max(learners._all, key=lambda learner: learner.n_examples)
    assert learners.history[-1].lost == [record.lost for record in largest.records if record.lost > 0][-1]
    largest.records.append(largest.records[-1]._replace(lost=0.0))
    learners.look(0.0)
    assert learners.history[-1].lost == learners.history[-2].lost > 0


def test_where_nothing_was_sampled_nothing_was_lost(training):
    assert {step.lost for step in learn(training, sample_size=10**6).history} == {0.0}


@pytest.mark.slow
def test_threads_change_no_tree(training):
    assert as_bytes(learn(training, n_jobs=2)) == as_bytes(learn(training))


class StoppedError(Exception):
    """Stops a training."""


class Frail(Checkpoint):
    """A checkpoint that fails when it is to save for the nth time."""

    def __init__(self, folder, n_saves):
        super().__init__(folder, "name")
        self.left, self.saved = n_saves, []

    def save(self, name, state):
        if len(self.saved) == self.left:
            raise StoppedError
        self.saved.append(name)
        super().save(name, state)


@pytest.mark.slow
def test_training_that_is_killed_at_any_save_ends_with_the_same_trees(training, tmp_path):
    whole = as_bytes(learn(training, runs=2))
    n_learners = 2 * training.n_classifiers
    a_look = n_learners + 1
    # Before anything is kept, before the first look, within it, before its history, after it, and later on.
    for stop in (0, 1, n_learners, 1 + n_learners, 1 + a_look, 1 + a_look + n_learners):
        folder = tmp_path / str(stop)
        with pytest.raises(StoppedError):
            learn(training, runs=2, checkpoint=Frail(folder, stop))
        assert as_bytes(learn(training, runs=2, checkpoint=Frail(folder, 1000))) == whole


@pytest.mark.slow_cases
def test_training_that_is_killed_again_and_again_ends_with_the_same_trees(training, tmp_path):
    whole, saved = as_bytes(learn(training)), []
    for stop in (1, 3, training.n_classifiers, training.n_classifiers + 2):
        kept = Frail(tmp_path / "kept", stop)
        with pytest.raises(StoppedError):
            learn(training, checkpoint=kept)
        saved += kept.saved
    assert saved.count("history") == 1
    assert as_bytes(learn(training, checkpoint=Frail(tmp_path / "kept", 1000))) == whole


@pytest.mark.slow_cases
def test_training_that_is_killed_while_trees_grow_ends_with_the_same_trees(training, tmp_path, monkeypatch):
    whole = as_bytes(learn(training))
    lower = Learners.lower
    for n_steps in (1, 4, 40):
        steps = itertools.count(1)

        def stop(learners, lowest, steps=steps, n_steps=n_steps):
            if next(steps) == n_steps:
                raise StoppedError
            lower(learners, lowest)

        with monkeypatch.context() as patch:
            patch.setattr(Learners, "lower", stop)
            with suppress(StoppedError):
                learn(training, checkpoint=Checkpoint(tmp_path / "kept", "name"))
        assert (tmp_path / "kept" / "start.step").exists()
    assert as_bytes(learn(training, checkpoint=Checkpoint(tmp_path / "kept", "name"))) == whole


def test_a_training_that_is_done_is_not_done_again(training, tmp_path, monkeypatch):
    whole = as_bytes(learn(training, checkpoint=Checkpoint(tmp_path, "name")))
    monkeypatch.setattr(Learners, "lower", lambda *arguments: pytest.fail("grown"))
    assert as_bytes(learn(training, checkpoint=Checkpoint(tmp_path, "name"))) == whole


def test_values_of_one_run_are_those_of_its_trees(training):
    learners = learn(training)
    for trees, learner in zip(learners.forests(), learners._all, strict=True):
        assert all(isinstance(tree, DecisionTree) for tree in trees)
        assert [a.values.tolist() for a in trees] == [b.values.tolist() for b in learner.trees]


def test_splits_that_only_gain_on_the_sample_are_kept_without_pruning(training):
    kept, undone = (learn(training, prune=prune, sample_size=20) for prune in (False, True))
    assert all(learner.prune is False for learner in kept._all)
    assert as_bytes(kept) != as_bytes(undone)
    whole = 100_000
    assert (
        as_bytes(learn(training, prune=False, sample_size=whole))[0]
        == (as_bytes(learn(training, prune=True, sample_size=whole))[0])
    )
