"""Sentences and treebanks as constituency parsers are given them."""

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
"""Share of the training sentences that stands in for dev sentences, where there are none."""


def read_trees(source: str | os.PathLike[str], *, max_length: int | None = None) -> list[ConstTree]:
    """Read trees to learn from, of which there must be some.

    Parameters
    ----------
    source : path, or "-"
    max_length : int, optional
        Only those of up to so many words, punctuation counted, traces not.
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
    """Read trees to learn from, and those of a dev set if there is one."""
    trees = read_trees(train, max_length=max_length)
    return trees, read_trees(dev, max_length=max_length) if dev else None


def check_trees(trees: Sequence[ConstTree]) -> None:
    """Refuse what is no tree of constituents."""
    for at, tree in enumerate(trees, 1):
        if not isinstance(tree, ConstTree):
            raise InputError(f"tree {at} is {repr(tree)[:60]}; expected a ConstTree")


def list_trees(trees: Iterable[ConstTree]) -> list[ConstTree]:
    """Return trees of constituents as a list; refuse a single one, and what is no tree."""
    if isinstance(trees, ConstTree | DepTree | str):
        raise InputError(f"one sentence was given, {str(trees)[:40]!r}; expected a list of trees")
    found = list(trees)
    check_trees(found)
    return found


def with_words(trees: Sequence[ConstTree]) -> list[ConstTree]:
    """Return trees without traces and functions, where words are left."""
    bare = (tree.without_functions().without_traces() for tree in trees)
    return [tree for tree in bare if tree is not None]


def find_root(trees: Sequence[ConstTree]) -> str | None:
    """Return the label that all trees have at the root and nowhere else, if there is one."""
    roots = {tree.label for tree in trees}
    if len(roots) > 1:
        return None
    root = roots.pop()
    return None if any(root in tree.labels[:-1] for tree in trees) else root


def split_dev(
    trees: Sequence[ConstTree], dev: Sequence[ConstTree] | None, random_state: int
) -> tuple[list[ConstTree], list[ConstTree]]:
    """Return what is to be learnt from and what tells how well that goes, as trees with words."""
    check_trees([*trees, *(dev or [])])
    whole = with_words(trees)
    if not whole:
        raise InputError("no training trees with words were given; expected at least one")
    if dev is None:
        return hold_out(whole, random_state)
    held_out = with_words(dev)
    if not held_out:
        raise InputError("no dev trees with words were given; expected at least one, or None")
    return whole, held_out


def hold_out(trees: list[ConstTree], random_state: int) -> tuple[list[ConstTree], list[ConstTree]]:
    """Set some trees aside, where there are more than one."""
    order = np.random.default_rng(random_state).permutation(len(trees)).tolist()
    n_aside = min(len(trees) - 1, max(1, round(HELD_OUT * len(trees))))
    if n_aside < 1:
        return trees, trees
    return [trees[at] for at in order[n_aside:]], [trees[at] for at in order[:n_aside]]


def learn_tags(
    trees: list[ConstTree], *, folds: int, random_state: int, n_jobs: int
) -> tuple[Tagger, list[ConstTree]]:
    """Return a tagger, and the trees with the tags of taggers that have not seen them."""
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
    report(f"tags: {share:.2f}% right by taggers that have not seen the sentence")
    return tagger, [retag(tree, other.xpos) for tree, other in zip(trees, tagged, strict=True)]


def read_sentence(sentence: SentenceLike, number: int, reader: object) -> TaggedSentence:
    """Return words and tags of the sentence of this number, from 1; no tags if one is missing."""
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
    """Return the words of sentences with their own tags, or with those of a tagger where one is given.

    Parameters
    ----------
    sentences : sequence of SentenceLike
    reader : object
        The model that reads them, for error messages.
    tagger : Tagger or None
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
