"""Sentences, derivations and training examples of the classification-based parser, as arrays.

J. Turian and I. D. Melamed (2006), section 3.4: the examples are all inferences considered in the states on
the path to a gold tree. Each example is stored as a few numbers; its features are extracted on demand.
"""

import zlib
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._typing import Integers
from treewright.data.consttree import ConstTree, cut_functions
from treewright.data.heads import PUNCTUATION, RULES
from treewright.errors import InputError, quote
from treewright.learn.trees import Leaves
from treewright.native.constituent import states as native
from treewright.native.constituent.atoms import Source, extract_examples, percolate
from treewright.native.learn.boosting import DecisionTree, FeatureRows
from treewright.parsing.constituent.atoms import N_BINS, AtomTable
from treewright.parsing.constituent.preparation import QUOTES, ROOT
from treewright.scale import map_slices

CLASSES = (
    "NN NNS", "NNP NNPS", "VB VBD VBG VBN VBP VBZ MD", "JJ JJR JJS", "RB RBR RBS WRB", "IN TO",
    "PRP PRP$ WP WP$", "DT PDT WDT EX", ", . : `` '' HYPH -LRB- -RRB- NFP", "CC", "CD",
)  # fmt: skip
CLASS_OF = {tag: name for name in CLASSES for tag in name.split()}


class Symbols(NamedTuple):
    """The symbols of a model: labels (the top label first), tags, classes of tags, and frequent words."""

    labels: list[str]
    tags: list[str]
    classes: list[str]
    words: list[str]


def read_symbols(lists: Sequence[Sequence[str]]) -> Symbols:
    """Validate and return saved symbols; raise `InputError` unless all are strings."""
    symbols = Symbols(*map(list, lists))
    for name, strings in symbols._asdict().items():
        if not all(isinstance(string, str) for string in strings):
            raise InputError(f"{name} are {quote(str(strings))}; expected strings")
    return symbols


class TaggedSentence(NamedTuple):
    """Words and tags of a sentence, and the punctuation mark dropped at its end (word and tag), if any."""

    words: Sequence[str]
    tags: Sequence[str]
    end: tuple[str, str] | None = None


MOST_ROWS = 1 << 18
"""Maximum number of cached combinations of word and tag."""
PER_EXAMPLE = 100
"""Initial capacity of a buffer, as a number of features per example."""
NOTHING = ("", "")
"""Word and tag at the end of a sentence from which no punctuation was dropped."""


def read_inside(words: Sequence[str], tags: Sequence[str], kept: Sequence[int]) -> TaggedSentence:
    """Return the words that the parser processes, and the first punctuation mark after them (not a quote)."""
    behind = [at for at in range(kept[-1] + 1, len(words)) if tags[at] not in QUOTES]
    end = (words[behind[0]], tags[behind[0]]) if behind else None
    return TaggedSentence([words[at] for at in kept], [tags[at] for at in kept], end)


class PredicateEncoder:
    """Encodes words and tags as values of attributes.

    Parameters
    ----------
    symbols : Symbols
        The symbols of the model.
    """

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self._labels = {label: number for number, label in enumerate(symbols.labels)}
        self._tags = {tag: number for number, tag in enumerate(symbols.tags, 1)}
        self._classes = {name: number for number, name in enumerate(symbols.classes, 1)}
        self._words = {word: number for number, word in enumerate(symbols.words, 1)}
        self._rows: dict[tuple[str, str], list[int]] = {}

    @property
    def n_labels(self) -> int:
        """Number of labels, including the top label."""
        return len(self.symbols.labels)

    @property
    def symbol_names(self) -> list[str]:
        """The labels, followed by the tags; the first tag stands for unknown tags."""
        return [*self.symbols.labels, "", *self.symbols.tags]

    def sizes(self) -> list[int]:
        """Return the number of values of each attribute."""
        n_symbols, n_tags = len(self.symbol_names), len(self._tags) + 1
        n_words, n_classes = len(self._words) + 1, len(self._classes) + 1
        return [n_symbols, n_words, n_tags, n_classes, n_symbols, n_symbols, native.N_FORMS, N_BINS, n_words]

    def label_number(self, label: str) -> int:
        """Return the number of a label."""
        return self._labels[label]

    def encode(self, sentence: TaggedSentence) -> list[list[int]]:
        """Return a row of values for each word, and one for the end of the sentence."""
        rows = [self._row(word, tag) for word, tag in zip(sentence.words, sentence.tags, strict=True)]
        end = self._row(*(sentence.end or NOTHING)).copy()
        end[native.FORM] = zlib.crc32(case_of(sentence.words).encode()) % native.N_FORMS
        return [*rows, end]

    def _row(self, word: str, tag: str) -> list[int]:
        row = self._rows.get((word, tag))
        if row is None:
            if len(self._rows) >= MOST_ROWS:
                self._rows.clear()
            lower = word.lower()
            # Function labels are also removed from the tags of training trees.
            number = self._tags.get(cut_functions(tag), 0)
            symbol = self.n_labels + number
            group = self._classes.get(class_of(cut_functions(tag)), 0)
            form = zlib.crc32(lower[-3:].encode()) % native.N_FORMS
            row = [symbol, self._words.get(lower, 0), number, group, symbol, symbol, form, 1, 0]
            self._rows[word, tag] = row
        return row

    def make_heads(self, rules: str) -> native.Heads:
        """Return the head rules of this name, compiled for the labels."""
        table = RULES[rules]
        names = self.symbol_names
        most = max(len(searches) for searches in table.searches.values())
        steps = np.full((self.n_labels, len(names)), native.NO_STEP, dtype=np.int32)
        from_right = np.zeros((self.n_labels, most), dtype=np.bool_)
        for number, label in enumerate(self.symbols.labels):
            for step, (side, wanted) in enumerate(table.searches.get(label, (("r", frozenset[str]()),))):
                from_right[number, step] = side == "r"
                for symbol, name in enumerate(names):
                    if name in wanted:
                        steps[number, symbol] = min(steps[number, symbol], step)
        is_known = table.first_conjunct and "CC" in self._tags
        conjunction = self.n_labels + self._tags["CC"] if is_known else -1
        return native.Heads(steps, from_right, np.array([name in PUNCTUATION for name in names]), conjunction)


def case_of(words: Sequence[str]) -> str:
    """Return how a sentence is capitalised, as text.

    The text says whether all letters are capitals, whether the first word is capitalised, and how many of
    the other words are capitalised (0: few, 1: about half, 2: most).
    """
    first, *others = (word[:1].isupper() for word in words)
    share = round(2 * sum(others) / max(1, len(others)))
    return f"{' '.join(words).isupper()} {first} {share}"


def class_of(tag: str) -> str:
    """Return the class of a Penn Treebank tag, or the first two letters of any other tag."""
    return CLASS_OF.get(tag, tag[:2])


def collect_symbols(trees: Sequence[ConstTree], *, min_count: int) -> Symbols:
    """Collect the symbols of trees; a word must occur at least `min_count` times."""
    labels: set[str] = set()
    tags: set[str] = set()
    counts: Counter[str] = Counter()
    for tree in trees:
        labels.update(label for label, _, _ in brackets(tree))
        tags.update(tree.tags())
        counts.update(word.lower() for word in tree.words())
    words = sorted(word for word, count in counts.items() if count >= min_count)
    classes = sorted({class_of(tag) for tag in tags})
    return Symbols([ROOT, *sorted(labels - {ROOT})], sorted(tags), classes, words)


def brackets(tree: ConstTree) -> list[tuple[str, int, int]]:
    """Return the label, first word and number of children of each constituent, from right to left."""
    children = tree.child_positions()
    before = np.cumsum([0, *(tree.sizes == 1)]).tolist()
    is_word = (tree.sizes == 1).tolist()
    found = []
    for node, (label, size) in enumerate(zip(tree.labels, tree.sizes.tolist(), strict=True)):
        below = children[node]
        if below and not (len(below) == 1 and is_word[below[0]]):
            found.append((-before[node + 1 - size], node, label, len(below)))
    return [(label, -start, n_children) for start, _, label, n_children in sorted(found)]


def derive(trees: Sequence[ConstTree], encoder: PredicateEncoder) -> native.ActionSequences:
    """Return the right-to-left derivations of trees that have a top node."""
    n_words, indptr, begins, sizes, labels = [], [0], [], [], []
    for tree in trees:
        for label, start, n_children in brackets(tree):
            begins.append(start)
            sizes.append(n_children)
            labels.append(encoder.label_number(label))
        n_words.append(len(tree.words()))
        indptr.append(len(begins))
    columns = (n_words, indptr, begins, sizes, labels)
    return native.ActionSequences(*(np.array(each, dtype=np.int32) for each in columns))


class TrainingSet:
    """All inferences on the paths to gold trees.

    Parameters
    ----------
    trees : sequence of ConstTree
        Prepared trees with a top node.
    sentences : sequence of TaggedSentence
        Words and tags of the trees.
    encoder : PredicateEncoder
        Encodes words and labels.
    heads : Heads
        Head rules.
    table : AtomTable
        Atomic features.
    is_shifting : bool
        Whether the strategy is shift-reduce; otherwise, inferences can start anywhere up to the focus.
    max_children : int
        Maximum number of children of a constituent.
    only_known : bool
        Consider a label only if it occurred in training with the same first and last child (or the same
        single child).

    Attributes
    ----------
    names : list of str
        Names of the classifiers: the labels and, with a shift-reduce strategy, the shift.
    """

    def __init__(
        self,
        trees: Sequence[ConstTree],
        sentences: Sequence[TaggedSentence],
        encoder: PredicateEncoder,
        heads: native.Heads,
        table: AtomTable,
        *,
        is_shifting: bool,
        max_children: int,
        only_known: bool,
    ) -> None:
        self.heads, self.table, self.n_labels = heads, table, encoder.n_labels
        self.names = [*encoder.symbols.labels, *(["shift"] if is_shifting else [])]
        self._is_shifting = is_shifting
        self._derivations = derive(trees, encoder)
        self.items = _word_items(sentences, encoder, self._derivations)
        n_states, n_items = native.count_cuts(self._derivations, is_shifting)
        self.cuts = native.Cuts(
            np.zeros(n_states + 1, np.int64),
            *(np.zeros(size, np.int32) for size in (n_items, n_states, n_states, n_states)),
        )
        self._golds = np.zeros(n_states, dtype=np.int32)
        line = np.zeros(int(self._derivations.n_words.max(initial=1)), dtype=np.int32)
        native.replay(self._derivations, heads, is_shifting, self.items, self.cuts, self._golds, line)
        self.grammar = self._learn_grammar(len(encoder.symbol_names), max_children, only_known)
        total = native.count_inferences(self.cuts, self.grammar, is_shifting)
        kinds = (np.int32, np.int16, np.int16)
        self.inferences = native.Inferences(*(np.zeros(total, kind) for kind in kinds))
        native.list_inferences(self.cuts, self.grammar, is_shifting, self.inferences)
        self.source = Source(self.inferences, self.cuts, self.items, heads)
        self._share_biases()

    def _learn_grammar(self, n_symbols: int, max_children: int, only_known: bool) -> native.Grammar:
        tables = [np.full((self.n_labels, n_symbols), not only_known) for _ in range(3)]
        is_reduction = self._golds >= 0
        actions = self._golds[is_reduction]
        begins, sizes = self._derivations.begins[actions], self._derivations.sizes[actions]
        places = self.cuts.indptr[:-1][is_reduction] + begins
        first = self.items.values[self.cuts.frontier[places], native.LABEL]
        last = self.items.values[self.cuts.frontier[places + sizes - 1], native.LABEL]
        labels = self._derivations.labels[actions]
        is_only = sizes == 1
        # A label that is never right has no positive examples.
        is_learnt = (
            np.bincount(labels[(sizes <= max_children) | (labels == native.TOP)], minlength=self.n_labels) > 0
        )
        tables[0][labels[~is_only], first[~is_only]] = True
        tables[1][labels[~is_only], last[~is_only]] = True
        tables[2][labels[is_only], first[is_only]] = True
        for table in tables:
            table[:, self.n_labels] = True  # an unknown tag is compatible with any label
        first, last, only = (table & is_learnt[:, None] for table in tables)
        return native.Grammar(first, last, only, max_children)

    @property
    def n_states(self) -> int:
        """Number of states on the paths to all gold trees."""
        return len(self._golds)

    @property
    def n_classifiers(self) -> int:
        """Number of classifiers: one per label, and one for the shift if there is one."""
        return len(self.names)

    def _considered(self, label: int) -> npt.NDArray[np.bool_]:
        is_used = np.zeros(len(self.inferences.states), dtype=np.bool_)
        native.mark_considered(self.grammar, self.items, self.cuts, self.inferences, label, is_used)
        return is_used

    def _is_right(self, numbers: Integers, label: int) -> npt.NDArray[np.bool_]:
        golds = self._golds[self.inferences.states[numbers]]
        if label == self.n_labels:
            return np.asarray(golds < 0)
        derivations = self._derivations
        is_right: npt.NDArray[np.bool_] = (
            (golds >= 0)
            & (derivations.begins[golds] == self.inferences.begins[numbers])
            & (derivations.sizes[golds] == self.inferences.sizes[numbers])
            & (derivations.labels[golds] == label)
        )
        return is_right

    def _share_biases(self) -> None:
        """Compute the weights of examples: in each state, both classes have the same total weight."""
        n_states = len(self._golds)
        counts = np.zeros((2, n_states), dtype=np.int64)
        for label in range(self.n_classifiers):
            numbers = np.flatnonzero(self._considered(label))
            is_right = self._is_right(numbers, label)
            for row, chosen in enumerate((numbers[~is_right], numbers[is_right])):
                counts[row] += np.bincount(self.inferences.states[chosen], minlength=n_states)
        self._biases = 0.5 / np.maximum(counts, 1)

    def examples(self, label: int, *, n_jobs: int = 1) -> "LabelExamples":
        """Return the training examples of a label; `n_jobs` threads process them."""
        numbers = np.flatnonzero(self._considered(label))
        is_right = self._is_right(numbers, label)
        biases = self._biases[is_right.astype(np.int64), self.inferences.states[numbers]]
        signs = np.where(is_right, 1, -1)
        return LabelExamples(self, numbers.astype(np.int32), label, signs, biases, n_jobs=n_jobs)


def _word_items(
    sentences: Sequence[TaggedSentence], encoder: PredicateEncoder, derivations: native.ActionSequences
) -> native.Items:
    """Return items for the words of sentences, with free slots for the constituents above them."""
    n_actions = np.diff(derivations.indptr)
    total = int(derivations.n_words.sum() + len(sentences) + n_actions.sum())
    items = make_items(total)
    at = 0
    for sentence, above in zip(sentences, n_actions.tolist(), strict=True):
        rows = encoder.encode(sentence)
        fill_words(items, at, rows)
        at += len(rows) + above
    return items


def make_items(size: int) -> native.Items:
    """Allocate items."""
    return native.Items(
        np.zeros((size, native.N_PREDICATES), dtype=np.int32),
        *(np.full(size, -1, dtype=np.int32) for _ in range(3)),
    )


def fill_words(items: native.Items, at: int, rows: list[list[int]]) -> None:
    """Write the words and the end of a sentence to `items`, starting at a position."""
    n_rows = len(rows)
    items.values[at : at + n_rows] = rows
    items.starts[at : at + n_rows] = np.arange(n_rows)
    items.ends[at : at + n_rows] = np.arange(1, n_rows + 1)
    items.onlys[at : at + n_rows] = -1


class LabelExamples:
    """The examples of one label: numbers of inferences, whether they are correct, and their weights."""

    def __init__(
        self,
        training: TrainingSet,
        numbers: Leaves,
        label: int,
        signs: npt.NDArray[np.int64],
        biases: npt.NDArray[np.float64],
        *,
        n_jobs: int = 1,
    ) -> None:
        self._training, self._numbers, self._label, self._jobs = training, numbers, label, n_jobs
        self.signs, self.biases = signs.astype(np.int8), biases

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self._numbers)

    @property
    def n_features(self) -> int:
        """Number of atomic features."""
        return self._training.table.n_features

    def extract(self, numbers: Integers) -> tuple[Integers, Leaves]:
        """Return the features of examples in the form that the protocol `Examples` requires."""
        chosen = self._numbers[numbers]
        indptr = np.zeros(len(chosen) + 1, dtype=np.int64)
        size = PER_EXAMPLE * len(chosen) + (1 << 16)
        while True:
            columns = np.empty(size, dtype=np.int32)
            atoms, source = self._training.table.arrays, self._training.source
            if extract_examples(atoms, source, self._label, chosen, FeatureRows(indptr, columns)):
                return indptr, columns[: indptr[-1]]
            size *= 2

    def percolate(self, tree: DecisionTree, out: Leaves) -> None:
        """Write the leaf that each example reaches in a tree to `out`."""
        tests = self._training.table.locate(tree.features)

        def fill(part: slice) -> None:
            percolate(self._training.source, self._label, self._numbers[part], tests, tree, out[part])

        map_slices(fill, self.n_examples, n_jobs=self._jobs)
