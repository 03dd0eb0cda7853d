"""Sentences as arrays of numbers for a network: words, characters, lemmas, tags and features."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright.data.deptree import DepTree
from treewright.data.vocab import Vocabulary
from treewright.model import Model, Value, saved

Ids = npt.NDArray[np.int32]
COLUMNS = ("word", "lemma", "upos", "xpos")
"""Inputs that have one value per word."""
ROOT_FORM = "\0root"
"""Stands before the first word of each sentence."""
FIRST, LAST = "\0first", "\0last"
"""Stand around the characters of each word."""
MAX_CHARACTERS = 24
"""Characters of a word that are looked at; of a longer one, those at both ends."""
MOST_CACHED = 1 << 18
"""Words with their tags whose numbers are remembered."""


class Padded(NamedTuple):
    """Some sentences as rectangles of numbers; 0 is unknown, or no word.

    Attributes
    ----------
    lengths : array, (n_sentences,)
        Words of each sentence and its root.
    columns : dict of str to array, (n_sentences, longest)
        By the names in COLUMNS.
    feats : array, (n_sentences, longest, most)
        Morphological features.
    forms : array, (n_sentences, longest)
        Rows of `characters`.
    characters : array, (n_forms, longest form)
        Each form once.
    """

    lengths: Ids
    columns: dict[str, Ids]
    feats: Ids
    forms: Ids
    characters: Ids


class WordInputs(Model):
    """Numbers the values of words, as a network takes them.

    Parameters
    ----------
    vocabularies : mapping of str to Vocabulary
        One for each of COLUMNS, for features ("feats") and for characters ("characters").
    """

    fields = saved(
        vocabularies=Value(
            encode=lambda found: {name: one.strings for name, one in found.items()},
            decode=lambda texts: {name: Vocabulary(strings) for name, strings in texts.items()},
        )
    )

    def __init__(self, vocabularies: dict[str, Vocabulary]) -> None:
        self.vocabularies = vocabularies
        self._cache: dict[tuple[str, ...], tuple[tuple[int, ...], list[int]]] = {}

    @classmethod
    def from_trees(cls, trees: Iterable[DepTree], *, min_count: int) -> "WordInputs":
        """Number the values that occur in sentences; words and lemmas at least `min_count` times.

        Others have the number 0, by which a network learns to read words that it does not know.
        """
        counts: dict[str, Counter[str]] = {name: Counter() for name in (*COLUMNS, "feats", "characters")}
        for tree in trees:
            for name, values in zip(COLUMNS, _columns(tree), strict=True):
                counts[name].update(values)
            for feats in tree.feats:
                counts["feats"].update(_features(feats))
            counts["characters"].update(character for form in tree.words for character in form)
        fewest = {name: min_count if name in ("word", "lemma") else 1 for name in counts}
        kept = {
            name: Vocabulary.from_counts(found, min_count=fewest[name]).strings
            for name, found in counts.items()
        }
        vocabularies = {name: Vocabulary([ROOT_FORM, *kept[name]]) for name in COLUMNS}
        vocabularies["feats"] = Vocabulary(kept["feats"])
        vocabularies["characters"] = Vocabulary([FIRST, LAST, *kept["characters"]])
        return cls(vocabularies)

    def sizes(self) -> dict[str, int]:
        """Return how many numbers there are of each kind; 0 of kinds that tell nothing."""
        return {
            name: len(one)
            if len(one.strings) > (name in COLUMNS) + (name in ("lemma", "upos", "xpos"))
            else 0
            for name, one in self.vocabularies.items()
        }

    def pad(self, trees: Sequence[DepTree]) -> Padded:
        """Return sentences as rectangles, the root before the first word of each."""
        lengths = np.array([len(tree) + 1 for tree in trees], dtype=np.int32)
        shape = (len(trees), int(lengths.max(initial=1)))
        numbers = np.zeros((*shape, len(COLUMNS)), dtype=np.int32)
        numbers[:, 0] = 1  # the root
        features: list[list[list[int]]] = []
        forms: dict[str, int] = {ROOT_FORM: 0}
        places = np.zeros(shape, dtype=np.int32)
        for at, tree in enumerate(trees):
            tokens = zip(*_columns(tree), tree.feats, strict=True)
            known = [self._cache.get(token) or self._look_up(token) for token in tokens]
            if known:
                numbers[at, 1 : len(tree) + 1] = [one[0] for one in known]
                places[at, 1 : len(tree) + 1] = [forms.setdefault(form, len(forms)) for form in tree.words]
            features.append([one[1] for one in known])
        most = max((len(one) for sentence in features for one in sentence), default=0)
        feats = np.zeros((*shape, most), dtype=np.int32)
        for at, sentence in enumerate(features):
            for word, one in enumerate(sentence, start=1):
                feats[at, word, : len(one)] = one
        columns = {name: numbers[:, :, column] for column, name in enumerate(COLUMNS)}
        return Padded(lengths, columns, feats, places, self.spell(list(forms)))

    def spell(self, forms: Sequence[str]) -> Ids:
        """Return the characters of words, one word a row."""
        vocabulary = self.vocabularies["characters"]
        spelled = [vocabulary.ids([FIRST, *_ends(form), LAST]) for form in forms]
        rows = np.zeros((len(forms), max(map(len, spelled), default=0)), dtype=np.int32)
        for row, characters in zip(rows, spelled, strict=True):
            row[: len(characters)] = characters
        return rows

    def _look_up(self, token: tuple[str, ...]) -> tuple[tuple[int, ...], list[int]]:
        """Return the numbers of a word that is not in the cache, and put them there."""
        *values, feats = token
        ids = tuple(self.vocabularies[name].id(value) for name, value in zip(COLUMNS, values, strict=True))
        features = self.vocabularies["feats"].ids(_features(feats))
        if len(self._cache) >= MOST_CACHED:
            self._cache.clear()
        found = self._cache[token] = ids, features[features > 0].tolist()
        return found


def _columns(tree: DepTree) -> tuple[Sequence[str], ...]:
    """Return the values of words, in the order of COLUMNS."""
    return [word.lower() for word in tree.words], tree.lemmas, tree.upos, tree.xpos


def _features(feats: str) -> list[str]:
    return feats.split("|") if feats != "_" else []


def _ends(form: str) -> str:
    """Return the characters of a word that are looked at."""
    half = MAX_CHARACTERS // 2
    return form if len(form) <= MAX_CHARACTERS else form[:half] + form[-half:]
