"""Trees of other libraries: nltk.Tree and spaCy's Doc, there and back."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from treewright._optional import require
from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.errors import InputError

if TYPE_CHECKING:
    from nltk import Tree
    from spacy.tokens import Doc, Span, Token
    from spacy.vocab import Vocab

NO_SPACE = "SpaceAfter=No"


def from_nltk(tree: "Tree") -> ConstTree:
    """Turn an nltk.Tree into a `ConstTree`.

    Strings become leaves; a pair of a word and its tag becomes the tag over the word.
    """
    labels: list[str] = []
    n_children: list[int] = []
    waiting: list[Any] = [tree]
    while waiting:  # parents first and from right to left, which is post-order in reverse
        label, children = _split_nltk(waiting.pop())
        labels.append(label)
        n_children.append(len(children))
        waiting.extend(children)
    return ConstTree.from_child_counts(labels[::-1], n_children[::-1])


def _split_nltk(node: Any) -> tuple[str, Sequence[Any]]:  # noqa: ANN401
    """Return the label of a node and what stands under it."""
    if isinstance(node, str):
        return node, ()
    if callable(getattr(node, "label", None)):
        return str(node.label()), node
    if isinstance(node, tuple) and len(node) == 2 and all(isinstance(part, str) for part in node):
        return node[1], node[:1]
    raise InputError(
        f"a leaf is of the type {type(node).__name__}; expected a string or a pair of word and tag"
    )


def to_nltk(tree: ConstTree) -> "Tree":
    """Turn a `ConstTree` into an nltk.Tree; leaves become strings."""
    make = require("nltk.tree", "nltk").Tree
    labels = tree.labels
    made: list[Any] = []
    for node, children in enumerate(tree.child_positions()):
        made.append(make(labels[node], [made[child] for child in children]) if children else labels[node])
    return made[-1] if not tree.is_leaf else make(tree.label, [])


def from_spacy(doc: "Doc") -> list[DepTree]:
    """Turn the sentences of a spaCy Doc into dependency trees.

    White-space tokens, which are no words, are left out.
    """
    if not doc.has_annotation("DEP"):
        raise InputError("the Doc has no dependencies; expected one that a parser has seen")
    return [_from_spacy_sentence(sentence) for sentence in doc.sents]


def to_spacy(trees: Sequence[DepTree], vocab: "Vocab | None" = None) -> "Doc":
    """Turn dependency trees into one spaCy Doc, a sentence each.

    Parameters
    ----------
    trees : sequence of DepTree
        With known heads.
    vocab : spacy.vocab.Vocab, optional
        A new one when not given.
    """
    tokens = require("spacy.tokens", "spacy")
    vocabulary = require("spacy.vocab", "spacy")
    if any((tree.heads < 0).any() for tree in trees):
        raise InputError("a tree has words without a head; expected whole trees")
    offsets = np.cumsum([0, *map(len, trees)]).tolist()
    doc: Doc = tokens.Doc(
        vocabulary.Vocab() if vocab is None else vocab,
        words=_joined(tree.words for tree in trees),
        spaces=_joined([NO_SPACE not in misc.split("|") for misc in tree.misc] for tree in trees),
        heads=_joined(_spacy_heads(tree, offset) for tree, offset in zip(trees, offsets, strict=False)),
        deps=_joined(["ROOT" if one == "root" else one for one in tree.deprels] for tree in trees),
        pos=_joined(_blanked(tree.upos) for tree in trees),
        tags=_joined(_blanked(tree.xpos) for tree in trees),
        lemmas=_joined(_blanked(tree.lemmas) for tree in trees),
        morphs=_joined(_blanked(tree.feats) for tree in trees),
        sent_starts=_joined([True] + [False] * (len(tree) - 1) for tree in trees if len(tree)),
    )
    return doc


def _from_spacy_sentence(sentence: "Span") -> DepTree:
    words = [token for token in sentence if not token.text.isspace()]
    position = {token.i: number for number, token in enumerate(words, start=1)}
    return DepTree(
        [token.text for token in words],
        [_head_position(token, position) for token in words],
        ["root" if token.dep_ == "ROOT" else token.dep_ or "_" for token in words],
        lemmas=[token.lemma_ or "_" for token in words],
        upos=[token.pos_ or "_" for token in words],
        xpos=[token.tag_ or "_" for token in words],
        feats=[_sorted_features(str(token.morph)) for token in words],
        misc=["_" if token.whitespace_ else NO_SPACE for token in words],
    )


def _head_position(token: "Token", position: dict[int, int]) -> int:
    """Climb from `token` to the first word that counts; 0 at the root."""
    while token.head.i != token.i:
        token = token.head
        if token.i in position:
            return position[token.i]
    return 0


def _spacy_heads(tree: DepTree, offset: int) -> list[int]:
    """Count heads from 0 over the whole Doc; a root is its own head."""
    own = np.arange(1, len(tree) + 1)
    heads: list[int] = (np.where(tree.heads == 0, own, tree.heads) + offset - 1).tolist()
    return heads


def _sorted_features(morph: str) -> str:
    """Put features into the order of Universal Dependencies, which ignores case; spaCy's does not."""
    return "|".join(sorted(morph.split("|"), key=str.lower)) or "_"


def _joined(parts: Iterable[list[Any]]) -> list[Any]:
    return list(chain.from_iterable(parts))


def _blanked(values: list[str]) -> list[str]:
    return ["" if value == "_" else value for value in values]
