"""Reading trees and their PropBank annotation from two files."""

import os
from collections.abc import Iterator
from itertools import zip_longest
from typing import TypeAlias

from treewright.data.bracketed import iter_brackets
from treewright.data.consttree import ConstTree
from treewright.data.formats import check_kind
from treewright.data.propbank import PropSentence, iter_props
from treewright.errors import InputError
from treewright.srl.arguments import check_words

Path: TypeAlias = str | os.PathLike[str]


def read_pairs(trees: Path, props: Path) -> tuple[list[ConstTree], list[PropSentence]]:
    """Read trees and their PropBank annotation; at least one sentence is required.

    Parameters
    ----------
    trees : path, or "-"
        File in Penn brackets.
    props : path, or "-"
        File in PropBank columns.
    """
    if os.fspath(trees) == os.fspath(props) == "-":
        raise InputError("trees and roles are both standard input; expected a file for one of them")
    check_kind(trees, "constituents")
    check_kind(props, "propositions")
    pairs = list(iter_pairs(iter_brackets(trees), iter_props(props), trees, props))
    if not pairs:
        raise InputError(f"{os.fspath(trees)} has no sentences; expected at least one")
    return [tree for tree, _ in pairs], [sentence for _, sentence in pairs]


def iter_pairs(
    trees: Iterator[ConstTree], sentences: Iterator[PropSentence], source: Path, props: Path
) -> Iterator[tuple[ConstTree, PropSentence]]:
    """Yield trees with their PropBank sentences; error messages name the files."""
    names = os.fspath(source), os.fspath(props)
    for number, (tree, sentence) in enumerate(zip_longest(trees, sentences), start=1):
        if tree is None or sentence is None:
            more, fewer = names if sentence is None else reversed(names)
            raise InputError(f"{more} has more sentences than {fewer} ({number - 1}); expected equal numbers")
        check_words(tree, sentence, f"sentence {number} of {names[0]}", f"sentence {number} of {names[1]}")
        yield tree, sentence
