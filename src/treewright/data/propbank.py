"""PropBank columns: who does what to whom, one column of brackets a predicate.

Each line has the word's number, the word, its tag, the predicate's lemma and sense (``-`` where there
is none), and one column a predicate in which ``(ARG0*``, ``*`` and ``*)`` mark the arguments.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from treewright.data.conllu import Block, iter_blocks, join_lines, wrong_column_count
from treewright.data.consttree import Span
from treewright.data.files import Source, Target, open_target, track_writing
from treewright.errors import InputError, quote

N_FIXED_COLUMNS = 5
ABSENT = "-"
ROLE = re.compile(r"[^\s()*]+")
CELL = re.compile(rf"((?:\({ROLE.pattern})*)\*(\)*)")


class Proposition(NamedTuple):
    """One predicate with its arguments."""

    predicate: int
    """Position of the predicate in the sentence, from 0."""
    lemma: str
    sense: str
    arguments: tuple[Span, ...]
    """The labelled spans of its column, the predicate's own ``V`` among them, from left to right."""


class PropSentence(NamedTuple):
    """One sentence with all its propositions."""

    words: list[str]
    tags: list[str]
    propositions: list[Proposition]
    comments: list[str]


def iter_props(source: Source) -> Iterator[PropSentence]:
    """Stream the sentences of a file of PropBank columns.

    Raises
    ------
    FormatError
        With file, line, what was found and what was expected.
    """
    for block in iter_blocks(source):
        yield _parse_block(block)


def read_props(source: Source) -> list[PropSentence]:
    """Read a whole file of PropBank columns; see `iter_props`."""
    return list(iter_props(source))


def write_props(sentences: Iterable[PropSentence], target: Target) -> None:
    """Write PropBank columns; ``"-"`` is standard output, a name in ``.gz`` is compressed."""
    with open_target(target) as stream:
        for sentence in track_writing(sentences, target):
            stream.write(format_sentence(sentence))


def _parse_block(block: Block) -> PropSentence:
    rows = [line.split("\t") for line in block.lines]
    n_predicates = sum(len(row) >= N_FIXED_COLUMNS and row[3] != ABSENT for row in rows)
    for index, row in enumerate(rows):
        if len(row) != N_FIXED_COLUMNS + n_predicates:
            expected = f"{N_FIXED_COLUMNS} and one for each of {n_predicates} predicates"
            raise wrong_column_count(block, index, expected)
        if row[0] != str(index + 1):
            raise block.error(index, f"ID is {quote(row[0])}", str(index + 1))
        if (row[3] == ABSENT) != (row[4] == ABSENT):
            raise block.error(
                index, f"predicate {quote(row[3])} with sense {quote(row[4])}", "both or neither"
            )
    predicates = [index for index, row in enumerate(rows) if row[3] != ABSENT]
    propositions = [
        Proposition(at, rows[at][3], rows[at][4], _parse_column(block, rows, N_FIXED_COLUMNS + number))
        for number, at in enumerate(predicates)
    ]
    return PropSentence([row[1] for row in rows], [row[2] for row in rows], propositions, block.comments)


def _parse_column(block: Block, rows: list[list[str]], column: int) -> tuple[Span, ...]:
    """Read the spans of one column; brackets nest."""
    spans: list[Span] = []
    open_spans: list[int] = []
    for index, row in enumerate(rows):
        cell = CELL.fullmatch(row[column])
        if not cell:
            found = f"{quote(row[column])} in column {column + 1}"
            raise block.error(index, found, "'*' with brackets around it, as in '(ARG0*)'")
        for label in cell[1].split("(")[1:]:
            open_spans.append(len(spans))
            spans.append(Span(label, index, len(rows)))
        for _ in cell[2]:
            if not open_spans:
                raise block.error(index, f"a ')' too many in column {column + 1}", "as many ')' as '('")
            closed = open_spans.pop()
            spans[closed] = spans[closed]._replace(end=index + 1)
    if open_spans:
        found = f"{spans[open_spans[0]].label} is never closed in column {column + 1}"
        raise block.error(len(rows) - 1, found, "as many ')' as '('")
    return tuple(spans)


def format_sentence(sentence: PropSentence) -> str:
    """Return the lines of one sentence, the blank line after it included."""
    n = len(sentence.words)
    if len(sentence.tags) != n:
        raise InputError(f"{len(sentence.tags)} tags; expected {n}, one a word")
    in_order = sorted(sentence.propositions, key=lambda one: one.predicate)
    lemmas, senses = [ABSENT] * n, [ABSENT] * n
    for proposition in in_order:
        _check_predicate(proposition, lemmas)
        lemmas[proposition.predicate] = proposition.lemma
        senses[proposition.predicate] = proposition.sense
    columns = [_format_column(proposition, n) for proposition in in_order]
    numbers = map(str, range(1, n + 1))
    rows = zip(numbers, sentence.words, sentence.tags, lemmas, senses, *columns, strict=True)
    return join_lines(sentence.comments, list(map("\t".join, rows)), N_FIXED_COLUMNS + len(columns))


def _check_predicate(proposition: Proposition, lemmas: list[str]) -> None:
    """Check that a predicate has a place, not taken yet, and a name."""
    at, lemma, sense, _ = proposition
    if not 0 <= at < len(lemmas):
        raise InputError(f"predicate {at} of a sentence of {len(lemmas)} words; expected a word from 0")
    if lemmas[at] != ABSENT:
        raise InputError(f"word {at} has two propositions; expected one")
    if ABSENT in (lemma, sense):
        raise InputError(f"predicate {lemma!r} with sense {sense!r}; expected names other than {ABSENT!r}")


def _format_column(proposition: Proposition, n: int) -> list[str]:
    opening, closing = [""] * n, [""] * n
    open_spans: list[Span] = []
    for span in sorted(proposition.arguments, key=lambda one: (one.start, -one.end)):
        label, start, end = span
        if not 0 <= start < end <= n:
            raise InputError(f"argument {label} covers words {start} to {end} of a sentence of {n}")
        if not ROLE.fullmatch(label):
            raise InputError(f"argument {label!r}; expected a name without white space, brackets and '*'")
        while open_spans and open_spans[-1].end <= start:
            open_spans.pop()
        if open_spans and open_spans[-1].end < end:
            raise InputError(f"arguments {open_spans[-1].label} and {label} cross; expected them to nest")
        open_spans.append(span)
        opening[start] += f"({label}"
        closing[end - 1] += ")"
    return [f"{left}*{right}" for left, right in zip(opening, closing, strict=True)]
