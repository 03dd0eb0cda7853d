"""Multiword tokens: what a token that stands for several words becomes.

A splitting says how the words are made of the token. One of them, the stem, is what remains of the token when
letters are cut off at either end and others put there; the others are parts of the token, or the same letters
whatever the token.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from treewright._typing import Count, NonNegativeInt
from treewright.model import Model, Submodel, Value, expect, saved
from treewright.native.tagging.classifier import EncodedText, Lexicon
from treewright.tagging.classifier import WordClassifier, word_attributes
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
"""
MAX_KNOWN = 100_000
"""Tokens whose words are remembered."""


class Splitting(NamedTuple):
    """How a token becomes words."""

    cuts: tuple[int, ...]
    """Where the token is cut, from its beginning or, if negative, from its end; none if it has a script."""
    stem: int = 0
    """Which word is made by the script."""
    script: Script | None = None
    others: tuple[str, ...] = ()
    """The other words."""

    def apply(self, form: str) -> tuple[str, ...]:
        """Return the words of a token, which is the only one if they cannot be made of it."""
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
    """Return a splitting that makes the words of the token."""
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
    """Decides which tokens are several words, and which.

    Parameters
    ----------
    epochs : int
        Passes over the distinct tokens.
    random_state : int

    Attributes
    ----------
    splittings_ : list of Splitting or None
        None is for tokens that are one word.
    exceptions_ : dict of str to int
        Tokens of the training data about which the classifier would be wrong, with their splitting.
    classifier_ : WordClassifier
    """

    fields = saved(
        splittings_=Value(encode=list, decode=_decode),
        exceptions_=Value(dict[str, int]),
        classifier_=Submodel(WordClassifier),
    )

    def __init__(self, *, epochs: Count = 8, random_state: NonNegativeInt = 0) -> None:
        self.epochs = epochs
        self.random_state = random_state

    def fit(self, counts: Mapping[str, Mapping[tuple[str, ...], int]]) -> Self:
        """Learn from how often each token was which words."""
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
        text = _as_text(forms)
        self.classifier_.learn(
            text,
            np.zeros_like(gold),
            gold,
            n_seen,
            epochs=self.epochs,
            random_state=self.random_state,
            min_count=2,
            what="learning multiword tokens",
            unit="tokens",
        )
        found = self.classifier_.choose(text, np.zeros_like(gold))
        wrong = np.flatnonzero(found != gold).tolist()
        self.exceptions_ = {forms[at]: int(gold[at]) for at in wrong}
        self.restore()
        return self

    def restore(self) -> None:
        """Remember nothing yet."""
        self._known: dict[str, tuple[str, ...] | None] = {}

    def split(self, forms: Iterable[str]) -> Mapping[str, tuple[str, ...] | None]:
        """Return the words of tokens, None for those that are one word."""
        known = self._known
        distinct = set(forms)
        new = sorted(distinct - known.keys())
        if new:
            found = self.classifier_.choose(_as_text(new), np.zeros(len(new), dtype=np.int32)).tolist()
            if len(known) + len(new) > MAX_KNOWN:
                known = {form: known[form] for form in distinct & known.keys()}
            for form, number in zip(new, found, strict=True):
                splitting = self.splittings_[self.exceptions_.get(form, number)]
                words = splitting.apply(form) if splitting else (form,)
                known[form] = words if words != (form,) else None
            self._known = known
        return known

    def check_fitted_state(self) -> None:
        """Check that the classifier chooses among the splittings."""
        expect(len(self.classifier_.pieces) == len(self.splittings_), "a piece for each splitting")
        expect(
            all(0 <= number < len(self.splittings_) for number in self.exceptions_.values()),
            "exceptions that are splittings",
        )


def _as_text(forms: list[str]) -> EncodedText:
    """Return tokens as sentences of one word."""
    no_words = Lexicon(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int32))
    n_forms = len(forms)
    return EncodedText(
        np.arange(n_forms + 1),
        np.arange(n_forms, dtype=np.int32),
        word_attributes(forms, no_words),
        np.zeros((1, 3), dtype=np.uint64),
    )
