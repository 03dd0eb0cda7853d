"""Sentences, derivations and training examples of a parser by classification, as arrays.

J. Turian and I. D. Melamed (2006), section 3.4: examples are all inferences considered in the states along
the path to a gold tree. Each is stored as a few numbers; features are extracted when they are asked for.
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
    """What can be asked for: labels, the top first, tags, classes of tags, and frequent words."""

    labels: list[str]
    tags: list[str]
    classes: list[str]
    words: list[str]


def read_symbols(lists: Sequence[Sequence[str]]) -> Symbols:
    """Return symbols that were saved as lists, or raise `InputError` for what are no strings."""
    symbols = Symbols(*map(list, lists))
    for name, strings in symbols._asdict().items():
        if not all(isinstance(string, str) for string in strings):
            raise InputError(f"{name} are {quote(str(strings))}; expected strings")
    return symbols


class TaggedSentence(NamedTuple):
    """Words and tags, and what was dropped behind them, if anything was: a word and its tag."""

    words: Sequence[str]
    tags: Sequence[str]
    end: tuple[str, str] | None = None


MOST_ROWS = 1 << 18
"""Words with their tags whose values are remembered."""
PER_EXAMPLE = 100
"""Features for which there is room at first."""
NOTHING = ("", "")
"""What stands for the end of a sentence behind which nothing was dropped."""


def read_inside(words: Sequence[str], tags: Sequence[str], kept: Sequence[int]) -> TaggedSentence:
    """Return the words that a parser is given, and the first mark behind them but for quotation marks."""
    behind = [at for at in range(kept[-1] + 1, len(words)) if tags[at] not in QUOTES]
    end = (words[behind[0]], tags[behind[0]]) if behind else None
    return TaggedSentence([words[at] for at in kept], [tags[at] for at in kept], end)


class PredicateEncoder:
    """Turns words and tags into the values that predicates have for them.

    Parameters
    ----------
    symbols : Symbols
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
        """How many labels there are, the top included."""
        return len(self.symbols.labels)

    @property
    def symbol_names(self) -> list[str]:
        """The labels, and behind them the tags, of which the first is any unknown one."""
        return [*self.symbols.labels, "", *self.symbols.tags]

    def sizes(self) -> list[int]:
        """Return how many values each predicate has."""
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
            # Functions are cut off the tags of training trees too.
            number = self._tags.get(cut_functions(tag), 0)
            symbol = self.n_labels + number
            group = self._classes.get(class_of(cut_functions(tag)), 0)
            form = zlib.crc32(lower[-3:].encode()) % native.N_FORMS
            row = [symbol, self._words.get(lower, 0), number, group, symbol, symbol, form, 1, 0]
            self._rows[word, tag] = row
        return row

    def make_heads(self, rules: str) -> native.Heads:
        """Return head rules for the labels."""
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
    """Return how a sentence is written: all in capitals, the first word and the share of others with one."""
    first, *others = (word[:1].isupper() for word in words)
    share = round(2 * sum(others) / max(1, len(others)))
    return f"{' '.join(words).isupper()} {first} {share}"


def class_of(tag: str) -> str:
    """Return a name for the kind of a tag, by the Penn Treebank's, or the beginning of any other."""
    return CLASS_OF.get(tag, tag[:2])


def collect_symbols(trees: Sequence[ConstTree], *, min_count: int) -> Symbols:
    """Return what occurs in trees, words only if often enough."""
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
    """Return labels over tagged words with the first word and the number of children, from right to left."""
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
    """Return how trees, with a top, are put together from right to left."""
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
    """All inferences along the way to trees.

    Parameters
    ----------
    trees : sequence of ConstTree
        Prepared, with a top.
    sentences : sequence of TaggedSentence
        Their words.
    encoder : PredicateEncoder
    heads : Heads
    table : AtomTable
    is_shifting : bool
        Whether inferences begin at the focus, which is shifted, or anywhere up to it.
    max_children : int
    only_known : bool
        Consider a label only over a first and a last child, or an only child, that it was seen with.

    Attributes
    ----------
    names : list of str
        Of the classifiers: the labels, and the shift, if there is one.
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
        # A label that is right nowhere has nothing to be learnt from.
        is_learnt = (
            np.bincount(labels[(sizes <= max_children) | (labels == native.TOP)], minlength=self.n_labels) > 0
        )
        tables[0][labels[~is_only], first[~is_only]] = True
        tables[1][labels[~is_only], last[~is_only]] = True
        tables[2][labels[is_only], first[is_only]] = True
        for table in tables:
            table[:, self.n_labels] = True  # an unknown tag goes with any label
        first, last, only = (table & is_learnt[:, None] for table in tables)
        return native.Grammar(first, last, only, max_children)

    @property
    def n_states(self) -> int:
        """How many states there are on the way to all trees."""
        return len(self._golds)

    @property
    def n_classifiers(self) -> int:
        """How many labels there are, with the shift, if there is one."""
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
        """Find what a positive and a negative example of each state count: half a state, shared by all."""
        n_states = len(self._golds)
        counts = np.zeros((2, n_states), dtype=np.int64)
        for label in range(self.n_classifiers):
            numbers = np.flatnonzero(self._considered(label))
            is_right = self._is_right(numbers, label)
            for row, chosen in enumerate((numbers[~is_right], numbers[is_right])):
                counts[row] += np.bincount(self.inferences.states[chosen], minlength=n_states)
        self._biases = 0.5 / np.maximum(counts, 1)

    def examples(self, label: int, *, n_jobs: int = 1) -> "LabelExamples":
        """Return the examples for the classifier of a label, over which so many threads go."""
        numbers = np.flatnonzero(self._considered(label))
        is_right = self._is_right(numbers, label)
        biases = self._biases[is_right.astype(np.int64), self.inferences.states[numbers]]
        signs = np.where(is_right, 1, -1)
        return LabelExamples(self, numbers.astype(np.int32), label, signs, biases, n_jobs=n_jobs)


def _word_items(
    sentences: Sequence[TaggedSentence], encoder: PredicateEncoder, derivations: native.ActionSequences
) -> native.Items:
    """Return items with the words of sentences filled in, and room for what goes over them."""
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
    """Return room for items."""
    return native.Items(
        np.zeros((size, native.N_PREDICATES), dtype=np.int32),
        *(np.full(size, -1, dtype=np.int32) for _ in range(3)),
    )


def fill_words(items: native.Items, at: int, rows: list[list[int]]) -> None:
    """Write the words of a sentence and its end from a place on."""
    n_rows = len(rows)
    items.values[at : at + n_rows] = rows
    items.starts[at : at + n_rows] = np.arange(n_rows)
    items.ends[at : at + n_rows] = np.arange(1, n_rows + 1)
    items.onlys[at : at + n_rows] = -1


class LabelExamples:
    """The examples of one label: inferences by their numbers, whether they are right, what they count."""

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
        """How many there are."""
        return len(self._numbers)

    @property
    def n_features(self) -> int:
        """How many atomic features there are."""
        return self._training.table.n_features

    def extract(self, numbers: Integers) -> tuple[Integers, Leaves]:
        """Return the features of some examples, as `Examples` says."""
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
        """Write the number of the leaf that each example falls into."""
        tests = self._training.table.locate(tree.features)

        def fill(part: slice) -> None:
            percolate(self._training.source, self._label, self._numbers[part], tests, tree, out[part])

        map_slices(fill, self.n_examples, n_jobs=self._jobs)
