"""The treebanks of Universal Dependencies: languages, their codes in file names, repositories.

They stand in ``treebanks.txt``, a language a line: its name, its code, and its treebanks.
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
"""The code of each language, as ``CODES["English"] == "en"``."""


class TreebankName(NamedTuple):
    """A treebank by its names."""

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
"""The repository behind each short name, as ``REPOSITORIES["en_ewt"] == "UD_English-EWT"``."""

TRAIN_PIECES = {
    "UD_Czech-PDT": ("c", "l", "m", "v"),
    "UD_German-HDT": ("a-1", "a-2", "b-1", "b-2"),
    "UD_Russian-SynTagRus": ("a", "b", "c"),
    "UD_Russian-Taiga": ("a", "b", "c", "d", "e"),
}
"""Repositories whose train part is too large for one file of GitHub, and the pieces that make it up."""


def resolve_name(name: str, code: str | None) -> tuple[str, str]:
    """Return the repository and the beginning of its file names."""
    repository = REPOSITORIES.get(name, name)
    matched = REPOSITORY.fullmatch(repository)
    if not matched:
        expected = "expected a name such as 'UD_English-EWT' or 'en_ewt'"
        remedy = suggest_names(name) or f" ({LIST_COMMAND} shows all)"
        raise InputError(f"treebank is {quote(name)}; {expected}{remedy}")
    language, treebank = matched.groups()
    if code is None and language not in CODES:
        remedy = f"give the code in its file names ({named('code')}) to fetch it nevertheless"
        raise InputError(f"language {quote(language)} is not known; {remedy}{suggest_names(name)}")
    if code is not None and not CODE.fullmatch(code):
        raise InputError(
            f"{named('code')} is {quote(code)}; expected two or three small letters, such as 'en'"
        )
    return repository, f"{code or CODES[language]}_{treebank.lower()}-ud"


def list_treebanks(text: str = "") -> list[TreebankName]:
    """Return the treebanks of a language, by its name or code, or those with a text in one of their names.

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
    """Return a question that lists the known names like `name`; nothing if `name` is known itself."""
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
    """Return the files that make up `name` if it is a train part that is kept in pieces."""
    stem = name.removesuffix(".conllu")
    pieces = TRAIN_PIECES.get(repository, ()) if stem.endswith("-train") else ()
    return [f"{stem}-{piece}.conllu" for piece in pieces]
