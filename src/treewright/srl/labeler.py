"""RoleLabeler: predicates, arguments and semantic roles of parsed sentences."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from treewright._typing import FileName, FloatArray, Jobs, RandomState, Range
from treewright._validate import check_params, check_type
from treewright._version import __version__
from treewright.annotation.contract import Analysis, Annotator, Formatter, Request
from treewright.checkpoint import Checkpoint, fingerprint
from treewright.data.consttree import ConstTree, Span, unescape_word
from treewright.data.formats import open_told
from treewright.data.propbank import Proposition, PropSentence, format_sentence, iter_props
from treewright.errors import InputError, show
from treewright.metrics import roles as score_roles
from treewright.model import Submodel, saved, seeded
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
from treewright.srl.identification import choose_non_overlapping, encode_candidates, list_candidates
from treewright.srl.pairs import iter_pairs, read_pairs
from treewright.srl.predicates import VERBS, PredicateFinder, tag_at, word_at
from treewright.srl.roles import RoleClassifier, RoleKernel

Pairs: TypeAlias = tuple[Sequence[ConstTree], Sequence[PropSentence]]
"""Trees and PropBank annotation of the same sentences."""

CORE = frozenset(f"ARG{number}" for number in range(6))
"""Core roles, which a predicate has at most once."""
COST = 0.5
"""The regularisation parameter C of the argument identification model."""
BATCH_SIZE = 500
"""Number of sentences per batch."""


class RoleLabeler(Annotator):
    """Semantic role labeler: finds predicates and arguments in parsed sentences and labels their roles.

    Logistic regression identifies predicates and the constituents that are their arguments. The most probable
    set of non-overlapping arguments is chosen, and a `RoleClassifier` labels them so that no core role
    (``ARG0`` to ``ARG5``) occurs twice. A predicate gets the most frequent sense of its lemma.

    Parameters
    ----------
    predicates : {"verbs", "all"}
        Find only verbal predicates, or also other words that were predicates in training.
    kernel : str
        Kernel for comparing arguments; see `RoleClassifier`.
    features : {"standard", "extended"} or str
        Feature set of arguments ("standard", "extended") or templates. `treewright.srl.features` describes
        the templates.
    C : float, optional
        Inverse regularisation strength (default: depends on the kernel).
    random_state : int, Generator, RandomState or None
        Seed of the random number generator. With None, results differ between calls.
    n_jobs : int
        Number of threads (-1: all processors); it does not change the results.

    Attributes
    ----------
    finder_ : PredicateFinder
        Finds predicates with their lemmas and senses.
    identifier_ : CodeClassifier
        Identifies arguments.
    classifier_ : RoleClassifier
        Classifies the roles of arguments.

    See Also
    --------
    RoleClassifier : Classifies the roles of given arguments.
    find_arguments : Extracts the gold arguments of a treebank.

    Examples
    --------
    >>> import treewright as tw
    >>> bank = tw.make_treebank(30, random_state=0)
    >>> labeler = tw.RoleLabeler().fit(bank.constituents, bank.propositions)
    >>> sentence = labeler.predict(bank.constituents)[0]
    >>> sentence.propositions[0].sense, [span.label for span in sentence.propositions[0].arguments]
    ('swear.01', ['ARG0', 'V', 'ARG1', 'ARGM-TMP'])
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
        random_state: RandomState = 0,
        n_jobs: Jobs = 1,
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
        """Read the training and development data for `fit`.

        Parameters
        ----------
        train : str
            Treebank in Penn brackets.
        dev : str, optional
            Treebank for the final evaluation; requires --dev-props.
        props : str
            PropBank columns of the training sentences.
        dev_props : str, optional
            PropBank columns of the --dev sentences.
        """
        if (dev is None) != (dev_props is None):
            raise InputError("only one of --dev and --dev-props is given; expected both or neither")
        training = read_pairs(train, props)
        return *training, read_pairs(dev, dev_props) if dev is not None and dev_props is not None else None

    @seeded
    def fit(
        self,
        trees: Sequence[ConstTree],
        sentences: Sequence[PropSentence],
        dev: Pairs | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train on trees with PropBank annotation.

        Parameters
        ----------
        trees : sequence of ConstTree
            Constituency trees of the training sentences.
        sentences : sequence of PropSentence
            PropBank annotation of the same sentences.
        dev : pair of sequences of ConstTree and PropSentence, optional
            Sentences to evaluate on after training; the scores are logged.
        checkpoint : path, optional
            Folder that stores each step. If it exists, training resumes from it, with the same result
            as without an interruption.
        """
        self._check()
        for name, given in (("trees", trees), ("sentences", sentences)):
            check_type(name, given, Iterable, "a list")
        if dev is not None and not (isinstance(dev, Sequence) and len(dev) == 2):
            raise InputError(f"dev is {show(dev)}; expected a pair of trees and sentences")
        if dev is not None:
            list(pair_sentences(*dev))
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
            raise InputError(f"{n_predicates} predicates and no arguments; expected at least one of each")
        self._learn_arguments(trees, shapes, wanted, kept)
        report(
            f"{len(found.arguments)} arguments to classify; {found.n_unmatched} others match no constituent"
        )
        machines = kept.folder / "machines" if kept else None
        self.classifier_ = self._make_classifier().fit(found.arguments, checkpoint=machines)
        if dev is not None:
            self._report_scores(*dev)
        return self

    def _report_scores(self, trees: Sequence[ConstTree], sentences: Sequence[PropSentence]) -> None:
        """Log the scores with predicted and with gold predicates."""
        gold = self.keep_learnt(sentences)
        report(f"dev:\n{score_roles(gold, self.predict(trees))}")
        known = score_roles(gold, self.predict(trees, gold))
        ratios = f"precision {known.precision:.2f}, recall {known.recall:.2f}, F1 {known.f1:.2f}"
        report(f"dev with gold predicates: {ratios}")

    def _identity(self, trees: Sequence[ConstTree], sentences: Sequence[PropSentence]) -> str:
        """Return a fingerprint of the options and the training data."""
        params = self.get_params_state().values
        return fingerprint([__version__, COST, params, sentences], trees)

    def keep_learnt(self, sentences: Sequence[PropSentence]) -> list[PropSentence]:
        """Return the sentences with only those predicates on which the labeler is trained."""
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
        report(f"{len(candidates)} candidate constituents, {sum(is_argument)} of which are arguments")
        if not candidates:
            raise InputError("no predicate has a candidate argument; expected at least one")
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
        """Return the predicted predicates and arguments of each sentence.

        Parameters
        ----------
        sentences : sequence of ConstTree
            Parsed sentences.
        k : int
            Ignored: each sentence has one analysis.

        Returns
        -------
        list of list of Analysis
            For each sentence, a list with one analysis, whose `tree` is a `PropSentence`.
        """
        return [[Analysis(found)] for found in self.predict(sentences)]

    def open_sentences(self, source: str, request: Request) -> AbstractContextManager[Iterator[Any]]:
        """Open bracketed trees, together with gold predicates if a file of gold predicates is given."""
        return self._open_trees(source, request.predicates_from)

    @contextmanager
    def _open_trees(self, source: str, props: str | None) -> Iterator[Iterator[Any]]:
        if source == props == "-":
            raise InputError("trees and predicates are both standard input; expected a file for one of them")
        with open_told(source, kinds=["constituents"]) as (form, stream):
            trees = form.read(stream)
            yield trees if props is None else iter_pairs(trees, iter_props(props), source, props)

    def annotate_batch(self, sentences: Sequence[Any], request: Request) -> list[list[Analysis]]:
        """Return the roles of a batch of sentences from `open_sentences`."""
        if request.predicates_from is None:
            return self.annotate(sentences)
        known = self.keep_learnt([sentence for _, sentence in sentences])
        return [[Analysis(found)] for found in self.predict([tree for tree, _ in sentences], known)]

    def make_formatter(self, target: str, request: Request, begun: Path | None) -> Formatter:
        """Return a formatter that writes PropBank columns."""
        return lambda number, analyses: format_sentence(analyses[0].tree)

    def predict(
        self, trees: Sequence[ConstTree], sentences: Sequence[PropSentence] | None = None
    ) -> list[PropSentence]:
        """Return the predicted predicates of sentences, with their arguments and roles.

        Parameters
        ----------
        trees : sequence of ConstTree
            Parsed sentences.
        sentences : sequence of PropSentence, optional
            Sentences with gold predicates. If given, only arguments are predicted; words, tags and comments
            are kept.

        Returns
        -------
        list of PropSentence
            The sentences with their predicates, arguments and roles.
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
        """Return the candidates of each predicate that are identified as arguments."""
        flat = [one for task in tasks for one in task.candidates]
        odds = iter(self.identifier_.log_odds(encode_candidates(flat, self.features)).tolist())
        chosen = []
        for task in tasks:
            nodes = set(choose_non_overlapping(task.shape, {one.node: next(odds) for one in task.candidates}))
            chosen.append([one for one in task.candidates if one.node in nodes])
        return chosen

    def _name(self, chosen: Sequence[Sequence[Argument]]) -> Iterator[list[tuple[int, str]]]:
        """Yield the argument nodes of each predicate with their roles."""
        values = self.classifier_.using(n_jobs=self.n_jobs).decision_function(
            [one for arguments in chosen for one in arguments]
        )
        begin = 0
        for arguments in chosen:
            end = begin + len(arguments)
            names = assign_roles(values[begin:end], self.classifier_.classes_)
            yield [(one.node, name) for one, name in zip(arguments, names, strict=True)]
            begin = end

    def _check(self) -> None:
        check_params(self)
        read_templates(self.features)


class _Task(NamedTuple):
    """A predicate of a sentence with its candidate arguments."""

    number: int
    shape: Shape
    proposition: Proposition
    candidates: list[Argument]


def assign_roles(values: FloatArray, classes: Sequence[str]) -> list[str]:
    """Return roles of a predicate's arguments that maximise the total score without repeating a core role.

    Parameters
    ----------
    values : ndarray of float, (n_arguments, n_classes)
        Scores of the roles.
    classes : sequence of str
        The roles.
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
    """Return the classes with the largest total score, using each class of `core` at most once."""
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
    """Return a predicate with its arguments; merge a continuation that directly follows the predicate."""
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
