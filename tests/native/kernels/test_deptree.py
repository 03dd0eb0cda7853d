import math

import numpy as np
import pytest
from oracle.kernels import deptree as twin

from treewright.native.kernels.deptree import (
    NOTHING_BETWEEN,
    Arcs,
    DependencyScratch,
    SentenceRuns,
    SharedArcs,
    Trees,
    add_logs,
    evaluate,
    evaluate_logs,
    list_arcs,
    may_share,
)

N_SENTENCES, N_TREES, N_WORDS, N_TEMPLATES, N_IDS = 3, 3, 5, 3, 3


def draw_heads(rng):
    """Draw a tree by hanging the words, in any order, on those that hang already."""
    heads = [0] * N_WORDS
    order = rng.permutation(N_WORDS)
    for number in range(1, N_WORDS):
        heads[order[number]] = int(rng.choice(order[:number])) + 1
    return heads


def draw(seed):
    """Draw trees of some sentences; return (sentence, heads) of each, and the features of their arcs."""
    rng = np.random.default_rng(seed)
    trees = [(sentence, draw_heads(rng)) for sentence in range(N_SENTENCES) for _ in range(N_TREES)]
    features = {}
    for sentence, heads in trees:
        for arc in twin.list_arcs(heads):
            ids = [(template, int(rng.integers(N_IDS))) for template in range(N_TEMPLATES)]
            ends = int(rng.integers(2))
            between = [("between", 10 * ends + tag) for tag in range(4) if rng.random() < 0.4]
            features.setdefault((sentence, arc), (ids, between))
    return trees, features


def pack(trees, features):
    arcs = sorted(features)
    between = [[number for _, number in features[arc][1]] for arc in arcs]
    ids = np.array([[number for _, number in features[arc][0]] for arc in arcs], dtype=np.int32)
    ends = np.array([some[0] // 10 if some else NOTHING_BETWEEN for some in between], dtype=np.int32)
    signatures = np.tile(np.column_stack([ids, ends]).astype(np.uint8), 2).view(np.uint64)
    sentences = [sentence for sentence, _ in arcs]
    place = [number - sentences.index(sentence) for number, sentence in enumerate(sentences)]
    first = np.cumsum([0, *map(len, between)])
    flat = np.array([number for some in between for number in some], dtype=np.int32)
    return Arcs(signatures, ids, ends, first, flat, np.array(place, dtype=np.int32)), pack_trees(trees, arcs)


def pack_trees(trees, arcs):
    numbers, above, right = [], [], []
    for sentence, heads in trees:
        ordered = sorted(twin.list_arcs(heads), key=lambda arc: (-depth(heads, arc[1]), -arc[1]))
        modifiers = [modifier for _, modifier in ordered]
        for head, modifier in ordered:
            numbers.append(arcs.index((sentence, (head, modifier))))
            above.append(modifiers.index(head) if head in modifiers else len(ordered))
            later = sorted(m for h, m in ordered if h == head and m > modifier)
            right.append(modifiers.index(later[0]) if later else len(ordered))
    first = np.arange(len(trees) + 1) * (N_WORDS - 1)
    return Trees(first, *(np.array(values, dtype=np.int32) for values in (numbers, above, right)))


def depth(heads, word):
    return 0 if heads[word - 1] == 0 else 1 + depth(heads, heads[word - 1])


def make_batch(packed, n_arcs, rows):
    sentences = np.array(rows) // N_TREES
    places = np.argsort(sentences, kind="stable")
    first = np.array([0, *(np.flatnonzero(np.diff(sentences[places])) + 1), len(rows)])
    arcs = np.empty(len(rows) * (N_WORDS - 1), dtype=np.int32)
    batch = SentenceRuns(np.array(rows)[places], places, first, np.zeros_like(first), arcs)
    list_arcs(packed, batch, np.zeros(n_arcs, dtype=np.bool_))
    return batch


def make_scratch(n_arcs):
    bounds = np.empty((2, n_arcs), dtype=np.int64)
    shared = SharedArcs(bounds[0], bounds[1], np.empty(n_arcs**2, dtype=np.int32), np.empty(n_arcs**2))
    tables = np.full((2, N_WORDS, N_WORDS), np.nan)
    return DependencyScratch(shared, np.full(n_arcs, -1, dtype=np.int32), tables[0], tables[1])


def list_counts(trees, features):
    for sentence, heads in trees:
        arcs = twin.list_arcs(heads)
        chosen = {arc: [*features[sentence, arc][0], *features[sentence, arc][1]] for arc in arcs}
        yield twin.list_feature_trees(arcs, chosen)


@pytest.mark.slow_cases
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("decay", [1.0, 0.5])
def test_values_are_the_numbers_of_common_sub_feature_trees(seed, decay):
    trees, features = draw(seed)
    arcs, packed = pack(trees, features)
    rng = np.random.default_rng(seed)
    rows_a, rows_b = rng.permutation(len(trees)), rng.integers(len(trees), size=5)
    batches = [make_batch(packed, len(features), rows) for rows in (rows_a, rows_b)]
    values = np.full((len(rows_a), len(rows_b)), np.nan)
    evaluate(arcs, packed, *batches, decay, make_scratch(len(features)), values)
    counts = list(list_counts(trees, features))
    expected = [[twin.kernel(counts[a], counts[b], decay) for b in rows_b] for a in rows_a]
    np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.slow_cases
@pytest.mark.parametrize("seed", range(5))
def test_logarithms_are_those_of_the_numbers(seed):
    trees, features = draw(seed)
    arcs, packed = pack(trees, features)
    pairs = np.array([(a, b) for a in range(len(trees)) for b in range(len(trees))])
    logs = np.full(len(pairs), np.nan)
    evaluate_logs(arcs, packed, pairs, 0.7, make_scratch(len(features)), logs)
    counts = list(list_counts(trees, features))
    expected = [twin.kernel(counts[a], counts[b], 0.7) for a, b in pairs]
    np.testing.assert_allclose(np.exp(logs), expected, rtol=1e-12)


def test_positions_are_forgotten_after_use():
    trees, features = draw(0)
    arcs, packed = pack(trees, features)
    scratch = make_scratch(len(features))
    batch = make_batch(packed, len(features), range(len(trees)))
    evaluate(arcs, packed, batch, batch, 1.0, scratch, np.empty((len(trees), len(trees))))
    assert (scratch.positions == -1).all()


def test_each_run_lists_its_arcs_once():
    trees, features = draw(1)
    _, packed = pack(trees, features)
    batch = make_batch(packed, len(features), [0, 1, 3])
    names = sorted(features)
    runs = [
        [names[arc] for arc in batch.arcs[batch.first_arc[run] : batch.first_arc[run + 1]]] for run in (0, 1)
    ]
    expected = [
        {(0, arc) for _, heads in trees[:2] for arc in twin.list_arcs(heads)},
        {(1, arc) for arc in twin.list_arcs(trees[3][1])},
    ]
    assert [set(run) for run in runs] == expected
    assert [len(run) for run in runs] == [len(run) for run in expected]


@pytest.mark.parametrize("seed", range(20))
def test_signatures_may_share_exactly_if_a_byte_is_the_same(seed):
    rng = np.random.default_rng(seed)
    signatures = (11 * rng.integers(24, size=(2, 16))).astype(np.uint8)
    found = may_share(signatures.view(np.uint64), 0, 1)
    assert bool(found) == bool((signatures[0] == signatures[1]).any())


def test_logarithms_of_sums_pass_over_zeros():
    assert add_logs(-math.inf, -math.inf) == -math.inf
    assert add_logs(2.0, -math.inf) == 2
    assert add_logs(math.log(2), math.log(3)) == pytest.approx(math.log(5))
