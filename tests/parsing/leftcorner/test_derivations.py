"""Left-corner derivations of trees, and what a network sees of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import leftcorner as oracle
from strategies import const_trees, phrase_trees

import treewright as tw
from treewright.model import load_state, save_state
from treewright.parsing.leftcorner.decisions import DecisionVocabulary, TagWordVocabulary, encode
from treewright.parsing.leftcorner.derivations import (
    ATTACH,
    ATTACHED,
    KIND_NAMES,
    MODIFIED,
    MODIFY,
    PROJECT,
    SHIFT,
    Decision,
    Derivation,
    DerivationState,
    UnaryChains,
    derive,
    rebuild,
)

REAL = [f"ewt/en_ewt-{part}.mrg" for part in ("train", "dev", "test")]
REAL += [f"wsj_sample/wsj-{part}.mrg" for part in ("train", "dev", "test")]


def parse(text):
    return tw.ConstTree.parse(text)


def listed(derivation):
    """List decisions as the oracle does."""
    labels, pairs = iter(derivation.labels), zip(derivation.tags, derivation.words, strict=True)
    found = []
    for kind in derivation.kinds:
        name = KIND_NAMES[kind]
        if kind == SHIFT:
            found.append((name, *next(pairs)))
        else:
            found.append((name, next(labels) if kind == PROJECT else None, None))
    return found


def written(text):
    """Write the derivation of a tree in short."""
    return " ".join(
        word or (f"{kind[0].upper()}({label})" if label else kind[0].upper())
        for kind, label, word in listed(derive(parse(text)))
    )


def any_trees():
    return const_trees() | phrase_trees()


def chained_trees():
    """Draw trees in which phrases often stand over one phrase, or begin with one, of the same label."""
    words = st.sampled_from(["N", "V"]).map(lambda tag: tw.ConstTree(tag, ["a"]))

    def over(children):
        lists = st.lists(children, min_size=1, max_size=3) | st.lists(children, min_size=1, max_size=1)
        return st.builds(tw.ConstTree, st.sampled_from(["A", "B"]), lists)

    return over(st.recursive(words, over, max_leaves=12))


@pytest.mark.parametrize(
    ("text", "decisions"),
    [
        ("(N a)", "a A"),
        ("(NP (N a))", "a P(NP) A"),
        ("(S (VP (V a)))", "a P(VP) P(S) A"),
        ("(S (N a) (V b))", "a P(S) b A A"),
        ("(S (NP (N a)) (VP (V b) (NP (N c))))", "a P(NP) P(S) b P(VP) c P(NP) A A A"),
        ("(S (N a) (N b) (N c) (N d))", "a P(S) b A c A d A A"),
        ("(S (NP (NP (N a)) (PP (P b))) (VP (V c)))", "a P(NP) b P(PP) M P(S) c P(VP) A A"),
        ("(NP (NP (NP (N a)) (PP (P b))) (PP (P c)))", "a P(NP) b P(PP) M c P(PP) M A"),
        ("(NP (NP (N a)) (CC b) (NP (N c)))", "a P(NP) b M c P(NP) A A"),
        ("(NP (NP (N a)))", "a P(NP) P(NP) A"),
        ("(NP (NP (NP (N a))) (N b))", "a P(NP) P(NP) b M A"),
        ("(NP (NP a) (NP b))", "a P(NP) b A A"),
        ("(NP (N a) (NP (N b)))", "a P(NP) b P(NP) A A"),
        ("(S a b)", "a P(S) b A A"),
        ("( (S (N a)) )", "a P(S) A"),
        ("( (S (N a)) (S (N b)) )", "a P(S) P(TOP) b P(S) A A"),
    ],
)
def test_small_trees_have_the_derivations_written_down_for_them(text, decisions):
    assert written(text) == decisions
    assert rebuild(derive(parse(text))) == parse(text)


@given(any_trees())
def test_derivations_equal_those_by_recursion(tree):
    assert listed(derive(tree)) == oracle.decisions(tree)


@given(chained_trees())
def test_derivations_with_adjunction_equal_those_by_recursion(tree):
    assert listed(derive(tree)) == oracle.decisions(tree)
    assert rebuild(derive(tree)) == tree


@given(any_trees())
def test_every_tree_comes_back(tree):
    assert rebuild(derive(tree)) == tree


def test_a_lone_word_comes_back():
    assert derive(tw.ConstTree("a")) == Derivation([SHIFT, ATTACH], [], [""], ["a"])
    assert rebuild(derive(tw.ConstTree("a"))) == tw.ConstTree("a")


@given(any_trees())
def test_a_subtree_is_derived_like_a_tree(tree):
    for subtree in tree.subtrees():
        assert derive(subtree) == derive(tw.ConstTree.from_arrays(list(subtree.labels), subtree.sizes.copy()))


@pytest.mark.slow_cases
@pytest.mark.parametrize("is_left", [True, False])
@pytest.mark.parametrize("labels", ["X", "XY"])
def test_nesting_may_be_very_deep(is_left, labels):
    n = 20_000
    pairs = [("a", 0), ("T", 1)]
    names = [labels[number % len(labels)] for number in range(n)]
    if is_left:
        nodes = pairs + [node for name in names for node in (*pairs, (name, 2))]
    else:
        nodes = pairs * (n + 1) + [(name, 2) for name in names]
    tree = tw.ConstTree.from_child_counts(*zip(*nodes, strict=True))
    derivation = derive(tree)
    assert rebuild(derivation) == tree
    assert derivation.kinds.count(MODIFY) == (n - 1 if is_left and labels == "X" else 0)


def test_a_node_may_be_very_wide():
    tree = tw.ConstTree("S", [tw.ConstTree("N", ["a"])] * 10_000)
    assert rebuild(derive(tree)) == tree


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("whole", [True, False])
def test_real_trees_come_back_with_chains_merged_and_without(data_folder, name, whole):
    if not (data_folder / name).exists():
        pytest.skip(f"TREEWRIGHT_DATA has no {name}")
    trees = tw.read_brackets(data_folder / name, functions=whole, traces=whole)
    chains = UnaryChains.from_trees(trees)
    for tree in trees:
        assert rebuild(derive(tree)) == tree
        assert chains.split(rebuild(derive(chains.merge(tree)))) == tree


def enumerate_derivations(n_decisions, words, n_words_left=None):
    """List all legal derivations of some length with one tag and two labels."""
    waiting, complete = [(DerivationState.start(), words)], []
    while waiting:
        state, left = waiting.pop()
        if state.is_complete:
            complete.append((state, left))
        if state.n_decisions == n_decisions:
            continue
        options = state.legal() if n_words_left is None else state.possible(left)
        choices = [
            [Decision(SHIFT, 3, 0)],
            [Decision(PROJECT, 1), Decision(PROJECT, 2)],
            [ATTACHED],
            [MODIFIED],
        ]
        for kind, allowed in enumerate(options):
            for decision in choices[kind] if allowed else []:
                waiting.append((state.apply(decision), left - (kind == SHIFT)))
    return complete


def two_labels():
    return DecisionVocabulary(["A", "B"], TagWordVocabulary(["N"], [["a"]]))


def test_every_legal_sequence_of_decisions_is_the_derivation_of_its_tree():
    vocabulary, trees = two_labels(), set()
    complete = [state for state, _ in enumerate_derivations(9, 0)]
    for state in complete:
        n_words = sum(decision.kind == SHIFT for decision in state.decisions())
        derivation = vocabulary.decode(state.decisions(), ["N"] * n_words, ["a"] * n_words)
        tree = rebuild(derivation)
        assert derive(tree) == derivation
        trees.add(tree)
    assert len(trees) == len(complete) > 1000
    assert {MODIFY, ATTACH} <= {decision.kind for state in complete for decision in state.decisions()}


def test_what_is_possible_is_what_is_legal_and_ends_with_the_sentence():
    n_words = 3
    legal = enumerate_derivations(9, n_words)
    expected = {tuple(state.decisions()) for state, left in legal if left == 0}
    possible = enumerate_derivations(9, n_words, n_words)
    assert {tuple(state.decisions()) for state, _ in possible} == expected
    assert all(left == 0 for _, left in possible)


@pytest.mark.parametrize(
    ("kinds", "complaint"),
    [
        ([ATTACH], "decision 1 is attach; expected shift"),
        ([SHIFT, SHIFT], "decision 2 is shift; expected project or attach"),
        ([SHIFT, MODIFY], "decision 2 is modify; expected project or attach"),
        ([SHIFT, ATTACH, SHIFT], "decision 3 is shift; expected the end of the derivation"),
        ([SHIFT, PROJECT, PROJECT, SHIFT, ATTACH], "decision 5 is attach; expected project or modify"),
        ([SHIFT, PROJECT], "the derivation ends after 2 decisions; expected an attachment to ROOT"),
        ([], "the derivation ends after 0 decisions; expected an attachment to ROOT"),
        ([SHIFT, 4], "a decision is of kind 4; expected 0 to 3"),
    ],
)
def test_derivations_that_make_no_tree_are_refused(kinds, complaint):
    n_words = kinds.count(SHIFT)
    derivation = Derivation(kinds, ["X"] * kinds.count(PROJECT), ["N"] * n_words, ["a"] * n_words)
    with pytest.raises(tw.errors.InputError) as caught:
        rebuild(derivation)
    assert str(caught.value) == complaint


def test_a_derivation_with_too_few_labels_is_refused():
    with pytest.raises(tw.errors.InputError) as caught:
        rebuild(Derivation([SHIFT, PROJECT, ATTACH], [], ["N"], ["a"]))
    expected = "the derivation has 0 labels, 1 tags and 1 words; expected 1, 1 and 1"
    assert str(caught.value) == expected


def test_the_stack_starts_and_ends_as_root():
    state = DerivationState.start()
    assert (state.stack(), state.is_complete) == ([0], False)
    state = state.apply(Decision(SHIFT, 3, 0)).apply(Decision(PROJECT, 1)).apply(Decision(SHIFT, 3, 0))
    assert (state.stack(), state.is_complete) == ([0, 1, 3], False)
    state = state.apply(ATTACHED).apply(ATTACHED)
    assert (state.stack(), state.is_complete) == ([0], True)
    assert not any(state.legal())


def test_a_state_is_not_changed_by_what_follows_it():
    first = DerivationState.start().apply(Decision(SHIFT, 3, 0)).apply(Decision(PROJECT, 1))
    before = (first.links(), first.inputs(), first.legal(), first.stack(), first.decisions())
    one = first.apply(Decision(SHIFT, 3, 0)).apply(MODIFIED)
    other = first.apply(Decision(PROJECT, 2))
    assert (first.links(), first.inputs(), first.legal(), first.stack(), first.decisions()) == before
    assert (one.stack(), other.stack()) == ([0, 1], [0, 2])


def test_links_name_vectors_by_the_numbers_that_a_search_gives():
    state = DerivationState.start().apply(Decision(SHIFT, 3, 0), at=70).apply(Decision(PROJECT, 1), at=50)
    assert state.links() == (-1, 70, 50, 50)
    state = state.apply(Decision(SHIFT, 3, 0), at=60)
    assert state.links() == (-1, 60, -1, -1)
    assert state.apply(ATTACHED, at=10).links() == (60, 70, 50, 10)


@given(any_trees() | chained_trees())
def test_what_a_network_sees_equals_a_look_at_the_whole_past(tree):
    derivation = derive(tree)
    vocabulary = DecisionVocabulary.from_derivations([derivation], min_count=1)
    encoded = encode(derivation, vocabulary)
    for row, seen in enumerate(oracle.surroundings(oracle.decisions(tree))):
        links, last, top, last_word, left_word = seen
        assert tuple(encoded.links[row]) == links
        words = [0 if pair is None else 1 + vocabulary.words.id(*pair) for pair in (last_word, left_word)]
        assert encoded.inputs[row, 2:].tolist() == words
        assert encoded.inputs[row, 0] == decision_number(last, vocabulary)
        assert encoded.inputs[row, 1] in symbol_numbers(top, vocabulary)


def decision_number(last, vocabulary):
    if last is None:
        return 0
    kind, label = last
    plain = {"shift": 1, "attach": 2, "modify": 3}
    return plain[kind] if kind in plain else 4 + vocabulary.labels.index(label)


def symbol_numbers(label, vocabulary):
    """List what a label may be: ROOT, a phrase or a tag."""
    found = [0] if label == "ROOT" else []
    if label in vocabulary.labels:
        found.append(1 + vocabulary.labels.index(label))
    if label in vocabulary.words.tags:
        found.append(1 + len(vocabulary.labels) + vocabulary.words.tags.id(label))
    return found


@given(st.lists(any_trees() | chained_trees(), min_size=1, max_size=3))
def test_encoded_decisions_are_legal_and_within_their_ranges(trees):
    derivations = [derive(tree) for tree in trees]
    vocabulary = DecisionVocabulary.from_derivations(derivations, min_count=2, min_unknown=2)
    for derivation in derivations:
        encoded = encode(derivation, vocabulary)
        rows = np.arange(len(derivation.kinds))
        assert encoded.kinds.tolist() == derivation.kinds
        assert encoded.legal[rows, encoded.kinds].all()
        assert (encoded.links < rows[:, None]).all()
        assert (encoded.links[1:] == rows[:-1, None]).any(axis=1).all()
        assert (encoded.inputs >= 0).all()
        assert (encoded.inputs < vocabulary.n_inputs).all()
        assert [vocabulary.labels[label] for label in encoded.labels if label >= 0] == derivation.labels
        shifted = encoded.words[encoded.kinds == SHIFT]
        pairs = zip(derivation.tags, derivation.words, strict=True)
        assert shifted.tolist() == [vocabulary.words.id(*pair) for pair in pairs]
        assert encoded.tags[encoded.kinds == SHIFT].tolist() == vocabulary.words.tag_of[shifted].tolist()
        assert (encoded.words[encoded.kinds != SHIFT] == -1).all()
        assert {array.dtype for array in encoded} == {np.dtype(np.int32), np.dtype(bool)}


@given(any_trees() | chained_trees())
def test_numbers_of_decisions_give_back_the_derivation(tree):
    derivation = derive(tree)
    vocabulary = DecisionVocabulary.from_derivations([derivation])
    decisions = vocabulary.decisions(derivation)
    assert vocabulary.decode(decisions, derivation.tags, tree.words()) == derivation
    state = DerivationState.start()
    for decision in decisions:
        state = state.apply(decision)
    assert state.decisions() == decisions


def test_a_label_that_was_never_seen_is_refused():
    vocabulary = two_labels()
    derivation = derive(parse("(C (N a))"))
    assert not vocabulary.covers(derivation)
    assert vocabulary.covers(derive(parse("(A (X b))")))
    with pytest.raises(tw.errors.InputError, match=r"^label is 'C'; expected a label of the training data$"):
        encode(derivation, vocabulary)


def test_rare_words_are_the_unknown_of_their_tag_and_rare_unknowns_that_of_all():
    counts = {("N", "a"): 9, ("N", "b"): 3, ("N", "c"): 2, ("V", "a"): 8, ("V", "d"): 4, ("X", "e"): 4}
    words = TagWordVocabulary.from_counts(counts, min_count=5, min_unknown=5)
    assert words.tags.strings == ["N", "V"]
    assert words.words == [[None, "a"], ["a"]]
    assert (words.indptr.tolist(), words.tag_of.tolist(), len(words)) == ([0, 1, 3, 4], [0, 1, 1, 2], 4)
    known = [words.id(*pair) for pair in [("N", "a"), ("V", "a")]]
    unknown = [words.id(*pair) for pair in [("N", "b"), ("N", "z"), ("V", "d"), ("X", "e"), ("Z", "a")]]
    assert (known, unknown) == ([2, 3], [1, 1, 0, 0, 0])


def test_the_tag_of_a_folded_word_is_that_of_the_unknown_of_all_tags():
    vocabulary = DecisionVocabulary(["A"], TagWordVocabulary(["N", "V"], [[None, "a"], ["a"]]))
    assert vocabulary.shift("N", "z") == Decision(SHIFT, 3, 1)
    assert vocabulary.shift("V", "z") == Decision(SHIFT, 2, 0)
    assert vocabulary.project("A") == Decision(PROJECT, 1)
    assert vocabulary.n_inputs == (5, 5, 5, 5)


@pytest.mark.parametrize("n", [200])
def test_words_of_a_tag_are_numbered_in_one_run(n):
    derivations = [derive(tree) for tree in tw.make_treebank(n_sentences=n, random_state=1).constituents]
    words = DecisionVocabulary.from_derivations(derivations, min_count=5).words
    for tag in range(len(words.tags)):
        assert (words.tag_of[words.indptr[tag] : words.indptr[tag + 1]] == tag).all()
    assert words.indptr[-1] == len(words)


def test_vocabularies_and_chains_are_saved(tmp_path):
    trees = tw.make_treebank(n_sentences=100, random_state=2).constituents
    chains = UnaryChains.from_trees(trees, min_count=2)
    vocabulary = DecisionVocabulary.from_derivations(
        [derive(chains.merge(tree)) for tree in trees], min_count=3
    )
    for name, model in [("chains", chains), ("vocabulary", vocabulary)]:
        save_state(model.get_state(), tmp_path / name)
    again = DecisionVocabulary.from_state(load_state(tmp_path / "vocabulary"))
    assert again.get_state() == vocabulary.get_state()
    merge = UnaryChains.from_state(load_state(tmp_path / "chains")).merge
    for tree in trees:
        one, other = (encode(derive(merge(tree)), which) for which in (vocabulary, again))
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(
    ("text", "merged"),
    [
        ("(TOP (S (VP (V a))))", "(TOP (S+VP (V a)))"),
        ("(TOP (SBAR (S (VP (V a) (N b)))) (N c))", "(TOP (SBAR+S+VP (V a) (N b)) (N c))"),
        ("(TOP (X (S (VP (V a)))))", "(TOP (X (S+VP (V a))))"),
        ("(TOP (S (VP (X (V a)))))", "(TOP (S+VP (X (V a))))"),
        ("(TOP (VP (S (V a))))", "(TOP (VP (S (V a))))"),
        ("(TOP (S (VP (S (VP (V a))))))", "(TOP (S+VP (S+VP (V a))))"),
        ("(TOP (N a) (S (VP (V a) (S (VP (V b))))))", "(TOP (N a) (S+VP (V a) (S+VP (V b))))"),
        ("(S (VP (V a)))", "(S (VP (V a)))"),
        ("(TOP (S (VP a)))", "(TOP (S (VP a)))"),
    ],
)
def test_known_chains_are_merged_from_the_bottom_up(text, merged):
    chains = UnaryChains([("S", "VP"), ("SBAR", "S", "VP")])
    assert str(chains.merge(parse(text))) == merged
    assert chains.split(parse(merged)) == parse(text)


def test_only_frequent_chains_of_full_length_are_known():
    trees = [parse("(TOP (A (B (C (N a)))))")] * 3 + [parse("(TOP (A (B (N a))) (C (C (N a))))")] * 2
    assert UnaryChains.from_trees(trees, min_count=3).chains == [("A", "B", "C")]
    assert UnaryChains.from_trees(trees, min_count=2).chains == [("A", "B"), ("A", "B", "C"), ("C", "C")]


@given(st.lists(any_trees() | chained_trees(), min_size=1, max_size=4), st.integers(1, 3))
def test_merged_chains_come_back(trees, min_count):
    chains = UnaryChains.from_trees(trees, min_count=min_count)
    for tree in trees:
        merged = chains.merge(tree)
        assert chains.split(merged) == tree
        assert merged.words() == tree.words()
        assert tw.ConstTree.from_child_counts(merged.labels, [*map(len, merged.child_positions())]) == merged


@given(chained_trees())
def test_no_chain_is_left_where_all_are_known(tree):
    merged = UnaryChains.from_trees([tree], min_count=1).merge(tree)
    for node in [one for child in merged.children for one in child.subtrees()]:
        if len(node.children) == 1 and not node.children[0].is_leaf:
            assert oracle.is_tag(node.children[0])


def test_names_of_chains_are_told_from_labels():
    tree = parse("(TOP (A (B (N a))) (A+B (N b)))")
    chains = UnaryChains.from_trees([tree], min_count=1)
    assert str(chains.merge(tree)) == "(TOP (A++B (N a)) (A+B (N b)))"
    with pytest.raises(
        tw.errors.InputError, match=r"^label 'A\+\+B' is the name of a merged chain; expected"
    ):
        chains.merge(parse("(TOP (A++B (N a)))"))
