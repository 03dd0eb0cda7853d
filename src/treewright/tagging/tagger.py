"""Tagger: parts of speech, morphological features and lemmas for the words of sentences."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from treewright._typing import Count, FileName, IntArray, RandomState
from treewright._validate import check_integer, check_params, draw_seed
from treewright._version import __version__
from treewright.annotation.conllu import ConlluFormatter, open_words
from treewright.annotation.contract import Analysis, Annotator, Formatter, Request
from treewright.annotation.sentences import SentenceLike, read_trees
from treewright.checkpoint import Checkpoint, fingerprint
from treewright.data.conllu import read_conllu
from treewright.data.deptree import DepTree, check_trees
from treewright.data.documents import FoldBy, deal_folds
from treewright.data.formats import check_kind
from treewright.errors import InputError
from treewright.model import Array, Record, Submodel, Value, expect, saved, seeded
from treewright.native.tagging.classifier import LOWER, EncodedText, Lexicon
from treewright.progress import report, silenced
from treewright.scale import Client, map_jobs
from treewright.tagging.classifier import WordClassifier, hash_words, word_attributes
from treewright.tagging.lemmas import Lemmatizer

FIXED_TEMPLATES = """
w.word
w.lower
w-1.lower
w+1.lower
w-2.lower
w+2.lower
w-1.lower w.lower
w.lower w+1.lower
w.prefix2
w.prefix3
w.prefix4
w.suffix1
w.suffix2
w.suffix3
w.suffix4
w.suffix5
w.suffix6
w-1.suffix3
w+1.suffix3
w.shape
w-1.shape
w+1.shape
w.shape w-1.shape
w.shape w+1.shape
w.suffix3 w.shape
w.class
w-1.class
w+1.class
w+2.class
w.class w+1.class
w+1.class w+2.class
"""

MOVING_TEMPLATES = """
w-1.tag
w-1.label
w-1.tag w-2.tag
w-1.label w-2.label
w-1.tag w.lower
w-1.label w.suffix3
w-1.tag w.class w+1.class
"""
"""Templates that use the tags of previous words.

A tag combines UPOS and XPOS; a label adds the morphological features.
"""

MIN_COUNT, LARGE = 2, 5000
"""Minimum count of a feature if there are at least `LARGE` training sentences; otherwise it is 1."""
MIN_CLASS_COUNT, MIN_CLASS_SHARE = 3, 0.05
"""Minimum count for a word to get a tag class, and minimum relative frequency of the tags in its class."""
TAGGED_AT_A_TIME = 10_000
"""Number of sentences per batch."""


class Label(NamedTuple):
    """The tags of a word, predicted together."""

    upos: str
    xpos: str
    feats: str


class Tags(NamedTuple):
    """The tags and lemmas of a sentence."""

    upos: list[str]
    xpos: list[str]
    feats: list[str]
    lemmas: list[str]


@dataclass(frozen=True)
class TaggingScore:
    """Tagging accuracy in percent, by column.

    Parameters
    ----------
    upos : float
        Accuracy of the universal part-of-speech tags.
    xpos : float
        Accuracy of the language-specific part-of-speech tags.
    feats : float
        Accuracy of the morphological features.
    all_tags : float
        Percentage of words whose UPOS, XPOS and features are all correct.
    lemma : float
        Accuracy of the lemmas, over the words whose gold lemma is not ``"_"``.
    n_words : int
        Number of words.

    See Also
    --------
    Tagger.score : Computes these accuracies.

    Examples
    --------
    >>> import treewright as tw
    >>> trees = tw.make_treebank(40, random_state=0).dependencies
    >>> tw.Tagger(epochs=3).fit(trees).score(trees).upos
    100.0
    """

    upos: float
    xpos: float
    feats: float
    all_tags: float
    lemma: float
    n_words: int

    def __str__(self) -> str:
        return (
            f"UPOS {self.upos:.2f}, XPOS {self.xpos:.2f}, features {self.feats:.2f}, "
            f"all tags {self.all_tags:.2f}, lemma {self.lemma:.2f} ({self.n_words} words)"
        )


class Tagger(Annotator):
    """Tagger for parts of speech, morphological features and lemmas.

    It only uses the words of a sentence. A column that is ``"_"`` throughout the training data stays ``"_"``.

    Parameters
    ----------
    epochs : int
        Number of passes over the training sentences.
    runs : int
        Number of training runs whose weights are averaged.
    random_state : int, Generator, RandomState or None
        Seed of the random number generator. With None, results differ between calls.

    Attributes
    ----------
    labels_ : list of Label
        The combinations of UPOS, XPOS and features that can be predicted.
    lexicon_ : Lexicon
        Frequent words with their tag classes: the sets of tags that they occurred with.
    classifier_ : WordClassifier
        Predicts the label of each word.
    lemmatizer_ : Lemmatizer or None
        Predicts lemmas; None if the training data has none.

    See Also
    --------
    Tokenizer : Splits text into sentences and words.
    DependencyParser : Parser with its own tagger if `tags` is "predicted".
    Pipeline : From text to tagged and parsed sentences.

    Examples
    --------
    >>> import treewright as tw
    >>> trees = tw.make_treebank(40, random_state=0).dependencies
    >>> tagger = tw.Tagger(epochs=3).fit(trees)
    >>> tagger.predict([["The", "sailor", "broke", "the", "vase", "."]])[0].upos
    ['DET', 'NOUN', 'VERB', 'DET', 'NOUN', 'PUNCT']
    """

    finds = "tags"
    can = frozenset({"raw", "language"})
    keeps_input = True
    fields = saved(
        labels_=Value(encode=list, decode=lambda labels: [Label(*label) for label in labels]),
        lexicon_=Record(Lexicon, forms=Array("u", is_increasing=True), classes=Array("i")),
        classifier_=Submodel(WordClassifier),
        lemmatizer_=Submodel(Lemmatizer, optional=True),
    )

    def __init__(self, *, epochs: Count = 8, runs: Count = 3, random_state: RandomState = 0) -> None:
        self.epochs = epochs
        self.runs = runs
        self.random_state = random_state

    @staticmethod
    def read_training(
        train: FileName, dev: FileName | None = None
    ) -> tuple[list[DepTree], list[DepTree] | None]:
        """Read the training and development data for `fit`.

        Parameters
        ----------
        train : str
            Tagged sentences in CoNLL-U.
        dev : str, optional
            Tagged sentences for the final evaluation.
        """
        for path in filter(None, (train, dev)):
            check_kind(path, "dependencies")
        development = read_conllu(dev, require_heads=False) if dev else None
        return read_conllu(train, require_heads=False), development

    @seeded
    def fit(
        self,
        trees: Sequence[DepTree],
        dev: Sequence[DepTree] | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train on tagged sentences.

        Parameters
        ----------
        trees : sequence of DepTree
            Training sentences with tags.
        dev : sequence of DepTree, optional
            Sentences to evaluate on after training; the accuracy is logged.
        checkpoint : path, optional
            Folder that stores each epoch. If it exists, training resumes from it, with the same result
            as without an interruption.
        """
        check_params(self)
        check_trees(trees)
        if dev is not None:
            check_trees(dev)
        gold = _labels(trees)
        if not gold:
            raise InputError("there are no training sentences with words; expected at least one")
        identity = (
            fingerprint([__version__, self.epochs, self.runs, self.random_state], trees) if checkpoint else ""
        )
        kept = Checkpoint(checkpoint, identity) if checkpoint else None
        self._set_labels(_most_frequent(gold))
        numbers = {label: number for number, label in enumerate(self.labels_)}
        gold_numbers = np.array([numbers[label] for label in gold], dtype=np.int32)
        words = [word for tree in trees for word in tree.words]
        self.lexicon_ = _make_lexicon(words, [f"{label.upos}\t{label.xpos}" for label in gold])
        text = self._encode([tree.words for tree in trees])
        self._learn_tags(text, gold_numbers, kept)
        lemmas = [lemma for tree in trees for lemma in tree.lemmas]
        self._learn_lemmas(text, gold_numbers, words, lemmas, kept)
        if dev:
            report(f"dev: {self.score(dev)}")
        return self

    @property
    def own_tagger(self) -> "Tagger":
        """The tagger itself."""
        return self

    @property
    def known_tags(self) -> list[str]:
        """The universal tags that can be predicted."""
        return sorted({label.upos for label in self.labels_})

    def annotate(self, sentences: Sequence[SentenceLike], *, k: int = 1) -> list[list[Analysis]]:
        """Return each sentence with predicted tags.

        Parameters
        ----------
        sentences : sequence of DepTree, ConstTree, list of str, or list of (str, str or None)
            Trees, lists of words, or lists of (word, tag) pairs; existing tags are ignored.
        k : int
            Ignored: each sentence has one analysis.

        Returns
        -------
        list of list of Analysis
            For each sentence, a list with one analysis, whose `tree` is a `DepTree` with predicted tags.
        """
        return [[Analysis(tree)] for tree in self.predict(sentences)]

    def open_sentences(self, source: str, request: Request) -> AbstractContextManager[Iterator[DepTree]]:
        """Open a CoNLL-U or plain-text file."""
        return open_words(source, request, self.own_tokenizer)

    def make_formatter(self, target: str, request: Request, begun: Path | None) -> Formatter:
        """Return a formatter that writes CoNLL-U."""
        return ConlluFormatter(target, begun)

    def predict(self, sentences: Sequence[SentenceLike]) -> list[DepTree]:
        """Return the sentences with predicted tags, features and lemmas; existing ones are ignored.

        Parameters
        ----------
        sentences : sequence of DepTree, ConstTree, list of str, or list of (str, str or None)
            Trees, lists of words, or lists of (word, tag) pairs.

        Returns
        -------
        list of DepTree
            Copies of the sentences with predicted tags, features and lemmas.
        """
        self.check_is_fitted()
        trees = read_trees(sentences, self)
        tags = self._tag_all([tree.words for tree in trees])
        return [_retagged(tree, each) for tree, each in zip(trees, tags, strict=True)]

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[Tags]:
        """Return the predicted tags, features and lemmas of tokenized sentences.

        Parameters
        ----------
        sentences : sequence of list of str
            The words of each sentence.

        Returns
        -------
        list of Tags
            For each sentence, the lists `upos`, `xpos`, `feats` and `lemmas`, with an entry for each word.
        """
        self.check_is_fitted()
        return self._tag_all([tree.words for tree in read_trees(sentences, self)])

    def _tag_all(self, sentences: Sequence[Sequence[str]]) -> list[Tags]:
        return [
            tags
            for start in range(0, len(sentences), TAGGED_AT_A_TIME)
            for tags in self._tag_batch(sentences[start : start + TAGGED_AT_A_TIME])
        ]

    def score(self, trees: Sequence[DepTree]) -> TaggingScore:
        """Tag the sentences and compare the result with their gold tags.

        Parameters
        ----------
        trees : sequence of DepTree
            Sentences with gold tags.

        Returns
        -------
        TaggingScore
            The accuracy of each column in percent.
        """
        check_trees(trees)
        return compare_tags(trees, self.predict(trees))

    def has_classes(self, words: Sequence[str]) -> list[bool]:
        """Return whether each word, ignoring case, was frequent enough in training to have a tag class."""
        found: list[bool] = np.isin(hash_words(words, LOWER), self.lexicon_.forms).tolist()
        return found

    def check_fitted_state(self) -> None:
        """Check that each word in the lexicon has a class, and that each label has pieces."""
        expect(len(self.lexicon_.forms) == len(self.lexicon_.classes), "a class for each form")
        expect(len(self.classifier_.pieces) == len(self.labels_), "pieces of each label")

    def restore(self) -> None:
        """Rebuild the lookup tables of the labels."""
        self._set_labels(self.labels_)

    def _set_labels(self, labels: list[Label]) -> None:
        self.labels_ = labels
        columns = [
            hash_words([label.upos for label in labels]),
            hash_words([f"{label.upos}\t{label.xpos}" for label in labels]),
            hash_words(["\t".join(label) for label in labels]),
        ]
        self._label_values = np.stack(columns, axis=1)

    def _make_classifier(self) -> WordClassifier:
        return WordClassifier(FIXED_TEMPLATES, MOVING_TEMPLATES, label_pieces(self.labels_))

    def _encode(self, sentences: Sequence[Sequence[str]]) -> EncodedText:
        """Encode sentences as arrays."""
        types: dict[str, int] = {}
        numbers = [types.setdefault(word, len(types)) for words in sentences for word in words]
        return EncodedText(
            np.cumsum([0, *map(len, sentences)]),
            np.array(numbers, dtype=np.int32),
            word_attributes(list(types), self.lexicon_),
            self._label_values,
        )

    def _learn_tags(self, text: EncodedText, gold: IntArray, kept: Checkpoint | None) -> None:
        def after_epoch(run: int, epoch: int, share: float) -> None:
            position = f"run {run + 1}/{self.runs}, " if self.runs > 1 else ""
            position += f"epoch {epoch + 1}/{self.epochs}"
            report(f"tags, {position}: {share:.2f}% of words needed no update")

        n_seen = np.bincount(text.types)[text.types]
        self.classifier_ = self._make_classifier().learn(
            text,
            np.zeros_like(gold),
            gold,
            n_seen,
            epochs=self.epochs,
            runs=self.runs,
            random_state=self.random_state,
            min_count=MIN_COUNT if len(text.indptr) > LARGE else 1,
            after_epoch=after_epoch,
            checkpoint=kept,
        )

    def _learn_lemmas(
        self,
        text: EncodedText,
        gold: IntArray,
        words: list[str],
        lemmas: list[str],
        kept: Checkpoint | None,
    ) -> None:
        self.lemmatizer_: Lemmatizer | None = None
        if any(lemma != "_" for lemma in lemmas):
            lemmatizer = Lemmatizer(runs=self.runs, random_state=self.random_state)
            self.lemmatizer_ = lemmatizer.fit(text, gold, words, lemmas, checkpoint=kept)
            report(f"lemmas: {len(self.lemmatizer_.scripts_)} edit scripts")

    def _tag_batch(self, sentences: Sequence[Sequence[str]]) -> list[Tags]:
        text = self._encode(sentences)
        found = self.classifier_.choose(text, np.zeros_like(text.types))
        words = [word for sentence in sentences for word in sentence]
        lemmas = self.lemmatizer_.predict(text, found, words) if self.lemmatizer_ else ["_"] * len(words)
        columns = [
            np.array(column, dtype=object)[found].tolist() for column in zip(*self.labels_, strict=True)
        ]
        bounds = text.indptr.tolist()
        return [
            Tags(*(column[begin:end] for column in (*columns, lemmas))) for begin, end in pairwise(bounds)
        ]


def jackknife(
    trees: Sequence[DepTree],
    *,
    folds: int,
    fold_by: FoldBy = "document",
    n_jobs: int = 1,
    random_state: RandomState = 0,
    tagger: Tagger | None = None,
    client: Client | None = None,
) -> list[DepTree]:
    """Tag training sentences by cross-validation, each with a tagger that was not trained on it.

    Parameters
    ----------
    trees : sequence of DepTree
        Training sentences with tags.
    folds : int
        Number of jackknife folds. Each fold is tagged by a tagger trained on the other folds.
    fold_by : {"document", "block"}
        Assign whole documents to folds, or blocks of consecutive sentences within documents.
    n_jobs : int
        Number of threads (-1: all processors); it does not change the result.
    random_state : int, Generator, RandomState or None
        Seed for the assignment of documents to folds. With None, results differ between calls.
    tagger : Tagger, optional
        Tagger whose parameters are used, except `runs`, which is 1 to save time; it is not changed.
    client : distributed.Client, optional
        Dask client to run on instead of local threads; it does not change the result.
    """
    check_integer("folds", folds, minimum=2)
    if len(trees) < folds:
        raise InputError(f"{len(trees)} sentences for {folds} folds; expected at least one sentence per fold")
    tagger = tagger or Tagger()
    options = {"epochs": tagger.epochs, "runs": 1, "random_state": draw_seed(tagger.random_state)}
    parts, description = deal_folds(trees, folds, by=fold_by, random_state=draw_seed(random_state))
    report(f"jackknife tagging: {description}")
    bare = [_tagged_words(tree) for tree in trees]
    tagged = list(trees)
    found = map_jobs(
        partial(_tag_part, bare, options),
        parts,
        n_jobs=n_jobs,
        client=client,
        what="tagging folds",
        unit="folds",
    )
    for part, tags in zip(parts, found, strict=True):
        for number, each in zip(part.tolist(), tags, strict=True):
            tagged[number] = _retagged(trees[number], each)
    return tagged


def _tag_part(trees: list[DepTree], options: dict[str, int], part: npt.NDArray[np.int64]) -> list[Tags]:
    """Tag the sentences of a fold with a tagger trained on the other folds."""
    held_out = set(part.tolist())
    with silenced():
        tagger = Tagger(**options).fit([tree for number, tree in enumerate(trees) if number not in held_out])
    return tagger.tag([trees[number].words for number in part.tolist()])


def _tagged_words(tree: DepTree) -> DepTree:
    """Return a copy with only the columns that a tagger is trained on."""
    return DepTree(tree.words, upos=tree.upos, xpos=tree.xpos, feats=tree.feats, lemmas=tree.lemmas)


def _retagged(tree: DepTree, tags: Tags) -> DepTree:
    return tree.with_tags(upos=tags.upos, xpos=tags.xpos, feats=tags.feats, lemmas=tags.lemmas)


def compare_tags(gold: Sequence[DepTree], predicted: Sequence[DepTree]) -> TaggingScore:
    """Compare predicted with gold tags and lemmas of the same sentences."""
    n_right = Counter[str]()
    n_words = n_lemmas = 0
    for right, found in zip(gold, predicted, strict=True):
        labels, others = _labels([right]), _labels([found])
        n_words += len(labels)
        for label, other in zip(labels, others, strict=True):
            n_right["upos"] += label.upos == other.upos
            n_right["xpos"] += label.xpos == other.xpos
            n_right["feats"] += label.feats == other.feats
            n_right["all_tags"] += label == other
        for lemma, other_lemma in zip(right.lemmas, found.lemmas, strict=True):
            n_lemmas += lemma != "_"
            n_right["lemma"] += lemma != "_" and lemma == other_lemma
    share = {name: 100 * n_right[name] / max(1, n_words) for name in ("upos", "xpos", "feats", "all_tags")}
    return TaggingScore(**share, lemma=100 * n_right["lemma"] / max(1, n_lemmas), n_words=n_words)


def label_pieces(labels: Sequence[Label]) -> list[list[int]]:
    """Return the indices of the pieces of each label (UPOS, XPOS, each feature, and the whole label)."""
    numbers: dict[tuple[str, ...], int] = {}
    return [[numbers.setdefault(piece, len(numbers)) for piece in _pieces_of(label)] for label in labels]


def _pieces_of(label: Label) -> list[tuple[str, ...]]:
    pieces: list[tuple[str, ...]] = [("upos", label.upos), label]
    if label.xpos != "_":
        pieces.append(("xpos", label.xpos))
    if label.feats != "_":
        pieces += [("feature", feature) for feature in label.feats.split("|")]
    return pieces


def _labels(trees: Sequence[DepTree]) -> list[Label]:
    return [Label(*label) for tree in trees for label in zip(tree.upos, tree.xpos, tree.feats, strict=True)]


def _most_frequent(labels: Sequence[Label]) -> list[Label]:
    counts = Counter(labels)
    return sorted(counts, key=lambda label: (-counts[label], label))


def _make_lexicon(words: Sequence[str], tags: Sequence[str]) -> Lexicon:
    """Return the tag class of each frequent lower-cased word: the index of the set of its tags."""
    forms = hash_words(words, LOWER)
    counts: dict[int, Counter[str]] = {}
    for form, tag in zip(forms.tolist(), tags, strict=True):
        counts.setdefault(form, Counter())[tag] += 1
    classes = {
        form: tuple(sorted(tag for tag in count if count[tag] >= MIN_CLASS_SHARE * count.total()))
        for form, count in sorted(counts.items())
        if count.total() >= MIN_CLASS_COUNT
    }
    numbers = {tags: number for number, tags in enumerate(sorted(set(classes.values())))}
    return Lexicon(
        np.array(list(classes), dtype=np.uint64),
        np.array([numbers[tags] for tags in classes.values()], dtype=np.int32),
    )
