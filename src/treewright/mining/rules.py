"""Human-readable rules of a model of conjunctions, and their contributions to its predictions.

A rule is a selected conjunction, with the samples in which it holds. Its importance is its absolute weight
times the standard deviation of its indicator (1 if it holds, otherwise 0). This measures how much the rule
changes the scores of samples: a large weight counts little if the conjunction hardly ever holds.
"""

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from io import StringIO
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.sparse import csc_matrix
from scipy.special import logsumexp
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from treewright._typing import Count, FloatArray, NonNegativeInt
from treewright._validate import check_choice, check_param
from treewright.errors import InputError

SortKey = Literal["importance", "weight", "support", "lift"]
SORT_KEYS = ("importance", "weight", "support", "lift")
LARGEST_SCALE = 100.0
"""Maximum factor for scaling scores to log-odds."""


@dataclass(frozen=True)
class Rule:
    """A conjunction selected by a model, and the samples in which it holds.

    Attributes
    ----------
    conjunction : str
        Its conditions, such as ``age in [30, 42) & city = Oslo``.
    order : int
        Number of conditions.
    label : object
        The class that the rule predicts; None in a regression.
    weight : float
        Contribution of the rule to the score of that class, or to the predicted number. With more than two
        classes, it can be negative, which is evidence against the class.
    importance : float
        The absolute weight times the standard deviation of the indicator of the rule (1 if it holds,
        otherwise 0).
    n_samples : int
        Number of samples in which the rule holds.
    support : float
        Fraction of the samples in which the rule holds.
    share : float
        Fraction of these samples that belong to the class; in a regression, the mean of their targets.
    lift : float
        `share` divided by the fraction of all samples that belong to the class; in a regression, `share`
        minus the mean of all targets.
    shares : dict
        Fraction of each class among the samples in which the rule holds; empty in a regression.
    examples : tuple of int
        Numbers of some samples in which the rule holds; samples of its class come first.
    columns : tuple of int
        The columns, as in `conjunctions_`. Conjunctions with the same name hold in the same samples; they are
        merged into one rule with the sum of their weights and the columns of the first.

    See Also
    --------
    list_rules : Lists the rules of a model.
    RuleTable : Shows rules as a table.

    Examples
    --------
    >>> X, y = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]] * 5, ["yes", "no", "no", "no"] * 5
    >>> miner = tw.ConjunctionMiner(degree=2, threshold=2).fit(X, y)
    >>> rule = tw.list_rules(miner, X, y, min_order=2)[0]
    >>> rule.conjunction, rule.label, rule.support, rule.lift
    ('x0 & x1', 'yes', 0.25, 4.0)
    """

    conjunction: str
    order: int
    label: Any
    weight: float
    importance: float
    n_samples: int
    support: float
    share: float
    lift: float
    shares: dict[Any, float]
    examples: tuple[int, ...]
    columns: tuple[int, ...]


class RuleTable(Sequence[Rule]):
    """A list of rules that prints as a table and can be exported in several formats.

    Parameters
    ----------
    rules : list of Rule
        The rules, in the order in which they are shown.
    is_regression : bool
        Whether the rules predict a number instead of a class.

    See Also
    --------
    list_rules : Returns the rules of a model as a table.
    plot_rules : Plots the strongest rules.

    Examples
    --------
    ``pandas.DataFrame(table.to_records())`` is a data frame of the rules.

    >>> X, y = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]] * 5, ["yes", "no", "no", "no"] * 5
    >>> table = tw.list_rules(tw.ConjunctionMiner(degree=2, threshold=2).fit(X, y), X, y)
    >>> print(table)
    rule     for  weight  importance  samples  support   share  lift  examples
    x0 & x1  yes   +1.95       0.846        5    25.0%  100.0%  4.00  0, 4, 8
    x1       yes   +0.01       0.007       10    50.0%   50.0%  2.00  0, 4, 8
    """

    def __init__(self, rules: Sequence[Rule], *, is_regression: bool = False) -> None:
        self.rules = list(rules)
        self.is_regression = is_regression

    def __len__(self) -> int:
        return len(self.rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __getitem__(self, place: Any) -> Any:  # noqa: ANN401
        """Return one rule, or a table of a slice of the rules."""
        found = self.rules[place]
        return RuleTable(found, is_regression=self.is_regression) if isinstance(found, list) else found

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"RuleTable of {len(self)} rules"

    def to_records(self) -> list[dict[str, Any]]:
        """Return a dictionary for each rule."""
        return [{each.name: getattr(rule, each.name) for each in fields(rule)} for rule in self.rules]

    def to_text(self) -> str:
        """Return the table in aligned lines."""
        heads, rows = self._cells()
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        is_left = [head in ("rule", "for", "examples") for head in heads]
        lines = [
            "  ".join(
                cell.ljust(width) if left else cell.rjust(width)
                for cell, width, left in zip(row, widths, is_left, strict=True)
            ).rstrip()
            for row in (heads, *rows)
        ]
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        heads, rows = self._cells()
        marks = ["---" if head in ("rule", "for", "examples") else "---:" for head in heads]
        escaped = [[cell.replace("|", "\\|") for cell in row] for row in rows]
        return "\n".join("| " + " | ".join(row) + " |" for row in (heads, marks, *escaped))

    def to_csv(self) -> str:
        """Return all values as CSV, without rounding."""
        labels = list(dict.fromkeys(label for rule in self.rules for label in rule.shares))
        plain = [each.name for each in fields(Rule) if each.name not in ("shares", "columns", "examples")]
        stream = StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*plain, *(f"share:{label}" for label in labels), "examples"])
        for rule in self.rules:
            shares = [rule.shares.get(label, "") for label in labels]
            examples = " ".join(map(str, rule.examples))
            writer.writerow([*(getattr(rule, name) for name in plain), *shares, examples])
        return stream.getvalue()

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the headers and the cells of the printed table."""
        columns: dict[str, Callable[[Rule], str]] = {
            "rule": lambda rule: rule.conjunction,
            "for": lambda rule: str(rule.label),
            "weight": lambda rule: f"{rule.weight:+.2f}",
            "importance": lambda rule: f"{rule.importance:.3f}",
            "samples": lambda rule: f"{rule.n_samples:,}",
            "support": lambda rule: f"{rule.support:.1%}",
            "share": lambda rule: f"{rule.share:.1%}",
            "lift": lambda rule: f"{rule.lift:.2f}",
            "examples": lambda rule: ", ".join(map(str, rule.examples)),
        }
        if self.is_regression:
            columns = {"mean" if head == "share" else head: make for head, make in columns.items()}
            columns["mean"] = lambda rule: f"{rule.share:.4g}"
            columns["lift"] = lambda rule: f"{rule.lift:+.4g}"
            del columns["for"]
        return list(columns), [[make(rule) for make in columns.values()] for rule in self.rules]


class _Matched(NamedTuple):
    """The distinct conjunctions of a fitted model, and the samples in which they hold.

    Attributes
    ----------
    classes : ndarray or None
        None in a regression.
    names : list of str
    columns : list of tuple of int
    orders : ndarray of int
        The number of conditions of each conjunction.
    coef : ndarray of float, (n_classes or 1, n_conjunctions)
    intercept : ndarray of float, (n_classes or 1,)
    found : csc_matrix, (n_samples, n_conjunctions)
    """

    classes: npt.NDArray[Any] | None
    names: list[str]
    columns: list[tuple[int, ...]]
    orders: npt.NDArray[np.int64]
    coef: FloatArray
    intercept: FloatArray
    found: csc_matrix


def _match(model: Any, X: Any, names: Any) -> _Matched:  # noqa: ANN401
    """Find the conjunctions of a model, or of the last step of a pipeline, in rows."""
    check_is_fitted(model)
    model = getattr(model, "best_estimator_", model)  # of a search over parameters
    last = model
    if hasattr(model, "steps"):
        last = model.steps[-1][1]
        if len(model.steps) > 1:
            before = model[:-1]
            if hasattr(before, "get_feature_names_out"):
                names = before.get_feature_names_out(names)
            X = before.transform(X)
    if not hasattr(last, "conjunctions_"):
        expected = (
            "a fitted ConjunctionClassifier, ConjunctionMiner or ConjunctionRegressor, or a pipeline that "
            "ends in one"
        )
        raise InputError(f"model is a {type(last).__name__}; expected {expected}")
    if not hasattr(last, "coef_"):
        raise InputError("the final_estimator of model has no weights; expected a linear estimator")
    every = last._merged_names(names)
    first: dict[str, int] = {}
    numbers = np.array([first.setdefault(name, len(first)) for name in every], dtype=np.int64)
    places = np.unique(numbers, return_index=True)[1].tolist()
    weights = [np.bincount(numbers, each, len(first)) for each in np.atleast_2d(last.coef_)]
    coef = np.array(weights, dtype=np.float64)
    columns = [tuple(last.conjunctions_[place]) for place in places]
    # Conditions on one number are one, whose name has no " & ".
    orders = [min(len(each), name.count(" & ") + 1) for each, name in zip(columns, first, strict=True)]
    return _Matched(
        getattr(last, "classes_", None),
        list(first),
        columns,
        np.array(orders, dtype=np.int64),
        coef,
        np.ravel(last.intercept_).astype(np.float64),
        csc_matrix(last._find(X))[:, places],
    )


def list_rules(
    model: Any,  # noqa: ANN401
    X: Any,  # noqa: ANN401
    y: Any,  # noqa: ANN401
    *,
    names: Any = None,  # noqa: ANN401
    min_order: Count = 1,
    max_rules: Count | None = None,
    n_examples: NonNegativeInt = 3,
    first_number: NonNegativeInt = 0,
    sort_by: SortKey = "importance",
) -> RuleTable:
    """List the conjunctions of a fitted model as rules, with the samples in which they hold.

    Parameters
    ----------
    model : ConjunctionClassifier, ConjunctionMiner, ConjunctionRegressor or Pipeline
        A fitted model, or a fitted search such as ``GridSearchCV`` over one; a pipeline must end in one of
        these.
    X : array, data frame or sparse matrix, (n_samples, n_features)
        Samples in which the rules are counted, preferably not the training samples.
    y : array, (n_samples,)
        The true classes of the samples, or the numbers to predict.
    names : sequence of str, optional
        Names of the columns of `X`, if it has none itself.
    min_order : int
        Minimum number of conditions of a rule; 2 excludes single columns.
    max_rules : int, optional
        Maximum number of rules.
    n_examples : int
        Maximum number of examples per rule.
    first_number : int
        The number that `examples` uses for the first sample.
    sort_by : {"importance", "weight", "support", "lift"}
        Value by which rules are sorted, largest first.

    Returns
    -------
    RuleTable
        The rules, one per row.

    See Also
    --------
    plot_rules : Plots the rules.
    compare_parts : Measures the contribution of conjunctions.

    Examples
    --------
    >>> import treewright as tw
    >>> X = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]] * 5
    >>> y = ["yes", "no", "no", "no"] * 5
    >>> miner = tw.ConjunctionMiner(degree=2, threshold=2).fit(X, y)
    >>> rule = tw.list_rules(miner, X, y, min_order=2)[0]
    >>> rule.conjunction, rule.label, rule.n_samples, rule.share, rule.lift, rule.examples
    ('x0 & x1', 'yes', 5, 1.0, 4.0, (0, 4, 8))
    """
    hints = {"min_order": Count, "n_examples": NonNegativeInt, "first_number": NonNegativeInt}
    for name, value in (("min_order", min_order), ("n_examples", n_examples), ("first_number", first_number)):
        check_param(name, value, hints[name])
    check_param("max_rules", max_rules, Count | None)
    check_choice("sort_by", sort_by, SORT_KEYS)
    matched = _match(model, X, names)
    y = column_or_1d(y)
    check_consistent_length(matched.found, y)
    rules = [
        _make_rule(matched, place, y, n_examples, first_number)
        for place in np.flatnonzero(matched.orders >= min_order).tolist()
    ]
    rules.sort(key=lambda rule: -abs(getattr(rule, sort_by)))
    return RuleTable(rules[:max_rules], is_regression=matched.classes is None)


def _make_rule(
    matched: _Matched, place: int, y: npt.NDArray[Any], n_examples: int, first_number: int
) -> Rule:
    classes, weights, found = matched.classes, matched.coef[:, place], matched.found
    rows = np.sort(found.indices[found.indptr[place] : found.indptr[place + 1]])
    n, support = len(rows), len(rows) / max(1, len(y))
    if classes is None:
        label, weight, shares = None, float(weights[0]), {}
        mean = float(y.mean()) if len(y) else 0.0
        share = float(y[rows].mean()) if n else mean
        lift, preferred = share - mean, rows
    else:
        at = int(np.abs(weights).argmax())
        label, weight = classes[at], float(weights[at])
        if len(weights) == 1:  # of the second of two classes
            label, weight = classes[int(weight > 0)], abs(weight)
        shares = {each: float((y[rows] == each).mean()) if n else 0.0 for each in classes.tolist()}
        label = label.item() if hasattr(label, "item") else label
        share, everywhere = shares[label], float((y == label).mean())
        lift = share / everywhere if everywhere else 0.0
        is_right = y[rows] == label
        preferred = np.concatenate([rows[is_right], rows[~is_right]])
    return Rule(
        conjunction=matched.names[place],
        order=int(matched.orders[place]),
        label=label,
        weight=weight,
        importance=abs(weight) * float(np.sqrt(support * (1 - support))),
        n_samples=n,
        support=support,
        share=share,
        lift=lift,
        shares=shares,
        examples=tuple((preferred[:n_examples] + first_number).tolist()),
        columns=matched.columns[place],
    )


@dataclass(frozen=True)
class PartScore:
    """The quality of the predictions of a part of a model.

    Attributes
    ----------
    accuracy : float
        Fraction of correct predictions; in a regression, R squared.
    loss : float
        Log-loss; in a regression, the root mean squared error.

    See Also
    --------
    compare_parts : Computes the scores of the parts of a model.

    Examples
    --------
    >>> X, y = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]] * 5, ["yes", "no", "no", "no"] * 5
    >>> miner = tw.ConjunctionMiner(degree=2, threshold=2).fit(X, y)
    >>> tw.compare_parts(miner, X, y).single_columns.accuracy
    0.75
    """

    accuracy: float
    loss: float


@dataclass(frozen=True)
class Contributions:
    """The contributions of single columns and of conjunctions to the predictions of a model.

    To score one part alone, the other part is replaced by the constants that fit the samples best: one score
    per class, or the mean of the target. Scores need not be log-odds, so they are scaled and shifted for the
    lowest log-loss.

    Attributes
    ----------
    neither : PartScore
        Score of the constants alone.
    single_columns, conjunctions : PartScore
        Score of each part without the other.
    both : PartScore
        Score of the model.
    changed : float
        Fraction of predictions that the conjunctions change; in a regression, the variance of their
        contribution divided by the variance of the predictions.
    corrected, spoilt : float
        Fractions of predictions that the conjunctions correct, and that they make wrong; 0 in a regression.
    n_single_columns, n_conjunctions : int
        Numbers of selected columns and of selected conjunctions.
    n_samples : int
        Number of samples.
    is_regression : bool
        Whether the model predicts a number.

    See Also
    --------
    compare_parts : Computes the contributions.

    Examples
    --------
    >>> X, y = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]] * 5, ["yes", "no", "no", "no"] * 5
    >>> found = tw.compare_parts(tw.ConjunctionMiner(degree=2, threshold=2).fit(X, y), X, y)
    >>> found.single_columns.accuracy, found.both.accuracy, found.corrected
    (0.75, 1.0, 0.25)
    """

    neither: PartScore
    single_columns: PartScore
    conjunctions: PartScore
    both: PartScore
    changed: float
    corrected: float
    spoilt: float
    n_single_columns: int
    n_conjunctions: int
    n_samples: int
    is_regression: bool

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self) -> str:
        """Return the comparison in aligned lines."""
        heads, rows = self._cells()
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [
            "  ".join(
                [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
            )
            for row in (heads, *rows)
        ]
        return "\n".join([*lines, self._describe_changes()])

    def to_markdown(self) -> str:
        """Return the comparison in Markdown."""
        heads, rows = self._cells()
        marks = ["---", "---:", "---:"]
        lines = ["| " + " | ".join(row) + " |" for row in (heads, marks, *rows)]
        return "\n".join([*lines, "", self._describe_changes()])

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        parts = {
            "neither": self.neither,
            f"{self.n_single_columns:,} single columns": self.single_columns,
            f"{self.n_conjunctions:,} conjunctions": self.conjunctions,
            "both": self.both,
        }
        heads = ["part", "R squared", "error"] if self.is_regression else ["part", "accuracy", "log-loss"]
        return heads, [[name, f"{each.accuracy:.3f}", f"{each.loss:.4g}"] for name, each in parts.items()]

    def _describe_changes(self) -> str:
        if self.is_regression:
            return f"Conjunctions account for {self.changed:.1%} of the variance of the predictions."
        return (
            f"Conjunctions change {self.changed:.1%} of {self.n_samples:,} predictions: "
            f"{self.corrected:.1%} become right, {self.spoilt:.1%} wrong."
        )


def compare_parts(
    model: Any,  # noqa: ANN401
    X: Any,  # noqa: ANN401
    y: Any,  # noqa: ANN401
) -> Contributions:
    """Compare the predictions of a model, of its single columns alone, and of its conjunctions alone.

    Parameters
    ----------
    model : ConjunctionClassifier, ConjunctionMiner, ConjunctionRegressor or Pipeline
        A fitted model; a pipeline must end in one of these.
    X : array, data frame or sparse matrix, (n_samples, n_features)
        Samples for the comparison, preferably not the training samples.
    y : array, (n_samples,)
        The true classes of the samples, or the numbers to predict.

    Returns
    -------
    Contributions
        Contributions of the linear part and of the conjunctions.

    See Also
    --------
    list_rules : Lists the selected conjunctions.

    Examples
    --------
    >>> import treewright as tw
    >>> X = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]] * 5
    >>> y = ["yes", "no", "no", "no"] * 5
    >>> miner = tw.ConjunctionMiner(degree=2, threshold=2).fit(X, y)
    >>> tw.compare_parts(miner, X, y).both.accuracy
    1.0
    """
    matched = _match(model, X, None)
    y = column_or_1d(y)
    check_consistent_length(matched.found, y)
    is_single = matched.orders < 2
    parts = [
        np.asarray(matched.found[:, kept] @ matched.coef[:, kept].T, dtype=np.float64)
        for kept in (is_single, ~is_single)
    ]
    both = matched.intercept + parts[0] + parts[1]
    scores = {"single_columns": parts[0], "conjunctions": parts[1], "both": both}
    if matched.classes is None:
        mean = float(np.mean(y))
        found = {name: _score_numbers(mean + each[:, 0] - each.mean(), y) for name, each in scores.items()}
        found |= {"both": _score_numbers(both[:, 0], y), "neither": _score_numbers(np.full(len(y), mean), y)}
        variance = float(both.var())
        changed = float(parts[1].var() / variance) if variance else 0.0
        corrected = spoilt = 0.0
    else:
        labels = _number_labels(matched.classes, y)
        found, chosen = {}, {}
        for name, each in (scores | {"neither": np.zeros_like(both)}).items():
            loss, calibrated = _calibrate(_as_odds(each), labels)
            chosen[name] = (_as_odds(both) if name == "both" else calibrated).argmax(axis=1)
            found[name] = PartScore(float((chosen[name] == labels).mean()), loss)
        is_right, was_right = (chosen[name] == labels for name in ("both", "single_columns"))
        changed = float((chosen["both"] != chosen["single_columns"]).mean())
        corrected, spoilt = float((is_right & ~was_right).mean()), float((was_right & ~is_right).mean())
    return Contributions(
        **found,
        changed=changed,
        corrected=corrected,
        spoilt=spoilt,
        n_single_columns=int(is_single.sum()),
        n_conjunctions=int((~is_single).sum()),
        n_samples=len(y),
        is_regression=matched.classes is None,
    )


def _number_labels(classes: npt.NDArray[Any], y: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the index of each label among the classes of a model."""
    found = {label: number for number, label in enumerate(classes.tolist())}
    labels = y.tolist()
    for row, label in enumerate(labels):
        if label not in found:
            raise InputError(f"y has {label!r} in row {row}; expected a class of the model")
    return np.array([found[label] for label in labels], dtype=np.int64)


def _as_odds(scores: FloatArray) -> FloatArray:
    """Return a score for each class; if only the second class has scores, the scores of the first are 0."""
    return np.concatenate([np.zeros_like(scores), scores], axis=1) if scores.shape[1] == 1 else scores


def _calibrate(odds: FloatArray, labels: npt.NDArray[np.int64]) -> tuple[float, FloatArray]:
    """Scale the scores, and shift each class, to minimise the log-loss; return the loss and the scores."""
    places = np.arange(len(labels))

    def evaluate(parameters: FloatArray) -> tuple[float, FloatArray]:
        values = parameters[0] * odds + parameters[1:]
        normalizer = logsumexp(values, axis=1, keepdims=True)
        loss = (normalizer[:, 0] - values[places, labels]).mean()
        residual = np.exp(values - normalizer)
        residual[places, labels] -= 1
        residual /= len(labels)
        return float(loss), np.concatenate([[(residual * odds).sum()], residual.sum(axis=0)])

    start = np.concatenate([[1.0], np.zeros(odds.shape[1])])
    bounds = [(0.0, LARGEST_SCALE), *[(None, None)] * odds.shape[1]]
    found = minimize(evaluate, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return float(found.fun), found.x[0] * odds + found.x[1:]


def _score_numbers(predicted: FloatArray, y: FloatArray) -> PartScore:
    error = float(((y - predicted) ** 2).mean())
    variance = float(np.var(y))
    return PartScore(1 - error / variance if variance else 0.0, float(np.sqrt(error)))
