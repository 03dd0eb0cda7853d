"""From what a visitor types or pastes to sentences of words."""

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
    """Splits plain text into sentences and words: by spaCy's rules if it is installed, else by plain ones.

    Parameters
    ----------
    language : str
        As spaCy names it; ``"xx"`` is any.
    """

    def __init__(self, language: str = "xx") -> None:
        self._lock = threading.Lock()
        try:
            self._pipeline = load_splitter(language)
        except MissingDependencyError:
            self._pipeline = None

    def split(self, text: str) -> Iterator[DepTree]:
        """Return the sentences of a text; an empty line ends a sentence."""
        for paragraph in PARAGRAPH_END.split(_without_controls(text)):
            line = " ".join(paragraph.split())
            yield from split_plainly(line) if self._pipeline is None else self._split_by_rules(line)

    def _split_by_rules(self, line: str) -> list[DepTree]:
        # In a zone of its own, as otherwise the words of all texts would be kept; one zone at a time is open.
        with self._lock, self._pipeline.memory_zone():
            return list(split_paragraph(self._pipeline, line))


def read_text(
    text: str, splitter: Splitter | Tokenizer, *, raw: bool = False
) -> list[DepTree] | list[ConstTree]:
    """Read CoNLL-U, trees in brackets, or plain text, whichever it is; a `raw` text is plain.

    Heads of CoNLL-U may be missing.
    """
    content = "text" if raw else tell_content(text)
    if content == "conllu":
        return list(iter_conllu(_Pasted(text.encode()), require_heads=False))
    if content == "brackets":
        return list(iter_brackets(_Pasted(text.encode())))
    return list(splitter.split(text))


class _Pasted(io.BytesIO):
    """Text that is named in errors as the visitor would."""

    name = "text"


def _without_controls(text: str) -> str:
    """Put spaces where characters are that no word can have; line ends stay."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(
        " " if character != "\n" and unicodedata.category(character) in ("Cc", "Zl", "Zp") else character
        for character in lines
    )


def split_plainly(line: str) -> Iterator[DepTree]:
    """Split one paragraph: punctuation around a word is no part of it, and some of it ends a sentence."""
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
    """Split what stands between spaces into opening punctuation, a word and closing punctuation."""
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
    """Return marks of punctuation one by one, but repeated ones together."""
    return ("".join(same) for _, same in groupby(marks))


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _ends_sentence(pieces: list[str]) -> bool:
    kept = list(pieces)
    while kept and kept[-1][0] in CLOSING:
        kept.pop()
    return bool(kept) and kept[-1][0] in ENDS
