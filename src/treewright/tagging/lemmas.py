"""Lemmatization by edit scripts.

An edit script turns a word into its lemma: it changes the casing, removes letters at either end, and adds
letters there.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from treewright._typing import Count, IntArray, NonNegativeInt
from treewright.checkpoint import Checkpoint
from treewright.model import Model, Submodel, Value, expect, saved
from treewright.native.tagging.classifier import EncodedText
from treewright.tagging.classifier import WordClassifier

TEMPLATES = """
w.label
w.word w.label
w.lower w.label
w.lower
w.shape w.label
w.shape
w.shape w.suffix3 w.upos
w.suffix1 w.label
w.suffix2 w.label
w.suffix3 w.label
w.suffix4 w.label
w.suffix5 w.label
w.suffix6 w.label
w.suffix1
w.suffix2
w.suffix3
w.suffix4
w.suffix5
w.suffix6
w.prefix1 w.upos
w.prefix2 w.upos
w.prefix3 w.upos
w.prefix4 w.upos
"""
"""Feature templates of a word and its label, for choosing a script."""

CASINGS: dict[str, Callable[[str], str]] = {
    "lower": lambda word: word.replace("İ", "i").lower(),  # Python lowers it to two characters
    "keep": str,
    "title": lambda word: word[:1].upper() + word[1:].lower(),
    "upper": str.upper,
    "drop": lambda word: "",
}


MIN_STEM = 2
"""Minimum number of letters of a word that a script keeps, unless it kept fewer in training."""


class Script(NamedTuple):
    """An edit script, which turns a word into its lemma."""

    casing: str
    n_before: int
    """Number of letters to remove at the start."""
    before: str
    """Letters to add at the start."""
    n_after: int
    after: str
    shortest: int = 0
    """Minimum number of letters to keep; if fewer remain, only the casing changes."""

    def apply(self, word: str) -> str:
        """Return the lemma of a word."""
        base = CASINGS[self.casing](word)
        if max(0, len(base) - self.n_before - self.n_after) < self.shortest:
            return base
        return self.before + base[self.n_before : max(self.n_before, len(base) - self.n_after)] + self.after


def make_script(word: str, lemma: str) -> Script:
    """Return the script that keeps most letters of the word; ties go to the first casing in `CASINGS`."""
    best = Script("drop", 0, "", 0, lemma)
    longest = 0
    for casing, change in CASINGS.items():
        base = change(word)
        at, in_lemma, size = longest_common(base, lemma, longest)
        if size > longest:
            longest = size
            best = Script(casing, at, lemma[:in_lemma], len(base) - at - size, lemma[in_lemma + size :])
    return best


def longest_common(a: str, b: str, shortest: int = 0) -> tuple[int, int, int]:
    """Return the start of the longest common substring in each string, and its length.

    If no common substring is longer than `shortest`, the length is 0.
    """
    for size in range(min(len(a), len(b)), shortest, -1):
        for at in range(len(a) - size + 1):
            place = b.find(a[at : at + size])
            if place >= 0:
                return at, place, size
    return 0, 0, 0


class Lemmatizer(Model):
    """Classifier that chooses an edit script for each word, given its label.

    Parameters
    ----------
    epochs : int
        Number of passes over the distinct (word, label) pairs.
    runs : int
        Number of training runs whose weights are averaged.
    random_state : int
        Seed of the random number generator.

    Attributes
    ----------
    scripts_ : list of Script
        The edit scripts that can be predicted.
    classifier_ : WordClassifier
        Predicts the edit script of each word.
    """

    fields = saved(
        scripts_=Value(encode=list, decode=lambda scripts: [Script(*script) for script in scripts]),
        classifier_=Submodel(WordClassifier),
    )

    def __init__(self, *, epochs: Count = 8, runs: Count = 1, random_state: NonNegativeInt = 0) -> None:
        self.epochs = epochs
        self.runs = runs
        self.random_state = random_state

    def fit(
        self,
        text: EncodedText,
        labels: IntArray,
        words: Sequence[str],
        lemmas: Sequence[str],
        *,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """Train on words with labels and lemmas; the lemma ``"_"`` means unknown."""
        pairs = Pairs.from_text(text, labels)
        scripts = _frequent_scripts(pairs, words, lemmas)
        is_known = np.array([script is not None for script in scripts])
        counts = Counter(script for script in scripts if script is not None)
        self.scripts_ = sorted(counts, key=lambda script: (-counts[script], script))
        numbers = {script: number for number, script in enumerate(self.scripts_)}
        gold = np.array([numbers[script] for script in scripts if script is not None], dtype=np.int32)
        self._limit_scripts(scripts, [words[at] for at in pairs.examples.tolist()])
        n_seen = np.bincount(text.types)[pairs.types[is_known]]
        self.classifier_ = WordClassifier(TEMPLATES, "", [[number] for number in range(len(self.scripts_))])
        self.classifier_.learn(
            pairs.as_text(text, is_known),
            pairs.labels[is_known],
            gold,
            n_seen,
            epochs=self.epochs,
            runs=self.runs,
            random_state=self.random_state,
            checkpoint=checkpoint,
            what="learning lemmas",
            unit="words",
        )
        return self

    def _limit_scripts(self, scripts: Sequence[Script | None], words: Sequence[str]) -> None:
        """Require each script to keep at least `MIN_STEM` letters, unless it kept fewer in training."""
        shortest: dict[Script, int] = {}
        for script, word in zip(scripts, words, strict=True):
            if script is not None and script.n_before + script.n_after:
                size = len(CASINGS[script.casing](word)) - script.n_before - script.n_after
                shortest[script] = min(size, shortest.get(script, size))
        self.scripts_ = [
            script._replace(shortest=min(shortest.get(script, 0), MIN_STEM)) for script in self.scripts_
        ]

    def predict(self, text: EncodedText, labels: IntArray, words: Sequence[str]) -> list[str]:
        """Return the lemmas of words with labels."""
        pairs = Pairs.from_text(text, labels)
        found = self.classifier_.choose(pairs.as_text(text), pairs.labels).tolist()
        chosen = [
            self.scripts_[script].apply(words[at])
            for script, at in zip(found, pairs.examples.tolist(), strict=True)
        ]
        return [chosen[number] for number in pairs.of_words.tolist()]

    def check_fitted_state(self) -> None:
        """Check that there is one outcome per script."""
        expect(len(self.classifier_.pieces) == len(self.scripts_), "a piece for each script")


class Pairs(NamedTuple):
    """The distinct (word, label) pairs in a text."""

    types: IntArray
    labels: IntArray
    examples: npt.NDArray[np.int64]
    """For each pair, the position of one of its words in the text."""
    of_words: npt.NDArray[np.int64]
    """The index of the pair of each word."""

    @classmethod
    def from_text(cls, text: EncodedText, labels: IntArray) -> "Pairs":
        """Collect the distinct (word, label) pairs of a text."""
        n_labels = len(text.label_values)
        codes = text.types.astype(np.int64) * n_labels + labels
        codes, examples, of_words = np.unique(codes, return_index=True, return_inverse=True)
        types, own = np.divmod(codes, n_labels)
        return cls(types.astype(np.int32), own.astype(np.int32), examples, of_words)

    def as_text(self, text: EncodedText, is_kept: npt.NDArray[np.bool_] | None = None) -> EncodedText:
        """Return all pairs, or the kept ones, as a text with one word per sentence."""
        types = self.types if is_kept is None else self.types[is_kept]
        return text._replace(indptr=np.arange(len(types) + 1), types=types)


def _frequent_scripts(pairs: Pairs, words: Sequence[str], lemmas: Sequence[str]) -> list[Script | None]:
    """Return the script of the most frequent lemma of each pair, or None if the lemma is unknown."""
    counts: list[Counter[str]] = [Counter() for _ in pairs.examples]
    for pair, lemma in zip(pairs.of_words.tolist(), lemmas, strict=True):
        counts[pair][lemma] += lemma != "_"
    best = [max(count, key=lambda lemma: count[lemma]) for count in counts]
    return [
        make_script(words[at], lemma) if count[lemma] else None
        for at, lemma, count in zip(pairs.examples.tolist(), best, counts, strict=True)
    ]
