"""make_treebank: three aligned views, and the ambiguities planted in them."""

import re
from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
import pytest

from treewright.data import lexicon
from treewright.data.bracketed import read_brackets, write_brackets
from treewright.data.conllu import read_conllu, write_conllu
from treewright.data.propbank import read_props, write_props
from treewright.data.synthetic import make_treebank
from treewright.errors import InputError

FAMILIES = {name.replace("_", " ") for name in lexicon.FAMILIES}
N_PATTERNS = {
    ("pp attachment", 3): 128,
    ("pp attachment", 2): 32,
    ("pp attachment", 1): 16,
    ("coordination scope", 3): 64,
    ("coordination scope", 2): 64,
    ("coordination scope", 1): 16,
    ("relative attachment", 3): 64,
    ("relative attachment", 2): 64,
    ("relative attachment", 1): 16,
    ("noun compound", 2): 64,
    ("noun compound", 1): 16,
    ("verb frame", 3): 64,
    ("verb frame", 2): 64,
    ("verb frame", 1): 16,
    ("adverb scope", 2): 64,
    ("adverb scope", 1): 16,
}
GOLDEN = [
    "A solemn clerk swore that this ventriloquist sneezed twice, and the landlord promised the pigeon bread.",
    "When the plump hen thanked the river train painter, the rival of the duke who "
    "carried this trumpet whistled proudly.",
    "The donkey broke the vase near the tower while Puvette and the beetle believed "
    "that the paper button seller reluctantly decorated two baskets.",
]


@pytest.fixture(scope="module")
def bank():
    return make_treebank(6000, random_state=1)


@pytest.fixture(scope="module")
def other_bank():
    return make_treebank(6000, random_state=2)


def all_decisions(bank):
    return [decision for decisions in bank.decisions for decision in decisions]


def is_projective(heads):
    arcs = [(min(pair), max(pair)) for pair in enumerate(heads, start=1)]
    return not any(a < c < b < d for a, b in arcs for c, d in arcs)


def guessed_share(train, test, n_words):
    """Best accuracy on `test` of majority guesses by `n_words` of the deciding words."""
    best = 0.0
    for slots in combinations(range(len(train[0].pattern.words)), n_words):
        seen = defaultdict(Counter)
        for decision in train:
            seen[tuple(decision.pattern.words[slot] for slot in slots)][chosen_slot(decision)] += 1
        right = 0.0
        for decision in test:
            votes = seen.get(tuple(decision.pattern.words[slot] for slot in slots))
            right += 0.5 if votes is None else votes.most_common(1)[0][0] == chosen_slot(decision)
        best = max(best, right / len(test))
    return best


def chosen_slot(decision):
    heads = lexicon.FAMILIES[decision.pattern.family.replace(" ", "_")].heads
    return heads[heads.index(decision.pattern.attachment) ^ (not decision.follows_rule)]


def by_rule(bank):
    groups = defaultdict(list)
    for decision in all_decisions(bank):
        groups[decision.pattern.family, decision.pattern.order].append(decision)
    return groups


# The three views


def test_same_seed_gives_the_same_treebank():
    assert make_treebank(50, random_state=3, crossing=0.5) == make_treebank(50, random_state=3, crossing=0.5)


def test_seed_0_begins_with_these_sentences_everywhere():
    texts = [tree.metadata["text"] for tree in make_treebank(3).dependencies]
    assert texts == GOLDEN


def test_small_treebank_begins_the_large_one():
    small, large = make_treebank(20, random_state=3), make_treebank(200, random_state=3)
    for name in ("dependencies", "constituents", "propositions", "decisions"):
        assert getattr(small, name) == getattr(large, name)[:20]


def test_different_seeds_give_different_sentences():
    assert make_treebank(20, random_state=3).dependencies != make_treebank(20, random_state=4).dependencies


def test_default_size_is_1000_and_0_is_allowed():
    assert len(make_treebank()) == 1000
    assert len(make_treebank(0)) == 0
    assert str(make_treebank(0).describe())


def test_views_have_the_same_words_and_tags(bank):
    assert len(bank) == len(bank.dependencies) == len(bank.constituents) == len(bank.propositions) == 6000
    for tree, constituents, props in zip(
        bank.dependencies, bank.constituents, bank.propositions, strict=True
    ):
        assert tree.words == constituents.words() == props.words
        assert tree.xpos == constituents.tags() == props.tags


def test_constituent_roots_are_top_over_one_sentence(bank):
    for tree in bank.constituents:
        assert tree.label == "TOP"
        assert [child.label for child in tree.children] == ["S"]


def test_dependencies_have_one_root_with_the_root_relation(bank):
    for tree in bank.dependencies:
        assert [head == 0 for head in tree.heads] == [deprel == "root" for deprel in tree.deprels]
        assert tree.n_roots == 1


def test_no_arcs_cross_by_default(bank):
    assert all(is_projective(tree.heads.tolist()) for tree in bank.dependencies)


@pytest.mark.parametrize("crossing", [0.3, 1.0])
def test_crossing_is_the_share_of_trees_with_crossing_arcs(crossing):
    trees = make_treebank(1000, random_state=1, crossing=crossing).dependencies
    share = np.mean([not is_projective(tree.heads.tolist()) for tree in trees])
    assert share == pytest.approx(crossing, abs=0.05)


def test_each_constituent_has_one_word_with_a_head_outside(bank):
    for tree, constituents in zip(bank.dependencies, bank.constituents, strict=True):
        heads = tree.heads.tolist()
        for _, start, end in constituents.spans():
            assert sum(not start < head <= end for head in heads[start:end]) == 1


@pytest.mark.parametrize("crossing", [0.0, 1.0])
def test_arguments_are_constituents_that_do_not_overlap(crossing):
    bank = make_treebank(1000, random_state=5, crossing=crossing)
    for constituents, sentence in zip(bank.constituents, bank.propositions, strict=True):
        spans = {(start, end) for _, start, end in constituents.spans()}
        for proposition in sentence.propositions:
            assert {(start, end) for _, start, end in proposition.arguments} <= spans
            ends = [end for _, _, end in proposition.arguments]
            assert all(
                start >= end for (_, start, _), end in zip(proposition.arguments[1:], ends, strict=False)
            )


def test_every_verb_has_a_proposition_with_a_core_argument(bank):
    for tree, sentence in zip(bank.dependencies, bank.propositions, strict=True):
        verbs = [index for index, upos in enumerate(tree.upos) if upos == "VERB"]
        assert [one.predicate for one in sentence.propositions] == verbs
        for proposition in sentence.propositions:
            labels = [label for label, _, _ in proposition.arguments]
            assert {"ARG0", "ARG1"} & set(labels)
            core = [label for label in labels if re.fullmatch("ARG[0-9]|V", label)]
            assert len(set(core)) == len(core)
            assert proposition.sense.startswith(f"{tree.lemmas[proposition.predicate]}.0")


def test_frames_decide_the_role_of_the_subject(bank):
    roles = defaultdict(set)
    for tree, sentence in zip(bank.dependencies, bank.propositions, strict=True):
        starts = {
            head - 1: index
            for index, (head, deprel) in enumerate(zip(tree.heads, tree.deprels, strict=True))
            if deprel.startswith("nsubj")
        }
        for proposition in sentence.propositions:
            subject = starts.get(proposition.predicate)
            for label, start, end in proposition.arguments:
                if subject is not None and start <= subject < end:
                    roles[tree.deprels[subject], proposition.lemma].add(label.removeprefix("R-"))
    assert roles["nsubj", "arrive"] == {"ARG1"}
    assert roles["nsubj", "dance"] == {"ARG0"}
    assert roles["nsubj", "crack"] == {"ARG0", "ARG1"}
    assert roles["nsubj:pass", "borrow"] == {"ARG1"}


def test_sentences_have_7_to_25_words_with_few_exceptions(bank):
    lengths = [len(tree) for tree in bank.dependencies]
    assert 13 < np.mean(lengths) < 16
    assert np.mean([7 <= length <= 25 for length in lengths]) > 0.9


@pytest.mark.slow
def test_some_words_of_a_second_treebank_are_new(bank, other_bank):
    known = {word for tree in bank.dependencies for word in tree.words}
    new = [word not in known for tree in other_bank.dependencies for word in tree.words]
    assert 0 < np.mean(new) < 0.02


@pytest.mark.parametrize(
    ("view", "write", "read"),
    [
        ("dependencies", write_conllu, read_conllu),
        ("constituents", write_brackets, read_brackets),
        ("propositions", write_props, read_props),
    ],
)
def test_views_survive_writing_and_reading(tmp_path, view, write, read):
    sentences = getattr(make_treebank(200, random_state=4, crossing=0.2), view)
    write(sentences, tmp_path / "bank")
    assert read(tmp_path / "bank") == sentences


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_sentences": -1}, "n_sentences is -1; expected an integer of at least 0"),
        ({"n_sentences": 2.5}, "n_sentences is 2.5; expected an integer of at least 0"),
        (
            {"random_state": -3},
            "random_state is -3; expected an integer of at least 0 or a numpy Generator "
            "or a numpy RandomState",
        ),
        ({"crossing": 1.5}, "crossing is 1.5; expected a number from 0 to 1"),
        ({"crossing": float("nan")}, "crossing is nan; expected a number from 0 to 1"),
        ({"crossing": "all"}, "crossing is 'all'; expected a number from 0 to 1"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        make_treebank(**arguments)


# The planted ambiguities


def test_description_lists_every_pattern_once(bank):
    description = bank.describe()
    assert Counter((one.family, one.order) for one in description.patterns) == N_PATTERNS
    assert len(set(description.patterns)) == len(description.patterns)
    assert sum(description.counts) == len(all_decisions(bank))


def test_printed_description_has_a_line_for_each_rule(bank):
    lines = str(bank.describe()).splitlines()
    assert lines[0].startswith("6,000 sentences, ")
    assert lines[0].endswith("planted decisions, 2% noise")
    assert [tuple(re.split(r"\s{2,}", line)[:3]) for line in lines[3:]] == [
        (family, str(order), str(n)) for (family, order), n in N_PATTERNS.items()
    ]


@pytest.mark.parametrize("name", lexicon.FAMILIES)
def test_both_readings_have_the_same_surface(name):
    def surface(reading):
        words = re.findall(r"(?<![^\s])[^\s()]+", reading.replace("(", " (").replace(")", " "))
        return [re.sub("[#>@=~].*", "", word) for word in words]

    first, second = lexicon.FAMILIES[name].readings
    assert surface(first) == surface(second)


def test_decisions_name_the_head_in_the_tree_and_its_rival(bank):
    for tree, decisions in zip(bank.dependencies, bank.decisions, strict=True):
        for decision in decisions:
            family = lexicon.FAMILIES[decision.pattern.family.replace(" ", "_")]
            words = dict(decision.pattern.words)
            assert tree.heads[decision.position - 1] == decision.head != decision.rival
            assert words.get(family.decided) in (None, tree.lemmas[decision.position - 1])
            assert words.get(chosen_slot(decision)) in (None, tree.lemmas[decision.head - 1])


def test_described_arcs_are_in_the_trees_that_follow_the_rule(bank):
    for tree, decisions in zip(bank.dependencies, bank.decisions, strict=True):
        lemmas = ["", *tree.lemmas]
        arcs = set()
        for lemma, head, deprel in zip(tree.lemmas, tree.heads.tolist(), tree.deprels, strict=True):
            for upper in (lemmas[head], "*"):
                arcs |= {(upper, deprel, lemma), (upper, deprel, "*")}
        for decision in decisions:
            if decision.follows_rule:
                for chain in decision.pattern.structure.split(", "):
                    upper, *links = chain.split(" >")
                    for link in links:
                        deprel, lower = link.split()
                        assert (upper, deprel, lower) in arcs
                        upper = lower


def test_every_family_occurs_with_both_readings_equally_often(bank):
    groups = defaultdict(list)
    for decision in all_decisions(bank):
        groups[decision.pattern.family].append(chosen_slot(decision))
    assert set(groups) == FAMILIES
    for slots in groups.values():
        (_, first), (_, second) = Counter(slots).most_common()
        assert first / (first + second) < 0.55


def test_rules_are_broken_at_the_documented_rate(bank, other_bank):
    decisions = all_decisions(bank) + all_decisions(other_bank)
    broken = np.mean([not decision.follows_rule for decision in decisions])
    assert broken == pytest.approx(bank.describe().noise, abs=0.005)
    tied = [
        decision.follows_rule == (chosen_slot(decision) == decision.pattern.attachment)
        for decision in decisions
    ]
    assert all(tied)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_all_words_but_one_do_not_predict_the_decision(bank, other_bank, order):
    train, test = by_rule(bank), by_rule(other_bank)
    for family, arcs in train:
        if arcs == order:
            group, held_out = train[family, arcs], test[family, arcs]
            margin = 2.6 * 0.5 / np.sqrt(len(held_out))
            assert guessed_share(group, held_out, order) < 0.5 + margin


@pytest.mark.parametrize("order", [1, 2, 3])
def test_all_words_together_predict_the_decision(bank, other_bank, order):
    train, test = by_rule(bank), by_rule(other_bank)
    for family, arcs in train:
        if arcs == order:
            assert guessed_share(train[family, arcs], test[family, arcs], order + 1) > 0.9


def test_frequent_combinations_of_each_rule_recur_in_2000_sentences():
    description = make_treebank(2000, random_state=1).describe()
    recurring = Counter(
        (pattern.family, pattern.order)
        for pattern, count in zip(description.patterns, description.counts, strict=True)
        if count >= 8
    )
    for rule in N_PATTERNS:
        assert recurring[rule] >= 3
