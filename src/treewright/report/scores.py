"""Scores of files, as tables and as JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, TypeAlias

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from treewright._naming import named
from treewright.data.formats import TITLES, open_by_content
from treewright.data.propbank import PropSentence
from treewright.errors import InputError
from treewright.metrics import (
    AlignedScore,
    AttachmentScore,
    Conll2018Scores,
    ParsevalScore,
    Reliability,
    RoleScore,
    RoleScores,
    SignificanceResult,
    attachment,
    calibration,
    conll2018,
    parseval,
    roles,
    significance,
)
from treewright.metrics.attachment import find_difference
from treewright.metrics.calibration import has_confidence
from treewright.report.reliability import reliability_table
from treewright.srl.arguments import keep_verbal

Score: TypeAlias = AttachmentScore | Conll2018Scores | ParsevalScore | RoleScores
METRICS = {"dependencies": "uas", "constituents": "f1", "propositions": "role-f1"}
"""Default metrics of the significance test."""
ROLE = "role-"
COLUMNS = ("PREDICTED", "AGAINST")

ATTACHMENT_ROWS = {
    "uas": "Unlabeled attachment (UAS)",
    "las": "Labeled attachment (LAS)",
    "las_full": "Labeled attachment with subtypes",
    "complete": "Sentences with all heads correct",
    "n_tokens": "Words scored",
    "n_sentences": "Sentences scored",
}
PARSEVAL_ROWS = {
    "precision": "Bracket precision",
    "recall": "Bracket recall",
    "f1": "Bracket F1",
    "exact": "Sentences with all brackets correct",
    "tagging": "Tagging accuracy",
    "crossing": "Crossing brackets per sentence",
    "no_crossing": "Sentences without crossing brackets",
    "two_crossing": "Sentences with at most two crossing brackets",
    "n_sentences": "Sentences scored",
    "n_errors": "Sentences not scored: words differ",
    "n_skipped": "Sentences not scored: no prediction",
    "n_gold": "Gold brackets",
    "n_predicted": "Predicted brackets",
    "n_matched": "Matching brackets",
}
CONLL2018_ROWS = {
    "tokens": "Tokens",
    "sentences": "Sentences",
    "words": "Words",
    "upos": "Universal part-of-speech tags (UPOS)",
    "xpos": "Language-specific tags (XPOS)",
    "ufeats": "Universal features (UFeats)",
    "all_tags": "UPOS, XPOS and features (AllTags)",
    "lemmas": "Lemmas",
    "uas": "Unlabeled attachment (UAS)",
    "las": "Labeled attachment (LAS)",
    "clas": "LAS of content words (CLAS)",
    "mlas": "CLAS, tags and function words (MLAS)",
    "blex": "CLAS and lemmas (BLEX)",
}
"""Titles of the rows of each table."""


class Scores(NamedTuple):
    """The scores of one file, and optionally of another."""

    predicted: Score
    against: Score | None
    test: SignificanceResult | None
    reliability: Reliability | None
    """Calibration of the predicted heads, if they have a confidence."""
    difference: str | None = None
    """The first difference between the words of gold and predicted; None if there is none."""


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
    relations: bool = False,
    by_characters: bool = False,
    multiple_roots: bool = False,
    word_options: Sequence[str] = (),
) -> Scores:
    """Score a file of predictions, and optionally compare it with another.

    Dependencies are scored as in the CoNLL 2018 shared task if the words of the two files differ or with
    `by_characters`; `multiple_roots` allows several roots per sentence. `word_options` lists the given
    options that require the same words in both files. With `verbs`, only predicates with a gold verb tag are
    scored. With `relations`, the files must have relations.
    """
    files = [gold, predicted, *([against] if against else [])]
    if files.count("-") > 1:
        raise InputError("standard input was given for several files; expected it at most once")
    kind, (right, *guesses) = _read_alike(files)
    if not right:
        raise InputError(f"{gold} has no sentences; expected at least one")
    from_text = by_characters or multiple_roots
    _check_options(kind, punctuation, max_length, verbs=verbs, relations=relations, from_text=from_text)
    if kind == "dependencies":
        differences = [find_difference(right, guess) for guess in guesses]
        if by_characters or any(differences):
            _check_word_options(word_options, files[1:], differences)
            found = conll2018(right, guesses[0], multiple_roots=multiple_roots)
            return Scores(found, None, None, None, differences[0])
        if multiple_roots:
            raise InputError("--multiple-roots has no effect on attachment scores; add --conll2018")
    if verbs:
        right, *guesses = map(list[Any], _keep_verbs(right, guesses))
    scores = [_score(kind, right, guess, punctuation, max_length) for guess in guesses]
    by_arcs = kind == "dependencies"
    reliability = calibration(right, guesses[0]) if by_arcs and has_confidence(guesses[0]) else None
    if len(guesses) == 1:
        return Scores(scores[0], None, None, reliability)
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
    return Scores(scores[0], scores[1], test, reliability)


def _keep_verbs(right: list[PropSentence], guesses: list[list[PropSentence]]) -> Iterator[list[PropSentence]]:
    """Yield sentences with only those predicates that have a gold verb tag."""
    for sentences in (right, *guesses):
        pairs = zip(right, sentences, strict=False)
        retagged = [other._replace(tags=one.tags) for one, other in pairs if len(one.tags) == len(other.tags)]
        yield keep_verbal(retagged if len(retagged) == len(sentences) else sentences)


def _check_word_options(
    options: Sequence[str], files: Sequence[str], differences: Sequence[str | None]
) -> None:
    """Raise `InputError` if an option that needs the same words was given for files with different words."""
    if not options:
        return
    for file, difference in zip(files, differences, strict=True):
        if difference:
            raise InputError(f"{file}: {difference}; expected the same words, as required by {options[0]}")
    raise InputError(f"{options[0]} and --conll2018 are both given; expected one of them")


def _check_options(
    kind: str,
    punctuation: bool | str,
    max_length: int | None,
    *,
    verbs: bool,
    relations: bool,
    from_text: bool,
) -> None:
    """Raise `InputError` if an option does not apply to the content of the files."""
    held = {"dependencies": "CoNLL-U", "constituents": "brackets", "propositions": "semantic roles"}[kind]
    if kind != "constituents" and max_length is not None:
        raise InputError(f"{named('max_length')} has no effect on {held}; expected brackets")
    if kind != "propositions" and verbs:
        raise InputError(f"{named('verbs')} has no effect on {held}; expected semantic roles")
    if kind != "dependencies" and relations:
        raise InputError(f"{named('relations')} has no effect on {held}; expected CoNLL-U")
    if kind != "dependencies" and from_text:
        raise InputError(f"--conll2018 and --multiple-roots have no effect on {held}; expected CoNLL-U")
    if kind == "constituents" and punctuation is not True:
        raise InputError("options for punctuation have no effect on brackets; expected CoNLL-U")
    if kind == "propositions" and punctuation is not True:
        raise InputError(f"options for punctuation have no effect on {held}; expected CoNLL-U")


def _score(
    kind: str, right: list[Any], guess: list[Any], punctuation: bool | str, max_length: int | None
) -> Score:
    if kind == "dependencies":
        return attachment(right, guess, punctuation=punctuation)
    if kind == "constituents":
        return parseval(right, guess, max_length=max_length)
    return roles(right, guess)


def _read_alike(files: list[str]) -> tuple[str, list[list[Any]]]:
    """Read files of the same format; return the kind and the content."""
    trees = []
    formats = []
    for file in files:
        with open_by_content(file) as (form, stream):
            formats.append(form)
            if form.kind != formats[0].kind:
                found = f"{file} looks like {TITLES[form.kind]}, {files[0]} like {TITLES[formats[0].kind]}"
                raise InputError(f"{found}; expected the same format")
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
    if isinstance(score, Conll2018Scores):
        return {name: _with_ratios(one) for name, one in score.items()}
    if not isinstance(score, RoleScores):
        return asdict(score)
    kinds = {name: getattr(score, name) for name in ("identification", "predicates", "verb")}
    return asdict(score) | {
        "labels": {label: _with_ratios(one) for label, one in score.labels.items()},
        **{name: _with_ratios(one) for name, one in kinds.items()},
    }


def _with_ratios(score: RoleScore | AlignedScore) -> dict[str, float | None]:
    ratios: dict[str, float | None] = {"precision": score.precision, "recall": score.recall, "f1": score.f1}
    if isinstance(score, AlignedScore):
        ratios["aligned_accuracy"] = score.aligned_accuracy
    return ratios | asdict(score)


def draw_scores(console: Console, scores: Scores, *, relations: bool = False) -> None:
    """Print the scores as a table, one column per file."""
    columns = [score for score in (scores.predicted, scores.against) if score]
    if isinstance(scores.predicted, RoleScores):
        _draw_roles(console, columns)
    elif isinstance(scores.predicted, Conll2018Scores):
        if scores.difference:
            found = (
                f"The words differ ({scores.difference}); they are aligned by characters and scored as in "
                "CoNLL 2018."
            )
            console.print(found, soft_wrap=True, highlight=False, markup=False)
        console.print(_aligned_table(scores.predicted))
    else:
        console.print(_score_table(columns))
    if relations and isinstance(scores.predicted, AttachmentScore):
        console.print(relation_table(scores.predicted))
    if scores.reliability:
        console.print(reliability_table(scores.reliability))
    if scores.test:
        console.print(describe_test(scores.test), soft_wrap=True)


def _draw_roles(console: Console, scores: list[Score]) -> None:
    """Print the tables of srl-eval.pl, one below the other."""
    for name, score in zip(COLUMNS, scores, strict=False):
        if len(scores) > 1:
            console.print(name)
        console.print(str(score), soft_wrap=True, highlight=False, markup=False)


def _score_table(columns: list[Score]) -> Table:
    table = Table("", *COLUMNS[: len(columns)], box=SIMPLE_HEAD)
    rows = ATTACHMENT_ROWS if isinstance(columns[0], AttachmentScore) else PARSEVAL_ROWS
    for name, title in rows.items():
        table.add_row(title, *(_shown(getattr(column, name)) for column in columns))
    return _right_aligned(table)


def _aligned_table(scores: Conll2018Scores) -> Table:
    """Make a table with a row for each score of the CoNLL 2018 shared task."""
    table = Table("", "precision", "recall", "F1", "aligned\naccuracy", box=SIMPLE_HEAD)
    for name, score in scores.items():
        accuracy = "" if score.aligned_accuracy is None else _shown(score.aligned_accuracy)
        table.add_row(CONLL2018_ROWS[name], *map(_shown, (score.precision, score.recall, score.f1)), accuracy)
    return _right_aligned(table)


def relation_table(score: AttachmentScore) -> Table:
    """Make a table with a row for each relation."""
    table = Table("relation", "gold", "UAS", "precision", "recall", "F1", box=SIMPLE_HEAD)
    for one in score.relations:
        numbers = (one.uas, one.precision, one.recall, one.f1)
        table.add_row(one.relation, str(one.n_gold), *(f"{number:.2f}" for number in numbers))
    return _right_aligned(table)


def _right_aligned(table: Table) -> Table:
    """Right-align all columns except the first."""
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def describe_test(test: SignificanceResult) -> str:
    """Describe the result of a significance test."""
    low, high = test.interval
    return (
        f"{test.metric}: {test.difference:+.2f} points ({100 * test.confidence:g}% interval {low:+.2f} to "
        f"{high:+.2f}), p = {test.p_value:.4f} (two-sided randomisation, {test.n_shuffles} shuffles)"
    )


def _shown(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.2f}"
