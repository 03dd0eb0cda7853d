"""A name for the data and options of a training."""

import hashlib
from collections.abc import Sequence

from treewright.data.deptree import DepTree


def fingerprint(options: Sequence[object], *treebanks: Sequence[DepTree]) -> str:
    """Return a name for the options and the data of a training, another one after any change."""
    digest = hashlib.sha256(repr(options).encode())
    for trees in treebanks:
        for tree in trees:
            columns = (tree.words, tree.lemmas, tree.upos, tree.xpos, tree.feats, tree.deprels)
            digest.update(repr((columns, tree.heads.tolist())).encode())
        digest.update(b"end")
    return digest.hexdigest()
