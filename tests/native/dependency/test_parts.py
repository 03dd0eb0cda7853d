from collections import Counter

import numpy as np
import pytest
from oracle.dependency import parts as twin
from oracle.dependency.features import random_corpus, random_weights, unpack

from treewright.native.dependency import features, parts
from treewright.parsing.dependency.features import compile_templates

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

SHIFT = np.uint64(52)
TEMPLATES = [compile_templates(twin.TEMPLATES[kind], kind) for kind in twin.KINDS]
ROLES = {
    "h": features.HEAD,
    "m": features.MODIFIER,
    "s": features.SIBLING,
    "g": features.GRANDPARENT,
    "t": features.OUTER,
}
CASES = [(0, 1, 1.0), (1, 4, 0.0), (2, 5, 1.0), (3, 6, 0.6), (4, 7, 0.3)]


def random_arcs(seed, n, density):
    keep = np.random.default_rng(seed).random((n + 1, n + 1)) < density
    keep[:, 0] = False
    np.fill_diagonal(keep, False)
    return keep, set(zip(*(at.tolist() for at in np.nonzero(keep)), strict=True))


def sides(words):
    """Count the modifiers of each head to each side."""
    return Counter((head, int(head < modifier)) for _, head, modifier in words)


@pytest.mark.parametrize(("seed", "n", "density"), CASES)
def test_arcs_stand_by_head_and_side_the_nearest_first(seed, n, density):
    keep, arcs = random_arcs(seed, n, density)
    found = parts.arrange(keep)
    listed = twin.list_parts(arcs, n)["arc"]
    assert [("arc", *arc) for arc in zip(found.head.tolist(), found.modifier.tolist(), strict=True)] == listed
    counts = sides(listed)
    assert np.diff(found.first_arc).tolist() == [counts[group // 2, group % 2] for group in range(2 * n + 2)]


@pytest.mark.parametrize(("seed", "n", "density"), CASES)
def test_arcs_into_each_word_are_listed(seed, n, density):
    keep, _ = random_arcs(seed, n, density)
    found = parts.arrange(keep)
    for word in range(n + 1):
        numbers = found.arcs_in[found.first_in[word] : found.first_in[word + 1]]
        assert found.modifier[numbers].tolist() == [word] * len(numbers)
        assert found.head[numbers].tolist() == np.flatnonzero(keep[:, word]).tolist()


@pytest.mark.parametrize(("seed", "n", "density"), CASES)
def test_pairs_and_triples_are_numbered_without_gaps(seed, n, density):
    keep, arcs = random_arcs(seed, n, density)
    found = parts.arrange(keep)
    listed = twin.list_parts(arcs, n)
    sizes = np.diff(found.first_arc).tolist()
    pairs = [
        parts.pair_number(found, group, j, k)
        for group, size in enumerate(sizes)
        for k in range(size + 1)
        for j in range(-1, k)
    ]
    triples = [
        parts.triple_number(found, group, i, j, k)
        for group, size in enumerate(sizes)
        for k in range(size)
        for j in range(k)
        for i in range(j)
    ]
    assert pairs == list(range(len(listed["pair"]))) == list(range(found.first_pair[-1]))
    assert triples == list(range(len(listed["triple"]))) == list(range(found.first_triple[-1]))


@pytest.mark.parametrize(("seed", "n", "density"), CASES)
def test_there_is_one_number_for_each_grandchild_and_grand_sibling(seed, n, density):
    keep, arcs = random_arcs(seed, n, density)
    found = parts.arrange(keep)
    listed = twin.list_parts(arcs, n)
    for kind, first in (
        ("grandchild", found.first_grandchild),
        ("grand_sibling", found.first_grand_sibling),
    ):
        assert len(set(listed[kind])) == len(listed[kind])
        counts = Counter(part[2] for part in listed[kind])
        assert np.diff(first).tolist() == [counts[head] for head in range(n + 1)]


def place(part, name):
    """Place a part with the native function of its kind."""
    functions = {
        "arc": parts.place_arc,
        "pair": parts.place_pair,
        "grandchild": parts.place_grandchild,
        "grand_sibling": parts.place_grand_sibling,
        "triple": parts.place_triple,
    }
    kind, *words = name
    functions[kind](part, *words)


@pytest.mark.parametrize("kind", twin.KINDS)
def test_parts_hold_the_rows_of_their_words(kind):
    _, arcs = random_arcs(0, 6, 0.7)
    for name in twin.list_parts(arcs, 6)[kind]:
        part = np.zeros(features.PART_SIZE, np.int64)
        place(part, name)
        placed = twin.place(name)
        assert {letter: part[ROLES[letter]] for letter in placed.rows} == placed.rows
        assert (part[features.SITUATION], part[features.DISTANCE]) == (placed.situation, placed.distance)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_scores_equal_sums_of_weights_by_listed_part(order):
    rng = np.random.default_rng(order)
    keep, arcs = random_arcs(order, 5, 0.7)
    _, values, first_morph, morphs, _ = random_corpus(rng, [[0] * 5])
    sentence = features.make_sentence(values, first_morph, morphs)
    weights = random_weights(rng, 1 << 12)
    model = parts.PartModel(*TEMPLATES, order, SHIFT)
    scores = parts.score_parts(parts.arrange(keep), model, sentence, weights)
    words = unpack(sentence)
    for kind, names in twin.list_parts(arcs, 5).items():
        expected = [
            sum(float(weights[key >> 52]) for key in twin.part_keys(twin.TEMPLATES, words, name))
            if kind in twin.KINDS_OF_ORDER[order]
            else 0.0
            for name in names
        ]
        assert getattr(scores, kind).tolist() == expected
