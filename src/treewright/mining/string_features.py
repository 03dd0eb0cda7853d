"""A scikit-learn transformer that selects gappy n-grams of texts, and a classifier based on them."""

import hashlib
import os
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.svm import LinearSVC
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from treewright._typing import (
    Count,
    FloatArray,
    Fraction,
    IntArray,
    Jobs,
    NonNegativeFloat,
    NonNegativeInt,
    RandomState,
)
from treewright._validate import check_params
from treewright.checkpoint import Checkpoint
from treewright.data.frames import in_set_output
from treewright.errors import InputError
from treewright.mining.classifier import Explanation, Linear, explain_scores
from treewright.mining.estimator import choose
from treewright.mining.gradient import GradientMiner
from treewright.mining.problem import label_problem
from treewright.mining.reports import IterationReport, Mined
from treewright.mining.strings import StringSpace, match_grams
from treewright.mining.text_items import ATTRIBUTES, EXPECTED, Attribute, TextEncoder, name_gram
from treewright.model import Array, Arrays, Classes, Model, Value, expect, is_within, saved, seeded

GAP = ".."
"""Mark in `features_` where positions may be skipped."""
N_MARKS = 2
"""Number of marks (beginning and end of a text) that an n-gram can contain in addition to its words."""
LINEAR_ITERATIONS = 10_000
"""Maximum number of iterations of the linear SVM."""


class StringEstimator(Model, BaseEstimator):  # type: ignore[misc]
    """Base class of the transformer and the classifier of texts: mining, and finding n-grams in new texts.

    Each subclass declares the options itself, as scikit-learn requires.

    Attributes
    ----------
    items_ : list of str
        The items of the selected n-grams.
    orders_ : dict of int to ndarray of int32, (n_grams, order)
        The codes of the n-grams of each order, as in `StringSpace`.
    """

    fields = saved(
        attributes=Value(encode=list, decode=tuple),
        classes_=Classes(),
        items_=Value(encode=list, decode=list),
        n_iter_=Value(int),
        orders_=Arrays(Array("i", 2)),
        coef_=Array("f", 2),
        intercept_=Array("f"),
    )

    classes_: npt.NDArray[Any]
    coef_: FloatArray
    intercept_: FloatArray
    items_: list[str]
    degree: int
    attributes: Sequence[Attribute]
    max_gap: int
    char_degree: int
    max_char_gap: int
    threshold: float
    max_iter: int
    refine: int
    path: bool
    tol: float
    token_pattern: str
    n_jobs: int

    def _mine(
        self,
        X: Any,  # noqa: ANN401
        y: Any,  # noqa: ANN401
        checkpoint: str | os.PathLike[str] | None,
    ) -> tuple[Mined, csr_matrix, npt.NDArray[np.int64]]:
        """Select n-grams; return the result of mining, the n-grams of each text, and the class indices."""
        check_params(self)
        texts = check_texts(X)
        labels = self._check_labels(y, len(texts))
        space = StringSpace(
            texts,
            attributes=self.attributes,
            max_gap=self.max_gap,
            max_char_gap=self.max_char_gap,
            word_degree=self.degree,
            char_degree=self.char_degree,
            token_pattern=self.token_pattern,
            n_jobs=self.n_jobs,
        )
        has_words, has_characters = space.encoder.has_words, space.encoder.has_characters
        miner = GradientMiner(
            degree=max((self.degree + N_MARKS) * has_words, self.char_degree * has_characters),
            threshold=self.threshold,
            max_iter=self.max_iter,
            refine=self.refine,
            tol=self.tol,
            path=self.path,
            random_state=self.random_state,
        )
        kept = Checkpoint(checkpoint, self._identity(space, labels)) if checkpoint is not None else None
        mined = miner.fit(space, label_problem(labels, len(self.classes_)), checkpoint=kept)
        if not mined.n_selected:
            warnings.warn(
                f"no n-gram is selected with threshold {self.threshold:g}; use a lower threshold",
                stacklevel=3,
            )
        found = space.match(list(mined.features.values())).astype(np.float64)
        self.history_: list[IterationReport] = list(mined.iterations)
        self.n_iter_ = len(self.history_)
        self._set_features(mined.features, space.items)
        return mined, found, labels

    def _check_labels(self, y: Any, n_texts: int) -> npt.NDArray[np.int64]:  # noqa: ANN401
        """Store the classes, and return the class index of each text."""
        if y is None:
            raise InputError("y is None; expected a label for each text")
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        if len(y) != n_texts:
            raise InputError(f"y has {len(y)} labels; expected {n_texts}, one per text")
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y has only one class, {self.classes_.tolist()[0]!r}; expected at least two")
        return numbers

    def _identity(self, space: StringSpace, labels: npt.NDArray[np.int64]) -> str:
        """Return a fingerprint of the data and options, which differs after any relevant change."""
        options = sorted((name, value) for name, value in self.result_params().items())
        digest = hashlib.sha256(repr((options, space.items)).encode("utf-8", "surrogatepass"))
        for array in (*space.rows.sequences, space.rows.indptr, labels):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def _set_features(self, features: dict[int, IntArray], items: Sequence[str]) -> None:
        """Store n-grams and their items, which are renumbered."""
        used = np.unique(
            np.concatenate([np.zeros(0, np.int32), *(each.ravel() // 2 for each in features.values())])
        )
        self.items_ = [items[item] for item in used]
        self.orders_ = {
            order: (2 * np.searchsorted(used, each // 2) + each % 2).astype(np.int32)
            for order, each in features.items()
        }
        self._list_features()

    def _list_features(self) -> None:
        self.features_ = [
            tuple(
                part
                for code in row
                for part in ((GAP, self.items_[code // 2]) if code % 2 else (self.items_[code // 2],))
            )
            for each in self.orders_.values()
            for row in each.tolist()
        ]

    def _find(self, X: Any) -> csr_matrix:  # noqa: ANN401
        """Return which n-grams are present in new texts."""
        check_is_fitted(self)
        encoder = TextEncoder(
            self.attributes,
            max_gap=self.max_gap,
            max_char_gap=self.max_char_gap,
            token_pattern=self.token_pattern,
        )
        vocabulary = {item: number for number, item in enumerate(self.items_)}
        rows = encoder.encode(check_texts(X), vocabulary, is_fixed=True)
        return match_grams(rows, list(self.orders_.values())).astype(np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:  # noqa: ANN401
        """Return the n-grams as text, such as ``^ lower=how lower=many`` and ``lower=what .. lower=city``.

        Parameters
        ----------
        input_features : object, optional
            Ignored; it exists for compatibility with scikit-learn.

        Returns
        -------
        ndarray of str, (n_features,)
            Names in the order of `features_`.
        """
        check_is_fitted(self)
        rows = [row for each in self.orders_.values() for row in each.tolist()]
        return np.array([name_gram(row, self.items_) for row in rows], dtype=object)

    def check_fitted_state(self) -> None:
        """Check that n-grams consist of known items and have weights."""
        n_machines = 1 if len(self.classes_) == 2 else len(self.classes_)
        expect(all(isinstance(item, str) for item in self.items_), "items that are strings")
        expect(len(set(self.items_)) == len(self.items_), "different items")
        expect(all(each in ATTRIBUTES for each in self.attributes), "known attributes")
        for order, codes in self.orders_.items():
            expect(codes.shape[1] == order > 0, "n-grams under their order")
            expect(is_within(codes, 2 * len(self.items_)), "n-grams of items")
        n_grams = sum(map(len, self.orders_.values()))
        expect(self.coef_.shape == (n_machines, n_grams), "a weight for each n-gram")
        expect(len(self.intercept_) == n_machines, "an intercept for each class")

    def restore(self) -> None:
        """Rebuild the list of n-grams; the history of mining is empty because it is not saved."""
        self.orders_ = {order: self.orders_[order].astype(np.int32) for order in sorted(self.orders_)}
        self._list_features()
        self.history_ = []

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.target_tags.required = True
        return tags


class StringFeatureMiner(TransformerMixin, StringEstimator):  # type: ignore[misc]
    """Transformer that selects gappy n-grams of words, tags and characters.

    An n-gram is counted only if its prefix and its items are frequent in texts that violate the margin, so
    the space of all n-grams is never enumerated.

    Parameters
    ----------
    degree : int
        Maximum number of words in an n-gram. The beginning and the end of the text do not count.
    attributes : sequence of {"word", "lower", "prefix", "suffix", "tag", "char", "lower_char"}
        Items of n-grams: words, lower-cased words, the first four and the last three characters of longer
        words, tags, characters, lower-cased characters. An n-gram can mix attributes of words; characters
        form separate n-grams. "tag" requires lists of (word, tag) pairs.
    max_gap : int
        Maximum number of words skipped between two words of an n-gram with gaps. N-grams without gaps are
        separate features.
    char_degree : int
        Maximum number of characters in an n-gram of characters.
    max_char_gap : int
        Maximum number of characters skipped between two characters of an n-gram.
    threshold : float
        L1 threshold; a higher one selects fewer n-grams. An n-gram is selected if its counts in violating
        texts for and against a class differ by more than this.
    max_iter : int
        Maximum number of mining rounds.
    refine : int
        Number of passes over the texts between two mining rounds.
    path : bool
        Lower the threshold step by step to its final value, which selects fewer n-grams. If False, the final
        threshold applies from the start, which is faster and sometimes better with many texts, but can miss
        important n-grams with few texts.
    tol : float
        Stop when two rounds in a row lower the objective by less than this fraction.
    token_pattern : str
        Regular expression that finds the words of a string.
    n_jobs : int
        Number of threads (-1: all processors); results do not depend on it.
    random_state : int, Generator, RandomState or None
        Seed of the random number generator. With None, results differ between calls.

    Attributes
    ----------
    features_ : list of tuple of str
        The items of each selected n-gram, in order; ``".."`` marks where words may be skipped. ``"^"`` and
        ``"$"`` are the beginning and the end of a text.
    coef_ : ndarray of float, (n_classes or 1, n_features)
        Weights of the n-grams; a single row if there are two classes.
    intercept_ : ndarray of float, (n_classes or 1,)
        Intercepts; a single one if there are two classes.
    classes_ : ndarray, (n_classes,)
        The class labels.
    items_ : list of str
        The items of the selected n-grams, by index.
    history_ : list of IterationReport
        A report of each round; empty in a loaded model.
    n_iter_ : int
        Number of mining rounds.

    See Also
    --------
    StringFeatureClassifier : Trains a classifier on the selected n-grams.
    StringSpace : The space that is searched.
    ConjunctionMiner : Selects conjunctions of binary features.

    Examples
    --------
    >>> import treewright as tw
    >>> texts = ["who wrote it", "who is she", "where is it", "where was she"] * 3
    >>> miner = tw.StringFeatureMiner(degree=2, threshold=2).fit(texts, ["HUM", "HUM", "LOC", "LOC"] * 3)
    >>> "lower=who" in miner.get_feature_names_out()
    True
    >>> miner.transform(["who was it"]).shape == (1, len(miner.features_))
    True
    """

    def __init__(
        self,
        *,
        degree: Count = 2,
        attributes: Sequence[Attribute] = ("lower", "prefix"),
        max_gap: NonNegativeInt = 3,
        char_degree: Count = 5,
        max_char_gap: NonNegativeInt = 0,
        threshold: NonNegativeFloat = 1.0,
        max_iter: Count = 5,
        refine: NonNegativeInt = 10,
        path: bool = True,
        tol: Fraction = 1e-3,
        token_pattern: str = r"\w+|[^\w\s]",
        n_jobs: Jobs = 1,
        random_state: RandomState = 0,
    ) -> None:
        self.degree = degree
        self.attributes = attributes
        self.max_gap = max_gap
        self.char_degree = char_degree
        self.max_char_gap = max_char_gap
        self.threshold = threshold
        self.max_iter = max_iter
        self.refine = refine
        self.path = path
        self.tol = tol
        self.token_pattern = token_pattern
        self.n_jobs = n_jobs
        self.random_state = random_state

    @seeded
    def fit(
        self,
        X: Any,  # noqa: ANN401
        y: Any = None,  # noqa: ANN401
        *,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Select n-grams.

        Parameters
        ----------
        X : sequence of str, list of str, or list of (str, str), (n_texts,)
            Strings, lists of words, or lists of (word, tag) pairs.
        y : array, (n_texts,)
            Labels of any kind.
        checkpoint : path, optional
            Folder in which each round is saved; after an interruption, the same call resumes from it.
        """
        mined, _, _ = self._mine(X, y, checkpoint)
        self.coef_ = np.ascontiguousarray(mined.weights.T)
        self.intercept_ = mined.intercept
        return self

    def transform(self, X: Any) -> Any:  # noqa: ANN401
        """Return which of the selected n-grams are present in each text.

        Parameters
        ----------
        X : sequence of str, list of str, or list of (str, str), (n_texts,)
            Strings, lists of words, or lists of (word, tag) pairs.

        Returns
        -------
        csr_matrix of float, (n_texts, n_features)
            1 where an n-gram is present, and 0 elsewhere, with the columns in the order of `features_`.
            After ``set_output(transform="pandas")``, a data frame with sparse columns.
        """
        return in_set_output(self, self._find(X), X)


class StringFeatureClassifier(ClassifierMixin, StringEstimator):  # type: ignore[misc]
    """Text classifier based on selected gappy n-grams.

    A linear SVM is trained on the selected n-grams.

    Parameters
    ----------
    degree : int
        Maximum number of words in an n-gram. The beginning and the end of the text do not count.
    attributes : sequence of {"word", "lower", "prefix", "suffix", "tag", "char", "lower_char"}
        Items of n-grams: words, lower-cased words, the first four and the last three characters of longer
        words, tags, characters, lower-cased characters. An n-gram can mix attributes of words; characters
        form separate n-grams. "tag" requires lists of (word, tag) pairs.
    max_gap : int
        Maximum number of words skipped between two words of an n-gram with gaps. N-grams without gaps are
        separate features.
    char_degree : int
        Maximum number of characters in an n-gram of characters.
    max_char_gap : int
        Maximum number of characters skipped between two characters of an n-gram.
    threshold : float
        L1 threshold; a higher one selects fewer n-grams. An n-gram is selected if its counts in violating
        texts for and against a class differ by more than this.
    max_iter : int
        Maximum number of mining rounds.
    refine : int
        Number of passes over the texts between two mining rounds.
    path : bool
        Lower the threshold step by step to its final value, which selects fewer n-grams. If False, the final
        threshold applies from the start, which is faster and sometimes better with many texts, but can miss
        important n-grams with few texts.
    tol : float
        Stop when two rounds in a row lower the objective by less than this fraction.
    token_pattern : str
        Regular expression that finds the words of a string.
    n_jobs : int
        Number of threads (-1: all processors); results do not depend on it.
    random_state : int, Generator, RandomState or None
        Seed of the random number generator. With None, results differ between calls.
    C : float
        Inverse of the L2 penalty of the SVM.
    decay : float
        Factor by which each gap reduces the value of an n-gram. An n-gram with two gaps has the value ``decay
        ** 2``, so it is penalised more for the same contribution to a score.

    Attributes
    ----------
    features_ : list of tuple of str
        The items of each selected n-gram, in order; ``".."`` marks where words may be skipped. ``"^"`` and
        ``"$"`` are the beginning and the end of a text.
    classes_ : ndarray, (n_classes,)
        The class labels.
    items_ : list of str
        The items of the selected n-grams, by index.
    history_ : list of IterationReport
        A report of each round; empty in a loaded model.
    n_iter_ : int
        Number of mining rounds.
    coef_ : ndarray of float, (n_classes or 1, n_features)
        Weights of the linear SVM; a single row if there are two classes.
    intercept_ : ndarray of float, (n_classes or 1,)
        Intercepts of the linear SVM; a single one if there are two classes.

    See Also
    --------
    StringFeatureMiner : Only selects the n-grams.
    TreeKernelClassifier : Classifies trees of sentences.

    Examples
    --------
    >>> import treewright as tw
    >>> texts = ["who wrote it", "who is she", "where is it", "where was she"] * 3
    >>> classifier = tw.StringFeatureClassifier().fit(texts, ["HUM", "HUM", "LOC", "LOC"] * 3)
    >>> classifier.predict(["who was it"]).tolist()
    ['HUM']
    """

    def __init__(
        self,
        *,
        degree: Count = 2,
        attributes: Sequence[Attribute] = ("lower", "prefix"),
        max_gap: NonNegativeInt = 3,
        char_degree: Count = 5,
        max_char_gap: NonNegativeInt = 0,
        threshold: NonNegativeFloat = 1.0,
        C: NonNegativeFloat = 0.1,  # noqa: N803
        decay: Fraction = 0.5,
        max_iter: Count = 5,
        refine: NonNegativeInt = 10,
        path: bool = True,
        tol: Fraction = 1e-3,
        token_pattern: str = r"\w+|[^\w\s]",
        n_jobs: Jobs = 1,
        random_state: RandomState = 0,
    ) -> None:
        self.degree = degree
        self.attributes = attributes
        self.max_gap = max_gap
        self.char_degree = char_degree
        self.max_char_gap = max_char_gap
        self.threshold = threshold
        self.C = C
        self.decay = decay
        self.max_iter = max_iter
        self.refine = refine
        self.path = path
        self.tol = tol
        self.token_pattern = token_pattern
        self.n_jobs = n_jobs
        self.random_state = random_state

    @seeded
    def fit(
        self,
        X: Any,  # noqa: ANN401
        y: Any,  # noqa: ANN401
        *,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Select n-grams, and train a linear SVM on them.

        Parameters
        ----------
        X : sequence of str, list of str, or list of (str, str), (n_texts,)
            Strings, lists of words, or lists of (word, tag) pairs.
        y : array, (n_texts,)
            Labels of any kind.
        checkpoint : path, optional
            Folder in which each round is saved; after an interruption, the same call resumes from it.
        """
        mined, found, labels = self._mine(X, y, checkpoint)
        if mined.n_selected:
            n_gaps = [(each % 2).sum(axis=1) for each in self.orders_.values()]
            values = np.power(float(self.decay), np.concatenate(n_gaps))
            machine = LinearSVC(
                C=self.C, max_iter=LINEAR_ITERATIONS, random_state=self.random_state % (1 << 32)
            )
            machine.fit(found @ diags(values), labels)
            self.coef_, self.intercept_ = machine.coef_ * values, machine.intercept_
        else:
            shares = np.bincount(labels) / len(labels)
            self.coef_ = np.ascontiguousarray(mined.weights.T)
            self.intercept_ = shares if len(shares) > 2 else shares[1:] - shares[:1]
        return self

    def decision_function(self, X: Any) -> FloatArray:  # noqa: ANN401
        """Return the score of each class, or only of the second if there are two.

        Parameters
        ----------
        X : sequence of str, list of str, or list of (str, str), (n_texts,)
            Strings, lists of words, or lists of (word, tag) pairs.

        Returns
        -------
        ndarray of float, (n_texts,) or (n_texts, n_classes)
            One score per text if there are two classes; otherwise one score per class.
        """
        found = self._find(X)
        return self._linear.decision_function(found)

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: ANN401
        """Return the predicted class of each text.

        Parameters
        ----------
        X : sequence of str, list of str, or list of (str, str), (n_texts,)
            Strings, lists of words, or lists of (word, tag) pairs.

        Returns
        -------
        ndarray, (n_texts,)
            The predicted class labels.
        """
        chosen = choose(self.decision_function(X))
        predicted: npt.NDArray[Any] = self.classes_[chosen]
        return predicted

    def explain(self, X: Any) -> list[Explanation]:  # noqa: ANN401
        """Explain the prediction of each text by n-grams with their weights.

        A positive weight is evidence for the predicted class. The weights, including the intercept, add up to
        the score of the class.

        Parameters
        ----------
        X : sequence of str, list of str, or list of (str, str), (n_texts,)
            Strings, lists of words, or lists of (word, tag) pairs.

        Returns
        -------
        list of Explanation, (n_texts,)
            The predicted class of each text, its score, and the n-grams with their weights, in descending
            order of absolute weight.
        """
        found = self._find(X)
        scores = self._linear.decision_function(found)
        return explain_scores(found, scores, self._linear, self.get_feature_names_out().tolist())

    @property
    def _linear(self) -> Linear:
        return Linear(self.classes_, self.coef_, self.intercept_)


def check_texts(texts: Any) -> Sequence[Any]:  # noqa: ANN401
    """Return texts as a sequence, or raise an error; each text is checked when it is read."""
    if isinstance(texts, str | bytes):
        raise InputError("X is one string; expected a list of texts")
    if hasattr(texts, "to_list"):
        texts = texts.to_list()
    if isinstance(texts, np.ndarray):
        if texts.ndim != 1:
            raise InputError(f"X is an array of {texts.ndim} dimensions; expected a list of texts")
        texts = texts.tolist()
    if not isinstance(texts, Sequence):
        raise InputError(f"X is a {type(texts).__name__}; expected a list of texts, each {EXPECTED}")
    if not len(texts):
        raise InputError("X has no texts; expected at least one")
    return texts
