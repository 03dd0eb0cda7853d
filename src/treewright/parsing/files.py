"""Parsing of files, sentence by sentence, whatever their size."""

from collections.abc import Iterable, Iterator
from itertools import islice

from treewright._optional import require
from treewright.data.conllu import iter_conllu, write_conllu
from treewright.data.deptree import DepTree
from treewright.data.files import numbered_lines
from treewright.errors import InputError
from treewright.parsing.dependency import Candidate, DependencyParser

BATCH_SIZE = 500
CANDIDATE_COMMENTS = ("# parse_rank =", "# score =", "# probability =")


def parse_file(
    parser: DependencyParser,
    source: str,
    target: str,
    *,
    kbest: int = 1,
    confidence: bool = False,
    language: str | None = None,
) -> None:
    """Parse a file.

    Parameters
    ----------
    parser : DependencyParser
    source, target : str
        Files, or ``"-"``.
    kbest : int
        Trees a sentence; if there are more than one, comments tell rank, score and probability.
    confidence : bool
        Add the probability of each arc to MISC.
    language : str, optional
        `source` is plain text in this language, as spaCy names it.
    """
    sentences = iter_conllu(source, require_heads=False) if language is None else iter_text(source, language)
    write_conllu(_parsed(parser, sentences, kbest=kbest, confidence=confidence), target)


def iter_text(source: str, language: str) -> Iterator[DepTree]:
    """Split plain text into sentences and words by spaCy's rules; a paragraph ends at an empty line.

    Words are what stands in the text: multiword tokens are not taken apart.
    """
    spacy = require("spacy", "spacy")
    try:
        pipeline = spacy.blank(language)
    except ImportError as error:
        raise InputError(f"language is {language!r}; expected a code that spaCy knows, or xx") from error
    pipeline.add_pipe("sentencizer")
    for paragraph in _paragraphs(source):
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


def _parsed(
    parser: DependencyParser, sentences: Iterable[DepTree], *, kbest: int, confidence: bool
) -> Iterator[DepTree]:
    waiting = iter(sentences)
    while batch := list(islice(waiting, BATCH_SIZE)):
        if kbest > 1:
            for candidates in parser.kbest(batch, kbest):
                yield from (_announced(one, rank) for rank, one in enumerate(candidates, start=1))
        elif confidence:
            yield from _with_confidence(parser, batch)
        else:
            yield from parser.predict(batch)


def _announced(candidate: Candidate, rank: int) -> DepTree:
    """Put rank, score and probability into the comments of a tree."""
    values = (f"{rank}", f"{candidate.score:.4f}", f"{candidate.probability:.6f}")
    comments = [f"{name} {value}" for name, value in zip(CANDIDATE_COMMENTS, values, strict=True)]
    kept = [one for one in candidate.tree.comments if not one.startswith(CANDIDATE_COMMENTS)]
    return candidate.tree.with_comments(kept + comments)


def _with_confidence(parser: DependencyParser, batch: list[DepTree]) -> Iterator[DepTree]:
    for tree, probabilities in zip(parser.predict(batch), parser.marginals(batch), strict=True):
        shown = [f"Confidence={row[head]:.4f}" for row, head in zip(probabilities, tree.heads, strict=True)]
        kept = [
            [one for one in old.split("|") if not one.startswith(("_", "Confidence="))] for old in tree.misc
        ]
        yield tree.with_misc(["|".join([*old, new]) for old, new in zip(kept, shown, strict=True)])
