"""Candidate lists of training sentences by cross-validation: no parser has seen the sentences it parses."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from treewright._typing import Count
from treewright._validate import check_integer, check_param, check_type, count_jobs, draw_seed
from treewright._version import __version__
from treewright.checkpoint import Checkpoint, fingerprint
from treewright.data.deptree import DepTree, check_trees
from treewright.data.documents import deal_folds
from treewright.data.files import check_target
from treewright.errors import InputError
from treewright.parsing.dependency.parser import DependencyParser
from treewright.parsing.dependency.pruning import Pruner
from treewright.parsing.dependency.training import TAG_COLUMNS, SharedFolds, with_tags
from treewright.progress import prefixed, report, silenced
from treewright.rerank.candidates import CandidateLists
from treewright.scale import Client, map_jobs

FOLD_EPOCHS, FOLD_RUNS = 3, 2
"""Default maximum numbers of epochs and of averaged runs for the linear models of folds."""
SHARED = "folds share pruning models"
"""Part of the fingerprint of lists, which depend on whether the folds share pruning models."""


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
    """Parse training sentences by cross-validation and return their k-best lists.

    The parameter `fold_by` of the parser defines the folds. Each fold is parsed by a parser trained on the
    others; with predicted tags, it is also tagged by a tagger trained on the other folds. There is one tagger
    and one pruning model per fold, trained on the other folds and shared by all parsers (see `SharedFolds`).

    Parameters
    ----------
    parser : DependencyParser
        Provides the parameters of the parsers; it need not be trained and is not changed.
    trees : sequence of DepTree
        Training sentences.
    k : int
        Number of candidate trees per sentence.
    folds : int
        Number of jackknife folds.
    epochs : int, optional
        Training epochs of each fold. The default is the parser's value; for a linear model, it is at most 3,
        because more epochs hardly change the lists (see `benchmarks/folds.py`).
    runs : int, optional
        Training runs to average in each fold. The default is the parser's value; for a linear model, it is at
        most 2.
    n_jobs : int
        Number of folds to process in parallel.
    client : distributed.Client, optional
        Dask client to run on instead of local threads; it does not change the result.
    cache : path, optional
        Folder for the finished lists, whose file name is a fingerprint of the sentences and options. It also
        stores the steps of unfinished folds, unless they run on a cluster.

    Returns
    -------
    CandidateLists
        The k-best trees of each sentence, in the order of `trees`.

    See Also
    --------
    DependencyReranker : Trains on such lists.

    Examples
    --------
    >>> import treewright as tw
    >>> trees = tw.make_treebank(20, random_state=0).dependencies
    >>> parser = tw.DependencyParser(order=1, epochs=1, tags="gold")
    >>> lists = tw.jackknife_lists(parser, trees, k=3, folds=2)
    >>> len(lists), lists.n_candidates
    (20, 60)
    """
    check_type("parser", parser, DependencyParser, "a DependencyParser")
    check_trees(trees)
    if cache is not None:
        check_target("cache", cache)
    seed = draw_seed(parser.random_state, checkpoint=cache)
    check_integer("k", k, minimum=1)
    check_integer("folds", folds, minimum=2)
    check_param("epochs", epochs, Count | None)
    check_param("runs", runs, Count | None)
    count_jobs(n_jobs)
    if len(trees) < folds:
        raise InputError(f"{len(trees)} sentences for {folds} folds; expected at least one sentence per fold")
    most_epochs, most_runs = (
        (FOLD_EPOCHS, FOLD_RUNS) if parser.learns_linear else (parser.epochs, parser.runs)
    )
    fold_parser = parser.with_params(
        epochs=epochs or min(parser.epochs, most_epochs),
        runs=runs or min(parser.runs, most_runs),
        jackknife=False,
        patience=None,
        n_jobs=1,
        random_state=seed,
        # A fitted one has seen all sentences.
        scorer=parser.scorer and parser.scorer.with_params(),
    )
    options = [__version__, SHARED, k, folds, *fold_parser.result_params().items()]
    identity = fingerprint(options, trees)
    parts, description = deal_folds(trees, folds, by=parser.fold_by, random_state=seed)
    report(f"candidate lists: {description}")
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
            what="candidate lists",
            unit="folds",
            keep=lambda item, lists: kept.save(item[0], lists),
        )
        found |= dict(zip(missing, made, strict=True))
        kept.drop_shared(folds)
    joined = CandidateLists.joined([each for each in found.values() if each is not None])
    return joined.select(np.argsort(np.concatenate(parts)).tolist())


@dataclass(frozen=True)
class _FoldWork:
    """Parses a fold; holds the data that all folds share."""

    parser: DependencyParser
    shared: SharedFolds
    k: int
    identity: str
    steps: Path | None
    is_remote: bool
    """Whether the folds run on a cluster, without access to local folders and without log lines."""

    def __call__(self, item: tuple[int, Pruner | None]) -> CandidateLists:
        """Return the candidate lists of a fold, given its number and pruner."""
        fold, pruner = item
        mine = [self.shared.trees[number] for number in self.shared.parts[fold]]
        checkpoint = Checkpoint(self.steps / f"fold{fold}", self.identity) if self.steps else None
        with silenced() if self.is_remote else prefixed(f"fold {fold + 1}: "):
            trainer = self.parser.fold_trainer(self.shared.trees, checkpoint=checkpoint)
            parser = self.parser.with_learnt(trainer.train_fold(self.shared, fold, pruner))
        return CandidateLists.from_structures(parser.structures(mine, self.k))


class _KeptFolds:
    """Stores the lists of finished folds in a local folder, if there is one."""

    def __init__(self, checkpoint: Checkpoint | None, *, with_tags: bool) -> None:
        self._checkpoint = checkpoint
        self._with_tags = with_tags

    @property
    def folder(self) -> Path | None:
        """The folder of the checkpoint, or None."""
        return self._checkpoint.folder if self._checkpoint else None

    def load(self, fold: int, trees: Sequence[DepTree]) -> CandidateLists | None:
        """Return the stored lists of a fold, or None."""
        state = self._checkpoint.load(f"fold{fold}") if self._checkpoint else None
        return CandidateLists.from_state(state, _retagged(trees, state.values.get("tags"))) if state else None

    def save(self, fold: int, lists: CandidateLists) -> None:
        """Store the lists of a fold and delete its intermediate steps."""
        report(f"fold {fold + 1}: lists of {len(lists)} sentences done")
        if self._checkpoint:
            state = lists.get_state()
            if self._with_tags:
                state.values["tags"] = [[getattr(tree, name) for name in TAG_COLUMNS] for tree in lists.trees]
            self._checkpoint.save(f"fold{fold}", state)
            with suppress(OSError):
                Checkpoint.remove(self._checkpoint.folder / f"fold{fold}")

    def drop_shared(self, n_folds: int) -> None:
        """Delete the steps shared by the folds once all lists are finished."""
        if self._checkpoint:
            for name in ("tags", *(f"pruning{fold}" for fold in range(n_folds))):
                with suppress(OSError):
                    self._checkpoint.path(name).unlink(missing_ok=True)


def _retagged(trees: Sequence[DepTree], tags: list[list[list[str]]] | None) -> Sequence[DepTree]:
    """Return the sentences with the tags used for parsing, if these were stored."""
    return trees if tags is None else with_tags(trees, tags)
