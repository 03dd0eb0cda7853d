"""Reader and writer of PropBank columns: predicates and their arguments, one column per predicate.

Each line has the number of the word, the word, its tag, the lemma and the sense of a predicate (``-`` for
other words), and one column per predicate in which ``(ARG0*``, ``*`` and ``*)`` mark the arguments.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from treewright._validate import check_type
from treewright.data.conllu import Block, iter_blocks, join_lines, wrong_column_count
from treewright.data.consttree import Span
from treewright.data.files import Source, Target, open_target, track_writing
from treewright.errors import InputError, quote

N_FIXED_COLUMNS = 5
ABSENT = "-"
ROLE = re.compile(r"[^\s()*]+")
CELL = re.compile(rf"((?:\({ROLE.pattern})*)\*(\)*)")


class Proposition(NamedTuple):
    """A predicate with its arguments.

    See Also
    --------
    PropSentence : A sentence with its propositions.
    read_props : Reads sentences with propositions.

    Examples
    --------
    >>> tw.make_treebank(1).propositions[0].propositions[1]
    Proposition(predicate=7, lemma='sneeze', sense='sneeze.01', arguments=(...))
    """

    predicate: int
    """Position of the predicate in the sentence, from 0."""
    lemma: str
    """Lemma of the predicate."""
    sense: str
    """Sense of the predicate, such as ``swear.01``."""
    arguments: tuple[Span, ...]
    """The labelled spans of its column, including ``V`` for the predicate, from left to right."""


class PropSentence(NamedTuple):
    """A sentence with all its propositions.

    See Also
    --------
    Proposition : A predicate with its arguments.
    read_props : Reads sentences with propositions.

    Examples
    --------
    >>> len(tw.make_treebank(1).propositions[0].propositions)
    3
    """

    words: list[str]
    """The words."""
    tags: list[str]
    """Part-of-speech tags."""
    propositions: list[Proposition]
    """The propositions."""
    comments: list[str]
    """Comment lines, each with its leading ``#``."""


def iter_props(source: Source) -> Iterator[PropSentence]:
    """Iterate over the sentences of a file of PropBank columns.

    Parameters
    ----------
    source : path, "-" for standard input, or an open file
        Plain text or gzip.

    Yields
    ------
    PropSentence
        The next sentence.

    Raises
    ------
    FormatError
        If the file is malformed; gives file, line, value found and value expected.

    See Also
    --------
    read_props : Returns all sentences as a list.
    write_props : The inverse.

    Examples
    --------
    >>> tw.write_props(tw.make_treebank(2).propositions, "roles.props")
    >>> for sentence in tw.iter_props("roles.props"):
    ...     print([proposition.lemma for proposition in sentence.propositions])
    ['swear', 'sneeze', 'promise']
    ['thank', 'carry', 'whistle']
    """
    for block in iter_blocks(source):
        yield _parse_block(block)


def read_props(source: Source) -> list[PropSentence]:
    """Read a file of PropBank columns.

    Parameters
    ----------
    source : path, "-" for standard input, or an open file
        Plain text or gzip.

    Returns
    -------
    list of PropSentence
        All sentences of the file.

    See Also
    --------
    iter_props : Yields one sentence at a time.
    write_props : The inverse.

    Examples
    --------
    >>> sentences = tw.make_treebank(2).propositions
    >>> tw.write_props(sentences, "roles.props")
    >>> tw.read_props("roles.props") == sentences
    True
    """
    return list(iter_props(source))


def write_props(sentences: Iterable[PropSentence], target: Target) -> None:
    """Write sentences as PropBank columns.

    Parameters
    ----------
    sentences : iterable of PropSentence
        The sentences.
    target : path, "-" for standard output, or an open file
        A name that ends in ``.gz`` is compressed.

    See Also
    --------
    read_props : The inverse.

    Examples
    --------
    >>> tw.write_props(tw.make_treebank(2).propositions, "roles.props")
    """
    with open_target(target) as stream:
        for sentence in track_writing(sentences, target):
            stream.write(format_sentence(sentence))


def _parse_block(block: Block) -> PropSentence:
    rows = [line.split("\t") for line in block.lines]
    n_predicates = sum(len(row) >= N_FIXED_COLUMNS and row[3] != ABSENT for row in rows)
    for index, row in enumerate(rows):
        if len(row) != N_FIXED_COLUMNS + n_predicates:
            expected = f"{N_FIXED_COLUMNS}, and one for each of {n_predicates} predicates"
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
            raise block.error(index, found, "'*', optionally with brackets, as in '(ARG0*)'")
        for label in cell[1].split("(")[1:]:
            open_spans.append(len(spans))
            spans.append(Span(label, index, len(rows)))
        for _ in cell[2]:
            if not open_spans:
                raise block.error(index, f"an unmatched ')' in column {column + 1}", "as many ')' as '('")
            closed = open_spans.pop()
            spans[closed] = spans[closed]._replace(end=index + 1)
    if open_spans:
        found = f"{spans[open_spans[0]].label} is never closed in column {column + 1}"
        raise block.error(len(rows) - 1, found, "as many ')' as '('")
    return tuple(spans)


def format_sentence(sentence: PropSentence) -> str:
    """Return one sentence as text, including the blank line at the end."""
    check_type("sentence", sentence, PropSentence, "a PropSentence")
    n = len(sentence.words)
    if len(sentence.tags) != n:
        raise InputError(f"the sentence has {len(sentence.tags)} tags; expected {n}, one per word")
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
    """Check the position, lemma and sense of a predicate; a word has at most one proposition."""
    at, lemma, sense, _ = proposition
    if not 0 <= at < len(lemmas):
        raise InputError(
            f"a predicate has position {at} in a sentence of {len(lemmas)} words; "
            "expected a position in the sentence"
        )
    if lemmas[at] != ABSENT:
        raise InputError(f"word {at} has two propositions; expected one")
    if ABSENT in (lemma, sense):
        raise InputError(
            f"a predicate has lemma {lemma!r} and sense {sense!r}; expected names other than {ABSENT!r}"
        )


def _format_column(proposition: Proposition, n: int) -> list[str]:
    opening, closing = [""] * n, [""] * n
    open_spans: list[Span] = []
    for span in sorted(proposition.arguments, key=lambda one: (one.start, -one.end)):
        label, start, end = span
        if not 0 <= start < end <= n:
            raise InputError(
                f"argument {label} covers words {start} to {end} of a sentence of {n} words; "
                "expected a non-empty span inside it"
            )
        if not ROLE.fullmatch(label):
            raise InputError(
                f"an argument has label {label!r}; expected a label without whitespace, brackets and '*'"
            )
        while open_spans and open_spans[-1].end <= start:
            open_spans.pop()
        if open_spans and open_spans[-1].end < end:
            raise InputError(
                f"arguments {open_spans[-1].label} and {label} cross; expected nested or separate ones"
            )
        open_spans.append(span)
        opening[start] += f"({label}"
        closing[end - 1] += ")"
    return [f"{left}*{right}" for left, right in zip(opening, closing, strict=True)]
