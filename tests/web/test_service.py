"""What the service answers, and what it refuses."""

import asyncio
import json
import sys
import threading
import tomllib
from copy import copy
from importlib.resources import files
from xml.etree import ElementTree

import numpy as np
import pytest

import treewright as tw
from treewright.errors import InputError

pytest.importorskip("fastapi", reason="the service needs the extra web")

from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from treewright.tagging.tagger import Tagger
from treewright.web.app import make_app
from treewright.web.examples import choose_examples, read_examples, words_of
from treewright.web.middleware import Gate
from treewright.web.texts import Splitter, read_text, split_plainly
from treewright.web.work import BusyError, OutOfTimeError, ServiceLimits, WorkLine

SENTENCE = "The pigeon saw a clerk with bread."
WORDS = ["The", "pigeon", "saw", "a", "clerk", "with", "bread", "."]


@pytest.fixture(scope="module")
def client(models):
    """Return a client of a service of all models."""
    with TestClient(make_app(models)) as client:
        yield client


def ask(client, path, **body):
    """Ask for something that should be answered."""
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text[:500]
    return answer.json()


def refuse(client, path, body, code):
    """Ask for something that is refused; return the reason."""
    answer = client.post(path, json=body)
    assert answer.status_code == code, answer.text[:500]
    assert list(answer.json()) == ["error"]
    return answer.json()["error"]


def test_health_names_the_models(client, models):
    health = client.get("/health").json()
    assert health == {
        "status": "ok",
        "version": tw.__version__,
        "models": list(models),
        "waiting": 0,
        "running": 0,
    }


def test_models_say_what_they_are(client):
    described = {each["name"]: each for each in client.get("/models").json()["models"]}
    assert described["gold"]["class"] == "DependencyParser"
    assert described["gold"]["needs_tags"]
    assert not described["parser"]["needs_tags"]
    assert "NOUN" in described["parser"]["tags_known"]
    assert described["reranker"]["compares"]
    assert described["parser"]["compares"]
    assert described["constituents"]["kind"] == "constituent"
    assert not described["constituents"]["explains"]


def test_examples_are_in_words_that_the_model_knows(client, models):
    described = {each["name"]: each for each in client.get("/models").json()["models"]}
    for name in ("parser", "reranker", "constituents"):
        assert "A clerk saw a pigeon with bread." in described[name]["examples"]
    assert described["gold"]["examples"] == []  # it would refuse them


def test_a_model_that_knows_other_words_is_offered_other_examples():
    def knows(known):
        return lambda words: [word.lower() in known for word in words]

    english = choose_examples(knows({word.lower() for word in words_of(read_examples()[1])}))
    assert english == read_examples()[1]
    assert choose_examples(knows(set())) == []
    assert choose_examples(lambda words: None) == []


@pytest.mark.parametrize("name", ["japanese", "chinese", "thai"])
def test_examples_without_spaces_are_split_as_the_model_does(name):
    data = tomllib.loads(files("treewright.web").joinpath("examples.toml").read_text("utf-8"))
    split = lambda text: [tw.DepTree(list(text))]  # noqa: E731
    known = {letter for sentence in data[name] for letter in sentence}
    assert choose_examples(lambda words: [word in known for word in words], split) == data[name]
    assert choose_examples(lambda words: [word in known for word in words]) == []


def test_a_raw_text_is_plain_whatever_it_looks_like(client):
    text = "1\tThe\tthe\tDET\tDT\t_\t0\troot\t_\t_\n"
    assert ask(client, "/parse", text=text)["sentences"][0]["words"] == ["The"]
    assert ask(client, "/parse", text=text, raw=True)["sentences"][0]["words"][:2] == ["1", "The"]


def test_raw_is_refused_with_words(client):
    question = {"sentences": [[{"word": "The"}]], "raw": True}
    refused = client.post("/parse", json=question)
    assert refused.status_code == 422
    assert refused.json() == {"error": "raw has no effect with sentences; expected text"}


def test_words_that_the_model_has_never_seen_are_named(client, models):
    text = "The frobnicated pigeon saw 4711 clerks !"
    (sentence,) = ask(client, "/parse", text=text)["sentences"]
    known = models["parser"].knows_words(sentence["words"])
    has_letters = [any(letter.isalpha() for letter in word) for word in sentence["words"]]
    pairs = enumerate(zip(known, has_letters, strict=True), start=1)
    assert sentence["unknown"] == [word for word, (one, other) in pairs if other and not one]
    assert 2 in sentence["unknown"]
    (listed,) = ask(client, "/kbest", text=text, model="reranker", k=1)["sentences"]
    assert 2 in listed["candidates"][0]["unknown"]


def test_pictures_can_have_the_words_under_one_another(client):
    def sizes(name, layout):
        (sentence,) = ask(client, "/parse", text=SENTENCE, model=name, layout=layout)["sentences"]
        root = ElementTree.fromstring(sentence["svg"])
        return float(root.get("width")), float(root.get("height"))

    for name in ("parser", "constituents"):
        (wide, low), (narrow, high) = sizes(name, "horizontal"), sizes(name, "vertical")
        assert narrow < wide
        assert high > low


def test_relations_tags_and_labels_are_described(client):
    found = client.get("/meanings").json()
    assert found["relations"]["nsubj"]["name"] == "nominal subject"
    assert found["relations"]["nsubj"]["group"] in found["groups"]
    assert found["tags"]["NOUN"]["name"] == "noun"
    assert found["phrases"]["NP"]["name"] == "noun phrase"


def test_parse_gives_the_trees_of_the_parser(client, models):
    (sentence,) = ask(client, "/parse", text=SENTENCE)["sentences"]
    (tree,) = models["parser"].predict([tw.DepTree(WORDS)])
    assert sentence["words"] == WORDS
    assert sentence["heads"] == tree.heads.tolist()
    assert sentence["deprels"] == tree.deprels
    assert sentence["upos"] == tree.upos
    assert sentence["text"] == SENTENCE
    assert sentence["svg"].startswith("<svg")


def test_the_best_of_very_many_trees_has_a_probability_above_zero(client):
    (sentence,) = ask(client, "/kbest", text="heron " * 100, k=1, pictures=False)["sentences"]
    assert 0 < sentence["candidates"][0]["probability"] < 1e-6


def test_confidence_is_the_probability_of_each_head(client, models):
    (sentence,) = ask(client, "/parse", text=SENTENCE)["sentences"]
    (square,) = models["parser"].marginals([tw.DepTree(WORDS)])
    expected = square[np.arange(len(WORDS)), sentence["heads"]]
    assert sentence["confidence"] == pytest.approx(expected.tolist(), abs=1e-5)


def test_conllu_of_an_answer_can_be_read(client, tmp_path):
    (sentence,) = ask(client, "/parse", text=SENTENCE, pictures=False)["sentences"]
    (tmp_path / "a.conllu").write_text(sentence["conllu"], encoding="utf-8")
    (tree,) = tw.read_conllu(tmp_path / "a.conllu")
    assert tree.heads.tolist() == sentence["heads"]
    assert sentence["svg"] is None


def test_kbest_gives_the_candidates_of_the_model(client, models):
    (found,) = ask(client, "/kbest", text=SENTENCE, model="reranker", k=3)["sentences"]
    (expected,) = models["reranker"].kbest([tw.DepTree(WORDS)], 3)
    assert [each["heads"] for each in found["candidates"]] == [one.tree.heads.tolist() for one in expected]
    assert [each["probability"] for each in found["candidates"]] == pytest.approx(
        [one.probability for one in expected], abs=1e-5
    )


def test_words_that_differ_from_the_best_tree_are_named_and_marked(client):
    best, second = ask(client, "/kbest", text=SENTENCE, k=2)["sentences"][0]["candidates"]
    pairs = zip(best["heads"], second["heads"], best["deprels"], second["deprels"], strict=True)
    differing = [word for word, (a, b, c, d) in enumerate(pairs, start=1) if (a, c) != (b, d)]
    assert best["differs"] == []
    assert second["differs"] == differing != []
    assert second["svg"].count('class="arc marked"') == len(differing)


def test_constituents_come_as_brackets(client, models):
    (sentence,) = ask(client, "/parse", text=SENTENCE, model="constituents")["sentences"]
    (tree,) = models["constituents"].predict([WORDS])
    assert sentence["brackets"] == str(tree)
    assert sentence["upos"] == tree.tags()
    assert sentence["nodes"] == tree.n_nodes


def test_nodes_that_the_best_tree_does_not_have_are_named(client):
    answer = ask(client, "/kbest", text=SENTENCE, model="constituents", k=3)
    best, *others = (tw.ConstTree.parse(each["brackets"]) for each in answer["sentences"][0]["candidates"])
    for tree, candidate in zip(others, answer["sentences"][0]["candidates"][1:], strict=True):
        nodes = list(tree.subtrees())
        for node in candidate["differs"]:
            assert nodes[node] not in list(best.subtrees())


@pytest.mark.parametrize("name", ["parser", "reranker"])
def test_trees_agree_with_fixed_arcs(client, name):
    (plain,) = ask(client, "/parse", text=SENTENCE, model=name)["sentences"]
    head = next(word for word in (2, 4, 5) if word != plain["heads"][5])
    fixed = [[{"word": 6, "head": head}]]
    for candidate in ask(client, "/kbest", text=SENTENCE, model=name, fixed=fixed)["sentences"][0][
        "candidates"
    ]:
        assert candidate["heads"][5] == head
        assert candidate["confidence"][5] == pytest.approx(1)


def test_explain_gives_alternatives_and_features_of_each_arc(client, models):
    (sentence,) = ask(client, "/explain", text=SENTENCE, model="reranker", pictures=False)["sentences"]
    tagged = models["reranker"].parser_.tagger_.predict([tw.DepTree(WORDS)])
    (expected,) = models["reranker"].arc_reasons(models["reranker"].predict(tagged))
    assert [arc["head"] for arc in sentence["arcs"]] == sentence["heads"]
    assert [[each["text"] for each in arc["features"]] for arc in sentence["arcs"]] == [
        [one.text for one in arc] for arc in expected
    ]
    assert any(arc["features"] for arc in sentence["arcs"])
    for arc in sentence["arcs"]:
        assert all(arc["word"] in each["arcs"] for each in arc["features"])
    for arc in sentence["arcs"]:
        shares = [each["probability"] for each in arc["alternatives"]]
        assert shares == sorted(shares, reverse=True)


def test_explain_says_what_decided_between_the_first_two(client, models):
    (sentence,) = ask(client, "/explain", text=SENTENCE, model="reranker", pictures=False)["sentences"]
    (comparison,) = models["reranker"].explain([tw.DepTree(WORDS)])
    assert [each["text"] for each in sentence["reasons"]] == [each.text for each in comparison.reasons[:10]]


@pytest.mark.parametrize("name", ["parser", "reranker"])
def test_totals_are_those_of_all_features_of_an_arc(client, models, name):
    (sentence,) = ask(client, "/explain", text=SENTENCE, model=name, pictures=False)["sentences"]
    tagger = models["parser"].tagger_ if name == "parser" else models["reranker"].parser_.tagger_
    (features,) = models[name].arc_reasons(models[name].predict(tagger.predict([tw.DepTree(WORDS)])), n=9999)
    for arc, found in zip(sentence["arcs"], features, strict=True):
        assert len(arc["features"]) <= 10
        assert arc["total_for"] == pytest.approx(sum(one.weight for one in found if one.weight > 0))
        assert arc["total_against"] == pytest.approx(sum(one.weight for one in found if one.weight < 0))
        assert [each["sentence"] for each in arc["features"]] == [one.sentence for one in found[:10]]


def test_totals_of_the_reasons_add_up_to_the_lead_of_the_best_tree(client, models):
    (sentence,) = ask(client, "/explain", text=SENTENCE, model="reranker", pictures=False)["sentences"]
    (comparison,) = models["reranker"].explain([tw.DepTree(WORDS)])
    lead = comparison.scores[0] - comparison.scores[1]
    assert sentence["total_for"] + sentence["total_against"] == pytest.approx(lead, abs=1e-5)


def test_constituents_are_not_explained(client):
    reason = refuse(client, "/explain", {"text": SENTENCE, "model": "constituents"}, 422)
    assert (
        reason == "model constituents is a constituency model; expected a dependency model for explanations"
    )


def test_given_tags_are_kept_and_the_others_found(client):
    words = [{"word": word} for word in WORDS]
    words[2] = {"word": "saw", "tag": "NOUN"}
    (sentence,) = ask(client, "/parse", sentences=[words])["sentences"]
    assert (sentence["upos"][2], sentence["xpos"][2]) == ("NOUN", "NN")
    assert sentence["upos"][0] == "DET"


def test_tags_of_conllu_are_kept(client, tmp_path):
    tree = tw.DepTree(["Bread", "slept"], upos=["VERB", "NOUN"], xpos=["VBD", "NN"])
    tw.write_conllu([tree], tmp_path / "a.conllu")
    text = (tmp_path / "a.conllu").read_text()
    for name in ("parser", "gold"):
        (sentence,) = ask(client, "/parse", text=text, model=name)["sentences"]
        assert sentence["upos"] == ["VERB", "NOUN"]
    (sentence,) = ask(client, "/parse", text=text, model="constituents")["sentences"]
    assert sentence["upos"] == ["VBD", "NN"]


def test_brackets_are_read_for_both_kinds(client):
    text = "(S (NP (NN Bread)) (VP (VBD slept)))\n(S (NP (-LRB- -LRB-) (NN bread)))"
    for name in ("parser", "constituents"):
        first, second = ask(client, "/parse", text=text, model=name)["sentences"]
        assert first["words"] == ["Bread", "slept"]
        assert second["words"] == ["(", "bread"]


def test_prose_in_parentheses_is_no_bracket(client):
    (sentence,) = ask(client, "/parse", text="(The clerk slept.)")["sentences"]
    assert sentence["words"] == ["(", "The", "clerk", "slept", ".", ")"]


def test_a_model_that_needs_tags_says_so_and_gives_the_words_back(client):
    text = f"{SENTENCE} Bread slept."
    answer = client.post("/parse", json={"text": text, "model": "gold"})
    reason = "sentence 1 has words without tags, which model gold needs; expected tags for"
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(reason)
    first, second = answer.json()["sentences"]
    assert (first["words"], second["words"]) == (WORDS, ["Bread", "slept", "."])
    assert second["upos"] == second["xpos"] == ["_"] * 3
    tagged = [
        {"word": word, "tag": tag}
        for word, tag in zip(second["words"], ("NOUN", "VERB", "PUNCT"), strict=True)
    ]
    assert ask(client, "/parse", sentences=[tagged], model="gold")["sentences"][0]["words"] == second["words"]


def test_words_that_lack_tags_come_back_with_those_that_they_have(client):
    rows = "1\tHerons\t_\tNOUN\tNNS\tNumber=Plur\t_\t_\t_\t_\n2\tsing\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
    answer = client.post("/kbest", json={"text": rows, "model": "gold"})
    assert answer.status_code == 422
    assert answer.json()["sentences"] == [
        {"words": ["Herons", "sing"], "upos": ["NOUN", "_"], "xpos": ["NNS", "_"], "conllu": rows}
    ]


def test_constituency_models_that_need_tags_give_the_words_back(models):
    parser = copy(models["constituents"])
    parser.tags = "gold"
    with TestClient(make_app({"gold": parser})) as client:
        answer = client.post("/parse", json={"text": "Bread slept (well)."})
    words = ["Bread", "slept", "(", "well", ")", "."]
    none = ["_"] * len(words)
    assert answer.json()["sentences"] == [{"words": words, "upos": none, "xpos": none, "conllu": None}]


def test_a_tagger_helps_models_that_need_tags(models):
    tagger = Tagger(epochs=1).fit(tw.make_treebank(20, random_state=1).dependencies)
    with TestClient(make_app({"gold": models["gold"]}, tagger=tagger)) as client:
        assert not client.get("/models").json()["models"][0]["needs_tags"]
        (sentence,) = ask(client, "/parse", text=SENTENCE)["sentences"]
    assert "_" not in sentence["upos"]


def test_serving_leaves_models_as_they_are(client, models):
    ask(client, "/parse", text=SENTENCE)
    assert models["parser"].tags == models["reranker"].tags == "predicted"


@pytest.mark.parametrize(
    ("body", "code", "reason"),
    [
        ({}, 422, "the body has neither text nor sentences; expected one of them"),
        (
            {"text": "a", "sentences": [[{"word": "b"}]]},
            422,
            "the body has both text and sentences; expected",
        ),
        ({"text": "  \n "}, 422, "text has no words; expected at least one"),
        ({"text": 7}, 422, "text is '7'; expected a valid string"),
        ({"text": "a", "kk": 2}, 422, "'kk' is not a field of the request; expected a field listed in /docs"),
        ({"text": "a", "model": "x"}, 404, "model is 'x'; expected one of parser, reranker, gold, const"),
        ({"text": "1\tThe\t_\n"}, 422, "text:1: 3 columns; expected 10, separated by tabs"),
        ({"text": "(S (NP"}, 422, "text:1: end of input inside the tree that begins in line 1"),
        ({"text": "a b", "fixed": [[], [{"word": 1, "head": 0}]]}, 422, "fixed has 2 lists; expected 1"),
        ({"text": "a b", "fixed": [[{"word": 1, "head": 9}]]}, 422, "sentence 1"),
        (
            {"text": "a b", "fixed": [[{"word": 1, "head": 0}, {"word": 1, "head": 2}]]},
            422,
            "fixed: sentence 1 has two heads for a word; expected one",
        ),
        (
            {"text": "a b", "model": "constituents", "fixed": [[{"word": 1, "head": 0}]]},
            422,
            "model constituents is a constituency model; expected a dependency model for fixed arcs",
        ),
        (
            {"sentences": [[{"word": "two words"}]]},
            422,
            "sentences.0.0.word is 'two words'; expected no whitespace and no control characters",
        ),
    ],
)
def test_what_cannot_be_used_is_told_in_one_sentence(client, body, code, reason):
    assert refuse(client, "/parse", body, code).startswith(reason)


def test_too_many_trees_are_refused(client):
    assert refuse(client, "/kbest", {"text": "a", "k": 51}, 422).startswith("k is '51'; expected")
    reason = refuse(client, "/kbest", {"text": "Bread slept! " * 11, "k": 50}, 413)
    assert reason == (
        "the request is for 50 trees of each of 11 sentences; expected at most 500 trees; "
        "send several requests"
    )


def test_limits_of_size_are_kept(models):
    limits = ServiceLimits(max_characters=40, max_words=5, max_sentences=3)
    with TestClient(make_app({"parser": models["parser"]}, limits=limits)) as client:
        words = [[{"word": "abcdefgh"}] * 6]
        assert refuse(client, "/parse", {"text": "a" * 41}, 413).startswith(
            "the request has 41 characters; expected at most 40"
        )
        assert refuse(client, "/parse", {"sentences": words}, 413).startswith(
            "the request has 48 characters; expected"
        )
        reason = refuse(client, "/parse", {"text": "a b c d e f"}, 413)
        assert reason == "sentence 1 has 6 words; expected at most 5"
        assert refuse(client, "/parse", {"text": "Go! Go! Go! Go!"}, 413).startswith("the request has 4")
        reason = refuse(client, "/parse", {"text": "x" * limits.max_bytes}, 413)
        assert reason == f"the body is too large; expected at most {limits.max_bytes} bytes"


def test_a_body_without_a_length_is_counted_as_it_comes(models):
    limits = ServiceLimits(max_characters=10)
    n_sent = 0

    def pieces():
        nonlocal n_sent
        for _ in range(1000):
            n_sent += 1000
            yield b"x" * 1000

    with TestClient(make_app({"parser": models["parser"]}, limits=limits)) as client:
        answer = client.post("/parse", content=pieces(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("content", "declared", "code"),
    [
        (b'{"text": "a', "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"text": "a"}', "text/plain", 415),
        (b'{"text": "a"}', None, 415),
        (b'{"text": "\\ud800"}', "application/json", 422),
        (b'{"text": "a", "k": NaN}', "application/json", 422),
    ],
)
def test_bodies_that_are_no_json_are_refused(client, content, declared, code):
    headers = {} if declared is None else {"Content-Type": declared}
    answer = client.post("/kbest", content=content, headers=headers)
    assert answer.status_code == code
    assert list(answer.json()) == ["error"]
    if code == 400:
        assert answer.json()["error"].startswith("the body is not JSON (")


@given(text=st.text(max_size=60))
def test_any_text_is_answered_or_refused_with_a_reason(client, text):
    for name in ("parser", "constituents"):
        answer = client.post("/parse", json={"text": text, "model": name})
        assert answer.status_code == 200 or (answer.status_code == 422 and answer.json()["error"])


def test_a_body_that_never_ends_is_given_up():
    codes = []

    async def receive():
        await asyncio.sleep(600)

    async def send(message):
        codes.append(message.get("status"))

    gate = Gate(None, guarded=("/parse",), max_bytes=9, seconds=0.01)
    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/parse", "headers": headers}
    asyncio.run(gate(scope, receive, send))
    assert codes[0] == 408


def test_unknown_paths_and_methods_are_told(client):
    missing, wrong = client.get("/trees"), client.get("/parse")
    assert (missing.status_code, wrong.status_code) == (404, 405)
    assert missing.json() == {"error": "'/trees' does not exist; expected one of the paths listed in /docs"}
    assert wrong.json() == {"error": "the method for '/parse' is GET; expected POST"}
    assert wrong.headers["Allow"] == "POST"


@pytest.mark.parametrize("path", ["/", "/docs", "/static/page.css", "/health", "/nothing"])
def test_every_answer_has_a_strict_policy_and_no_cookie(client, path):
    answer = client.get(path)
    assert answer.headers["Content-Security-Policy"].startswith(
        "default-src 'self'; img-src 'self' data: blob:;"
    )
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "Set-Cookie" not in answer.headers


def test_the_reference_names_every_path_and_nothing_outside(client):
    page = client.get("/docs").text
    for path in client.get("/openapi.json").json()["paths"]:
        assert f"{path}</code>" in page
    assert "//" not in page.replace("<!DOCTYPE html>", "")


def test_models_that_do_not_parse_are_refused():
    with pytest.raises(InputError, match="x is a Tagger; expected a parser or a reranker"):
        make_app({"x": Tagger()})
    with pytest.raises(InputError, match="no models were given; expected at least one"):
        make_app({})


def test_plain_rules_split_words_from_punctuation_and_sentences():
    trees = list(split_plainly('He said: "Don\'t (ever)..." Yes! 3.14 e-mails?'))
    assert [tree.words for tree in trees] == [
        ["He", "said", ":", '"', "Don't", "(", "ever", ")", "...", '"'],
        ["Yes", "!"],
        ["3.14", "e-mails", "?"],
    ]
    assert trees[1].misc == ["SpaceAfter=No", "_"]


def test_without_spacy_plain_rules_split_text(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    trees = read_text("Bread slept.\x00 It\r\nslept\n\nwell", Splitter("en"))
    assert [tree.words for tree in trees] == [["Bread", "slept", "."], ["It", "slept"], ["well"]]


@pytest.fixture
def blocked(request):
    """Return work that ends when it is let go, and the line of one thread and one place that it is for."""
    line, go = (
        WorkLine(ServiceLimits(n_jobs=1, queue=1, seconds=getattr(request, "param", 600))),
        threading.Event(),
    )
    yield line, go
    go.set()
    line.close()


def test_beyond_the_line_work_is_refused_at_once(blocked):
    line, go = blocked

    async def crowd():
        first, second = (asyncio.ensure_future(line.run(go.wait)) for _ in range(2))
        await asyncio.sleep(0)
        counts = line.running, line.waiting
        with pytest.raises(BusyError, match="1 requests are running and 1 are waiting; try again"):
            await line.run(go.wait)
        go.set()
        return counts, await first, await second

    assert asyncio.run(crowd()) == ((1, 1), True, True)


@pytest.mark.parametrize("blocked", [1], indirect=True)
def test_work_out_of_time_counts_as_running_until_it_ends(blocked):
    line, go = blocked

    async def wait():
        with pytest.raises(
            OutOfTimeError, match=r"the time limit of 1 seconds was exceeded; send fewer or shorter"
        ):
            await line.run(go.wait)
        return line.running

    assert asyncio.run(wait()) == 1
    go.set()
    line.close(wait=True)
    assert line.running == 0


@pytest.mark.parametrize("blocked", [1], indirect=True)
def test_work_that_waits_too_long_never_begins(blocked):
    line, go = blocked
    begun = []

    async def wait():
        await asyncio.gather(line.run(go.wait), line.run(lambda: begun.append(1)), return_exceptions=True)
        return line.waiting

    assert asyncio.run(wait()) == 0
    go.set()
    line.close(wait=True)
    assert not begun


def test_a_closed_line_begins_anew(blocked):
    line, _ = blocked
    assert asyncio.run(line.run(lambda: 1)) == 1
    line.close()
    assert asyncio.run(line.run(lambda: 2)) == 2
    assert line.running == 0


def test_errors_of_work_come_out_as_they_were_raised(blocked):
    line, _ = blocked
    with pytest.raises(ZeroDivisionError):
        asyncio.run(line.run(lambda: 1 // 0))
    assert line.running == 0


def test_a_full_line_and_a_slow_answer_have_codes_of_their_own(models):
    go = threading.Event()
    limits = ServiceLimits(n_jobs=1, queue=0, seconds=1)
    app = make_app({"parser": models["parser"]}, limits=limits)
    app.state.service.models["parser"].parse = lambda *arguments, **options: go.wait()
    with TestClient(app) as client:
        try:
            slow = client.post("/parse", json={"text": "a"})
            busy = client.post("/parse", json={"text": "a"})
            health = client.get("/health").json()
        finally:
            go.set()
    assert (slow.status_code, busy.status_code) == (504, 503)
    assert slow.json()["error"].startswith("the time limit of 1 seconds was exceeded; send fewer")
    assert busy.headers["Retry-After"] == "1"
    assert health["running"] == 1


def test_an_unforeseen_error_says_nothing_of_the_inside(models):
    app = make_app({"parser": models["parser"]})
    app.state.service.models["parser"].parse = lambda *arguments, **options: 1 // 0
    with TestClient(app, raise_server_exceptions=False) as client:
        answer = client.post(
            "/parse", content=json.dumps({"text": "a"}), headers={"Content-Type": "application/json"}
        )
    assert answer.status_code == 500
    assert answer.json() == {"error": "internal error; see the log of the service"}
