import numpy as np
import pytest
from native.mining.test_subtrees import (
    CASES,
    as_gradient,
    begin,
    draw,
    entering,
    grow,
    listing,
)
from oracle.mining import subtree_levels as twin

from treewright.mining import subtree, subtree_counting, subtree_levels
from treewright.mining.subtree_levels import FilteredRoom, _first_level
from treewright.native.mining.subtrees import N_DEPTHS

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

LARGE = 1 << 22
SMALL = 64


@pytest.fixture(autouse=True)
def large_filters(monkeypatch):
    """Let filters be as large as they may be, however few candidates there are."""
    monkeypatch.setattr(subtree_levels, "BYTES_FOR_EACH", 1 << 10)


def found_only(growths):
    """Return features, counts and the number of survivors, without what was met."""
    return [(features, counts, n_survivors) for features, counts, _, _, n_survivors in listing(growths)]


def admitted_by_filter(search, memory, degree):
    """Return the extensions of each feature of the first orders that pass the filter, by feature."""
    list(search.grow())
    job = search._job(search._features, len(search._frequent))
    roots, ends = search._make_roots(job)
    room, level = FilteredRoom(job, None, memory), _first_level(job, roots, ends, (0, job.n_features))
    tallies, found = np.zeros((degree, 3, 2), dtype=np.int64), {}
    for _ in range(degree - 1):
        admitted = room._admit(job, level)
        for number, codes in enumerate(level.codes):
            rows = admitted.rows[admitted.indptr[number] : admitted.indptr[number + 1]]
            added = [(row % job.n_features) * N_DEPTHS + row // job.n_features for row in rows.tolist()]
            parent = as_whole(search, codes.tolist())
            found[parent] = {(*parent, *as_whole(search, [code])) for code in added}
        level = room._extend(job, level, admitted, [], tallies)
    return found


def as_whole(search, codes):
    """Return codes in terms of all basic features."""
    return tuple(int(search._frequent[code // N_DEPTHS]) * N_DEPTHS + code % N_DEPTHS for code in codes)


@pytest.mark.parametrize("memory", [SMALL, LARGE])
@pytest.mark.parametrize(("seed", "degree", "threshold", "root"), [case for case in CASES if case[1] > 1])
def test_extensions_that_are_frequent_pass_and_a_large_filter_lets_no_others_pass(
    seed, degree, threshold, root, memory
):
    space, pairs, samples = draw(seed, root)
    found = admitted_by_filter(begin(space, pairs, threshold, degree), memory, degree)
    kept = {feature for passed in found.values() for feature in passed}
    for feature, passed in found.items():
        local = twin.frequent(twin.count_local_extensions(samples, feature, degree, root), threshold)
        everywhere = twin.frequent(twin.count_extensions(samples, feature, degree, root), threshold)
        # Basic features that are rare are on no arc any more, nor is what has them.
        assert {each for each in local if all_frequent(found, each)} <= passed
        assert memory == SMALL or passed <= everywhere
    assert kept or threshold > 0


def all_frequent(found, feature):
    """Tell whether the last code of a feature is a basic feature that was frequent."""
    return (feature[-1] // N_DEPTHS * N_DEPTHS,) in found


@pytest.mark.parametrize("memory", [SMALL, LARGE])
@pytest.mark.parametrize(("seed", "degree", "threshold", "root"), CASES)
def test_features_are_found_with_their_gradient_through_a_filter(seed, degree, threshold, root, memory):
    space, pairs, samples = draw(seed, root)
    space.filter_memory = memory
    found = as_gradient(grow(space, pairs, threshold, degree))
    assert found == entering(samples, threshold, degree, root)


@pytest.mark.parametrize("copies", [None, 1, 3])
@pytest.mark.parametrize("memory", [SMALL, 1024, LARGE])
@pytest.mark.parametrize("seed", range(6))
def test_a_filter_changes_neither_features_nor_their_order(seed, memory, copies):
    space, pairs, _ = draw(seed, True)
    space.copies = copies
    plain = grow(space, pairs, seed % 2, 4)
    space.filter_memory = memory
    assert found_only(grow(space, pairs, seed % 2, 4)) == found_only(plain)


@pytest.mark.parametrize("memory", [SMALL, LARGE])
@pytest.mark.parametrize(("seed", "degree", "threshold", "root"), CASES)
def test_a_filter_lets_no_more_candidates_be_counted(seed, degree, threshold, root, memory):
    space, pairs, _ = draw(seed, root)
    plain = grow(space, pairs, threshold, degree)
    space.filter_memory = memory
    for before, after in zip(plain[1:], grow(space, pairs, threshold, degree)[1:], strict=True):
        assert after.n_survivors <= after.n_candidates <= before.n_candidates
        assert after.n_instances <= before.n_instances
        if memory == LARGE:
            assert after.n_candidates == after.n_survivors


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("room", [1, 7, 100])
@pytest.mark.parametrize("seed", range(3))
def test_results_do_not_depend_on_the_room_that_is_made_at_first(seed, room, jobs, monkeypatch):
    space, pairs, _ = draw(seed, True, n_jobs=jobs)
    space.filter_memory = 1024
    plain = grow(space, pairs, seed % 2, 4)
    for module in (subtree_counting, subtree_levels):
        monkeypatch.setattr(module, "ROOM", room)
    assert listing(grow(space, pairs, seed % 2, 4)) == listing(plain)


@pytest.mark.parametrize("n_tasks", [1, 3, 1000])
def test_results_do_not_depend_on_the_number_of_tasks(n_tasks, monkeypatch):
    space, pairs, _ = draw(1, True, n_jobs=2)
    space.copies, space.filter_memory = 2, LARGE
    plain = grow(space, pairs, 0, 3)
    monkeypatch.setattr(subtree, "N_TASKS", n_tasks)
    assert found_only(grow(space, pairs, 0, 3)) == found_only(plain)
