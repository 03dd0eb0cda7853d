"""Tokenization of plain text with spaCy's rules."""

import sys
from collections.abc import Iterator
from typing import Any

from treewright._optional import require
from treewright.data.deptree import DepTree
from treewright.data.files import Source, numbered_lines
from treewright.errors import InputError


def split_by_rules(source: Source, language: str) -> Iterator[DepTree]:
    """Split plain text into sentences and words with spaCy's rules; an empty line ends a paragraph.

    Multiword tokens are not split: each word is a substring of the text.
    """
    pipeline = load_splitter(language)
    for paragraph in _paragraphs(source):
        yield from split_paragraph(pipeline, paragraph)


def load_splitter(language: str) -> Any:  # noqa: ANN401
    """Return spaCy's rule-based tokenizer and sentence splitter for a language."""
    spacy = require("spacy", "spacy")
    try:
        pipeline = spacy.blank(language)
    except ImportError as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"spaCy has no rules for the language {language!r} ({reason}); expected a language code "
            "such as en"
        ) from error
    pipeline.add_pipe("sentencizer")
    pipeline.max_length = sys.maxsize
    return pipeline


def split_paragraph(pipeline: Any, paragraph: str) -> Iterator[DepTree]:  # noqa: ANN401
    """Split one paragraph with the rules of `load_splitter`."""
    for sentence in pipeline(paragraph).sents:
        tokens = [token for token in sentence if not token.text.isspace()]
        if tokens:
            spaces = ["_" if token.whitespace_ else "SpaceAfter=No" for token in tokens]
            text = f"# text = {' '.join(sentence.text.split())}"
            yield DepTree([token.text for token in tokens], misc=spaces, comments=[text])


def _paragraphs(source: Source) -> Iterator[str]:
    lines: list[str] = []
    for _, line in numbered_lines(source):
        if line.strip():
            lines.append(line.strip())
        elif lines:
            yield " ".join(lines)
            lines = []
    if lines:
        yield " ".join(lines)
