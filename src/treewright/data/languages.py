"""The treebanks of Universal Dependencies: languages, language codes and repositories.

``treebanks.txt`` lists them, one language per line: its name, its code, and its treebanks.
"""

import difflib
import re
import shlex
from importlib.resources import files
from typing import NamedTuple

from treewright._naming import named
from treewright.errors import InputError, quote

REPOSITORY = re.compile(r"UD_([A-Za-z]+(?:_[A-Za-z]+)*)-([A-Za-z0-9]+)")
CODE = re.compile(r"[a-z]{2,3}")
N_SUGGESTED = 3
LIST_COMMAND = "treewright fetch --list"

_ROWS = [
    line.split() for line in files(__package__).joinpath("treebanks.txt").read_text("utf-8").splitlines()
]

CODES = {language: code for language, code, *_ in _ROWS}
"""The code of each language: ``CODES["English"] == "en"``."""


class TreebankName(NamedTuple):
    """The names of a treebank."""

    repository: str
    short_name: str
    language: str


TREEBANKS = [
    TreebankName(f"UD_{language}-{treebank}", f"{code}_{treebank.lower()}", language.replace("_", " "))
    for language, code, *treebanks in _ROWS
    for treebank in treebanks
]
"""All treebanks, by language."""

REPOSITORIES = {each.short_name: each.repository for each in TREEBANKS}
"""The repository of each short name: ``REPOSITORIES["en_ewt"] == "UD_English-EWT"``."""

TRAIN_PIECES = {
    "UD_Czech-PDT": ("c", "l", "m", "v"),
    "UD_German-HDT": ("a-1", "a-2", "b-1", "b-2"),
    "UD_Russian-SynTagRus": ("a", "b", "c"),
    "UD_Russian-Taiga": ("a", "b", "c", "d", "e"),
}
"""Repositories whose training set is too large for one file on GitHub, and the names of its pieces."""


def resolve_name(name: str, code: str | None) -> tuple[str, str]:
    """Return the repository and the prefix of its file names."""
    repository = REPOSITORIES.get(name, name)
    matched = REPOSITORY.fullmatch(repository)
    if not matched:
        expected = "expected a name such as 'UD_English-EWT' or 'en_ewt'"
        remedy = suggest_names(name) or f" ({LIST_COMMAND} lists all)"
        raise InputError(f"treebank is {quote(name)}; {expected}{remedy}")
    language, treebank = matched.groups()
    if code is None and language not in CODES:
        remedy = f"use {named('code')} to give the code in its file names"
        raise InputError(f"language {quote(language)} is unknown; {remedy}{suggest_names(name)}")
    if code is not None and not CODE.fullmatch(code):
        raise InputError(
            f"{named('code')} is {quote(code)}; expected two or three lower-case letters, such as 'en'"
        )
    return repository, f"{code or CODES[language]}_{treebank.lower()}-ud"


def list_treebanks(text: str = "") -> list[TreebankName]:
    """Return the treebanks of the language with the name or code `text`, or those whose names contain it.

    Examples
    --------
    >>> [treebank.repository for treebank in list_treebanks("hu")]
    ['UD_Hungarian-Szeged']
    >>> [treebank.short_name for treebank in list_treebanks("szeged")]
    ['hu_szeged']
    """
    wanted = text.lower().replace("_", " ")
    codes = {code: language.replace("_", " ").lower() for language, code in CODES.items()}
    exact = [each for each in TREEBANKS if each.language.lower() == codes.get(wanted, wanted)]
    return exact or [each for each in TREEBANKS if wanted in "\n".join(each).lower().replace("_", " ")]


def suggest_names(name: str) -> str:
    """Return a "did you mean" question with names similar to `name`; empty if `name` is known."""
    if not name:
        return ""
    containing = list_treebanks(name)
    if not containing:
        languages = {each.language.lower() for each in TREEBANKS}
        similar = difflib.get_close_matches(name.lower(), sorted(languages), n=1, cutoff=0.75)
        containing = list_treebanks(similar[0]) if similar else []
    if len(containing) > N_SUGGESTED:
        found = {each.language for each in containing}
        which = f" of {containing[0].language}" if len(found) == 1 else ""
        command = shlex.join([*LIST_COMMAND.split(), containing[0].language if which else name])
        return f"; did you mean one of the {len(containing)} treebanks{which}? ({command})"
    known = {each.lower(): each for each in (*REPOSITORIES, *REPOSITORIES.values())}
    close = [
        known[each] for each in difflib.get_close_matches(name.lower(), known, n=N_SUGGESTED, cutoff=0.75)
    ]
    close = close or [each.repository for each in containing]
    if name in close:
        return ""
    return f"; did you mean {' or '.join(close)}?" if close else ""


def train_pieces(repository: str, name: str) -> list[str]:
    """Return the pieces of the file `name`, if it is a training set that is stored in pieces."""
    stem = name.removesuffix(".conllu")
    pieces = TRAIN_PIECES.get(repository, ()) if stem.endswith("-train") else ()
    return [f"{stem}-{piece}.conllu" for piece in pieces]
