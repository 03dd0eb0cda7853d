"""Multiword tokens: splitting a token into its syntactic words.

A splitting derives the words from the token. Either it cuts the token into substrings, or an edit script
turns the token into one of the words (the stem), and the other words are constant strings.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from treewright._typing import Count, IntArray, NonNegativeInt
from treewright.model import Array, Model, Record, Submodel, Value, expect, saved
from treewright.native.tagging.classifier import LOWER, EncodedText, Lexicon
from treewright.tagging.classifier import WordClassifier, hash_words, word_attributes
from treewright.tagging.lemmas import Script, longest_common, make_script

TEMPLATES = """
w.word
w.lower
w.shape
w.suffix1
w.suffix2
w.suffix3
w.suffix4
w.suffix5
w.suffix6
w.prefix1
w.prefix2
w.prefix3
w.prefix4
w.suffix1 w.shape
w.suffix2 w.shape
w.suffix3 w.shape
w.suffix2 w.prefix1
w.suffix3 w.prefix2
w.prefix1 w.shape
w.prefix2 w.shape
w.upos
w.tag
w.label
w.upos w.shape
w.upos w.suffix3
w.tag w.suffix4
"""
"""Feature templates of a token. ``upos`` is the shortest ending whose removal leaves a known word, ``tag`` is
the longest such ending, and ``label`` has all such endings, each with the part of speech of that word."""
MIN_ENDINGS = 40
"""Stems are looked up if there are at least this many distinct endings; for fewer, suffixes suffice."""
MAX_ENDING = 8
MAX_KNOWN = 100_000
"""Maximum number of cached tokens."""


class Splitting(NamedTuple):
    """A rule that splits a token into words."""

    cuts: tuple[int, ...]
    """Positions of the cuts, from the start or, if negative, from the end; empty if there is a script."""
    stem: int = 0
    """Position of the word that the script produces."""
    script: Script | None = None
    others: tuple[str, ...] = ()
    """The other words."""

    def apply(self, form: str) -> tuple[str, ...]:
        """Return the words of a token, or only the token itself if the splitting does not apply."""
        if self.script is None:
            places = [cut if cut >= 0 else len(form) + cut for cut in self.cuts]
            bounds = [0, *places, len(form)]
            words = [form[begin:end] for begin, end in pairwise(bounds)]
        else:
            others = [_in_case_of(form, other) for other in self.others]
            words = [*others[: self.stem], self.script.apply(form), *others[self.stem :]]
            if self.stem > 0 and form[:1].isupper():
                words[0] = words[0][:1].upper() + words[0][1:]
        return tuple(words) if all(word.strip() for word in words) and len(words) > 1 else (form,)


def make_splitting(form: str, words: tuple[str, ...]) -> Splitting:
    """Return a splitting that turns the token into the words."""
    sizes = [len(word) for word in words]
    if "".join(words) == form:
        longest = sizes.index(max(sizes))
        ends = np.cumsum(sizes)[:-1].tolist()
        return Splitting(tuple(end if at < longest else end - len(form) for at, end in enumerate(ends)))
    shared = [longest_common(form.lower(), word.lower())[2] for word in words]
    stem = shared.index(max(shared))
    others = tuple(word.lower() for at, word in enumerate(words) if at != stem)
    return Splitting((), stem, make_script(form, words[stem]), others)


def _in_case_of(form: str, word: str) -> str:
    return word.upper() if len(form) > 1 and form.isupper() else word


def _decode(plain: list[Any]) -> list[Splitting | None]:
    return [_decode_splitting(*item) if item else None for item in plain]


def _decode_splitting(cuts: list[int], stem: int, script: list[Any] | None, others: list[str]) -> Splitting:
    return Splitting(tuple(cuts), stem, Script(*script) if script else None, tuple(others))


class MultiwordSplitter(Model):
    """Decides which tokens are multiword tokens, and splits them.

    Parameters
    ----------
    epochs : int
        Number of passes over the distinct tokens.
    random_state : int
        Seed of the random number generator.

    Attributes
    ----------
    splittings_ : list of Splitting or None
        The splittings that can be predicted; None means that the token is a single word.
    exceptions_ : dict of str to int
        Training tokens that the classifier gets wrong, with the index of their splitting.
    endings_ : list of str
        Lower-case endings to remove when looking for known stems; empty if stems are not used.
    stems_ : Lexicon
        The upper halves of the hashes of single-word tokens, with their parts of speech.
    classifier_ : WordClassifier
        Predicts the splitting of each token.
    """

    fields = saved(
        splittings_=Value(encode=list, decode=_decode),
        exceptions_=Value(dict[str, int]),
        endings_=Value(list[str]),
        stems_=Record(Lexicon, forms=Array("u", is_increasing=True), classes=Array("u")),
        classifier_=Submodel(WordClassifier),
    )

    def __init__(self, *, epochs: Count = 8, random_state: NonNegativeInt = 0) -> None:
        self.epochs = epochs
        self.random_state = random_state

    def fit(self, counts: Mapping[str, Mapping[tuple[str, ...], int]], tags: Mapping[str, str]) -> Self:
        """Train on counts of the splittings of each token.

        `tags` maps lower-cased single-word tokens to their part of speech.
        """
        forms = list(counts)
        best = [max(words, key=words.__getitem__) for words in counts.values()]
        wanted = [
            None if words == (form,) else make_splitting(form, words)
            for form, words in zip(forms, best, strict=True)
        ]
        frequent = Counter(wanted)
        self.splittings_ = sorted(frequent, key=lambda each: (-frequent[each], repr(each)))
        numbers = {splitting: number for number, splitting in enumerate(self.splittings_)}
        gold = np.array([numbers[splitting] for splitting in wanted], dtype=np.int32)
        n_seen = np.array([sum(words.values()) for words in counts.values()])
        self.classifier_ = WordClassifier(TEMPLATES, "", [[number] for number in range(len(numbers))])
        self._learn_stems(zip(forms, best, strict=True), tags)
        text, labels = self._encode(forms)
        self.classifier_.learn(
            text,
            labels,
            gold,
            n_seen,
            epochs=self.epochs,
            random_state=self.random_state,
            min_count=2,
            what="learning multiword tokens",
            unit="tokens",
        )
        found = self.classifier_.choose(text, labels)
        wrong = np.flatnonzero(found != gold).tolist()
        self.exceptions_ = {forms[at]: int(gold[at]) for at in wrong}
        self.restore()
        return self

    def _learn_stems(self, tokens: Iterable[tuple[str, tuple[str, ...]]], tags: Mapping[str, str]) -> None:
        endings = {
            form[len(words[0]) :].lower()
            for form, words in tokens
            if len(words) > 1 and form.startswith(words[0]) and len(form) - len(words[0]) <= MAX_ENDING
        }
        is_open = len(endings) >= MIN_ENDINGS
        self.endings_ = sorted(endings) if is_open else []
        stems = sorted(tags) if is_open else []
        numbers = {tag: number for number, tag in enumerate(sorted({tags[stem] for stem in stems}))}
        keys, first = np.unique(_stem_keys(stems), return_index=True)
        classes = np.array([numbers[tags[stem]] for stem in stems], dtype=np.uint8)[first]
        self.stems_ = Lexicon(keys, classes)
        self.restore()

    def _encode(self, forms: Sequence[str]) -> tuple[EncodedText, IntArray]:
        """Return the tokens as a text with one token per sentence, and their labels."""
        labels: dict[tuple[str, ...], int] = {}
        numbers = [labels.setdefault(label, len(labels)) for label in self._describe(forms)]
        no_words = Lexicon(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int32))
        n_forms = len(forms)
        text = EncodedText(
            np.arange(n_forms + 1),
            np.arange(n_forms, dtype=np.int32),
            word_attributes(forms, no_words),
            np.stack([hash_words(list(column)) for column in zip(*labels, strict=True)], axis=1),
        )
        return text, np.array(numbers, dtype=np.int32)

    def _describe(self, forms: Sequence[str]) -> list[tuple[str, str, str]]:
        """Return the labels of tokens: endings after known stems, with the tags of these stems."""
        if not self.endings_:
            return [("", "", "")] * len(forms)
        endings = set(self.endings_)
        cuts = [
            (number, lower[:-size], lower[-size:])
            for number, lower in enumerate(map(str.lower, forms))
            for size in range(1, min(MAX_ENDING, len(lower) - 1) + 1)
            if lower[-size:] in endings
        ]
        found: list[list[str]] = [[] for _ in forms]
        keys = _stem_keys([stem for _, stem, _ in cuts]).tolist()
        for (number, _, ending), key in zip(cuts, keys, strict=True):
            if key in self._stems:
                found[number].append(f"{ending}+{self._stems[key]}")
        return [(each[0], each[-1], " ".join(each)) if each else ("", "", "") for each in found]

    def restore(self) -> None:
        """Build the lookup table of stems and an empty cache."""
        self._stems = dict(zip(self.stems_.forms.tolist(), self.stems_.classes.tolist(), strict=True))
        self._known: dict[str, tuple[str, ...] | None] = {}

    def split(self, forms: Iterable[str]) -> Mapping[str, tuple[str, ...] | None]:
        """Return the words of each token, or None for single words."""
        known = self._known
        distinct = set(forms)
        new = sorted(distinct - known.keys())
        if new:
            found = self.classifier_.choose(*self._encode(new)).tolist()
            if len(known) + len(new) > MAX_KNOWN:
                known = {form: known[form] for form in distinct & known.keys()}
            for form, number in zip(new, found, strict=True):
                splitting = self.splittings_[self.exceptions_.get(form, number)]
                words = splitting.apply(form) if splitting else (form,)
                known[form] = words if words != (form,) else None
            self._known = known
        return known

    def check_fitted_state(self) -> None:
        """Check that there is one outcome per splitting."""
        expect(len(self.classifier_.pieces) == len(self.splittings_), "a piece for each splitting")
        expect(not self.classifier_.moving, "templates that use no other tokens")
        expect(len(self.stems_.forms) == len(self.stems_.classes), "a part of speech for each stem")
        expect(
            all(0 <= number < len(self.splittings_) for number in self.exceptions_.values()),
            "exceptions that refer to splittings",
        )


def _stem_keys(stems: Sequence[str]) -> npt.NDArray[np.uint32]:
    if not stems:
        return np.zeros(0, dtype=np.uint32)
    return (hash_words(stems, LOWER) >> np.uint64(32)).astype(np.uint32)
