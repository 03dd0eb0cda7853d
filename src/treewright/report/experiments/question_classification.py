"""Question classification: tree kernels compared with a bag of words.

Six classes of TREC questions (Li & Roth 2002), after Moschitti, Quarteroni, Basili & Manandhar (2007),
Exploiting Syntactic and Shallow Semantic Kernels for Question Answer Classification, and Croce, Moschitti &
Basili (2011), Structured Lexical Similarity via Convolution Kernels on Dependency Trees.

Each Gram matrix is computed once; the SVMs of all folds, costs and sums of kernels are trained on it. The
cost and the best row are chosen by cross-validation on the training questions.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.stats import binomtest
from sklearn.feature_extraction.text import CountVectorizer

from treewright._typing import FloatArray, Integers
from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.data.labelled_trees import to_constituents
from treewright.errors import InputError
from treewright.kernels.base import Kernel, PackedExamples
from treewright.kernels.compose import Part, Power, Sum, VectorKernel
from treewright.kernels.convolution import PartialTreeKernel, SmoothedPartialTreeKernel, SubsetTreeKernel
from treewright.kernels.gram import gram
from treewright.kernels.platt import deal_folds
from treewright.kernels.svm import RowCache, classification_problem, solve
from treewright.learn.vectors import learn_vectors
from treewright.progress import report, silenced, track
from treewright.report import show
from treewright.report.experiment import Inputs, choose_rows, experiment
from treewright.report.questions.focus import lemma_of, list_features
from treewright.report.questions.parses import LabelledQuestion, Parses, QuestionSettings, Readers
from treewright.report.separate_process import Values
from treewright.report.store import make_name
from treewright.report.tables import Column, Findings, Row, Table

COSTS = (0.3, 1.0, 3.0, 10.0)
N_GRAM = 2
VECTOR_SIZE, WINDOW = 100, 3
SUBSET_DECAY, PARTIAL_DECAY, DEPTH_DECAY = 0.4, 0.4, 0.4
TOLERANCE = 1e-3
BYTES = 4
"""Number of bytes of a kernel value."""

Matrix = npt.NDArray[np.float32]
Terms = tuple[tuple[str, float], ...]
"""Names and weights of kernels."""


class KernelSystem(NamedTuple):
    """A row of the table: a weighted sum of kernels, or the square of (1 + their weighted mean)."""

    title: str
    terms: Terms
    is_squared: bool = False

    @property
    def weights(self) -> list[float]:
        """Weights of the kernels; for a square, they sum to 1."""
        scale = sum(weight for _, weight in self.terms) if self.is_squared else 1.0
        return [weight / scale for _, weight in self.terms]

    def kernel(self, kernels: dict[str, Kernel]) -> Kernel:
        """Return the kernel of the row, composed of the given kernels."""
        total = Sum([kernels[name] for name, _ in self.terms], weights=self.weights)
        return Power(total, degree=2, offset=1.0) if self.is_squared else total

    def matrix(self, matrices: "Matrices") -> Matrix:
        """Return the Gram matrix of the row's kernel for all questions."""
        total = np.zeros_like(matrices[self.terms[0][0]])
        for (name, _), weight in zip(self.terms, self.weights, strict=True):
            total += np.float32(weight) * matrices[name]
        return (total + 1) ** 2 if self.is_squared else total


def _plain(title: str, *names: str) -> KernelSystem:
    return KernelSystem(title, tuple((name, 1.0) for name in names))


SYSTEMS = {
    "bag": _plain("bag of words", "counts"),
    "bag-normalized": _plain("bag of words, normalised (B)", "bag"),
    "focus": _plain("focus of the question (F)", "focus"),
    "sst": _plain("SST, constituents", "sst"),
    "pt": _plain("PT, constituents", "pt"),
    "pt-relations": _plain("PT, dependencies by relation", "relations"),
    "pt-lemmas": _plain("PT, dependencies by lemma", "lemmas"),
    "spt": _plain("smoothed PT, dependencies by lemma (SPT)", "smoothed"),
    "bag+sst": _plain("B + SST", "bag", "sst"),
    "bag+pt": _plain("B + PT, constituents", "bag", "pt"),
    "bag+pt-lemmas": _plain("B + PT, by lemma", "bag", "lemmas"),
    "bag+spt": _plain("B + SPT", "bag", "smoothed"),
    "bag+sst+pt-lemmas": _plain("B + SST + PT, by lemma", "bag", "sst", "lemmas"),
    "bag+spt+pt-lemmas": _plain("B + SPT + PT, by lemma", "bag", "smoothed", "lemmas"),
    "bag+focus": _plain("B + F", "bag", "focus"),
    "bag+focus+sst": _plain("B + F + SST", "bag", "focus", "sst"),
    "bag+focus+pt-lemmas": _plain("B + F + PT, by lemma", "bag", "focus", "lemmas"),
    "bag+focus+spt": _plain("B + F + SPT", "bag", "focus", "smoothed"),
    "bag+2focus+spt": KernelSystem("B + 2 F + SPT", (("bag", 1.0), ("focus", 2.0), ("smoothed", 1.0))),
    "squared": KernelSystem(
        "(1 + mean of B, F, SPT) squared", (("bag", 1.0), ("focus", 1.0), ("smoothed", 1.0)), True
    ),
}
BASE = "bag-normalized"
"""The baseline: the better of the two bags of words."""


class Example(NamedTuple):
    """A question in the representations that kernels use."""

    bag: csr_matrix
    focus: csr_matrix
    constituents: ConstTree
    dependencies: DepTree
    lemmas: ConstTree


def make_examples(questions: Sequence[LabelledQuestion], parses: Parses) -> list[Example]:
    """Return questions in the representations that kernels use."""
    trees = parses.dependencies
    n_grams = CountVectorizer(analyzer=list_n_grams, binary=True)
    bags = n_grams.fit_transform([question.words for question in questions])
    focuses = CountVectorizer(analyzer=list_features, binary=True).fit_transform(trees)
    return [
        Example(bag, focus, constituents, tree, _tree_of_lemmas(tree))
        for bag, focus, constituents, tree in zip(bags, focuses, parses.constituents, trees, strict=True)
    ]


def list_n_grams(words: Sequence[str]) -> list[str]:
    """Return unigrams and bigrams.

    Examples
    --------
    >>> list_n_grams(["Who", "sang", "?"])
    ['Who', 'sang', '?', 'Who sang', 'sang ?']
    """
    return [
        " ".join(words[begin : begin + size])
        for size in range(1, N_GRAM + 1)
        for begin in range(len(words) - size + 1)
    ]


def _lower_lemmas(tree: DepTree) -> list[str]:
    return [lemma_of(tree, place) for place in range(len(tree))]


def _tree_of_lemmas(tree: DepTree) -> ConstTree:
    lower = DepTree(tree.words, tree.heads, tree.deprels, xpos=tree.xpos, lemmas=_lower_lemmas(tree))
    return to_constituents(lower, centre="word", words="lemma")


def make_kernels(vectors: dict[str, FloatArray], *, n_jobs: int = 1) -> dict[str, Kernel]:
    """Return kernels of examples, by name; `vectors` are word vectors of lower-case lemmas."""
    subset = SubsetTreeKernel(decay=SUBSET_DECAY, normalize=True, n_jobs=n_jobs)
    partial_trees = PartialTreeKernel(
        decay=PARTIAL_DECAY, depth_decay=DEPTH_DECAY, normalize=True, n_jobs=n_jobs
    )
    smoothed = SmoothedPartialTreeKernel(
        vectors, decay=PARTIAL_DECAY, depth_decay=DEPTH_DECAY, normalize=True, n_jobs=n_jobs
    )
    return {
        "counts": Part(VectorKernel(), "bag"),
        "bag": Part(VectorKernel(normalize=True), "bag"),
        "focus": Part(VectorKernel(normalize=True), "focus"),
        "sst": Part(subset, "constituents"),
        "pt": Part(partial_trees, "constituents"),
        "relations": Part(partial_trees, "dependencies"),
        "lemmas": Part(partial_trees, "lemmas"),
        "smoothed": Part(smoothed, "lemmas"),
    }


class Matrices:
    """Gram matrices of all questions, computed on first use."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._made: dict[str, Matrix] = {}

    def __getitem__(self, name: str) -> Matrix:
        if name not in self._made:
            report(f"kernel values: {name}")
            kernel, examples = (
                self._kernels[name],
                self._examples,
            )  # may train parsers, which reports progress
            with silenced():
                self._made[name] = gram(kernel, examples, dtype=np.float32)
        return self._made[name]

    @cached_property
    def _parses(self) -> Parses:
        return self._readers.parses()

    @cached_property
    def _examples(self) -> list[Example]:
        return make_examples(self._readers.questions.all, self._parses)

    @cached_property
    def _kernels(self) -> dict[str, Kernel]:
        settings, corpus = self._readers.settings, self._readers.corpus
        known = [*(corpus.train if corpus else []), *self._parses.dependencies[: self._n_train]]
        sentences = [_lower_lemmas(tree) for tree in known]
        vectors = learn_vectors(
            sentences, size=VECTOR_SIZE, window=WINDOW, random_state=settings.random_state
        )
        used = {lemma for tree in self._parses.dependencies for lemma in _lower_lemmas(tree)}
        kept = {lemma: vector for lemma, vector in vectors.items() if lemma in used}
        if not kept:
            raise InputError(
                "no lemma of the questions occurs twice; expected at least one such lemma for word vectors"
            )
        return make_kernels(kept, n_jobs=settings.n_jobs)

    @property
    def _n_train(self) -> int:
        return len(self._readers.questions.train)


class _Values(PackedExamples):
    """Examples with precomputed kernel values."""

    def __init__(self, matrix: Matrix) -> None:
        self._matrix = matrix

    def __len__(self) -> int:
        return len(self._matrix)

    def block(self, rows_a: npt.ArrayLike, rows_b: npt.ArrayLike) -> FloatArray:
        places = np.ix_(np.asarray(rows_a), np.asarray(rows_b))
        return np.asarray(self._matrix[places], dtype=np.float64)

    def compare(self, examples: Sequence[Any]) -> FloatArray:
        return self.block(np.asarray(examples), np.arange(len(self)))

    def diagonal(self) -> FloatArray:
        return np.diag(self._matrix).astype(np.float64)


class Machines:
    """One-versus-rest SVMs on a Gram matrix whose last rows are the test questions."""

    def __init__(self, matrix: Matrix, labels: Sequence[str]) -> None:
        self._cache = RowCache(_Values(matrix), BYTES * matrix.size)
        self._cache.fetch(np.arange(len(matrix)))
        self._classes, self._numbers = np.unique(labels, return_inverse=True)

    def predict(self, cost: float) -> list[str]:
        """Return the predicted classes of the test questions."""
        n_train = len(self._numbers)
        return self._name(self._decide(np.arange(n_train), cost)[n_train:])

    def cross_validate(self, cost: float, folds: Integers) -> list[str]:
        """Return the cross-validated prediction for each training question."""
        decisions = np.empty((len(folds), len(self._classes)))
        for fold in np.unique(folds):
            found = self._decide(np.flatnonzero(folds != fold), cost)
            decisions[folds == fold] = found[: len(folds)][folds == fold]
        return self._name(decisions)

    def _decide(self, seen: Integers, cost: float) -> FloatArray:
        """Return decision values, (n_questions, n_classes)."""
        columns = []
        for number in range(len(self._classes)):
            signs = np.where(self._numbers[seen] == number, 1.0, -1.0)
            problem = classification_problem(seen, signs, np.full(len(seen), cost))
            with silenced():
                solution = solve(problem, self._cache, tol=TOLERANCE)
            columns.append(solution.scores + solution.intercept)
        return np.column_stack(columns)

    def _name(self, decisions: FloatArray) -> list[str]:
        return [str(name) for name in self._classes[decisions.argmax(axis=1)]]


class Trial:
    """The systems of the table, evaluated one by one; results are kept."""

    def __init__(self, settings: QuestionSettings, inputs: Inputs) -> None:
        self.readers = Readers(settings, inputs)
        self.labels = [question.label for question in self.readers.questions.train]
        if len(set(self.labels)) < 2:
            raise InputError(
                f"the training questions have one class, {self.labels[0]}; expected at least two"
            )
        self._store = inputs.store
        self._matrices = Matrices(self.readers)
        _, numbers = np.unique(self.labels, return_inverse=True)
        self._folds = deal_folds(numbers, settings.folds, random_state=settings.random_state)

    def tried(self, system: KernelSystem) -> Values:
        """Return the cost with the best cross-validation accuracy, and its predictions."""
        return self._store.find(self._name(system), partial(self._try, system))

    def _try(self, system: KernelSystem) -> Values:
        machines = Machines(system.matrix(self._matrices), self.labels)
        found = {cost: machines.cross_validate(cost, self._folds) for cost in COSTS}
        best = max(COSTS, key=lambda cost: (n_right(found[cost], self.labels), -cost))
        return {"cost": best, "unseen": found[best], "test": machines.predict(best)}

    def _name(self, system: KernelSystem) -> str:
        settings, corpus = self.readers.settings, self.readers.corpus
        fixed = [COSTS, N_GRAM, VECTOR_SIZE, WINDOW, SUBSET_DECAY, PARTIAL_DECAY, DEPTH_DECAY, TOLERANCE]
        options = [self.readers.name, system, settings.random_state, settings.folds, fixed, self.labels]
        return make_name(*options, trees=(corpus.train if corpus else [],))


def n_right(found: Iterable[str], labels: Iterable[str]) -> int:
    """Return the number of correct predictions."""
    return sum(one == other for one, other in zip(found, labels, strict=True))


def mcnemar(found: Sequence[str], base: Sequence[str], labels: Sequence[str]) -> float:
    """Return the exact p-value of McNemar's test.

    Examples
    --------
    >>> mcnemar("aaaaab", "bbbbbb", "aaaaab")
    0.0625
    """
    pairs = [(one == label, other == label) for one, other, label in zip(found, base, labels, strict=True)]
    n_won, n_lost = pairs.count((True, False)), pairs.count((False, True))
    return float(binomtest(n_won, n_won + n_lost).pvalue) if n_won + n_lost else 1.0


@experiment("question-classification", QuestionSettings)
def classification(settings: QuestionSettings, inputs: Inputs) -> Findings:
    """Compare bags of words, tree kernels and their sums on questions."""
    names = choose_rows(tuple(SYSTEMS), settings.systems, always=(BASE,))
    trial = Trial(settings, inputs)
    rows: list[dict[str, Any]] = []
    found: dict[str, Values] = {}
    for name in track(names, "rows of the table", unit="systems"):
        found[name] = trial.tried(SYSTEMS[name])
        rows.append(_row(trial, name, found))
        report(f"{rows[-1]['title']}: {rows[-1]['unseen']:.2f} in cross-validation")
    best = max(rows, key=lambda row: row["unseen"])
    best["title"] += " <- best"
    classes = _class_rows(trial, found[BASE], found[str(best["name"])])
    return Findings(
        "Question classification: tree kernels compared with a bag of words",
        (_table(rows, trial), _class_table(classes)),
        partial(_draw, rows=rows),
        "Accuracy in cross-validation on the training questions, and on the test questions.",
        _facts(trial),
    )


def _row(trial: Trial, name: str, found: dict[str, Values]) -> dict[str, Any]:
    """Return the scores of a system; the baseline is evaluated first if necessary."""
    base = found.get(BASE) or trial.tried(SYSTEMS[BASE])
    labels = {"unseen": trial.labels, "test": [each.label for each in trial.readers.questions.test]}
    row: dict[str, Any] = {"name": name, "title": SYSTEMS[name].title, "cost": found[name]["cost"]}
    for part, right in labels.items():
        score, other = (100 * n_right(each[part], right) / len(right) for each in (found[name], base))
        row[part] = score
        if name != BASE:
            row[f"{part}_difference"] = score - other
            row[f"{part}_p"] = mcnemar(found[name][part], base[part], right)
    return row


def _table(rows: Sequence[Row], trial: Trial) -> Table:
    groups = {"unseen": f"{trial.readers.settings.folds}-fold", "test": "test"}
    columns = [Column("title", "kernel"), Column("cost", "C", show.number)]
    for part, group in groups.items():
        columns += [
            Column(part, "accuracy", show.score, group),
            Column(f"{part}_difference", "gain", show.difference, group),
            Column(f"{part}_p", "p", show.p_value, group),
        ]
    notes = (
        f"Gains and p-values (exact McNemar test, two-sided) are relative to {SYSTEMS[BASE].title}.",
        "C and the best row are chosen by cross-validation on the training questions, so their "
        "cross-validation accuracy is slightly too high; the test questions are not used for that choice.",
        "However, the rows and the features of F were developed while test scores were known, so the test "
        "set is not unseen. Word vectors are trained without labels, on all folds.",
        "Bag of words: binary unigrams and bigrams. All kernels but the first are "
        "normalised. F: features of the question word, the focus noun and their context.",
        *(f"{name.capitalize()}: {told}." for name, told in trial.readers.describe().items()),
        "Reported on the same questions, with other parsers: 91.8 (Moschitti et al. 2007).",
    )
    return Table("Accuracy on the six coarse classes", columns, rows, notes)


def _class_rows(trial: Trial, base: Values, best: Values) -> list[dict[str, Any]]:
    labels = {"unseen": trial.labels, "test": [each.label for each in trial.readers.questions.test]}
    rows = []
    for label in sorted(set(trial.labels)):
        row: dict[str, Any] = {"label": label}
        for part, right in labels.items():
            places = [place for place, each in enumerate(right) if each == label]
            row[f"{part}_n"] = len(places)
            for name, found in (("base", base), ("best", best)):
                n_found = sum(found[part][place] == label for place in places)
                row[f"{part}_{name}"] = 100 * n_found / len(places) if places else None
        rows.append(row)
    return rows


def _class_table(rows: Sequence[Row]) -> Table:
    columns = [Column("label", "class")]
    for part, group in {"unseen": "train", "test": "test"}.items():
        columns += [
            Column(f"{part}_n", "questions", show.count, group),
            Column(f"{part}_base", "B", show.score, group),
            Column(f"{part}_best", "best", show.score, group),
        ]
    return Table("Recall by class (%)", columns, rows)


def _facts(trial: Trial) -> dict[str, str]:
    readers, settings = trial.readers, trial.readers.settings
    origin = "the treebank and the training questions" if readers.corpus else "the training questions"
    return {
        "questions": f"{len(readers.questions.train):,} training, {len(readers.questions.test):,} test",
        "vectors of lemmas": f"{VECTOR_SIZE} dimensions, window {WINDOW}, trained on {origin}",
        "decay": f"{SUBSET_DECAY} (SST), {PARTIAL_DECAY} and {DEPTH_DECAY} (PT, SPT)",
        "C tried": ", ".join(map(show.number, COSTS)),
        "folds": str(settings.folds),
        "random_state": str(settings.random_state),
    }


def _draw(figure: Any, *, rows: Sequence[Row]) -> None:  # noqa: ANN401
    figure.set_size_inches(7.5, 0.28 * len(rows) + 1)
    axes = figure.subplots()
    places = np.arange(len(rows))
    for number, (part, label) in enumerate({"unseen": "cross-validation", "test": "test"}.items()):
        axes.plot([row[part] for row in rows], places, "os"[number], label=label)
    axes.set_yticks(places, [str(row["title"]) for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("accuracy")
    axes.grid(axis="x", alpha=0.3)
    axes.legend()
