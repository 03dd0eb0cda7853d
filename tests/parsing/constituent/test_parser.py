"""ConstituentParser: what it returns for any sentence, how training goes on, what it refuses."""

import numpy as np
import pytest

import treewright as tw
from treewright.errors import FormatError, InputError
from treewright.learn.trees import forest_arrays, join_trees
from treewright.model import save_state
from treewright.parsing.constituent import parser as constituent
from treewright.parsing.constituent.atoms import ATOMS
from treewright.parsing.constituent.parser import STRATEGIES
from treewright.progress import messages_to

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")
N_TRAINING = 60
ODD_SENTENCES = {
    "one word": (["Cat"], ["NN"]),
    "one word and a stop": (["Cat", "."], ["NN", "."]),
    "punctuation": (["!", '"', "?"], [".", "''", "."]),
    "punctuation around": (['"', "Cats", ",", "ran", "!", '"'], ["``", "NNS", ",", "VBD", ".", "''"]),
    "unknown tags": (["The", "Cat", "sat", "Down"], ["QQ", "ZZ", "YY", "QQ"]),
    "an unknown tag": (["The", "Cat", "sat"], ["DT", "ZZ", "VBD"]),
    "brackets": (["(", "a", ")"], ["-LRB-", "NN", "-RRB-"]),
}
NEEDS_TAGS = (
    "but this ConstituentParser needs tags; expected (word, tag) pairs, trees with tags, or a model trained "
    "with tags='predicted'"
)


@pytest.fixture(scope="module")
def treebank():
    return tw.make_treebank(n_sentences=80, random_state=0).constituents


def make_parser(**options):
    return tw.ConstituentParser(**({"lowest_penalty": 5.0} | options))


@pytest.fixture(scope="module")
def parsers(treebank):
    options = {each: {"strategy": each} for each in STRATEGIES} | {
        "predicted": {"tags": "predicted", "folds": 2}
    }
    return {
        name: make_parser(lowest_penalty=2.0, **each).fit(treebank[:N_TRAINING])
        for name, each in options.items()
    }


@pytest.fixture(params=STRATEGIES)
def parser(request, parsers):
    return parsers[request.param]


def as_bytes(parser):
    """Return the trees of a parser, and what it went through but for the time that took."""
    arrays = [
        forest_arrays(join_trees(trees))[name].tobytes()
        for trees in parser.forests_
        for name in ("roots", "features", "present", "absent", "values")
    ]
    return arrays, [step._replace(seconds=0) for step in parser.history_]


def tagged(words, tags):
    return tw.DepTree(words, xpos=tags)


def test_parses_are_far_better_than_chance(parser, treebank):
    found = parser.predict(treebank[N_TRAINING:])
    assert tw.metrics.parseval(treebank[N_TRAINING:], found).f1 > 70


def test_every_sentence_gets_a_tree_over_its_words_as_they_were_written(parser, treebank):
    for tree, found in zip(treebank, parser.predict(treebank), strict=True):
        assert (found.words(), found.tags()) == (tree.words(), tree.tags())
        assert found.label == "TOP"


@pytest.mark.parametrize("name", ODD_SENTENCES)
def test_odd_sentences_get_a_tree_over_their_words(parser, name):
    words, tags = ODD_SENTENCES[name]
    parses = parser.kbest([tagged(words, tags)], k=3)[0]
    for found in parses:
        assert (found.tree.words(), found.tree.tags()) == (words, tags)
        assert found.tree.label == "TOP"
        assert found.score <= 0
        assert np.isfinite(found.score)


def test_a_long_sentence_gets_a_tree(parser, treebank):
    words = [word for tree in treebank for word in tree.words()][:150]
    tags = [tag for tree in treebank for tag in tree.tags()][:150]
    (found,) = parser.predict([tagged(words, tags)])
    assert (found.words(), found.tags()) == (words, tags)


@pytest.mark.parametrize("name", [*STRATEGIES, "predicted"])
def test_a_tree_without_words_is_its_own_parse(parsers, treebank, name):
    empty = tw.ConstTree.parse("(X (NP-SBJ (-NONE- *)))")
    first, (found,), last = parsers[name].kbest([treebank[0], empty, treebank[1]], k=2)
    assert found == (empty, 0.0, None)
    assert [first, last] == parsers[name].kbest(treebank[:2], k=2)
    assert parsers[name].predict([empty]) == [empty]


@pytest.mark.parametrize("empty", [[], tw.DepTree([])])
@pytest.mark.parametrize("name", [*STRATEGIES, "predicted"])
def test_a_sentence_of_no_words_is_refused(parsers, treebank, name, empty):
    with pytest.raises(InputError, match=r"^sentence 2 has no words; expected at least one$"):
        parsers[name].predict([treebank[0], empty])


def test_no_sentences_give_no_trees(parser):
    assert parser.predict([]) == []


def test_parses_do_not_depend_on_what_was_parsed_before(parser, treebank):
    together = parser.kbest(treebank[:12], k=4)
    assert together == [parser.kbest([tree], k=4)[0] for tree in treebank[:12]]
    assert together[::-1] == parser.kbest(treebank[:12][::-1], k=4)


def test_only_words_and_tags_of_a_tree_are_looked_at(parser, treebank):
    flat = [tw.ConstTree("X", _words(tree)) for tree in treebank[60:70]]
    deps = [tagged(tree.words(), tree.tags()) for tree in treebank[60:70]]
    expected = parser.predict(treebank[60:70])
    assert parser.predict(flat) == parser.predict(deps) == expected


def _words(tree):
    return [tw.ConstTree(tag, [word]) for word, tag in zip(tree.words(), tree.tags(), strict=True)]


def test_traces_of_the_input_are_ignored(parser, treebank):
    trace = tw.ConstTree.parse("(NP (-NONE- *T*-1))")
    with_trace = [tw.ConstTree("TOP", [trace, *tree.children, trace]) for tree in treebank[60:65]]
    assert parser.predict(with_trace) == parser.predict(treebank[60:65])


def test_traces_and_functions_of_training_trees_are_ignored(treebank):
    trace = tw.ConstTree.parse("(NP-SBJ-1 (-NONE- *T*-1))")
    changed = []
    for tree in treebank[:20]:
        children = [tw.ConstTree(f"{child.label}-XX", child.children) for child in tree.children]
        changed.append(tw.ConstTree("TOP", [trace, *children]))
    assert as_bytes(make_parser().fit(changed)) == as_bytes(make_parser().fit(treebank[:20]))


def short(treebank):
    return [tree for tree in treebank[60:] if 6 < len(tree.words()) < 14]


def test_the_best_parses_differ_and_get_worse(parser, treebank):
    for parses in parser.kbest(short(treebank), k=6):
        scores = [parse.score for parse in parses]
        assert scores == sorted(scores, reverse=True)
        assert all(score <= 0 for score in scores)
        assert len({str(parse.tree) for parse in parses}) == len(parses) == 6


def test_the_best_of_many_is_the_best(parser, treebank):
    single, several = parser.kbest(short(treebank), k=1), parser.kbest(short(treebank), k=5)
    assert len(single) > 5
    assert [parses[0] for parses in several] == [parse for (parse,) in single]


def test_a_search_that_is_cut_short_still_gives_a_tree_no_better(treebank, parser):
    cut = tw.ConstituentParser.from_state(parser.get_state())
    cut.max_inferences = 1
    whole = parser.kbest(treebank[60:], k=1)
    for tree, (found,), (best,) in zip(treebank[60:], cut.kbest(treebank[60:], k=1), whole, strict=True):
        assert found.tree.words() == tree.words()
        assert found.score <= best.score + 1e-9


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", [*STRATEGIES, "predicted"])
def test_trees_are_scored_as_the_search_scores_them(parsers, treebank, name):
    odd = [tagged(*each) for each in ODD_SENTENCES.values()]
    parses = [each for found in parsers[name].kbest([*treebank[50:], *odd], k=8) for each in found]
    scores = parsers[name].scores([each.tree for each in parses])
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, [each.score for each in parses], rtol=1e-9)
    mixed = np.random.default_rng(0).permutation(len(parses)).tolist()
    assert parsers[name].scores([parses[at].tree for at in mixed]).tolist() == scores[mixed].tolist()


@pytest.mark.parametrize("name", [*STRATEGIES, "predicted"])
def test_a_saved_parser_parses_the_same(parsers, treebank, name, tmp_path):
    parsers[name].save(tmp_path / "parser")
    again = tw.load(tmp_path / "parser")
    assert again.get_state().values == parsers[name].get_state().values
    assert as_bytes(again) == as_bytes(parsers[name])
    sentences = [tree.words() for tree in treebank[60:70]] if name == "predicted" else treebank[60:70]
    assert again.kbest(sentences, k=3) == parsers[name].kbest(sentences, k=3)


def with_one_split(features):
    """Return the features of nodes, where the first split is by one that there is not."""
    changed = features.copy()
    changed[np.flatnonzero(features >= 0)[0]] = 10**9
    return changed


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("grammar.lasts", lambda table: table[:, :-1], "expected tables of all labels and symbols"),
        (
            "grammar.lasts",
            lambda table: table.astype(int),
            "lasts is a 2-dimensional array of int64; expected a 2-dimensional array of booleans",
        ),
        ("forests.nodes.features", with_one_split, "expected splits by one of [0-9]+ features"),
        ("forests.nodes.present", np.zeros_like, "expected children that follow their parent"),
        ("forests.nodes.values", lambda values: values[1:], "expected node arrays of equal length"),
        ("forests.nodes.values", lambda values: values * np.nan, "values contains NaN or infinity; expected"),
        ("forests.roots", lambda roots: roots + 1, "expected roots in increasing order|the first node"),
        (
            "strange",
            lambda nothing: np.zeros(1),
            "ConstituentParser has an unknown array 'strange'; expected only its fields",
        ),
        ("forests", lambda sizes: [*sizes[:-1], sizes[-1] + 1], "expected [0-9]+ trees in total"),
        ("forests", lambda sizes: [sizes[0] + sizes[1], *sizes[2:-1], sizes[-1]], "expected trees of each"),
        ("symbols", lambda symbols: [[], *symbols[1:]], "expected at least one label"),
        ("symbols", lambda symbols: [*symbols[:3], [3]], "words are '.3.'; expected strings"),
        ("root", lambda root: 3, "root is 3; expected a string"),
        (
            "params",
            lambda params: params | {"strategy": "x"},
            "strategy is 'x'; expected one of shift-reduce",
        ),
        ("params", lambda params: params | {"speed": 1}, "unexpected keyword argument 'speed'"),
    ],
)
def test_what_is_no_parser_is_refused(parsers, tmp_path, name, change, message):
    state = parsers["original"].get_state()
    holder = state.values if name in state.values else state.arrays
    holder[name] = change(holder.get(name))
    save_state(state, tmp_path / "parser")
    with pytest.raises(FormatError, match=message):
        tw.load(tmp_path / "parser")


def test_a_parser_that_predicts_tags_takes_words_alone(parsers, treebank):
    found = parsers["predicted"].predict([tree.words() for tree in treebank[60:]])
    assert [tree.words() for tree in found] == [tree.words() for tree in treebank[60:]]
    assert tw.metrics.parseval(treebank[60:], found).f1 > 60


def test_a_parser_that_predicts_tags_looks_at_no_others(parsers, treebank):
    parser = parsers["predicted"]
    words = [tree.words() for tree in treebank[60:70]]
    wrong = [tagged(each, ["QQ"] * len(each)) for each in words]
    assert parser.predict(wrong) == parser.predict(treebank[60:70]) == parser.predict(words)


def test_a_parser_with_a_tagger_can_take_the_tags_of_the_input(parsers, treebank):
    parser = tw.ConstituentParser.from_state(parsers["predicted"].get_state())
    assert not parser.needs_tags
    parser.tags = "gold"
    assert parser.needs_tags
    assert [tree.tags() for tree in parser.predict(treebank[60:])] == [tree.tags() for tree in treebank[60:]]
    with pytest.raises(InputError, match="sentence 1 has no tags, but this ConstituentParser needs"):
        parser.predict([["The", "cat"]])
    parser.tags = "predicted"
    assert parser.kbest(treebank[60:65], k=2) == parsers["predicted"].kbest(treebank[60:65], k=2)


def test_a_parser_without_a_tagger_needs_tags(parser):
    assert parser.needs_tags


FEW_ATOMS = """
child 1       label word tag inner
last-child 1  label form
right 1       label word
end           label form
n-children
head          label word
"""


def test_atoms_are_saved_and_used_after_loading(treebank, tmp_path, monkeypatch):
    parser = make_parser(atoms=FEW_ATOMS, lowest_penalty=10.0).fit(treebank[:N_TRAINING])
    expected = parser.kbest(treebank[60:], k=3)
    parser.save(tmp_path / "parser")
    monkeypatch.setattr(constituent, "ATOMS", "n-words")
    again = tw.load(tmp_path / "parser")
    assert again.atoms == FEW_ATOMS
    assert again._table.n_features == parser._table.n_features < 300_000
    assert again.kbest(treebank[60:], k=3) == expected


def test_the_atoms_of_all_parsers_are_saved_too(parsers, treebank, tmp_path, monkeypatch):
    parser = parsers["shift-reduce"]
    parser.save(tmp_path / "parser")
    expected = parser.kbest(treebank[60:70], k=2)
    monkeypatch.setattr(constituent, "ATOMS", "n-words")
    again = tw.load(tmp_path / "parser")
    assert (parser.atoms, again.atoms) == (None, ATOMS)
    assert again.kbest(treebank[60:70], k=2) == expected


@pytest.mark.slow
def test_two_runs_have_the_trees_of_two_parsers_at_half_their_value(treebank):
    trees, dev = treebank[:20], treebank[60:65]
    options = {"lowest_penalty": 10.0, "sample_size": 100}
    one, other = (
        make_parser(random_state=random_state, **options).fit(trees, dev) for random_state in (0, 1)
    )
    both = make_parser(runs=2, **options).fit(trees, dev)
    step = max(both.history_, key=lambda step: step.f1)
    sizes = np.reshape(step.sizes, (2, -1)).tolist()
    for single, kept in zip((one, other), sizes, strict=True):
        assert kept in [step.sizes for step in single.history_]
    again = tw.ConstituentParser.from_state(both.get_state())
    assert again.kbest(dev, k=2) == both.kbest(dev, k=2)
    for label, trees in enumerate(again.forests_):
        n_first, n_second = (each[label] for each in sizes)
        assert len(trees) == n_first + n_second
        for single, of_run in ((one, trees[:n_first]), (other, trees[n_first:])):
            for half, tree in zip(of_run, single.forests_[label], strict=False):
                assert (2 * half.values).tolist() == tree.values.tolist()


@pytest.mark.parametrize("name", [*STRATEGIES, "predicted"])
def test_making_examples_learns_nothing(parsers, treebank, name):
    parser = parsers[name]
    before = parser.get_state().values, as_bytes(parser)
    lines = []
    with messages_to(lines.append):
        training = parser.make_training(treebank[:10])
    assert (parser.get_state().values, as_bytes(parser)) == before
    assert training.names[0] == "TOP"
    assert f"10 sentences, {training.n_states} states, " in lines[-1]
    fresh = make_parser()
    fresh.make_training(treebank[:10])
    assert not fresh.is_fitted


def test_examples_are_made_of_trees_alone(treebank):
    for trees in ([], [tw.ConstTree.parse("(TOP (NP (-NONE- *)))")]):
        with pytest.raises(InputError, match="no training trees with words; expected at least"):
            make_parser().make_training(trees)
    with pytest.raises(InputError, match="tree 2 is 'cat'; expected a ConstTree"):
        make_parser().make_training([treebank[0], "cat"])
    with pytest.raises(InputError, match="tags is 'none'; expected one of gold, predicted"):
        make_parser(tags="none").make_training(treebank[:1])


class StoppedError(Exception):
    """Stops a training."""


def interrupted_at(n_lines):
    seen = []

    def tell(line):
        seen.append(line)
        if len(seen) == n_lines:
            raise StoppedError

    return tell


@pytest.fixture
def many_looks(monkeypatch):
    """Let the dev sentences be parsed from early on."""
    monkeypatch.setattr("treewright.parsing.constituent.training.WARM_UP", 0.5)


@pytest.mark.slow_cases
@pytest.mark.usefixtures("many_looks")
@pytest.mark.parametrize("options", [{}, {"strategy": "original", "sample_size": 500}])
def test_training_that_was_interrupted_ends_with_the_same_parser(treebank, tmp_path, options):
    trees = treebank[:30]
    whole = make_parser(**options).fit(trees)
    assert len(whole.history_) > 4
    # The first line tells what there is to learn from; a step is told after it has been kept.
    for stop in (2, 4, 3):
        with pytest.raises(StoppedError), messages_to(interrupted_at(stop)):
            make_parser(**options).fit(trees, checkpoint=tmp_path / "kept")
    again = make_parser(**options).fit(trees, checkpoint=tmp_path / "kept")
    assert as_bytes(again) == as_bytes(whole)
    assert as_bytes(make_parser(**options).fit(trees, checkpoint=tmp_path / "kept")) == as_bytes(whole)


def test_what_another_training_has_left_is_refused(treebank, tmp_path):
    make_parser(lowest_penalty=20.0).fit(treebank[:20], checkpoint=tmp_path / "kept")
    for trees, options in ((treebank[:21], {}), (treebank[:20], {"random_state": 1})):
        with pytest.raises(
            InputError, match="is a checkpoint of a run with other data or options; use the data and options"
        ):
            make_parser(lowest_penalty=20.0, **options).fit(trees, checkpoint=tmp_path / "kept")


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"tags": "predicted", "folds": 2, "sample_size": 300}])
def test_threads_change_nothing(treebank, options):
    one, two = (make_parser(n_jobs=n_jobs, **options).fit(treebank[:30]) for n_jobs in (1, 2))
    assert as_bytes(one) == as_bytes(two)
    assert one.kbest(treebank[60:], k=2) == two.kbest(treebank[60:], k=2)


@pytest.mark.slow
@pytest.mark.usefixtures("many_looks")
def test_the_parser_of_the_best_step_is_kept(treebank):
    trees, dev = treebank[:30], treebank[60:]
    options = {"patience": 3, "lowest_penalty": 2.0, "max_inferences": 2_000}
    parser = make_parser(**options).fit(trees, dev)
    assert len(parser.history_) > 2
    best = max(parser.history_, key=lambda step: step.f1)
    assert [len(each) for each in parser.forests_] == best.sizes
    assert tw.metrics.parseval(dev, parser.predict(dev)).f1 == pytest.approx(best.f1)
    assert len(parser.history_) - 1 - parser.history_.index(best) <= 3


def test_words_with_tags_are_parsed_as_their_trees(parser, treebank):
    tree = treebank[60]
    pairs = list(zip(tree.words(), tree.tags(), strict=True))
    assert parser.predict([pairs]) == parser.predict([tree])


def test_penalties_fall_to_the_lowest(parser):
    penalties = [step.penalty for step in parser.history_]
    assert penalties == sorted(set(penalties), reverse=True)
    assert penalties[-1] >= 2.0


@pytest.mark.slow_cases
@pytest.mark.parametrize("root", ["ROOT", "TOP", "ODD"])
def test_parses_have_the_root_of_the_training_trees(treebank, root):
    trees = [tw.ConstTree(root, tree.children) for tree in treebank[:30]]
    parser = make_parser(lowest_penalty=10.0).fit(trees)
    assert {tree.label for tree in parser.predict(treebank)} == {root}
    assert parser.predict([tagged(["!"], ["."])])[0].label == root


@pytest.mark.slow
def test_parses_have_no_root_where_training_trees_have_none(treebank):
    trees = [child for tree in treebank for child in tree.children]
    parser = make_parser().fit(trees[:60])
    assert parser.root_ is None
    found = parser.predict(trees)
    assert sum(tree.label == "S" for tree in found) > 0.8 * len(trees)
    assert [tree.words() for tree in found] == [tree.words() for tree in trees]
    assert all("TOP" not in tree.labels[:-1] for tree in found)
    assert str(parser.predict([tagged(["Cat", "!"], ["QQ", "."])])[0]).endswith("(. !))")
    assert str(parser.predict([tagged(["!"], ["."])])[0]) == "(. !)"


def test_wide_nodes_are_learnt_around():
    wide = "(TOP (NP (DT a) (NN b) (NN c) (NN d) (NN e) (NN f) (NN g)) (VP (VBD h)))"
    narrow = "(TOP (NP (DT a) (NN b)) (VP (VBD h)))"
    trees = [tw.ConstTree.parse(each) for each in [wide] * 5 + [narrow] * 15]
    parser = make_parser(max_children=2, lowest_penalty=0.5).fit(trees, trees)
    found, other = parser.predict([trees[0], trees[-1]])
    assert found.words() == trees[0].words()
    assert max(len(each.children) for each in found.subtrees() if each.label != "TOP") <= 2
    assert other == trees[-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "left"}, "strategy is 'left'; expected one of shift-reduce, original"),
        ({"tags": "none"}, "tags is 'none'; expected one of gold, predicted"),
        ({"head_rules": "mine"}, "head_rules is 'mine'; expected"),
        ({"any_children": "yes"}, "any_children is 'yes'; expected"),
        ({"max_children": 0}, "max_children is 0; expected an integer of at least 1"),
        ({"min_count": 0}, "min_count is 0; expected an integer of at least 1"),
        ({"sample_size": 2.5}, "sample_size is 2.5; expected an integer of at least 1"),
        ({"patience": 0}, "patience is 0; expected an integer of at least 1"),
        ({"max_inferences": 0}, "max_inferences is 0; expected an integer of at least 1"),
        ({"n_jobs": 0}, "n_jobs is 0; expected an integer of at least 1"),
        ({"runs": 0}, "runs is 0; expected an integer of at least 1"),
        (
            {"atoms": "child label"},
            "the number of 'child' is missing or invalid in 'child label'; expected 1 to 100",
        ),
        ({"folds": 1}, "folds is 1; expected an integer of at least 2"),
        ({"random_state": "x"}, "random_state is 'x'; expected an integer"),
        ({"eta": 1.0}, "eta is 1.0; expected a number from 1e-06 to 0.999"),
        ({"eta": 0.96}, "eta is 0.96 with a slack of 0.05; expected eta"),
        ({"slack": 2}, "slack is 2; expected a number from 0 to 1"),
        ({"min_gain": -1}, "min_gain is -1; expected a number from 0 to 10"),
        ({"lowest_penalty": 0}, "lowest_penalty is 0; expected a number from 1e-06 to "),
        ({"lowest_penalty": 1e5}, "lowest_penalty is 100000.0; expected less than"),
    ],
)
def test_wrong_options_are_named(treebank, options, message):
    with pytest.raises(InputError) as caught:
        make_parser(**options).fit(treebank[:5])
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("trees", "message"),
    [
        ([], "there are no training trees with words; expected at least one"),
        (["(TOP (NP (-NONE- *)))"], "there are no training trees with words; expected at least one"),
        (["(TOP (. !))"] * 3, "the training trees contain only punctuation; expected words"),
        (["(NN a)"] * 3, "nothing can be learnt from the training trees"),
    ],
)
def test_training_trees_without_anything_to_learn_are_refused(trees, message):
    with pytest.raises(InputError) as caught:
        make_parser().fit([tw.ConstTree.parse(each) for each in trees])
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        (
            "The cat sat",
            "sentence 2 is the text 'The cat sat', but a ConstituentParser reads words (a Pipeline reads "
            "text); expected a tree, a list of words or a list of (word, tag) pairs",
        ),
        (["The", "cat"], f"sentence 2 has no tags, {NEEDS_TAGS}"),
        ([("The", "DT"), ("cat", None)], f"sentence 2: word 2, 'cat', has no tag, {NEEDS_TAGS}"),
        (
            [("The", 3)],
            "sentence 2: word 1 is ('The', 3) of type tuple; expected a word or a tuple (word, tag)",
        ),
        (
            tw.DepTree(["a"], upos=["X"]),
            f"sentence 2 has no tags in XPOS, {NEEDS_TAGS}".replace(
                "trees with tags", "trees with tags in XPOS"
            ),
        ),
        (tw.ConstTree("a"), f"sentence 2 has no tags, {NEEDS_TAGS}"),
        ([("a b", "X")], "sentence 2 has 'a b'; expected words and tags without white space"),
    ],
)
def test_what_is_no_tagged_sentence_is_refused_in_one_line(parser, treebank, sentence, message):
    with pytest.raises(InputError) as caught:
        parser.predict([treebank[0], sentence])
    assert str(caught.value) == message


def test_a_string_is_refused_also_where_tags_are_predicted(parsers):
    with pytest.raises(InputError, match="sentence 1 is the text 'a b c', but a ConstituentParser"):
        parsers["predicted"].predict(["a b c"])
    with pytest.raises(InputError, match=r"one sentence was given, \['abc'\]; expected a list of sentences"):
        parsers["predicted"].predict(["abc"])


def test_a_list_of_no_parses_is_refused(parser, treebank):
    with pytest.raises(InputError, match="k is 0; expected an integer of at least 1"):
        parser.kbest(treebank[:1], k=0)


def test_a_parser_that_has_learnt_nothing_says_so(treebank, tmp_path):
    for call in (lambda: make_parser().predict(treebank), lambda: make_parser().save(tmp_path / "x")):
        with pytest.raises(
            InputError, match="this ConstituentParser is not fitted; call fit first, or load a fitted one"
        ):
            call()


def test_one_tree_is_enough_to_learn_from(treebank):
    parser = make_parser(lowest_penalty=0.1).fit(treebank[:1])
    (found,) = parser.predict(treebank[:1])
    assert tw.metrics.parseval(treebank[:1], [found]).f1 > 90


def test_a_training_that_is_stopped_leaves_the_parser_as_it_was(treebank):
    parser = make_parser().fit(treebank[:20])
    before, parsed = as_bytes(parser), parser.predict(treebank[60:])

    def stop(line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), messages_to(stop):
        parser.fit(treebank)
    assert as_bytes(parser) == before
    assert parser.predict(treebank[60:]) == parsed


@pytest.mark.slow
def test_tags_with_functions_are_known_again(treebank):
    marked = [
        tw.ConstTree.parse(str(tree).replace("(NN ", "(NN-TL ").replace("(DT ", "(DT-X "))
        for tree in treebank
    ]
    found = make_parser().fit(marked[:N_TRAINING]).predict(marked[N_TRAINING:])
    plain = make_parser().fit(treebank[:N_TRAINING]).predict(treebank[N_TRAINING:])
    assert [tree.tags() for tree in found] == [tree.tags() for tree in marked[N_TRAINING:]]
    gold = marked[N_TRAINING:], treebank[N_TRAINING:]
    scores = [tw.metrics.parseval(*pair).f1 for pair in zip(gold, (found, plain), strict=True)]
    assert scores[0] == scores[1]


def test_the_strategy_of_training_is_that_of_parsing(treebank):
    parser = make_parser().fit(treebank[:20])
    expected = parser.predict(treebank[60:])
    parser.strategy = "original"
    assert parser.predict(treebank[60:]) == expected


def test_sentences_may_come_one_by_one(parser, treebank):
    assert parser.predict(iter(treebank[:3])) == parser.predict(treebank[:3])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([3], "sentence 1 is of type int; expected a tree, a list of words or a list of"),
        ([["a", 1]], "sentence 1: word 2 is 1 of type int"),
        (tw.ConstTree.parse("(NN a)"), "one tree was given"),
        ("The cat", "the sentences are the text 'The cat', but a ConstituentParser reads words"),
        (None, "the sentences are of type NoneType; expected a list of sentences"),
    ],
)
def test_what_is_no_sentence_is_told(parser, wrong, message):
    with pytest.raises(InputError, match=message):
        parser.predict(wrong)


def test_dev_trees_without_words_are_refused(treebank):
    with pytest.raises(InputError, match="no dev trees with words"):
        make_parser().fit(treebank[:20], [])


def test_a_penalty_that_is_refused_leaves_nothing_to_go_on_from(treebank, tmp_path):
    folder = tmp_path / "checkpoint"
    with pytest.raises(InputError, match="lowest_penalty is 100000"):
        make_parser(lowest_penalty=100000.0).fit(treebank[:20], checkpoint=folder)
    assert not folder.exists()


@pytest.mark.parametrize("kind", [tw.ConstituentParser, tw.LeftCornerParser, tw.SpanParser])
def test_training_without_trees_is_refused(kind):
    with pytest.raises(InputError, match=r"^the trees are of type NoneType; expected a list of ConstTree$"):
        kind().fit(None)
