"""Surface tokens of a sentence with the white space between them, and the raw text of a treebank."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from treewright._typing import Booleans
from treewright.data.deptree import DepTree

PARAGRAPH = re.compile(r"#\s*new(par|doc)\b")
BETWEEN_PARAGRAPHS = "\n\n"
ESCAPES = {"\\": "\\\\", " ": "\\s", "\t": "\\t", "\r": "\\r", "\n": "\\n", "|": "\\p"}
"""Escapes for white space in SpacesAfter, as in UDPipe."""
UNESCAPES = {escape[1]: character for character, escape in ESCAPES.items()}


class Surface(NamedTuple):
    """A token as it appears in the text."""

    form: str
    words: tuple[str, ...]
    """Its syntactic words; a multiword token has several words, or one that differs from the form."""
    spaces: str
    """The white space after the token."""
    upos: str = "_"
    """Its part of speech, or "_" for a multiword token."""

    @property
    def is_multiword(self) -> bool:
        """Whether the words differ from the token itself."""
        return self.words != (self.form,)


def surface_tokens(tree: DepTree) -> list[Surface]:
    """Return the tokens of a sentence with the white space after them, from ``# text`` or the MISC column.

    SpacesAfter takes precedence. Without it, ``# text`` determines the white space inside the sentence, and
    SpaceAfter the white space after its last token. If ``# text`` does not match the tokens, SpaceAfter
    determines all white space. The default is one space.
    """
    ranges: dict[int, tuple[int, list[str]]] = {}
    for extra in tree.extra_lines:
        columns = extra.text.split("\t")
        if "-" in columns[0]:
            ranges[extra.position] = (int(columns[0].split("-")[1]), columns)
    found: list[Surface] = []
    is_exact = []
    at = 0
    while at < len(tree):
        stop, columns = ranges.get(at, (at + 1, []))
        form, misc, upos = (
            (columns[1], columns[-1], "_") if columns else (tree.words[at], tree.misc[at], tree.upos[at])
        )
        found.append(Surface(form, tuple(tree.words[at:stop]), spaces_after(misc), upos))
        is_exact.append("SpacesAfter=" in misc)
        at = stop
    for at, spaces in enumerate(_align([token.form for token in found], tree.metadata.get("text", ""))):
        if not is_exact[at]:
            found[at] = found[at]._replace(spaces=spaces)
    return found


def _align(forms: Sequence[str], text: str) -> list[str]:
    """Return the white space after each form except the last; an empty list if the text does not match."""
    spaces = []
    at = 0
    for form in forms:
        begin = at
        while at < len(text) and text[at].isspace():
            at += 1
        if not text.startswith(form, at):
            return []
        spaces.append(text[begin:at])
        at += len(form)
    return spaces[1:] if not text[at:].strip() else []


def spaces_after(misc: str) -> str:
    """Return the white space that a MISC column specifies."""
    if misc == "_":
        return " "
    for item in misc.split("|"):
        if item == "SpaceAfter=No":
            return ""
        if item.startswith("SpacesAfter="):
            return unescape(item.removeprefix("SpacesAfter="))
    return " "


def escape(spaces: str) -> str:
    """Escape white space for the MISC column."""
    return "".join(ESCAPES.get(character, character) for character in spaces)


def unescape(text: str) -> str:
    """Undo `escape`."""
    return re.sub(r"\\(.)", lambda match: UNESCAPES.get(match[1], match[0]), text)


class TreebankText(NamedTuple):
    """The raw text of a treebank with its boundaries."""

    text: str
    token_ends: Booleans
    """Whether a token ends after each character."""
    sentence_ends: Booleans
    """Whether a sentence ends after each token."""


def join_sentences(sentences: Sequence[Sequence[Surface]], begins_paragraph: Sequence[bool]) -> TreebankText:
    """Concatenate sentences into one text."""
    pieces: list[str] = []
    ends: list[int] = []
    last: list[bool] = []
    size = 0
    for number, tokens in enumerate(sentences):
        is_last = number + 1 < len(sentences) and begins_paragraph[number + 1]
        for place, token in enumerate(tokens):
            is_end = place + 1 == len(tokens)
            spaces = BETWEEN_PARAGRAPHS if is_end and is_last else token.spaces
            pieces += token.form, spaces
            ends.append(size + len(token.form) - 1)
            last.append(is_end)
            size += len(token.form) + len(spaces)
    token_ends = np.zeros(size, dtype=np.bool_)
    token_ends[ends] = True
    return TreebankText("".join(pieces), token_ends, np.array(last, dtype=np.bool_))


def begins_paragraph(tree: DepTree) -> bool:
    """Return whether a sentence starts a new paragraph or document, according to its comments."""
    return any(PARAGRAPH.match(comment) for comment in tree.comments)
