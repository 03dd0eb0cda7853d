"""Predicate identification: predicates with their lemmas and senses."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Self

from treewright.data.propbank import ABSENT, Proposition, PropSentence
from treewright.data.templates import TemplateLanguage
from treewright.errors import InputError, quote
from treewright.model import Model, Submodel, Value, saved
from treewright.progress import track
from treewright.srl.arguments import VERB, Shape, is_verbal
from treewright.srl.codes import CodeClassifier, Codes, encode, join_codes
from treewright.tagging.lemmas import Script

KINDS = ("verbs", "all")
VERBS, ALL = KINDS
NOTHING = "-"
LONGEST_SUFFIX = 8
N_LETTERS = 3
FIRST_SENSE = ".01"
COST = 1.0

TEMPLATES = """
word
lower
lemma
tag
suffix
lower tag
lemma tag
before
before_tag
after
after_tag
second_before_tag
second_after_tag
parent
grandparent
left
right
rule
complement
particle
lower before
lower after
lemma parent
lemma complement
lemma left
lemma right
lemma before_tag
lemma after_tag
lower before_tag after_tag
tag parent grandparent
tag left right
tag before after
before_tag tag after_tag
second_before_tag before_tag tag
tag after_tag second_after_tag
tag complement grandparent
suffix tag parent
"""
"""Feature templates of a word, for deciding whether it is a predicate."""


class TreeWord(NamedTuple):
    """A word of a tree with the context that its features need."""

    shape: Shape
    place: int
    lemma: str

    @property
    def node(self) -> int:
        """The preterminal node of the word."""
        return self.shape.preterminal(self.place)

    def text(self, step: int = 0) -> str:
        """Return the lower-cased word `step` positions after this one."""
        at = self.place + step
        return word_at(self.shape, at).lower() if 0 <= at < len(self.shape.leaves) else NOTHING

    def tag(self, step: int = 0) -> str:
        """Return the tag of the word `step` positions after this one."""
        at = self.place + step
        return tag_at(self.shape, at) if 0 <= at < len(self.shape.leaves) else NOTHING

    def above(self, n_steps: int) -> str:
        """Return the label `n_steps` nodes above the tag."""
        way = self.shape.path_to_root(self.node)
        return self.shape.labels[way[n_steps]] if n_steps < len(way) else NOTHING

    def sisters(self) -> list[int]:
        """Return all children of the parent of the preterminal node, including this node itself."""
        parent = self.shape.parents[self.node]
        return self.shape.children[parent] if parent >= 0 else [self.node]

    def sister(self, step: int) -> str:
        """Return the label of the sister node `step` positions after the preterminal node."""
        sisters = self.sisters()
        at = sisters.index(self.node) + step
        return self.shape.labels[sisters[at]] if 0 <= at < len(sisters) else NOTHING

    def behind(self, label: str) -> int | None:
        """Return the first sister node with this label after the word."""
        sisters = [node for node in self.sisters() if self.shape.starts[node] > self.place]
        return next((node for node in sisters if self.shape.labels[node] == label), None)

    def complement(self) -> str:
        """Return the tag of the verb after an auxiliary."""
        node = self.behind("VP")
        return NOTHING if node is None else tag_at(self.shape, self.shape.heads[node])

    def particle(self) -> str:
        """Return the particle of a verb."""
        node = self.behind("PRT")
        return NOTHING if node is None else word_at(self.shape, self.shape.heads[node]).lower()

    def rule(self) -> str:
        """Return the labels of the preterminal node and its sisters."""
        return " ".join(self.shape.labels[node] for node in self.sisters())


def word_at(shape: Shape, place: int) -> str:
    """Return the word at a position."""
    return shape.labels[shape.leaves[place]]


def tag_at(shape: Shape, place: int) -> str:
    """Return the tag of the word at a position."""
    return shape.labels[shape.preterminal(place)]


VALUES: dict[str, Callable[[TreeWord], str]] = {
    "word": lambda word: word_at(word.shape, word.place),
    "lower": TreeWord.text,
    "lemma": lambda word: word.lemma,
    "tag": TreeWord.tag,
    "suffix": lambda word: word.text()[-N_LETTERS:],
    "before": lambda word: word.text(-1),
    "before_tag": lambda word: word.tag(-1),
    "after": lambda word: word.text(1),
    "after_tag": lambda word: word.tag(1),
    "second_before_tag": lambda word: word.tag(-2),
    "second_after_tag": lambda word: word.tag(2),
    "parent": lambda word: word.above(1),
    "grandparent": lambda word: word.above(2),
    "left": lambda word: word.sister(-1),
    "right": lambda word: word.sister(1),
    "rule": TreeWord.rule,
    "complement": TreeWord.complement,
    "particle": TreeWord.particle,
}
"""The functions that compute the features, by name."""
LANGUAGE = TemplateLanguage(VALUES)


class LemmaTable:
    """Lemmas of tagged words: known words are looked up, and edit scripts are applied to unknown words.

    The script for an unknown word is the most common one among the known words with the same tag that have
    the longest suffix in common with it.
    """

    def __init__(self, lemmas: Iterable[tuple[str, str, str]]) -> None:
        counts = Counter((word.lower(), tag, lemma) for word, tag, lemma in lemmas)
        self.known: dict[tuple[str, str], str] = {}
        for word, tag, lemma in sorted(counts, key=lambda each: (-counts[each], each)):
            self.known.setdefault((word, tag), lemma)
        self.scripts = _common_scripts(self.known)

    def to_list(self) -> list[list[str]]:
        """Return the words, tags and lemmas of the table as a list."""
        return [[word, tag, lemma] for (word, tag), lemma in sorted(self.known.items())]

    def lemma(self, word: str, tag: str) -> str:
        """Return the lemma of a word."""
        word = word.lower()
        if (word, tag) in self.known:
            return self.known[word, tag]
        for suffix in _suffixes(word):
            if (tag, suffix) in self.scripts:
                return self.scripts[tag, suffix].apply(word) or word
        return word


def _common_scripts(known: dict[tuple[str, str], str]) -> dict[tuple[str, str], Script]:
    """For each tag and suffix, return the most common script that changes nothing before the suffix."""
    counts: Counter[tuple[str, str, Script]] = Counter()
    for (word, tag), lemma in known.items():
        n_kept = _n_shared(word, lemma)
        script = Script("lower", 0, "", len(word) - n_kept, lemma[n_kept:])
        counts.update((tag, suffix, script) for suffix in _suffixes(word) if len(suffix) >= script.n_after)
    common: dict[tuple[str, str], Script] = {}
    for tag, suffix, script in sorted(counts, key=lambda each: (-counts[each], each)):
        common.setdefault((tag, suffix), script)
    return common


def _n_shared(word: str, lemma: str) -> int:
    """Return the length of the common prefix of two words."""
    return next(
        (at for at, pair in enumerate(zip(word, lemma, strict=False)) if pair[0] != pair[1]),
        min(len(word), len(lemma)),
    )


def _suffixes(word: str) -> list[str]:
    """Return the suffixes of a word in descending length, including the empty suffix."""
    return [word[len(word) - size :] for size in range(min(len(word), LONGEST_SUFFIX), -1, -1)]


class PredicateFinder(Model):
    """Finds predicates with their lemmas and senses.

    The sense is the most frequent one for the combination of lemma, particle and use as an auxiliary verb.

    Parameters
    ----------
    predicates : {"verbs", "all"}
        Consider only words with a verb tag, or also words whose form or lemma was a predicate in training.
    random_state : int
        Seed of the random number generator.

    Attributes
    ----------
    table_ : LemmaTable
        Lemmas of known words, and edit scripts for unknown words.
    senses_ : dict of str to str
        The most frequent sense for each combination of lemma, particle and auxiliary use.
    classifier_ : CodeClassifier or None
        Identifies predicates; None if the training data has no candidates.
    """

    fields = saved(
        table_=Value(encode=LemmaTable.to_list, decode=LemmaTable),
        senses_=Value(decode=lambda senses: _check_senses(senses)),
        classifier_=Submodel(CodeClassifier, optional=True),
    )

    def __init__(self, predicates: str = VERBS, *, random_state: int = 0) -> None:
        self.predicates = predicates
        self.random_state = random_state

    def fit(self, shapes: Sequence[Shape], sentences: Sequence[PropSentence]) -> Self:
        """Train on sentences with gold predicates."""
        known = [
            (TreeWord(shape, one.predicate, one.lemma), one.sense)
            for shape, sentence in zip(shapes, sentences, strict=True)
            for one in sentence.propositions
            if self.predicates == ALL or is_verbal(sentence, one)
        ]
        self.table_ = LemmaTable((word.text(), word.tag(), word.lemma) for word, _ in known)
        self.restore()
        self.senses_ = _common_senses(known)
        words, is_true = [], []
        for shape, sentence in zip(shapes, sentences, strict=True):
            found = list(self._words(shape))
            places = {one.predicate for one in sentence.propositions}
            words += found
            is_true += [word.place in places for word in found]
        self.classifier_ = (
            CodeClassifier(C=COST, random_state=self.random_state).fit(_encode(words), is_true)
            if words
            else None
        )
        return self

    def _words(self, shape: Shape) -> Iterator[TreeWord]:
        """Yield the candidate words."""
        for place in range(len(shape.leaves)):
            text, tag = word_at(shape, place), tag_at(shape, place)
            is_verb = tag.startswith(VERB)
            if is_verb or self.predicates == ALL:
                lemma = self.table_.lemma(text, tag)
                is_known = text.lower() in self._known_words or lemma in self._known_lemmas
                if lemma != ABSENT and (is_verb or is_known):
                    yield TreeWord(shape, place, lemma)

    def predict(self, shapes: Sequence[Shape]) -> list[list[Proposition]]:
        """Return the predicates of sentences, without arguments."""
        words = [list(self._words(shape)) for shape in shapes]
        flat = [word for each in words for word in each]
        odds = iter(self.classifier_.log_odds(_encode(flat)).tolist() if self.classifier_ and flat else [])
        return [[self._name(word) for word in each if next(odds, -1.0) > 0] for each in words]

    def _name(self, word: TreeWord) -> Proposition:
        found = (self.senses_[key] for key in _sense_keys(word) if key in self.senses_)
        return Proposition(word.place, word.lemma, next(found, word.lemma + FIRST_SENSE), ())

    def restore(self) -> None:
        """Rebuild the sets of known words and lemmas."""
        self._known_words = {word for word, _ in self.table_.known}
        self._known_lemmas = set(self.table_.known.values())


def _check_senses(senses: object) -> dict[str, str]:
    if not isinstance(senses, dict) or not all(isinstance(sense, str) for sense in senses.values()):
        raise InputError(f"senses is {quote(repr(senses))}; expected a dictionary of strings")
    return senses


def _encode(words: Sequence[TreeWord]) -> Codes:
    described = track(words, "describing words", unit="words")
    values = encode(([function(word) for function in VALUES.values()] for word in described), len(VALUES))
    return join_codes(values, list(VALUES), LANGUAGE.parse(TEMPLATES))


def _common_senses(predicates: Iterable[tuple[TreeWord, str]]) -> dict[str, str]:
    """Return the most frequent sense for each key."""
    counts: Counter[tuple[str, str]] = Counter()
    for word, sense in predicates:
        counts.update((key, sense) for key in _sense_keys(word))
    common: dict[str, str] = {}
    for key, sense in sorted(counts, key=lambda each: (-counts[each], each)):
        common.setdefault(key, sense)
    return common


def _sense_keys(word: TreeWord) -> list[str]:
    """Return the lookup keys for the sense of a word, the most specific key first."""
    kind = f"{word.lemma} {word.tag()[: len(VERB)]}"
    with_particle = f"{kind} {word.particle()}"
    return [f"{with_particle} {word.behind('VP') is not None}", with_particle, kind, word.lemma]
