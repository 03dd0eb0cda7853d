"""Scores of files, as tables and as JSON."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, NamedTuple, TypeAlias

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from treewright.data.formats import open_by_content
from treewright.data.propbank import PropSentence
from treewright.errors import InputError
from treewright.metrics import (
    AttachmentScore,
    ParsevalScore,
    Reliability,
    RoleScore,
    RoleScores,
    SignificanceResult,
    attachment,
    calibration,
    parseval,
    roles,
    significance,
)
from treewright.metrics.calibration import has_confidence
from treewright.report.reliability import reliability_table
from treewright.srl.arguments import keep_verbal

Score: TypeAlias = AttachmentScore | ParsevalScore | RoleScores
METRICS = {"dependencies": "uas", "constituents": "f1", "propositions": "role-f1"}
"""What is tested, if nothing else is asked for."""
ROLE = "role-"
COLUMNS = ("PREDICTED", "AGAINST")


class Scores(NamedTuple):
    """The score of one file, perhaps beside that of another."""

    predicted: Score
    against: Score | None
    test: SignificanceResult | None
    reliability: Reliability | None
    """Of the predicted heads, if they come with a confidence."""


def score_files(
    gold: str,
    predicted: str,
    *,
    punctuation: bool | str = True,
    max_length: int | None = None,
    against: str | None = None,
    metric: str | None = None,
    random_state: int = 0,
    verbs: bool = False,
) -> Scores:
    """Score a file of predictions, and compare it with another if one is given.

    With `verbs`, only the predicates of semantic roles that are verbs by their tags in the gold file.
    """
    files = [gold, predicted, *([against] if against else [])]
    if files.count("-") > 1:
        raise InputError("standard input can stand for one file only")
    if metric is not None and against is None:
        raise InputError("--metric names what --against is tested for; expected both")
    kind, (right, *guesses) = _read_alike(files)
    if not right:
        raise InputError(f"{gold} has no sentences; expected at least one")
    _check_options(kind, punctuation, max_length, verbs)
    if verbs:
        right, *guesses = map(list[Any], _keep_verbs(right, guesses))
    found = [_score(kind, right, guess, punctuation, max_length) for guess in guesses]
    by_arcs = kind == "dependencies"
    reliability = calibration(right, guesses[0]) if by_arcs and has_confidence(guesses[0]) else None
    if len(guesses) == 1:
        return Scores(found[0], None, None, reliability)
    metric = metric or METRICS[kind]
    if kind == "propositions":
        metric = ROLE + metric.removeprefix(ROLE)
    test = significance(
        right,
        *guesses,
        metric=metric,
        random_state=random_state,
        punctuation=punctuation,
        max_length=max_length,
    )
    return Scores(found[0], found[1], test, reliability)


def _keep_verbs(right: list[PropSentence], guesses: list[list[PropSentence]]) -> Iterator[list[PropSentence]]:
    """Yield sentences with the predicates alone that are verbs by the tags of the right ones."""
    for sentences in (right, *guesses):
        pairs = zip(right, sentences, strict=False)
        retagged = [other._replace(tags=one.tags) for one, other in pairs if len(one.tags) == len(other.tags)]
        yield keep_verbal(retagged if len(retagged) == len(sentences) else sentences)


def _check_options(kind: str, punctuation: bool | str, max_length: int | None, verbs: bool) -> None:
    """Check that the options have a meaning for what the files hold."""
    held = {"dependencies": "CoNLL-U", "constituents": "brackets", "propositions": "semantic roles"}[kind]
    if kind != "constituents" and max_length is not None:
        raise InputError(f"--max-length is for brackets; found {held}")
    if kind != "propositions" and verbs:
        raise InputError(f"--verbs is for semantic roles; found {held}")
    if kind == "constituents" and punctuation is not True:
        raise InputError("punctuation is never scored in brackets; expected CoNLL-U for this option")
    if kind == "propositions" and punctuation is not True:
        raise InputError(f"punctuation is no matter of {held}; expected CoNLL-U for this option")


def _score(
    kind: str, right: list[Any], guess: list[Any], punctuation: bool | str, max_length: int | None
) -> Score:
    if kind == "dependencies":
        return attachment(right, guess, punctuation=punctuation)
    if kind == "constituents":
        return parseval(right, guess, max_length=max_length)
    return roles(right, guess)


def _read_alike(files: list[str]) -> tuple[str, list[list[Any]]]:
    """Read files of one format; return what they hold."""
    trees = []
    formats = []
    for file in files:
        with open_by_content(file) as (form, stream):
            formats.append(form)
            if form.name != formats[0].name:
                found = f"{file} looks like {form.name}, {files[0]} like {formats[0].name}"
                raise InputError(f"{found}; expected one format")
            trees.append(list(form.read(stream)))
    return formats[0].kind, trees


def scores_as_json(scores: Scores) -> str:
    """Return the scores as a JSON object."""
    shown = _as_values(scores.predicted)
    if scores.reliability:
        shown["calibration"] = asdict(scores.reliability)
    if scores.against and scores.test:
        shown |= {"against": _as_values(scores.against), "significance": asdict(scores.test)}
    return json.dumps(shown, indent=2)


def _as_values(score: Score) -> dict[str, Any]:
    if not isinstance(score, RoleScores):
        return asdict(score)
    kinds = {name: getattr(score, name) for name in ("identification", "predicates", "verb")}
    return asdict(score) | {
        "labels": {label: _with_ratios(one) for label, one in score.labels.items()},
        **{name: _with_ratios(one) for name, one in kinds.items()},
    }


def _with_ratios(score: RoleScore) -> dict[str, float]:
    ratios = {"precision": score.precision, "recall": score.recall, "f1": score.f1}
    return ratios | asdict(score)


def draw_scores(console: Console, scores: Scores, *, relations: bool = False) -> None:
    """Print the scores as a table, one column a file."""
    columns = [score for score in (scores.predicted, scores.against) if score]
    if isinstance(scores.predicted, RoleScores):
        _draw_roles(console, columns)
    else:
        console.print(_score_table(columns))
    if relations and isinstance(scores.predicted, AttachmentScore):
        console.print(relation_table(scores.predicted))
    if scores.reliability:
        console.print(reliability_table(scores.reliability))
    if scores.test:
        console.print(describe_test(scores.test), soft_wrap=True)


def _draw_roles(console: Console, scores: list[Score]) -> None:
    """Print the tables of srl-eval.pl, below each other."""
    for name, score in zip(COLUMNS, scores, strict=False):
        if len(scores) > 1:
            console.print(name)
        console.print(str(score), soft_wrap=True, highlight=False, markup=False)


def _score_table(columns: list[Score]) -> Table:
    table = Table("", *COLUMNS[: len(columns)], box=SIMPLE_HEAD)
    values = [asdict(column) for column in columns]
    for name in values[0]:
        if name != "relations":
            table.add_row(name, *(_shown(value[name]) for value in values))
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def relation_table(score: AttachmentScore) -> Table:
    """Make a table with a line for each relation."""
    table = Table("relation", "gold", "UAS", "precision", "recall", "F1", box=SIMPLE_HEAD)
    for one in score.relations:
        numbers = (one.uas, one.precision, one.recall, one.f1)
        table.add_row(one.relation, str(one.n_gold), *(f"{number:.2f}" for number in numbers))
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def describe_test(test: SignificanceResult) -> str:
    """Say in a sentence what a test of significance found."""
    low, high = test.interval
    return (
        f"{test.metric}: {test.difference:+.2f} points ({100 * test.confidence:g}% interval {low:+.2f} to "
        f"{high:+.2f}), p = {test.p_value:.4f} (two-sided randomisation, {test.n_shuffles} shuffles)"
    )


def _shown(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.2f}"
