import numpy as np
import pytest
from oracle.mining import forests
from oracle.mining import subtrees as twin
from oracle.mining.matching import telling
from scipy.sparse import csr_matrix

from treewright.checkpoint import Checkpoint
from treewright.data.arcs import ArcEncoder
from treewright.data.deptree import DepTree
from treewright.errors import InputError
from treewright.mining import subtree
from treewright.mining.gradient import PAPER_SETTINGS, GradientMiner
from treewright.mining.patterns import Patterns
from treewright.mining.problem import list_problem
from treewright.mining.space import Growth, Violations
from treewright.mining.subtree import SubtreeSpace, name_subtree

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

TEMPLATES = ["h.tag m.tag", "h.word m.tag *", "h.tag b.tag m.tag"]
DEGREE = 3
SEEDS = range(6)
SIZES = [(5, 3)] * 20
WORDS = ["He", "won", "the", "game", "today"]
FIGURE = DepTree(WORDS, [2, 0, 4, 2, 2], xpos=["PRP", "VBD", "DT", "NN", "NN"])


def draw_sentences(random_state, lists):
    """Draw words and tags for lists of trees."""
    rng = np.random.default_rng(random_state)
    return [
        DepTree(rng.choice(["a", "b", "c"], size=n).tolist(), xpos=rng.choice(["X", "Y"], size=n).tolist())
        for n in (heads.shape[1] for heads in lists)
    ]


def draw_space(random_state, *, sizes=None, keys=None, **options):
    """Draw lists of trees over few words and tags; return their space and their heads."""
    lists = forests.draw_lists(random_state, sizes)
    trees = draw_sentences(random_state, lists)
    encoder = ArcEncoder.from_trees(trees, column="xpos", templates=TEMPLATES)
    patterns = None if keys is None else Patterns(keys, [])
    return SubtreeSpace(trees, lists, encoder=encoder, patterns=patterns, **options), lists


def make_problem(random_state, space, lists):
    """Let the tree with the shortest arcs be right in each list, and draw costs and scores."""
    rng = np.random.default_rng(random_state)
    lengths = [np.abs(trees - np.arange(1, trees.shape[1] + 1)).sum(axis=1) for trees in lists]
    right = space.indptr[:-1] + np.array([each.argmin() for each in lengths], dtype=np.int64)
    costs, given = rng.integers(1, 9, size=space.n_rows) / 8, rng.integers(-4, 5, size=space.n_rows) / 8
    return list_problem(space.indptr, right, costs=costs, base_scores=given)


def read_features(space):
    """Return the numbers of the basic features of each arc of each list."""
    forest, features = space.forest, space.features
    found = [{} for _ in range(len(forest.indptr) - 1)]
    for at, owner in enumerate(forest.owners):
        ids = features.ids[features.indptr[at] : features.indptr[at + 1]].tolist()
        found[owner][int(forest.heads[at]), int(forest.modifiers[at])] = ids
    return found


class EverythingSearch:
    """A search that prunes nothing: all sub feature trees of the violating rows are counted one by one."""

    share, n_bytes = 1.0, (0, 0)

    def __init__(self, rows, violations, threshold):
        is_right = violations.counters[:, 0] == 0
        counts = {}
        for right, wrong in zip(violations.rows[is_right], violations.rows[~is_right], strict=True):
            for side, features in enumerate((rows[right] - rows[wrong], rows[wrong] - rows[right])):
                for feature in features:
                    counts.setdefault(feature, [0, 0])[side] += 1
        self.found = {feature: own for feature, own in counts.items() if abs(own[0] - own[1]) > threshold}
        self.order = 0

    def grow(self):
        self.order += 1
        features = [feature for feature in self.found if len(feature) == self.order]
        counts = np.array([self.found[feature] for feature in features], dtype=np.int32).reshape(-1, 2)
        array = np.array(features, dtype=np.int32).reshape(-1, self.order)
        yield Growth(array, counts, len(features), 0, 1)

    def close(self):
        pass


class EverythingSpace:
    """The listed sub feature trees of lists of trees."""

    def __init__(self, lists, features, degree, root):
        self.rows = [
            row
            for trees, own in zip(lists, features, strict=True)
            for row in telling(trees.tolist(), own, degree, root)
        ]
        self.n_rows = len(self.rows)

    def search(self, violations, threshold, degree):
        return EverythingSearch(self.rows, violations, threshold)

    def match(self, features):
        names = [tuple(feature) for each in features for feature in each.tolist()]
        dense = np.array([[name in row for name in names] for row in self.rows], dtype=np.int8)
        return csr_matrix(dense.reshape(self.n_rows, len(names)))


def assert_same(one, other):
    assert list(one.features) == list(other.features)
    for order in one.features:
        assert one.features[order].tolist() == other.features[order].tolist()
    assert one.weights.tolist() == other.weights.tolist()
    assert one.objective == pytest.approx(other.objective, rel=1e-12)


def list_mined(mined):
    return [tuple(feature) for each in mined.features.values() for feature in each.tolist()]


@pytest.mark.slow_cases
@pytest.mark.parametrize("root", [True, False])
@pytest.mark.parametrize(
    "options", [{"path": False}, {"pretrain_order": 1}, PAPER_SETTINGS], ids=["plain", "path", "paper"]
)
@pytest.mark.parametrize("random_state", SEEDS)
def test_features_are_mined_as_without_pruning(random_state, options, root):
    space, lists = draw_space(random_state, root=root, sizes=SIZES)
    miner = GradientMiner(
        degree=DEGREE, threshold=[0.5, 1, 2][random_state % 3], **{**options, "max_iter": 5}
    )
    problem = make_problem(random_state, space, lists)
    mined = miner.fit(space, problem)
    everything = EverythingSpace(lists, read_features(space), DEGREE, root)
    assert_same(mined, miner.fit(everything, problem))
    assert mined.n_selected


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("random_state", SEEDS)
@pytest.mark.parametrize("step", [1.0, "auto"])
def test_features_that_are_found_once_are_mined_as_if_searched_in_each_round(random_state, n_jobs, step):
    options = {**PAPER_SETTINGS, "max_iter": 8, "step": step}
    miner = GradientMiner(degree=DEGREE, threshold=[1, 2][random_state % 2], **options)
    merged, lists = draw_space(random_state, sizes=SIZES, n_jobs=n_jobs)
    searched, _ = draw_space(random_state, sizes=SIZES)
    searched.copies = 1 << 30
    problem = make_problem(random_state, merged, lists)
    one, other = miner.fit(merged, problem), miner.fit(searched, problem)
    assert_same(one, other)
    assert [each[:2] + each[3:-1] for each in one.iterations] == [
        each[:2] + each[3:-1] for each in other.iterations
    ]
    objectives = [each.objective for each in other.iterations]
    assert [each.objective for each in one.iterations] == pytest.approx(objectives, rel=1e-12)
    assert [each.n_violators for each in one.iterations] == [each.n_violators for each in other.iterations]
    assert one.groups is not None
    assert other.groups is None


@pytest.mark.parametrize("random_state", SEEDS)
def test_features_have_the_same_group_if_and_only_if_the_same_trees_have_them(random_state):
    space, lists = draw_space(random_state, sizes=SIZES)
    miner = GradientMiner(degree=DEGREE, threshold=0, **{**PAPER_SETTINGS, "max_iter": 3})
    mined = miner.fit(space, make_problem(random_state, space, lists))
    columns = [column.tobytes() for column in space.match(list(mined.features.values())).T.toarray()]
    orders = np.repeat(list(mined.features), [len(each) for each in mined.features.values()])
    expected = {}
    for group, column, order in zip(mined.groups.tolist(), columns, orders.tolist(), strict=True):
        assert expected.setdefault((order, column), group) == group
    assert len(set(expected.values())) == len(expected) < len(columns)


def test_rounds_with_merged_features_resume_from_a_checkpoint(tmp_path):
    space, lists = draw_space(1, sizes=SIZES)
    problem = make_problem(1, space, lists)
    few, many = (
        GradientMiner(degree=DEGREE, threshold=1, **{**PAPER_SETTINGS, "max_iter": n}) for n in (2, 5)
    )
    checkpoint = Checkpoint(tmp_path, "same")
    few.fit(space, problem, checkpoint=checkpoint)
    assert checkpoint.path("mining").exists()
    resumed = many.fit(space, problem, checkpoint=checkpoint)
    again = many.fit(space, problem, checkpoint=checkpoint)
    assert_same(resumed, again)


@pytest.mark.parametrize("random_state", SEEDS)
def test_threads_do_not_change_the_result(random_state):
    miner = GradientMiner(degree=4, threshold=1, max_iter=4)
    drawn = [draw_space(random_state, sizes=SIZES, n_jobs=n_jobs) for n_jobs in (1, 2)]
    one, other = (miner.fit(space, make_problem(random_state, space, lists)) for space, lists in drawn)
    assert_same(one, other)
    assert one.orders == other.orders


@pytest.mark.slow_cases
@pytest.mark.parametrize("copies", [None, 2])
@pytest.mark.parametrize("options", [{"path": False}, PAPER_SETTINGS], ids=["plain", "paper"])
@pytest.mark.parametrize("random_state", SEEDS)
def test_a_filter_does_not_change_what_is_mined(random_state, options, copies):
    space, lists = draw_space(random_state, sizes=SIZES)
    space.copies = copies
    degree, threshold = 2 + random_state % 3, [0.5, 1, 2][random_state % 3]
    miner = GradientMiner(degree=degree, threshold=threshold, **{**options, "max_iter": 4})
    problem = make_problem(random_state, space, lists)
    plain = miner.fit(space, problem)
    for memory in (64, 1 << 12, 1 << 20):
        space.filter_memory = memory
        filtered = miner.fit(space, problem)
        assert_same(filtered, plain)
        before, after = (sum(each.n_candidates for each in mined.orders) for mined in (plain, filtered))
        assert after < before
    assert plain.n_selected


@pytest.mark.parametrize("copies", [None, 2])
@pytest.mark.parametrize("filter_memory", [None, 1 << 12])
@pytest.mark.parametrize("random_state", SEEDS)
def test_features_that_go_to_disk_are_the_same(random_state, filter_memory, copies, monkeypatch):
    monkeypatch.setattr(subtree, "FOUND_BYTES", 100)
    monkeypatch.setattr(subtree, "FEATURES_AT_ONCE", 7)
    miner = GradientMiner(degree=3, threshold=0.5, max_iter=3, path=False)
    found = []
    for limit in (None, 64 << 20):
        space, lists = draw_space(random_state, sizes=SIZES, memory_limit=limit, filter_memory=filter_memory)
        space.copies = copies
        found.append(miner.fit(space, make_problem(random_state, space, lists)))
    assert_same(*found)
    on_disk = [max(each.n_bytes_on_disk for each in mined.orders) for mined in found]
    assert on_disk[0] == 0 < on_disk[1]


def test_a_limit_to_memory_that_is_too_small_is_refused_with_the_least_that_would_do():
    space, lists = draw_space(0, sizes=SIZES, memory_limit=1 << 21)
    miner, problem = (
        GradientMiner(degree=3, threshold=0, path=False, max_iter=2),
        make_problem(0, space, lists),
    )
    miner.fit(space, problem)
    space.memory.limit = 1 << 14
    with pytest.raises(InputError) as error:
        miner.fit(space, problem)
    assert str(error.value).startswith("memory_limit is 16,384 bytes; ")
    assert str(error.value).endswith(" MiB); use a higher limit or a higher threshold")


def test_basic_features_are_numbered_as_if_sorted_at_once(monkeypatch):
    whole, _ = draw_space(0, sizes=SIZES)
    monkeypatch.setattr(subtree, "KEYS_AT_ONCE", 7)
    blocks, _ = draw_space(0, sizes=SIZES)
    found = whole.keys[whole.features.ids]
    keys, ids = np.unique(found, return_inverse=True)
    assert len(found) > 3 * len(keys) > 21
    for space in (whole, blocks):
        assert space.keys.tolist() == keys.tolist()
        assert space.features.ids.tolist() == ids.tolist()


def test_features_of_more_than_one_arc_are_mined():
    space, lists = draw_space(0, sizes=SIZES)
    mined = GradientMiner(degree=4, threshold=1).fit(space, make_problem(0, space, lists))
    assert max(map(len, list_mined(mined))) > 1


@pytest.mark.parametrize("random_state", SEEDS)
def test_only_basic_features_that_are_named_are_there(random_state):
    whole, lists = draw_space(random_state, sizes=SIZES)
    keys = whole.keys[:: 2 + random_state % 2].copy()
    space, _ = draw_space(random_state, sizes=SIZES, keys=keys)
    numbers = {number: at for at, number in enumerate(range(0, len(whole.keys), 2 + random_state % 2))}
    expected = [
        {arc: [numbers[each] for each in ids if each in numbers] for arc, ids in own.items()}
        for own in read_features(whole)
    ]
    assert read_features(space) == expected
    miner, problem = (
        GradientMiner(degree=DEGREE, threshold=1, max_iter=3),
        make_problem(random_state, space, lists),
    )
    assert_same(miner.fit(space, problem), miner.fit(EverythingSpace(lists, expected, DEGREE, True), problem))


def test_features_are_found_in_other_lists_by_the_same_keys():
    space, _ = draw_space(1)
    lists = forests.draw_lists(2)
    other = SubtreeSpace(
        draw_sentences(2, lists), lists, encoder=space.encoder, patterns=Patterns(space.keys, [])
    )
    rows = [
        row
        for trees, own in zip(lists, read_features(other), strict=True)
        for row in telling(trees.tolist(), own, 2, True)
    ]
    features = sorted(feature for feature in set().union(*rows) if len(feature) == 2)
    found = other.match([np.array(features, dtype=np.int32)]).toarray()
    assert found.tolist() == [[feature in row for feature in features] for row in rows]


@pytest.mark.parametrize("keys", [[], [2**63 + 5]])
def test_without_known_features_nothing_is_mined(keys):
    space, lists = draw_space(3, keys=np.array(keys, dtype=np.uint64))
    mined = GradientMiner(degree=2, threshold=0).fit(space, make_problem(3, space, lists))
    assert mined.n_selected == 0


def test_lists_without_words_or_with_one_tree_are_mined_with_others():
    sizes = [(0, 3), (5, 64), (3, 1), (1, 2), (4, 3), (0, 1)]
    space, lists = draw_space(4, sizes=sizes)
    miner, problem = GradientMiner(degree=2, threshold=0, max_iter=3), make_problem(4, space, lists)
    everything = EverythingSpace(lists, read_features(space), 2, True)
    assert_same(miner.fit(space, problem), miner.fit(everything, problem))


def test_no_lists_have_nothing_to_mine():
    space = SubtreeSpace([], [])
    assert space.n_rows == 0
    assert GradientMiner(degree=3, threshold=0).fit(space, list_problem([0], [])).n_selected == 0


def figure_names(templates):
    """Return the names of all sub feature trees of figure 1, by order."""
    encoder = ArcEncoder.from_trees([FIGURE], column="xpos", templates=templates)
    heads = np.stack([FIGURE.heads, np.zeros(5, dtype=np.int32)])
    space = SubtreeSpace([FIGURE], [heads], encoder=encoder, root=False)
    violations = Violations(np.array([0, 1]), np.array([[0], [1]], dtype=np.int32), 2)
    search = space.search(violations, 0, 4)
    return [sorted(map(space.name, each.features)) for _ in range(4) for each in search.grow()]


def test_names_show_what_is_below_and_beside():
    assert figure_names(["h.word m.word"]) == [
        ["game → the", "won → He", "won → game", "won → today"],
        ["won → He + won → game", "won → game + won → today", "won → game [game → the]"],
        [
            "won → He + won → game + won → today",
            "won → He + won → game [game → the]",
            "won → game [game → the] + won → today",
        ],
        ["won → He + won → game [game → the] + won → today"],
    ]


def test_names_show_tags():
    names = figure_names(["h.tag m.tag"])
    assert names[0] == ["NN → DT", "VBD → NN", "VBD → PRP"]
    assert names[3] == ["VBD → PRP + VBD → NN [NN → DT] + VBD → NN"]


@pytest.mark.parametrize(
    ("depths", "name"),
    [
        ([0], "0"),
        ([0, 1, 2], "0 [1 [2]]"),
        ([0, 0, 0], "0 + 1 + 2"),
        ([0, 1, 2, 0], "0 [1 [2]] + 3"),
        ([0, 1, 2, 1, 1], "0 [1 [2] + 3 + 4]"),
        ([0, 1, 0, 1, 2, 2], "0 [1] + 2 [3 [4 + 5]]"),
    ],
)
def test_brackets_follow_the_depths(depths, name):
    class Numbers:
        def name(self, key):
            return str(key)

    feature = [number * twin.N_DEPTHS + depth for number, depth in enumerate(depths)]
    assert name_subtree(feature, np.arange(8, dtype=np.uint64), Numbers()) == name


TREE = DepTree(["a", "b"])


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ([], "0 lists of heads for 1 sentences; expected one list per sentence"),
        (
            [np.zeros((65, 2), dtype=np.int32)],
            "sentence 1 of 2 words has heads of the shape (65, 2); expected (1 to 64 trees, 2)",
        ),
        (
            [np.zeros((0, 2), dtype=np.int32)],
            "sentence 1 of 2 words has heads of the shape (0, 2); expected (1 to 64 trees, 2)",
        ),
        (
            [np.zeros((4, 3), dtype=np.int32)],
            "sentence 1 of 2 words has heads of the shape (4, 3); expected (1 to 64 trees, 2)",
        ),
        (
            [np.zeros(2, dtype=np.int32)],
            "sentence 1 of 2 words has heads of the shape (2,); expected (1 to 64 trees, 2)",
        ),
    ],
)
def test_bad_lists_are_refused(heads, message):
    with pytest.raises(InputError) as error:
        SubtreeSpace([TREE], heads)
    assert str(error.value) == message


def test_orders_above_8_are_refused():
    space, lists = draw_space(0)
    problem = make_problem(0, space, lists)
    with pytest.raises(InputError) as error:
        GradientMiner(degree=9, threshold=1, path=False).fit(space, problem)
    assert str(error.value) == "degree is 9; expected at most 8"
