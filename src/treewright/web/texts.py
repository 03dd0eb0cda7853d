"""Conversion of typed or pasted text to sentences."""

import io
import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import groupby

from treewright.annotation.raw_text import load_splitter, split_paragraph
from treewright.data.bracketed import iter_brackets
from treewright.data.conllu import iter_conllu
from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.data.formats import tell_content
from treewright.errors import MissingDependencyError
from treewright.tagging.tokenizer import Tokenizer

PARAGRAPH_END = re.compile(r"\n\s*\n")
ENDS = frozenset(".!?…。！？؟।")
CLOSING = frozenset("\"'”’»)]")


class Splitter:
    """Splits plain text into sentences and words, with the rules of spaCy (if installed) or simpler rules.

    Parameters
    ----------
    language : str
        Language code of spaCy; ``"xx"`` stands for any language.
    """

    def __init__(self, language: str = "xx") -> None:
        self._lock = threading.Lock()
        try:
            self._pipeline = load_splitter(language)
        except MissingDependencyError:
            self._pipeline = None

    def split(self, text: str) -> Iterator[DepTree]:
        """Yield the sentences of a text; an empty line ends a sentence."""
        for paragraph in PARAGRAPH_END.split(_without_controls(text)):
            line = " ".join(paragraph.split())
            yield from split_plainly(line) if self._pipeline is None else self._split_by_rules(line)

    def _split_by_rules(self, line: str) -> list[DepTree]:
        # In a memory zone, or spaCy would keep the words of all texts; only one zone can be open at a time.
        with self._lock, self._pipeline.memory_zone():
            return list(split_paragraph(self._pipeline, line))


def read_text(
    text: str, splitter: Splitter | Tokenizer, *, raw: bool = False
) -> list[DepTree] | list[ConstTree]:
    """Read CoNLL-U, trees in brackets or plain text; the format is detected unless `raw` is true.

    In CoNLL-U, heads may be missing.
    """
    content = "text" if raw else tell_content(text)
    if content == "conllu":
        return list(iter_conllu(_Pasted(text.encode()), require_heads=False))
    if content == "brackets":
        return list(iter_brackets(_Pasted(text.encode())))
    return list(splitter.split(text))


class _Pasted(io.BytesIO):
    """Pasted text, with a name for error messages."""

    name = "text"


def _without_controls(text: str) -> str:
    """Replace control characters with spaces; keep line ends."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(
        " " if character != "\n" and unicodedata.category(character) in ("Cc", "Zl", "Zp") else character
        for character in lines
    )


def split_plainly(line: str) -> Iterator[DepTree]:
    """Split one paragraph: punctuation around a word is separated, and some of it ends a sentence."""
    words: list[str] = []
    spaces: list[str] = []
    for chunk in line.split():
        pieces = list(_pieces(chunk))
        words += pieces
        spaces += [*["SpaceAfter=No"] * (len(pieces) - 1), "_"]
        if _ends_sentence(pieces):
            yield DepTree(words, misc=spaces)
            words, spaces = [], []
    if words:
        yield DepTree(words, misc=spaces)


def _pieces(chunk: str) -> Iterator[str]:
    """Split text without spaces into opening punctuation, a word and closing punctuation."""
    begin, end = 0, len(chunk)
    while begin < end and _is_punctuation(chunk[begin]):
        begin += 1
    while end > begin and _is_punctuation(chunk[end - 1]):
        end -= 1
    yield from _runs(chunk[:begin])
    if begin < end:
        yield chunk[begin:end]
    yield from _runs(chunk[end:])


def _runs(marks: str) -> Iterable[str]:
    """Split punctuation into single marks; repetitions of a mark stay together."""
    return ("".join(same) for _, same in groupby(marks))


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _ends_sentence(pieces: list[str]) -> bool:
    kept = list(pieces)
    while kept and kept[-1][0] in CLOSING:
        kept.pop()
    return bool(kept) and kept[-1][0] in ENDS
