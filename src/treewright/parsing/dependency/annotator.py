"""What dependency parsers and their rerankers do with files: CoNLL-U in and out, k-best trees, confidence."""

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
    """A model that finds dependency trees; subclasses offer `predict`, `kbest` and `marginals`."""

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
        """Return the best trees of each sentence."""
        raise NotImplementedError

    def marginals(
        self, sentences: Sequence[SentenceLike], *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[npt.NDArray[np.float64]]:
        """Return the probabilities of the heads of all words."""
        raise NotImplementedError

    def confidence(
        self, parsed: DepTree, marginals: npt.NDArray[np.float64], *, fixed: FixedHeads | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the probabilities of the heads that a tree has."""
        raise NotImplementedError

    def check_fixed(
        self, trees: Sequence[DepTree], fixed: Sequence[FixedHeads] | None, *, start: int = 1
    ) -> None:
        """Check that sentences have trees with the fixed heads."""
        raise NotImplementedError

    def explain(self, sentences: Sequence[SentenceLike], *, fixed: Sequence[FixedHeads] | None = None) -> Any:  # noqa: ANN401
        """Return why the best trees won."""
        return super().explain(sentences)

    def alternatives(
        self, sentences: Sequence[SentenceLike], *, n: int = 3, fixed: Sequence[FixedHeads] | None = None
    ) -> list[list[list[tuple[int, float]]]]:
        """Return for each sentence and each of its words the most probable heads, the best first.

        Parameters
        ----------
        sentences : sequence of DepTree, ConstTree, list of str, or list of (str, str)
            As in `predict`.
        n : int
            Heads of a word at the most; those that no tree has are left out.
        fixed : sequence of mapping of int to int, optional
            As in `kbest`.

        Returns
        -------
        list of list of list of (int, float)
            Heads, 0 for the root, with their probabilities.
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
        """The column of the tags in (word, tag) pairs: UPOS, or XPOS if training had no other tags."""
        return "upos"

    def read_sentences(self, sentences: Sequence[SentenceLike]) -> list[DepTree]:
        """Return sentences as trees, with the tags that the model needs.

        Raises
        ------
        InputError
            If they are anything but trees, lists of words or lists of (word, tag) pairs, or have no tags.
        """
        self.check_is_fitted()
        given = list_sentences(sentences, self)
        trees = read_trees(given, self, tag_column=self.tag_column)
        if self.needs_tags:
            check_tags(given, trees, self, known=self.known_tags, tag_column=self.tag_column)
        return trees

    @property
    def has_arc_reasons(self) -> bool:
        """Whether `arc_reasons` has features to show."""
        return False

    def arc_reasons(self, trees: Sequence[DepTree], *, n: int = 10) -> list[list[list[Any]]]:
        """Return for the arc to each word of each tree the features that speak for it."""
        return [[[] for _ in tree.words] for tree in trees]

    def annotate(
        self, sentences: Sequence[SentenceLike], *, k: int = 1, fixed: Sequence[FixedHeads] | None = None
    ) -> list[list[Analysis]]:
        """Return up to `k` trees of each sentence, the best first.

        With `fixed` heads of words, these are the best trees that have them.
        """
        if k == 1:
            return [[Analysis(tree)] for tree in self.predict(sentences, fixed=fixed)]
        found = self.kbest(sentences, k, fixed=fixed)
        return [[Analysis(*candidate) for candidate in candidates] for candidates in found]

    @contextmanager
    def open_sentences(self, source: str, request: Request) -> Iterator[Iterator[DepTree]]:
        """Open a file as sentences that have what the parser needs."""
        if request.fixed_heads and (request.raw or request.language is not None):
            raise InputError("--fixed-heads with --raw; expected CoNLL-U, which has heads")
        with open_words(source, request, self.own_tokenizer) as sentences:
            yield self._checked(sentences, source, fixed_heads=request.fixed_heads)

    def _checked(self, sentences: Iterable[DepTree], source: str, *, fixed_heads: bool) -> Iterator[DepTree]:
        """Hand on sentences that have the tags that the parser needs, and fixed heads of some tree."""
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
        """Return the trees of sentences, as they are written."""
        fixed = [known_heads(tree) for tree in sentences] if request.fixed_heads else None
        found = self.annotate(sentences, k=request.k, fixed=fixed)
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
        """Return what writes CoNLL-U; k-best trees have comments with rank, score and probability."""
        if request.draw:
            return partial(draw_analyses, target, read_confidence if request.confidence else None)
        return ConlluFormatter(target, begun, partial(_trees_to_write, k=request.k))


class ParserWrapper(DependencyAnnotator):
    """A model with a parser inside it, `parser_`, which knows about words, tags and arcs."""

    parser_: Any

    @property
    def _inner(self) -> Any:  # noqa: ANN401
        self.check_is_fitted()
        return self.parser_

    def confidence(
        self, parsed: DepTree, marginals: npt.NDArray[np.float64], *, fixed: FixedHeads | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the probability of the head of each word of a tree, from the marginals of its sentence."""
        found: npt.NDArray[np.float64] = self._inner.confidence(parsed, marginals, fixed=fixed)
        return found

    def check_fixed(
        self, trees: Sequence[DepTree], fixed: Sequence[FixedHeads] | None, *, start: int = 1
    ) -> None:
        """Check that sentences, the first of which has the number `start`, have trees with these heads."""
        self._inner.check_fixed(trees, fixed, start=start)

    @property
    def tags(self) -> str:
        """Whether sentences bring their tags or the parser's own tagger gives them."""
        return str(self._inner.tags)

    @property
    def own_tagger(self) -> Any:  # noqa: ANN401
        """The tagger inside the parser, or None."""
        return self._inner.own_tagger

    @property
    def known_tags(self) -> list[str]:
        """The universal tags that the parser was trained with."""
        return list(self._inner.known_tags)

    @property
    def tag_column(self) -> TagColumn:
        """The column of the tags in (word, tag) pairs; see the parser."""
        column: TagColumn = self._inner.tag_column
        return column

    @property
    def needs_tags(self) -> bool:
        """Whether sentences must bring the tags that the parser was trained with."""
        return bool(self._inner.needs_tags)

    def knows_words(self, words: Sequence[str]) -> list[bool] | None:
        """Tell which words, in upper or lower case, occur in the training sentences."""
        known: list[bool] | None = self._inner.knows_words(words)
        return known

    def using(self, **params: Any) -> Self:  # noqa: ANN401
        """Return a model that has learnt the same with other parameters, its own or those of its parser."""
        own = self.param_names()
        other = super().using(**{name: value for name, value in params.items() if name in own})
        rest = {name: value for name, value in params.items() if name not in own}
        other.parser_ = self._inner.using(**rest)
        return other


def known_heads(tree: DepTree) -> Mapping[int, int]:
    """Return the heads that a sentence has, by word."""
    return {word: head for word, head in enumerate(tree.heads.tolist(), start=1) if head >= 0}


def _trees_to_write(analyses: list[Analysis], k: int) -> list[DepTree]:
    """Return trees; k-best ones have rank, score and probability in comments, others those of no parse."""
    trees = []
    for rank, (tree, score, probability) in enumerate(analyses, start=1):
        comments = [one for one in tree.comments if not one.startswith(CANDIDATE_COMMENTS)]
        if k > 1:
            values = (f"{rank}", f"{score:.4f}", f"{probability:.6f}")
            comments += [f"{name} {value}" for name, value in zip(CANDIDATE_COMMENTS, values, strict=True)]
        trees.append(tree if comments == tree.comments else tree.with_comments(comments))
    return trees


def _with_confidence(tree: DepTree, probabilities: npt.NDArray[np.float64]) -> DepTree:
    """Put the probability of each arc into MISC."""
    kept = [
        [one for one in old.split("|") if one != "_" and not one.startswith(CONFIDENCE)] for old in tree.misc
    ]
    shown = [f"{CONFIDENCE}{probability:.4f}" for probability in probabilities.tolist()]
    return tree.with_misc(["|".join([*old, new]) for old, new in zip(kept, shown, strict=True)])
