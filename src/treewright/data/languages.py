"""The treebanks of Universal Dependencies: languages, their codes in file names, repositories.

They stand in ``treebanks.txt``, a language a line: its name, its code, and its treebanks.
"""

import difflib
import re
from importlib.resources import files

from treewright._naming import named
from treewright.errors import InputError, quote

REPOSITORY = re.compile(r"UD_([A-Za-z]+(?:_[A-Za-z]+)*)-([A-Za-z0-9]+)")
CODE = re.compile(r"[a-z]{2,3}")

_ROWS = [
    line.split() for line in files(__package__).joinpath("treebanks.txt").read_text("utf-8").splitlines()
]

CODES = {language: code for language, code, *_ in _ROWS}
"""The code of each language, as ``CODES["English"] == "en"``."""

REPOSITORIES = {
    f"{code}_{treebank.lower()}": f"UD_{language}-{treebank}"
    for language, code, *treebanks in _ROWS
    for treebank in treebanks
}
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
        raise InputError(f"treebank is {quote(name)}; {expected}{suggest_names(name)}")
    language, treebank = matched.groups()
    if code is None and language not in CODES:
        remedy = f"give the code in its file names ({named('code')}) to fetch it nevertheless"
        raise InputError(f"language {quote(language)} is not known; {remedy}{suggest_names(name)}")
    if code is not None and not CODE.fullmatch(code):
        raise InputError(
            f"{named('code')} is {quote(code)}; expected two or three small letters, such as 'en'"
        )
    return repository, f"{code or CODES[language]}_{treebank.lower()}-ud"


def suggest_names(name: str) -> str:
    """Return a question that lists the known names like `name`; nothing if `name` is known itself."""
    known = {each.lower(): each for each in (*REPOSITORIES, *REPOSITORIES.values())}
    close = [known[each] for each in difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.75)]
    if name in close:
        return ""
    return f"; did you mean {' or '.join(close)}?" if close else ""


def train_pieces(repository: str, name: str) -> list[str]:
    """Return the files that make up `name` if it is a train part that is kept in pieces."""
    stem = name.removesuffix(".conllu")
    pieces = TRAIN_PIECES.get(repository, ()) if stem.endswith("-train") else ()
    return [f"{stem}-{piece}.conllu" for piece in pieces]
