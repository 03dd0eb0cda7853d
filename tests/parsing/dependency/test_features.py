from itertools import pairwise

import numpy as np
import pytest

import treewright as tw
from treewright.errors import InputError
from treewright.native.dependency.features import MAX_EXTRA_KEYS, N_EXTRA_ROWS, ROOT
from treewright.parsing.dependency.features import (
    ATTRIBUTES,
    ROLES,
    Encoder,
    TemplateSet,
    compile_templates,
    max_keys,
    shape,
)

EXPECTED = (
    "expected ROLE[OFFSET].ATTRIBUTE (roles: h, m; offsets: -2 to +2; attributes: "
    "pos, tag, word, lemma, feats, suffix, prefix, shape)"
)


def tree_of(*tokens):
    """Make a sentence of words with lemma, universal tag, Penn tag and features."""
    words, lemmas, upos, xpos, feats = (list(column) for column in zip(*tokens, strict=True))
    heads = [*range(len(words))]
    return tw.DepTree(words, heads, ["dep"] * len(words), lemmas=lemmas, upos=upos, xpos=xpos, feats=feats)


SMALL = tree_of(
    ("The", "the", "DET", "DT", "_"),
    ("McCoys", "mccoy", "PROPN", "NNPS", "Case=Nom|Number=Plur"),
    ("slept", "sleep", "VERB", "VBD", "Tense=Past|Number=Plur"),
)


@pytest.fixture(scope="module")
def trees():
    return tw.make_treebank(20).dependencies


def strings(encoder, row):
    """Return the attribute values of a row as strings, None for unknown ones."""
    vocabularies = encoder.vocabularies[: len(ATTRIBUTES)]
    return [
        vocabulary[int(number)] if number else None
        for vocabulary, number in zip(vocabularies, row, strict=True)
    ]


def test_templates_become_runs_of_atoms():
    templates = compile_templates("h.word m-1.tag *\n  m+2.shape\n", "arc")
    assert templates.first_atom.tolist() == [0, 2, 3]
    assert templates.role.tolist() == [ROLES["h"], ROLES["m"], ROLES["m"]]
    assert templates.offset.tolist() == [0, -1, 2]
    assert [ATTRIBUTES[at] for at in templates.attribute] == ["word", "tag", "shape"]
    assert templates.with_distance.tolist() == [True, False]


def test_no_templates_are_no_error():
    templates = compile_templates("", "arc")
    assert templates.first_atom.tolist() == [0]
    assert max_keys(templates) == MAX_EXTRA_KEYS


def test_most_keys_are_those_of_the_kind_with_most_templates():
    few = compile_templates("h.word", "arc")
    many = compile_templates("h.word *\nm.word *\nm.tag", "arc")
    assert max_keys(few, many) == 5 + MAX_EXTRA_KEYS


@pytest.mark.parametrize(
    ("line", "atom"),
    [
        ("h.word s.word", "s.word"),
        ("h.word x.tag *", "x.tag"),
        ("h.words", "h.words"),
        ("h.", "h."),
        ("hword", "hword"),
        ("m-3.tag h.tag", "m-3.tag"),
        ("m1.tag", "m1.tag"),
        ("m+.tag", "m+.tag"),
        ("hm.tag", "hm.tag"),
        ("h.tag * m.tag", "*"),
    ],
)
def test_an_atom_that_means_nothing_is_named_with_its_line(line, atom):
    with pytest.raises(InputError) as error:
        compile_templates(f"h.tag m.tag\n  {line}", "arc")
    assert str(error.value) == f"template {line!r} has {atom!r}; {EXPECTED}"


def test_all_templates_that_come_with_the_library_compile():
    templates = TemplateSet()
    for name in ("arc", "pair", "grandchild", "grand_sibling", "triple", "pruning"):
        text = getattr(templates, name)
        lines = text.strip().splitlines()
        assert len(set(lines)) == len(lines)
        assert compile_templates(
            text, "arc" if name == "pruning" else name
        ).with_distance.sum() == text.count("*")


def test_words_are_encoded_by_their_attributes():
    encoder = Encoder.from_trees([SMALL])
    corpus = encoder.encode([SMALL])
    found = [strings(encoder, corpus.values[ROOT + 1 + at]) for at in range(3)]
    assert found == [
        ["DET", "DT", "the", "the", "_", "the", "the", "Xx"],
        ["PROPN", "NNPS", "mccoys", "mccoy", "Case=Nom|Number=Plur", "oys", "mcc", "XxXx"],
        ["VERB", "VBD", "slept", "sleep", "Tense=Past|Number=Plur", "ept", "sle", "x"],
    ]


def test_morphological_features_stand_with_their_words():
    encoder = Encoder.from_trees([SMALL])
    corpus = encoder.encode([SMALL, SMALL])
    for start in corpus.first_row[:-1]:
        found = [
            [
                encoder.vocabularies[-1][one]
                for one in corpus.morphs[slice(*corpus.first_morph[row : row + 2])]
            ]
            for row in range(start, start + len(SMALL) + N_EXTRA_ROWS)
        ]
        expected = [["Case=Nom", "Number=Plur"], ["Tense=Past", "Number=Plur"]]
        assert found == [*[[]] * (ROOT + 2), *expected, [], []]


def test_a_missing_tag_is_replaced_by_the_other_and_a_missing_lemma_by_the_form():
    tree = tree_of(("Cats", "_", "NOUN", "_", "_"), ("purr", "_", "_", "VBP", "_"))
    encoder = Encoder.from_trees([tree])
    rows = encoder.encode([tree]).values[ROOT + 1 :]
    assert strings(encoder, rows[0])[:4] == ["NOUN", "NOUN", "cats", "cats"]
    assert strings(encoder, rows[1])[:4] == ["VBP", "VBP", "purr", "purr"]


def test_what_was_not_met_in_training_is_unknown():
    encoder = Encoder.from_trees([SMALL])
    other = tree_of(("zebra-9", "zebra", "NOUN", "NNS", "Case=Nom|Gender=Fem"))
    corpus = encoder.encode([other])
    assert strings(encoder, corpus.values[ROOT + 1]) == [None] * 8
    assert [encoder.vocabularies[-1][one] for one in corpus.morphs] == ["Case=Nom"]


def test_rows_that_are_no_words_have_values_that_no_word_has(trees):
    encoder = Encoder.from_trees(trees)
    corpus = encoder.encode(trees)
    first = corpus.first_row[0]
    special = corpus.values[first : first + ROOT + 1]
    words = np.concatenate(
        [corpus.values[first + ROOT + 1 : last - 2] for first, last in pairwise(corpus.first_row)]
    )
    for at in range(len(ATTRIBUTES)):
        assert len(set(special[:, at])) == ROOT + 1
        assert not set(special[:, at]) & {0, *words[:, at]}
    for first, last in pairwise(corpus.first_row):
        assert (corpus.values[first : first + ROOT + 1] == special).all()
        assert (corpus.values[last - 2 : last] == special[2]).all()


def test_arrays_have_the_shapes_and_types_of_compiled_code(trees):
    corpus = Encoder.from_trees(trees).encode(trees)
    n_rows = sum(len(tree) + N_EXTRA_ROWS for tree in trees)
    assert corpus.n_sentences == len(trees)
    assert corpus.first_row.tolist() == np.cumsum([0, *(len(t) + N_EXTRA_ROWS for t in trees)]).tolist()
    assert (corpus.values.shape, corpus.values.dtype) == ((n_rows, len(ATTRIBUTES)), np.int32)
    assert (corpus.first_morph.shape, corpus.first_morph.dtype) == ((n_rows + 1,), np.int64)
    assert (corpus.morphs.shape, corpus.morphs.dtype) == ((corpus.first_morph[-1],), np.int32)
    assert (corpus.heads.shape, corpus.heads.dtype) == ((n_rows,), np.int32)


def test_heads_stand_by_the_words_and_are_unknown_elsewhere(trees):
    corpus = Encoder.from_trees(trees).encode(trees)
    for tree, first, last in zip(trees, corpus.first_row, corpus.first_row[1:], strict=False):
        assert corpus.heads[first:last].tolist() == [*[-1] * (ROOT + 1), *tree.heads, -1, -1]


def test_a_sentence_without_words_has_only_extra_rows():
    empty = tw.DepTree([], [], [])
    encoder = Encoder.from_trees([SMALL, empty])
    corpus = encoder.encode([empty, SMALL, empty])
    n = len(SMALL)
    assert np.diff(corpus.first_row).tolist() == [N_EXTRA_ROWS, N_EXTRA_ROWS + n, N_EXTRA_ROWS]
    assert strings(encoder, corpus.values[N_EXTRA_ROWS + ROOT + 1])[2] == "the"
    assert (corpus.heads[:N_EXTRA_ROWS] == -1).all()


def test_no_sentences_make_an_empty_corpus():
    corpus = Encoder.from_trees([]).encode([])
    assert corpus.n_sentences == 0
    assert corpus.values.shape == (0, len(ATTRIBUTES))


def test_sentences_are_encoded_alike_alone_and_together(trees):
    encoder = Encoder.from_trees(trees)
    together = encoder.encode(trees)
    for number, tree in enumerate(trees):
        alone = encoder.encode([tree])
        rows = slice(together.first_row[number], together.first_row[number + 1])
        assert (together.values[rows] == alone.values).all()


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("McCoy-7", "XxXx-d"),
        ("the", "x"),
        ("NATO", "X"),
        ("1,000.50", "d,d.d"),
        ("a1b2c3d4", "xdxdxd"),
        ("...", "."),
        ("Ärger", "Xx"),
        ("", ""),
    ],
)
def test_shape_is_the_kinds_of_characters_with_runs_as_one(word, expected):
    assert shape(word) == expected


def test_blank_lines_between_templates_mean_nothing():
    spaced, dense = (compile_templates(text, "arc") for text in ("\nh.tag\n\n m.tag *\n\n", "h.tag\nm.tag *"))
    assert [one.tolist() for one in spaced] == [one.tolist() for one in dense]


def test_an_atom_without_a_word_is_refused():
    with pytest.raises(InputError, match=r"template '\.word' has '\.word'; expected ROLE"):
        compile_templates(".word", "arc")


def test_templates_that_are_no_text_are_refused():
    with pytest.raises(InputError, match="arc is 3; expected a string"):
        tw.TemplateSet(arc=3)


def test_an_encoder_without_all_vocabularies_is_refused():
    state = Encoder.from_trees(tw.make_treebank(3, random_state=0).dependencies).get_state()
    state.values["vocabularies"] = state.values["vocabularies"][:-1]
    with pytest.raises(InputError, match="expected a vocabulary for each attribute of words"):
        Encoder.from_state(state)
