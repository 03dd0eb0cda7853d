"""Files for semantic roles: trees with PropBank columns to learn from, and labelling whatever the size."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TypeAlias

from treewright.data.consttree import ConstTree
from treewright.data.formats import open_told
from treewright.data.propbank import PropSentence, format_sentence, iter_props
from treewright.errors import InputError
from treewright.parsing.conllu_files import in_batches
from treewright.parsing.resumable_output import Unfinished, name_work, write_results
from treewright.persist import identify
from treewright.srl.labeler import BATCH_SIZE, RoleLabeler
from treewright.srl.pairs import iter_pairs

Path: TypeAlias = str | os.PathLike[str]


def label_file(
    labeler: RoleLabeler,
    source: str,
    target: str,
    *,
    predicates_from: str | None = None,
    n_jobs: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
) -> None:
    """Find the roles in a file of trees and write PropBank columns.

    Parameters
    ----------
    labeler : RoleLabeler
    source, target : str
        Files, or ``"-"``; `source` in Penn brackets.
    predicates_from : str, optional
        PropBank columns of the same sentences, whose predicates are taken as known.
    n_jobs : int
        Threads.
    checkpoint : path, optional
        A folder in which what is done is kept, for files alone. If it exists, work goes on from it, to the
        same file.
    """
    if source == predicates_from == "-":
        raise InputError("standard input can stand for one file only")
    labeler.n_jobs = n_jobs
    unfinished = None
    if checkpoint is not None:
        name = partial(_name_work, labeler, source, predicates_from)
        unfinished = Unfinished(checkpoint, target, name)
    n_done = unfinished.n_done if unfinished else 0
    with _open_trees(source) as trees:
        found = _labelled(labeler, trees, source, predicates_from, n_done)
        write_results(found, target, _show, unfinished)


def _name_work(labeler: RoleLabeler, source: str, props: str | None) -> str:
    return name_work(identify(labeler.get_state()), (), source, props)


def _show(number: int, sentence: PropSentence) -> str:
    return format_sentence(sentence)


@contextmanager
def _open_trees(source: str) -> Iterator[Iterator[ConstTree]]:
    with open_told(source) as (form, stream):
        if form.kind != "constituents":
            raise InputError(f"{source} looks like {form.name}; expected brackets")
        yield form.read(stream)


def _labelled(
    labeler: RoleLabeler, trees: Iterator[ConstTree], source: str, props: str | None, n_done: int
) -> Iterator[PropSentence]:
    """Yield the sentences after the first so many, labelled."""
    if props is None:
        for batch in in_batches(islice(trees, n_done, None), BATCH_SIZE):
            yield from labeler.predict(batch)
        return
    pairs = islice(iter_pairs(trees, iter_props(props), source, props), n_done, None)
    for known in in_batches(pairs, BATCH_SIZE):
        trees_of, sentences = [tree for tree, _ in known], [sentence for _, sentence in known]
        yield from labeler.predict(trees_of, labeler.keep_learnt(sentences))
