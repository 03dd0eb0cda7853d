"""The page, in a real browser."""

import json
import shutil
import urllib.request
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import treewright as tw

pytest.importorskip("selenium", reason="selenium, of the extra test, is not installed")
from browsing import Page, answer
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (BROWSER and DRIVER), reason="there is no chromium with its chromedriver on the path"
    ),
]
SENTENCE = "A sailor spotted a heron beside the old telescope ."
LONG = (
    "The sailor who spotted a heron beside the old telescope promised the baker that an aunt would describe "
    "the picture and the chicken pie to the clerk with the bread before the pigeon slept beside the captain ."
)
TWO_SENTENCES = "The baker described a picture . An aunt promised the chicken pie ."
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
)
LEAST_CONTRAST = 4.5
CONTROLS = {"button", "link", "textbox", "combobox", "spinbutton", "DisclosureTriangle", "ComboBoxSelect"}

CONTRASTS = """
const parse = (text) => {
  const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
  const scale = text.startsWith("color(") ? 1 : 255;
  return { rgb: [r / scale, g / scale, b / scale], a };
};
const over = (front, back) => front.rgb.map((one, i) => front.a * one + (1 - front.a) * back[i]);
const backdrop = (node) => {
  if (!node) return [1, 1, 1];
  const colour = parse(getComputedStyle(node).backgroundColor);
  return colour.a === 1 ? colour.rgb : over(colour, backdrop(node.parentElement));
};
const light = (rgb) => rgb
  .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
  .reduce((sum, one, i) => sum + one * [0.2126, 0.7152, 0.0722][i], 0);
const found = [];
for (const node of document.querySelectorAll("body *")) {
  const text = [...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
  if (!text || !node.checkVisibility()) continue;
  if (node.closest("style, desc, option, datalist, :disabled, .skip")) continue;
  const style = getComputedStyle(node);
  const isDrawn = node instanceof SVGElement;
  const colour = parse(isDrawn ? style.fill : style.color);
  if (isDrawn) colour.a *= Number(style.fillOpacity);
  const back = backdrop(node);
  const [low, high] = [light(over(colour, back)), light(back)].sort((a, b) => a - b);
  found.push([node.textContent.trim().slice(0, 40), (high + 0.05) / (low + 0.05)]);
}
return found;
"""


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    """Return the folder that the browser writes files to."""
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def chrome(downloads, tmp_path_factory):
    """Start a browser that knows nothing of any user."""
    options = ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    browser = Chrome(options=options, service=ChromeService(DRIVER))
    yield browser
    browser.quit()


@pytest.fixture
def page(chrome, served):
    """Open the page anew."""
    return Page(chrome, served)


def as_heads(sentence):
    return dict(enumerate(sentence["heads"], start=1))


def are_side_by_side(page, *selectors):
    places = [page.one(selector).rect for selector in selectors]
    return places[0]["y"] == places[1]["y"] and places[0]["x"] < places[1]["x"]


def test_a_sentence_is_parsed_and_an_arc_reached_by_the_keyboard_alone(page):
    assert page.has_focus("#text")
    page.keys(SENTENCE)
    ActionChains(page.browser).key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(Keys.CONTROL).perform()
    page.settle()
    for _ in range(40):
        if page.has_focus("g.arc"):
            break
        page.keys(Keys.TAB)
    assert page.has_focus('g.arc[data-word="1"]')
    page.keys(Keys.ARROW_RIGHT)
    assert page.has_focus('g.arc[data-word="2"]')
    page.keys(Keys.ENTER)
    assert page.has_focus("#panel h2")
    assert page.one("#panel h2").text.startswith("“sailor” depends on")
    page.keys(Keys.ESCAPE)
    assert page.has_focus('g.arc[data-word="2"]')


def test_arcs_are_drawn_with_the_heads_that_the_service_gives(page, served):
    page.parse(SENTENCE)
    (parsed,) = answer(served, "parse", {"text": SENTENCE})
    assert page.heads() == as_heads(parsed)


def test_the_best_trees_stand_side_by_side_with_probabilities_and_marked_differences(page, served):
    page.parse(SENTENCE)
    (listed,) = answer(served, "kbest", {"text": SENTENCE, "k": 5})
    for rank, candidate in enumerate(listed["candidates"], start=1):
        figure = page.one(f'figure[data-model="parser"][data-rank="{rank}"]')
        marked = {
            int(arc.get_attribute("data-word"))
            for arc in figure.find_elements(By.CSS_SELECTOR, ".arc.marked")
        }
        assert page.heads(rank=rank) == as_heads(candidate)
        assert marked == set(candidate["differs"])
        assert "%" in figure.find_element(By.CSS_SELECTOR, ".probability").text
        said = figure.find_elements(By.CSS_SELECTOR, ".differences li")
        assert len(said) == len(candidate["differs"])
    assert len(page.all('figure[data-model="parser"]')) == len(listed["candidates"]) > 1
    assert are_side_by_side(
        page, '[data-model="parser"][data-rank="2"]', '[data-model="parser"][data-rank="3"]'
    )


def test_constituents_are_drawn_beside_dependencies(page, served):
    page.parse(SENTENCE)
    (parsed,) = answer(served, "parse", {"text": SENTENCE, "model": "constituents"})
    nodes = page.all('figure[data-model="constituents"][data-rank="1"] g.node')
    assert len(nodes) == parsed["nodes"]


def test_focus_on_an_arc_shows_confidence_other_heads_and_mined_features(page, served):
    page.go("#dependency=reranker")
    page.parse(SENTENCE)
    (explained,) = answer(served, "explain", {"text": SENTENCE, "model": "reranker"})
    arc = max(explained["arcs"], key=lambda one: len(one["features"]))
    assert arc["features"]
    page.run("arguments[0].focus()", page.arc(arc["word"], "reranker"))
    page.wait(lambda: page.all("#panel .reason"))
    assert "%" in page.one("#panel .confidence strong").text
    texts = [one.text for one in page.all("#panel .reason .sentence")]
    by_side = sorted(arc["features"], key=lambda one: one["weight"] < 0)
    assert texts == [one["sentence"] for one in by_side]
    totals = [one.text for one in page.all("#panel .reasons h4 .number")]
    assert totals == [f"+{arc['total_for']:.2f}", f"−{-arc['total_against']:.2f}"]
    others = [int(one.get_attribute("data-head")) for one in page.all("#panel .bars button")]
    assert others == [one["head"] for one in arc["alternatives"] if one["head"] != arc["head"]]


def test_a_reranker_tells_what_decided_between_the_best_trees(page, served):
    page.go("#dependency=reranker")
    page.parse(SENTENCE)
    (explained,) = answer(served, "explain", {"text": SENTENCE, "model": "reranker"})
    page.one(".why summary").click()
    page.wait(lambda: page.all(".why .reason"))
    reasons = sorted(explained["reasons"], key=lambda one: one["weight"] < 0)
    assert [one.text for one in page.all(".why .sentence")] == [one["sentence"] for one in reasons]


def test_what_decided_is_told_for_trees_with_kept_arcs_too(page, served):
    page.go(f"#text={SENTENCE.replace(' ', '+')}&dependency=reranker&fixed=1.2.5")
    page.settle()
    asked = {"text": SENTENCE, "model": "reranker", "fixed": [[{"word": 2, "head": 5}]]}
    (explained,) = answer(served, "explain", asked)
    page.one(".why summary").click()
    page.wait(lambda: page.all(".why .reason"))
    sentences = {one["sentence"] for one in explained["reasons"]}
    assert {one.text for one in page.all(".why .sentence")} == sentences


def lit(page, rank=1):
    """Return the words whose arcs are lit up in a picture."""
    arcs = page.all(f'figure[data-rank="{rank}"] g.arc.lit')
    return {int(arc.get_attribute("data-word")) for arc in arcs}


def test_pointing_at_a_reason_lights_up_its_arcs(page, served):
    page.go("#dependency=reranker")
    page.parse(SENTENCE)
    (explained,) = answer(served, "explain", {"text": SENTENCE, "model": "reranker"})
    page.one(".why summary").click()
    page.wait(lambda: page.all(".why .reason"))
    for reason in sorted(explained["reasons"], key=lambda one: one["weight"] < 0)[:3]:
        button = next(one for one in page.all(".why .reason") if reason["sentence"] in one.text)
        page.run("arguments[0].focus()", button)
        arcs = [int(word) for word in button.get_attribute("data-arcs").split()]
        assert lit(page, reason["rank"]) == set(arcs)
    page.run("document.activeElement.blur()")
    assert lit(page) == lit(page, 2) == set()


def test_a_parser_without_a_reranker_says_why_too(page, served):
    page.parse(SENTENCE)
    (explained,) = answer(served, "explain", {"text": SENTENCE})
    page.choose(2)
    assert len(page.all("#panel .reason")) == len(explained["arcs"][1]["features"]) > 0
    page.point(lambda: page.one("#panel .reason"), lambda: lit(page) == {2})


def test_the_page_opens_with_a_sentence_that_is_parsed(page, served):
    page.settle()
    text = page.one("#text").get_attribute("value")
    assert text == page.one(".example").text
    (parsed,) = answer(served, "parse", {"text": text})
    assert page.heads() == as_heads(parsed)
    assert "#" not in page.browser.current_url
    assert page.run("return getSelection().toString()") == text


def test_examples_are_those_of_the_model(page, served):
    with urllib.request.urlopen(f"{served}/models") as reply:
        described = json.load(reply)["models"]
    assert [one.text for one in page.all(".example")] == described[0]["examples"]
    page.all(".example")[1].click()
    page.settle()
    assert page.one("#text").get_attribute("value") == described[0]["examples"][1]


def test_relations_of_a_group_have_one_colour_and_a_legend(page):
    page.parse(SENTENCE)
    colours = page.run(
        """
        const arcs = [...document.querySelectorAll('figure[data-model="parser"][data-rank="1"] g.arc')];
        return arcs.map((arc) => [arc.dataset.group, getComputedStyle(arc.querySelector("text")).fill]);
        """
    )
    by_group = dict(colours)
    assert set(colours and map(tuple, colours)) == set(by_group.items())
    assert len(set(by_group.values())) == len(by_group) > 2
    keys = page.all('figure[data-model="parser"][data-rank="1"] .legend .key')
    assert {key.get_attribute("data-group") for key in keys} == set(by_group)
    core = next(key for key in keys if key.get_attribute("data-group") == "core")
    assert core.text.startswith("core arguments")
    assert "nsubj" in core.text
    page.run("arguments[0].focus()", core)
    arcs = page.all('figure[data-model="parser"][data-rank="1"] g.arc.lit')
    assert {arc.get_attribute("data-group") for arc in arcs} == {"core"}


def test_pointing_at_a_relation_or_a_tag_explains_it(page):
    page.parse(SENTENCE)
    tip, tree = page.one("#tip"), 'figure[data-model="parser"][data-rank="1"]'
    relation = page.point(lambda: page.arc(2).find_element(By.CSS_SELECTOR, "text"), lambda: tip.text)
    assert relation.startswith("nsubj, nominal subject.")

    def tag():
        return page.one(f'{tree} g.word[data-word="2"] text.tag')

    page.point(tag, lambda: tip.text.startswith("NOUN, noun."))
    page.run("document.dispatchEvent(new Event('scroll'))")
    assert not tip.is_displayed()
    page.point(tag, lambda: tip.text.startswith("NOUN, noun."))
    page.keys(Keys.ESCAPE)
    assert not page.one("#tip").is_displayed()
    page.choose(2)
    assert [one.text.split(",")[0] for one in page.all("#panel .about .meaning")] == ["nsubj", "NOUN", "NN"]


def test_pointing_at_the_label_of_a_constituent_explains_it(page):
    page.parse(SENTENCE)
    nodes = page.all('figure[data-model="constituents"][data-rank="1"] g.node:not(.leaf) text')
    phrase = next(node for node in nodes if node.text == "NP")
    page.run("arguments[0].scrollIntoView({ block: 'center' })", phrase)
    tip = page.one("#tip")
    assert page.point(lambda: phrase, lambda: tip.text).startswith("NP, noun phrase.")


def test_words_that_the_model_has_never_seen_are_marked(page):
    page.parse("The frobnicated heron sang .")
    marked = page.all('figure[data-model="parser"][data-rank="1"] g.word.unknown')
    assert "2" in {word.get_attribute("data-word") for word in marked}
    assert "“frobnicated”" in page.one(".unseen").text
    page.choose(2)
    assert page.one("#panel .unseen").text == "“frobnicated” is not in the training set."


def test_a_long_sentence_shows_the_mean_confidence_of_its_arcs(page, served):
    page.parse(LONG)
    (listed,) = answer(served, "kbest", {"text": LONG})
    best = listed["candidates"][0]
    assert best["probability"] < 0.01
    mean = sum(best["confidence"]) / len(best["confidence"])
    assert page.one('figure[data-model="parser"] .probability').text == f"mean arc confidence {mean:.0%}"
    assert "the best with mean arc confidence" in page.status


def picture_sizes(page, model="parser"):
    """Return the sizes of the best tree's picture and of its place."""
    return page.run(
        """
        const place = document.querySelector(`figure[data-model="${arguments[0]}"][data-rank="1"] .picture`);
        const box = place.querySelector("svg").getBoundingClientRect();
        return [box.width, box.height, place.clientWidth, place.scrollWidth];
        """,
        model,
    )


def test_words_of_long_sentences_stand_under_one_another(page):
    page.parse(SENTENCE)
    width, height, *_ = picture_sizes(page)
    assert width > height
    page.parse(LONG)
    width, height, place, scrolled = picture_sizes(page)
    assert height > width
    assert scrolled <= place
    page.one('figure[data-model="parser"][data-rank="1"] .turn').click()
    page.wait(lambda: page.all('figure[data-model="parser"] .picture.horizontal'))
    page.settle()
    width, height, place, scrolled = picture_sizes(page)
    assert width > height
    assert scrolled <= place
    assert "layout=horizontal" in page.browser.current_url
    assert page.has_focus(".turn")


def test_a_tree_is_zoomed_and_fitted_again(page):
    page.parse(SENTENCE)
    before, *_ = picture_sizes(page)
    best = 'figure[data-model="parser"][data-rank="1"]'
    for _ in range(4):
        page.one(f"{best} .larger").click()
    width, _, place, scrolled = picture_sizes(page)
    assert width > 2 * before
    assert scrolled > place
    page.one(f"{best} .smaller").click()
    assert picture_sizes(page)[0] < width
    page.one(f"{best} .fit").click()
    assert picture_sizes(page)[0] == before


def test_a_tree_is_shown_alone_until_escape(page):
    page.parse(SENTENCE)
    button = page.one('figure[data-model="parser"][data-rank="2"] .alone')
    button.click()
    page.wait(lambda: page.all("body.solo"))
    shown = [figure for figure in page.all("figure.tree") if figure.is_displayed()]
    assert [figure.get_attribute("data-rank") for figure in shown] == ["2"]
    assert not page.one("#ask").is_displayed()
    page.choose(2, rank=2)
    assert page.one("#panel").is_displayed()
    page.keys(Keys.ESCAPE)
    assert page.all("body.solo")
    page.run("document.querySelector('figure.tree.alone .tools .alone').focus()")
    page.keys(Keys.ESCAPE)
    page.wait(lambda: not page.all("body.solo"))
    assert page.one("#ask").is_displayed()
    assert page.has_focus('figure[data-rank="2"] .tools .alone')


def test_pointing_at_an_arc_shows_it(page):
    page.parse(SENTENCE)
    page.point(lambda: page.arc(2).find_element(By.CSS_SELECTOR, "text"), lambda: page.all("#panel h2"))
    assert page.one("#panel h2").text.startswith("“sailor”")


def test_explanations_are_asked_for_once_a_sentence(page):
    page.parse(SENTENCE)
    page.sent()
    page.choose(2)
    page.choose(3)
    assert [address for address, _ in page.sent() if address.endswith("/explain")] == [
        f"{page.address}/explain"
    ]


def test_a_fixed_arc_is_in_all_trees_until_it_is_let_go(page):
    page.parse(SENTENCE)
    before = page.heads()
    page.choose(5)
    wanted = 2 if before[5] != 2 else 3
    Select(page.one("#any-head")).select_by_value(str(wanted))
    page.settle()
    ranks = range(1, len(page.all('figure[data-model="parser"]')) + 1)
    assert [page.heads(rank=rank)[5] for rank in ranks] == [wanted] * len(ranks)
    assert f"fixed=1.5.{wanted}" in page.browser.current_url
    page.one(".kept button").click()
    page.wait(lambda: not page.all(".kept"))
    assert page.heads() == before


def test_arcs_that_no_tree_has_are_told_and_can_be_let_go(page):
    page.go(f"#text={SENTENCE.replace(' ', '+')}&fixed=1.2.5&fixed=1.5.2")
    page.wait(lambda: page.all(".kept") and page.all(".model .error"))
    assert page.status.startswith("sentence 1: no tree has the fixed arcs")
    assert ". constituents: " in page.status
    page.one(".kept button").click()
    page.settle()
    assert page.heads()[5] == 2


def test_an_edited_tag_is_sent_and_stays(page):
    page.parse(SENTENCE)
    page.one(".tags summary").click()
    page.sent()
    field = page.one('.tags input[data-column="upos"][data-word="3"]')
    assert field.get_attribute("value") != "NOUN"
    page.retag(3, "NOUN")
    asked = [body for address, body in page.sent() if address.endswith("/kbest")]
    assert asked
    assert all(body["sentences"][0][2]["tag"] == "NOUN" for body in asked)
    assert page.one('.tags input[data-column="upos"][data-word="3"]').get_attribute("value") == "NOUN"
    assert page.has_focus(".tags input")


def test_a_model_that_lacks_tags_is_given_them_word_by_word(page, served):
    page.go("#text=The+juggler+sneezed+.+He+left+.&dependency=gold")
    page.wait(lambda: len(page.all(".tags input")) == 4)
    assert "4 words without a tag; gold needs tags" in page.status
    assert [field.get_attribute("value") for field in page.all(".tags input")] == [""] * 4
    assert page.one(".tags input").is_displayed()
    tags = ["DET", "NOUN", "VERB", "PUNCT"]
    for word, tag in enumerate(tags, start=1):
        assert not page.all('figure[data-model="gold"]')
        page.retag(word, tag)
    words = [
        {"word": word, "tag": tag} for word, tag in zip(("The", "juggler", "sneezed", "."), tags, strict=True)
    ]
    (parsed,) = answer(served, "parse", {"sentences": [words], "model": "gold"})
    assert page.wait(lambda: page.heads("gold")) == as_heads(parsed)
    assert [field.get_attribute("value") for field in page.all(".tags input")] == tags


def test_an_edited_tag_of_pasted_conllu_leaves_its_other_columns_alone(page):
    tree = tw.DepTree(
        ["Old", "herons", "sing"], upos=["ADJ", "NOUN", "VERB"], feats=["Degree=Pos", "Number=Plur", "_"]
    )
    text = "".join(
        f"{word}\t{tree.words[word - 1]}\t_\t{tree.upos[word - 1]}\t_\t{tree.feats[word - 1]}\t_\t_\t_\t_\n"
        for word in (1, 2, 3)
    )
    page.run("arguments[0].value = arguments[1]", page.one("#text"), text + "\n")
    page.one("#parse").click()
    page.settle()
    page.one(".tags summary").click()
    page.sent()
    page.retag(3, "NOUN")
    rows = next(
        body["text"].split("\n")
        for address, body in page.sent()
        if address.endswith("/kbest") and body["model"] == "parser"
    )
    fields = {row.split("\t")[0]: row.split("\t") for row in rows if "\t" in row}
    assert fields["3"][3] == "NOUN"
    assert fields["1"][5] == "Degree=Pos"


def test_two_models_stand_side_by_side_with_differences_marked(page, served):
    page.parse(SENTENCE)
    Select(page.one("#other")).select_by_value("reranker")
    page.wait(lambda: page.all('figure[data-model="reranker"]'))
    page.settle()
    one, other = (
        answer(served, "kbest", {"text": SENTENCE, "model": name})[0]["candidates"][0]
        for name in ("parser", "reranker")
    )
    differing = {
        word
        for word in range(1, len(one["words"]) + 1)
        if (one["heads"][word - 1], one["deprels"][word - 1])
        != (other["heads"][word - 1], other["deprels"][word - 1])
    }
    for model, tree in (("parser", one), ("reranker", other)):
        assert page.heads(model) == as_heads(tree)
        marked = page.all(f'figure[data-model="{model}"][data-rank="1"] .arc.marked')
        assert {int(arc.get_attribute("data-word")) for arc in marked} == differing
    assert are_side_by_side(page, '[aria-label="Trees by parser"]', '[aria-label="Trees by reranker"]')
    assert page.one(".comparison").text


@pytest.mark.parametrize("model", ["parser", "constituents"])
def test_trees_can_be_downloaded(page, downloads, model):
    page.parse(SENTENCE)
    suffix = "conllu" if model == "parser" else "mrg"
    files = {}
    for kind in ("svg", "png", suffix):
        page.one(f'[data-key="{model}-1-{kind}"]').click()
        path = downloads / f"{model}-sentence-1-tree-1.{kind}"
        page.wait(path.exists)
        files[kind] = Path(path)
    assert ET.parse(files["svg"]).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert files["png"].read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    if model == "parser":
        (tree,) = tw.read_conllu(files[suffix])
        assert dict(enumerate(tree.heads.tolist(), start=1)) == page.heads()
        assert tree.words == SENTENCE.split()
    else:
        (tree,) = tw.read_brackets(files[suffix])
        assert tree.words() == SENTENCE.split()


def test_several_sentences_are_shown_one_by_one(page, served):
    page.parse(TWO_SENTENCES)
    first, second = answer(served, "parse", {"text": TWO_SENTENCES})
    assert page.heads() == as_heads(first)
    page.one('[data-key="next"]').click()
    page.wait(lambda: page.one(".steps span").text == "Sentence 2 of 2")
    assert page.heads() == as_heads(second)
    page.browser.back()
    page.wait(lambda: page.one(".steps span").text == "Sentence 1 of 2")
    assert page.heads() == as_heads(first)


def test_a_link_shows_the_same_view(page):
    page.parse(SENTENCE)
    Select(page.one("#dependency")).select_by_value("reranker")
    page.wait(lambda: page.all('figure[data-model="reranker"]'))
    page.choose(5, "reranker")
    page.one("#panel .wide").click()
    page.wait(lambda: page.all(".kept"))
    page.settle()
    address, heads = page.browser.current_url, page.heads("reranker")
    page.go(address.removeprefix(page.address + "/"))
    page.settle()
    assert page.one("#text").get_attribute("value") == SENTENCE
    assert page.heads("reranker") == heads
    assert len(page.all(".kept li")) == 1


def test_a_link_to_what_is_not_there_shows_what_is(page, served):
    page.go("#text=The+juggler+sneezed+.&dependency=nobody&at=7&k=999&fixed=no&tag=1.x")
    page.settle()
    (parsed,) = answer(served, "parse", {"text": "The juggler sneezed ."})
    assert page.heads() == as_heads(parsed)
    assert page.one("#k").get_attribute("value") == "50"


def test_no_text_is_told(page):
    page.one("#text").clear()
    page.one("#parse").click()
    assert page.status == "Type or paste a sentence first."
    assert page.one("#status").get_attribute("aria-live") == "polite"
    assert page.has_focus("#text[aria-invalid=true]")


def test_an_error_of_the_service_is_told_in_its_words(page):
    page.run("arguments[0].value = arguments[1]", page.one("#text"), "1\tsing\t_\t_\t_\t_\tX\t_\t_\t_\n")
    page.one("#parse").click()
    page.wait(lambda: "error" in page.one("#status").get_attribute("class"))
    assert "HEAD is 'X'" in page.status
    assert not page.one("#view").is_displayed()


def test_a_busy_service_is_asked_again(page):
    page.run(
        """
        const status = document.querySelector("#status");
        window.told = [];
        new MutationObserver(() => window.told.push(status.textContent))
          .observe(status, { childList: true, characterData: true, subtree: true });
        const whole = window.fetch;
        let refused = 0;
        const refusal = { status: 503, headers: { "Retry-After": "1" } };
        window.fetch = (route, options) => refused++ < 1
          ? Promise.resolve(new Response('{"error": "busy"}', refusal))
          : whole(route, options);
        """
    )
    page.submit(SENTENCE)
    page.settle()
    assert any("busy; retrying in 1 second" in text for text in page.run("return window.told"))
    assert page.heads()


def test_an_answer_that_comes_late_does_not_overwrite_a_newer_one(page):
    page.run(
        """
        const whole = window.fetch;
        window.late = [];
        window.fetch = (route, options) => options.body?.includes("juggler")
          ? new Promise((resolve) => {
              window.late.push(() => resolve(whole(route, { ...options, signal: null })));
            })
          : whole(route, options);
        """
    )
    page.submit("The juggler sneezed .")
    page.wait(lambda: page.run("return window.late.length > 0"))
    page.parse(SENTENCE)
    page.run("const late = window.late; window.late = []; return Promise.all(late.map((one) => one()))")
    page.run("return new Promise((resolve) => setTimeout(resolve, 300))")
    assert len(page.heads()) == len(SENTENCE.split())


def test_a_slow_question_can_be_cancelled_and_the_trees_before_it_stay(page):
    page.parse(SENTENCE)
    page.run(
        """
        const whole = window.fetch;
        window.fetch = (route, options) => options.body?.includes("juggler")
          ? new Promise((_, reject) => {
              options.signal.addEventListener("abort", () => reject(options.signal.reason));
            })
          : whole(route, options);
        """
    )
    page.submit("The juggler sneezed .")
    page.wait(lambda: page.one("#cancel").is_displayed())
    page.one("#cancel").click()
    assert page.status == "Cancelled."
    assert not page.one("#progress").is_displayed()
    page.choose(2)
    assert "%" in page.one("#panel .confidence").text


def test_words_are_never_read_as_html(page):
    page.parse("The <b>heron</b> &amp; <img> sang .")
    assert not page.all("#view b")
    assert not page.all("#view img")


@pytest.mark.parametrize("width", [320, 640])
def test_a_narrow_window_does_not_scroll_sideways(page, width):
    size = {"width": width, "height": 640, "deviceScaleFactor": 1, "mobile": True}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page.parse(SENTENCE)
        page.one(".tags summary").click()
        page.choose(2)
        assert page.run("return document.documentElement.scrollWidth") <= width
        box = page.one("#panel").rect
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_no_request_leaves_the_service_and_nothing_is_refused(page):
    page.browser.get_log("browser")
    page.parse(SENTENCE)
    page.choose(2)
    page.one('[data-key="parser-1-png"]').click()
    addresses = [address for address, _ in page.sent()]
    assert all(address.startswith((f"{page.address}/", "blob:", "data:", "about:")) for address in addresses)
    assert page.browser.get_log("browser") == []


def test_every_control_has_a_name(page):
    page.parse(TWO_SENTENCES)
    page.one(".tags summary").click()
    page.choose(2)
    tree = page.browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})
    controls = [
        node
        for node in tree["nodes"]
        if not node["ignored"] and node.get("role", {}).get("value") in CONTROLS
    ]
    assert len(controls) > 30
    assert [node for node in controls if not node["name"]["value"].strip()] == []


def test_the_focus_goes_through_the_page_from_top_to_bottom(page):
    page.parse(SENTENCE)
    page.run("document.activeElement.blur(); window.getSelection().removeAllRanges(); document.body.focus()")
    page.run("document.querySelector('.skip').focus()")
    page.run("window.order = [...document.querySelectorAll('body *')]")
    places = []
    for _ in range(30):
        places.append(page.run("return window.order.indexOf(document.activeElement)"))
        page.keys(Keys.TAB)
    assert places == sorted(places)
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(page, scheme):
    features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", features)
    try:
        page.parse(TWO_SENTENCES)
        page.one(".tags summary").click()
        page.choose(2)
        contrasts = page.run(CONTRASTS)
        assert len(contrasts) > 60
        assert [(text, ratio) for text, ratio in contrasts if ratio < LEAST_CONTRAST] == []
    finally:
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
