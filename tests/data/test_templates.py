"""The language of feature templates, and what the default templates of all sets compile to."""

import hashlib

import numpy as np
import pytest

from treewright.data.arcs import ArcEncoder
from treewright.data.templates import Atom, Template, TemplateLanguage
from treewright.data.vocab import Vocabulary
from treewright.errors import InputError
from treewright.parsing.constituent.atoms import ATOMS, read_atoms
from treewright.parsing.dependency import labeler
from treewright.parsing.dependency.features import TemplateSet
from treewright.parsing.dependency.features import compile_templates as compile_parts
from treewright.rerank import templates as trees
from treewright.srl import identification, predicates
from treewright.srl.codes import join_codes
from treewright.srl.features import read_templates
from treewright.tagging import lemmas, tagger
from treewright.tagging.classifier import compile_templates

WORDS = TemplateLanguage(["word", "tag"], roles=["h", "gg"], max_offset=2, max_atoms=2, has_distance=True)
EXPECTED = "expected ROLE[OFFSET].ATTRIBUTE (roles: h, gg; offsets: -2 to +2; attributes: word, tag)"
NAMES = TemplateLanguage(["path", "voice"])


def test_a_line_becomes_atoms_and_a_flag_for_the_distance():
    assert WORDS.parse("h.word gg-1.tag *\n\n  gg+2.word\n") == [
        Template((Atom("h", 0, "word"), Atom("gg", -1, "tag")), with_distance=True),
        Template((Atom("gg", 2, "word"),)),
    ]


def test_without_roles_atoms_are_attributes():
    assert NAMES.parse("voice path") == [Template((Atom("", 0, "voice"), Atom("", 0, "path")))]
    assert NAMES.parse("voice path")[0].attributes == ["voice", "path"]


def test_no_lines_are_no_templates():
    assert WORDS.parse("\n  \n") == []


def test_a_set_can_be_asked_for_by_its_name():
    named = TemplateLanguage(["path", "voice"], sets={"all": "path\nvoice\npath voice"})
    assert [str(template) for template in named.parse("all")] == ["path", "voice", "path voice"]
    with pytest.raises(InputError, match=r"template 'al' has 'al'; expected all or lines of path, voice$"):
        named.parse("al")


@pytest.mark.parametrize("line", ["h.word", "gg-2.tag h+1.word *"])
def test_templates_are_written_as_they_are_read(line):
    assert str(WORDS.parse(f"  {line.replace(' ', '   ')} ")[0]) == line


@pytest.mark.parametrize(
    "atom",
    [
        "x.word",
        "h.lemma",
        "h",
        "word",
        ".word",
        "h.",
        "h-3.tag",
        "h+0.tag",
        "h1.tag",
        "h+.tag",
        "hgg.tag",
        "*",
    ],
)
def test_an_atom_that_means_nothing_is_named_with_its_line(atom):
    with pytest.raises(InputError) as error:
        WORDS.parse(f"h.tag\n  {atom} h.tag")
    assert str(error.value) == f"template '{atom} h.tag' has '{atom}'; {EXPECTED}"


@pytest.mark.parametrize(
    ("language", "line", "message"),
    [
        (WORDS, "*", f"template '*' has no atom; {EXPECTED}"),
        (WORDS, "h.tag h.tag h.tag *", "template 'h.tag h.tag h.tag *' has 3 atoms; expected at most 2"),
        (NAMES, "path *", "template 'path *' has '*'; expected one or more of path, voice"),
        (NAMES, "h.path", "template 'h.path' has 'h.path'; expected one or more of path, voice"),
        (
            TemplateLanguage(["tag"], roles=["h"]),
            "h-1.tag",
            "template 'h-1.tag' has 'h-1.tag'; expected ROLE.ATTRIBUTE (roles: h; attributes: tag)",
        ),
    ],
)
def test_what_a_set_does_not_have_is_refused(language, line, message):
    with pytest.raises(InputError) as error:
        language.parse(line)
    assert str(error.value) == message


def compile_tags():
    fixed = compile_templates(tagger.FIXED_TEMPLATES)
    return *fixed, *compile_templates(tagger.MOVING_TEMPLATES, first_number=len(fixed.numbers))


def compile_atoms():
    table = read_atoms(ATOMS, [7, 5, 4, 3, 7, 7, 20, 10, 5])
    return *table.arrays, table.n_features


def compile_trees():
    texts = [repr((each.atoms, sorted(each.needed), each.key)) for each in trees.PARSED]
    return [np.frombuffer(text.encode(), np.uint8) for text in texts]


def make_codes(names, templates):
    """Return the codes of random values, by names, in two rows."""
    values = np.random.default_rng(0).integers(2**32, size=(2, len(names)), dtype=np.uint32)
    return [join_codes(values, names, templates)]


def code_arguments(templates):
    return make_codes(sorted(identification.ALL_VALUES), templates)


def digest(arrays):
    total = hashlib.sha256()
    for array in map(np.asarray, arrays):
        total.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return total.hexdigest()[:16]


DEFAULTS = TemplateSet()
COMPILED = {
    "arc": (compile_parts(DEFAULTS.arc, "arc"), "876751f8fe4921c1"),
    "pair": (compile_parts(DEFAULTS.pair, "pair"), "8dbdb7eea0dc4672"),
    "grandchild": (compile_parts(DEFAULTS.grandchild, "grandchild"), "5279a0e2377c272c"),
    "grand_sibling": (compile_parts(DEFAULTS.grand_sibling, "grand_sibling"), "2f92fbd3a3ad8225"),
    "triple": (compile_parts(DEFAULTS.triple, "triple"), "ac40f3a42a979b67"),
    "pruning": (compile_parts(DEFAULTS.pruning, "arc"), "dc9f7ee8c91d7577"),
    "label": (compile_parts(labeler.OWN_TEMPLATES, "label"), "7d4e5328acd516e7"),
    "label_child": (compile_parts(labeler.CHILD_TEMPLATES, "label_child"), "1055033af93fd4e4"),
    "label_sibling": (compile_parts(labeler.SIBLING_TEMPLATES, "label_sibling"), "1d2a0e422e6ecf7e"),
    "tags": (compile_tags(), "6c9cb070e8faa009"),
    "lemmas": (compile_templates(lemmas.TEMPLATES), "1b1e950e4da17ced"),
    "constituents": (compile_atoms(), "5fd91e441fc170e1"),
    "trees": (compile_trees(), "910aa77699d7e338"),
    "arcs": (ArcEncoder(Vocabulary([]), Vocabulary([]))._native, "a81bce5c1dadf3f2"),
    "standard": (code_arguments(read_templates("standard")), "f147abb5b4fd83f9"),
    "extended": (code_arguments(read_templates("extended")), "85e1340179760a43"),
    "candidates": (
        code_arguments(identification.LANGUAGE.parse(identification.TEMPLATES)),
        "68df9109dc7947fb",
    ),
    "predicates": (
        make_codes(list(predicates.VALUES), predicates.LANGUAGE.parse(predicates.TEMPLATES)),
        "945cbf24201ddcd5",
    ),
}
"""What default templates compile to, and its digest: the keys of all weights follow from it, so that models
learn and predict something else if it changes."""


@pytest.mark.parametrize("name", COMPILED)
def test_default_templates_compile_to_the_keys_of_known_weights(name):
    arrays, expected = COMPILED[name]
    assert digest(arrays) == expected
