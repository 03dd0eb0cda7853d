"""Cuts, inferences and their features, compared with items that hold others."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.constituent import atoms as atom_twin
from oracle.constituent import states as twin
from strategies import phrase_trees

from treewright.data.consttree import ConstTree
from treewright.data.heads import PUNCTUATION, RULES
from treewright.native.constituent import atoms as native_atoms
from treewright.native.constituent import states as native
from treewright.native.learn.boosting import DecisionTree, FeatureRows
from treewright.parsing.constituent.atoms import ATOMS, read_atoms
from treewright.parsing.constituent.inferences import (
    PredicateEncoder,
    Symbols,
    TaggedSentence,
    TrainingSet,
    brackets,
    collect_symbols,
    fill_words,
    make_items,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning"),
]
NAMES = sorted(
    {name for rules in RULES.values() for name in rules.searches}
    | {
        name
        for rules in RULES.values()
        for steps in rules.searches.values()
        for _, each in steps
        for name in each
    }
)
KNOWN = sorted(RULES["collins"].searches)
SYMBOLS = Symbols(
    ["TOP", *KNOWN, "ODD"], sorted({*NAMES, *PUNCTUATION, "CC"} - {*KNOWN, "TOP", "ODD"}), [], []
)
options = st.fixed_dictionaries(
    {"is_shifting": st.booleans(), "max_children": st.integers(2, 5), "only_known": st.booleans()}
)


def make_training(trees, is_shifting=True, max_children=5, only_known=True):
    encoder = PredicateEncoder(collect_symbols(trees, min_count=2))
    heads, table = encoder.make_heads("collins"), read_atoms(ATOMS, encoder.sizes())
    options = {"is_shifting": is_shifting, "max_children": max_children, "only_known": only_known}
    return encoder, TrainingSet(trees, list(map(as_sentence, trees)), encoder, heads, table, **options)


def as_sentence(tree):
    """Return the words of a tree; behind those of every other length stands a mark."""
    words = tree.words()
    return TaggedSentence(words, tree.tags(), (words[0], ".") if len(words) % 2 else None)


def head_finder(encoder, rules="collins"):
    names = encoder.symbol_names
    return lambda label, symbols: RULES[rules].head_child(names[label], [names[each] for each in symbols])


def gold_states(tree, encoder, is_shifting):
    """List the states on the way to a tree, each with the inference that is right in it."""
    found, find_head = [], head_finder(encoder)
    state = twin.initial(encoder.encode(as_sentence(tree)))
    for label, begin, size in brackets(tree):
        while is_shifting and state.focus > begin:
            shift = twin.Inference(state.focus, 0, encoder.n_labels)
            found.append((state, shift))
            state = twin.apply(state, shift, find_head)
        right = twin.Inference(begin, size, encoder.label_number(label))
        found.append((state, right))
        state = twin.apply(state, right, find_head)
    assert twin.is_complete(state)
    return found


def make_rules(training, encoder, is_shifting):
    grammar = training.grammar
    tables = ({(int(a), int(b)) for a, b in np.argwhere(each)} for each in grammar[:3])
    return twin.Rules(encoder.n_labels, grammar.max_children, *tables, is_shifting)


@pytest.mark.parametrize("rules", sorted(RULES))
@given(data=st.data())
def test_heads_equal_those_of_head_rules(rules, data):
    encoder = PredicateEncoder(SYMBOLS)
    heads, names = encoder.make_heads(rules), encoder.symbol_names
    label = data.draw(st.integers(0, encoder.n_labels - 1))
    wanted = [name for _, each in RULES[rules].searches.get(names[label], ()) for name in each]
    likely = st.sampled_from([*wanted, "CC", ",", "CC"]).map(names.index)
    children = data.draw(st.lists(likely | st.integers(0, len(names) - 1), min_size=1, max_size=7))
    items = make_items(len(children) + 2)
    items.values[2:, native.LABEL] = children
    frontier = np.arange(len(children) + 2, dtype=np.int32)
    found = native.find_head(heads, items, frontier, 2, len(children), label)
    assert found == head_finder(encoder, rules)(label, children)


def test_the_head_hands_over_to_the_first_conjunct_past_punctuation():
    encoder = PredicateEncoder(SYMBOLS)
    names = encoder.symbol_names
    items = make_items(5)
    items.values[:, native.LABEL] = [names.index(each) for each in ("NN", ",", "CC", ",", "NN")]
    frontier = np.arange(5, dtype=np.int32)
    heads = encoder.make_heads("collins")
    assert native.find_head(heads, items, frontier, 0, 5, names.index("NP")) == 0
    assert native.find_head(heads, items, frontier, 1, 4, names.index("NP")) == 3


@given(st.lists(phrase_trees(), min_size=1, max_size=2), options)
def test_states_are_those_of_replaying_trees_by_hand(trees, options):
    encoder, training = make_training(trees, **options)
    found, cuts = training.items, training.cuts
    expected = [each for tree in trees for each, _ in gold_states(tree, encoder, options["is_shifting"])]
    assert training.n_states == len(expected)
    for number, state in enumerate(expected):
        frontier = cuts.frontier[cuts.indptr[number] : cuts.indptr[number + 1]]
        assert found.starts[frontier].tolist() == [item.start for item in state.frontier]
        assert found.ends[frontier].tolist() == [item.end for item in state.frontier]
        assert found.values[frontier].tolist() == [
            [item.values[name] for name in twin.PREDICATES] for item in state.frontier
        ]
        is_only = [len(item.children) == 1 for item in state.frontier]
        assert (found.onlys[frontier] >= 0).tolist() == is_only
        assert cuts.focus[number] == state.focus
        assert cuts.n_words[number] == len(state.words)


@given(st.lists(phrase_trees(6), min_size=1, max_size=2), options)
def test_what_is_considered_equals_the_definition(trees, options):
    encoder, training = make_training(trees, **options)
    rules = make_rules(training, encoder, options["is_shifting"])
    inferences = training.inferences
    found = [set() for _ in range(training.n_states)]
    for label in range(training.n_classifiers):
        is_used = np.zeros(len(inferences.states), dtype=bool)
        native.mark_considered(training.grammar, training.items, training.cuts, inferences, label, is_used)
        for at in np.flatnonzero(is_used):
            found[inferences.states[at]].add((inferences.begins[at], inferences.sizes[at], label))
    states = [each for tree in trees for each, _ in gold_states(tree, encoder, options["is_shifting"])]
    assert found == [set(twin.considered(state, rules)) for state in states]


@given(st.lists(phrase_trees(), min_size=1, max_size=2), options, st.integers(0, 2**32 - 1))
def test_features_equal_those_of_the_table_by_definition(trees, options, seed):
    encoder, training = make_training(trees, **options)
    states = [each for tree in trees for each, _ in gold_states(tree, encoder, options["is_shifting"])]
    find_head, inferences = head_finder(encoder), training.inferences
    rng = np.random.default_rng(seed)
    for label in rng.permutation(training.n_classifiers)[:4].tolist():
        examples = training.examples(label)
        chosen = np.sort(rng.permutation(examples.n_examples)[:5])
        first, columns = examples.extract(chosen)
        numbers = examples._numbers[chosen]
        for number, (begin_at, end_at) in zip(numbers, pairwise(first.tolist()), strict=True):
            state = states[inferences.states[number]]
            begin, size = (int(each[number]) for each in inferences[1:])
            symbols = [item.values["label"] for item in state.frontier[begin : begin + size]]
            head = find_head(label, symbols) if size else 0
            expected = atom_twin.features(ATOMS, encoder.sizes(), state, begin, size, head)
            assert columns[begin_at:end_at].tolist() == sorted(expected)


@given(st.lists(phrase_trees(), min_size=1, max_size=2), options, st.integers(0, 2**32 - 1))
def test_inferences_fall_into_the_leaves_that_their_features_lead_to(trees, options, seed):
    _, training = make_training(trees, **options)
    rng = np.random.default_rng(seed)
    label = int(rng.integers(training.n_classifiers))
    examples = training.examples(label)
    first, columns = examples.extract(np.arange(examples.n_examples))
    seen = np.unique(columns) if len(columns) else np.zeros(1, dtype=np.int32)
    asked = np.where(rng.random(31) < 0.8, rng.choice(seen, 31), rng.integers(training.table.n_features))
    nodes = np.arange(63, dtype=np.int32)
    is_leaf = nodes >= 31
    links = (np.where(is_leaf, -1, 2 * nodes + side).astype(np.int32) for side in (1, 2))
    tree = DecisionTree(np.where(is_leaf, -1, np.resize(asked, 63)).astype(np.int32), *links, np.zeros(63))
    leaves = np.zeros(examples.n_examples, dtype=np.int32)
    examples.percolate(tree, leaves)
    for leaf, (begin, end) in zip(leaves.tolist(), pairwise(first.tolist()), strict=True):
        features, node = set(columns[begin:end].tolist()), 0
        while tree.features[node] >= 0:
            node = (tree.present if tree.features[node] in features else tree.absent)[node]
        assert leaf == node


def features_of(table, sentence, begin, size, label=1):
    """Return the features of one inference over words, by both."""
    encoder = PredicateEncoder(Symbols(["TOP", "NP"], [".", "NN"], [".", "NN"], ["a", "b", "c", "!"]))
    rows = encoder.encode(sentence)
    sizes, n_words = encoder.sizes(), len(rows) - 1
    items = make_items(n_words + 1)
    fill_words(items, 0, rows)
    cuts = native.Cuts(
        np.array([0, n_words]), *(np.array(each, np.int32) for each in (range(n_words), [0], [0], [n_words]))
    )
    inferences = native.Inferences(
        *(np.array([each], kind) for each, kind in ((0, "i4"), (begin, "i2"), (size, "i2")))
    )
    rows_out = FeatureRows(np.zeros(2, np.int64), np.zeros(1000, np.int32))
    atoms, heads = read_atoms(table, sizes).arrays, encoder.make_heads("collins")
    source = native_atoms.Source(inferences, cuts, items, heads)
    assert native_atoms.extract_examples(atoms, source, label, np.zeros(1, np.int32), rows_out)
    expected = atom_twin.features(table, sizes, twin.initial(rows), begin, size, size - 1)
    found = rows_out.columns[: rows_out.indptr[1]].tolist()
    assert found == sorted(expected)
    return found


def test_the_end_stands_just_behind_the_last_item_and_the_last_word():
    ended = TaggedSentence(["a", "b", "c"], ["NN"] * 3, ("!", "."))
    number = {"a": 1, "b": 2, "c": 3, "!": 4}
    for kind in ("right", "word-after"):
        for argument, begin, size, word in [
            (1, 0, 1, "b"), (1, 0, 3, "!"), (2, 0, 2, "!"), (3, 0, 1, "!"), (1, 2, 0, "c"), (2, 2, 0, "!")
        ]:  # fmt: skip
            assert features_of(f"{kind} {argument} word", ended, begin, size) == [number[word]]
        for argument, begin, size in ((2, 0, 3), (4, 0, 1), (3, 2, 0)):
            assert features_of(f"{kind} {argument} word", ended, begin, size) == []


@pytest.mark.parametrize(("begin", "size"), [(0, 1), (0, 3), (2, 1), (1, 0)])
def test_the_end_is_the_same_wherever_an_inference_is(begin, size):
    ended = TaggedSentence(["a", "b", "c"], ["NN"] * 3, ("!", "."))
    assert features_of("end word", ended, begin, size) == [4]
    assert features_of("end tag", ended, begin, size) == [1]
    assert features_of("end word", ended._replace(end=None), begin, size) == [0]


def test_the_end_is_not_among_all_that_stands_right():
    ended = TaggedSentence(["a", "b", "c"], ["NN"] * 3, ("!", "."))
    assert features_of("all-right word", ended, 0, 1) == [2, 3]
    assert features_of("all-right word", ended, 0, 3) == []
    assert features_of("n-right", ended, 0, 3) == [0]


def test_the_inner_word_is_the_headword_of_the_last_child():
    tree = ConstTree.parse("(TOP (S (NP (NN a)) (VP (VBD b) (NP (DT a) (NN c)))) (NN c) (NN b))")
    encoder, training = make_training([tree])
    words = ["", *encoder.symbols.words]
    values = training.items.values
    found = {
        encoder.symbol_names[row[native.LABEL]]: words[row[native.INNER]]
        for row in values[len(tree.words()) + 1 :].tolist()
    }
    assert {name: found[name] for name in ("VP", "S", "TOP")} == {"VP": "c", "S": "b", "TOP": "b"}
    assert not values[: len(tree.words()) + 1, native.INNER].any()


@given(st.lists(st.integers(0, 9), max_size=12))
def test_few_numbers_are_sorted_and_told_once(numbers):
    out = np.array([99, *numbers, 99], dtype=np.int32)
    end = native_atoms.sort_unique(out, 1, len(numbers) + 1)
    assert out[1:end].tolist() == sorted(set(numbers))
    assert (out[0], out[-1]) == (99, 99)


def test_bins_grow_with_numbers():
    bins = [native.binned(number) for number in range(200)]
    assert bins == [twin.bin_of(number) for number in range(200)]
    assert bins == sorted(bins)


def test_extraction_tells_when_there_is_no_room():
    _, training = make_training([ConstTree.parse("(TOP (NP (DT a) (NN b)) (VP (VBD c)))")])
    chosen = np.zeros(1, dtype=np.int32)
    for room, is_enough in ((10, False), (10_000, True)):
        rows = FeatureRows(np.zeros(2, dtype=np.int64), np.zeros(room, dtype=np.int32))
        assert (
            native_atoms.extract_examples(training.table.arrays, training.source, 1, chosen, rows)
            == is_enough
        )
