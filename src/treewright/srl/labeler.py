"""RoleLabeler: from parsed sentences to predicates with named arguments."""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from treewright._typing import Count, FileName, FloatArray, NonNegativeInt, Range
from treewright._validate import check_params
from treewright._version import __version__
from treewright.annotation.contract import Analysis, Annotator, Formatter, Request
from treewright.checkpoint import Checkpoint, fingerprint
from treewright.data.consttree import ConstTree, Span, unescape_word
from treewright.data.formats import open_told
from treewright.data.propbank import Proposition, PropSentence, format_sentence, iter_props
from treewright.errors import InputError
from treewright.metrics import roles as score_roles
from treewright.model import Submodel, saved
from treewright.parsing.sentences import list_trees
from treewright.progress import report
from treewright.progress import task as begin_task
from treewright.srl.arguments import (
    CONTINUED,
    PREDICATE,
    Argument,
    Shape,
    find_arguments,
    keep_verbal,
    list_roles,
    pair_sentences,
    shape_of,
)
from treewright.srl.codes import CodeClassifier
from treewright.srl.features import read_templates
from treewright.srl.identification import choose_apart, encode_candidates, list_candidates
from treewright.srl.pairs import iter_pairs, read_pairs
from treewright.srl.predicates import VERBS, PredicateFinder, tag_at, word_at
from treewright.srl.roles import RoleClassifier, RoleKernel

Pairs: TypeAlias = tuple[Sequence[ConstTree], Sequence[PropSentence]]
"""Trees and the roles in the same sentences."""

CORE = frozenset(f"ARG{number}" for number in range(6))
"""Roles that a predicate has once at the most."""
COST = 0.5
"""Of the model that tells arguments from other constituents."""
BATCH_SIZE = 500
"""Sentences that are labelled at a time."""


class RoleLabeler(Annotator):
    """Finds who does what to whom in parsed sentences.

    Predicates are told from other words, and their arguments from the constituents around them, by logistic
    regression; of arguments none of which is inside another those are taken that are most probable together,
    and a `RoleClassifier` names them, no core role (``ARG0`` to ``ARG5``) twice. Of senses the most frequent
    one is taken; see `PredicateFinder`.

    Parameters
    ----------
    predicates : {"verbs", "all"}
        Find predicates among verbs, or also among other words. These are words that were predicates in
        training.
    kernel : str
        Kernel that compares arguments to classify their roles. See `RoleClassifier`.
    features : {"standard", "extended"} or str
        Features of arguments. Others are given in the notation of `treewright.srl.features`.
    C : float, optional
        Cost of a wrong role in training (by default one for the kernel).
    random_state : int
        Seed of the random numbers.
    n_jobs : int
        Number of threads; results do not depend on it.

    Attributes
    ----------
    finder_ : PredicateFinder
    identifier_ : CodeClassifier
    classifier_ : RoleClassifier

    Examples
    --------
    >>> import treewright as tw
    >>> bank = tw.make_treebank(30, random_state=0)
    >>> labeler = RoleLabeler().fit(bank.constituents, bank.propositions)
    >>> found = labeler.predict(bank.constituents)
    >>> found[0].propositions[0].lemma == bank.propositions[0].propositions[0].lemma
    True
    """

    EFFECTIVE_IF: ClassVar = {"C": RoleClassifier.EFFECTIVE_IF["C"]}
    finds = "roles"
    can = frozenset({"predicates_from"})
    uses_cluster = False
    n_at_once = BATCH_SIZE
    fields = saved(
        finder_=Submodel(PredicateFinder),
        identifier_=Submodel(CodeClassifier),
        classifier_=Submodel(RoleClassifier),
    )

    def __init__(
        self,
        *,
        predicates: Literal["verbs", "all"] = "verbs",
        kernel: RoleKernel = "linear",
        features: Literal["standard", "extended"] | str = "extended",
        C: Annotated[float, Range(1e-9, 1e9)] | None = None,  # noqa: N803
        random_state: NonNegativeInt = 0,
        n_jobs: Count = 1,
    ) -> None:
        self.predicates = predicates
        self.kernel = kernel
        self.features = features
        self.C = C
        self.random_state = random_state
        self.n_jobs = n_jobs

    @staticmethod
    def read_training(
        train: FileName,
        dev: FileName | None = None,
        *,
        props: FileName,
        dev_props: FileName | None = None,
    ) -> tuple[list[ConstTree], list[PropSentence], Pairs | None]:
        """Read what `fit` learns from.

        Parameters
        ----------
        train : str
            Treebank in Penn brackets.
        dev : str, optional
            Treebank to score at the end, with --dev-props.
        props : str
            PropBank columns of the same sentences.
        dev_props : str, optional
            PropBank columns of the sentences of --dev.
        """
        if (dev is None) != (dev_props is None):
            raise InputError(
                "--dev has the trees and --dev-props the roles to score; expected both or neither"
            )
        training = read_pairs(train, props)
        return *training, read_pairs(dev, dev_props) if dev is not None and dev_props is not None else None

    def fit(
        self,
        trees: Sequence[ConstTree],
        sentences: Sequence[PropSentence],
        dev: Pairs | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Learn from trees and the roles in the same sentences.

        Parameters
        ----------
        trees : sequence of ConstTree
        sentences : sequence of PropSentence
            Of the same words.
        dev : pair of sequences of ConstTree and PropSentence, optional
            Scored in the end.
        checkpoint : path, optional
            A folder in which each step is kept. If it exists, training goes on from it and ends as if it had
            not been interrupted.
        """
        self._check()
        trees, sentences = list(trees), list(sentences)
        pairs = list(pair_sentences(trees, sentences))
        wanted = self.keep_learnt(sentences)
        shapes = [shape_of(tree) for tree, _ in pairs]
        n_predicates = sum(len(sentence.propositions) for sentence in wanted)
        report(f"{len(pairs)} sentences, {n_predicates} predicates")
        kept = Checkpoint(checkpoint, self._identity(trees, sentences)) if checkpoint else None
        self._learn_predicates(shapes, wanted, kept)
        found = find_arguments(trees, wanted, verbal=False, parts=True)
        if not found.arguments:
            raise InputError(f"there are {n_predicates} predicates and no arguments; expected some of both")
        self._learn_arguments(trees, shapes, wanted, kept)
        report(
            f"{len(found.arguments)} arguments to be named, {found.n_unmatched} others have no constituent"
        )
        machines = kept.folder / "machines" if kept else None
        self.classifier_ = self._make_classifier().fit(found.arguments, checkpoint=machines)
        if dev is not None:
            self._report_scores(*dev)
        return self

    def _report_scores(self, trees: Sequence[ConstTree], sentences: Sequence[PropSentence]) -> None:
        """Report the scores with predicates that are found and with those that are known."""
        gold = self.keep_learnt(sentences)
        report(f"dev:\n{score_roles(gold, self.predict(trees))}")
        known = score_roles(gold, self.predict(trees, gold))
        ratios = f"precision {known.precision:.2f}, recall {known.recall:.2f}, F1 {known.f1:.2f}"
        report(f"dev with known predicates: {ratios}")

    def _identity(self, trees: Sequence[ConstTree], sentences: Sequence[PropSentence]) -> str:
        """Return a name for the options and the data of a training."""
        params = self.get_params_state().values
        return fingerprint([__version__, COST, params, sentences], trees)

    def keep_learnt(self, sentences: Sequence[PropSentence]) -> list[PropSentence]:
        """Return sentences with the predicates of the kind that is learnt and found, and no others."""
        return keep_verbal(sentences) if self.predicates == VERBS else list(sentences)

    def _learn_predicates(
        self, shapes: Sequence[Shape], sentences: Sequence[PropSentence], kept: Checkpoint | None
    ) -> None:
        state = kept.load("predicates") if kept else None
        if state is not None:
            self.finder_ = PredicateFinder.from_state(state)
            return
        self.finder_ = PredicateFinder(self.predicates, random_state=self.random_state).fit(shapes, sentences)
        if kept:
            kept.save("predicates", self.finder_.get_state())

    def _learn_arguments(
        self,
        trees: Sequence[ConstTree],
        shapes: Sequence[Shape],
        sentences: Sequence[PropSentence],
        kept: Checkpoint | None,
    ) -> None:
        state = kept.load("arguments") if kept else None
        if state is not None:
            self.identifier_ = CodeClassifier.from_state(state)
            return
        candidates: list[Argument] = []
        is_argument: list[bool] = []
        for tree, shape, sentence in zip(trees, shapes, sentences, strict=True):
            for proposition in sentence.propositions:
                places = {(start, end) for _, start, end in list_roles(proposition, parts=True)}
                found = list_candidates(tree, shape, proposition)
                candidates += found
                is_argument += [(shape.starts[one.node], shape.ends[one.node]) in places for one in found]
        report(f"{len(candidates)} constituents, of which {sum(is_argument)} are arguments")
        if not candidates:
            raise InputError("no constituent stands beside a predicate; expected some that may be arguments")
        self.identifier_ = CodeClassifier(C=COST, random_state=self.random_state)
        self.identifier_.fit(encode_candidates(candidates, self.features), is_argument)
        if kept:
            kept.save("arguments", self.identifier_.get_state())

    def _make_classifier(self) -> RoleClassifier:
        return RoleClassifier(
            kernel=self.kernel,
            features=self.features,
            C=self.C,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )

    def annotate(self, sentences: Sequence[ConstTree], *, k: int = 1) -> list[list[Analysis]]:
        """Return the predicates of each sentence and their arguments."""
        return [[Analysis(found)] for found in self.predict(sentences)]

    def open_sentences(self, source: str, request: Request) -> AbstractContextManager[Iterator[Any]]:
        """Open trees in brackets, each with its known predicates if there are any."""
        return self._open_trees(source, request.predicates_from)

    @contextmanager
    def _open_trees(self, source: str, props: str | None) -> Iterator[Iterator[Any]]:
        if source == props == "-":
            raise InputError("standard input can stand for one file only")
        with open_told(source, kinds=["constituents"]) as (form, stream):
            trees = form.read(stream)
            yield trees if props is None else iter_pairs(trees, iter_props(props), source, props)

    def annotate_batch(self, sentences: Sequence[Any], request: Request) -> list[list[Analysis]]:
        """Return the roles in sentences from `open_sentences`."""
        if request.predicates_from is None:
            return self.annotate(sentences)
        known = self.keep_learnt([sentence for _, sentence in sentences])
        return [[Analysis(found)] for found in self.predict([tree for tree, _ in sentences], known)]

    def make_formatter(self, target: str, request: Request, begun: Path | None) -> Formatter:
        """Return what writes PropBank columns."""
        return lambda number, analyses: format_sentence(analyses[0].tree)

    def predict(
        self, trees: Sequence[ConstTree], sentences: Sequence[PropSentence] | None = None
    ) -> list[PropSentence]:
        """Return the predicates of sentences and their arguments.

        Parameters
        ----------
        trees : sequence of ConstTree
        sentences : sequence of PropSentence, optional
            With predicates that are known: only arguments are found. Words, tags and comments are kept.
        """
        self.check_is_fitted()
        trees = list_trees(trees)
        if sentences is not None:
            sentences = [sentence for _, sentence in pair_sentences(trees, sentences)]
        labelled: list[PropSentence] = []
        with begin_task("labelling roles", total=len(trees)) as counted:
            for batch in counted.slices(len(trees), BATCH_SIZE):
                labelled += self._label(trees[batch], sentences[batch] if sentences is not None else None)
        return labelled

    def _label(
        self, trees: Sequence[ConstTree], sentences: Sequence[PropSentence] | None
    ) -> list[PropSentence]:
        shapes = [shape_of(tree) for tree in trees]
        if sentences is None:
            found = self.finder_.predict(shapes)
            sentences = [_make_sentence(shape, each) for shape, each in zip(shapes, found, strict=True)]
        tasks = [
            _Task(number, shape, proposition, list_candidates(tree, shape, proposition))
            for number, (tree, shape, sentence) in enumerate(zip(trees, shapes, sentences, strict=True))
            for proposition in sentence.propositions
        ]
        labelled: list[list[Proposition]] = [[] for _ in trees]
        for task, roles in zip(tasks, self._name(self._choose(tasks)), strict=True):
            labelled[task.number].append(_make_proposition(task, roles))
        return [
            sentence._replace(propositions=propositions)
            for sentence, propositions in zip(sentences, labelled, strict=True)
        ]

    def _choose(self, tasks: Sequence["_Task"]) -> list[list[Argument]]:
        """Return the candidates for each predicate that are arguments."""
        flat = [one for task in tasks for one in task.candidates]
        odds = iter(self.identifier_.log_odds(encode_candidates(flat, self.features)).tolist())
        chosen = []
        for task in tasks:
            nodes = set(choose_apart(task.shape, {one.node: next(odds) for one in task.candidates}))
            chosen.append([one for one in task.candidates if one.node in nodes])
        return chosen

    def _name(self, chosen: Sequence[Sequence[Argument]]) -> Iterator[list[tuple[int, str]]]:
        """Yield the nodes of the arguments of each predicate, with their roles."""
        values = self.classifier_.using(n_jobs=self.n_jobs).decision_function(
            [one for arguments in chosen for one in arguments]
        )
        begin = 0
        for arguments in chosen:
            end = begin + len(arguments)
            names = name_apart(values[begin:end], self.classifier_.classes_)
            yield [(one.node, name) for one, name in zip(arguments, names, strict=True)]
            begin = end

    def _check(self) -> None:
        check_params(self)
        read_templates(self.features)


class _Task(NamedTuple):
    """A predicate whose arguments are wanted: that of which sentence, and what may be some."""

    number: int
    shape: Shape
    proposition: Proposition
    candidates: list[Argument]


def name_apart(values: FloatArray, classes: Sequence[str]) -> list[str]:
    """Return a role for each argument of a predicate: those of the largest sum, no core role twice.

    Parameters
    ----------
    values : ndarray of float, (n_arguments, n_classes)
    classes : sequence of str
    """
    if not len(values):
        return []
    best = values.argmax(axis=1)
    core = [number for number, name in enumerate(classes) if name in CORE]
    taken = [number for number in best.tolist() if number in core]
    others = [number for number in range(len(classes)) if number not in core]
    if len(set(taken)) < len(taken) and others:
        best = _assign(values, np.array(core), np.array(others))
    return [classes[number] for number in best.tolist()]


def _assign(
    values: FloatArray, core: npt.NDArray[np.int64], others: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the classes of the largest sum, each of `core` once at the most."""
    n = len(values)
    free = others[values[:, others].argmax(axis=1)]
    beside = np.tile(values[np.arange(n), free][:, None], n)
    rows, columns = linear_sum_assignment(np.hstack([values[:, core], beside]), maximize=True)
    found: npt.NDArray[np.int64] = np.concatenate([core, free])[columns]
    found[columns >= len(core)] = free[rows[columns >= len(core)]]
    return found


def _make_sentence(shape: Shape, propositions: list[Proposition]) -> PropSentence:
    places = range(len(shape.leaves))
    words = [unescape_word(word_at(shape, place)) for place in places]
    return PropSentence(words, [tag_at(shape, place) for place in places], propositions, [])


def _make_proposition(task: _Task, roles: Sequence[tuple[int, str]]) -> Proposition:
    """Return a predicate with its arguments; what goes on with the predicate right behind it joins it."""
    at = task.proposition.predicate
    end = at + 1
    spans = []
    for label, node in sorted(
        ((label, node) for node, label in roles), key=lambda one: task.shape.starts[one[1]]
    ):
        span = Span(label, task.shape.starts[node], task.shape.ends[node])
        if label == CONTINUED + PREDICATE and span.start == end:
            end = span.end
        else:
            spans.append(span)
    spans.append(Span(PREDICATE, at, end))
    return task.proposition._replace(arguments=tuple(sorted(spans, key=lambda span: span.start)))
