"""Beam search for the most probable left-corner derivations of sentences.

I. Titov and J. Henderson (2005), section VI. After each word, all hypotheses are extended until they shift
the next word, and the best ones are kept. Between shifts, only the most probable decisions of a hypothesis
are followed; it is pruned if enough other hypotheses already had a higher probability when they shifted.

Many sentences are searched together. Hypotheses and the nodes of their shared stacks are rows of tables;
`treewright.parsing.leftcorner.derivations.DerivationState` is the equivalent for a single derivation.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treewright.parsing.leftcorner.derivations import ATTACH, MODIFY, PROJECT, SHIFT, Decision
from treewright.parsing.leftcorner.network import IMPOSSIBLE, Floats, Network
from treewright.scale import map_jobs

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]

SYMBOL, IS_WORD, REPEATS, LATEST, LEFT_CHILD, RECENT_CHILD, LEFT_WORD, BELOW = range(8)
"""Columns of nodes. Hypotheses and nodes are referenced by row numbers; 0 means none."""
NOTHING, ROOT = range(2)
"""Row numbers of the first two nodes."""
PARENT, KIND, MADE, TOP, LAST_WORD, LAST_DECISION, SENTENCE, N_PROJECTED = range(8)
"""Columns of hypotheses: the previous hypothesis, the decision that was made in it, and the new state."""
FIRST_LABEL = 3
"""Number of the first label to project; choices 0 to 2 are shift, attach and modify."""
KINDS = np.array([SHIFT, ATTACH, MODIFY])
LAST_INPUTS = np.array([1, 0, 2, 3])
"""Code of each kind of decision as an input; a projection is 3 plus its symbol."""
ROWS_A_WORD = 8
"""Approximate number of hypotheses per word and beam slot."""
MOST_ROWS = 100_000
"""Approximate maximum number of hypotheses in memory."""


class FoundDerivation(NamedTuple):
    """A derivation and its log-probability."""

    decisions: list[Decision]
    score: float


class BeamLimits(NamedTuple):
    """Limits of the beam search.

    Attributes
    ----------
    beam : int
        Number of hypotheses kept after each word, and at each decision between words.
    branching : int
        Number of decisions followed from each hypothesis.
    max_projections : int
        Maximum number of consecutive projections.
    root : int
        The symbol that every tree has at its root and nowhere else; 0 if there is none.
    """

    beam: int
    branching: int
    max_projections: int
    root: int = 0


class _Table:
    """A table that grows."""

    def __init__(self, width: int, dtype: npt.DTypeLike) -> None:
        self.rows: npt.NDArray[Any] = np.zeros((1024, width), dtype=dtype)
        self.size = 0

    def append(self, rows: npt.NDArray[Any]) -> Rows:
        """Add rows; return their numbers."""
        numbers = np.arange(self.size, self.size + len(rows))
        self.place(numbers, rows)
        return numbers

    def place(self, numbers: Rows, rows: npt.NDArray[Any]) -> None:
        """Write rows with these numbers; the last of them becomes the last row of the table."""
        self.size = int(numbers[-1]) + 1 if len(numbers) else self.size
        if self.size > len(self.rows):
            grown = np.zeros((max(self.size, 2 * len(self.rows)), self.rows.shape[1]), self.rows.dtype)
            grown[: len(self.rows)] = self.rows
            self.rows = grown
        self.rows[numbers] = rows

    def __getitem__(self, rows: Rows) -> npt.NDArray[Any]:
        return self.rows[rows]


class _Choices(NamedTuple):
    """Possible next decisions of hypotheses.

    Attributes
    ----------
    parents : ndarray of int
        The hypotheses.
    choices : ndarray of int
        The decisions; see `FIRST_LABEL`.
    sentences : ndarray of int
        The sentences of the hypotheses.
    scores : ndarray of float
        Log-probabilities; those of shifts do not include the tag and the word.
    """

    parents: Rows
    choices: Rows
    sentences: Rows
    scores: Scores

    def take(self, which: npt.NDArray[Any]) -> "_Choices":
        return _Choices(*(column[which] for column in self))


def keep_best(sentences: Rows, scores: Scores, width: int) -> Rows:
    """Return up to `width` rows with the best scores of each sentence, the best first."""
    order = np.lexsort((-scores, sentences))
    ordered = sentences[order]
    rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return order[rank < width]


def find_parses(
    network: Network, sentences: Sequence[Sequence[int]], limits: BeamLimits, *, k: int, n_jobs: int = 1
) -> list[list[FoundDerivation]]:
    """Return up to `k` of the most probable derivations of each sentence, the best first.

    Parameters
    ----------
    network : Network
        The network.
    sentences : sequence of sequences of int
        Numbers of the tag-word pairs of each sentence; a sentence must have at least one.
    limits : BeamLimits
        Limits of the search.
    k : int
        Maximum number of derivations per sentence.
    n_jobs : int
        Number of threads (-1: all processors).
    """

    def search(batch: list[int]) -> list[list[FoundDerivation]]:
        return _Search(network, [sentences[at] for at in batch], limits, k).run()

    batches = split_work([len(words) for words in sentences], limits.beam)
    found: list[list[FoundDerivation]] = [[] for _ in sentences]
    results = map_jobs(search, batches, n_jobs=n_jobs, what="parsing", count=len)
    for batch, lists in zip(batches, results, strict=True):
        for at, parses in zip(batch, lists, strict=True):
            found[at] = parses
    return found


def split_work(lengths: Sequence[int], beam: int) -> list[list[int]]:
    """Divide sentences into batches of similar lengths that fit into memory."""
    n_most = MOST_ROWS // (beam * ROWS_A_WORD)
    batches: list[list[int]] = []
    n_words = n_most + 1
    for at in sorted(range(len(lengths)), key=lambda at: lengths[at]):
        n_words += lengths[at]
        if n_words > n_most:
            batches.append([])
            n_words = lengths[at]
        batches[-1].append(at)
    return batches


class _Search:
    """A search over a batch of sentences; it can be run only once."""

    def __init__(
        self, network: Network, sentences: Sequence[Sequence[int]], limits: BeamLimits, n_found: int
    ) -> None:
        self._network = network
        self._limits = limits
        self._n_found = n_found
        self._lengths = np.array([len(words) for words in sentences])
        self._words = np.zeros((len(sentences), self._lengths.max(initial=0) + 1), dtype=np.int64)
        for row, words in zip(self._words, sentences, strict=True):
            row[: len(words)] = words
        self._nodes = _Table(8, np.int32)
        self._nodes.append(np.zeros((2, 8)))
        self._items = _Table(8, np.int32)
        self._scores = _Table(1, np.float64)
        self._hidden = _Table(network.units, np.float32)
        self._memory = _Table(network.n_memory, np.float32)
        for table in (self._items, self._scores, self._hidden, self._memory):
            table.append(np.zeros((1, table[np.zeros(0, dtype=np.int64)].shape[1])))

    def run(self) -> list[list[FoundDerivation]]:
        """Return the best derivations of each sentence."""
        frontier = self._start()
        ended: list[Rows] = []
        for position in range(int(self._lengths.max(initial=0)) + 1):
            waiting = self._advance(frontier, position)
            is_over = self._lengths[waiting.sentences] == position
            over, going_on = waiting.take(is_over), waiting.take(~is_over)
            best = keep_best(over.sentences, over.scores, self._n_found)
            ended.append(self._apply(over.take(best), position))
            frontier = self._shift(going_on, position)
        return self._collect(np.concatenate(ended))

    def _start(self) -> Rows:
        items = np.zeros((len(self._lengths), 8), dtype=np.int32)
        items[:, TOP] = ROOT
        items[:, SENTENCE] = np.arange(len(items))
        self._scores.append(np.zeros((len(items), 1)))
        return self._items.append(items)

    def _advance(self, frontier: Rows, position: int) -> _Choices:
        """Extend hypotheses until they shift the next word, or until they end if there is no next word."""
        none = np.zeros(0, dtype=np.int64)
        pool = _Choices(none, none, none, np.zeros(0))
        while len(frontier):
            self._evaluate(frontier)
            choices = self._branch(frontier, position)
            is_last = (choices.choices == 0) | self._is_ending(choices)
            pool = _Choices(*(np.concatenate(pair) for pair in zip(pool, choices.take(is_last), strict=True)))
            choices = choices.take(~is_last)
            choices = choices.take(choices.scores > self._bounds(pool)[choices.sentences])
            best = keep_best(choices.sentences, choices.scores, self._limits.beam)
            frontier = self._apply(choices.take(best), position)
        return pool

    def _bounds(self, pool: _Choices) -> Scores:
        """Return, for each sentence, the lowest score in its beam; minus infinity if the beam is not full."""
        bounds = np.full(len(self._lengths), -np.inf)
        best = keep_best(pool.sentences, pool.scores, self._limits.beam)
        sentences = pool.sentences[best]
        is_last = np.arange(len(best)) - np.searchsorted(sentences, sentences) == self._limits.beam - 1
        bounds[sentences[is_last]] = pool.scores[best][is_last]
        return bounds

    def _evaluate(self, frontier: Rows) -> None:
        """Compute the history vectors of hypotheses."""
        items = self._items[frontier]
        tops = self._nodes[items[:, TOP]]
        below = self._nodes[tops[:, BELOW]]
        links = np.stack(
            [tops[:, LATEST], below[:, LATEST], tops[:, LEFT_CHILD], tops[:, RECENT_CHILD]], axis=1
        )
        inputs = np.stack(
            [items[:, LAST_DECISION], tops[:, SYMBOL], items[:, LAST_WORD], tops[:, LEFT_WORD]], axis=1
        )
        embedded = self._network.embed(inputs)
        hidden, memory = self._network.step(embedded, links, self._hidden.rows, self._memory.rows)
        self._hidden.place(frontier, hidden)
        self._memory.place(frontier, memory)

    def _branch(self, frontier: Rows, position: int) -> _Choices:
        """Return the best decisions of hypotheses."""
        logs = self._choice_logs(frontier, position)
        n_kept = min(self._limits.branching, logs.shape[1])
        kept = np.sort(np.argpartition(-logs, n_kept - 1, axis=1)[:, :n_kept], axis=1)
        of_kept = np.take_along_axis(logs, kept, axis=1)
        rows, columns = np.nonzero(of_kept > IMPOSSIBLE)
        parents = frontier[rows]
        scores: Scores = self._scores[parents][:, 0] + of_kept[rows, columns]
        return _Choices(parents, kept[rows, columns], self._items[parents][:, SENTENCE], scores)

    def _choice_logs(self, frontier: Rows, position: int) -> Floats:
        """Return the log-probabilities of the possible decisions of hypotheses."""
        items = self._items[frontier]
        tops = self._nodes[items[:, TOP]]
        below = self._nodes[tops[:, BELOW]]
        is_started, is_word = tops[:, BELOW] > 0, tops[:, IS_WORD] > 0
        is_lowest = below[:, BELOW] == 0
        is_over = self._lengths[items[:, SENTENCE]] == position
        legal = np.stack(
            [~is_word, is_started, is_started & (below[:, REPEATS] == 0), is_started & ~is_lowest], axis=1
        )
        hidden = self._hidden[frontier]
        logs = self._network.kind_logs(hidden, legal)
        labels = logs[:, PROJECT, None] + self._network.label_logs(hidden)
        of_root = labels[:, self._limits.root - 1].copy()
        labels[items[:, N_PROJECTED] >= self._limits.max_projections] = IMPOSSIBLE
        chosen: Floats = np.concatenate([logs[:, KINDS], labels], axis=1)
        chosen[is_over, 0] = IMPOSSIBLE
        chosen[is_lowest & ~is_over, 1] = IMPOSSIBLE
        if self._limits.root:
            is_root = tops[:, SYMBOL] == self._limits.root
            self._keep_root(chosen, is_root, below[:, SYMBOL], is_lowest)
            at = FIRST_LABEL + self._limits.root - 1
            chosen[:, at] = np.where(is_lowest & ~is_root, of_root, IMPOSSIBLE)
        return chosen

    def _keep_root(
        self, chosen: Floats, is_root: npt.NDArray[np.bool_], below: Rows, is_lowest: npt.NDArray[np.bool_]
    ) -> None:
        """Exclude decisions that would put another node above the root or in its place."""
        chosen[is_root, FIRST_LABEL:] = IMPOSSIBLE
        chosen[is_lowest & ~is_root, 1] = IMPOSSIBLE
        chosen[below == self._limits.root, 2] = IMPOSSIBLE

    def _is_ending(self, choices: _Choices) -> npt.NDArray[np.bool_]:
        """Return which decisions attach a tree to ROOT."""
        tops = self._nodes[self._items[choices.parents][:, TOP]]
        is_lowest = self._nodes[tops[:, BELOW]][:, BELOW] == 0
        ends: npt.NDArray[np.bool_] = (choices.choices == 1) & is_lowest
        return ends

    def _shift(self, choices: _Choices, position: int) -> Rows:
        """Keep the best hypotheses that shift the next word."""
        if not len(choices.parents):
            return choices.parents
        parents, places = np.unique(choices.parents, return_inverse=True)
        words = self._words[self._items[parents][:, SENTENCE], position]
        logs = self._network.shift_logs(self._hidden[parents], words)
        shifted = choices._replace(scores=choices.scores + logs[places])
        best = keep_best(shifted.sentences, shifted.scores, self._limits.beam)
        return self._apply(shifted.take(best), position)

    def _apply(self, choices: _Choices, position: int) -> Rows:
        """Create the hypotheses after decisions."""
        parents, chosen = choices.parents, choices.choices
        old = self._items[parents]
        kinds = np.where(chosen < FIRST_LABEL, KINDS[np.minimum(chosen, 2)], PROJECT)
        words = np.where(kinds == SHIFT, self._words[old[:, SENTENCE], position], 0)
        tags = self._network.sizes.tag_of[words]
        symbols = np.where(kinds == SHIFT, 1 + self._network.sizes.n_labels + tags, chosen - FIRST_LABEL + 1)
        symbols = np.where((kinds == SHIFT) | (kinds == PROJECT), symbols, 0)
        items = np.zeros((len(chosen), 8), dtype=np.int32)
        items[:, PARENT], items[:, KIND], items[:, MADE] = parents, kinds, symbols
        items[:, TOP] = self._push(old[:, TOP], kinds, symbols, words, parents)
        items[:, LAST_WORD] = np.where(kinds == SHIFT, words + 1, old[:, LAST_WORD])
        items[:, LAST_DECISION] = np.where(kinds == PROJECT, 3 + symbols, LAST_INPUTS[kinds])
        items[:, SENTENCE] = old[:, SENTENCE]
        items[:, N_PROJECTED] = np.where(kinds == PROJECT, old[:, N_PROJECTED] + 1, 0)
        self._scores.append(choices.scores[:, None])
        return self._items.append(items)

    def _push(self, old: Rows, kinds: Rows, symbols: Rows, words: Rows, at: Rows) -> Rows:
        """Return the tops of stacks after decisions; `at` has the rows of their history vectors."""
        tops = self._nodes[old]
        new = self._nodes[tops[:, BELOW]]
        new[:, IS_WORD] = new[:, REPEATS] = 0
        new[:, RECENT_CHILD] = at
        is_new = (kinds == PROJECT) | (kinds == SHIFT)
        new[is_new, SYMBOL] = symbols[is_new]
        new[is_new, LATEST] = 0
        projected = kinds == PROJECT
        repeats = (symbols == tops[:, SYMBOL]) & (tops[:, IS_WORD] == 0)
        new[projected, REPEATS] = repeats[projected]
        new[projected, LEFT_CHILD] = at[projected]
        new[projected, LEFT_WORD] = tops[projected, LEFT_WORD]
        new[projected, BELOW] = tops[projected, BELOW]
        shifted = np.flatnonzero(kinds == SHIFT)
        covered = tops[shifted]
        covered[:, LATEST] = at[shifted]
        new[shifted, IS_WORD] = 1
        new[shifted, LEFT_CHILD] = new[shifted, RECENT_CHILD] = 0
        new[shifted, LEFT_WORD] = words[shifted] + 1
        new[shifted, BELOW] = self._nodes.append(covered)
        return self._nodes.append(new)

    def _collect(self, ended: Rows) -> list[list[FoundDerivation]]:
        found: list[list[FoundDerivation]] = [[] for _ in self._lengths]
        sentences = self._items[ended][:, SENTENCE]
        for at in keep_best(sentences, self._scores[ended][:, 0], self._n_found).tolist():
            row = int(ended[at])
            score = float(self._scores[ended[at : at + 1]][0, 0])
            found[int(sentences[at])].append(FoundDerivation(self._trace(row), score))
        return found

    def _trace(self, row: int) -> list[Decision]:
        """Return the decisions that led to a hypothesis."""
        decisions: list[Decision] = []
        while True:
            parent, kind, symbol = self._items[np.array([row])][0, :3].tolist()
            if not parent:
                return decisions[::-1]
            decisions.append(Decision(kind, symbol))
            row = parent
