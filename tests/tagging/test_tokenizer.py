import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.tagging import boundaries as oracle

import treewright as tw
from treewright.data.deptree import DepTree, ExtraLine
from treewright.errors import FormatError, InputError
from treewright.model import load_state, save_state
from treewright.progress import Message, listening
from treewright.tagging import tokenizer as module
from treewright.tagging.boundaries import KIND_NUMBERS, encode_characters
from treewright.tagging.surface import join_sentences, surface_tokens
from treewright.tagging.tokenizer import Tokenizer

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
ODD_TEXT = st.text("aB1.,!'\"() \n\r\t\0\x0b\x85\u00a0\u2028\u2029\u200b\u0301漢あ", max_size=80)
RANGE = re.compile(r"TokenRange=(\d+):(\d+)")


@pytest.fixture(scope="module")
def bank():
    return tw.make_treebank(n_sentences=300, random_state=1).dependencies


@pytest.fixture(scope="module")
def tokenizer(bank):
    return Tokenizer(epochs=5).fit(bank)


@pytest.fixture(scope="module")
def french():
    """Return a tokenizer that knows a multiword token and a token with a space."""
    sentences = []
    for number in range(40):
        noun = ["chat", "chien", "lac", "pain"][number % 4]
        sentences.append(
            DepTree(
                ["Il", "parle", "de", "le", noun, "1 000", "."],
                misc=["_", "_", "_", "_", "_", "SpaceAfter=No", "_"],
                comments=[f"# text = Il parle du {noun} 1 000."],
                extra_lines=[ExtraLine(2, "3-4\tdu\t_\t_\t_\t_\t_\t_\t_\t_")],
            )
        )
    return Tokenizer(epochs=5).fit(sentences)


@pytest.fixture(scope="module")
def japanese():
    """Return a tokenizer of a language without spaces."""
    return Tokenizer(epochs=5).fit(unspaced(["赤い花が咲いた。", "花が赤い。", "猫が花を見た。"] * 8))


def unspaced(texts):
    """Make sentences without spaces; words end where the script changes."""
    trees = []
    for text in texts:
        words = re.findall("[一-龥]+|[ぁ-ん]+|。", text)
        trees.append(DepTree(words, misc=["SpaceAfter=No"] * len(words), comments=[f"# text = {text}"]))
    return trees


def text_of(trees):
    return "".join(token.form + token.spaces for tree in trees for token in surface_tokens(tree))


def tokens_with_ranges(tree):
    """List the tokens of a sentence, each with its place in the text."""
    ranges = {}
    for extra in tree.extra_lines:
        columns = extra.text.split("\t")
        begin, stop = map(int, columns[0].split("-"))
        ranges[begin - 1] = (stop, columns[1], columns[9])
    found, at = [], 0
    while at < len(tree):
        at, form, misc = ranges.get(at, (at + 1, tree.words[at], tree.misc[at]))
        begin, stop = map(int, RANGE.search(misc).groups())
        found.append((form, begin, stop))
    return found


def check_sentences(text, trees, tmp_path=None):
    """Check that the tokens and the white space between them are the text."""
    tokens = [token for tree in trees for token in tokens_with_ranges(tree)]
    for form, begin, stop in tokens:
        assert form == text[begin:stop].translate(module.UNWRITABLE)
    bounds = [0, *(bound for _, *place in tokens for bound in place), len(text)]
    gaps = [text[bounds[at] : bounds[at + 1]] for at in range(0, len(bounds), 2)]
    assert not "".join(gaps).strip()
    for tree in trees:
        assert tree.words
        assert tree.metadata["text"] == re.sub(r"\s*$", "", tree.metadata["text"])


def test_sentences_of_a_treebank_come_back_from_their_text(tokenizer, bank):
    found = tokenizer.split(text_of(bank))
    assert [tree.words for tree in found] == [tree.words for tree in bank]
    assert [tree.metadata["text"] for tree in found] == [tree.metadata["text"] for tree in bank]


def test_new_sentences_are_split(tokenizer):
    new = tw.make_treebank(n_sentences=100, random_state=7).dependencies
    found = {tuple(tree.words) for tree in tokenizer.split(text_of(new))}
    assert np.mean([tuple(tree.words) in found for tree in new]) > 0.9


def test_lines_may_be_wrapped(tokenizer, bank):
    text = text_of(bank[:50])
    wrapped = re.sub(r"(.{1,60}) ", r"\1\n", text)
    assert wrapped.count("\n") > 5
    found = tokenizer.split(wrapped)
    assert [tree.words for tree in found] == [tree.words for tree in tokenizer.split(text)]
    assert not any("\n" in tree.metadata["text"] for tree in found)


@pytest.mark.parametrize("blank", ["\n\n", "\r\n\r\n", "\r\r", "\n \t\n", "\u2029", "\n\n\n\n"])
def test_a_blank_line_ends_a_sentence(tokenizer, blank):
    found = tokenizer.split(f"the old{blank}fox")
    assert [tree.words for tree in found] == [["the", "old"], ["fox"]]
    assert [tree.comments[0] for tree in found] == ["# newpar", "# newpar"]


@pytest.mark.parametrize("space", [" ", "\n", "\r\n", "\t", "  ", "\u00a0", "\u3000"])
def test_other_white_space_does_not(tokenizer, space):
    (tree,) = tokenizer.split(f"the{space}old")
    assert tree.words == ["the", "old"]
    assert tree.metadata["text"] == "the old"


def test_sentences_are_numbered_and_have_their_text(tokenizer, bank):
    first, second = tokenizer.split(text_of(bank[:2]))
    assert first.comments == ["# newpar", "# sent_id = 1", f"# text = {bank[0].metadata['text']}"]
    assert second.comments == ["# sent_id = 2", f"# text = {bank[1].metadata['text']}"]


def test_the_last_column_has_white_space_and_places(tokenizer):
    (tree,) = tokenizer.split(" \tthe  old\nfox.")
    assert tree.words == ["the", "old", "fox", "."]
    assert tree.misc == [
        "SpacesBefore=\\s\\t|SpacesAfter=\\s\\s|TokenRange=2:5",
        "SpacesAfter=\\n|TokenRange=7:10",
        "SpaceAfter=No|TokenRange=11:14",
        "SpaceAfter=No|TokenRange=14:15",
    ]


@pytest.mark.parametrize("text", ["", " ", "\n\n \t\r\n", "\u2029"])
def test_a_text_without_tokens_has_no_sentences(tokenizer, text):
    assert tokenizer.split(text) == []


def test_a_multiword_token_has_a_range_and_its_words(french):
    (tree,) = french.split("Il parle du chat.")
    assert tree.words == ["Il", "parle", "de", "le", "chat", "."]
    assert tree.extra_lines == [ExtraLine(2, "3-4\tdu\t_\t_\t_\t_\t_\t_\t_\tTokenRange=9:11")]
    assert tree.misc[2:4] == ["_", "_"]
    assert tree.metadata["text"] == "Il parle du chat."


def test_a_token_has_a_space_if_the_treebank_says_so(french, tokenizer):
    (tree,) = french.split("Il parle du lac 1 000.")
    assert tree.words[-2:] == ["1 000", "."]
    assert tree.metadata["text"] == "Il parle du lac 1 000."
    assert not any(" " in word for each in tokenizer.split("the 1 000 .") for word in each.words)


def test_what_the_format_cannot_hold_is_replaced(french, tmp_path):
    trees = french.split("Il parle du lac 1\t000 a\0b.")
    assert "a\ufffdb" in "".join(trees[0].words)
    tw.write_conllu(trees, tmp_path / "out.conllu")
    assert tw.read_conllu(tmp_path / "out.conllu", require_heads=False) == trees


@given(ANY_TEXT | ODD_TEXT)
def test_every_character_of_any_text_is_accounted_for(tokenizer, text):
    trees = tokenizer.split(text)
    check_sentences(text, trees)
    before = re.match(r"\s*", text)[0]
    if trees:
        assert before + text_of(trees) == text.replace("\0", "\ufffd")


@given(ODD_TEXT)
def test_every_character_is_accounted_for_where_tokens_have_spaces(french, text):
    check_sentences(text, french.split(text))


@given(ANY_TEXT | ODD_TEXT | st.text("赤花猫見いがを。 \n\u0301", max_size=60))
def test_every_character_is_accounted_for_in_a_language_without_spaces(japanese, text):
    check_sentences(text, japanese.split(text))


@settings(max_examples=50)
@given(ANY_TEXT | ODD_TEXT)
def test_sentences_of_any_text_can_be_written_and_read(tokenizer, tmp_path_factory, text):
    trees = tokenizer.split(text)
    path = tmp_path_factory.mktemp("any") / "out.conllu"
    tw.write_conllu(trees, path)
    assert tw.read_conllu(path, require_heads=False) == trees


@given(st.lists(ODD_TEXT | st.sampled_from([" " * 70, "x" * 90, "the fox. "]), max_size=5), st.data())
def test_pieces_do_not_matter(tokenizer, texts, data):
    text = "".join(texts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[begin:end] for begin, end in pairwise([0, *cuts, len(text)])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", 40)
        patch.setattr(module, "MARGIN", 10)
        whole = tokenizer.split(text)
        check_sentences(text, whole)
        assert list(tokenizer.iter_split(pieces)) == whole


def test_sentences_are_given_before_the_text_has_ended(tokenizer, bank):
    text = text_of(bank)
    n_read = 0

    def pieces():
        nonlocal n_read
        while True:
            n_read += 1
            yield text

    sentences = tokenizer.iter_split(pieces())
    n_sentences = sum(1 for _, _ in zip(range(1000), sentences, strict=False))
    assert n_sentences == 1000
    assert n_read * len(text) < 10 * module.BLOCK + 1000 * len(text) / len(bank)


def test_blocks_do_not_change_ordinary_sentences(tokenizer, bank, monkeypatch):
    text = text_of(bank)
    whole = tokenizer.split(text)
    monkeypatch.setattr(module, "BLOCK", 2000)
    monkeypatch.setattr(module, "MARGIN", 500)
    assert tokenizer.split(text) == whole


@pytest.mark.parametrize("text", ["x" * 100_000, "the old " * 20_000, " " * 100_000 + "the" + "\n" * 100_000])
def test_what_does_not_end_is_cut(tokenizer, text):
    trees = tokenizer.split(text)
    check_sentences(text, trees)
    assert all(len(tree.metadata["text"]) <= module.BLOCK for tree in trees)


def test_a_tokenizer_comes_back_from_a_file(tokenizer, french, japanese, bank, tmp_path):
    for number, each in enumerate((tokenizer, french, japanese)):
        each.save(tmp_path / f"{number}.tw")
        loaded = tw.load(tmp_path / f"{number}.tw")
        text = text_of(bank[:20]) + "Il parle du lac 1 000. 花が咲いた。赤い猫が花を見た。"
        assert loaded.split(text) == each.split(text)


@pytest.mark.parametrize("name", ["joined", "words", "cased.classes", "cased.keys"])
def test_a_tokenizer_with_a_missing_array_is_refused(tokenizer, tmp_path, name):
    state = tokenizer.get_state()
    state.arrays[name] = np.zeros((2, 2), dtype=np.float32)
    save_state(state, tmp_path / "bad.tw")
    with pytest.raises(FormatError, match="a corrupt Tokenizer"):
        tw.load(tmp_path / "bad.tw")


def test_the_same_seed_gives_the_same_tokenizer(bank, tmp_path):
    for name in ("a", "b"):
        Tokenizer(epochs=2, random_state=5).fit(bank[:50]).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_training_goes_on_from_a_checkpoint(bank, tmp_path, monkeypatch):
    whole = Tokenizer(epochs=3).fit(bank[:50])
    calls = 0
    ordinary = module.BoundaryClassifier.learn

    def interrupted(self, *arguments, **options):
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        return ordinary(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(module.BoundaryClassifier, "learn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Tokenizer(epochs=3).fit(bank[:50], checkpoint=tmp_path / "kept")
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["learning token ends.step"]
    resumed = Tokenizer(epochs=3).fit(bank[:50], checkpoint=tmp_path / "kept")
    whole.save(tmp_path / "whole")
    resumed.save(tmp_path / "resumed")
    assert load_state(tmp_path / "whole").arrays.keys() == load_state(tmp_path / "resumed").arrays.keys()
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "resumed").read_bytes()


def test_a_tokenizer_that_has_learnt_nothing_says_so():
    with pytest.raises(InputError, match="not fitted"):
        Tokenizer().split("a")


def test_no_sentences_are_refused():
    with pytest.raises(InputError, match="no training sentences"):
        Tokenizer().fit([])


def test_line_breaks_count_if_the_treebank_has_them():
    rng = np.random.default_rng(0)
    sentences = [rng.choice(["ab", "cd", "ef", "gh"], rng.integers(1, 6)).tolist() for _ in range(100)]
    trees = [
        DepTree(
            words,
            misc=["_"] * (len(words) - 1) + ["SpacesAfter=\\n"],
            comments=[f"# text = {' '.join(words)}"],
        )
        for words in sentences
    ]
    tokenizer = Tokenizer().fit(trees)
    found = tokenizer.split("ab cd ef\ngh ab ef cd\nef gh")
    assert [len(tree) for tree in found] == [3, 4, 2]


def test_words_without_spaces_are_found():
    words = ["赤い", "花", "が", "咲いた", "。"]
    other = ["花", "が", "赤い", "。"]
    trees = [
        DepTree(each, misc=["SpaceAfter=No"] * len(each), comments=[f"# text = {''.join(each)}"])
        for each in [words, other] * 10
    ]
    tokenizer = Tokenizer().fit(trees)
    assert [tree.words for tree in tokenizer.split("花が咲いた。赤い花が赤い。")] == [
        ["花", "が", "咲いた", "。"],
        ["赤い", "花", "が", "赤い", "。"],
    ]


def word_keys(words):
    """Return the keys of words, by definition."""
    return {oracle.small(*map(ord, word)) for word in words}


def test_known_words_of_each_part_of_the_training_text_are_those_of_the_other_parts(monkeypatch):
    known = []

    def record(text, words, attributes):
        known.append(set(words.keys[words.keys > 0].tolist()))

    monkeypatch.setattr(module, "fill_words", record)
    monkeypatch.setattr(module, "N_PARTS", 3)
    parts = [
        ["花が赤い。", "猫が来た。"],
        ["犬を見た。", "花を見た。"],
        ["鳥は来た。", "国立博物館長代理は犬を見た。"],
    ]
    tokenizer = Tokenizer(epochs=1).fit(unspaced([text for part in parts for text in part]))
    assert known == [
        word_keys(["犬", "を", "見", "た", "。", "花", "鳥", "は", "来"]),
        word_keys(["花", "が", "赤", "い", "。", "猫", "来", "た", "鳥", "は", "犬", "を", "見"]),
        word_keys(["花", "が", "赤", "い", "。", "猫", "来", "た", "犬", "を", "見"]),
    ]
    longest = oracle.small(*map(ord, "国立博物館長代理"))
    assert set(tokenizer.words_.tolist()) == set.union(*known)
    assert longest not in tokenizer.words_  # longer than six characters


def test_there_is_a_decision_after_each_character_of_a_part_but_the_last(monkeypatch):
    japanese = Tokenizer(epochs=1).fit(unspaced(["赤い花が咲いた。", "花が赤い。"]))
    parts = [unspaced(["赤い花が咲いた。", "花が赤い。"]), unspaced(["猫が花を見た。", "赤い猫。"])]
    texts = [join_sentences([surface_tokens(tree) for tree in part], [False] * 2) for part in parts]
    gold = join_sentences([surface_tokens(tree) for part in parts for tree in part], [False] * 4)
    characters = encode_characters(gold.text)
    monkeypatch.setattr(module, "N_PARTS", 2)
    keys, ends = japanese._token_keys(characters, gold, japanese._learn_words(characters, gold))
    assert len(keys) == len(ends)
    assert ends.tolist() == [end for text in texts for end in text.token_ends[:-1].tolist()]


def test_one_sentence_without_spaces_is_enough():
    (tree,) = unspaced(["赤い花が咲いた。"])
    assert len(Tokenizer(epochs=1).fit([tree]).tokens_.weights_.keys) > 0


@pytest.mark.parametrize(
    "cluster",
    [
        "👩\u200d👩\u200d👧",
        "❤\ufe0f",
        "👍🏽",
        "🇩🇪",
        "🏴\U000e0067\U000e0062\U000e007f",
        "e\u0301\u0323",
        "1\ufe0f\u20e3",
    ],
    ids=["joined", "variation", "skin", "flag", "tags", "marks", "keycap"],
)
def test_a_grapheme_cluster_is_never_split(tokenizer, cluster):
    trees = tokenizer.split(f"The dog{cluster}sleeps. {cluster} A cat {cluster}{cluster}.")
    ranges = [RANGE.search(misc) for tree in trees for misc in tree.misc]
    text = f"The dog{cluster}sleeps. {cluster} A cat {cluster}{cluster}."
    begins = [at for at in range(len(text)) if text.startswith(cluster, at)]
    inside = {at + step for at in begins for step in range(1, len(cluster))}
    assert len(begins) == 4
    assert inside.isdisjoint(int(place) for found in ranges for place in found.groups())


def test_two_flags_may_be_two_tokens():
    holds = encode_characters("🇩🇪🇫🇷x🇮🇹").holds
    assert holds.tolist() == [True, False, True, False, False, True, False]


def test_a_byte_order_mark_is_no_token(tokenizer):
    trees = tokenizer.split("\ufeffThe dog sleeps.")
    assert trees[0].words[0] == "The"
    assert trees[0].misc[0] == "SpacesBefore=\ufeff|TokenRange=1:4"
    assert [tree.words for tree in trees] == [tree.words for tree in tokenizer.split("The dog sleeps.")]


@pytest.mark.parametrize("address", ["http://a.example/find?q=dog&n=1.5", "www.example.com/?a=(b)!c#d"])
def test_a_web_address_is_one_token(tokenizer, address):
    words = [
        word for tree in tokenizer.split(f"The dog sees {address}. A cat sleeps.") for word in tree.words
    ]
    assert address in words


def test_scores_on_dev_are_reported(bank):
    messages = []
    with listening(messages.append):
        Tokenizer(epochs=2).fit(bank[:100], bank[100:150])
    lines = [each.text for each in messages if isinstance(each, Message)]
    assert re.fullmatch(r"dev \(F1\): tokens \d+\.\d\d, sentences \d+\.\d\d", lines[-1])


def test_characters_have_kinds():
    text = "aA1. \n\n漢あア가ก\u0301"
    names = {number: name for name, number in KIND_NUMBERS.items()}
    assert [names[kind] for kind in encode_characters(text).kinds.tolist()] == [
        *("lower", "upper", "digit", ".", "space", "line", "paragraph"),
        *("han", "hiragana", "katakana", "hangul", "unspaced", "mark"),
    ]


@pytest.mark.parametrize("name", ["hu_szeged", "tr_imst"])
def test_real_text_is_split_well(data_folder, name):
    train = tw.read_conllu(data_folder / "ud" / f"{name}-ud-train.conllu")[:600]
    dev = tw.read_conllu(data_folder / "ud" / f"{name}-ud-dev.conllu")[:200]
    found = Tokenizer(epochs=5).fit(train).split(text_of(dev))
    gold = {tuple(tree.words) for tree in dev}
    assert len(gold & {tuple(tree.words) for tree in found}) > 0.7 * len(gold)
