"""Printable characters of a word, and their widths."""

import unicodedata
from functools import lru_cache

REPLACEMENT = "\ufffd"
NARROW, WIDE = frozenset("iljftrI.,:;'`|!()[]{}/\\-\" "), frozenset("mwMW@%&—…")
EMS = {"narrow": 0.36, "wide": 0.92, "capital": 0.7, "full": 1.04, "other": 0.6}
"""Widths of characters in ems, slightly larger than in common typefaces."""
MOST_KEPT = 1 << 14
"""Maximum number of cached character widths."""
LONGEST = 40
"""Maximum number of characters of a word in a drawing."""


def visible(text: str) -> str:
    r"""Replace unprintable characters: control characters by symbols, others by a mark.

    Examples
    --------
    >>> visible("a\tb\x7f")
    'a␉b␡'
    """
    return text if text.isprintable() else "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    is_mute = unicodedata.category(character) in ("Cc", "Cs") or code in (0xFFFE, 0xFFFF, 0x2028, 0x2029)
    return REPLACEMENT if is_mute else character


def shorten(text: str) -> str:
    """Truncate a word that is too long for a drawing."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def cell_width(text: str) -> int:
    """Return the width of `text` in terminal columns."""
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


@lru_cache(maxsize=MOST_KEPT)
def _cells(character: str) -> int:
    if _is_mark(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def em_width(text: str) -> float:
    """Estimate the width of `text` in a proportional typeface, in ems."""
    return sum(map(_ems, text))


@lru_cache(maxsize=MOST_KEPT)
def _ems(character: str) -> float:
    if character in NARROW:
        return EMS["narrow"]
    if _is_mark(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return EMS["full"]
    if character in WIDE:
        return EMS["wide"]
    return EMS["capital" if character.isupper() else "other"]


def _is_mark(character: str) -> bool:
    """Return whether a character is a combining mark without width."""
    return unicodedata.category(character) in ("Mn", "Me", "Cf")


def runs_leftwards(words: list[str]) -> bool:
    """Return whether most letters of a sentence belong to a right-to-left script."""
    directions = [unicodedata.bidirectional(character) for word in words for character in word]
    leftwards = sum(direction in ("R", "AL") for direction in directions)
    return leftwards > directions.count("L")
