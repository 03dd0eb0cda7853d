"""ConstituentParser: constituency parsing by classification (Turian & Melamed 2006)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from treewright._typing import Count, Folds, Fraction, Jobs, RandomState, Range, TagSource
from treewright._validate import check_integer, check_params, count_jobs
from treewright._version import __version__
from treewright.annotation.sentences import SentenceLike, list_sentences, missing_tags
from treewright.checkpoint import Checkpoint, fingerprint
from treewright.data.consttree import ConstTree
from treewright.data.heads import RuleName
from treewright.drawing.pictures import notebook_html
from treewright.errors import InputError
from treewright.metrics.parseval import parseval
from treewright.model import Array, Record, Submodel, Value, expect, saved
from treewright.native.constituent.agenda import InferenceModel as NativeModel
from treewright.native.constituent.states import Grammar
from treewright.parsing.constituent.annotator import ConstituentAnnotator
from treewright.parsing.constituent.atoms import ATOMS, TABLES, read_atoms
from treewright.parsing.constituent.ensembles import EnsemblesField, index_trees
from treewright.parsing.constituent.inferences import (
    PredicateEncoder,
    TaggedSentence,
    TrainingSet,
    collect_symbols,
    read_inside,
    read_symbols,
)
from treewright.parsing.constituent.preparation import ROOT, keep_inside, prepare, restore
from treewright.parsing.constituent.scoring import Retracer, TreeScorer
from treewright.parsing.constituent.search import FoundParse, Searcher
from treewright.parsing.constituent.training import SCHEDULE, Learners, PenaltyReport
from treewright.parsing.sentences import (
    HELD_OUT,
    check_trees,
    find_root,
    learn_tags,
    read_sentences,
    with_words,
)
from treewright.progress import Task, report, task, track
from treewright.scale import map_jobs, map_slices
from treewright.tagging.tagger import Tagger

Strategy: TypeAlias = Literal["shift-reduce", "original"]
STRATEGIES = get_args(Strategy)


def _find_atoms(atoms: str | None) -> str:
    """Return the table of atomic features that the parameter `atoms` stands for."""
    return ATOMS if atoms is None else TABLES.get(atoms, atoms)


class Parse(NamedTuple):
    """A constituency tree of a sentence with its score.

    Attributes
    ----------
    tree : ConstTree
        The tree.
    score : float
        Score (higher is better): for a `ConstituentParser`, the negative loss of all inferences of the tree;
        for neural parsers, its log-probability.
    probability : float or None
        Probability among all trees of the sentence; None if the parser does not compute it.

    See Also
    --------
    ConstituentParser.kbest : Returns parses.
    SpanParser.kbest : Returns parses with probabilities.

    Examples
    --------
    >>> import treewright as tw
    >>> tree = tw.ConstTree.parse("(S (NP (NNP Mary)) (VP (VBD slept)))")
    >>> tw.Parse(tree, score=-0.25).probability is None
    True
    """

    tree: ConstTree
    score: float
    probability: float | None = None

    def _repr_html_(self) -> str:
        return notebook_html(self)


class ConstituentParser(ConstituentAnnotator):
    """Classification-based constituency parser: one boosted-tree ensemble per label scores each step.

    Parameters
    ----------
    strategy : {"shift-reduce", "original"}
        Order of inferences; "original" is the order in the paper, which is slower. An inference builds a
        constituent from adjacent items. With "shift-reduce", constituents start at a focus that moves from
        right to left; with "original", no constituent starts further right than the previous one.
    tags : {"gold", "predicted"}
        Use the tags of the input, or tags predicted by the parser's own tagger. With "predicted", training
        sentences are tagged by cross-validation.
    max_children : int
        Maximum number of children of a constituent. Only the top node may have more.
    any_children : bool
        Consider any label over any children, even if they never occurred together. Otherwise, a label is
        considered only if it occurred in training with the same first and last child (or single child).
    head_rules : {"collins", "yamada-matsumoto"}
        Head rules.
    min_count : int
        Minimum count for a word to be a feature.
    sample_size : int
        Number of examples on which each decision tree is built.
    eta : float
        Factor by which the penalty is lowered when no split improves the objective.
    min_gain : float
        Minimum gain of a split, as a fraction of the penalty.
    slack : float
        Lower the penalty once no gradient exceeds it by more than this fraction. With 0.2, training on large
        treebanks is faster, with slightly lower accuracy.
    prune : bool
        Undo splits that improve the objective on the sample but not on all examples. The paper keeps such
        splits.
    lowest_penalty : float
        Penalty at which training ends.
    patience : int
        Early-stopping patience in penalty steps. The best step is kept.
    max_inferences : int
        Maximum number of scored inferences per sentence. At this limit, the search returns its best tree so
        far.
    dev_inferences : int
        Maximum number of scored inferences per sentence in evaluations during training. The first models are
        uncertain, so an unlimited search would take a long time.
    runs : int
        Number of training runs to average. Each run uses different samples.
    folds : int
        Number of jackknife folds for tagging.
    atoms : str, optional
        Table of atomic features; "paper" uses only the attributes of the paper. The default is
        `treewright.parsing.constituent.atoms.ATOMS`; "paper" has the same groups of items.
    random_state : int, Generator, RandomState or None
        Seed of the random number generator. With None, results differ between calls.
    n_jobs : int
        Number of threads (-1: all processors); it does not change the results.

    Attributes
    ----------
    history_ : list of PenaltyReport
        Progress of training; a loaded parser has no times.
    tagger_ : Tagger or None
        The parser's own tagger, if `tags` is "predicted".
    root_ : str or None
        The label that all training trees have at the root and nowhere else, if there is one.
    symbols_ : Symbols
        Labels, tags, classes of tags, and frequent words.
    grammar_ : Grammar
        The labels that the parser considers, given the first and last child or the single child.
    forests_ : list of list of Tree
        The decision trees of each label, and of the shift if there is one.

    See Also
    --------
    SpanParser : Neural parser with exact k-best trees.
    LeftCornerParser : Neural left-corner parser with generative probabilities.
    ConstituentReranker : Reranks the k-best trees of constituency parsers.

    Examples
    --------
    >>> import treewright as tw
    >>> trees = tw.make_treebank(n_sentences=60, random_state=0).constituents
    >>> parser = tw.ConstituentParser(lowest_penalty=2.0).fit(trees[:50])
    >>> parser.predict(trees[50:51])[0].words() == trees[50].words()
    True
    """

    EFFECTIVE_IF: ClassVar = {"folds": {"tags": ("predicted",)}}
    adjustable = ("tags", "max_inferences", "n_jobs")
    fields = saved(
        atoms=Value(str, encode=_find_atoms),
        root_=Value(str | None),
        symbols_=Value(encode=list, decode=read_symbols),
        grammar_=Record(
            Grammar,
            **{name: Array("b", n_dimensions=2) for name in ("firsts", "lasts", "onlys")},
            max_children=Value(Count),
        ),
        forests_=EnsemblesField(),
        history_=Value(
            encode=lambda steps: [list(step._replace(seconds=0.0)) for step in steps],
            decode=lambda steps: [PenaltyReport(*step) for step in steps],
        ),
        tagger_=Submodel(Tagger, optional=True),
    )

    def __init__(
        self,
        *,
        strategy: Strategy = "shift-reduce",
        tags: TagSource = "gold",
        max_children: Count = 5,
        any_children: bool = False,
        head_rules: RuleName = "collins",
        min_count: Count = 2,
        sample_size: Count = 20_000,
        eta: Annotated[float, Range(1e-6, 0.999)] = 0.8,
        min_gain: Annotated[float, Range(0, 10)] = 0.1,
        slack: Fraction = 0.05,
        prune: bool = True,
        lowest_penalty: Annotated[float, Range(1e-6, 1e6)] = 0.1,
        patience: Count = 6,
        max_inferences: Count = 20_000,
        dev_inferences: Count = 2_000,
        runs: Count = 1,
        folds: Folds = 5,
        atoms: str | None = None,
        random_state: RandomState = 0,
        n_jobs: Jobs = 1,
    ) -> None:
        self.strategy = strategy
        self.tags: str = tags
        self.max_children = max_children
        self.any_children = any_children
        self.head_rules = head_rules
        self.min_count = min_count
        self.sample_size = sample_size
        self.eta = eta
        self.min_gain = min_gain
        self.slack = slack
        self.prune = prune
        self.lowest_penalty = lowest_penalty
        self.patience = patience
        self.max_inferences = max_inferences
        self.dev_inferences = dev_inferences
        self.runs = runs
        self.folds = folds
        self.atoms = atoms
        self.random_state = random_state
        self.n_jobs = n_jobs

    def make_training(self, trees: Sequence[ConstTree]) -> TrainingSet:
        """Return the training examples of these trees; no model is trained and no trees are held out."""
        self._check()
        check_trees(trees)
        return self.with_params()._make_training(with_words(trees))

    def identity(self, trees: Sequence[ConstTree], dev: Sequence[ConstTree] | None = None) -> str:
        """Return a fingerprint of the options and the training data."""
        fixed = [__version__, SCHEDULE, HELD_OUT, ATOMS]
        options = [getattr(self, name) for name in self.param_names() if name not in self.unsaved]
        return fingerprint([*fixed, *options], trees, dev or [])

    def _tagged_training(self, trees: list[ConstTree]) -> list[ConstTree]:
        """Return the training trees with the tags that the parser will use."""
        self.tagger_: Tagger | None = None
        if self.tags == "gold":
            return trees
        self.tagger_, tagged = learn_tags(
            trees, folds=self.folds, random_state=self.random_state, n_jobs=self.n_jobs
        )
        return tagged

    def _make_training(self, trees: list[ConstTree]) -> TrainingSet:
        if not trees:
            raise InputError("there are no training trees with words; expected at least one")
        self.root_ = find_root(trees)
        prepared, sentences = [], []
        for tree in track(self._tagged_training(trees), "preparing trees"):
            inside, kept = prepare(tree)
            if inside is not None:
                prepared.append(self._with_top(inside))
                sentences.append(read_inside(tree.words(), tree.tags(), kept))
        if not prepared:
            raise InputError("the training trees contain only punctuation; expected words")
        self.symbols_ = collect_symbols(prepared, min_count=self.min_count)
        self._set_encoder()
        training = TrainingSet(
            prepared,
            sentences,
            self._encoder,
            self._heads,
            self._table,
            is_shifting=self.strategy == "shift-reduce",
            max_children=self.max_children,
            only_known=not self.any_children,
        )
        self.grammar_ = training.grammar
        report(
            f"{len(prepared)} sentences, {training.n_states} states, "
            f"{len(training.inferences.states)} possible inferences, {self._table.n_features} features"
        )
        return training

    def _set_encoder(self) -> None:
        self._encoder = PredicateEncoder(self.symbols_)
        self._heads = self._encoder.make_heads(self.head_rules)
        self._table = read_atoms(_find_atoms(self.atoms), self._encoder.sizes())

    def _with_top(self, tree: ConstTree) -> ConstTree:
        """Return a prepared tree with a top node."""
        if self.root_ is None:
            return ConstTree(ROOT, [tree])
        return tree if tree.label == ROOT else ConstTree(ROOT, tree.children)

    def _learn(self, trees: list[ConstTree], dev: list[ConstTree], steps: Path | None) -> None:
        """Lower the penalty step by step until early stopping, and keep the best step."""
        learners = Learners(
            self._make_training(trees),
            runs=self.runs,
            eta=self.eta,
            sample_size=self.sample_size,
            min_gain=self.min_gain,
            slack=self.slack,
            prune=self.prune,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            checkpoint=Checkpoint(steps, self.identity(trees, dev)) if steps else None,
        )
        learners.begin(self.lowest_penalty)
        with task("training", total=learners.count_steps(self.lowest_penalty), unit="steps") as counted:
            while not self._is_done(learners):
                learners.lower(self.lowest_penalty)
                self.forests_ = learners.forests()
                self._set_model()
                learners.look(parseval(dev, self._predict_quickly(dev)).f1)
                report(str(learners.history[-1]))
                counted.advance()
        self.history_ = learners.history
        best = max(self.history_, key=lambda step: step.f1)
        report(
            f"chosen: penalty {best.penalty:.3g} with dev F1 {best.f1:.2f}, the best of "
            f"{len(self.history_)} penalties"
        )
        self.forests_ = learners.forests(best.sizes)

    def _predict_quickly(self, dev: Sequence[ConstTree]) -> list[ConstTree]:
        limit = min(self.max_inferences, self.dev_inferences)
        return [parses[0].tree for parses in self._search(dev, 1, n_jobs=self.n_jobs, max_inferences=limit)]

    def _is_done(self, learners: Learners) -> bool:
        """Return whether early stopping applies or the lowest penalty is reached."""
        scores = [step.f1 for step in learners.history]
        if not scores:
            return False
        return learners.penalty <= self.lowest_penalty or len(scores) - int(np.argmax(scores)) > self.patience

    def _set_model(self) -> None:
        index, ensembles = index_trees(self.forests_, self._table.n_features)
        self._model = NativeModel(self._table.arrays, self._heads, self.grammar_, index, ensembles)

    def check_fitted_state(self) -> None:
        """Check that tables and decision trees match the labels and use only known features."""
        self._check()
        n_labels, n_tags = len(self.symbols_.labels), len(self.symbols_.tags)
        expect(n_labels > 0, "at least one label")
        shapes = {table.shape for table in self.grammar_[:3]}
        expect(shapes == {(n_labels, n_labels + n_tags + 1)}, "tables of all labels and symbols")
        n_forests = len(self.forests_)
        expect(n_forests - n_labels in (0, 1), "trees of each label, and of the shift if there is one")
        self._set_encoder()
        n_features = self._table.n_features
        used = [tree.features.max(initial=-1) for trees in self.forests_ for tree in trees]
        expect(max(used, default=-1) < n_features, f"splits by one of {n_features} features")

    def restore(self) -> None:
        """Rebuild the index of the decision trees."""
        named: dict[str | None, str | None] = {ATOMS: None, **{TABLES[name]: name for name in TABLES}}
        self.atoms = named.get(self.atoms, self.atoms)
        self._set_encoder()
        self._set_model()

    def predict(self, sentences: Sequence[SentenceLike]) -> list[ConstTree]:
        """Parse sentences; the trees keep the original words.

        Parameters
        ----------
        sentences : sequence of ConstTree, DepTree, list of str, or list of (str, str or None)
            Trees, lists of words, or lists of (word, tag) pairs. Existing brackets are ignored.
        """
        return [parses[0].tree for parses in self.kbest(sentences, 1)]

    def kbest(
        self, sentences: Sequence[SentenceLike], k: int = 20, *, n_jobs: int | None = None
    ) -> list[list[Parse]]:
        """Return up to `k` trees of each sentence, the best first; fewer if the search ends early.

        Trees are distinct before punctuation is restored. A tree without words is returned unchanged.

        Parameters
        ----------
        sentences : sequence of ConstTree, DepTree, list of str, or list of (str, str or None)
            Trees, lists of words, or lists of (word, tag) pairs. Existing brackets are ignored.
        k : int
            Maximum number of trees per sentence.
        n_jobs : int, optional
            Number of threads (-1: all processors; default: the parameter `n_jobs`).
        """
        self.check_is_fitted()
        n_jobs = count_jobs(self.n_jobs if n_jobs is None else n_jobs)
        for name, value in (("k", k), ("max_inferences", self.max_inferences)):
            check_integer(name, value, minimum=1)
        return self._search(sentences, k, n_jobs=n_jobs, max_inferences=self.max_inferences)

    def _search(
        self, sentences: Sequence[SentenceLike], k: int, *, n_jobs: int, max_inferences: int
    ) -> list[list[Parse]]:
        sentences = list_sentences(sentences, self)
        read = read_sentences(sentences, self, None if self.needs_tags else self.tagger_)
        size = max(1, -(-len(read) // count_jobs(n_jobs)))
        parts = [read[begin : begin + size] for begin in range(0, len(read), size)]
        with task("parsing", total=len(read)) as counted:

            def parse(part: Sequence[TaggedSentence]) -> list[list[Parse]]:
                searcher = Searcher(self._model, is_shifting=self._is_shifting, max_inferences=max_inferences)
                found = []
                for sentence in part:
                    found.append(self._parse_sentence(searcher, sentence, k))
                    counted.advance()
                return found

            found = map_jobs(parse, parts, n_jobs=n_jobs)
        lists = [parses for part in found for parses in part]
        return [
            [Parse(sentence, 0.0)] if isinstance(sentence, ConstTree) and not each.words else parses
            for sentence, each, parses in zip(sentences, read, lists, strict=True)
        ]

    def scores(self, trees: Sequence[ConstTree], *, n_jobs: int | None = None) -> npt.NDArray[np.float64]:
        """Return the score that the search would give to each tree; the trees can come from any source.

        For a tree from `kbest`, this is the score from `kbest`. The score is minus infinity if no search can
        reach the tree, for example because a label is unknown or never occurred with its children in
        training. If the search can reach only a simplified tree, with raised punctuation and without repeated
        unary brackets, the score of the simplified tree is returned. Scoring is much faster if trees of the
        same sentence are adjacent.

        Parameters
        ----------
        trees : sequence of ConstTree
            Trees with the words of the sentence, and with its tags unless the parser predicts them. A root
            label that is not a constituent label is replaced by the parser's own root.
        n_jobs : int, optional
            Number of threads (-1: all processors; default: the parameter `n_jobs`).

        Returns
        -------
        ndarray of float64, (n_trees,)
            The scores.
        """
        self.check_is_fitted()
        n_jobs = count_jobs(self.n_jobs if n_jobs is None else n_jobs)
        check_trees(trees)
        trees = list(trees)
        for at, tree in enumerate(trees, 1):
            if tree.is_leaf and self.needs_tags:
                raise missing_tags(f"tree {at} has no tags", self, expected="trees with tags")
        scores = np.zeros(len(trees))

        with task("scoring", total=len(trees), unit="trees") as counted:

            def fill(part: slice) -> None:
                scores[part] = self._score(trees[part], counted)

            map_slices(fill, len(trees), n_jobs=n_jobs)
        return scores

    def _score(self, trees: Sequence[ConstTree], counted: Task) -> list[float]:
        scorer = TreeScorer(
            Retracer(self._model, is_shifting=self._is_shifting),
            self._encoder,
            has_root=self.root_ is not None,
            tagger=None if self.needs_tags else self.tagger_,
        )
        scores = []
        for tree in trees:
            scores.append(scorer.score(tree))
            counted.advance()
        return scores

    @property
    def known_tags(self) -> list[str]:
        """The tags of the training data."""
        return list(self.symbols_.tags)

    @property
    def needs_tags(self) -> bool:
        """Whether input sentences must have tags."""
        return self.tags == "gold" or self.tagger_ is None

    @property
    def _is_shifting(self) -> bool:
        # With shifting, there is one more ensemble than labels.
        return len(self.forests_) > self._encoder.n_labels

    def _parse_sentence(self, searcher: Searcher, sentence: TaggedSentence, k: int) -> list[Parse]:
        kept = keep_inside(sentence.tags)
        if not kept:
            return [Parse(self._finished(None, kept, sentence), 0.0)]
        inside = read_inside(sentence.words, sentence.tags, kept)
        outcome = searcher.find(self._encoder.encode(inside), k=k)
        return [
            Parse(self._finished(self._build(inside, found), kept, sentence), -found.cost)
            for found in outcome.parses
        ]

    def _build(self, sentence: TaggedSentence, found: FoundParse) -> ConstTree:
        """Return the tree built by a sequence of inferences."""
        line = [ConstTree(tag, [word]) for word, tag in zip(sentence.words, sentence.tags, strict=True)]
        for begin, size, label in found.actions:
            line[begin : begin + size] = [
                ConstTree(self._encoder.symbols.labels[label], line[begin : begin + size])
            ]
        return line[0]

    def _finished(self, tree: ConstTree | None, kept: Sequence[int], sentence: TaggedSentence) -> ConstTree:
        """Return a parse with all words restored and the root label of the training trees."""
        if self.root_ is None and tree is not None and len(tree.children) == 1 and tree.n_nodes > 3:
            return restore(tree.children[0], kept, sentence.words, sentence.tags)
        whole = restore(tree, kept, sentence.words, sentence.tags)
        if self.root_ is not None:
            return ConstTree(self.root_, whole.children)
        return whole.children[0] if len(whole.children) == 1 else whole

    def _check(self) -> None:
        check_params(self)
        if self.eta * (1 + self.slack) >= 1:
            found = f"eta is {self.eta!r} with a slack of {self.slack!r}"
            raise InputError(f"{found}; expected eta * (1 + slack) below 1")
