"""Inference without PyTorch: scores of arcs and relations from a trained network.

Sentences of similar length are processed together, so that nearly all of the work consists of products of
large matrices. The cells of a batch (roots and words) are stored in the order in which LSTMs read them: first
the roots of all sentences, then their first words, and so on; longer sentences come first. A step contains
only sentences that have not ended, so no padding is needed.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright.data.deptree import DepTree
from treewright.parsing.neural.inputs import COLUMNS, DistinctWords, Ids, WordInputs
from treewright.parsing.neural.pretrained import CHANNEL_SIZES, PREFIX
from treewright.parsing.neural.sizes import PART_ROLES, SLOPE
from treewright.scale import one_blas_thread

Floats = npt.NDArray[np.float32]
Weights = Mapping[str, Floats]
"""Weights of a network, by their names in `treewright.parsing.neural.network`."""
SENTENCES_AT_A_TIME, CELLS_AT_A_TIME = 256, 4096
"""Maximum numbers of sentences and of cells per batch; a sentence with more cells is a batch of its own."""
MOST_FORMS = 1 << 15
"""Maximum number of cached form vectors."""
HALF = np.float32(0.5)
NO_WEIGHTS = np.empty(0, dtype=np.float32)
SMALL_PRODUCT, SMALL_DEPTH, SMALL_WIDTH = 1_000_000, 384, 16
"""OpenBLAS uses different code for small products, of up to SMALL_PRODUCT multiplications. In experiments,
this code rounds like the code for larger products if the matrix has at most SMALL_DEPTH rows and a multiple
of SMALL_WIDTH columns. Products with a single vector are always rounded differently."""
ROWS_AT_A_TIME = 256
"""Number of rows of a product, chosen so that the results stay in the cache of a core."""


class ReadSentence(NamedTuple):
    """The result of a network for a sentence; row 0 is the root.

    Attributes
    ----------
    arcs : array, (n + 1, n + 1)
        Scores of arcs, with heads in rows.
    label_heads, label_modifiers : array, (n + 1, size)
        Vectors that score relations.
    parts : dict of str to array, (n + 2, size)
        Vectors that score second-order parts, by kind of part and role of words; the last row stands for no
        word.
    """

    arcs: Floats
    label_heads: Floats
    label_modifiers: Floats
    parts: Mapping[str, Floats] = MappingProxyType({})


class EncoderRunner:
    """Runs the sentence encoder of a trained network; it is thread-safe.

    Results do not depend on the number of threads or on earlier sentences. With the OpenBLAS code for AVX-512
    (SkylakeX), results do not depend on the other sentences of a batch either. With the OpenBLAS code for
    AVX2, and perhaps with other libraries, the last bits of a row of a product depend on its position, and
    therefore on the other sentences.

    Parameters
    ----------
    weights : mapping of str to array
        Weights from `network.to_arrays`.
    inputs : WordInputs
        Encodes words.
    """

    def __init__(self, weights: Weights, inputs: WordInputs) -> None:
        self._inputs = inputs
        n_layers = sum(name.endswith("weight_ih_l0") for name in weights)
        self._embeddings = {
            name: weights[f"embeddings.{name}.weight"]
            for name in (*COLUMNS, "feats")
            if f"embeddings.{name}.weight" in weights
        }
        self._pretrained = {
            name: (_prepare(weights[f"{PREFIX}{name}.weight"].T), weights[f"{PREFIX}{name}.bias"])
            for name in CHANNEL_SIZES
            if f"{PREFIX}{name}.weight" in weights
        }
        self._forms = _FormReader(weights, inputs)
        self._layers = [
            [_Lstm(weights, layer, suffix) for suffix in ("", "_reverse")] for layer in range(n_layers)
        ]

    def encode(self, trees: Sequence[DepTree]) -> Iterator[tuple[list[int], Floats]]:
        """Yield the states of roots and words in batches, one sentence after another.

        Yields
        ------
        numbers : list of int
            Numbers of the sentences.
        states : array, (n_cells, 2 * units)
            States, scaled by 2 relative to PyTorch.
        """
        order = np.argsort([-len(tree) for tree in trees], kind="stable").tolist()
        with one_blas_thread:
            for numbers in _batches(order, [len(tree) + 1 for tree in trees]):
                yield numbers, self._encode_batch([trees[number] for number in numbers])

    def _encode_batch(self, trees: Sequence[DepTree]) -> Floats:
        """Return the states of sentences sorted by descending length."""
        lengths = np.array([len(tree) + 1 for tree in trees])
        cells = _arrange(lengths)
        words = self._inputs.distinct(trees)
        places = np.empty_like(words.places)
        places[cells.numbers] = words.places
        states = self._run_layers(self._look_up(words), places, self._read_context(trees, cells), cells.spans)
        found: Floats = states[cells.numbers]
        return found

    def _look_up(self, words: DistinctWords) -> Floats:
        """Return the context-independent vectors of words."""
        parts = [self._forms.read(words.forms)]
        for name, table in self._embeddings.items():
            parts.append(table[words.feats].sum(axis=1) if name == "feats" else table[words.columns[name]])
        if "vectors" in self._pretrained and self._inputs.vectors is not None:
            parts.append(_multiply(self._inputs.vectors.look_up(words.forms), *self._pretrained["vectors"]))
        return np.concatenate(parts, axis=1)

    def _read_context(self, trees: Sequence[DepTree], cells: "_Cells") -> Floats | None:
        """Return the states of the pretrained encoder for each cell, or None if there is no encoder."""
        if "encoder" not in self._pretrained or self._inputs.encoder is None:
            return None
        rows = self._inputs.encoder.read_sentences([tree.words for tree in trees])
        states = np.concatenate([each[: len(tree) + 1] for each, tree in zip(rows, trees, strict=True)])
        found = np.empty((len(states), CHANNEL_SIZES["encoder"]), dtype=np.float32)
        found[cells.numbers] = _multiply(states, *self._pretrained["encoder"])
        return found

    def _run_layers(
        self, vectors: Floats, places: Ids, context: Floats | None, spans: Sequence[tuple[int, int]]
    ) -> Floats:
        """Return the states of the last layer; cell i is the word in row `places[i]` of `vectors`."""
        states = vectors
        for number, ways in enumerate(self._layers):
            found = np.empty((len(places), sum(lstm.units for lstm in ways)), dtype=np.float32)
            for lstm, columns in zip(ways, np.split(found, len(ways), axis=1), strict=True):
                if number:
                    gates = _multiply(states, lstm.into, lstm.bias)
                else:  # each distinct word is multiplied once
                    width = vectors.shape[1]
                    gates = _multiply(vectors, lstm.into[:width], lstm.bias)[places]
                    if context is not None:
                        gates += _multiply(context, lstm.into[width:])
                lstm.run(gates, spans, columns)
            states = found
        return states


class NetworkRunner(EncoderRunner):
    """Runs a trained network that scores arcs and relations.

    Parameters
    ----------
    weights : mapping of str to array
        Weights from `network.to_arrays`.
    inputs : WordInputs
        Encodes words.
    """

    def __init__(self, weights: Weights, inputs: WordInputs) -> None:
        super().__init__(weights, inputs)
        names = ("arc_head", "arc_modifier", "label_head", "label_modifier")
        # LSTM states are scaled by 2 relative to PyTorch.
        self._top = _prepare(np.vstack([weights[f"{name}.0.weight"] for name in names]).T * HALF)
        self._top_bias = np.concatenate([weights[f"{name}.0.bias"] for name in names])
        self._arc_size, self._label_size = (len(weights[f"{name}.0.bias"]) for name in names[1:3])
        self._arc_matrix, self._arc_bias = _prepare(weights["arc_matrix"]), weights["arc_bias"]
        tensor = weights["label_tensor"]
        self._n_labels = len(tensor)
        self._label_matrix = _prepare(tensor.transpose(1, 0, 2).reshape(tensor.shape[1], -1))
        self._parts = {
            f"{kind}_{role}": (_prepare(weights[f"{name}.weight"].T * HALF), weights[f"{name}.bias"])
            for kind, roles in PART_ROLES.items()
            for role in roles
            if f"{(name := f'parts.{kind}_{role}.0')}.weight" in weights
        }
        self._absent = weights.get("absent", NO_WEIGHTS)
        self._part_weights = {kind: weights.get(f"{kind}_weights", NO_WEIGHTS) for kind in PART_ROLES}

    def read(self, trees: Sequence[DepTree]) -> list[ReadSentence]:
        """Return the result of the network for each sentence."""
        found: dict[int, ReadSentence] = {}
        for numbers, states in self.encode(trees):
            lengths = [len(trees[number]) + 1 for number in numbers]
            found.update(zip(numbers, self._score(states, lengths), strict=True))
        return [found[number] for number in range(len(trees))]

    def arc_vectors(self, trees: Sequence[DepTree]) -> list[tuple[Floats, Floats]]:
        """Return the vectors that score arcs in each sentence: vectors of words as modifiers and as heads.

        Returns
        -------
        list of (array, array)
            Arrays (n + 1, size); the first row is the root.
        """
        found: dict[int, tuple[Floats, Floats]] = {}
        size = self._arc_size
        for numbers, states in self.encode(trees):
            top = _rectify(_multiply(states, self._top, self._top_bias))
            ends = np.cumsum([len(trees[number]) + 1 for number in numbers])[:-1]
            for number, rows in zip(numbers, np.split(top, ends), strict=True):
                found[number] = rows[:, size : 2 * size], rows[:, :size]
        return [found[number] for number in range(len(trees))]

    def label_scores(
        self, sentences: Sequence[ReadSentence], heads: Sequence[npt.NDArray[np.int32]]
    ) -> list[Floats]:
        """Return the scores of relations for the given heads of the words of each sentence.

        Parameters
        ----------
        sentences : sequence of ReadSentence
            Results of the network.
        heads : sequence of array, (n,)
            Heads of words; 0 is the root.

        Returns
        -------
        list of array, (n, n_labels)
            Scores of relations.
        """
        sizes = [len(each) for each in heads]
        below = np.ones((sum(sizes), self._label_size + 1), dtype=np.float32)
        above = np.ones_like(below)
        start = 0
        for sentence, mine, size in zip(sentences, heads, sizes, strict=True):
            below[start : start + size, :-1] = sentence.label_modifiers[1:]
            above[start : start + size, :-1] = sentence.label_heads[mine]
            start += size
        scores = np.empty((len(below), self._n_labels), dtype=np.float32)
        with one_blas_thread:
            for start in range(0, len(below), ROWS_AT_A_TIME):
                part = slice(start, start + ROWS_AT_A_TIME)
                products = _multiply(below[part], self._label_matrix)
                products = products.reshape(-1, self._n_labels, above.shape[1])
                np.matmul(products, above[part, :, np.newaxis], out=scores[part, :, np.newaxis])
        return np.split(scores, np.cumsum(sizes)[:-1]) if sizes else []

    def _score(self, states: Floats, lengths: Sequence[int]) -> Iterator[ReadSentence]:
        """Yield the result for each sentence of a batch."""
        top = _rectify(_multiply(states, self._top, self._top_bias))
        arc, label = self._arc_size, self._label_size
        modifiers = _multiply(top[:, arc : 2 * arc], self._arc_matrix, self._arc_bias)
        for_labels = top[:, 2 * arc :].copy()  # so that a caller who keeps it does not keep the rest
        roles = {name: _rectify(_multiply(states, *layer)) for name, layer in self._parts.items()}
        start = 0
        for length in lengths:
            mine = slice(start, start + length)
            start += length
            arcs = top[mine, :arc] @ modifiers[mine].T
            parts = {name: np.vstack([rows[mine], self._absent]) for name, rows in roles.items()}
            yield ReadSentence(arcs, for_labels[mine, :label], for_labels[mine, label:], parts)

    def part_scores(self, kind: str, sentence: ReadSentence, words: Ids) -> Floats:
        """Return the scores of second-order parts; the rows of `words` are their words, and -1 means none."""
        product = self._part_weights[kind]
        for column, role in enumerate(PART_ROLES[kind]):
            product = product * sentence.parts[f"{kind}_{role}"][words[:, column]]
        found: Floats = product.sum(axis=1)
        return found


class _Cells(NamedTuple):
    """The layout of the cells of a batch.

    Attributes
    ----------
    spans : list of tuple of int
        First cell and number of cells of each time step.
    numbers : array, (n_cells,)
        Numbers of the cells, one sentence after another.
    """

    spans: list[tuple[int, int]]
    numbers: npt.NDArray[np.int64]


def _arrange(lengths: npt.NDArray[np.int64]) -> _Cells:
    """Return the layout of cells; sentences must be sorted by descending length."""
    counts = np.searchsorted(-lengths, -np.arange(lengths[0]), side="left")
    starts = np.cumsum(counts) - counts
    numbers = np.concatenate([starts[:length] + row for row, length in enumerate(lengths.tolist())])
    return _Cells(list(zip(starts.tolist(), counts.tolist(), strict=True)), numbers)


def _batches(order: Sequence[int], lengths: Sequence[int]) -> Iterator[list[int]]:
    """Divide a list of sentences into batches."""
    batch: list[int] = []
    n_cells = 0
    for number in order:
        length = lengths[number]
        if batch and (len(batch) == SENTENCES_AT_A_TIME or n_cells + length > CELLS_AT_A_TIME):
            yield batch
            batch, n_cells = [], 0
        batch.append(number)
        n_cells += length
    if batch:
        yield batch


class _Lstm:
    """An LSTM in one direction.

    A single tanh computes all gates, because the logistic function of x is (tanh(x / 2) + 1) / 2. The factors
    of 1/2 are included in the weights; this is exact, because they are powers of 2. States and memory are
    scaled by 2 relative to PyTorch.
    """

    def __init__(self, weights: Weights, layer: int, suffix: str) -> None:
        into, back, *biases = (
            weights[f"lstms.{layer}.{name}_l0{suffix}"]
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        self.units = back.shape[1]
        self._reads_backward = bool(suffix)
        enter, forget, candidate, output = np.split(np.arange(4 * self.units), 4)
        order = np.concatenate([enter, forget, output, candidate])
        scale = np.repeat(np.array([0.5, 1.0], dtype=np.float32), [3 * self.units, self.units])[:, np.newaxis]
        self.into = _prepare((into[order] * scale).T * (HALF if layer else np.float32(1)))
        self.bias = (biases[0] + biases[1])[order] * scale[:, 0]
        self._back = _prepare((back[order] * scale).T * HALF)

    def run(self, gates: Floats, spans: Sequence[tuple[int, int]], states: Floats) -> None:
        """Compute the states of all cells; `gates` contains the inputs of gates and is overwritten."""
        units = self.units
        n_rows = max(count for _, count in spans)
        hidden = np.zeros((_padded_rows(n_rows, self._back), units), dtype=np.float32)
        products = np.empty((len(hidden), 4 * units), dtype=np.float32)
        memory = np.zeros((n_rows, units), dtype=np.float32)
        active = np.empty_like(memory)
        for step, (start, count) in enumerate(reversed(spans) if self._reads_backward else spans):
            now = gates[start : start + count]
            if step:
                rows = _padded_rows(count, self._back)
                now += np.matmul(hidden[:rows], self._back, out=products[:rows])[:count]
            np.tanh(now, out=now)
            now[:, : 3 * units] += 1
            enter, forget, output, candidate = (now[:, units * k : units * (k + 1)] for k in range(4))
            kept, squashed = memory[:count], active[:count]
            kept *= forget
            kept *= HALF
            enter *= candidate
            kept += enter
            np.multiply(kept, HALF, out=squashed)
            np.tanh(squashed, out=squashed)
            states[start : start + count] = np.multiply(output, squashed, out=hidden[:count])


class _FormReader:
    """Computes the vectors of forms from their characters, and caches them."""

    def __init__(self, weights: Weights, inputs: WordInputs) -> None:
        self._inputs = inputs
        self._characters = weights["characters.weight"]
        self._filters: list[tuple[Floats, Floats]] = []
        for name in ("narrow", "wide"):
            filters, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
            self._filters.append((_prepare(filters.transpose(2, 1, 0).reshape(-1, len(bias))), bias))
        self._known: dict[str, Floats] = {}

    def read(self, forms: Sequence[str]) -> Floats:
        """Return the vectors of forms, one per row."""
        known = self._known
        found = [known.get(form) for form in forms]
        missing = sorted({form for form, vector in zip(forms, found, strict=True) if vector is None})
        if missing:
            made = self._make(missing)
            found = [
                made[form] if vector is None else vector for form, vector in zip(forms, found, strict=True)
            ]
            # Threads that still use the old dictionary only lose their additions to it.
            self._known = known | made if len(known) + len(made) <= MOST_FORMS else made
        return np.array(found)

    def _make(self, forms: Sequence[str]) -> dict[str, Floats]:
        """Return the vectors of forms; the vector of a form does not depend on other forms."""
        by_length: dict[int, list[str]] = {}
        for form in forms:
            by_length.setdefault(len(form), []).append(form)
        found: dict[str, Floats] = {}
        for some in by_length.values():
            characters = self._inputs.spell(some)
            is_character = (characters > 0)[:, :, np.newaxis]
            vectors = self._characters[characters]
            vectors = _rectify(_convolve(vectors, *self._filters[0])) * is_character
            vectors = _convolve(vectors, *self._filters[1])
            found.update(zip(some, np.where(is_character, vectors, -np.inf).max(axis=1), strict=True))
        return found


def _convolve(vectors: Floats, filters: Floats, bias: Floats) -> Floats:
    """Convolve sequences of vectors, (n, length, size), with filters; padding is 0."""
    length, size = vectors.shape[1:]
    window = len(filters) // size
    half = window // 2
    padded = np.pad(vectors, ((0, 0), (half, half), (0, 0)))
    seen = np.concatenate([padded[:, at : at + length] for at in range(window)], axis=2)
    found: Floats = seen @ filters
    found += bias
    return found


def _multiply(rows: Floats, matrix: Floats, bias: Floats | None = None) -> Floats:
    """Return ``rows @ matrix + bias``; no row of the result depends on the number of rows."""
    found = np.empty((len(rows), matrix.shape[1]), dtype=np.float32)
    for start in range(0, len(rows), ROWS_AT_A_TIME):
        some, out = (each[start : start + ROWS_AT_A_TIME] for each in (rows, found))
        n_missing = _padded_rows(len(some), matrix) - len(some)
        if n_missing:
            some = np.vstack([some, np.zeros((n_missing, rows.shape[1]), dtype=np.float32)])
            out[:] = np.matmul(some, matrix)[: len(out)]
        else:
            np.matmul(some, matrix, out=out)
        if bias is not None:
            out += bias
    return found


def _padded_rows(n_rows: int, matrix: Floats) -> int:
    """Return the minimum number of rows with which a product is rounded like larger products."""
    depth, width = matrix.shape
    if width % SMALL_WIDTH == 0 and depth <= SMALL_DEPTH:
        return max(n_rows, 2)
    return max(n_rows, 2, SMALL_PRODUCT // matrix.size + 1)


def _prepare(matrix: Floats) -> Floats:
    """Return a contiguous float32 copy of a matrix."""
    return np.ascontiguousarray(matrix, dtype=np.float32)


def _rectify(values: Floats) -> Floats:
    found: Floats = np.maximum(values, np.float32(SLOPE) * values, out=values)
    return found
