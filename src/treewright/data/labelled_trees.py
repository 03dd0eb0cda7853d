"""Conversion of dependency trees to ordered labelled trees, for tree kernels.

The three conversions are those of Croce, Moschitti & Basili (2011), "Structured lexical similarity via
convolution kernels on dependency trees". The label of a word's node is its grammatical relation (GRCT), its
part-of-speech tag (PCT) or the word itself (LCT); the other two become descendants of that node.
"""

import re
from typing import Literal, TypeAlias, get_args

from treewright._validate import check_choice, check_type
from treewright.data.consttree import LABEL, ConstTree
from treewright.data.deptree import DepTree
from treewright.errors import InputError

Centre: TypeAlias = Literal["relation", "tag", "word"]
CENTRES = get_args(Centre)
WORDS = ("word", "lower", "lemma")
COLUMNS = ("xpos", "upos")
ROOT = "ROOT"
BLANK = "_"
UNWRITABLE = re.compile(r"[\s\0]+", re.ASCII)

Part: TypeAlias = int | tuple[str, ...]
"""A child of a node: the position of a dependent from 0, or a chain of labels from top to bottom."""


def to_constituents(
    tree: DepTree, *, centre: str = "relation", column: str | None = None, words: str = "word"
) -> ConstTree:
    """Convert a dependency tree to an ordered labelled tree.

    Each word becomes a node over the nodes of its dependents, in sentence order. All roots are children of a
    node ``ROOT``. Trees with crossing arcs are allowed, but then the words are not in sentence order.
    Whitespace inside a word becomes ``_``.

    Parameters
    ----------
    tree : DepTree
        A tree with known heads.
    centre : {"relation", "tag", "word"}
        Label of a word's node. With ``"relation"``, the tag over the word is placed among the dependents, at
        the word's position. With ``"tag"``, the word itself is placed there, and the relation is the last
        leaf. With ``"word"``, the relation and the tag are the last two leaves.
    column : {"xpos", "upos"}, optional
        Column of the tags (by default `xpos` if any word has one, or else `upos`).
    words : {"word", "lower", "lemma"}
        Use the form, the form in lower case, or the lemma; a word without a lemma keeps its form.

    Returns
    -------
    ConstTree
        The converted tree.

    Raises
    ------
    InputError
        If the sentence has no words, or a word has no head.

    See Also
    --------
    to_dependencies : Converts a constituency tree to a dependency tree.
    TreeKernelClassifier : Classifies trees.

    Examples
    --------
    >>> from treewright import DepTree, to_constituents
    >>> tree = DepTree("the dog barks".split(), [2, 3, 0], ["det", "nsubj", "root"], upos=["D", "N", "V"])
    >>> print(to_constituents(tree))
    (ROOT (root (nsubj (det (D the)) (N dog)) (V barks)))
    >>> print(to_constituents(tree, centre="tag"))
    (ROOT (V (N (D the det) dog nsubj) barks root))
    >>> print(to_constituents(tree, centre="word"))
    (ROOT (barks (dog (the det D) nsubj N) root V))
    """
    check_choice("centre", centre, CENTRES)
    check_choice("column", column, (None, *COLUMNS))
    check_choice("words", words, WORDS)
    dependents = _list_dependents(tree)
    texts = _labels(_lexical(tree, words))
    relations = _labels(tree.deprels)
    tags = _labels(getattr(tree, column or _filled_column(tree)))
    heads = {"relation": relations, "tag": tags, "word": texts}[centre]
    labels: list[str] = [ROOT]
    n_children: list[int] = [len(dependents[0])]
    waiting: list[Part] = list(dependents[0])
    while waiting:  # parents first and from right to left, which is post-order in reverse
        part = waiting.pop()
        if isinstance(part, tuple):
            labels += part
            n_children += [1] * (len(part) - 1) + [0]
            continue
        under = _arrange(part, dependents[part + 1], (relations[part], tags[part], texts[part]), centre)
        labels.append(heads[part])
        n_children.append(len(under))
        waiting += under
    return ConstTree.from_child_counts(labels[::-1], n_children[::-1])


def _list_dependents(tree: DepTree) -> list[list[int]]:
    """Return a list of the roots, followed by a list of the dependents of each word; positions start at 0."""
    check_type("tree", tree, DepTree, "a DepTree")
    if not len(tree):
        raise InputError("the sentence has no words; expected at least one")
    dependents: list[list[int]] = [[] for _ in range(len(tree) + 1)]
    for word, head in enumerate(tree.heads.tolist()):
        if head < 0:
            raise InputError(f"word {word + 1} has no head; expected one from 0 to {len(tree)}")
        dependents[head].append(word)
    return dependents


def _arrange(word: int, dependents: list[int], own: tuple[str, str, str], centre: str) -> list[Part]:
    """Return the children of a word's node, given the relation, tag and form of the word (`own`)."""
    relation, tag, text = own
    if centre == "word":
        return [*dependents, (relation,), (tag,)]
    place = sum(dependent < word for dependent in dependents)
    if centre == "tag":
        return [*dependents[:place], (text,), *dependents[place:], (relation,)]
    return [*dependents[:place], (tag, text), *dependents[place:]]


def _filled_column(tree: DepTree) -> str:
    """Return the name of the tag column to use.

    It is chosen separately for each tree, so that the conversion of a tree does not depend on other trees.
    """
    return "xpos" if any(tag != BLANK for tag in tree.xpos) else "upos"


def _lexical(tree: DepTree, words: str) -> list[str]:
    if words == "lower":
        return [word.lower() for word in tree.words]
    if words == "lemma":
        pairs = zip(tree.words, tree.lemmas, strict=True)
        return [word if lemma == BLANK else lemma for word, lemma in pairs]
    return tree.words


def _labels(texts: list[str]) -> list[str]:
    return [text if LABEL.fullmatch(text) else UNWRITABLE.sub(BLANK, text) or BLANK for text in texts]
