"""Candidate lists of training sentences, by parsers that have not seen them."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
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
from treewright.scale import Client, map_jobs

TAG_COLUMNS = ("upos", "xpos", "feats", "lemmas")


def jackknife_lists(
    parser: DependencyParser,
    trees: Sequence[DepTree],
    *,
    k: int = 10,
    folds: int = 10,
    epochs: int | None = None,
    jobs: int = 1,
    client: Client | None = None,
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
    client : distributed.Client, optional
        A cluster that parses the folds instead; the lists are the same.
    cache : path, optional
        A folder in which the lists are kept under a name made of the sentences and all options, and the steps
        of unfinished folds beside them, unless these are on a cluster.
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
    order = np.random.default_rng(parser.seed).permutation(len(trees))
    parts = [np.sort(part) for part in np.array_split(order, folds)]
    folder = Checkpoint(Path(cache, identity[:24]), identity) if cache is not None else None
    kept = _KeptFolds(folder, tell, with_tags=parser.tags == "predicted")
    found = {fold: kept.load(fold, [trees[number] for number in part]) for fold, part in enumerate(parts)}
    # On a cluster nobody hears what is told, and there is no folder of this machine.
    here = (tell, kept.folder) if client is None else (_tell_nobody, None)
    missing = [fold for fold, lists in found.items() if lists is None]
    made = map_jobs(
        _FoldWork(fold_parser, trees, parts, k, *here).parse,
        missing,
        jobs=jobs,
        client=client,
        what="lists of candidates",
        unit="folds",
        keep=kept.save,
    )
    lists = {**found, **dict(zip(missing, made, strict=True))}
    joined = CandidateLists.joined([each for each in lists.values() if each is not None])
    return joined.select(np.argsort(np.concatenate(parts)).tolist())


@dataclass(frozen=True)
class _FoldWork:
    """What is the same for all folds, wherever they are parsed."""

    parser: DependencyParser
    trees: Sequence[DepTree]
    parts: Sequence[npt.NDArray[np.int64]]
    k: int
    tell: Callable[[str], None]
    steps: Path | None

    def parse(self, fold: int) -> CandidateLists:
        """Return the lists of the sentences of a fold."""
        aside = set(self.parts[fold].tolist())
        mine = [self.trees[number] for number in self.parts[fold]]
        rest = [tree for number, tree in enumerate(self.trees) if number not in aside]
        steps = self.steps / f"fold{fold}" if self.steps else None
        parser = self.parser.untrained()
        # The fold itself serves to calibrate its parser, which has not learnt from it otherwise.
        parser.fit(rest, mine, progress=lambda line: self.tell(f"fold {fold + 1}: {line}"), checkpoint=steps)
        return CandidateLists.from_structures(parser.structures(mine, self.k))


class _KeptFolds:
    """The lists of folds that are parsed, in a folder of this machine if there is one."""

    def __init__(
        self, checkpoint: Checkpoint | None, tell: Callable[[str], None], *, with_tags: bool
    ) -> None:
        self._checkpoint = checkpoint
        self._tell = tell
        self._with_tags = with_tags

    @property
    def folder(self) -> Path | None:
        """Where they are kept."""
        return self._checkpoint.folder if self._checkpoint else None

    def load(self, fold: int, trees: Sequence[DepTree]) -> CandidateLists | None:
        """Return the lists of the sentences of a fold, if they are kept."""
        state = self._checkpoint.load(f"fold{fold}") if self._checkpoint else None
        return CandidateLists.from_state(state, _retagged(trees, state.values.get("tags"))) if state else None

    def save(self, fold: int, lists: CandidateLists) -> None:
        """Keep the lists of a fold, and drop the steps that led to them."""
        self._tell(f"fold {fold + 1}: {len(lists)} sentences have lists")
        if self._checkpoint:
            state = lists.get_state()
            if self._with_tags:
                state.values["tags"] = [[getattr(tree, name) for name in TAG_COLUMNS] for tree in lists.trees]
            self._checkpoint.save(f"fold{fold}", state)
            with suppress(OSError):
                Checkpoint.remove(self._checkpoint.folder / f"fold{fold}")


def _tell_nobody(line: str) -> None:
    """Do nothing."""


def _retagged(trees: Sequence[DepTree], tags: list[list[list[str]]] | None) -> Sequence[DepTree]:
    """Give sentences the tags that they were parsed with, if these are not their own."""
    if tags is None:
        return trees
    return [
        tree.with_tags(**dict(zip(TAG_COLUMNS, columns, strict=True)))
        for tree, columns in zip(trees, tags, strict=True)
    ]
