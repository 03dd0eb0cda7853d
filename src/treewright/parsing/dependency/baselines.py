"""Two baselines for dependency parsing.

Both use only Penn tags (`xpos`) and give each word the most frequent relation of its tag.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Self

from treewright.data.deptree import DepTree

ROOT = ("", 0)
"""Head tag and side that stand for the root."""


class NextWordParser:
    """Attaches each word to the next one, and the last word to the root."""

    def fit(self, trees: Sequence[DepTree]) -> Self:
        """Learn the most frequent relation of each tag."""
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for tree in trees:
            for tag, relation in zip(tree.xpos, tree.deprels, strict=True):
                counts[tag][relation] += 1
        self.relations_ = {tag: relations.most_common(1)[0][0] for tag, relations in counts.items()}
        return self

    def predict(self, trees: Sequence[DepTree]) -> list[DepTree]:
        """Parse `trees`; existing heads and relations are ignored."""
        return [
            tree.with_heads(self._heads(tree.xpos), [self.relations_.get(tag, "dep") for tag in tree.xpos])
            for tree in trees
        ]

    def _heads(self, tags: list[str]) -> list[int]:
        return [*range(2, len(tags) + 1), 0][: len(tags)]


class MajorityHeadParser(NextWordParser):
    """Attaches each word to the nearest word that is a typical head for its tag.

    For each tag, training finds the most frequent tag and side of the head; a typical head is a word with
    this tag on this side.

    A word is attached to the root if the root is the most frequent head of its tag, if there is no suitable
    word, or if the arc would close a cycle.
    """

    def fit(self, trees: Sequence[DepTree]) -> Self:
        """Learn the most frequent relation, and the most frequent head tag and side, of each tag."""
        super().fit(trees)
        counts: defaultdict[str, Counter[tuple[str, int]]] = defaultdict(Counter)
        for tree in trees:
            for word, (tag, head) in enumerate(zip(tree.xpos, tree.heads.tolist(), strict=True), start=1):
                side = 1 if head > word else -1
                counts[tag][(tree.xpos[head - 1], side) if head else ROOT] += 1
        self.heads_ = {tag: heads.most_common(1)[0][0] for tag, heads in counts.items()}
        return self

    def _heads(self, tags: list[str]) -> list[int]:
        heads = [0] * len(tags)
        for word in range(1, len(tags) + 1):
            head = self._nearest(tags, word)
            if not _is_above(heads, word, head):
                heads[word - 1] = head
        return heads

    def _nearest(self, tags: list[str], word: int) -> int:
        wanted, side = self.heads_.get(tags[word - 1], ROOT)
        places = {0: range(0), 1: range(word + 1, len(tags) + 1), -1: range(word - 1, 0, -1)}[side]
        return next((place for place in places if tags[place - 1] == wanted), 0)


def _is_above(heads: list[int], ancestor: int, word: int) -> bool:
    """Return whether `ancestor` is `word` or one of its ancestors."""
    while word not in (0, ancestor):
        word = heads[word - 1]
    return word == ancestor
