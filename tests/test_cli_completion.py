"""What shells offer while a command is being typed."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from treewright.commands.parse import offer_languages
from treewright.commands.signatures import offer
from treewright.commands.treebanks import offer_treebanks
from treewright.data import languages

PROGRAM = "import sys; sys.argv[0] = 'treewright'; from treewright.__main__ import main; main()"


def complete(*words):
    """Return what bash is offered for the last of some words."""
    environment = {
        **os.environ,
        "_TREEWRIGHT_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["treewright", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("conv",), ["convert"]),
        (("train", "le"), ["leftcorner"]),
        (("evaluate", "--log"), ["--log-json"]),
        (("train", "dependency", "--space", "p"), ["polynomial"]),
        (("train", "leftcorner", "--rerank", "e"), ["efficient-top"]),
        (("train", "tagger", "--see"), ["--seed"]),
        (("kernel", "--words", "n"), ["nodes", "none"]),
        (("convert", "--from", "conllu"), ["conllu"]),
        (("reproduce", "titov"), ["titov-table1", "titov-table2"]),
        (("reproduce", "titov-table1", "--small"), ["--small-threshold"]),
        (("reproduce", "titov-table1", "--cell", "t"), ["tanh"]),
        (("fetch", "UD_Hun"), ["UD_Hungarian-Szeged"]),
    ],
)
def test_bash_completes_commands_options_and_values(words, offered):
    assert complete(*words) == offered


def test_a_script_for_bash_can_be_shown():
    # Which shell it is, is told by the program that has started it.
    command = ["bash", "-c", '"$@"; exit $?', "bash", sys.executable, "-c", PROGRAM, "--show-completion"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "complete -o default -F _treewright_completion treewright" in done.stdout


def test_treebanks_are_offered_by_both_of_their_names():
    assert offer_treebanks("hu_sz") == ["hu_szeged"]
    assert len(offer_treebanks("")) == len(languages.REPOSITORIES)


def test_languages_are_those_of_spacy():
    has_spacy = find_spec("spacy") is not None
    assert ("hu" in offer_languages("h")) == has_spacy
    assert offer_languages("no such") == []


def test_values_are_offered_that_begin_as_the_user_has():
    assert offer(["st", "sst", "pt", "spt"])("s") == ["st", "sst", "spt"]
