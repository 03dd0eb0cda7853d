"""Word: a word of a `DepTree`, with access to its head and children."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from treewright.data.deptree import DepTree

NO_SPACE = "SpaceAfter=No"


class Word:
    """A word of a sentence, ``tree[i]``.

    A word is a view: it stores its tree and its position, and looks up everything else. Two words are equal
    if they have the same position in the same tree object; words of two trees are never equal.

    Parameters
    ----------
    tree : DepTree
        The sentence.
    index : int
        Position in the sentence, from 0.

    See Also
    --------
    DepTree : The sentence.

    Examples
    --------
    >>> from treewright import DepTree
    >>> tree = DepTree(["Mary", "saw", "him"], [2, 0, 2], ["nsubj", "root", "obj"])
    >>> tree[2].head, tree[2].deprel, tree[1].children
    (Word('saw', id=2), 'obj', [Word('Mary', id=1), Word('him', id=3)])
    """

    __slots__ = ("index", "tree")

    tree: "DepTree"
    index: int

    def __init__(self, tree: "DepTree", index: int) -> None:
        self.tree = tree
        self.index = index

    @property
    def id(self) -> int:
        """The ID of the word in CoNLL-U: its position in the sentence, from 1."""
        return self.index + 1

    @property
    def form(self) -> str:
        """The word form."""
        return self.tree.words[self.index]

    @property
    def lemma(self) -> str:
        """The lemma, ``"_"`` if unknown."""
        return self.tree.lemmas[self.index]

    @property
    def upos(self) -> str:
        """The universal part of speech, ``"_"`` if unknown."""
        return self.tree.upos[self.index]

    @property
    def xpos(self) -> str:
        """The language-specific part of speech, ``"_"`` if unknown."""
        return self.tree.xpos[self.index]

    @property
    def feats(self) -> str:
        """The morphological features as in the column: ``"Case=Nom|Number=Sing"``."""
        return self.tree.feats[self.index]

    @property
    def features(self) -> dict[str, str]:
        """The morphological features by name: ``{"Case": "Nom", "Number": "Sing"}``."""
        return _read_pairs(self.feats)

    @property
    def deprel(self) -> str:
        """The relation to the head, ``"_"`` if unknown."""
        return self.tree.deprels[self.index]

    @property
    def deps(self) -> str:
        """The enhanced dependencies as in the column DEPS."""
        return self.tree.deps[self.index]

    @property
    def misc(self) -> str:
        """The column MISC."""
        return self.tree.misc[self.index]

    @property
    def space_after(self) -> bool:
        """Whether a space follows the word in the text.

        It is False if MISC contains ``SpaceAfter=No``, and inside a multiword token. After the last word of a
        multiword token, the MISC of the token decides.
        """
        for token in self.tree.multiword_tokens():
            if token.start <= self.index < token.end:
                return self.id == token.end and token.space_after
        return NO_SPACE not in self.misc.split("|")

    @property
    def is_root(self) -> bool:
        """Whether the head is the root of the tree (HEAD is 0)."""
        return int(self.tree.heads[self.index]) == 0

    @property
    def head(self) -> "Word | None":
        """The head; None for a root or an unknown head."""
        head = int(self.tree.heads[self.index])
        return Word(self.tree, head - 1) if head > 0 else None

    @property
    def children(self) -> list["Word"]:
        """The words whose head is this word, from left to right."""
        return [Word(self.tree, at) for at in np.flatnonzero(self.tree.heads == self.id).tolist()]

    @property
    def left_children(self) -> list["Word"]:
        """The children before the word."""
        return [child for child in self.children if child.index < self.index]

    @property
    def right_children(self) -> list["Word"]:
        """The children after the word."""
        return [child for child in self.children if child.index > self.index]

    @property
    def ancestors(self) -> list["Word"]:
        """The head, its head, and so on up to the root."""
        found = []
        word = self.head
        while word is not None:
            found.append(word)
            word = word.head
        return found

    @property
    def subtree(self) -> list["Word"]:
        """The word and all its descendants, in sentence order."""
        below: dict[int, list[int]] = {}
        for at, head in enumerate(self.tree.heads.tolist()):
            below.setdefault(head - 1, []).append(at)
        found = [self.index]
        for at in found:  # grows during the loop
            found.extend(below.get(at, []))
        return [Word(self.tree, at) for at in sorted(found)]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Word):
            return NotImplemented
        return self.tree is other.tree and self.index == other.index

    def __hash__(self) -> int:
        return hash((id(self.tree), self.index))

    def __str__(self) -> str:
        return self.form

    def __repr__(self) -> str:
        return f"Word({self.form!r}, id={self.id})"


def _read_pairs(column: str) -> dict[str, str]:
    """Read ``name=value`` pairs separated by bars; entries without a value are ignored."""
    pairs = (item.split("=", 1) for item in column.split("|") if "=" in item)
    return dict(pair for pair in pairs)
