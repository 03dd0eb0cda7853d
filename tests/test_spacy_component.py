"""The component of spaCy; Docs are made by spaCy's own rules of English."""

import pickle

import numpy as np
import pytest

import treewright as tw
from treewright.errors import InputError
from treewright.model import State, save_state

spacy = pytest.importorskip("spacy")

TEXT = "The hen thanked the clerk. A solemn pigeon sneezed twice."


@pytest.fixture(scope="module")
def bank():
    return tw.make_treebank(n_sentences=40, random_state=0)


@pytest.fixture(scope="module")
def parser(bank):
    options = {"order": 1, "epochs": 1, "runs": 1, "k": 1, "table_bits": 12, "folds": 2}
    return tw.DependencyParser(tags="predicted", **options).fit(bank.dependencies)


@pytest.fixture(scope="module")
def parser_file(parser, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "parser.tw"
    parser.save(path)
    return str(path)


@pytest.fixture(scope="module")
def tagger(bank):
    return tw.Tagger(epochs=2).fit(bank.dependencies)


@pytest.fixture(scope="module")
def constituents(bank):
    return tw.ConstituentParser(lowest_penalty=20.0).fit(bank.constituents)


def pipeline(model=None, *, sentencizer=True, **config):
    """Return a pipeline with the component last; `model` is a file or a model."""
    nlp = spacy.blank("en")
    if sentencizer:
        nlp.add_pipe("sentencizer")
    path = model if isinstance(model, str) else None
    component = nlp.add_pipe("treewright", config={"model": path, **config})
    if model is not path:
        component.model = model
    return nlp


def heads_of(tokens):
    return [token.head.i for token in tokens]


def test_spacy_finds_the_component_by_its_entry_point():
    assert "treewright" in spacy.registry._entry_point_factories.get_entry_points()


def test_heads_relations_and_tags_are_those_of_the_parser(parser, parser_file):
    doc = pipeline(parser_file)(TEXT)
    expected = parser.predict([tw.DepTree([token.text for token in sentence]) for sentence in doc.sents])
    found = tw.from_spacy(doc)
    assert len(found) == 2
    for tree, other in zip(found, expected, strict=True):
        assert np.array_equal(tree.heads, other.heads)
        assert (tree.deprels, tree.upos, tree.xpos) == (other.deprels, other.upos, other.xpos)
        assert (tree.feats, tree.lemmas) == (other.feats, other.lemmas)


def test_a_doc_without_sentence_boundaries_is_one_sentence(parser_file):
    doc = pipeline(parser_file, sentencizer=False)(TEXT)
    assert len(list(doc.sents)) == 1
    assert sum(token.head == token for token in doc) == 1


def test_sentence_boundaries_stay_where_they_were(parser_file):
    doc = pipeline(parser_file)(f"{TEXT}  \n {TEXT}")
    spans = list(spacy.blank("en").add_pipe("sentencizer")(spacy.blank("en")(doc.text)).sents)
    assert [(each.start, each.end) for each in doc.sents] == [(each.start, each.end) for each in spans]


def test_white_space_hangs_on_the_word_before_it(parser_file):
    doc = pipeline(parser_file, sentencizer=False)("\n The  hen \n\n sneezed.")
    spaces = [token for token in doc if token.is_space]
    assert [(token.i, token.head.i) for token in spaces] == [(0, 1), (2, 1), (4, 3)]
    assert {(token.dep_, token.pos_, token.tag_) for token in spaces} == {("dep", "SPACE", "_SP")}


def test_white_space_alone_is_a_sentence_of_its_own(parser_file):
    doc = pipeline(parser_file)(" \n ")
    assert [(token.head.i, token.dep_) for token in doc] == [(0, "ROOT")]
    assert len(pipeline(parser_file)("")) == 0


def test_candidates_and_confidences_are_those_of_the_parser(parser, parser_file):
    doc = pipeline(parser_file, k=3, confidences=True)(TEXT)
    trees = tw.from_spacy(doc)
    expected = parser.kbest(trees, 3)
    assert [len(each) for each in doc._.candidates] == [len(each) for each in expected]
    for sentence, candidates, square in zip(doc.sents, expected, parser.marginals(trees), strict=True):
        found = sentence._.candidates
        assert [each.probability for each in found] == [each.probability for each in candidates]
        assert [each.score for each in found] == [each.score for each in candidates]
        assert [each.tree.heads.tolist() for each in found] == [
            each.tree.heads.tolist() for each in candidates
        ]
        confidences = parser.confidence(candidates[0].tree, square).tolist()
        assert [token._.confidence for token in sentence] == pytest.approx(confidences)


def test_without_k_and_confidences_there_are_none(parser_file):
    doc = pipeline(parser_file)(TEXT)
    assert doc._.candidates == [[], []]
    assert {token._.confidence for token in doc} == {None}


def test_batches_give_what_single_docs_give(parser_file):
    nlp = pipeline(parser_file, k=2)
    texts = [TEXT, "", "The clerk sneezed.", " "]
    for doc, text in zip(nlp.pipe(texts, batch_size=3), texts, strict=True):
        assert heads_of(doc) == heads_of(nlp(text))
        assert doc._.candidates == nlp(text)._.candidates


def test_docs_are_saved_with_their_candidates(parser_file):
    nlp = pipeline(parser_file, k=2, confidences=True)
    doc = nlp(TEXT)
    again = spacy.tokens.Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert again._.candidates == doc._.candidates
    assert [token._.confidence for token in again] == [token._.confidence for token in doc]


def test_further_roots_hang_on_the_first(parser):
    class Twice(tw.DependencyParser):
        def predict(self, trees):
            return [tree.with_heads([0] * len(tree), ["root"] * len(tree)) for tree in trees]

    model = Twice.from_state(parser.get_state())
    doc = pipeline(model, sentencizer=False)("One two three")
    assert [(token.head.i, token.dep_) for token in doc] == [(0, "ROOT"), (0, "root"), (0, "root")]
    assert len(list(doc.sents)) == 1


def test_displacy_draws_the_relations(parser_file):
    doc = pipeline(parser_file)(TEXT)
    options = {"collapse_punct": False}
    svg = spacy.displacy.render(doc, style="dep", jupyter=False, options=options)
    assert {token.dep_ for token in doc if token.head != token} <= set(svg.replace("<", ">").split(">"))


def test_tags_of_the_doc_are_used_and_kept(parser):
    model = tw.DependencyParser.from_state(parser.get_state())
    nlp = pipeline(model, tags="doc")
    words = ["The", "hen", "sneezed"]
    tags = {"tags": ["DT", "VBD", "NN"], "pos": ["DET", "VERB", "NOUN"]}
    doc = nlp.get_pipe("treewright")(spacy.tokens.Doc(nlp.vocab, words, **tags))
    assert [token.tag_ for token in doc] == ["DT", "VBD", "NN"]
    sentence = tw.DepTree(words, xpos=tags["tags"], upos=tags["pos"])
    assert (
        tw.from_spacy(doc)[0].heads.tolist() == model.using(tags="gold").predict([sentence])[0].heads.tolist()
    )


def test_a_tagger_only_tags(tagger):
    doc = pipeline(tagger)(TEXT)
    assert not doc.has_annotation("DEP")
    (first, _) = tagger.predict([tw.DepTree([token.text for token in each]) for each in doc.sents])
    assert [token.tag_ for token in doc[: len(first)]] == first.xpos
    assert [token.lemma_ for token in doc[: len(first)]] == first.lemmas


def test_constituents_are_those_of_the_parser(tagger, constituents):
    nlp = pipeline(tagger)
    nlp.add_pipe("treewright", name="phrases", config={"k": 2}).model = constituents
    doc = nlp(TEXT)
    pairs = [[(token.text, token.tag_) for token in sentence] for sentence in doc.sents]
    expected = constituents.kbest(pairs, 2)
    assert [sentence._.constituents for sentence in doc.sents] == [parses[0].tree for parses in expected]
    assert doc._.candidates == expected
    assert spacy.tokens.Doc(nlp.vocab).from_bytes(doc.to_bytes())._.candidates == expected


@pytest.mark.parametrize("k", [1, 3])
def test_constituents_are_predicted_by_a_vote_if_the_model_does_so(tagger, constituents, bank, k):
    others = (tw.ConstituentParser(lowest_penalty=30.0).fit(bank.constituents[:20]),)
    reranker = tw.ConstituentReranker(
        parser=constituents, others=others, kernel="none", k=3, predict_by="brackets"
    )
    reranker.fit(bank.constituents[:10], bank.constituents[10:20])
    nlp = pipeline(tagger)
    nlp.add_pipe("treewright", name="phrases", config={"k": k}).model = reranker
    doc = nlp("The cat sees the dog. A dog sleeps.")
    pairs = [[(word.text, word.tag_) for word in sentence] for sentence in doc.sents]
    assert [sentence._.constituents for sentence in doc.sents] == reranker.predict(pairs)
    expected = (
        [[parse.tree for parse in parses] for parses in reranker.kbest(pairs, k)] if k > 1 else [[], []]
    )
    assert [[each.tree for each in sentence._.candidates] for sentence in doc.sents] == expected


def test_constituents_of_a_doc_without_boundaries_are_one_tree(constituents):
    nlp = pipeline(constituents, sentencizer=False)
    doc = spacy.tokens.Doc(nlp.vocab, ["The", "New York", "sneezed"], tags=["DT", "NN", "VBD"])
    (sentence,) = nlp.get_pipe("treewright")(doc).sents
    assert sentence._.constituents.words() == ["The", "New_York", "sneezed"]


def test_a_saved_pipeline_has_its_own_model(parser, tmp_path):
    parser.save(tmp_path / "gone.tw")
    nlp = pipeline(str(tmp_path / "gone.tw"), k=2)
    nlp.to_disk(tmp_path / "pipeline")
    data = nlp.to_bytes()
    (tmp_path / "gone.tw").unlink()
    expected = nlp(TEXT)._.candidates
    assert spacy.load(tmp_path / "pipeline")(TEXT)._.candidates == expected
    assert spacy.util.load_model_from_config(nlp.config).from_bytes(data)(TEXT)._.candidates == expected


def test_a_pickled_component_has_its_model(parser_file):
    nlp = pipeline(parser_file)
    component = nlp.get_pipe("treewright")
    expected = heads_of(nlp(TEXT))
    again = pickle.loads(pickle.dumps(component))
    assert again.model is not component.model
    doc = nlp(TEXT, disable=["treewright"])
    assert heads_of(again(doc)) == expected


def test_looking_at_the_model_reads_no_file(tmp_path):
    component = pipeline(str(tmp_path / "none.tw")).get_pipe("treewright")
    assert component.model is None


def test_initialize_reads_the_model_that_the_config_names(parser_file):
    config = pipeline().config.copy()
    config["initialize"]["components"] = {"treewright": {"model": parser_file}}
    nlp = spacy.util.load_model_from_config(config)
    nlp.initialize()
    assert nlp.get_pipe("treewright").model.order == 1


def test_a_pipeline_is_scored_against_gold_docs(parser_file):
    nlp = pipeline(parser_file)
    gold = nlp(TEXT)
    scores = nlp.evaluate([spacy.training.Example(nlp.make_doc(TEXT), gold)])
    assert (scores["dep_uas"], scores["dep_las"], scores["tag_acc"]) == (1.0, 1.0, 1.0)


def test_an_error_handler_gets_the_docs_that_fail():
    nlp = pipeline()
    failed = []
    nlp.set_error_handler(lambda name, component, docs, error: failed.append((name, str(error))))
    assert list(nlp.pipe([TEXT])) == []
    assert failed[0][0] == "treewright"
    assert "no model was given" in failed[0][1]


def fail(nlp, text=TEXT):
    """Return the line with which a pipeline refuses a text."""
    with pytest.raises(InputError) as caught:
        nlp(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_missing_model_is_an_error(tmp_path):
    assert fail(pipeline()) == (
        "treewright: no model was given; expected config={'model': path}, "
        "or nlp.get_pipe('treewright').model = tw.load(path)"
    )
    path = str(tmp_path / "none.tw")
    assert fail(pipeline(path)) == (
        f"treewright: model is {path!r}, which cannot be read (No such file or directory); "
        "expected a model file"
    )


def test_a_model_of_another_kind_is_an_error(bank):
    machine = tw.TreeKernelClassifier()
    with pytest.raises(InputError, match="model is a TreeKernelClassifier; expected a tagger, a parser"):
        pipeline(machine)


def test_a_file_that_is_no_model_is_an_error(tmp_path):
    save_state(State("Nothing"), tmp_path / "odd.tw")
    with pytest.raises(
        tw.errors.FormatError, match=r"odd\.tw:1: a file of kind 'Nothing'; expected a treewright model"
    ):
        pipeline(str(tmp_path / "odd.tw"))(TEXT)


def test_a_model_that_needs_tags_refuses_a_doc_without_them(parser, constituents):
    model = tw.DependencyParser.from_state(parser.get_state())
    assert fail(pipeline(model, tags="doc")) == (
        "treewright: 'The hen thanked the clerk.' has no tags; expected a tagger before this component, "
        "or a model trained with tags='predicted'"
    )
    assert "has no tags" in fail(pipeline(constituents))


def test_options_that_a_model_has_no_use_for_are_errors(tagger, constituents):
    with pytest.raises(InputError, match="k is 2 and tags is 'model' for a Tagger; expected k=1"):
        pipeline(tagger, k=2)
    with pytest.raises(
        InputError, match="confidences is True for a model without arcs; expected a dependency parser"
    ):
        pipeline(constituents, confidences=True)


def test_wrong_options_are_errors():
    with pytest.raises(InputError, match="k is 0; expected an integer of at least 1"):
        pipeline(k=0)
    with pytest.raises(InputError, match="tags is 'gold'; expected one of model, doc"):
        pipeline(tags="gold")


def test_an_extension_of_the_same_name_is_an_error():
    pipeline()
    kept = spacy.tokens.Doc.remove_extension("candidates")
    spacy.tokens.Doc.set_extension("candidates", default=None)
    try:
        with pytest.raises(
            InputError,
            match=r"Doc._.candidates is already used by another package; expected an unused name",
        ):
            pipeline()
    finally:
        spacy.tokens.Doc.set_extension("candidates", getter=kept[2], force=True)


@pytest.fixture(scope="module")
def pipeline_file(bank, tmp_path_factory):
    options = {"order": 1, "epochs": 1, "runs": 1, "k": 1, "table_bits": 12, "folds": 2}
    parser = tw.DependencyParser(tags="predicted", **options)
    path = tmp_path_factory.mktemp("models") / "pipeline.tw"
    tw.Pipeline(parser=parser).fit(bank.dependencies).save(path)
    return str(path)


def own_tokenizer(path):
    return {"nlp": {"tokenizer": {"@tokenizers": "treewright.Tokenizer.v1", "model": path}}}


def test_the_tokenizer_of_a_pipeline_takes_the_place_of_spacys(pipeline_file, tmp_path):
    nlp = spacy.blank("en", config=own_tokenizer(pipeline_file))
    nlp.add_pipe("treewright", config={"model": pipeline_file})
    doc = nlp(f"  {TEXT}\n\n")
    assert doc.text == f"  {TEXT}\n\n"
    model = tw.load(pipeline_file)
    expected = model(doc.text)
    found = [[token.text for token in each if not token.is_space] for each in doc.sents]
    assert found == [tree.words for tree in expected]
    heads = [token.head.i == token.i for token in doc if not token.is_space]
    assert heads == [head == 0 for tree in expected for head in tree.heads]
    nlp.to_disk(tmp_path / "kept")
    again = spacy.load(tmp_path / "kept")
    assert [token.text for token in again(TEXT)] == [token.text for token in nlp(TEXT)]


def test_a_model_without_a_tokenizer_is_refused(parser_file):
    with pytest.raises(InputError, match="is a DependencyParser; expected a Pipeline or a Tokenizer"):
        spacy.blank("en", config=own_tokenizer(parser_file))
