"""What relations, tags and labels mean."""

import pytest

from treewright.data.descriptions import describe_relation, describe_tag, read_descriptions

RELATIONS = [
    "acl",
    "advcl",
    "advmod",
    "amod",
    "appos",
    "aux",
    "case",
    "cc",
    "ccomp",
    "clf",
    "compound",
    "conj",
    "cop",
    "csubj",
    "dep",
    "det",
    "discourse",
    "dislocated",
    "expl",
    "fixed",
    "flat",
    "goeswith",
    "iobj",
    "list",
    "mark",
    "nmod",
    "nsubj",
    "nummod",
    "obj",
    "obl",
    "orphan",
    "parataxis",
    "punct",
    "reparandum",
    "root",
    "vocative",
    "xcomp",
]
TAGS = [
    "ADJ",
    "ADP",
    "ADV",
    "AUX",
    "CCONJ",
    "DET",
    "INTJ",
    "NOUN",
    "NUM",
    "PART",
    "PRON",
    "PROPN",
    "PUNCT",
    "SCONJ",
    "SYM",
    "VERB",
    "X",
]


def test_all_universal_relations_and_tags_are_described():
    found = read_descriptions()
    assert sorted(found.relations) == RELATIONS
    assert set(TAGS) <= set(found.tags)


def test_every_relation_has_a_group_with_a_name():
    found = read_descriptions()
    assert {relation.group for relation in found.relations.values()} == set(found.groups)


@pytest.mark.parametrize("kind", ["relations", "tags", "phrases"])
def test_texts_are_sentences_with_examples_marked_in_pairs(kind):
    for meaning in getattr(read_descriptions(), kind).values():
        assert meaning.text.endswith(".")
        assert meaning.text.count("*") % 2 == 0
        assert not meaning.name.endswith(".")


def test_a_subtype_means_what_its_universal_part_does():
    assert describe_relation("nmod:poss") == describe_relation("nmod")
    assert describe_relation("made-up") is None
    assert describe_tag("made-up") is None
