"""make_treebank: a generated treebank with known structure.

Sentences come from a small lexicalised grammar of English (`treewright.data.lexicon`). They are unambiguous,
except for six families of planted ambiguities, in which one sequence of words has two structures. Two, three
or four words, connected by one, two or three arcs, together determine the correct structure. A proper subset
of these words carries no information. A pattern of three arcs does not fit into a single part of a
third-order parser (grandparent, siblings, grand-siblings, tri-siblings on one side). It is a sibling with its
own child, a chain of three arcs, or children on both sides of a head.

Each slot has few words, which differ in frequency. In 2,000 sentences, frequent combinations of the words of
a family occur about ten times, and about half of all combinations occur at most once.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from operator import attrgetter
from random import Random
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from treewright._typing import RandomState
from treewright._validate import check_integer, check_number, draw_seed
from treewright.data import lexicon
from treewright.data.consttree import ConstTree, Span
from treewright.data.deptree import DepTree
from treewright.data.lexicon import LexiconWord
from treewright.data.propbank import Proposition, PropSentence
from treewright.progress import track

T = TypeVar("T")


class Pattern(NamedTuple):
    """Words that jointly determine the reading of an ambiguity.

    See Also
    --------
    make_treebank : Generates sentences with patterns.
    PlantedDecision : An occurrence of a pattern.

    Examples
    --------
    >>> tw.make_treebank(1).describe().patterns[0].structure
    'sketch >obj sailor, sketch >obl lantern >case with'
    """

    family: str
    """Name of the family of ambiguities."""
    order: int
    """Number of arcs that connect the words."""
    words: tuple[tuple[str, str], ...]
    """The slots and lemmas of these words."""
    attachment: str
    """The slot of the correct head."""
    structure: str
    """The arcs of the correct reading, such as ``spot >obj sailor >nmod lantern``; ``*`` is any word."""


class PlantedDecision(NamedTuple):
    """A word in a sentence whose head is determined by a pattern.

    See Also
    --------
    Pattern : The words that determine the head.
    Treebank : Has the decisions of each sentence.

    Examples
    --------
    >>> bank = tw.make_treebank(1)
    >>> [(decision.position, decision.head) for decision in bank.decisions[0]]
    [(9, 4), (16, 17)]
    """

    pattern: Pattern
    """The pattern."""
    position: int
    """Position of the word, from 1."""
    head: int
    """The head in the tree, from 1."""
    rival: int
    """The head in the other reading, from 1."""
    follows_rule: bool
    """Whether the head is the one that the pattern requires; False for noise."""


class Description(NamedTuple):
    """Summary of the patterns in a treebank; ``print`` shows a table.

    See Also
    --------
    Treebank.describe : Makes the summary.

    Examples
    --------
    >>> print(str(tw.make_treebank(500).describe()).splitlines()[0])
    500 sentences, 563 planted decisions, 2% noise
    """

    n_sentences: int
    """Number of sentences."""
    noise: float
    """Fraction of the decisions that violate their pattern."""
    patterns: tuple[Pattern, ...]
    """All patterns."""
    counts: tuple[int, ...]
    """Number of decisions of each pattern in this treebank."""

    def __str__(self) -> str:
        rules: dict[tuple[str, int], list[tuple[int, str]]] = {}
        for count, pattern in zip(self.counts, self.patterns, strict=True):
            rules.setdefault((pattern.family, pattern.order), []).append((count, pattern.structure))
        share = f"{self.noise:.0%} noise"
        lines = [f"{self.n_sentences:,} sentences, {sum(self.counts):,} planted decisions, {share}", ""]
        lines.append(f"{'family':<22}{'arcs':>4}{'patterns':>10}{'found':>7}{'decisions':>11}  most frequent")
        for (family, order), found in rules.items():
            n_found, n_decisions = sum(count > 0 for count, _ in found), sum(count for count, _ in found)
            numbers = f"{order:>4}{len(found):>10,}{n_found:>7,}{n_decisions:>11,}"
            lines.append(f"{family:<22}{numbers}  {max(found)[1]}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, repr=False)
class Treebank:
    """Generated sentences with dependency trees, constituency trees and semantic roles.

    Attributes
    ----------
    dependencies : list of DepTree
        Trees with universal relations, tags and features, and Penn tags.
    constituents : list of ConstTree
        Penn brackets with the same words and Penn tags.
    propositions : list of PropSentence
        The roles of every verb; each argument is a constituent.
    decisions : list of list of PlantedDecision
        The planted ambiguities of each sentence.

    See Also
    --------
    make_treebank : Generates a treebank.

    Examples
    --------
    >>> tw.make_treebank(100)
    <Treebank of 100 sentences>
    """

    dependencies: list[DepTree]
    constituents: list[ConstTree]
    propositions: list[PropSentence]
    decisions: list[list[PlantedDecision]]

    def __len__(self) -> int:
        return len(self.dependencies)

    def __repr__(self) -> str:
        return f"<Treebank of {len(self):,} sentences>"

    def describe(self) -> Description:
        """Return all patterns with their number of occurrences."""
        met = Counter(decision.pattern for decisions in self.decisions for decision in decisions)
        patterns = tuple(
            pattern
            for ambiguity in _grammar().ambiguities.values()
            for pattern in dict.fromkeys(one for rule in ambiguity.rules for one in rule.patterns)
        )
        return Description(len(self), lexicon.NOISE, patterns, tuple(met[pattern] for pattern in patterns))


def make_treebank(
    n_sentences: int = 1000, random_state: RandomState = 0, *, crossing: float = 0.0
) -> Treebank:
    """Generate a treebank of English-like sentences with known ambiguities.

    The grammar is the same for every seed, so that a model trained on one treebank can be tested on another.
    With the same seed, a larger treebank starts with the sentences of a smaller one.

    Parameters
    ----------
    n_sentences : int
        Number of sentences.
    random_state : int, Generator, RandomState or None
        Seed of the random number generator. With None, results differ between calls.
    crossing : float
        Fraction of sentences with a crossing arc, from 0 to 1. In these sentences, a phrase after the verb
        modifies the subject; the constituency tree attaches it to the clause.

    Returns
    -------
    Treebank
        The sentences with their annotation.

    See Also
    --------
    fetch_treebank : Downloads a UD treebank.
    make_conjunctions : Generates samples of binary features.

    Examples
    --------
    >>> bank = make_treebank(2, random_state=1)
    >>> len(bank.dependencies), bank.constituents[0].words() == bank.dependencies[0].words
    (2, True)
    """
    check_integer("n_sentences", n_sentences)
    check_number("crossing", crossing, low=0, high=1)
    random = Random(draw_seed(random_state)).random
    bank = Treebank([], [], [], [])
    for number in track(range(1, n_sentences + 1), "generating sentences"):
        draft = _Draft(random)
        draft.write("crossing" if random() < crossing else "sentence")
        draft.add_to(bank, number)
    return bank


@dataclass(frozen=True, slots=True)
class _Element:
    """One element of a production; see ``lexicon.toml``."""

    name: str
    children: "tuple[_Element, ...]"
    words: tuple[LexiconWord, ...]
    """The words to draw from."""
    slot_words: dict[str, LexiconWord]
    """The inflected word for each lemma that the slot may have."""
    slot: str
    mark: str
    relation: str
    target: str
    role: str
    filler: str
    filled: str
    percent: int


_Row: TypeAlias = tuple[_Element, ...]


class _Rule(NamedTuple):
    """The patterns of a rule, repeated according to their frequencies, and the words of its other slots."""

    patterns: tuple[Pattern, ...]
    others: tuple[tuple[str, list[str]], ...]


class _Ambiguity(NamedTuple):
    family: lexicon.Family
    readings: tuple[_Row, ...]
    rules: tuple[_Rule, ...]


class _Grammar(NamedTuple):
    symbols: dict[str, tuple[_Row, ...]]
    """The productions of each symbol, repeated according to their weights."""
    closed_clauses: tuple[_Row, ...]
    """The productions of a clause without an embedded clause."""
    ambiguities: dict[str, _Ambiguity]


ELEMENT = re.compile(
    r"(?P<name>[^{#>@=~?]+)({(?P<slot>\w+)})?(#(?P<mark>\w+))?(>(?P<relation>[\w:]+))?(@(?P<target>\w+))?"
    r"(=(?P<role>[\w*-]+))?(~(?P<filler>\w+):(?P<filled>\w+))?(\?(?P<percent>\d+))?"
)
WEIGHT = re.compile(r"(?:^|\s)(\d+)\s")
SLOT = re.compile(r"(\w+)(\*?):")
UNSPACED = (",", ".", "'s")


@cache
def _grammar() -> _Grammar:
    symbols = {
        name: tuple(_compile(row, {}) for weight, row in _weighted(rows) for _ in range(weight))
        for name, rows in lexicon.GRAMMAR.items()
    }
    closed = tuple(row for row in symbols["clause"] if not _mentions(row, "clause"))
    return _Grammar(symbols, closed, {name: _plant(name, one) for name, one in lexicon.FAMILIES.items()})


def _weighted(text: str) -> list[tuple[int, str]]:
    """Split a text at its standalone numbers, which are weights, into (weight, text) pairs."""
    pieces = WEIGHT.split(text.strip())[1:]
    return [(int(weight), piece) for weight, piece in zip(pieces[::2], pieces[1::2], strict=True)]


def _mentions(row: _Row, name: str) -> bool:
    return any(element.name == name or _mentions(element.children, name) for element in row)


def _compile(text: str, slot_lemmas: Mapping[str, Sequence[str]]) -> _Row:
    """Parse a production into elements, given the lemmas that each slot may have."""
    rows: list[list[_Element]] = [[]]
    opened: list[str] = []
    for token in re.findall(r"\([^\s()]+|\)|[^\s()]+", text):
        if token[0] == "(":
            opened.append(token[1:])
            rows.append([])
        elif token == ")":
            children = tuple(rows.pop())
            rows[-1].append(_element(opened.pop(), children, slot_lemmas))
        else:
            rows[-1].append(_element(token, (), slot_lemmas))
    return tuple(rows[0])


def _element(token: str, children: _Row, slot_lemmas: Mapping[str, Sequence[str]]) -> _Element:
    match = ELEMENT.fullmatch(token)
    assert match, f"{token} is not an element of a production"
    fields = match.groupdict(default="")
    name, slot, percent = fields.pop("name"), fields["slot"], int(fields.pop("percent") or 100)
    is_word = not children and not slot and name not in lexicon.GRAMMAR and name not in lexicon.FAMILIES
    words = lexicon.word_list(name) if is_word else ()
    slot_words = {lemma: lexicon.inflect(lemma, name) for lemma in slot_lemmas[slot]} if slot else {}
    return _Element(name, children, words, slot_words, percent=percent, **fields)


def _plant(name: str, family: lexicon.Family) -> _Ambiguity:
    rules: list[_Rule] = []
    lemmas: dict[str, list[str]] = {}
    for weight, text in _weighted(family.rules):
        deciding: dict[str, list[str]] = {}
        others: dict[str, list[str]] = {}
        pieces = SLOT.split(text)[1:]
        for slot, star, words in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
            (deciding if star else others)[slot] = words.split()
            lemmas.setdefault(slot, []).extend(words.split())
        patterns = _patterns(name.replace("_", " "), family, deciding)
        rules += [_Rule(tuple(patterns), tuple(others.items()))] * weight
    return _Ambiguity(family, tuple(_compile(reading, lemmas) for reading in family.readings), tuple(rules))


def _patterns(name: str, family: lexicon.Family, deciding: Mapping[str, Sequence[str]]) -> Iterator[Pattern]:
    """Yield the pattern of every combination of words, repeated according to its frequency."""
    for choice in product(*(enumerate(words) for words in deciding.values())):
        reading = sum(rank for rank, _ in choice) % 2
        words = {slot: lemma for slot, (_, lemma) in zip(deciding, choice, strict=True)}
        structure = family.structures[reading].format_map(defaultdict(lambda: "*", words))
        pattern = Pattern(name, len(words) - 1, tuple(words.items()), family.heads[reading], structure)
        for _ in range(prod(lexicon.SLOT_FREQUENCIES[rank] for rank, _ in choice)):
            yield pattern


class _Phrase(NamedTuple):
    head: int
    """Position of the head word of the phrase, from 1."""
    start: int
    end: int


class _Scope(NamedTuple):
    """State shared by the elements of one production during generation."""

    lemmas: Mapping[str, str]
    """The lemma of each slot."""
    marks: dict[str, _Phrase]
    waiting: list[tuple[_Element, int]]
    """Elements that refer to a mark, each with the position of its head."""


class _Draft:
    """The annotation of one sentence while it is generated from left to right."""

    def __init__(self, random: Callable[[], float]) -> None:
        self.random = random
        self.grammar = _grammar()
        self.words: list[LexiconWord] = []
        self.heads: list[int] = []
        self.deprels: list[str] = []
        self.labels: list[str] = []
        self.sizes: list[int] = []
        self.arguments: dict[int, list[Span]] = {}
        self.decisions: list[PlantedDecision] = []
        self.n_open_clauses = 0

    def write(self, symbol: str) -> int:
        """Generate an expansion of `symbol` and return the position of its head."""
        if symbol in self.grammar.ambiguities:
            return self._write_ambiguity(self.grammar.ambiguities[symbol])
        if symbol != "clause":
            return self._write_production(self._draw(self.grammar.symbols[symbol]), _Scope({}, {}, []))
        self.n_open_clauses += 1
        is_last = self.n_open_clauses > lexicon.MAX_DEPTH
        rows = self.grammar.closed_clauses if is_last else self.grammar.symbols[symbol]
        head = self._write_production(self._draw(rows), _Scope({}, {}, []))
        self.n_open_clauses -= 1
        return head

    def add_to(self, bank: Treebank, number: int) -> None:
        """Add the finished sentence to `bank`."""
        self._capitalize()
        forms, lemmas, upos, xpos, feats, _ = map(list, zip(*self.words, strict=True))
        text, misc = _typeset(forms)
        comments = [f"# sent_id = {number}", f"# text = {text}"]
        tree = DepTree(
            forms,
            self.heads,
            self.deprels,
            lemmas=lemmas,
            upos=upos,
            xpos=xpos,
            feats=feats,
            misc=misc,
            comments=comments,
        )
        bank.dependencies.append(tree)
        bank.constituents.append(ConstTree.from_arrays(self.labels, np.array(self.sizes, dtype=np.int32)))
        bank.propositions.append(PropSentence(forms, xpos, self._propositions(), comments))
        bank.decisions.append(self.decisions)

    def _capitalize(self) -> None:
        first = self.words[0]
        form = first.form[0].upper() + first.form[1:]
        self.words[0] = first._replace(form=form)
        self.labels[0] = form

    def _propositions(self) -> list[Proposition]:
        propositions = []
        for position, spans in self.arguments.items():
            verb = self.words[position - 1]
            in_order = tuple(sorted(spans, key=attrgetter("start")))
            propositions.append(Proposition(position - 1, verb.lemma, verb.sense, in_order))
        return propositions

    def _draw(self, choices: Sequence[T]) -> T:
        return choices[int(self.random() * len(choices))]

    def _write_ambiguity(self, ambiguity: _Ambiguity) -> int:
        family = ambiguity.family
        rule = self._draw(ambiguity.rules)
        pattern = self._draw(rule.patterns)
        lemmas = dict(pattern.words)
        for slot, words in rule.others:
            lemmas[slot] = self._draw(words)
        follows_rule = self.random() >= lexicon.NOISE
        reading = family.heads.index(pattern.attachment) ^ (not follows_rule)
        scope = _Scope(lemmas, {}, [])
        top = self._write_production(ambiguity.readings[reading], scope)
        decided, head, rival = (
            scope.marks[slot].head
            for slot in (family.decided, family.heads[reading], family.heads[1 - reading])
        )
        self.decisions.append(PlantedDecision(pattern, decided, head, rival, follows_rule))
        return top

    def _write_production(self, row: _Row, scope: _Scope) -> int:
        top = self._write_row(row, scope)
        for element, position in scope.waiting:
            if element.target:
                self.heads[position - 1] = scope.marks[element.target].head
            if element.filler:
                _, start, end = scope.marks[element.filler]
                self.arguments[position].append(Span(element.filled, start, end))
        return top

    def _write_row(self, row: _Row, scope: _Scope) -> int:
        """Generate elements from left to right, attach them to their head, and return its position."""
        head = 0
        dependents: list[tuple[_Element, _Phrase]] = []
        for element in row:
            if element.percent == 100 or self.random() * 100 < element.percent:
                start = len(self.words)
                position = self._write_element(element, scope)
                if element.relation:
                    dependents.append((element, _Phrase(position, start, len(self.words))))
                else:
                    head = position
        for element, phrase in dependents:
            self._attach(element, phrase, head)
        return head

    def _write_element(self, element: _Element, scope: _Scope) -> int:
        start = len(self.words)
        if element.words:
            position = self._add(self._draw(element.words))
        elif element.children:
            opened = len(self.labels)
            position = self._write_row(element.children, scope)
            self.labels.append(element.name)
            self.sizes.append(len(self.labels) - opened)
        elif element.slot:
            position = self._add(element.slot_words[scope.lemmas[element.slot]])
        else:
            position = self.write(element.name)
        if mark := element.mark or element.slot:
            scope.marks[mark] = _Phrase(position, start, len(self.words))
        if element.target or element.filler:
            scope.waiting.append((element, position))
        return position

    def _add(self, word: LexiconWord) -> int:
        if self.words and self.words[-1].form == "a" and word.form[0] in "aeiou":
            self.words[-1] = lexicon.inflect("an", "DT")
            self.labels[-2] = "an"
        self.words.append(word)
        self.heads.append(0)
        self.deprels.append("root")
        self.labels += (word.form, word.xpos)
        self.sizes += (1, 2)
        position = len(self.words)
        if word.sense:
            self.arguments[position] = [Span("V", position - 1, position)]
        return position

    def _attach(self, element: _Element, phrase: _Phrase, head: int) -> None:
        self.heads[phrase.head - 1] = head
        self.deprels[phrase.head - 1] = element.relation
        role = element.role
        if role == "ARGM-*":
            role = lexicon.MODIFIER_ROLES[self.words[phrase.start].lemma]
        if role:
            self.arguments[head].append(Span(role, phrase.start, phrase.end))


def _typeset(forms: list[str]) -> tuple[str, list[str]]:
    """Return the sentence as text, and the MISC column with ``SpaceAfter=No``."""
    glued = [form in UNSPACED for form in forms[1:]]
    text = forms[0] + "".join(
        form if is_glued else f" {form}" for form, is_glued in zip(forms[1:], glued, strict=True)
    )
    return text, ["SpaceAfter=No" if is_glued else "_" for is_glued in glued] + ["_"]
