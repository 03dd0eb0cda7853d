"""Candidate lists of training sentences, by parsers that have not seen them."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from treewright._validate import check_integer
from treewright._version import __version__
from treewright.checkpoint import Checkpoint
from treewright.data.deptree import DepTree
from treewright.errors import InputError
from treewright.parsing.dependency import OPTIONS, DependencyParser
from treewright.parsing.features import TemplateSet
from treewright.parsing.fingerprint import fingerprint
from treewright.rerank.candidates import CandidateLists
from treewright.scale import map_jobs

TAG_COLUMNS = ("upos", "xpos", "feats", "lemmas")


def jackknife_lists(
    parser: DependencyParser,
    trees: Sequence[DepTree],
    *,
    k: int = 10,
    folds: int = 10,
    epochs: int | None = None,
    jobs: int = 1,
    cache: str | os.PathLike[str] | None = None,
    progress: Callable[[str], None] | None = None,
) -> CandidateLists:
    """Parse training sentences as if they were new.

    The sentences are dealt out into folds at random. Those of each fold are parsed by a parser that learns
    from the others; where tags are predicted, by a tagger that learns from the others too.

    Parameters
    ----------
    parser : DependencyParser
        Its options are used; it need not have learnt anything, and is not changed.
    trees : sequence of DepTree
    k : int
        Trees a sentence.
    folds : int
    epochs : int, optional
        Of the training of each fold; those of the parser without it.
    jobs : int
        Folds that are parsed side by side.
    cache : path, optional
        A folder in which the lists are kept under a name made of the sentences and all options, and the steps
        of unfinished folds beside them.
    progress : callable, optional
        Called with a line of text after each step.
    """
    check_integer("k", k, minimum=1)
    check_integer("folds", folds, minimum=2)
    if len(trees) < folds:
        raise InputError(f"{len(trees)} sentences for {folds} folds; expected a sentence a fold or more")
    tell = progress or (lambda line: None)
    fold_parser = parser.untrained(epochs=epochs or parser.epochs, jackknife=False, patience=None, jobs=1)
    chosen = [getattr(fold_parser, name) for name in OPTIONS]
    options = [__version__, k, folds, *chosen, fold_parser.templates or TemplateSet()]
    identity = fingerprint(options, trees)
    kept = Checkpoint(Path(cache, identity[:24]), identity) if cache is not None else None
    parts = np.array_split(np.random.default_rng(parser.seed).permutation(len(trees)), folds)
    work = _FoldWork(fold_parser, trees, k, kept, tell)
    lists = map_jobs(
        lambda fold: work.parse(fold, np.sort(parts[fold])),
        range(folds),
        jobs=jobs,
        what="lists of candidates",
        unit="folds",
    )
    order = np.argsort(np.concatenate([np.sort(part) for part in parts]))
    return CandidateLists.joined(lists).select(order.tolist())


class _FoldWork:
    """What is the same for all folds."""

    def __init__(
        self,
        parser: DependencyParser,
        trees: Sequence[DepTree],
        k: int,
        kept: Checkpoint | None,
        tell: Callable[[str], None],
    ) -> None:
        self._parser = parser
        self._trees = trees
        self._k = k
        self._kept = kept
        self._tell = tell

    def parse(self, fold: int, numbers: npt.NDArray[np.int64]) -> CandidateLists:
        """Return the lists of the sentences of a fold, parsed or as they were kept."""
        aside = set(numbers.tolist())
        mine = [self._trees[number] for number in numbers]
        state = self._kept.load(f"fold{fold}") if self._kept else None
        if state is not None:
            return CandidateLists.from_state(state, _retagged(mine, state.values.get("tags")))
        rest = [tree for number, tree in enumerate(self._trees) if number not in aside]
        steps = self._kept.folder / f"fold{fold}" if self._kept else None
        parser = self._parser.untrained()
        # The fold itself serves to calibrate its parser, which has not learnt from it otherwise.
        parser.fit(rest, mine, progress=lambda line: self._tell(f"fold {fold + 1}: {line}"), checkpoint=steps)
        lists = CandidateLists.from_structures(parser.structures(mine, self._k))
        if self._kept:
            state = lists.get_state()
            if parser.tags == "predicted":
                state.values["tags"] = [[getattr(tree, name) for name in TAG_COLUMNS] for tree in lists.trees]
            self._kept.save(f"fold{fold}", state)
            shutil.rmtree(self._kept.folder / f"fold{fold}", ignore_errors=True)
        return lists


def _retagged(trees: Sequence[DepTree], tags: list[list[list[str]]] | None) -> Sequence[DepTree]:
    """Give sentences the tags that they were parsed with, if these are not their own."""
    if tags is None:
        return trees
    return [
        tree.with_tags(**dict(zip(TAG_COLUMNS, columns, strict=True)))
        for tree, columns in zip(trees, tags, strict=True)
    ]
