"""A name for the data and options of a training."""

import hashlib
from collections.abc import Sequence

from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree


def fingerprint(options: Sequence[object], *treebanks: Sequence[DepTree] | Sequence[ConstTree]) -> str:
    """Return a name for the options and the data of a training, another one after any change."""
    digest = hashlib.sha256(repr(options).encode())
    for trees in treebanks:
        for tree in trees:
            digest.update(_describe(tree).encode())
        digest.update(b"end")
    return digest.hexdigest()


def _describe(tree: DepTree | ConstTree) -> str:
    if isinstance(tree, ConstTree):
        return str(tree)
    columns = (tree.words, tree.lemmas, tree.upos, tree.xpos, tree.feats, tree.deprels)
    return repr((columns, tree.heads.tolist()))
