from itertools import chain

import numpy as np
import pytest
from oracle.mining import forests
from oracle.mining import subtrees as twin

from treewright.data.arcs import ArcEncoder
from treewright.data.deptree import DepTree
from treewright.mining import subtree, subtree_counting
from treewright.mining.space import Violations
from treewright.mining.subtree import SubtreeSpace
from treewright.mining.subtree_counting import are_first
from treewright.native.mining.subtrees import GAIN, LOSS, MINUS, N_COLUMNS, PLUS, SIZE, count_basic

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

N_FEATURES = 4
FIGURE = DepTree(
    ["He", "won", "the", "game", "today"], [2, 0, 4, 2, 2], xpos=["PRP", "VBD", "DT", "NN", "NN"]
)
CASES = [(seed, degree, seed % 4, seed % 3 > 0) for seed in range(8) for degree in (1, 2, 3, 4)]


def make_space(lists, features, *, root=True, n_jobs=1):
    """Make a space whose arcs have the features that are given."""
    trees = [DepTree(["a"] * heads.shape[1]) for heads in lists]
    encoder = ArcEncoder.from_trees(trees, column="xpos", templates=["h.tag m.tag"])
    space = SubtreeSpace(trees, lists, encoder=encoder, root=root, n_jobs=n_jobs)
    forest = space.forest
    arcs = zip(forest.owners, forest.heads.tolist(), forest.modifiers.tolist(), strict=True)
    ids = [features[owner][head, modifier] for owner, head, modifier in arcs]
    space.keys = np.arange(N_FEATURES, dtype=np.uint64)
    first = np.cumsum([0, *map(len, ids)], dtype=np.int64)
    space.features = space.features._replace(indptr=first, ids=np.array([*chain(*ids)], dtype=np.int32))
    return space


def draw_pairs(seed, lists):
    """Draw a right and a wrong tree of each list, and twice of the first."""
    rng = np.random.default_rng(seed)
    return [
        (number, *rng.choice(len(lists[number]), size=2, replace=False).tolist())
        for number in [0, *range(len(lists))]
    ]


def draw(seed, root, **options):
    """Draw a space, pairs of its trees, and what the twin knows of these."""
    lists = forests.draw_lists(seed)
    features = forests.draw_features(seed, lists, root, N_FEATURES)
    pairs = draw_pairs(seed, lists)
    samples = [
        (lists[number][right].tolist(), lists[number][wrong].tolist(), features[number])
        for number, right, wrong in pairs
    ]
    return make_space(lists, features, root=root, **options), pairs, samples


def begin(space, pairs, threshold, degree):
    """Begin a search through pairs of trees."""
    rows = [space.indptr[number] + right for number, right, _ in pairs]
    rows += [space.indptr[number] + wrong for number, _, wrong in pairs]
    counters = np.repeat([[0], [1]], len(pairs), axis=0).astype(np.int32)
    violations = Violations(np.array(rows, dtype=np.int64), counters, 2)
    return space.search(violations, float(threshold), degree)


def grow(space, pairs, threshold, degree):
    """Return what each order has."""
    search = begin(space, pairs, threshold, degree)
    growths = [growth for _ in range(degree) for growth in search.grow()]
    search.close()
    return growths


def listing(growths):
    """Return features and counts as they came, with the tallies of each order."""
    return [(each.features.tolist(), each.counts.tolist(), *each[2:]) for each in growths]


def as_gradient(growths):
    """Return the gradient of each feature that was found, each of which is found once."""
    found = [
        (tuple(feature), plus - minus)
        for growth in growths
        for feature, (plus, minus) in zip(growth.features.tolist(), growth.counts.tolist(), strict=True)
    ]
    assert len(found) == len(dict(found))
    return dict(found)


def entering(samples, threshold, degree, root):
    """Return what the twin finds."""
    found = twin.gradient(samples, degree, root)
    return {feature: value for feature, value in found.items() if abs(value) > threshold}


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(("seed", "degree", "threshold", "root"), CASES)
def test_features_above_the_threshold_are_found_with_their_gradient(seed, degree, threshold, root, jobs):
    space, pairs, samples = draw(seed, root, n_jobs=jobs)
    found = as_gradient(grow(space, pairs, threshold, degree))
    assert found == entering(samples, threshold, degree, root)


@pytest.mark.parametrize("degree", [5, 8])
def test_features_of_the_highest_orders_are_found(degree):
    lists = [np.array([[0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 1, 3, 1, 1, 6, 1]], dtype=np.int32)]
    features = [{(head, word): [2] for head in range(9) for word in range(1, 9)}]
    space, samples = make_space(lists, features), [(*lists[0].tolist(), features[0])]
    found = as_gradient(grow(space, [(0, 0, 1)], 0, degree))
    assert found == entering(samples, 0, degree, True)
    assert max(map(len, found)) == degree


@pytest.mark.parametrize(("seed", "degree", "threshold", "root"), CASES)
def test_survivors_are_no_fewer_than_by_local_counts_and_no_more_than_by_all(seed, degree, threshold, root):
    space, pairs, samples = draw(seed, root)
    found = [growth.n_survivors for growth in grow(space, pairs, threshold, degree)]
    fewest = twin.count_survivors(twin.count_local(samples, degree, root), threshold, degree)
    most = twin.count_survivors(twin.count_presence(samples, degree, root), threshold, degree)
    assert (np.array(fewest) <= found).all()
    assert (np.array(found) <= most).all()


@pytest.mark.parametrize(("seed", "degree", "threshold", "root"), CASES)
def test_no_more_candidates_or_instances_are_met_than_there_are(seed, degree, threshold, root):
    space, pairs, samples = draw(seed, root)
    n_all = np.zeros(degree)
    for right, wrong, features in samples:
        both = twin.fragments(right, degree, root) | twin.fragments(wrong, degree, root)
        for fragment in both:
            n_all[len(fragment) - 1] += len(twin.feature_trees(fragment, features))
    different = twin.count_survivors(twin.count_presence(samples, degree, root), 0, degree)
    for growth, n_instances, n_candidates in zip(
        grow(space, pairs, threshold, degree), n_all, different, strict=True
    ):
        assert growth.n_instances <= n_instances
        assert growth.n_survivors <= growth.n_candidates <= n_candidates


@pytest.mark.parametrize(("seed", "degree", "root"), [case[:2] + case[3:] for case in CASES])
def test_basic_features_are_counted_where_they_are_near_a_difference(seed, degree, root):
    space, pairs, samples = draw(seed, root)
    search = begin(space, pairs, 0, degree)
    table = np.zeros((N_FEATURES, N_COLUMNS), dtype=np.int32)
    job, bits = search._job(search._features, N_FEATURES), np.zeros(N_FEATURES, dtype=np.int8)
    count_basic(job, table, bits, np.zeros(N_FEATURES, dtype=np.uint64))
    presence, local = twin.count_presence(samples, 1, root), twin.count_local(samples, degree, root)
    for feature, row in enumerate(table):
        for column, everywhere, near in zip((PLUS, MINUS), presence, local, strict=True):
            assert near[(feature * 8,)] <= row[column] <= everywhere[(feature * 8,)]
        assert row[GAIN] - row[LOSS] == presence[0][(feature * 8,)] - presence[1][(feature * 8,)]
    assert table[:, SIZE].sum() == len(search._features.ids)


@pytest.mark.parametrize(("seed", "degree", "root"), [case[:2] + case[3:] for case in CASES])
def test_what_is_too_far_from_differences_cannot_grow_to_hold_one(seed, degree, root):
    space, pairs, samples = draw(seed, root)
    search = begin(space, pairs, 0, degree)
    forest = search._pairs
    for number, (right, wrong, _) in enumerate(samples):
        span = range(*forest.indptr[number : number + 2])
        distances = {(forest.heads[at], forest.modifiers[at]): search._distances[at] for at in span}
        local = twin.local_fragments(right, wrong, degree, root)
        for fragment in twin.fragments(right, degree, root) & twin.fragments(wrong, degree, root):
            if min(distances[arc] for arc in fragment) > degree - len(fragment):
                assert fragment not in local


@pytest.mark.parametrize("seed", range(4))
def test_arcs_that_only_one_tree_has_are_at_distance_0_and_others_are_not(seed):
    space, pairs, _ = draw(seed, True)
    search = begin(space, pairs, 0, 3)
    assert ((search._distances == 0) == (search._pairs.masks != 3)).all()
    assert (search._distances >= 0).all()


def test_distances_grow_by_one_along_a_chain():
    lists = [np.array([[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 4]], dtype=np.int32)]
    features = forests.draw_features(0, lists, True, N_FEATURES)
    search = begin(make_space(lists, features), [(0, 0, 1)], 0, 4)
    forest, own = search._pairs, search._distances
    distances = {(forest.heads[at], forest.modifiers[at]): int(own[at]) for at in range(len(own))}
    assert [distances[arc] for arc in [(5, 6), (4, 6), (4, 5), (3, 4), (2, 3)]] == [0, 0, 1, 1, 2]
    assert distances[1, 2] == 3
    assert distances[0, 1] >= 4


def test_a_pair_of_neighbours_that_only_one_tree_has_is_a_difference():
    lists = [np.array([[2, 0, 2, 2], [2, 0, 4, 2]], dtype=np.int32)]
    features = [{(0, 2): [0], (2, 1): [1], (2, 3): [], (4, 3): [], (2, 4): [2]}]
    space, samples = make_space(lists, features), [(*lists[0].tolist(), features[0])]
    found = as_gradient(grow(space, [(0, 0, 1)], 0, 3))
    assert found == entering(samples, 0, 3, True)
    assert found == {(8, 16): -1, (0, 9, 17): -1}


@pytest.mark.parametrize("seed", range(4))
def test_two_trees_that_are_the_same_have_nothing_to_find(seed):
    space, _, _ = draw(seed, True)
    growths = grow(space, [(number, 1, 1) for number in range(6)], 0, 3)
    assert as_gradient(growths) == {}
    assert [growth.n_survivors for growth in growths] == [0, 0, 0]


def tell_apart(feature, samples, degree, root):
    """Return the samples where only the right tree has a feature, and those where only the wrong one has."""
    has = [
        [feature in twin.present(heads, features, degree, root) for heads in (right, wrong)]
        for right, wrong, features in samples
    ]
    return tuple(tuple(at for at, each in enumerate(has) if each == side) for side in ([1, 0], [0, 1]))


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_of_features_that_tell_the_same_trees_apart_those_of_low_order_are_kept(seed, copies):
    space, pairs, samples = draw(seed, True)
    plain = as_gradient(grow(space, pairs, 0, 3))
    space.copies = copies
    found = as_gradient(grow(space, pairs, 0, 3))
    assert found.items() <= plain.items()
    groups = {}
    for feature in plain:
        groups.setdefault(tell_apart(feature, samples, 3, True), []).append(feature)
    for group in groups.values():
        kept = sorted(len(feature) for feature in group if feature in found)
        assert kept == sorted(map(len, group))[:copies]
    assert len(groups) < len(plain)


def test_the_first_of_signatures_that_are_alike():
    signatures = np.array([7, 3, 7, 7, 3, 9], dtype=np.uint64)
    assert are_first(signatures, 1).tolist() == [True, True, False, False, False, True]
    assert are_first(signatures, 2).tolist() == [True, True, True, False, True, True]
    assert are_first(signatures[:0], 2).tolist() == []


def test_samples_without_differences_are_not_extended():
    space, pairs, _ = draw(2, True)
    plain = grow(space, pairs, 0, 3)
    other = grow(space, [*((number, 0, 0) for number in range(6)), *pairs], 0, 3)
    assert as_gradient(other) == as_gradient(plain)
    assert [each[2:] for each in other[1:]] == [each[2:] for each in plain[1:]]


def figure_space(templates):
    """Return the space of the tree of figure 1, and of one without arcs, since all of its words are roots."""
    encoder = ArcEncoder.from_trees([FIGURE], column="xpos", templates=templates)
    heads = np.stack([FIGURE.heads, np.zeros(5, dtype=np.int32)])
    return SubtreeSpace([FIGURE], [heads], encoder=encoder, root=False)


def test_figure_1_has_11_subtrees():
    growths = grow(figure_space(["h.word m.word"]), [(0, 0, 1)], 0, 5)
    assert [growth.n_instances for growth in growths] == [4, 3, 3, 1, 0]
    assert [len(growth.features) for growth in growths] == [4, 3, 3, 1, 0]


def test_figure_1_has_60_sub_feature_trees_59_of_them_different():
    growths = grow(figure_space(["h.word m.word", "h.tag m.tag"]), [(0, 0, 1)], 0, 4)
    assert sum(growth.n_instances for growth in growths) == 60
    assert sum(growth.n_candidates for growth in growths) == 59
    assert sum(len(growth.features) for growth in growths) == 59


@pytest.mark.parametrize("seed", range(6))
def test_each_fragment_is_met_once(seed):
    rng = np.random.default_rng(seed)
    heads = forests.draw_tree(rng, 6)
    lists = [np.array([heads, [0] * 6], dtype=np.int32)]
    features = forests.draw_features(seed, lists, False, N_FEATURES)
    growths = grow(make_space(lists, features, root=False), [(0, 0, 1)], 0, 6)
    counts = twin.count_occurrences(heads, features[0], 6, False)
    for order, growth in enumerate(growths, start=1):
        own = {feature: count for feature, count in counts.items() if len(feature) == order}
        assert growth.n_instances == sum(own.values())
        assert growth.n_candidates == growth.n_survivors == len(own)
        assert {tuple(feature) for feature in growth.features.tolist()} == own.keys()


@pytest.mark.parametrize("room", [1, 3, 20])
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("copies", [None, 1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_room_is_made_where_it_is_wanting(seed, copies, room, jobs, monkeypatch):
    space, pairs, _ = draw(seed, True, n_jobs=jobs)
    space.copies = copies
    plain = grow(space, pairs, seed % 2, 4)
    monkeypatch.setattr(subtree_counting, "ROOM", room)
    assert listing(grow(space, pairs, seed % 2, 4)) == listing(plain)


@pytest.mark.parametrize("n_tasks", [1, 2, 1000])
@pytest.mark.parametrize("copies", [None, 1, 3])
def test_results_do_not_depend_on_the_number_of_tasks(copies, n_tasks, monkeypatch):
    space, pairs, _ = draw(1, True, n_jobs=2)
    space.copies = copies
    plain = grow(space, pairs, 0, 3)
    monkeypatch.setattr(subtree, "N_TASKS", n_tasks)
    assert listing(grow(space, pairs, 0, 3)) == listing(plain)


@pytest.mark.parametrize("root", [True, False])
def test_lists_of_no_words_one_tree_or_64_are_searched(root):
    lists = forests.draw_lists(7, [(0, 2), (5, 64), (1, 2), (4, 1)])
    features = forests.draw_features(7, lists, root, N_FEATURES)
    space, pairs = make_space(lists, features, root=root), [(0, 0, 1), (1, 63, 2), (2, 1, 0), (3, 0, 0)]
    samples = [
        (lists[number][right].tolist(), lists[number][wrong].tolist(), features[number])
        for number, right, wrong in pairs
    ]
    assert as_gradient(grow(space, pairs, 0, 3)) == entering(samples, 0, 3, root)


def test_the_last_word_may_be_the_root_of_all_trees():
    lists = [np.array([[3, 3, 0], [2, 3, 0]], dtype=np.int32)]
    features = [{(3, 1): [0], (2, 1): [0], (3, 2): [1]}]
    found = as_gradient(grow(make_space(lists, features, root=False), [(0, 0, 1)], 0, 2))
    assert found == {(0, 8): 1, (8, 1): -1}


@pytest.mark.parametrize("degree", [1, 3])
def test_nothing_grows_from_nothing(degree):
    space, pairs, _ = draw(0, True)
    for growths in (grow(space, [], 0, degree), grow(space, pairs, 99, degree)):
        assert as_gradient(growths) == {}
        assert sum(growth.n_survivors for growth in growths) == 0


@pytest.mark.parametrize("filter_memory", [None, 1 << 10])
@pytest.mark.parametrize(("seed", "degree", "threshold", "root"), CASES)
def test_a_search_of_lists_finds_what_any_choice_of_wrong_trees_can_select(
    seed, degree, threshold, root, filter_memory
):
    lists = forests.draw_lists(seed)
    features = forests.draw_features(seed, lists, root, N_FEATURES)
    space = make_space(lists, features, root=root)
    space.filter_memory = filter_memory
    right = np.random.default_rng(seed).integers(np.diff(space.indptr))
    search = space.search_lists(space.indptr[:-1] + right, float(threshold), degree)
    found = {}
    for _ in range(degree):
        parts = [growth.features for growth in search.grow()]
        for part, signatures in zip(parts, search.signatures, strict=True):
            found.update(zip(map(tuple, part.tolist()), signatures.tolist(), strict=True))
    search.close()
    expected = {}
    for gains, feature, trees in _vary(lists, features, degree, root, right.tolist()):
        own = expected.setdefault(feature, ([0, 0], []))
        own[0][0 if gains else 1] += 1
        own[1].append(trees)
    chosen = {feature: own[1] for feature, own in expected.items() if max(own[0]) > threshold}
    assert found.keys() == chosen.keys()
    for one, other in zip(list(chosen)[:-1], list(chosen)[1:], strict=True):
        assert (found[one] == found[other]) == (chosen[one] == chosen[other])


def _vary(lists, features, degree, root, rights):
    """Yield whether the right tree has it, the feature, and its trees, for what only some trees have."""
    for number, (trees, own, right) in enumerate(zip(lists, features, rights, strict=True)):
        present = [twin.present(heads.tolist(), own, degree, root) for heads in trees]
        for feature in set().union(*present):
            having = tuple(at for at, each in enumerate(present) if feature in each)
            if len(having) < len(present):
                yield right in having, feature, (number, having)
