"""Parsing of files, sentence by sentence, whatever their size."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from treewright._optional import require
from treewright._validate import check_choice
from treewright.data.conllu import CONLLU, declared_by, format_tree, iter_conllu
from treewright.data.deptree import DepTree
from treewright.data.files import numbered_lines
from treewright.errors import InputError
from treewright.metrics.calibration import CONFIDENCE
from treewright.parsing.dependency.constraints import FixedHeads
from treewright.parsing.dependency.parser import Candidate
from treewright.parsing.resumable_output import Unfinished, name_work, write_results
from treewright.persist import State, identify
from treewright.progress import task
from treewright.scale import Client, iter_jobs
from treewright.tagging.tagger import Tagger

BATCH_SIZE = 2000
SENT_TOGETHER = 250
"""Sentences, or trees of theirs, that a worker of a cluster parses at a time."""
CANDIDATE_COMMENTS = ("# parse_rank =", "# score =", "# probability =")

Sentence = TypeVar("Sentence")
Parsed = TypeVar("Parsed")


@runtime_checkable
class Parser(Protocol):
    """What finds trees: a parser, or a reranker of its trees."""

    @property
    def tags(self) -> str:
        """Whether sentences bring their tags, or the parser's own tagger gives them."""

    def using(self, **params: Any) -> Self:  # noqa: ANN401
        """Return a parser that has learnt the same and differs in some parameters."""

    @property
    def needs_tags(self) -> bool:
        """Whether sentences must bring tags."""

    def get_state(self) -> State:
        """Return all that the parser is."""

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
    n_jobs: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    client: Client | None = None,
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
    n_jobs : int
        Threads; with a client, of each of its workers.
    checkpoint : path, optional
        A folder in which what is done is kept, for files alone. If it exists, parsing goes on from it, to the
        same file.
    client : distributed.Client, optional
        A cluster that parses; sentences are read and written here.
    """
    sentences = iter_conllu(source, require_heads=False) if language is None else iter_text(source, language)
    if isinstance(model, Tagger):
        if kbest > 1 or confidence or tags or fixed_heads:
            raise InputError("the model is a tagger, which has no trees; expected a parser for these options")
        parse: Callable[[list[DepTree]], list[list[DepTree]]] = partial(_tag, model)
    else:
        model = model.using(n_jobs=n_jobs)
        if tags is not None:
            check_choice("tags", tags, ("gold", "predicted"))
            model = model.using(tags=tags)
        sentences = with_tags(model, sentences, source)
        if fixed_heads:
            sentences = _with_possible_heads(model, sentences, source)
        parse = partial(_parse, model, kbest=kbest, confidence=confidence, fixed_heads=fixed_heads)
    unfinished = None
    if checkpoint is not None:
        options = (tags, kbest, confidence, fixed_heads, language)
        name = partial(_name_work, model, options, source)
        unfinished = Unfinished(checkpoint, target, name)
        sentences = unfinished.skip(sentences)
    size = BATCH_SIZE if client is None else SENT_TOGETHER
    found = parse_batches(parse, sentences, max(1, size // kbest), client)
    write_results(found, target, _Columns(target, unfinished), unfinished)


def _name_work(model: Parser | Tagger, options: tuple[object, ...], source: str) -> str:
    return name_work(identify(model.get_state()), options, source)


class _Columns:
    """Trees of sentences as CoNLL-U, with the columns that the first of all declares."""

    def __init__(self, target: str, unfinished: Unfinished | None) -> None:
        self._target, self._layout = target, CONLLU
        if unfinished is not None and unfinished.n_done:
            self._layout = declared_by(next(iter_conllu(unfinished.path, require_heads=False)), target)

    def __call__(self, number: int, trees: list[DepTree]) -> str:
        if number == 1:
            self._layout = declared_by(trees[0], self._target)
        return "".join(format_tree(tree, self._layout) for tree in trees)


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


def parse_batches(
    parse: Callable[[list[Sentence]], list[Parsed]],
    sentences: Iterable[Sentence],
    size: int,
    client: Client | None,
) -> Iterator[Parsed]:
    """Yield what `parse` finds in sentences, of which it is given so many at a time, here or on a cluster."""
    batches = in_batches(sentences, size)
    if client is None:
        for batch in batches:
            yield from parse(batch)
        return
    with task("parsing on the cluster", unit="trees") as counted:
        for found in iter_jobs(parse, batches, client=client):
            yield from found
            counted.advance(len(found))


def _tag(tagger: Tagger, batch: list[DepTree]) -> list[list[DepTree]]:
    return [[tree] for tree in tagger.predict(batch)]


def _parse(
    parser: Parser, batch: Sequence[DepTree], *, kbest: int, confidence: bool, fixed_heads: bool
) -> list[list[DepTree]]:
    """Return the trees of each sentence, as they are written."""
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
    return found


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
