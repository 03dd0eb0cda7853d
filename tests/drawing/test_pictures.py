"""Pictures of trees: well-formed whatever the words, all arcs and nodes there, nothing on top of anything."""

import io
import logging
from itertools import combinations, pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import const_trees, dep_trees

import treewright as tw
from treewright.drawing.glyphs import cell_width, em_width, visible
from treewright.drawing.layout import SIZES, lay_out
from treewright.drawing.pictures import find_differences, notebook_html
from treewright.drawing.png import FIRST_FAMILY, find_families
from treewright.errors import InputError
from treewright.parsing.constituent.parser import Parse
from treewright.parsing.dependency.parser import Candidate

SVG = "{http://www.w3.org/2000/svg}"
ODD_WORDS = [
    "<b>",
    "a&b",
    '"',
    "'",
    "\x00\x1b[31m",
    "\ud800",
    "\ufffe",
    "🙂",
    "שלום",
    "漢字",
    "]]>",
    "\u2028",
]


@pytest.fixture
def gift():
    return tw.DepTree(
        ["she", "gave", "him", "two", "figs"],
        [2, 0, 2, 5, 2],
        ["nsubj", "root", "iobj", "nummod", "obj"],
        upos=["PRON", "VERB", "PRON", "NUM", "NOUN"],
    )


@pytest.fixture
def dog():
    return tw.ConstTree.parse("(S (NP (D the) (N dog)) (VP (V barks)))")


def elements(svg, kind):
    """Return the groups of a class, in the order of the picture."""
    groups = ElementTree.fromstring(svg).iter(f"{SVG}g")
    return [group for group in groups if kind in group.get("class").split()]


def texts_of(group):
    return {text.get("class"): text.text for text in group.iter(f"{SVG}text")}


def plain_trees(max_words=6):
    return dep_trees(max_words, extras=False, comments=False)


def odd_trees():
    """Draw trees with what XML forbids among their words, tags and relations, some words without heads."""

    def damage(tree, words):
        n = len(tree)
        chosen = [words[at % len(words)] for at in range(n)]
        heads = [head if at % 3 else -1 for at, head in enumerate(tree.heads.tolist())]
        return tw.DepTree(chosen, heads, chosen, upos=chosen)

    return st.builds(damage, plain_trees(), st.lists(st.sampled_from(ODD_WORDS), min_size=1, max_size=6))


@given(plain_trees() | odd_trees(), st.text(max_size=5))
def test_pictures_of_dependencies_are_well_formed_and_have_every_arc(tree, title):
    svg = tw.draw_svg(tree, marked=range(1, len(tree) + 1), title=title)
    svg.encode("utf-8")
    arcs = {int(arc.get("data-word")): int(arc.get("data-head")) for arc in elements(svg, "arc")}
    heads = enumerate(tree.heads.tolist(), start=1)
    assert arcs == {word: head for word, head in heads if head >= 0}
    assert [int(word.get("data-word")) for word in elements(svg, "word")] == list(range(1, len(tree) + 1))


@given(const_trees())
def test_pictures_of_constituents_are_well_formed_and_have_every_node(tree):
    nodes = elements(tw.draw_svg(tree), "node")
    assert sorted(int(node.get("data-node")) for node in nodes) == list(range(tree.n_nodes))
    assert len(elements(tw.draw_svg(tree), "leaf")) == len(tree.words())


def test_words_that_are_markup_are_shown_as_they_stand():
    tree = tw.DepTree(["<b>", "&amp;"], [0, 1], ["root", 'a"b'])
    svg = tw.draw_svg(tree)
    assert [texts_of(word)["word"] for word in elements(svg, "word")] == ["<b>", "&amp;"]
    assert {arc.get("data-relation") for arc in elements(svg, "arc")} == {"root", 'a"b'}


def test_arcs_say_what_they_are(gift):
    svg = tw.draw_svg(gift, marked=[5], confidence=[0.934, 1, 0.5, 0, 1.0000001])
    arcs = {arc.get("data-word"): arc for arc in elements(svg, "arc")}
    assert arcs["1"].attrib == {
        "class": "arc",
        "data-word": "1",
        "data-head": "2",
        "data-relation": "nsubj",
        "data-confidence": "0.93",
    }
    assert arcs["5"].get("class") == "arc marked"
    assert arcs["2"].get("data-head") == "0"
    assert arcs["1"].find(f"{SVG}title").text == "she: nsubj of gave (93%)"
    assert texts_of(arcs["5"]) == {"relation": "obj"}


def test_lines_are_thinner_and_paler_the_less_sure(gift):
    svg = tw.draw_svg(gift, confidence=[0.1, 0.2, 0.3, 0.4, 0.9])
    lines = {arc.get("data-word"): arc.find(f"{SVG}path") for arc in elements(svg, "arc")}
    for name in ("stroke-width", "stroke-opacity"):
        values = [float(lines[str(word)].get(name)) for word in range(1, 6)]
        assert values == sorted(values)
        assert values[0] < values[-1]


def test_a_picture_says_in_words_what_it_shows(gift, dog):
    picture = ElementTree.fromstring(tw.draw_svg(gift))
    assert picture.get("role") == "img"
    assert picture.find(f"{SVG}title").text == "she gave him two figs"
    assert picture.find(f"{SVG}desc").text.startswith("she: nsubj of gave; gave: root; him: iobj of gave")
    assert ElementTree.fromstring(tw.draw_svg(dog)).find(f"{SVG}desc").text == str(dog)
    assert ElementTree.fromstring(tw.draw_svg(dog, title="A")).find(f"{SVG}title").text == "A"


def test_pictures_have_no_scripts_and_no_addresses(gift, dog):
    for tree in (gift, dog):
        svg = tw.draw_svg(tree).replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert not [found for found in ("script", "http", "href", "url(", "@import") if found in svg]


def test_words_without_heads_have_no_arcs():
    svg = tw.draw_svg(tw.DepTree(["a", "b"]))
    assert not elements(svg, "arc")
    assert len(elements(svg, "word")) == 2


def test_an_empty_sentence_is_an_empty_picture():
    assert not elements(tw.draw_svg(tw.DepTree([])), "word")


def spread(text):
    """Return where a text begins and ends, as far as is estimated."""
    half = SIZES[text.kind] * em_width(text.text) / 2
    return text.at[0] - half, text.at[0] + half


def rows_of(layout):
    rows = {}
    for group in layout.groups:
        for text in group.texts:
            rows.setdefault(text.at[1], []).append(spread(text))
    return [sorted(row) for row in rows.values()]


@given(plain_trees(9))
def test_words_tags_and_relations_do_not_overlap(tree):
    crossing = any(
        a < b < c < d or b < a < d < c
        for (a, c), (b, d) in combinations([sorted(arc) for arc in enumerate(tree.heads.tolist(), 1)], 2)
    )
    layout = lay_out(tree)
    for row in rows_of(layout):
        if row and not crossing:
            assert all(left[1] <= right[0] + 0.01 for left, right in pairwise(row))
        assert row[0][0] >= 0
        assert row[-1][1] <= layout.width


@given(const_trees(max_leaves=20))
def test_labels_of_constituents_do_not_overlap(tree):
    layout = lay_out(tree)
    for row in rows_of(layout):
        assert all(left[1] <= right[0] for left, right in pairwise(row))
        assert row[0][0] >= 0
        assert row[-1][1] <= layout.width


def flat_parts(layout):
    """Return the level parts of arcs: height, left end, right end."""
    found = []
    for group in layout.groups:
        for stroke in group.strokes:
            steps = [points[-1] for step, points in stroke.steps if points]
            if stroke.kind == "line" and len(steps) > 2:
                (left, top), (right, _) = sorted(steps[2:4])
                found.append((top, left, right))
    return found


@given(plain_trees(9))
def test_level_parts_of_arcs_do_not_overlap(tree):
    for (top, left, right), (other, its_left, its_right) in combinations(flat_parts(lay_out(tree)), 2):
        assert top != other or right <= its_left or its_right <= left


@given(plain_trees(9))
def test_an_arc_over_another_is_higher(tree):
    tops = {}
    for group in lay_out(tree).groups:
        if group.kinds[0] == "arc" and group.data["head"] != "0":
            ends = sorted(int(group.data[name]) for name in ("word", "head"))
            tops[tuple(ends)] = min(y for step in group.strokes[0].steps for _, y in step[1])
    for outer, inner in combinations(tops, 2):
        for (a, d), (b, c) in ((outer, inner), (inner, outer)):
            if a <= b < c <= d:
                assert tops[a, d] < tops[b, c]


def test_words_stand_in_one_row(dog):
    heights = {group.texts[0].at[1] for group in lay_out(dog).groups if "leaf" in group.kinds}
    assert len(heights) == 1


@given(plain_trees() | odd_trees())
def test_vertical_pictures_have_every_arc_and_word(tree):
    svg = tw.draw_svg(tree, layout="vertical")
    arcs = {int(arc.get("data-word")): int(arc.get("data-head")) for arc in elements(svg, "arc")}
    assert arcs == {word: head for word, head in enumerate(tree.heads.tolist(), start=1) if head >= 0}
    assert len(elements(svg, "word")) == len(tree)


@given(plain_trees(9) | const_trees(max_leaves=20))
def test_texts_of_vertical_pictures_do_not_overlap(tree):
    layout = lay_out(tree, is_vertical=True)
    for row in rows_of(layout):
        assert all(left[1] <= right[0] + 0.01 for left, right in pairwise(row))
        assert row[0][0] >= 0
        assert row[-1][1] <= layout.width


def test_words_of_vertical_pictures_stand_under_one_another(gift, dog):
    for tree, kind in ((gift, "word"), (dog, "leaf")):
        groups = [group for group in lay_out(tree, is_vertical=True).groups if kind in group.kinds]
        rows = {group.about: group.texts[0].at[1] for group in groups}
        words = tree.words if kind == "word" else tree.words()
        named = {about.partition(" ")[0]: y for about, y in rows.items()}
        assert [named[word] for word in words] == sorted(named.values())


@given(plain_trees(9))
def test_vertical_arcs_that_pass_each_other_do_not_touch(tree):
    found = []
    for group in lay_out(tree, is_vertical=True).groups:
        if group.kinds[0] == "arc" and group.data["head"] != "0":
            points = [point for _, points in group.strokes[0].steps for point in points]
            left = min(x for x, _ in points)
            found.append(
                (left, min(y for x, y in points if x == left), max(y for x, y in points if x == left))
            )
    for (left, top, bottom), (other, its_top, its_bottom) in combinations(found, 2):
        assert left != other or bottom <= its_top or its_bottom <= top


def test_deep_vertical_trees_can_be_drawn():
    depth = 10_000
    tree = tw.ConstTree.from_child_counts(["x", *["A"] * depth], [0, *[1] * depth])
    assert tw.draw_svg(tree, layout="vertical").count('class="node') == depth + 1


def test_other_layouts_are_refused(gift):
    with pytest.raises(InputError, match="layout is 'round'; expected one of horizontal, vertical"):
        tw.draw_svg(gift, layout="round")


def test_hebrew_runs_from_right_to_left():
    tree = tw.DepTree(["הילד", "ישן"], [2, 0], ["nsubj", "root"])
    first, second = (group.texts[0].at[0] for group in lay_out(tree).groups if group.kinds == ("word",))
    assert first > second


def test_wide_letters_have_more_room():
    def width(word):
        return lay_out(tw.DepTree([word] * 3, [0, 1, 2])).width

    assert width("漢字漢字") > width("abcd") > width("illi")


def test_long_words_are_cut_but_told_whole():
    svg = tw.draw_svg(tw.DepTree(["x" * 500], [0]))
    (word,) = elements(svg, "word")
    assert len(texts_of(word)["word"]) == 40
    assert word.find(f"{SVG}title").text == "x" * 500


def test_deep_trees_can_be_drawn():
    depth = 10_000
    tree = tw.ConstTree.from_child_counts(["x", *["A"] * depth], [0, *[1] * depth])
    assert tw.draw_svg(tree).count('class="node') == depth + 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"marked": [0]}, "marked contains 0; expected words from 1 to 5"),
        ({"marked": [6]}, "marked contains 6; expected words from 1"),
        ({"confidence": [1.0]}, "confidence has 1 values; expected 5, one per word"),
        ({"confidence": [0, 1, 2, 0, 0]}, "confidence contains 2; expected numbers from 0 to 1"),
        ({"confidence": [0, 1, float("nan"), 0, 0]}, "confidence contains nan; expected numbers from 0 to 1"),
    ],
)
def test_notes_that_are_not_of_the_tree_are_refused(gift, options, message):
    for draw in (tw.draw_svg, tw.draw):
        with pytest.raises(InputError, match=message):
            draw(gift, **options)


def test_drawings_have_ascii_lines_where_standard_output_cannot_encode_others(gift, dog, monkeypatch):
    drawn = [str(gift), tw.draw(dog), repr(tw.compare_trees([gift, gift]))]
    assert not any(map(str.isascii, drawn))
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    plain = [str(gift), tw.draw(dog), repr(tw.compare_trees([gift, gift]))]
    assert all(map(str.isascii, plain))
    assert [len(text) for text in plain[:2]] == [len(text) for text in drawn[:2]]
    print(tw.DepTree(["Zoë", "sleeps"], [2, 0]))  # raises nothing
    assert str(tw.DepTree(["Zoë", "sleeps"], [2, 0])).splitlines()[0].startswith("+-> Zo\\xeb")


def test_files_are_drawn_with_lines_whatever_standard_output_can_encode(gift, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    tw.draw(gift, tmp_path / "tree.txt")
    assert "►" in (tmp_path / "tree.txt").read_text("utf-8")


def test_without_a_path_the_drawing_is_text(gift, dog):
    lines = tw.draw(gift, marked=[5], confidence=np.array([0.5, 1, 0.25, 1, 0.125])).split("\n")
    assert lines[0].endswith("she   PRON  nsubj 50%")
    assert lines[4].endswith("figs  NOUN  obj 12% *")
    assert tw.draw(dog, marked=[2]).split("\n")[1:3] == ["├─ NP", "│  ├─ D the"]
    assert tw.draw(dog, marked=[4]).split("\n")[1] == "├─ NP *"


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.svg", b"<svg xmlns"), ("a.PNG", b"\x89PNG\r\n\x1a\n"), ("a.txt", "  ┌─► she".encode())],
)
def test_the_name_of_the_file_says_what_is_written(gift, tmp_path, name, start):
    assert tw.draw(gift, tmp_path / name, marked=[1], confidence=[0.5] * 5) is None
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["-", "tree", "tree.pdf"])
def test_other_names_are_refused(gift, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=rf"path is '{name}'; expected a name that ends in .svg, .png, .txt"):
        tw.draw(gift, name)
    assert not list(tmp_path.iterdir())


def test_constituents_are_drawn_as_png_too(dog, tmp_path):
    tw.draw(dog, tmp_path / "dog.png", marked=[0])
    assert (tmp_path / "dog.png").stat().st_size > 1000


def test_what_would_be_markup_of_matplotlib_is_drawn_as_it_stands(tmp_path):
    tw.draw(tw.DepTree(["$x_1$", "$\\frac"], [0, 1]), tmp_path / "a.png")
    assert (tmp_path / "a.png").exists()


def test_a_picture_too_long_for_png_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(b"old")
    with pytest.raises(InputError, match=r"pixels; expected at most 32,768; write .svg"):
        tw.draw(tw.DepTree(["word"] * 600, [0] * 600), path)
    assert path.read_bytes() == b"old"


def test_typefaces_are_added_only_where_letters_are_missing(caplog):
    assert find_families("añЖא") == [FIRST_FAMILY]
    with caplog.at_level(logging.WARNING, logger="treewright"):
        find_families("a\U0010fffd")
    assert "no installed typeface has \U0010fffd" in caplog.text


def test_candidates_are_drawn_as_their_trees(gift, dog):
    assert tw.draw(Candidate(gift, 1.0, 0.5)) == tw.draw(gift)
    assert tw.draw(Parse(dog, 1.0)) == tw.draw(dog)
    with pytest.raises(InputError, match="tree is a str; expected a DepTree, a ConstTree or a candidate"):
        tw.draw("tree")


def test_notebooks_show_pictures(gift, dog):
    assert gift._repr_svg_() == tw.draw_svg(gift)
    assert dog._repr_svg_() == tw.draw_svg(dog)
    html = Candidate(gift, 12.3456, 0.6789)._repr_html_()
    assert tw.draw_svg(gift) in html
    assert "probability 0.6789 · score 12.346" in html
    assert "<figcaption" in Parse(dog, -3.0)._repr_html_()
    assert "probability" not in Parse(dog, -3.0)._repr_html_()


def test_notebooks_fall_back_to_text_for_huge_trees():
    large = tw.DepTree(["<a>"] * 301, [0] * 301)
    assert large._repr_svg_() is None
    assert tw.ConstTree("S", ["a"] * 2000)._repr_svg_() is None
    assert "&lt;a&gt;" in notebook_html(Candidate(large, 0.0, 1.0))


def test_what_differs_from_the_first_candidate_is_marked(gift, dog):
    other = gift.with_heads([2, 0, 5, 5, 2])
    shown = tw.compare_trees([Candidate(gift, 2.0, 0.7), Candidate(other, 1.0, 0.2)])
    assert len(shown) == 2
    assert shown.differences == [[], [3]]
    marked = elements(shown._repr_html_().split("</figure>")[1].split('overflow-x:auto">')[1][:-6], "marked")
    assert [arc.get("data-word") for arc in marked] == ["3"]
    assert "2. probability 0.2000 · score 1.000" in repr(shown)
    assert repr(shown).count("*") == 1


def test_relations_that_differ_are_marked(gift):
    other = gift.with_heads(gift.heads, ["nsubj", "root", "obj", "nummod", "obj"])
    assert find_differences(other, gift) == [3]


def test_constituents_that_differ_are_marked(dog):
    other = tw.ConstTree.parse("(S (NP (D the)) (NP (N dog)) (VP (VP (V barks))))")
    assert [other.labels[node] for node in find_differences(other, dog)] == ["NP", "NP", "VP"]
    assert find_differences(dog, dog) == []


def test_constituents_that_hang_elsewhere_are_marked():
    high = tw.ConstTree.parse("(S (V saw) (NP (N stars)) (PP (P with) (N telescopes)))")
    low = tw.ConstTree.parse("(S (V saw) (NP (NP (N stars)) (PP (P with) (N telescopes))))")
    assert [high.labels[node] for node in find_differences(high, low)] == ["NP", "PP"]
    assert [str(list(low.subtrees())[node]) for node in find_differences(low, high)] == [str(low.children[1])]


def test_trees_of_different_sentences_are_not_compared(gift, dog):
    for other in (dog, tw.DepTree(["she"], [0])):
        with pytest.raises(InputError, match="expected trees of the same kind for the same sentence"):
            tw.compare_trees([gift, other])


def test_no_candidates_are_nothing_to_look_at():
    assert repr(tw.compare_trees([])) == ""


def test_columns_of_text_allow_for_wide_letters_and_marks():
    assert [cell_width(word) for word in ("ab", "漢字", "e\u0301", "ｱ")] == [2, 4, 1, 1]


def test_control_characters_are_shown_as_pictures():
    assert visible("a\x1b[31m\x7f\x85\ud800") == "a␛[31m␡\ufffd\ufffd"
