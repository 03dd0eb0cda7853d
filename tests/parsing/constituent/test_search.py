"""Best-first search, compared with listing all parses."""

import numpy as np
import pytest
from oracle.constituent import agenda as twin
from oracle.constituent import atoms
from oracle.constituent import states as cuts
from strategies import as_flat

from treewright.data.heads import RULES
from treewright.native.constituent.agenda import InferenceModel
from treewright.native.constituent.states import Grammar
from treewright.parsing.constituent.atoms import read_atoms
from treewright.parsing.constituent.ensembles import index_trees
from treewright.parsing.constituent.inferences import PredicateEncoder, Symbols, TaggedSentence
from treewright.parsing.constituent.search import Searcher

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")
TABLE = """
child 1          label word
last-child 1     label
left 1           label
right 1          label tag inner
word-after 1     word
end              tag
children         label
all-left         label
n-children
n-left
head             label word
others           label
words-of-others  word
"""
TAGS = ["CC", "NN", "VBD"]


class Problem:
    """A model of random trees, and the same as dictionaries and nested tuples."""

    def __init__(self, random_state, *, labels=("NP",), is_shifting=True, max_children=5, known=1.0):
        self.rng = np.random.default_rng(random_state)
        self.encoder = PredicateEncoder(Symbols(["TOP", *labels], TAGS, TAGS, ["a", "b"]))
        table = read_atoms(TABLE, self.encoder.sizes())
        n_labels, names = self.encoder.n_labels, self.encoder.symbol_names
        self.nested = [
            [self._draw_tree(table.n_features) for _ in range(6)] for _ in range(n_labels + is_shifting)
        ]
        tables = [self.rng.random((n_labels, len(names))) < known for _ in range(3)]
        grammar = Grammar(*tables, max_children)
        index, ensembles = index_trees(
            [[as_flat(tree) for tree in each] for each in self.nested], table.n_features
        )
        heads = self.encoder.make_heads("collins")
        self.model = InferenceModel(table.arrays, heads, grammar, index, ensembles)
        known_pairs = ({(int(a), int(b)) for a, b in np.argwhere(each)} for each in tables)
        self.rules = cuts.Rules(n_labels, max_children, *known_pairs, is_shifting)

    def _draw_tree(self, n_features, depth=0):
        if self.rng.random() < 0.25 * depth:
            return float(self.rng.normal())
        below = (self._draw_tree(n_features, depth + 1) for _ in range(2))
        return (int(self.rng.integers(n_features)), *below)

    def find_head(self, label, symbols):
        names = self.encoder.symbol_names
        return RULES["collins"].head_child(names[label], [names[each] for each in symbols])

    def cost_of(self, state, inference):
        begin, size, label = inference
        symbols = [item.values["label"] for item in state.frontier[begin : begin + size]]
        head = self.find_head(label, symbols) if size else 0
        features = atoms.features(TABLE, self.encoder.sizes(), state, begin, size, head)
        return twin.loss(twin.score(self.nested[label], features))

    def draw_sentence(self, n_words):
        words = self.rng.choice(["a", "b", "c"], n_words).tolist()
        end = ("b", "CC") if self.rng.random() < 0.5 else None
        return self.encoder.encode(TaggedSentence(words, self.rng.choice(TAGS, n_words).tolist(), end))

    def list_parses(self, rows):
        """Return costs and inferences, shifts left out, the cheapest first."""
        found = twin.list_parses(cuts.initial(rows), self.rules, self.find_head, self.cost_of)
        return sorted((cost, [tuple(each) for each in path if each.size]) for cost, path in found)

    def knows_end_of(self, rows, actions):
        """Tell whether the last of some inferences is considered where it is made."""
        state = cuts.initial(rows)
        for action in actions[:-1]:
            state = cuts.apply(state, cuts.Inference(*action), self.find_head)
        last = cuts.Inference(*actions[-1])
        return cuts.is_considered(state._replace(focus=0), last, self.rules)

    def forget_top(self):
        """Let the top be known over nothing."""
        for table in self.model.grammar[:3]:
            table[0] = False
        known = ({(label, symbol) for label, symbol in each if label} for each in self.rules[2:5])
        self.rules = cuts.Rules(*self.rules[:2], *known, self.rules.is_shifting)

    def search(self, rows, *, k=1, max_inferences=1_000_000):
        searcher = Searcher(self.model, is_shifting=self.rules.is_shifting, max_inferences=max_inferences)
        return searcher.find(rows, k=k)


def check(problem, rows, k):
    expected = problem.list_parses(rows)
    outcome = problem.search(rows, k=k)
    assert outcome.is_exact
    cost_of = {tuple(path): cost for cost, path in expected}
    costs = [found.cost for found in outcome.parses]
    np.testing.assert_allclose(costs, [cost for cost, _ in expected[:k]], rtol=1e-9)
    # Of parses that cost the same, any may come first.
    np.testing.assert_allclose(costs, [cost_of[tuple(found.actions)] for found in outcome.parses], rtol=1e-9)
    assert len({tuple(found.actions) for found in outcome.parses}) == len(costs)


strategies = pytest.mark.parametrize("is_shifting", [True, False])


@pytest.mark.slow_cases
@strategies
@pytest.mark.parametrize(("labels", "n_words"), [(["NP"], 1), (["NP"], 3), (["NP"], 4), (["NP", "VP"], 2)])
def test_the_best_parse_is_that_of_all_parses(is_shifting, labels, n_words):
    for random_state in range(4):
        problem = Problem(random_state, labels=labels, is_shifting=is_shifting)
        check(problem, problem.draw_sentence(n_words), k=1)


@pytest.mark.slow
@strategies
def test_the_best_parse_of_five_words_is_that_of_all_parses(is_shifting):
    problem = Problem(9, is_shifting=is_shifting, known=0.9)
    rows = problem.draw_sentence(5)
    assert len(problem.list_parses(rows)) > 100
    check(problem, rows, k=1)


@strategies
def test_the_best_parses_are_those_of_all_parses(is_shifting):
    for random_state, k in ((0, 2), (1, 7), (2, 30), (3, 10_000)):
        problem = Problem(random_state, labels=["NP"], is_shifting=is_shifting)
        check(problem, problem.draw_sentence(3 if k > 100 else 4), k=k)


@pytest.mark.slow_cases
@strategies
def test_what_is_known_of_labels_keeps_parses_out(is_shifting):
    n_found = []
    for random_state in range(5):
        problem = Problem(random_state, labels=["NP", "S", "VP"], is_shifting=is_shifting, known=0.4)
        rows = problem.draw_sentence(3)
        check(problem, rows, k=5)
        n_found.append(len(problem.list_parses(rows)))
    assert 5 * min(n_found) < max(n_found)


@pytest.mark.slow_cases
@strategies
def test_only_the_top_has_more_children_than_are_allowed(is_shifting):
    for random_state in range(3):
        problem = Problem(random_state, is_shifting=is_shifting, max_children=2)
        rows = problem.draw_sentence(4)
        check(problem, rows, k=400)
        sizes = {
            (size, label) for found in problem.search(rows, k=400).parses for _, size, label in found.actions
        }
        assert {size for size, label in sizes if label} == {1, 2}
        assert (4, 0) in sizes


@strategies
def test_every_label_can_be_found(is_shifting):
    problem = Problem(0, labels=["NP", "VP"], is_shifting=is_shifting)
    found = problem.search(problem.draw_sentence(2), k=1000).parses
    assert {label for each in found for _, _, label in each.actions} == {0, 1, 2}


@strategies
def test_no_parse_has_a_label_twice_over_the_same_words(is_shifting):
    problem = Problem(1, labels=["NP", "VP"], is_shifting=is_shifting)
    for found in problem.search(problem.draw_sentence(3), k=500).parses:
        spans = [(start, start + 1) for start in range(3)]
        seen = set()
        for begin, size, label in found.actions:
            spans[begin : begin + size] = [(spans[begin][0], spans[begin + size - 1][1])]
            assert (spans[begin], label) not in seen
            seen.add((spans[begin], label))


def test_starts_of_items_never_grow():
    problem = Problem(2, is_shifting=False)
    for found in problem.search(problem.draw_sentence(5), k=300).parses:
        begins = [begin for begin, _, _ in found.actions]
        assert begins == sorted(begins, reverse=True)


@strategies
def test_a_search_that_ends_early_says_so_and_has_a_whole_parse(is_shifting):
    are_exact = []
    for random_state in range(10):
        problem = Problem(random_state, labels=["NP", "VP"], is_shifting=is_shifting)
        rows = problem.draw_sentence(6)
        outcome = problem.search(rows, max_inferences=1)
        are_exact.append(outcome.is_exact)
        (found,) = outcome.parses
        assert np.isfinite(found.cost)
        assert 6 - sum(size - 1 for _, size, _ in found.actions) == 1
        assert found.actions[-1][2] == 0
        if outcome.is_exact:
            assert found == problem.search(rows).parses[0]
    assert are_exact.count(False) >= 3


@strategies
def test_room_that_is_used_again_changes_no_parse(is_shifting):
    problem = Problem(3, labels=["NP", "VP"], is_shifting=is_shifting)
    searcher = Searcher(problem.model, is_shifting=is_shifting, max_inferences=5000)
    for n_words in (5, 2, 7, 1, 5):
        rows = problem.draw_sentence(n_words)
        assert searcher.find(rows, k=3) == problem.search(rows, k=3, max_inferences=5000)


@strategies
def test_where_no_label_is_known_all_goes_under_the_top(is_shifting):
    for random_state in range(4):
        problem = Problem(random_state, is_shifting=is_shifting, known=0.0)
        rows = problem.draw_sentence(3)
        (found,) = problem.search(rows, k=5).parses
        assert found.actions == [(0, 3, 0)]
        check(problem, rows, k=5)


@strategies
@pytest.mark.parametrize("known", [0.1, 0.25])
def test_every_way_ends_and_costs_what_its_inferences_do(is_shifting, known):
    n_ends = 0
    for random_state in range(8):
        problem = Problem(
            random_state, labels=["NP", "S"], is_shifting=is_shifting, known=known, max_children=3
        )
        rows = problem.draw_sentence(4)
        check(problem, rows, k=50)
        for found in problem.search(rows, k=50).parses:
            assert np.isfinite(found.cost)
            assert 4 - sum(size - 1 for _, size, _ in found.actions) == 1
            assert found.actions[-1][0] == found.actions[-1][2] == 0
            n_ends += not problem.knows_end_of(rows, found.actions)
    assert n_ends > 3


@strategies
def test_where_the_top_is_known_over_nothing_every_parse_still_ends_in_it(is_shifting):
    for random_state in range(3):
        problem = Problem(random_state, is_shifting=is_shifting)
        problem.forget_top()
        check(problem, problem.draw_sentence(3), k=20)


@strategies
def test_where_there_is_no_room_the_state_with_the_fewest_items_goes_under_the_top(is_shifting, monkeypatch):
    monkeypatch.setattr(Searcher, "_count_states", lambda searcher, n_words: 3)
    n_closed = 0
    for random_state in range(8):
        problem = Problem(random_state, labels=["NP", "VP"], is_shifting=is_shifting)
        outcome = problem.search(problem.draw_sentence(6))
        ((cost, actions),) = outcome.parses
        assert not outcome.is_exact
        assert actions[-1][0] == actions[-1][2] == 0
        assert 6 - sum(size - 1 for _, size, _ in actions) == 1
        n_closed += cost == np.inf
    assert n_closed > 2


def test_a_longer_sentence_may_reach_more_states_whatever_the_room():
    problem = Problem(0)
    searcher = Searcher(problem.model, is_shifting=True, max_inferences=10)
    assert [searcher._count_states(n_words) for n_words in (1, 20)] == [74, 1290]
