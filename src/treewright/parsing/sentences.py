"""Functions that read input sentences and treebanks for constituency parsers."""

import os
from collections.abc import Iterable, Sequence

import numpy as np

from treewright.annotation.sentences import SentenceLike, missing_tags, read_words
from treewright.data.bracketed import iter_brackets
from treewright.data.consttree import LABEL, ConstTree
from treewright.data.deptree import DepTree
from treewright.data.formats import check_kind
from treewright.errors import InputError, quote
from treewright.metrics.parseval import sentence_length
from treewright.parsing.constituent.inferences import TaggedSentence
from treewright.parsing.constituent.preparation import retag
from treewright.progress import report, silenced
from treewright.tagging.tagger import Tagger, jackknife

HELD_OUT = 0.1
"""Fraction of the training sentences that is held out if there is no dev set."""


def read_trees(source: str | os.PathLike[str], *, max_length: int | None = None) -> list[ConstTree]:
    """Read training trees; at least one is required.

    Parameters
    ----------
    source : path, or "-"
        File in Penn brackets.
    max_length : int, optional
        Maximum number of words per sentence, including punctuation but not traces.
    """
    check_kind(source, "constituents")
    limit = max_length or float("inf")
    trees = [tree for tree in iter_brackets(source) if sentence_length(tree) <= limit]
    if not trees:
        which = f" of up to {max_length} words" if max_length else ""
        raise InputError(f"{os.fspath(source)} has no sentences{which}; expected at least one")
    return trees


def read_treebanks(
    train: str, dev: str | None, *, max_length: int | None
) -> tuple[list[ConstTree], list[ConstTree] | None]:
    """Read training trees, and the trees of the dev set if there is one."""
    trees = read_trees(train, max_length=max_length)
    return trees, read_trees(dev, max_length=max_length) if dev else None


def check_trees(trees: Sequence[ConstTree]) -> None:
    """Raise an error unless all trees are constituency trees."""
    if not isinstance(trees, Iterable):
        raise InputError(f"the trees are of type {type(trees).__name__}; expected a list of ConstTree")
    for at, tree in enumerate(trees, 1):
        if not isinstance(tree, ConstTree):
            raise InputError(f"tree {at} is {repr(tree)[:60]}; expected a ConstTree")


def list_trees(trees: Iterable[ConstTree]) -> list[ConstTree]:
    """Return constituency trees as a list; raise an error for a single tree or for other types."""
    if isinstance(trees, ConstTree | DepTree | str):
        raise InputError(f"one sentence was given, {str(trees)[:40]!r}; expected a list of trees")
    found = list(trees) if isinstance(trees, Iterable) else trees
    check_trees(found)
    return found


def with_words(trees: Sequence[ConstTree]) -> list[ConstTree]:
    """Return trees without traces and function labels; drop trees without words."""
    bare = (tree.without_functions().without_traces() for tree in trees)
    return [tree for tree in bare if tree is not None]


def find_root(trees: Sequence[ConstTree]) -> str | None:
    """Return the label that all trees have at the root and nowhere else, or None."""
    roots = {tree.label for tree in trees}
    if len(roots) > 1:
        return None
    root = roots.pop()
    return None if any(root in tree.labels[:-1] for tree in trees) else root


def split_dev(
    trees: Sequence[ConstTree], dev: Sequence[ConstTree] | None, random_state: int
) -> tuple[list[ConstTree], list[ConstTree]]:
    """Return the training trees and the evaluation trees, without traces and empty trees."""
    check_trees(trees)
    check_trees([] if dev is None else dev)
    whole = with_words(trees)
    if not whole:
        raise InputError("there are no training trees with words; expected at least one")
    if dev is None:
        return hold_out(whole, random_state)
    held_out = with_words(dev)
    if not held_out:
        raise InputError("there are no dev trees with words; expected at least one, or None")
    return whole, held_out


def hold_out(trees: list[ConstTree], random_state: int) -> tuple[list[ConstTree], list[ConstTree]]:
    """Split the trees into a training part and a held-out part; a single tree is in both parts."""
    order = np.random.default_rng(random_state).permutation(len(trees)).tolist()
    n_aside = min(len(trees) - 1, max(1, round(HELD_OUT * len(trees))))
    if n_aside < 1:
        return trees, trees
    return [trees[at] for at in order[n_aside:]], [trees[at] for at in order[:n_aside]]


def learn_tags(
    trees: list[ConstTree], *, folds: int, random_state: int, n_jobs: int
) -> tuple[Tagger, list[ConstTree]]:
    """Return a tagger, and the trees with cross-validated tags."""
    sentences = [DepTree(tree.words(), xpos=tree.tags()) for tree in trees]
    with silenced():
        tagger = Tagger(random_state=random_state).fit(sentences)
    n_folds = min(folds, len(trees))
    if n_folds < 2:
        return tagger, trees
    tagged = jackknife(sentences, folds=n_folds, n_jobs=n_jobs, random_state=random_state)
    n_right = sum(
        left == right
        for tree, other in zip(sentences, tagged, strict=True)
        for left, right in zip(tree.xpos, other.xpos, strict=True)
    )
    share = 100 * n_right / sum(map(len, sentences))
    report(f"cross-validated tags: {share:.2f}% accuracy")
    return tagger, [retag(tree, other.xpos) for tree, other in zip(trees, tagged, strict=True)]


def read_sentence(sentence: SentenceLike, number: int, reader: object) -> TaggedSentence:
    """Return the words and tags of sentence `number` (from 1); a missing tag is ``"_"``."""
    if isinstance(sentence, ConstTree):
        tree = sentence.without_traces()
        return TaggedSentence(tree.words(), tree.tags()) if tree is not None else TaggedSentence([], [])
    if isinstance(sentence, DepTree):
        words, tags = sentence.words, sentence.xpos
    else:
        words, tags = read_words(sentence, number, reader)
    if not words:
        raise InputError(f"sentence {number} has no words; expected at least one")
    for text in (*words, *tags):
        if not LABEL.fullmatch(text):
            raise InputError(
                f"sentence {number} has {quote(text)}; expected words and tags without white space"
            )
    return TaggedSentence(words, tags)


def read_sentences(
    sentences: Sequence[SentenceLike], reader: object, tagger: Tagger | None
) -> list[TaggedSentence]:
    """Return the words of sentences with their own tags, or with predicted tags if a tagger is given.

    Parameters
    ----------
    sentences : sequence of SentenceLike
        The input.
    reader : object
        The model that reads the sentences, for error messages.
    tagger : Tagger or None
        Tagger that predicts the tags; None keeps the tags of the sentences.
    """
    read = [read_sentence(sentence, number, reader) for number, sentence in enumerate(sentences, 1)]
    if tagger is not None:
        tagged = tagger.tag([sentence.words for sentence in read])
        return [
            TaggedSentence(sentence.words, each.xpos) for sentence, each in zip(read, tagged, strict=True)
        ]
    for number, (given, sentence) in enumerate(zip(sentences, read, strict=True), 1):
        _check_tags(sentence, f"sentence {number}", reader, " in XPOS" if isinstance(given, DepTree) else "")
    return read


def _check_tags(sentence: TaggedSentence, place: str, reader: object, where: str) -> None:
    n_known = sum(tag != "_" for tag in sentence.tags)
    if not n_known and sentence.words:
        raise missing_tags(f"{place} has no tags", reader, where)
    if n_known < len(sentence.words):
        at = sentence.tags.index("_")
        raise missing_tags(f"{place}: word {at + 1}, {quote(sentence.words[at])}, has no tag", reader, where)
