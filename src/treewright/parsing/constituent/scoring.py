"""Scores that the classification-based parser gives to trees, from the losses of their inferences.

Trees of one sentence share many states, because no feature depends on the inner structure of an item.
Therefore, equal items are merged, states with the same items are merged, and no inference is scored twice.
"""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from treewright.data.consttree import ConstTree, cut_functions
from treewright.native.constituent import agenda as native
from treewright.native.constituent import states as cuts
from treewright.native.constituent.atoms import Place
from treewright.parsing.constituent.inferences import (
    PredicateEncoder,
    TaggedSentence,
    fill_words,
    make_items,
    read_inside,
)
from treewright.parsing.constituent.preparation import SAME_LABEL, keep_inside, prepare, retag
from treewright.parsing.constituent.search import count_features, make_marks
from treewright.tagging.tagger import Tagger

Action = tuple[int, int, int]
"""An inference: position of the first child, number of children, label."""
Step = tuple[int, int, int, int]
"""A state and an inference in it."""
Frontier = npt.NDArray[np.int32]
ROOM = 256
"""Initial capacity of the buffers, in items."""


def list_tags(tree: ConstTree) -> list[str]:
    """Return the label above each word; this is faster than `ConstTree.tags`."""
    labels, sizes = tree.labels, tree.sizes
    tags = np.flatnonzero(sizes == 1) + 1
    if tags[-1] == len(sizes) or (sizes[tags] != 2).any():
        return tree.tags()
    return [labels[at] for at in tags.tolist()]


def list_brackets(tree: ConstTree, is_kept: Sequence[bool]) -> list[tuple[str, int, int]]:
    """Return the label, first word and number of children of each constituent that has kept words.

    Constituents are in the order of inferences: from right to left and bottom-up.
    """
    sizes = tree.sizes.tolist()
    kept = iter(is_kept)
    before = list(accumulate((size == 1 and next(kept) for size in sizes), initial=0))
    found = []
    waiting: list[int] = []  # nodes whose parent has not been reached
    for node, (label, size) in enumerate(zip(tree.labels, sizes, strict=True)):
        n_children, first = 0, node + 1 - size
        while waiting and waiting[-1] >= first:
            child = waiting.pop()
            n_children += before[child + 1] > before[child + 1 - sizes[child]]
        waiting.append(node)
        is_tag = size == 2
        if n_children and not is_tag:
            found.append((-before[first], node, label, n_children))
    return [(label, -start, n_children) for start, _, label, n_children in sorted(found)]


class Retracer:
    """Follows the inferences that lead to given trees, one sentence after another.

    Parameters
    ----------
    model : Model
        The compiled model.
    is_shifting : bool
        Whether the strategy is shift-reduce.
    """

    def __init__(self, model: native.InferenceModel, *, is_shifting: bool) -> None:
        self._model = model
        self._is_shifting = is_shifting
        self._marks = make_marks(model)
        self._items = make_items(ROOM)
        self._shift = len(model.grammar.firsts)

    def begin(self, rows: list[list[int]]) -> None:
        """Start a sentence, given the attribute values of its words and of its end."""
        self._n_words = len(rows) - 1
        size = count_features(self._model, self._n_words)
        if len(self._marks.features) < size:
            self._marks = self._marks._replace(features=np.zeros(size, dtype=np.int32))
        self._n_items = len(rows)
        self._make_room()
        fill_words(self._items, 0, rows)
        self._known_items: dict[tuple[bytes, int, int, int], int] = {}
        self._known_states: dict[tuple[int, bytes], int] = {}
        self._states: list[tuple[int, Frontier]] = []
        self._next: dict[Step, int] = {}
        self._losses: dict[Step, float] = {}
        self._reach(self._n_words - 1, np.arange(self._n_words, dtype=np.int32))

    def cost(self, actions: Sequence[Action]) -> float:
        """Return the sum of the losses of all inferences of a tree, including shifts.

        The sum is infinite if the search would not consider one of the inferences, or if the last one does
        not build the top node.
        """
        ends = [at for at, (_, _, label) in enumerate(actions, 1) if label == cuts.TOP]
        path = self._follow(actions) if ends == [len(actions)] else None
        if path is None:
            return np.inf
        cost = 0.0
        for step in path:
            loss = self._losses.get(step)
            if loss is None:
                loss = self._losses[step] = self._find_loss(*step)
            cost += loss
        return cost

    def _follow(self, actions: Sequence[Action]) -> list[Step] | None:
        """Return all inferences with their states, or None if one of them is impossible."""
        state, path = 0, []
        for action in actions:
            shifts: list[Action] = []
            if self._is_shifting:
                focus = self._states[state][0]
                shifts = [(place, 0, self._shift) for place in range(focus, action[0], -1)]
            for each in (*shifts, action):
                step = (state, *each)
                path.append(step)
                if step not in self._next:
                    self._next[step] = self._infer(*step)
                state = self._next[step]
                if state < 0:
                    return None
        return path

    def _infer(self, state: int, begin: int, size: int, label: int) -> int:
        """Return the number of the state after an inference, or -1 if the inference is impossible."""
        focus, frontier = self._states[state]
        if size == 0:
            return self._reach(focus - 1, frontier)
        if not self._is_open(state, begin, size, label):
            return -1
        item = self._make_item(frontier, begin, size, label)
        return self._reach(
            begin, np.concatenate([frontier[:begin], [item], frontier[begin + size :]], dtype=np.int32)
        )

    def _find_loss(self, state: int, begin: int, size: int, label: int) -> float:
        _, frontier = self._states[state]
        marks, is_shift = self._marks, size == 0
        marks.heads[:] = -1
        marks.heads[label] = 0 if is_shift else self._find_head(frontier, begin, size, label)
        place = Place(0, len(frontier), 0, self._n_words)
        native.score_labels(self._model, self._items, frontier, place, begin, size, marks)
        return float(native.loss(float(marks.scores[label])))

    def _find_head(self, frontier: Frontier, begin: int, size: int, label: int) -> int:
        return int(cuts.find_head(self._model.heads, self._items, frontier, begin, size, label))

    def _is_open(self, state: int, begin: int, size: int, label: int) -> bool:
        """Return whether the search considers an inference.

        If nothing else is possible, the search considers the top node.
        """
        grammar, (_, frontier) = self._model.grammar, self._states[state]
        if label < 0:
            return False
        if label == cuts.TOP and (begin > 0 or size < len(frontier)):
            return False
        if label != cuts.TOP and size > grammar.max_children:
            return False
        if cuts.is_considered(grammar, self._items, frontier, begin, size, label):
            return True
        return label == cuts.TOP and not self._has_other(state)

    def _has_other(self, state: int) -> bool:
        """Return whether the search considers any inference in a state."""
        focus, frontier = self._states[state]
        length, most = len(frontier), self._model.grammar.max_children
        if self._is_shifting and focus > 0:
            return True
        return any(
            native.find_heads(self._model, self._items, frontier, begin, size, length, self._marks.heads)
            for begin in range(focus + 1)
            for size in range(1, min(most, length - begin) + 1)
        )

    def _reach(self, focus: int, frontier: Frontier) -> int:
        """Return the number of a state."""
        key = (focus, frontier.tobytes())
        if key not in self._known_states:
            self._known_states[key] = len(self._states)
            self._states.append((focus, frontier))
        return self._known_states[key]

    def _make_item(self, frontier: Frontier, begin: int, size: int, label: int) -> int:
        """Return the number of an item; equal items share a number."""
        self._make_room()
        items, number = self._items, self._n_items
        head = self._find_head(frontier, begin, size, label)
        cuts.make_item(items, number, frontier, begin, size, label, head)
        # Features depend only on the values of an item, its words, and the node right above the same words.
        start, end, only = (int(each[number]) for each in (items.starts, items.ends, items.onlys))
        known = self._known_items.setdefault((items.values[number].tobytes(), start, end, only), number)
        self._n_items += known == number
        return known

    def _make_room(self) -> None:
        """Enlarge the buffers if they are full."""
        size = len(self._items.starts)
        if self._n_items >= size:
            larger = make_items(2 * self._n_items)
            for old, new in zip(self._items, larger, strict=True):
                new[:size] = old
            self._items = larger


class TreeScorer:
    """Gives trees the scores that the search would give them; trees of one sentence should be adjacent.

    Parameters
    ----------
    retracer : Retracer
        Computes the losses.
    encoder : PredicateEncoder
        Encodes words and labels.
    has_root : bool
        Whether all training trees have the same root label, which occurs nowhere else.
    tagger : Tagger, optional
        Tagger whose tags replace those of the trees.
    """

    def __init__(
        self, retracer: Retracer, encoder: PredicateEncoder, *, has_root: bool, tagger: Tagger | None = None
    ) -> None:
        self._retracer = retracer
        self._encoder = encoder
        self._has_root = has_root
        self._tagger = tagger
        self._sentence = TaggedSentence([], [])
        labels = {label: number for number, label in enumerate(encoder.symbols.labels)}
        self._numbers = labels | {label: labels.get(same, -1) for label, same in SAME_LABEL.items()}

    def score(self, tree: ConstTree) -> float:
        """Return the score of a tree or, if the search cannot reach it, of the prepared tree."""
        bare = tree.without_traces()
        if bare is None:
            return 0.0
        self._turn_to(bare)
        if not self._kept:
            return 0.0
        kept = set(self._kept)
        actions = self._list_actions(bare, [at in kept for at in range(len(self._sentence.words))])
        cost = self._retracer.cost(actions)
        return -cost if cost < np.inf else -self._cost_prepared(bare)

    def _cost_prepared(self, tree: ConstTree) -> float:
        prepared = prepare(tree if self._tagger is None else retag(tree, self._sentence.tags))
        if prepared.tree is None or prepared.kept != self._kept:
            return np.inf
        return self._retracer.cost(self._list_actions(prepared.tree, [True] * len(self._kept)))

    def _turn_to(self, tree: ConstTree) -> None:
        """Start with the sentence of a tree, unless it is the current sentence."""
        words = tree.words()
        is_new = words != self._sentence.words
        if self._tagger is None:
            tags = list_tags(tree)
            is_new = is_new or tags != self._sentence.tags
        elif is_new:
            tags = self._tagger.tag([words])[0].xpos
        if is_new:
            self._sentence = TaggedSentence(words, tags)
            self._kept = keep_inside(tags)
            if self._kept:
                self._retracer.begin(self._encoder.encode(read_inside(words, tags, self._kept)))

    def _list_actions(self, tree: ConstTree, is_kept: Sequence[bool]) -> list[Action]:
        """Return the inferences that lead to a tree; add the top node if it is missing."""
        actions = [
            (start, n_children, self._number(label))
            for label, start, n_children in list_brackets(tree, is_kept)
        ]
        is_bracket = tree.n_nodes > 2
        if is_bracket:
            start, n_children, label = actions[-1]
            if label == cuts.TOP or (label < 0 and self._has_root):
                return [*actions[:-1], (start, n_children, cuts.TOP)]
        return [*actions, (0, 1, cuts.TOP)]

    def _number(self, label: str) -> int:
        """Return the number of a label, ignoring function labels, or -1 if it is unknown."""
        number = self._numbers.get(label)
        if number is None:
            bare = cut_functions(label)
            number = self._numbers[label] = -1 if bare == label else self._number(bare)
        return number
