"""Parsing of files, sentence by sentence, whatever their size."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from treewright._optional import require
from treewright._validate import check_choice
from treewright.data.conllu import iter_conllu, write_conllu
from treewright.data.deptree import DepTree
from treewright.data.files import numbered_lines
from treewright.errors import InputError
from treewright.metrics.calibration import CONFIDENCE
from treewright.parsing.constraints import FixedHeads
from treewright.parsing.dependency import Candidate
from treewright.parsing.tagger import Tagger

BATCH_SIZE = 2000
CANDIDATE_COMMENTS = ("# parse_rank =", "# score =", "# probability =")

Sentence = TypeVar("Sentence")


@runtime_checkable
class Parser(Protocol):
    """What finds trees: a parser, or a reranker of its trees."""

    jobs: int
    tags: str

    @property
    def needs_tags(self) -> bool:
        """Whether sentences must bring tags."""

    def check_fixed(
        self, trees: Sequence[DepTree], fixed: Sequence[FixedHeads] | None, *, first: int = 1
    ) -> None:
        """Check that sentences have trees with the fixed heads."""

    def predict(
        self, trees: Sequence[DepTree], *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[DepTree]:
        """Parse sentences."""

    def kbest(
        self, trees: Sequence[DepTree], k: int, *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[list[Candidate]]:
        """Return the best trees of each sentence."""

    def marginals(
        self, trees: Sequence[DepTree], *, fixed: Sequence[FixedHeads] | None = None
    ) -> list[npt.NDArray[np.float64]]:
        """Return the probabilities of the heads of all words."""

    def confidence(
        self, parsed: DepTree, marginals: npt.NDArray[np.float64], *, fixed: FixedHeads | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the probabilities of the heads that a tree has."""


def parse_file(
    model: Parser | Tagger,
    source: str,
    target: str,
    *,
    tags: str | None = None,
    kbest: int = 1,
    confidence: bool = False,
    fixed_heads: bool = False,
    language: str | None = None,
    jobs: int = 1,
) -> None:
    """Parse, or only tag, a file.

    Parameters
    ----------
    model : DependencyParser, DependencyReranker or Tagger
    source, target : str
        Files, or ``"-"``.
    tags : {"gold", "predicted"}, optional
        Whether a parser takes the tags of `source` or its own; by default what it was trained with.
    kbest : int
        Trees a sentence; if there are more than one, comments tell rank, score and probability.
    confidence : bool
        Add the probability of each arc to MISC.
    fixed_heads : bool
        Keep the heads that `source` has, and find those of the other words.
    language : str, optional
        `source` is plain text in this language, as spaCy names it.
    jobs : int
        Threads.
    """
    sentences = iter_conllu(source, require_heads=False) if language is None else iter_text(source, language)
    if isinstance(model, Tagger):
        if kbest > 1 or confidence or tags or fixed_heads:
            raise InputError("the model is a tagger, which has no trees; expected a parser for these options")
        found: Iterator[DepTree] = (tree for batch in in_batches(sentences) for tree in model.predict(batch))
    else:
        model.jobs = jobs
        if tags is not None:
            check_choice("tags", tags, ("gold", "predicted"))
            model.tags = tags
        sentences = with_tags(model, sentences, source)
        if fixed_heads:
            sentences = _with_possible_heads(model, sentences, source)
        found = _parsed(model, sentences, kbest=kbest, confidence=confidence, fixed_heads=fixed_heads)
    write_conllu(found, target)


def with_tags(parser: Parser, sentences: Iterable[DepTree], source: str) -> Iterator[DepTree]:
    """Hand on the sentences if they have what the parser needs."""
    for number, tree in enumerate(sentences, start=1):
        if parser.needs_tags and len(tree) and set(tree.upos) == set(tree.xpos) == {"_"}:
            raise InputError(
                f"{source}: sentence {number} has no tags; expected some, or a parser with a tagger of its "
                "own (--tags predicted in training)"
            )
        yield tree


def _with_possible_heads(parser: Parser, sentences: Iterable[DepTree], source: str) -> Iterator[DepTree]:
    """Hand on the sentences if the heads that they have are those of some tree."""
    for number, tree in enumerate(sentences, start=1):
        try:
            parser.check_fixed([tree], [_known_heads(tree)], first=number)
        except InputError as error:
            raise InputError(f"{source}: {error}") from error
        yield tree


def _known_heads(tree: DepTree) -> dict[int, int]:
    return {word: head for word, head in enumerate(tree.heads.tolist(), start=1) if head >= 0}


def iter_text(source: str, language: str) -> Iterator[DepTree]:
    """Split plain text into sentences and words by spaCy's rules; a paragraph ends at an empty line.

    Words are what stands in the text: multiword tokens are not taken apart.
    """
    pipeline = load_splitter(language)
    for paragraph in _paragraphs(source):
        yield from split_paragraph(pipeline, paragraph)


def load_splitter(language: str) -> Any:  # noqa: ANN401
    """Return spaCy's rules for words and sentences of a language."""
    spacy = require("spacy", "spacy")
    try:
        pipeline = spacy.blank(language)
    except ImportError as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"language is {language!r}; expected one that spaCy can split ({reason})") from error
    pipeline.add_pipe("sentencizer")
    pipeline.max_length = sys.maxsize
    return pipeline


def split_paragraph(pipeline: Any, paragraph: str) -> Iterator[DepTree]:  # noqa: ANN401
    """Split one paragraph by the rules of `load_splitter`."""
    for sentence in pipeline(paragraph).sents:
        tokens = [token for token in sentence if not token.text.isspace()]
        if tokens:
            spaces = ["_" if token.whitespace_ else "SpaceAfter=No" for token in tokens]
            text = f"# text = {' '.join(sentence.text.split())}"
            yield DepTree([token.text for token in tokens], misc=spaces, comments=[text])


def _paragraphs(source: str) -> Iterator[str]:
    lines: list[str] = []
    for _, line in numbered_lines(source):
        if line.strip():
            lines.append(line.strip())
        elif lines:
            yield " ".join(lines)
            lines = []
    if lines:
        yield " ".join(lines)


def in_batches(sentences: Iterable[Sentence], size: int = BATCH_SIZE) -> Iterator[list[Sentence]]:
    """Hand sentences on in lists of a size; the last may be shorter."""
    waiting = iter(sentences)
    while batch := list(islice(waiting, size)):
        yield batch


def _parsed(
    parser: Parser, sentences: Iterable[DepTree], *, kbest: int, confidence: bool, fixed_heads: bool
) -> Iterator[DepTree]:
    for batch in in_batches(sentences, max(1, BATCH_SIZE // kbest)):
        fixed = [_known_heads(tree) for tree in batch] if fixed_heads else None
        found: list[list[DepTree]]
        if kbest == 1:
            found = [[_without_announcement(tree)] for tree in parser.predict(batch, fixed=fixed)]
        else:
            found = [
                [_announced(candidate, rank) for rank, candidate in enumerate(candidates, start=1)]
                for candidates in parser.kbest(batch, kbest, fixed=fixed)
            ]
        if confidence:
            squares = parser.marginals(batch, fixed=fixed)
            for trees, square, heads in zip(found, squares, fixed or [{}] * len(batch), strict=True):
                trees[:] = [
                    _with_confidence(tree, parser.confidence(tree, square, fixed=heads)) for tree in trees
                ]
        for trees in found:
            yield from trees


def _announced(candidate: Candidate, rank: int) -> DepTree:
    """Put rank, score and probability into the comments of a tree."""
    values = (f"{rank}", f"{candidate.score:.4f}", f"{candidate.probability:.6f}")
    comments = [f"{name} {value}" for name, value in zip(CANDIDATE_COMMENTS, values, strict=True)]
    bare = _without_announcement(candidate.tree)
    return bare.with_comments([*bare.comments, *comments])


def _without_announcement(tree: DepTree) -> DepTree:
    """Leave out rank, score and probability that an earlier parse has left."""
    kept = [one for one in tree.comments if not one.startswith(CANDIDATE_COMMENTS)]
    return tree.with_comments(kept) if len(kept) < len(tree.comments) else tree


def _with_confidence(tree: DepTree, probabilities: npt.NDArray[np.float64]) -> DepTree:
    """Put the probability of each arc into MISC."""
    kept = [
        [one for one in old.split("|") if one != "_" and not one.startswith(CONFIDENCE)] for old in tree.misc
    ]
    shown = [f"{CONFIDENCE}{probability:.4f}" for probability in probabilities.tolist()]
    return tree.with_misc(["|".join([*old, new]) for old, new in zip(kept, shown, strict=True)])
