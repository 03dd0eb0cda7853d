"""Sentences and treebanks as constituency parsers are given them."""

import os
from collections.abc import Iterable, Sequence

import numpy as np

from treewright.data.bracketed import iter_brackets
from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.errors import InputError
from treewright.metrics.parseval import sentence_length
from treewright.parsing.constituent.inferences import TaggedSentence
from treewright.parsing.constituent.preparation import retag
from treewright.progress import report, silenced
from treewright.tagging.tagger import Tagger, jackknife

HELD_OUT = 0.1
"""Share of the training sentences that stands in for dev sentences, where there are none."""

Input = ConstTree | DepTree | Sequence[str] | Sequence[tuple[str, str | None]]
"""A sentence: a tree of either kind, whose words and tags alone are looked at, words, or words with tags."""


def read_trees(source: str | os.PathLike[str], *, max_length: int | None = None) -> list[ConstTree]:
    """Read trees to learn from, of which there must be some.

    Parameters
    ----------
    source : path, or "-"
    max_length : int, optional
        Only those of up to so many words, punctuation counted, traces not.
    """
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
            raise InputError(f"tree {at} is {str(tree)[:40]!r}; expected a ConstTree")


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


def read_sentence(sentence: Input, at: int) -> TaggedSentence:
    """Return words and tags of a sentence, the `at`-th of those that were given; tags may be missing."""
    if isinstance(sentence, ConstTree):
        tree = sentence.without_traces()
        return TaggedSentence(tree.words(), tree.tags()) if tree is not None else TaggedSentence([], [])
    if isinstance(sentence, DepTree):
        words, tags = sentence.words, [tag for tag in sentence.xpos if tag != "_"]
    elif isinstance(sentence, list | tuple) and all(isinstance(word, str) for word in sentence):
        words, tags = list(sentence), []
    elif isinstance(sentence, list | tuple) and all(map(_is_tagged, sentence)):
        words, tags = [word for word, _ in sentence], [tag for _, tag in sentence if tag is not None]
    else:
        found = f"sentence {at} is {str(sentence)[:40]!r}"
        raise InputError(f"{found}; expected a list of words, of words with tags, or a tree")
    if not words:
        raise InputError(f"sentence {at} has no words; expected at least one")
    return TaggedSentence(words, tags)


def _is_tagged(pair: object) -> bool:
    """Tell whether this is a word with its tag, which may be None."""
    return (
        isinstance(pair, list | tuple)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and isinstance(pair[1], str | None)
    )


def list_sentences(sentences: Iterable[Input]) -> list[Input]:
    """Return sentences as a list; refuse a single one."""
    if isinstance(sentences, ConstTree | DepTree | str):
        raise InputError(f"one sentence was given, {str(sentences)[:40]!r}; expected a list of them")
    return list(sentences)


def read_sentences(sentences: Sequence[Input], tagger: Tagger | None) -> list[TaggedSentence]:
    """Return the words of sentences with their own tags, or with those of a tagger where one is given."""
    read = [read_sentence(sentence, at) for at, sentence in enumerate(sentences, 1)]
    if tagger is not None:
        tagged = tagger.tag([sentence.words for sentence in read])
        return [
            TaggedSentence(sentence.words, each.xpos) for sentence, each in zip(read, tagged, strict=True)
        ]
    for at, sentence in enumerate(read, 1):
        if len(sentence.tags) != len(sentence.words):
            found = "words without tags" if sentence.tags else "no tags"
            raise InputError(f"sentence {at} has {found}; expected some, or a parser that predicts them")
    return read
