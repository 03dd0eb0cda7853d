"""Labeler: dependency relations for the arcs of given trees."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Self

import numpy as np
import numpy.typing as npt

from treewright._typing import Count, NonNegativeInt, Range
from treewright._validate import check_params
from treewright.data.deptree import DepTree
from treewright.data.vocab import Vocabulary
from treewright.errors import InputError
from treewright.learn.weights import FloatTable, PackedWeights, average, make_table, pack, table_shift, unpack
from treewright.model import Array, Model, Value, saved
from treewright.native.dependency.features import MAX_EXTRA_KEYS, ROOT
from treewright.native.dependency.labeling import (
    MAX_HISTORY_KEYS,
    MAX_RELATIVES,
    LabelModel,
    count_keys,
    label_corpus,
    learn_labels,
)
from treewright.parsing.dependency.features import Corpus, Encoder, compile_templates, max_keys
from treewright.progress import Task, report, task

OWN_TEMPLATES = """
m.word *
m.lemma
m.tag *
m.pos *
m.feats
h.word
h.lemma
h.tag *
h.pos
h.tag m.tag *
h.pos m.pos *
h.word m.tag
h.tag m.word
h.pos m.word
h.lemma m.pos
h.pos m.lemma
h.lemma m.lemma
h.feats m.feats
h.pos m.pos m.feats
h.pos h.feats m.pos
h.pos h.feats m.lemma
h.lemma m.pos m.feats
h.lemma m.feats
m.pos m.feats
m.feats m+1.pos
m.suffix m.pos
m.suffix m+1.pos
m.suffix h.pos
m.prefix h.pos
h.suffix m.pos
m.shape h.pos
m.shape h.shape m.pos
m-1.tag m.tag m+1.tag h.pos
m-1.word m.tag
m+1.word m.tag
h-1.tag h.tag m.tag
h.tag h+1.tag m.tag
g.pos h.pos m.pos
g.tag h.tag m.tag
g.lemma h.pos m.pos
g.pos h.lemma m.pos
g.pos h.pos m.lemma
s.tag h.tag m.tag
n.tag h.tag m.tag
s.pos m.pos n.pos h.pos
s.lemma m.pos h.pos
n.lemma m.pos h.pos
s.pos h.lemma m.pos
n.pos h.lemma m.pos
f.word m.pos h.pos
f.tag m.tag h.tag
f.pos l.pos m.pos h.pos
l.word m.pos h.pos
l.tag m.tag h.tag
f.pos m.pos
f-1.tag m.tag h.tag
l+1.tag m.tag h.tag
"""

CHILD_TEMPLATES = """
t.word m.pos h.pos
t.lemma m.tag
t.tag m.tag h.pos
t.word h.lemma
t.pos m.lemma
t.word m.lemma
t.lemma m.pos h.lemma
t.pos t.feats m.pos h.pos
"""

SIBLING_TEMPLATES = """
t.pos m.pos h.pos
"""
"""In these templates, `t` is the child or sibling; features include the order of `h`, `m` and `t`."""

COUNT_BITS = 24
NOTHING_GIVEN = np.empty((0, 0))


class Labeler(Model):
    """Classifier of dependency relations, given the heads.

    A word can get any relation that occurred in training with its tag, the tag of its head and the direction
    of the arc. If there is no such relation, any relation that occurred with its tag is allowed, or else any
    relation at all. Root arcs and other arcs have separate sets of relations.

    Parameters
    ----------
    epochs : int
        Number of passes over the training sentences.
    table_bits : int
        The weight table has 2 ** `table_bits` slots, one byte each on disk.
    random_state : int
        Seed for the order of the sentences.

    Attributes
    ----------
    labels_ : Vocabulary
        The relations.
    n_tags_ : int
        Number of tags, including the special tags of rows that are not words.
    pairs_ : ndarray of int64
        Pairs of a group of arcs and a relation that occurred in it, encoded as integers.
    weights_ : ndarray of float32
    """

    fields = saved(
        labels_=Value(encode=lambda found: found.strings, decode=Vocabulary),
        n_tags_=Value(int),
        pairs_=Array("i", low=0, is_increasing=True),
        weights_=PackedWeights(is_hashed=True),
    )

    def __init__(
        self,
        *,
        epochs: Count = 6,
        table_bits: Annotated[int, Range(10, 28)] = 21,
        random_state: NonNegativeInt = 0,
    ) -> None:
        self.epochs = epochs
        self.table_bits = table_bits
        self.random_state = random_state

    def fit(self, trees: Sequence[DepTree], encoder: Encoder) -> Self:
        """Train on trees with heads and relations.

        Parameters
        ----------
        trees : sequence of DepTree
            Training trees.
        encoder : Encoder
            Encoder built from these trees, and possibly from other trees as well.
        """
        check_params(self)
        _check_heads(trees)
        relations = [relation for tree in trees for relation in tree.deprels]
        if not relations:
            raise InputError("there are no training sentences with words; expected at least one")
        self.labels_ = Vocabulary.from_counts(Counter(relations))
        corpus = encoder.encode(trees)
        gold = np.zeros(len(corpus.heads), dtype=np.int32)
        gold[_word_rows(corpus)] = self.labels_.ids(relations)
        self.n_tags_ = len(encoder.vocabularies[0]) + ROOT + 1
        rows = _word_rows(corpus)
        codes = np.concatenate(_group_codes(corpus, rows, self.n_tags_))
        self.pairs_ = np.unique(codes * len(self.labels_) + np.tile(gold[rows], 3))
        self.restore()
        # Saving rounds the weights; round them now, so that saving does not change predictions.
        with task("learning relations", total=self.epochs * corpus.n_sentences) as counted:
            self.weights_ = unpack(pack(self._learn(corpus, gold, counted)))
        return self

    def predict(
        self, trees: Sequence[DepTree], corpus: Corpus, given: npt.NDArray[np.float64] = NOTHING_GIVEN
    ) -> list[list[str]]:
        """Return the relations of the words of each tree, given its heads.

        Parameters
        ----------
        trees : sequence of DepTree
            Trees with heads.
        corpus : Corpus
            The same sentences as arrays; their heads are ignored.
        given : array, (n_words, n_labels), optional
            Scores to add to the scores of relations, in the order of ``labels_.strings``.
        """
        rows = _word_rows(corpus)
        heads = np.full(len(corpus.values), -1, dtype=np.int32)
        heads[rows] = np.concatenate([*(tree.heads for tree in trees), np.empty(0, dtype=np.int32)])
        if (heads[rows] < 0).any():
            _check_heads(trees)
        corpus = corpus._replace(heads=heads)
        found = np.zeros(len(heads), dtype=np.int32)
        added = np.zeros((len(heads) if given.size else 0, len(self.labels_)))
        if given.size:
            added[rows, 1:] = given
        label_corpus(self._model(self.weights_), corpus, self._groups(corpus), added, found)
        labels = iter(np.array(["", *self.labels_.strings], dtype=object)[found[rows]].tolist())
        return [[next(labels) for _ in range(len(tree))] for tree in trees]

    def restore(self) -> None:
        """Rebuild the groups of arcs and the relations of each group."""
        self._codes, starts = np.unique(self.pairs_ // len(self.labels_), return_index=True)
        self._indptr = np.append(starts, len(self.pairs_)).astype(np.int32)
        self._labels = (self.pairs_ % len(self.labels_)).astype(np.int32)

    def _groups(self, corpus: Corpus) -> npt.NDArray[np.int32]:
        """Return, for each row, its most specific group that has relations."""
        rows = _word_rows(corpus)
        found = np.zeros(len(corpus.heads), dtype=np.int32)
        for codes in _group_codes(corpus, rows, self.n_tags_):
            at = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
            is_known = self._codes[at] == codes
            found[rows[is_known]] = at[is_known]
        return found

    def _model(self, weights: FloatTable) -> LabelModel:
        own = compile_templates(OWN_TEMPLATES, "label")
        child = compile_templates(CHILD_TEMPLATES, "label_child")
        sibling = compile_templates(SIBLING_TEMPLATES, "label_sibling")
        of_relatives = max_keys(child) + max_keys(sibling) - 2 * MAX_EXTRA_KEYS
        most = max_keys(own) + MAX_HISTORY_KEYS + MAX_RELATIVES * of_relatives
        allowed = (self._indptr, self._labels)
        return LabelModel(own, child, sibling, *allowed, weights, table_shift(weights), most)

    def _learn(self, corpus: Corpus, gold: npt.NDArray[np.int32], counted: Task) -> FloatTable:
        """Return the averaged weights."""
        weights = make_table(self.table_bits)
        totals = np.zeros(weights.size)
        counts = np.zeros(1 << COUNT_BITS, dtype=np.uint8)
        model = self._model(weights)
        groups = self._groups(corpus)
        count_keys(model, corpus, gold, counts)
        rng = np.random.default_rng(self.random_state)
        n_words = int(corpus.sizes.sum())
        n_passed = 0
        for epoch in range(self.epochs):
            order = rng.permutation(corpus.n_sentences)
            n_wrong = 0
            for part in counted.slices(len(order)):
                block = order[part]
                n_wrong += learn_labels(model, corpus, groups, gold, counts, totals, block, n_passed)
                n_passed += int(corpus.sizes[block].sum())
            right = 100 - 100 * n_wrong / n_words
            report(f"relations, epoch {epoch + 1}/{self.epochs}: {right:.2f}% training accuracy")
        return average(weights, totals, self.epochs * n_words)


def _group_codes(
    corpus: Corpus, rows: npt.NDArray[np.int64], n_tags: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the codes of three groups for each arc, from the most general to the most specific group.

    The first group depends on whether the arc is a root arc. The second group also depends on the tag. The
    third group depends on the tag, the head tag and the direction.
    """
    head_rows = np.repeat(corpus.first_row[:-1], corpus.sizes) + ROOT + corpus.heads[rows]
    tags = corpus.values[rows, 0].astype(np.int64)
    head_tags = corpus.values[head_rows, 0].astype(np.int64)
    arcs = 2 * (tags * n_tags + head_tags) + (head_rows < rows)
    is_root = (corpus.heads[rows] == 0).astype(np.int64)
    return is_root, 2 + 2 * tags + is_root, 2 + 2 * n_tags + arcs


def _word_rows(corpus: Corpus) -> npt.NDArray[np.int64]:
    """Return the rows of words."""
    sizes = corpus.sizes
    before = np.cumsum(sizes) - sizes
    rows: npt.NDArray[np.int64] = np.arange(sizes.sum()) + np.repeat(
        corpus.first_row[:-1] + ROOT + 1 - before, sizes
    )
    return rows


def _check_heads(trees: Sequence[DepTree]) -> None:
    for number, tree in enumerate(trees, start=1):
        if (tree.heads < 0).any():
            raise InputError(f"sentence {number} has words without a head; expected complete trees")
