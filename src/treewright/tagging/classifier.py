"""A linear classifier of words in context, used for both tags and lemmas."""

import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from treewright._typing import IntArray
from treewright.checkpoint import Checkpoint
from treewright.data.templates import TemplateLanguage
from treewright.learn.weights import PackedWeights, average, pack, unpack
from treewright.model import Array, Model, State, expect, saved
from treewright.native.tagging.classifier import (
    CLASS,
    LABEL,
    LOWER,
    N_PREFIXES,
    N_SUFFIXES,
    N_WORD_ATTRIBUTES,
    PREFIX,
    SHAPE,
    SUFFIX,
    TAG,
    UPOS,
    WORD,
    EncodedText,
    Letters,
    Lexicon,
    OutcomeModel,
    WeightTable,
    WordTemplates,
    choose,
    fill_attributes,
    fill_rows,
    fill_text_keys,
    index_keys,
    learn,
)
from treewright.progress import task

ATTRIBUTES = {
    "word": WORD,
    "lower": LOWER,
    "class": CLASS,
    "shape": SHAPE,
    **{f"prefix{size}": PREFIX + size - 1 for size in range(1, N_PREFIXES + 1)},
    **{f"suffix{size}": SUFFIX + size - 1 for size in range(1, N_SUFFIXES + 1)},
    "upos": UPOS,
    "tag": TAG,
    "label": LABEL,
}
"""Names of attributes in templates."""
LEXICAL = {(WORD, 0), (LOWER, 0), (CLASS, 0)}
MAX_PARTS = 3
LANGUAGE = TemplateLanguage(ATTRIBUTES, roles=("w",), max_offset=2, max_atoms=MAX_PARTS)
"""Language of templates (see `treewright.data.templates`) for the current word ``w`` and its neighbours."""
KINDS = {"Lu": "X", "Lt": "X", "Ll": "x", "Nd": "0"}
"""Shape symbols by Unicode category; other letters become "c", marks "m"; other characters are unchanged."""

MARGIN = 30.0
SMALLEST = 0.5
"""Minimum absolute weight; smaller weights are dropped."""
LEARNT_AT_A_TIME = 1000
LEARNT = ("starts", "sizes", "rooms", "used", "pieces", "weights", "totals")
"""Arrays of a weight table that change during training."""
HIDING = 0.5
"""A word with count n is hidden in training with probability `HIDING` / sqrt(n)."""


class TableField:
    """A field of a model that holds a weight table."""

    def put(self, state: State, name: str, value: WeightTable) -> None:
        """Add the table to a saved state, sorted by key, which compresses best."""
        order = np.argsort(value.keys)
        keys, sizes = value.keys[order], value.sizes[order]
        places = _entry_places(value.starts[order], sizes)
        pieces, weights = value.pieces[places], value.weights[places]
        PackedWeights().put(state, name, weights)
        if state.compact:
            is_kept = state.arrays[f"{name}.codes"] > 0
            state.arrays[f"{name}.codes"] = state.arrays[f"{name}.codes"][is_kept]
            pieces = pieces[is_kept]
            rows = np.repeat(np.arange(len(keys)), sizes)[is_kept]
            sizes = np.bincount(rows, minlength=len(keys)).astype(sizes.dtype)
            keys, sizes = keys[sizes > 0], sizes[sizes > 0]
        state.arrays[f"{name}.gaps"] = np.diff(keys, prepend=keys.dtype.type(0))
        for key, numbers in (("sizes", sizes), ("pieces", pieces)):
            state.arrays[f"{name}.{key}"] = numbers.astype(
                np.min_scalar_type(int(numbers.max(initial=0)) + 1)
            )

    def take(self, state: State, name: str) -> WeightTable:
        """Remove the table from a saved state and return it."""
        gaps, sizes, pieces = (Array("u").take(state, f"{name}.{key}") for key in ("gaps", "sizes", "pieces"))
        keys = np.cumsum(gaps, dtype=np.uint64)
        weights = PackedWeights().take(state, name)
        expect(len(sizes) == len(keys), "a size for each key")
        expect(len(keys) == 0 or keys[-1] < 1 << 32, "32-bit keys")
        total = int(sizes.sum(dtype=np.int64))
        expect(total == len(pieces) == len(weights), "a piece and a weight for each table entry")
        return _make_table(keys.astype(np.uint32), sizes.astype(np.int32), pieces.astype(np.int32), weights)


class WordClassifier(Model):
    """Averaged perceptron that classifies words in context; its outcomes (classes) consist of pieces.

    Parameters
    ----------
    fixed, moving : str
        Feature templates, one per line; only those in `moving` use the outcomes of previous words.
    pieces : sequence of sequence of int
        The indices of the pieces of each outcome.

    Attributes
    ----------
    table_ : WeightTable
        The weights.
    """

    fields = saved(table_=TableField())

    def __init__(self, fixed: str, moving: str, pieces: Sequence[Sequence[int]]) -> None:
        self.fixed = fixed
        self.moving = moving
        self.pieces = pieces
        self._fixed = compile_templates(fixed)
        self._moving = compile_templates(moving, first_number=len(self._fixed.numbers))
        self._indptr = np.cumsum([0, *map(len, pieces)]).astype(np.int32)
        self._pieces = np.array([piece for each in pieces for piece in each], dtype=np.int32)

    def learn(
        self,
        text: EncodedText,
        labels: IntArray,
        gold: IntArray,
        n_seen: npt.NDArray[np.int64],
        *,
        epochs: int,
        runs: int = 1,
        random_state: int,
        min_count: int = 1,
        after_epoch: Callable[[int, int, float], None] | None = None,
        checkpoint: Checkpoint | None = None,
        what: str = "learning tags",
        unit: str = "sentences",
    ) -> Self:
        """Train on the words of a text.

        Parameters
        ----------
        text : EncodedText
            The encoded words.
        labels : ndarray of int32
            Labels that the fixed templates may use.
        gold : ndarray of int32
            The gold outcomes.
        n_seen : ndarray of int
            Count of each word in the training data. Rare words are hidden at random, so that the
            classifier also learns weights for unknown words.
        epochs, runs : int
            Number of passes over the text, and number of training runs to average.
        random_state : int
            Seed of the random number generator.
        min_count : int
            Minimum count of a feature.
        after_epoch : callable, optional
            Function that is called with the indices of the run and the epoch, and with the percentage of
            words without an update.
        checkpoint : Checkpoint, optional
            Stores each epoch; training resumes from the last one.
        what, unit : str
            Description and unit of the progress bar (see `treewright.progress`). `what` is also the name of
            the checkpoint step.
        """
        keys = self._keys(self._fixed, text, labels)
        empty = _empty_table(_frequent_keys([keys, self._keys(self._moving, text, gold)], min_count))
        rows = _find_rows(empty, keys)
        rng = np.random.default_rng(random_state)
        hiding = HIDING / np.sqrt(np.maximum(1, n_seen))
        saved = checkpoint.load(what) if checkpoint else None
        n_done = saved.values["epochs"] if saved else 0
        table, finished = _restore(empty, saved.arrays) if saved else (empty, NO_WEIGHTS)
        n_sentences = len(text.indptr) - 1
        with task(what, total=(runs * epochs - n_done) * n_sentences, unit=unit) as counted:
            for number in range(runs * epochs):
                order = rng.permutation(n_sentences)
                is_hidden = rng.random(len(gold)) < hiding
                if number < n_done:
                    continue  # draw the random numbers of skipped epochs, so that later ones are the same
                run, epoch = divmod(number, epochs)
                table = _copy(empty) if epoch == 0 else table
                n_safe, step = len(gold), epoch * len(gold)
                for part in counted.slices(n_sentences, LEARNT_AT_A_TIME):
                    block, model = order[part], self._model(table)
                    table, n_updates = learn(model, text, rows, gold, is_hidden, MARGIN, block, step)
                    step += int((text.indptr[block + 1] - text.indptr[block]).sum())
                    n_safe -= n_updates
                if epoch + 1 == epochs:
                    finished = finished.plus(table, step)
                if checkpoint:
                    arrays = {name: getattr(table, name) for name in LEARNT} | finished._asdict()
                    checkpoint.save(what, State("Epochs", {"epochs": number + 1}, arrays))
                if after_epoch:
                    after_epoch(run, epoch, 100 * n_safe / len(gold))
        self.table_ = finished.mean(empty.keys, runs)
        return self

    def choose(self, text: EncodedText, labels: IntArray) -> IntArray:
        """Return the predicted outcomes of the words of a text."""
        found = np.zeros(len(text.types), dtype=np.int32)
        rows = _find_rows(self.table_, self._keys(self._fixed, text, labels))
        choose(self._model(self.table_), text, rows, found)
        return found

    def check_fitted_state(self) -> None:
        """Check that each weight belongs to a piece of an outcome."""
        expect(self.table_.pieces.max(initial=-1) <= self._pieces.max(initial=-1), "weights of known pieces")

    def _model(self, table: WeightTable) -> OutcomeModel:
        n_pieces = int(self._pieces.max(initial=-1)) + 1
        return OutcomeModel(self._fixed, self._moving, self._indptr, self._pieces, n_pieces, table)

    @staticmethod
    def _keys(templates: WordTemplates, text: EncodedText, labels: IntArray) -> npt.NDArray[np.uint32]:
        keys = np.empty((len(text.types), len(templates.numbers)), dtype=np.uint32)
        fill_text_keys(templates, text, labels, keys)
        return keys


def compile_templates(text: str, *, first_number: int = 0) -> WordTemplates:
    """Compile template lines into arrays; the templates are numbered from `first_number`."""
    lines = [
        [(ATTRIBUTES[atom.attribute], atom.offset) for atom in template.atoms]
        for template in LANGUAGE.parse(text)
    ]
    parts = np.zeros((len(lines), MAX_PARTS, 2), dtype=np.int32)
    for number, line in enumerate(lines):
        parts[number, : len(line)] = line
    return WordTemplates(
        np.arange(first_number, first_number + len(lines), dtype=np.int32),
        np.array([len(line) for line in lines], dtype=np.int32),
        parts,
        np.array([not LEXICAL.isdisjoint(line) for line in lines], dtype=np.bool_),
    )


def word_attributes(words: Sequence[str], lexicon: Lexicon) -> npt.NDArray[np.uint64]:
    """Return the attributes of words, one row per word."""
    points = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    distinct, which = np.unique(points, return_inverse=True)
    letters = [chr(point) for point in distinct.tolist()]
    folded = np.array([ord(_fold(letter)) for letter in letters], dtype=np.uint32)[which]
    shapes = np.array([ord(_kind(letter)) for letter in letters], dtype=np.uint32)[which]
    indptr = np.cumsum([0, *map(len, words)])
    attributes = np.empty((len(words), N_WORD_ATTRIBUTES), dtype=np.uint64)
    fill_attributes(Letters(indptr, points, folded, shapes), lexicon, attributes)
    return attributes


def hash_words(words: Sequence[str], attribute: int = WORD) -> npt.NDArray[np.uint64]:
    """Return one attribute of each word, as a hash."""
    no_words = Lexicon(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int32))
    hashes: npt.NDArray[np.uint64] = word_attributes(words, no_words)[:, attribute]
    return hashes


def _fold(letter: str) -> str:
    """Return a letter in lower case, as a single character, or 0 for a digit."""
    return "0" if letter.isdigit() else letter.lower()[0]


def _kind(letter: str) -> str:
    """Return the shape symbol of a letter."""
    category = unicodedata.category(letter)
    return KINDS.get(category) or {"L": "c", "M": "m"}.get(category[0], letter)


def _frequent_keys(keys: Sequence[npt.NDArray[np.uint32]], min_count: int) -> npt.NDArray[np.uint32]:
    """Return the sorted keys that have at least the minimum count."""
    distinct, counts = np.unique(np.concatenate([each.ravel() for each in keys]), return_counts=True)
    return distinct[counts >= min_count]


def _find_rows(table: WeightTable, keys: npt.NDArray[np.uint32]) -> IntArray:
    rows = np.empty(keys.shape, dtype=np.int32)
    fill_rows(table, keys, rows)
    return rows


def _empty_table(keys: npt.NDArray[np.uint32]) -> WeightTable:
    sizes = np.zeros(len(keys), dtype=np.int32)
    return _make_table(keys, sizes, np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32))


def _make_table(
    keys: npt.NDArray[np.uint32], sizes: IntArray, pieces: IntArray, weights: npt.NDArray[np.float32]
) -> WeightTable:
    """Build a table whose rows are contiguous."""
    slots = np.full(1 << (2 * len(keys)).bit_length(), -1, dtype=np.int32)
    index_keys(keys, slots)
    starts = np.cumsum(sizes, dtype=np.int64) - sizes
    used = np.array([len(pieces)])
    return WeightTable(slots, keys, starts, sizes, sizes.copy(), used, pieces, weights, np.zeros(len(pieces)))


def _entry_places(starts: npt.NDArray[np.int64], sizes: IntArray) -> npt.NDArray[np.int64]:
    """Return the positions of the entries of rows, one row after another."""
    places: npt.NDArray[np.int64] = np.arange(sizes.sum()) + np.repeat(
        starts - np.cumsum(sizes) + sizes, sizes
    )
    return places


class _SummedWeights(NamedTuple):
    """Sums of the averaged weights of finished runs, by row of the table and piece."""

    summed_rows: npt.NDArray[np.int64]
    summed_pieces: IntArray
    summed_weights: npt.NDArray[np.float64]

    def plus(self, table: WeightTable, n_steps: int) -> "_SummedWeights":
        """Return the sums with another table, whose weights are averaged over its steps."""
        rows = np.repeat(np.arange(len(table.keys)), table.sizes)
        places = _entry_places(table.starts, table.sizes)
        weights = average(table.weights[places], table.totals[places], n_steps)
        rows = np.concatenate([self.summed_rows, rows])
        pieces = np.concatenate([self.summed_pieces, table.pieces[places]])
        n_pieces = int(pieces.max(initial=0)) + 1
        entries, which = np.unique(rows * n_pieces + pieces, return_inverse=True)
        sums = np.bincount(which, weights=np.concatenate([self.summed_weights, weights])).astype(np.float64)
        return _SummedWeights(entries // n_pieces, (entries % n_pieces).astype(np.int32), sums)

    def mean(self, keys: npt.NDArray[np.uint32], runs: int) -> WeightTable:
        """Return a table of the mean weights, without small weights and empty rows.

        The weights are rounded as in a saved model, so that saving does not change predictions.
        """
        weights = (self.summed_weights / runs).astype(np.float32)
        is_kept = np.abs(weights) >= SMALLEST
        sizes = np.bincount(self.summed_rows[is_kept], minlength=len(keys)).astype(np.int32)
        has_weights = sizes > 0
        pieces = self.summed_pieces[is_kept]
        return _make_table(keys[has_weights], sizes[has_weights], pieces, unpack(pack(weights[is_kept])))


NO_WEIGHTS = _SummedWeights(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0))


def _copy(table: WeightTable) -> WeightTable:
    """Return a table with copies of the arrays that change during training."""
    return table._replace(**{name: getattr(table, name).copy() for name in LEARNT})


def _restore(empty: WeightTable, arrays: dict[str, npt.NDArray[Any]]) -> tuple[WeightTable, _SummedWeights]:
    """Return the table and the sums of a checkpoint."""
    table = empty._replace(**{name: arrays[name] for name in LEARNT})
    return table, _SummedWeights(*(arrays[name] for name in _SummedWeights._fields))
