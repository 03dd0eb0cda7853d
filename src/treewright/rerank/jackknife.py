"""Candidate lists of training sentences, by parsers that have not seen them."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from treewright._validate import check_integer
from treewright._version import __version__
from treewright.checkpoint import Checkpoint, fingerprint
from treewright.data.deptree import DepTree
from treewright.data.documents import deal_folds
from treewright.errors import InputError
from treewright.parsing.dependency.parser import DependencyParser
from treewright.parsing.dependency.pruning import Pruner
from treewright.parsing.dependency.training import TAG_COLUMNS, SharedFolds, with_tags
from treewright.progress import prefixed, report, silenced
from treewright.rerank.candidates import CandidateLists
from treewright.scale import Client, map_jobs

FOLD_EPOCHS, FOLD_RUNS = 3, 2
"""At most, of the linear models of folds, where nothing else is wanted."""
SHARED = "folds share pruning models"
"""Part of the identity of lists, which are others where each fold prunes by models of its own."""


def jackknife_lists(
    parser: DependencyParser,
    trees: Sequence[DepTree],
    *,
    k: int = 10,
    folds: int = 10,
    epochs: int | None = None,
    runs: int | None = None,
    n_jobs: int = 1,
    client: Client | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> CandidateLists:
    """Parse training sentences as if they were new.

    Whole documents are dealt out into folds at random. The sentences of each fold are parsed by a parser that
    learns from the others; where tags are predicted, by a tagger that learns from the others too. Folds share
    taggers and pruning models, of which there are as many as folds (see `SharedFolds`).

    Parameters
    ----------
    parser : DependencyParser
        Its options are used; it need not have learnt anything, and is not changed.
    trees : sequence of DepTree
    k : int
        Trees a sentence.
    folds : int
    epochs, runs : int, optional
        Of the training of each fold. Without them, those of the parser, but at most 3 epochs and 2 runs of a
        linear model: more change the lists little (see `benchmarks/folds.py`).
    n_jobs : int
        Folds that are parsed side by side.
    client : distributed.Client, optional
        A cluster that parses the folds instead; the lists are the same.
    cache : path, optional
        A folder in which the lists are kept under a name made of the sentences and all options, and the steps
        of unfinished folds beside them, unless these are on a cluster.
    """
    check_integer("k", k, minimum=1)
    check_integer("folds", folds, minimum=2)
    if len(trees) < folds:
        raise InputError(f"{len(trees)} sentences for {folds} folds; expected a sentence a fold or more")
    most_epochs, most_runs = (
        (FOLD_EPOCHS, FOLD_RUNS) if parser.learns_linear else (parser.epochs, parser.runs)
    )
    fold_parser = parser.with_params(
        epochs=epochs or min(parser.epochs, most_epochs),
        runs=runs or min(parser.runs, most_runs),
        jackknife=False,
        patience=None,
        n_jobs=1,
        # One that is fitted has seen all sentences.
        scorer=parser.scorer and parser.scorer.with_params(),
    )
    options = [__version__, SHARED, k, folds, *fold_parser.result_params().items()]
    identity = fingerprint(options, trees)
    parts, description = deal_folds(trees, folds, random_state=parser.random_state)
    report(f"lists of candidates: {description}")
    folder = Checkpoint(Path(cache, identity[:24]), identity) if cache is not None else None
    kept = _KeptFolds(folder, with_tags=parser.tags == "predicted")
    found = {fold: kept.load(fold, [trees[number] for number in part]) for fold, part in enumerate(parts)}
    missing = [fold for fold, lists in found.items() if lists is None]
    if missing:
        sharing = fold_parser.with_params(n_jobs=n_jobs)
        shared, pruners = sharing.fold_trainer(trees, checkpoint=folder, client=client).share_folds(
            trees, parts
        )
        steps = kept.folder if client is None else None
        made = map_jobs(
            _FoldWork(fold_parser.with_params(tags="gold"), shared, k, identity, steps, client is not None),
            [(fold, pruners[fold]) for fold in missing],
            n_jobs=n_jobs,
            client=client,
            what="lists of candidates",
            unit="folds",
            keep=lambda item, lists: kept.save(item[0], lists),
        )
        found |= dict(zip(missing, made, strict=True))
        kept.drop_shared(folds)
    joined = CandidateLists.joined([each for each in found.values() if each is not None])
    return joined.select(np.argsort(np.concatenate(parts)).tolist())


@dataclass(frozen=True)
class _FoldWork:
    """What is the same for all folds, wherever they are parsed."""

    parser: DependencyParser
    shared: SharedFolds
    k: int
    identity: str
    steps: Path | None
    is_remote: bool
    """Whether the folds are parsed on a cluster, which has no folder of this machine and reports nothing."""

    def __call__(self, item: tuple[int, Pruner | None]) -> CandidateLists:
        """Return the lists of the sentences of a fold, given its number and its pruner."""
        fold, pruner = item
        mine = [self.shared.trees[number] for number in self.shared.parts[fold]]
        checkpoint = Checkpoint(self.steps / f"fold{fold}", self.identity) if self.steps else None
        with silenced() if self.is_remote else prefixed(f"fold {fold + 1}: "):
            trainer = self.parser.fold_trainer(self.shared.trees, checkpoint=checkpoint)
            parser = self.parser.with_learnt(trainer.train_fold(self.shared, fold, pruner))
        return CandidateLists.from_structures(parser.structures(mine, self.k))


class _KeptFolds:
    """The lists of folds that are parsed, in a folder of this machine if there is one."""

    def __init__(self, checkpoint: Checkpoint | None, *, with_tags: bool) -> None:
        self._checkpoint = checkpoint
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
        report(f"fold {fold + 1}: {len(lists)} sentences have lists")
        if self._checkpoint:
            state = lists.get_state()
            if self._with_tags:
                state.values["tags"] = [[getattr(tree, name) for name in TAG_COLUMNS] for tree in lists.trees]
            self._checkpoint.save(f"fold{fold}", state)
            with suppress(OSError):
                Checkpoint.remove(self._checkpoint.folder / f"fold{fold}")

    def drop_shared(self, n_folds: int) -> None:
        """Drop what the parsers of the folds shared, once all have their lists."""
        if self._checkpoint:
            for name in ("tags", *(f"pruning{fold}" for fold in range(n_folds))):
                with suppress(OSError):
                    self._checkpoint.path(name).unlink(missing_ok=True)


def _retagged(trees: Sequence[DepTree], tags: list[list[list[str]]] | None) -> Sequence[DepTree]:
    """Give sentences the tags that they were parsed with, if these are not their own."""
    return trees if tags is None else with_tags(trees, tags)
