"""Best-first search for constituency parses; buffers are reused between sentences."""

from typing import NamedTuple

import numpy as np

from treewright.native.constituent import agenda as native
from treewright.native.constituent.states import N_PREDICATES
from treewright.parsing.constituent.inferences import fill_words, make_items


class FoundParse(NamedTuple):
    """A parse: its cost, and its inferences as (first child, number of children, label)."""

    cost: float
    actions: list[tuple[int, int, int]]


class SearchResult(NamedTuple):
    """The parses of a sentence, lowest cost first.

    Attributes
    ----------
    parses : list of FoundParse
        The parses.
    is_exact : bool
        Whether the search is exact: no parse with a lower cost exists.
    n_scored : int
        Number of scored inferences.
    """

    parses: list[FoundParse]
    is_exact: bool
    n_scored: int


def make_marks(model: native.InferenceModel) -> native.Marks:
    """Allocate the buffers for scoring, except the feature buffers."""
    # The slot after all labels belongs to the shift, whether or not there is one.
    n_trees, n_labels = len(model.ensembles.usual), len(model.grammar.firsts) + 1
    of_features = np.zeros(len(model.questions.blocks) - 1, dtype=np.int64)
    places, exits, touched = (np.zeros(n_trees, dtype=np.int32) for _ in range(3))
    return native.Marks(
        np.zeros(1, dtype=np.int64),
        of_features,
        np.zeros(n_trees, dtype=np.int64),
        np.zeros(0, dtype=np.int32),
        places,
        exits,
        touched,
        np.zeros(n_labels, dtype=np.int32),
        np.zeros(n_labels),
    )


def count_features(model: native.InferenceModel, n_words: int) -> int:
    """Return the maximum number of features of an inference in a sentence of this length."""
    return N_PREDICATES * (len(model.atoms.kinds) + 8 * n_words)


class Searcher:
    """Finds the lowest-cost parses of sentences under a model, one sentence at a time.

    Parameters
    ----------
    model : Model
        The compiled model.
    is_shifting : bool
        Whether the strategy is shift-reduce.
    max_inferences : int
        Maximum number of scored inferences; at this limit, the search returns its best parses so far.
    """

    def __init__(self, model: native.InferenceModel, *, is_shifting: bool, max_inferences: int) -> None:
        self._model = model
        self._is_shifting = is_shifting
        self._max_inferences = max_inferences
        self._marks = make_marks(model)
        self._n_words = 0

    def _count_states(self, n_words: int) -> int:
        """Return the maximum number of search states for a sentence."""
        return 64 * n_words + self._max_inferences

    def _reserve(self, n_words: int) -> None:
        """Allocate buffers for sentences of this length."""
        n_states = self._count_states(n_words)
        n_items = n_words + 1 + n_states
        features = np.zeros(count_features(self._model, n_words), dtype=np.int32)
        self._marks = self._marks._replace(features=features)
        self._items = make_items(n_items)
        self._frontiers = np.zeros(n_states * n_words, dtype=np.int32)
        lengths, focus, parents, begins, sizes, labels = (np.zeros(n_states, np.int32) for _ in range(6))
        self._states = (lengths, focus, np.zeros(n_states), parents, begins, sizes, labels)
        n_waiting = self._max_inferences + (1 << 16)
        self._agenda = native.Agenda(
            np.zeros(n_waiting), *(np.zeros(n_waiting, dtype=np.int32) for _ in range(4))
        )
        self._n_words = n_words

    def find(self, rows: list[list[int]], *, k: int = 1) -> SearchResult:
        """Return the lowest-cost parses of a sentence, given the attribute values of its words and its end.

        If no parse was completed, the items of the state with the fewest items become children of the top
        node.
        """
        n_words = len(rows) - 1
        if n_words > self._n_words:
            self._reserve(n_words)
        n_states = self._count_states(n_words)
        frontiers = self._frontiers[: n_states * n_words].reshape(n_states, n_words)
        states = native.States(frontiers, *(each[:n_states] for each in self._states))
        fill_words(self._items, 0, rows)
        frontiers[0] = np.arange(n_words)
        states.lengths[0], states.focus[0], states.costs[0], states.parents[0] = n_words, n_words - 1, 0.0, -1
        counts = np.array([n_words + 1, 1, 0, 0, 0, 0], dtype=np.int64)
        found = np.zeros(k, dtype=np.int64)
        search = native.Search(self._items, states, self._agenda, found, counts)
        is_exact = native.find_parses(
            self._model, search, self._is_shifting, self._max_inferences, self._marks
        )
        parses = [self._trace(states, int(state)) for state in found[: counts[native.N_COMPLETE]]]
        if not parses:
            parses = [self._close(states, int(counts[native.N_STATES]))]
        return SearchResult(parses, bool(is_exact), int(counts[native.N_SCORED]))

    def _close(self, states: native.States, n_states: int) -> FoundParse:
        """Complete the cheapest of the states with the fewest items: put all its items under the top node."""
        state = int(np.lexsort((states.costs[:n_states], states.lengths[:n_states]))[0])
        actions = self._trace(states, state).actions
        return FoundParse(np.inf, [*actions, (0, int(states.lengths[state]), 0)])

    @staticmethod
    def _trace(states: native.States, state: int) -> FoundParse:
        cost, actions = float(states.costs[state]), []
        while states.parents[state] >= 0:
            if states.sizes[state] > 0:
                actions.append(
                    (int(states.begins[state]), int(states.sizes[state]), int(states.labels[state]))
                )
            state = int(states.parents[state])
        return FoundParse(cost, actions[::-1])
