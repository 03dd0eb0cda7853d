"""Derivations of trees, and the examples that they give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import phrase_trees

import treewright as tw
from treewright.data.consttree import ConstTree
from treewright.data.heads import RULES
from treewright.native.constituent import states as native
from treewright.native.learn.boosting import DecisionTree
from treewright.parsing.constituent.atoms import ATOMS, read_atoms
from treewright.parsing.constituent.inferences import (
    PredicateEncoder,
    Symbols,
    TaggedSentence,
    TrainingSet,
    brackets,
    case_of,
    class_of,
    collect_symbols,
    derive,
    read_inside,
)
from treewright.parsing.constituent.preparation import keep_inside, prepare

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")
MANY = "(TOP (NP (DT a) (NN b) (NN c) (NN d) (NN e) (NN f)) (S (VP (VBD g))))"
options = st.fixed_dictionaries(
    {"is_shifting": st.booleans(), "max_children": st.integers(1, 6), "only_known": st.booleans()}
)


def make_training(trees, *, is_shifting=True, max_children=5, only_known=True):
    encoder = PredicateEncoder(collect_symbols(trees, min_count=2))
    heads, table = encoder.make_heads("collins"), read_atoms(ATOMS, encoder.sizes())
    return TrainingSet(
        trees,
        as_sentences(trees),
        encoder,
        heads,
        table,
        is_shifting=is_shifting,
        max_children=max_children,
        only_known=only_known,
    )


def as_sentences(trees):
    return [TaggedSentence(tree.words(), tree.tags(), (".", ".")) for tree in trees]


def replay(tree, actions, labels):
    line = [ConstTree(tag, [word]) for word, tag in zip(tree.words(), tree.tags(), strict=True)]
    for begin, size, label in actions:
        line[begin : begin + size] = [ConstTree(labels[label], line[begin : begin + size])]
    (root,) = line
    return root


def shares(training):
    """Return what positive and negative examples of each state count together, and how many there are."""
    sums, counts = np.zeros((2, training.n_states)), np.zeros((2, training.n_states), dtype=int)
    for label in range(training.n_classifiers):
        examples = training.examples(label)
        states = training.inferences.states[examples._numbers]
        for row, sign in enumerate((-1, 1)):
            is_chosen = examples.signs == sign
            np.add.at(sums[row], states[is_chosen], examples.biases[is_chosen])
            np.add.at(counts[row], states[is_chosen], 1)
    return sums, counts


@given(st.lists(phrase_trees(), min_size=1, max_size=3))
def test_a_derivation_gives_its_tree_back(trees):
    encoder = PredicateEncoder(collect_symbols(trees, min_count=1))
    derivations = derive(trees, encoder)
    assert derivations.n_words.tolist() == [len(tree.words()) for tree in trees]
    columns = [each.tolist() for each in derivations[2:]]
    for number, tree in enumerate(trees):
        begin, end = derivations.indptr[number : number + 2]
        actions = list(zip(*(column[begin:end] for column in columns), strict=True))
        assert replay(tree, actions, encoder.symbols.labels) == tree


@given(phrase_trees())
def test_brackets_go_from_right_to_left_and_from_below(tree):
    starts = [start for _, start, _ in brackets(tree)]
    assert starts == sorted(starts, reverse=True)
    assert brackets(tree)[-1] == ("TOP", 0, len(tree.children))
    assert len(starts) == tree.n_nodes - 2 * len(tree.words())


def test_brackets_of_a_chain_and_of_a_wide_node():
    assert brackets(ConstTree.parse(MANY)) == [
        ("VP", 6, 1),
        ("S", 6, 1),
        ("NP", 0, 6),
        ("TOP", 0, 2),
    ]


@given(st.lists(phrase_trees(), min_size=1, max_size=2), options)
def test_in_every_state_one_inference_is_right_unless_it_has_too_many_children(trees, options):
    training = make_training(trees, **options)
    _, (_, n_right) = shares(training)
    derivations, golds = training._derivations, training._golds
    is_wide = (derivations.sizes > options["max_children"]) & (derivations.labels != native.TOP)
    assert n_right.tolist() == [0 if gold >= 0 and is_wide[gold] else 1 for gold in golds]


@given(st.lists(phrase_trees(), min_size=1, max_size=2), options)
def test_every_state_counts_one_half_by_what_is_right_and_half_by_what_is_wrong(trees, options):
    sums, counts = shares(make_training(trees, **options))
    np.testing.assert_allclose(sums, 0.5 * (counts > 0), atol=1e-12)


@given(st.lists(phrase_trees(), min_size=1, max_size=2), st.booleans())
def test_what_was_not_seen_is_never_right(trees, is_shifting):
    known = make_training(trees, is_shifting=is_shifting)
    anything = make_training(trees, is_shifting=is_shifting, only_known=False)
    for label in range(known.n_classifiers):
        few, all_ = known.examples(label), anything.examples(label)
        assert set(few._numbers) <= set(all_._numbers)
        assert few._numbers[few.signs > 0].tolist() == all_._numbers[all_.signs > 0].tolist()


def test_a_label_that_is_always_too_wide_is_never_considered():
    training = make_training([ConstTree.parse(MANY)], only_known=False)
    label = collect_symbols([ConstTree.parse(MANY)], min_count=1).labels.index("NP")
    assert training.examples(label).n_examples == 0
    assert (shares(training)[1][1] == 0).sum() == 1


def test_with_the_original_strategy_starts_never_grow():
    trees = [tree for tree in treebank(30) if tree is not None]
    training = make_training(trees, is_shifting=False)
    inferences, cuts = training.inferences, training.cuts
    assert (inferences.begins <= cuts.focus[inferences.states]).all()
    starts = training.items.starts[cuts.frontier[cuts.indptr[:-1] + cuts.focus]]
    is_same = cuts.words[1:] == cuts.words[:-1]
    assert (np.diff(starts)[is_same] <= 0).all()


def treebank(n_sentences):
    return [
        prepare(tree).tree for tree in tw.make_treebank(n_sentences=n_sentences, random_state=5).constituents
    ]


def test_shift_reduce_has_fewer_examples_for_long_sentences():
    trees = treebank(30)
    sizes = [len(make_training(trees, is_shifting=each).inferences.states) for each in (True, False)]
    assert 3 * sizes[0] < sizes[1]


def test_an_example_is_a_few_bytes():
    inferences = make_training(treebank(5)).inferences
    assert sum(each.itemsize for each in inferences) <= 8


@pytest.mark.parametrize("is_shifting", [True, False])
def test_examples_fall_into_the_leaves_that_their_features_lead_to(is_shifting):
    training = make_training(treebank(3), is_shifting=is_shifting)
    rng = np.random.default_rng(0)
    for label in (0, 2, training.n_classifiers - 1):
        examples = training.examples(label)
        first, columns = examples.extract(np.arange(examples.n_examples))
        asked = rng.choice(np.unique(columns), 3).astype(np.int32)
        links = [[*asked, -1, -1, -1, -1], [1, 3, 5, *[-1] * 4], [2, 4, 6, *[-1] * 4]]
        tree = DecisionTree(*(np.array(each, dtype=np.int32) for each in links), np.zeros(7))
        leaves = np.zeros(examples.n_examples, dtype=np.int32)
        examples.percolate(tree, leaves)
        for number, leaf in enumerate(leaves):
            features, node = set(columns[first[number] : first[number + 1]].tolist()), 0
            while tree.features[node] >= 0:
                node = (tree.present if tree.features[node] in features else tree.absent)[node]
            assert leaf == node


def test_a_tree_without_questions_has_one_leaf_for_all():
    examples = make_training(treebank(3)).examples(0)
    leaves = np.ones(examples.n_examples, dtype=np.int32)
    ends = np.full(1, -1, dtype=np.int32)
    examples.percolate(DecisionTree(ends, ends, ends, np.zeros(1)), leaves)
    assert not leaves.any()


def test_symbols_are_sorted_with_the_top_first_and_rare_words_left_out():
    trees = [ConstTree.parse("(TOP (S (NP (NN A)) (VP (VBD b) (NP (NN a)))))")]
    assert collect_symbols(trees, min_count=2) == (["TOP", "NP", "S", "VP"], ["NN", "VBD"], sorted(
        {class_of("NN"), class_of("VBD")}
    ), ["a"])  # fmt: skip


def test_unknown_words_and_tags_have_values_of_their_own():
    encoder = PredicateEncoder(Symbols(["TOP", "NP"], ["NN"], [class_of("NN")], ["cat"]))
    known, strange, _ = encoder.encode(TaggedSentence(["CAT", "dog"], ["NN", "ZZ"]))
    assert known[:6] == [3, 1, 1, 1, 3, 3]
    assert strange[:6] == [2, 0, 0, 0, 2, 2]
    assert encoder.symbol_names[2:4] == ["", "NN"]
    for row in (known, strange):
        assert all(0 <= value < size for value, size in zip(row, encoder.sizes(), strict=True))


def test_words_of_the_same_ending_have_the_same_form():
    encoder = PredicateEncoder(Symbols(["TOP"], ["NN"], [], []))
    one, same, other, _ = encoder.encode(TaggedSentence(["walking", "SINGING", "walks"], ["NN"] * 3))
    assert one[6] == same[6] != other[6]


def test_the_end_has_the_values_of_the_mark_and_a_form_for_how_words_are_written():
    encoder = PredicateEncoder(
        Symbols(["TOP", "NP"], [".", "NN"], [class_of("."), class_of("NN")], ["!", "cat"])
    )
    words = TaggedSentence(["Cat", "ran"], ["NN", "NN"])
    marked, bare = (encoder.encode(words._replace(end=end))[-1] for end in (("!", "."), None))
    word = encoder.encode(TaggedSentence(["!"], ["."]))[0]
    for at in (native.LABEL, native.WORD, native.TAG, native.CLASS):
        assert marked[at] == word[at] > bare[at]
    assert bare[native.WORD] == bare[native.TAG] == 0
    assert marked[native.FORM] == bare[native.FORM]
    assert encoder.encode(words._replace(words=["CAT", "RAN"]))[-1][native.FORM] != bare[native.FORM]
    assert encoder.encode(words._replace(words=["Dog", "sat"]))[-1][native.FORM] == bare[native.FORM]
    assert encoder.encode(TaggedSentence(["!"], ["."]))[0] == word  # the row of a word is not that of an end
    assert all(0 <= value < size for value, size in zip(marked, encoder.sizes(), strict=True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the cat sat", "False False 0"),
        ("The cat sat", "False True 0"),
        ("The cat saw Ann", "False True 1"),
        ("The Cat Saw Ann", "False True 2"),
        ("THE CAT SAT", "True True 2"),
        ("the", "False False 0"),
        ("2 cats", "False False 0"),
    ],
)
def test_how_a_sentence_is_written_is_told_by_its_capitals(text, expected):
    assert case_of(text.split()) == expected


def read(text):
    """Return what a parser is given of words, each with its tag behind a slash."""
    words, tags = zip(*(pair.rsplit("/", 1) for pair in text.split()), strict=True)
    return read_inside(words, tags, keep_inside(tags))


def test_the_end_is_the_first_mark_behind_the_words_but_for_quotation_marks():
    inside = (["He", "ran"], ["PRP", "VBD"])
    assert read("He/PRP ran/VBD ./.") == (*inside, (".", "."))
    assert read("``/`` He/PRP ran/VBD ''/'' !/. ?/. ''/''") == (*inside, ("!", "."))
    assert read("He/PRP ran/VBD ;/: ''/''") == (*inside, (";", ":"))
    assert read("He/PRP ran/VBD ''/''") == (*inside, None)
    assert read("./. He/PRP ran/VBD") == (*inside, None)


def test_marks_and_quotation_marks_inside_are_no_end():
    found = read("He/PRP ,/, ``/`` she/PRP ran/VBD")
    assert found == (["He", ",", "she", "ran"], ["PRP", ",", "PRP", "VBD"], None)


def test_classifiers_are_named_by_labels_and_the_shift():
    trees = [ConstTree.parse("(TOP (NP (NN a)) (VP (VB b)))")]
    assert make_training(trees).names == ["TOP", "NP", "VP", "shift"]
    assert make_training(trees, is_shifting=False).names == ["TOP", "NP", "VP"]


@given(st.lists(phrase_trees(), min_size=1, max_size=2), st.sampled_from(sorted(RULES)))
def test_head_words_of_items_are_those_of_head_rules(trees, rules):
    encoder = PredicateEncoder(collect_symbols(trees, min_count=1))
    heads, table = encoder.make_heads(rules), read_atoms(ATOMS, encoder.sizes())
    options = {"is_shifting": True, "max_children": 5, "only_known": True}
    training = TrainingSet(trees, as_sentences(trees), encoder, heads, table, **options)
    item = 0
    for tree in trees:
        governors = tw.data.heads.head_words(tree, rules=rules)
        words = [word.lower() for word in tree.words()]
        item += len(words) + 1 + len(brackets(tree))
        word = training.items.values[item - 1, native.WORD]
        assert encoder.symbols.words[word - 1] == words[governors[-1]]
