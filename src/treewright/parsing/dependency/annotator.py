"""Input and output of dependency parsers and rerankers: CoNLL-U files, k-best trees, confidence."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from treewright._validate import check_integer
from treewright.annotation.conllu import ConlluFormatter, open_words
from treewright.annotation.contract import Analysis, Annotator, Formatter, Request, draw_analyses
from treewright.annotation.sentences import (
    SentenceLike,
    TagColumn,
    check_tags,
    list_sentences,
    missing_tags,
    read_trees,
)
from treewright.data.deptree import DepTree
from treewright.errors import InputError
from treewright.metrics.calibration import CONFIDENCE, read_confidence
from treewright.parsing.dependency.constraints import FixedHeads

CANDIDATE_COMMENTS = ("# parse_rank =", "# score =", "# probability =")


class DependencyAnnotator(Annotator):
    """A model that predicts dependency trees; subclasses implement `predict`, `kbest` and `marginals`."""

    finds = "dependencies"
    can = frozenset({"k", "tags", "confidence", "fixed_heads", "draw", "raw", "language"})
    keeps_input = True

    def predict(
        self, sentences: Sequence[SentenceLike], *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[DepTree]:
        """Parse sentences."""
        raise NotImplementedError

    def kbest(
        self, sentences: Sequence[SentenceLike], k: int = 10, *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[list[Any]]:
        """Return the k-best trees of each sentence."""
        raise NotImplementedError

    def marginals(
        self, sentences: Sequence[SentenceLike], *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[npt.NDArray[np.float64]]:
        """Return the probabilities of the heads of all words."""
        raise NotImplementedError

    def confidence(
        self, parsed: DepTree, marginals: npt.NDArray[np.float64], *, fixed: FixedHeads | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the probability of each head of a tree.

        Parameters
        ----------
        parsed : DepTree
            A parsed sentence.
        marginals : array of float, (n_words, n_words + 1)
            Probabilities of all heads of its words, as `marginals` returns them.
        fixed : mapping of int to int, optional
            The heads that were fixed for the parse, as ``{word: head}``.
        """
        raise NotImplementedError

    def check_fixed(
        self, trees: Sequence[DepTree], fixed: Sequence[FixedHeads] | None, *, start: int = 1
    ) -> None:
        """Check that each sentence has a tree with the fixed heads."""
        raise NotImplementedError

    def explain(self, sentences: Sequence[SentenceLike], *, fixed: Sequence[FixedHeads] | None = None) -> Any:  # noqa: ANN401
        """Return the features that explain why the best trees were chosen."""
        return super().explain(sentences)

    def alternatives(
        self, sentences: Sequence[SentenceLike], *, n: int = 3, fixed: Sequence[FixedHeads] | None = None
    ) -> list[list[list[tuple[int, float]]]]:
        """Return the most probable heads of each word of each sentence, the best first.

        Parameters
        ----------
        sentences : sequence of DepTree, ConstTree, list of str, or list of (str, str)
            Trees, lists of words, or lists of (word, tag) pairs.
        n : int
            Maximum number of heads per word; heads with probability 0 are left out.
        fixed : sequence of mapping of int to int, optional
            For each sentence, the required heads as ``{word: head}``.

        Returns
        -------
        list of list of list of (int, float)
            Heads (0 is the root) with their probabilities.
        """
        check_integer("n", n, minimum=1)
        return [
            [
                [
                    (head, float(row[head]))
                    for head in np.argsort(-row, kind="stable")[:n].tolist()
                    if row[head] > 0
                ]
                for row in square
            ]
            for square in self.marginals(sentences, fixed=fixed)
        ]

    @property
    def tag_column(self) -> TagColumn:
        """The column of tags in (word, tag) pairs: UPOS, or XPOS if the training data has no UPOS."""
        return "upos"

    def read_sentences(self, sentences: Sequence[SentenceLike]) -> list[DepTree]:
        """Convert sentences to trees with the tags that the model needs.

        Raises
        ------
        InputError
            If a sentence lacks tags, or is not a tree, a list of words or a list of (word, tag) pairs.
        """
        self.check_is_fitted()
        trees = given = list_sentences(sentences, self)
        if not all(isinstance(each, DepTree) for each in given):
            trees = read_trees(given, self, tag_column=self.tag_column)
        if self.needs_tags:
            check_tags(given, trees, self)
        return trees

    @property
    def has_arc_reasons(self) -> bool:
        """Whether the model has features for `arc_reasons`."""
        return False

    def arc_reasons(self, trees: Sequence[DepTree], *, n: int = 10) -> list[list[list[Any]]]:
        """Return the features that involve the arc to each word of each tree."""
        return [[[] for _ in tree.words] for tree in trees]

    def annotate(
        self, sentences: Sequence[SentenceLike], *, k: int = 1, fixed: Sequence[FixedHeads] | None = None
    ) -> list[list[Analysis]]:
        """Return up to `k` trees of each sentence, the best first.

        Parameters
        ----------
        sentences : sequence of DepTree, ConstTree, list of str, or list of (str, str)
            Trees, lists of words, or lists of (word, tag) pairs.
        k : int
            Maximum number of trees per sentence.
        fixed : sequence of mapping of int to int, optional
            For each sentence, the required heads as ``{word: head}``. Only trees with these heads are
            considered.
        """
        if k == 1:
            return [[Analysis(tree)] for tree in self.predict(sentences, fixed=fixed)]
        found = self.kbest(sentences, k, fixed=fixed)
        return [[Analysis(*candidate) for candidate in candidates] for candidates in found]

    @contextmanager
    def open_sentences(self, source: str, request: Request) -> Iterator[Iterator[DepTree]]:
        """Open a file, and check the tags and the fixed heads of its sentences."""
        if request.fixed_heads and (request.raw or request.language is not None):
            raise InputError(
                "--fixed-heads does not work with --raw; expected CoNLL-U input, which has heads"
            )
        with open_words(source, request, self.own_tokenizer) as sentences:
            yield self._checked(sentences, source, fixed_heads=request.fixed_heads)

    def _checked(self, sentences: Iterable[DepTree], source: str, *, fixed_heads: bool) -> Iterator[DepTree]:
        """Yield sentences; check that they have the required tags and that their fixed heads allow a tree."""
        needs_tags = self.needs_tags
        for number, tree in enumerate(sentences, start=1):
            if needs_tags and tree.words and set(tree.upos) == set(tree.xpos) == {"_"}:
                raise missing_tags(f"{source}: sentence {number} has no tags", self, expected="tags")
            if fixed_heads:
                try:
                    self.check_fixed([tree], [known_heads(tree)], start=number)
                except InputError as error:
                    raise InputError(f"{source}: {error}") from error
            yield tree

    def annotate_batch(self, sentences: Sequence[DepTree], request: Request) -> list[list[Analysis]]:
        """Return the trees of sentences for writing; k-best trees get comments with their rank and scores."""
        fixed = [known_heads(tree) for tree in sentences] if request.fixed_heads else None
        found = self.annotate(sentences, k=request.k, fixed=fixed)
        for analyses in found:
            for rank, (tree, score, probability) in enumerate(analyses, start=1):
                comments = [one for one in tree.comments if not one.startswith(CANDIDATE_COMMENTS)]
                if request.k > 1:
                    values = (f"{rank}", f"{score:.4f}", f"{probability:.6f}")
                    pairs = zip(CANDIDATE_COMMENTS, values, strict=True)
                    comments += [f"{name} {value}" for name, value in pairs]
                if comments != tree.comments:
                    analyses[rank - 1] = Analysis(tree.with_comments(comments), score, probability)
        if request.confidence:
            squares = self.marginals(sentences, fixed=fixed)
            for analyses, square, heads in zip(found, squares, fixed or [{}] * len(found), strict=True):
                analyses[:] = [
                    each._replace(
                        tree=_with_confidence(each.tree, self.confidence(each.tree, square, fixed=heads))
                    )
                    for each in analyses
                ]
        return found

    def make_formatter(self, target: str, request: Request, begun: Path | None) -> Formatter:
        """Return a formatter for CoNLL-U, or for drawings."""
        if request.draw:
            return partial(draw_analyses, target, read_confidence if request.confidence else None)
        return ConlluFormatter(target, begun)


class ParserWrapper(DependencyAnnotator):
    """Base class of models that wrap a parser, `parser_`, and delegate words, tags and arcs to it."""

    parser_: Any

    @property
    def _inner(self) -> Any:  # noqa: ANN401
        self.check_is_fitted()
        return self.parser_

    def confidence(
        self, parsed: DepTree, marginals: npt.NDArray[np.float64], *, fixed: FixedHeads | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the probability of each head of a tree, from the marginals of its sentence.

        Parameters
        ----------
        parsed : DepTree
            A parsed sentence.
        marginals : array of float, (n_words, n_words + 1)
            Probabilities of all heads of its words, as `marginals` returns them.
        fixed : mapping of int to int, optional
            The heads that were fixed for the parse, as ``{word: head}``.
        """
        found: npt.NDArray[np.float64] = self._inner.confidence(parsed, marginals, fixed=fixed)
        return found

    def check_fixed(
        self, trees: Sequence[DepTree], fixed: Sequence[FixedHeads] | None, *, start: int = 1
    ) -> None:
        """Check that each sentence has a tree with the fixed heads; sentences are numbered from `start`."""
        self._inner.check_fixed(trees, fixed, start=start)

    @property
    def tags(self) -> str:
        """Source of the tags: the input, or the parser's own tagger."""
        return str(self._inner.tags)

    @property
    def own_tagger(self) -> Any:  # noqa: ANN401
        """The parser's own tagger, or None."""
        return self._inner.own_tagger

    @property
    def known_tags(self) -> list[str]:
        """The tags of the training data: UPOS, or XPOS if it has no UPOS."""
        return list(self._inner.known_tags)

    @property
    def tag_column(self) -> TagColumn:
        """The column of tags in (word, tag) pairs, as in the wrapped parser."""
        column: TagColumn = self._inner.tag_column
        return column

    @property
    def needs_tags(self) -> bool:
        """Whether input sentences must have tags."""
        return bool(self._inner.needs_tags)

    def knows_words(self, words: Sequence[str]) -> list[bool] | None:
        """Return which words occur in the training sentences, ignoring case."""
        known: list[bool] | None = self._inner.knows_words(words)
        return known

    def using(self, **params: Any) -> Self:  # noqa: ANN401
        """Return a copy with changed parameters, of this model or of its parser; fitted values are kept.

        Parameters
        ----------
        **params : object
            New values of parameters that affect the use of a fitted model, such as `n_jobs`.
        """
        own = self.param_names()
        other = super().using(**{name: value for name, value in params.items() if name in own})
        rest = {name: value for name, value in params.items() if name not in own}
        other.parser_ = self._inner.using(**rest)
        return other


def known_heads(tree: DepTree) -> Mapping[int, int]:
    """Return the known heads of a sentence as ``{word: head}``."""
    return {word: head for word, head in enumerate(tree.heads.tolist(), start=1) if head >= 0}


def _with_confidence(tree: DepTree, probabilities: npt.NDArray[np.float64]) -> DepTree:
    """Add the probability of each arc to the MISC column."""
    kept = [
        [one for one in old.split("|") if one != "_" and not one.startswith(CONFIDENCE)] for old in tree.misc
    ]
    shown = [f"{CONFIDENCE}{probability:.4f}" for probability in probabilities.tolist()]
    return tree.with_misc(["|".join([*old, new]) for old, new in zip(kept, shown, strict=True)])
