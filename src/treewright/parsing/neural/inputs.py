"""Sentences as integer arrays for a network: words, characters, lemmas, tags and features."""

import errno
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._naming import setting
from treewright.data.deptree import DepTree
from treewright.data.files import Source
from treewright.data.vocab import Vocabulary
from treewright.errors import InputError
from treewright.model import Model, Submodel, Value, saved
from treewright.parsing.neural.encoders import PretrainedEncoder, SubwordWindows, check_folder
from treewright.parsing.neural.vectors import DEFAULT_MAX_VECTORS, WordVectors, read_vectors
from treewright.progress import report

Ids = npt.NDArray[np.int32]
COLUMNS = ("word", "lemma", "upos", "xpos")
"""Inputs with one value per word."""
MAYBE_MISSING = ("lemma", "upos", "xpos")
"""Inputs that may be missing; they are then "_" for all words."""
ROOT_FORM = "\0root"
"""Stands for the root, which precedes the first word of each sentence."""
FIRST, LAST = "\0first", "\0last"
"""Symbols for the start and the end of each word."""
MAX_CHARACTERS = 24
"""Maximum number of characters of a word; of longer words, only the characters at both ends are used."""
MOST_CACHED = 1 << 18
"""Maximum number of cached combinations of word and tags."""


class Padded(NamedTuple):
    """A batch of sentences as padded arrays; 0 means an unknown value or padding.

    Attributes
    ----------
    lengths : array, (n_sentences,)
        Number of words of each sentence, including the root.
    columns : dict of str to array, (n_sentences, longest)
        Values by the names in COLUMNS.
    feats : array, (n_sentences, longest, most)
        Morphological features.
    forms : array, (n_sentences, longest)
        Rows of `characters`.
    characters : array, (n_forms, longest form)
        Characters of each distinct form.
    vectors : array, (n_forms, size), optional
        Pretrained word vectors of the forms.
    states : array, (n_sentences, longest, size), optional
        States of a pretrained encoder.
    pieces : SubwordWindows, optional
        Subwords, which replace `states` if the encoder is fine-tuned.
    """

    lengths: Ids
    columns: dict[str, Ids]
    feats: Ids
    forms: Ids
    characters: Ids
    vectors: npt.NDArray[np.float32] | None = None
    states: npt.NDArray[np.float32] | None = None
    pieces: SubwordWindows | None = None


class DistinctWords(NamedTuple):
    """The distinct words of a batch; 0 means an unknown value or no feature.

    Attributes
    ----------
    columns : dict of str to array, (n_distinct,)
        Values by the names in COLUMNS; word 0 is the root.
    feats : array, (n_distinct, most)
        Morphological features.
    forms : list of str
        The forms.
    places : array, (n_cells,)
        Number of the distinct word of each cell. Cells are the root and the words of the first sentence, then
        of the second, and so on.
    """

    columns: dict[str, Ids]
    feats: Ids
    forms: list[str]
    places: Ids


class WordInputs(Model):
    """Encodes the words of sentences for a network.

    Parameters
    ----------
    vocabularies : mapping of str to Vocabulary
        A vocabulary for each of COLUMNS, for features ("feats") and for characters ("characters").
    vectors : WordVectors, optional
        Pretrained word vectors.
    encoder : PretrainedEncoder, optional
        Pretrained encoder.
    """

    fields = saved(
        vocabularies=Value(
            encode=lambda found: {name: one.strings for name, one in found.items()},
            decode=lambda texts: {name: Vocabulary(strings) for name, strings in texts.items()},
        ),
        vectors=Submodel(WordVectors, optional=True),
        encoder=Submodel(PretrainedEncoder, optional=True),
    )

    def __init__(
        self,
        vocabularies: dict[str, Vocabulary],
        vectors: WordVectors | None = None,
        encoder: PretrainedEncoder | None = None,
    ) -> None:
        self.vocabularies, self.vectors, self.encoder = vocabularies, vectors, encoder
        self._cache: dict[tuple[str, ...], tuple[tuple[int, ...], list[int]]] = {}

    @classmethod
    def from_trees(
        cls,
        trees: Iterable[DepTree],
        *,
        min_count: int,
        vectors: WordVectors | Source | None = None,
        max_vectors: int | None = DEFAULT_MAX_VECTORS,
        encoder: PretrainedEncoder | str | os.PathLike[str] | None = None,
    ) -> "WordInputs":
        """Build the vocabularies of sentences; words and lemmas must occur at least `min_count` times.

        Rarer words and lemmas get the number 0, so that a network learns to handle unknown words.

        Parameters
        ----------
        trees : iterable of DepTree
            Training sentences.
        min_count : int
            Minimum count for a word or lemma to have its own number.
        vectors : WordVectors, path or file, optional
            Word vectors, or their file; see `read_vectors`. Vectors of training words are always kept.
        max_vectors : int, optional
            Maximum number of vectors to keep from the beginning of a file.
        encoder : PretrainedEncoder or path, optional
            Pretrained encoder, or its folder.
        """
        forms: Counter[str] = Counter()
        counts: dict[str, Counter[str]] = {name: Counter() for name in (*COLUMNS, "feats", "characters")}
        for tree in trees:
            for name, values in zip(COLUMNS, _columns(tree), strict=True):
                counts[name].update(values)
            for feats in tree.feats:
                counts["feats"].update(_features(feats))
            counts["characters"].update(character for form in tree.words for character in form)
            forms.update(tree.words)
        fewest = {name: min_count if name in ("word", "lemma") else 1 for name in counts}
        kept = {
            name: Vocabulary.from_counts(found, min_count=fewest[name]).strings
            for name, found in counts.items()
        }
        vocabularies = {name: Vocabulary([ROOT_FORM, *kept[name]]) for name in COLUMNS}
        vocabularies["feats"] = Vocabulary(kept["feats"])
        vocabularies["characters"] = Vocabulary([FIRST, LAST, *kept["characters"]])
        if vectors is not None and not isinstance(vectors, WordVectors):
            vectors = read_vectors(vectors, words=forms, max_vectors=max_vectors)
        if vectors is not None:
            share = vectors.coverage(forms.elements())
            report(f"word vectors: {len(vectors.table):,}, covering {share:.1f}% of the training words")
        if encoder is not None and not isinstance(encoder, PretrainedEncoder):
            encoder = PretrainedEncoder.read(encoder)
        return cls(vocabularies, vectors, encoder)

    def sizes(self) -> dict[str, int]:
        """Return the size of each vocabulary or vector; inputs without information have size 0."""
        sizes = {
            name: len(one) if len(one.strings) > (name in COLUMNS) + (name in MAYBE_MISSING) else 0
            for name, one in self.vocabularies.items()
        }
        pretrained = {"vectors": self.vectors, "encoder": self.encoder}
        return sizes | {name: one.size if one is not None else 0 for name, one in pretrained.items()}

    def pad(self, trees: Sequence[DepTree]) -> Padded:
        """Return sentences as padded arrays; the root precedes the first word of each sentence."""
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
        batch = Padded(lengths, columns, feats, places, self.spell(list(forms)))
        return self._add_pretrained(batch, trees, list(forms))

    def _add_pretrained(self, batch: Padded, trees: Sequence[DepTree], forms: Sequence[str]) -> Padded:
        """Add pretrained word vectors and encoder states, if there are any."""
        if self.vectors is not None:
            batch = batch._replace(vectors=self.vectors.look_up(forms))
        if self.encoder is not None:
            sentences = [tree.words for tree in trees]
            if self.encoder.is_tuning:
                return batch._replace(pieces=self.encoder.split(sentences))
            batch = batch._replace(states=self.encoder.read_sentences(sentences))
        return batch

    def distinct(self, trees: Sequence[DepTree]) -> DistinctWords:
        """Return the distinct words of sentences: words with the same form and annotation are merged."""
        seen: dict[tuple[str, ...], int] = {}
        places: list[int] = []
        for tree in trees:
            places.append(0)
            tokens = zip(tree.words, tree.lemmas, tree.upos, tree.xpos, tree.feats, strict=True)
            places.extend([seen.setdefault(token, len(seen) + 1) for token in tokens])
        keys = [(form.lower(), *rest) for form, *rest in seen]
        known = [self._cache.get(key) or self._look_up(key) for key in keys]
        numbers = np.array([(1,) * len(COLUMNS), *(one[0] for one in known)], dtype=np.int32)
        feats = np.zeros((len(numbers), max((len(one[1]) for one in known), default=0)), dtype=np.int32)
        for row, one in zip(feats[1:], known, strict=True):
            row[: len(one[1])] = one[1]
        columns = {name: numbers[:, column] for column, name in enumerate(COLUMNS)}
        forms = [ROOT_FORM, *(token[0] for token in seen)]
        return DistinctWords(columns, feats, forms, np.array(places, dtype=np.int32))

    def spell(self, forms: Sequence[str]) -> Ids:
        """Return the characters of words, one row per word.

        At least one 0 follows each word, so that a convolution over its end does not depend on other words.
        """
        vocabulary = self.vocabularies["characters"]
        spelled = [vocabulary.ids([FIRST, *_ends(form), LAST]) for form in forms]
        rows = np.zeros((len(forms), max(map(len, spelled), default=0) + 1), dtype=np.int32)
        for row, characters in zip(rows, spelled, strict=True):
            row[: len(characters)] = characters
        return rows

    def _look_up(self, token: tuple[str, ...]) -> tuple[tuple[int, ...], list[int]]:
        """Return the integers that encode a word, and cache them."""
        *values, feats = token
        ids = tuple(self.vocabularies[name].id(value) for name, value in zip(COLUMNS, values, strict=True))
        features = self.vocabularies["feats"].ids(_features(feats))
        if len(self._cache) >= MOST_CACHED:
            self._cache.clear()
        found = self._cache[token] = ids, features[features > 0].tolist()
        return found


def check_pretrained(vectors: str | None, encoder: str | None, *, tune_encoder: bool, networks: int) -> None:
    """Raise an error if a file is missing, or if several networks would tune one encoder."""
    if vectors is not None and not os.path.exists(vectors):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), vectors)
    if encoder is not None:
        check_folder(encoder)
    if tune_encoder and networks > 1:
        found = f"{setting('networks', networks)} does not work with {setting('tune_encoder', True)}"
        raise InputError(f"{found}; expected one network, because a model has one encoder")


def _columns(tree: DepTree) -> tuple[Sequence[str], ...]:
    """Return the values of all words, in the order of COLUMNS."""
    return [word.lower() for word in tree.words], tree.lemmas, tree.upos, tree.xpos


def _features(feats: str) -> list[str]:
    return feats.split("|") if feats != "_" else []


def _ends(form: str) -> str:
    """Return the characters of a word that are used."""
    half = MAX_CHARACTERS // 2
    return form if len(form) <= MAX_CHARACTERS else form[:half] + form[-half:]
