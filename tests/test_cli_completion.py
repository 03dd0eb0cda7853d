"""What shells offer while a command is being typed."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from treewright.commands import choices
from treewright.commands.choices import offer
from treewright.data import centred, formats, heads, languages, projective
from treewright.kernels import convolution
from treewright.parsing import constituent, leftcorner, network, training
from treewright.rerank import constituents as rerankers
from treewright.rerank import training as reranking
from treewright.srl import features, predicates, roles

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


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("conv",), ["convert"]),
        (("train", "le"), ["leftcorner"]),
        (("evaluate", "--log"), ["--log-json"]),
        (("train", "dependency", "--space", "p"), ["polynomial"]),
        (("reproduce", "titov"), ["titov-table1", "titov-table2"]),
        (("reproduce", "titov-table1", "--small"), ["--small-threshold"]),
        (("reproduce", "titov-table1", "--cell", "t"), ["tanh"]),
        (("fetch", "UD_Hun"), ["UD_Hungarian-Szeged"]),
    ],
)
def test_bash_completes_commands_options_and_values(words, offered):
    assert complete(*words) == offered


def test_a_script_for_bash_can_be_shown():
    command = [sys.executable, "-c", PROGRAM, "--show-completion", "bash"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "complete -o default -F _treewright_completion treewright" in done.stdout


@pytest.mark.parametrize(
    ("offered", "known"),
    [
        (choices.DECODERS, training.MODELS),
        (choices.LIFTINGS, projective.SCHEMES),
        (choices.SPACES, reranking.SPACES),
        (choices.HEAD_RULES, heads.RULES),
        (choices.FORMATS, formats.FORMATS),
        (choices.STRATEGIES, constituent.STRATEGIES),
        (choices.CELLS, network.CELLS),
        (choices.OPTIMIZERS, leftcorner.OPTIMIZERS),
        (choices.DERIVED_RERANKERS, rerankers.CHOICES),
        (choices.WORDS, convolution.WORDS),
        (choices.CENTRES, centred.CENTRES),
        (choices.PREDICATES, predicates.KINDS),
        (choices.ROLE_KERNELS, roles.KERNELS),
        (choices.ROLE_FEATURES, features.SETS),
    ],
)
def test_what_is_offered_is_what_the_library_knows(offered, known):
    assert sorted(offered) == sorted(known)


def test_treebanks_are_offered_by_both_of_their_names():
    assert choices.offer_treebanks("hu_sz") == ["hu_szeged"]
    assert len(choices.offer_treebanks("")) == len(languages.REPOSITORIES)


def test_languages_are_those_of_spacy():
    has_spacy = find_spec("spacy") is not None
    assert ("hu" in choices.offer_languages("h")) == has_spacy
    assert choices.offer_languages("no such") == []


def test_values_are_offered_that_begin_as_the_user_has():
    assert offer(choices.KERNELS)("s") == ["st", "sst", "spt"]
