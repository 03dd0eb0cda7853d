import io

import numpy as np
import pytest
from commands import run

import treewright as tw
from treewright.data.formats import tell_content
from treewright.data.remote import find_treebank
from treewright.errors import InputError

PARSER = {"order": 1, "epochs": 1, "runs": 1, "table_bits": 14, "folds": 2, "tags": "predicted"}


@pytest.fixture(scope="module")
def treebank():
    return tw.make_treebank(150, random_state=0).dependencies


@pytest.fixture(scope="module")
def pipeline(treebank):
    return tw.Pipeline(parser=tw.DependencyParser(**PARSER)).fit(treebank)


@pytest.fixture(scope="module")
def text(treebank):
    return " ".join(tree.text for tree in treebank[:5])


@pytest.fixture(scope="module")
def saved(pipeline, tmp_path_factory):
    path = tmp_path_factory.mktemp("pipeline") / "made.tw"
    pipeline.save(path)
    return path


def test_text_becomes_sentences_with_tags_lemmas_and_heads(pipeline, text):
    doc = pipeline(text)
    assert doc.text == text
    assert len(doc) == 5
    for sentence in doc:
        assert (sentence.heads == 0).sum() == 1
        assert "_" not in sentence.upos
        assert "_" not in sentence.lemmas


def test_token_ranges_index_the_text(pipeline, text):
    for sentence in pipeline(text):
        for word, misc in zip(sentence.words, sentence.misc, strict=True):
            span = dict(each.split("=") for each in misc.split("|"))["TokenRange"]
            begin, end = map(int, span.split(":"))
            assert text[begin:end] == word


def test_a_document_is_a_sequence_and_writes_conllu(pipeline, text):
    doc = pipeline(text)
    assert doc[0].words == next(iter(doc)).words
    assert len(doc[1:3]) == 2
    again = list(tw.iter_conllu(io.BytesIO(doc.to_conllu().encode())))
    assert [tree.words for tree in again] == [tree.words for tree in doc]


def test_text_and_its_words_are_parsed_alike(pipeline, text):
    doc = pipeline(text)
    assert [tree.heads.tolist() for tree in pipeline.predict(list(doc))] == [
        tree.heads.tolist() for tree in doc
    ]
    assert [len(each) for each in pipeline.kbest(text, 2)] == [2] * 5
    for tree, square in zip(doc, pipeline.marginals(text), strict=True):
        assert square.shape == (len(tree), len(tree) + 1)


def test_a_loaded_pipeline_parses_alike(pipeline, saved, text):
    loaded = tw.load(saved)
    assert isinstance(loaded, tw.Pipeline)
    assert loaded(text).to_conllu() == pipeline(text).to_conllu()


def test_a_compact_pipeline_is_smaller_and_hardly_worse(pipeline, saved, treebank, tmp_path):
    pipeline.save(tmp_path / "small.tw", compact=True)
    assert (tmp_path / "small.tw").stat().st_size < saved.stat().st_size
    small = tw.load(tmp_path / "small.tw")
    scores = [tw.metrics.attachment(treebank, each.predict(treebank)).las for each in (pipeline, small)]
    assert abs(scores[0] - scores[1]) < 2


@pytest.mark.parametrize("wrong", [b"The cat sleeps.", 3, None, ["The cat sleeps."]])
def test_what_is_no_text_is_refused(pipeline, wrong):
    with pytest.raises(InputError, match="expected a str"):
        pipeline(wrong)


def test_a_parser_without_a_tagger_is_refused(treebank):
    with pytest.raises(InputError, match="tags is 'gold'; expected 'predicted'"):
        tw.Pipeline(parser=tw.DependencyParser()).fit(treebank)


def test_a_reranker_that_is_not_trusted_is_left_out(treebank):
    reranker = tw.DependencyReranker(
        parser=tw.DependencyParser(**PARSER), k=2, folds=2, significance_level=1e-9
    )
    assert isinstance(tw.Pipeline(parser=reranker).fit(treebank[:60]).parser_, tw.DependencyParser)


def test_parse_tells_text_from_conllu(saved, pipeline, treebank, text, tmp_path):
    (tmp_path / "plain").write_text(text, encoding="utf-8")
    tw.write_conllu(treebank[:5], tmp_path / "rows")
    results = []
    for name in ("plain", "rows"):
        run("parse", saved, tmp_path / name, "--output", tmp_path / "out.conllu")
        results.append(
            [(tree.words, tree.heads.tolist()) for tree in tw.read_conllu(tmp_path / "out.conllu")]
        )
    assert results[0] == results[1]


def test_parse_without_a_tokenizer_says_what_it_found(pipeline, tmp_path, fail):
    pipeline.parser_.save(tmp_path / "parser.tw")
    (tmp_path / "plain").write_text("The cat sleeps.\n", encoding="utf-8")
    message = fail("parse", tmp_path / "parser.tw", tmp_path / "plain")
    assert "looks like plain text, but this model has no tokenizer; expected" in message


def test_brackets_are_not_taken_for_text(saved, tmp_path, fail):
    (tmp_path / "trees").write_text("(S (NP (N Mary)) (VP (V sleeps)))\n", encoding="utf-8")
    message = fail("parse", saved, tmp_path / "trees")
    assert "looks like trees in brackets; expected CoNLL-U or plain text" in message


def test_a_text_is_not_overwritten_by_its_trees(saved, text, tmp_path, fail):
    letter = tmp_path / "letter.txt"
    letter.write_text(text, encoding="utf-8")
    for options in ((), ("--draw",)):
        message = fail("parse", saved, letter, "--output", letter, *options)
        assert message == f"treewright: --output is {letter}, which is also INPUT; expected another file"
    assert letter.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("wrong", [{"tokenizer": tw.Tagger()}, {"parser": tw.Tagger()}, {"tokenizer": 3}])
def test_other_parts_are_refused(treebank, wrong):
    with pytest.raises(InputError, match=r"expected a (Tokenizer|DependencyParser)"):
        tw.Pipeline(**wrong).fit(treebank[:20])


def test_an_unfitted_pipeline_says_so():
    for use in (lambda nlp: nlp("x"), lambda nlp: nlp.kbest("x"), lambda nlp: nlp.own_tokenizer):
        with pytest.raises(InputError, match="this Pipeline is not fitted; call fit first"):
            use(tw.Pipeline())


def test_a_name_that_is_no_model_is_explained(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="models in the package: en"):
        tw.load("xx")
    (tmp_path / "en").mkdir()
    assert isinstance(tw.load("en"), tw.Pipeline)


def test_text_has_no_heads_to_keep(saved, tmp_path, fail):
    (tmp_path / "plain").write_text("The dog sleeps.", encoding="utf-8")
    message = fail("parse", saved, tmp_path / "plain", "--fixed-heads")
    assert message.startswith(
        f"treewright: {tmp_path / 'plain'} is plain text, which has no heads for --fixed-heads; "
        "expected CoNLL-U"
    )


def test_raw_forces_text(saved, tmp_path):
    (tmp_path / "rows").write_text("1\tThe\n", encoding="utf-8")
    done = run("parse", saved, tmp_path / "rows", "--raw")
    assert "\tThe\t" in done.stdout


def test_train_pipeline_takes_a_folder(treebank, tmp_path):
    tw.write_conllu(treebank[:60], tmp_path / "xx-ud-train.conllu")
    tw.write_conllu(treebank[60:80], tmp_path / "xx-ud-dev.conllu")
    options = (
        "--order",
        1,
        "--epochs",
        1,
        "--runs",
        1,
        "--table-bits",
        12,
        "--folds",
        2,
        "--tokenizer-epochs",
        1,
    )
    done = run("train", "pipeline", tmp_path, "--model", tmp_path / "x.tw", *options)
    assert "dev, from raw text (F1): words " in done.stderr
    assert len(tw.load(tmp_path / "x.tw")(treebank[0].text)) == 1


def test_a_folder_without_training_sentences_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"has no files that match \*train\*.conllu; expected one"):
        find_treebank(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("The cat sleeps.", "text"),
        ("", "text"),
        ("# A heading\nSome text.", "text"),
        ("(As we said) it sleeps.", "text"),
        ("1 000 people came.", "text"),
        ("# sent_id = 1\n1\tThe", "conllu"),
        ("\n\n1\tThe\t_\n", "conllu"),
        ("1-2\tdu\t_\t_\n", "conllu"),
        ("x\tThe\tthe\tDET\tDT\t_\t0\troot\n", "conllu"),
        ("name\tage\tcity\tx\n", "text"),
        ("\t\t\tChapter One\n", "text"),
        ("1\tFirst do this.\n", "text"),
        ("# text processing\nis fun", "text"),
        ("( (S (NP x)))", "brackets"),
        ("(S (NP x))", "brackets"),
    ],
)
def test_content_is_told_by_its_beginning(text, content):
    assert tell_content(text) == content


def test_two_pipelines_trained_alike_are_equal(treebank, tmp_path):
    for name in ("one", "two"):
        tw.Pipeline(parser=tw.DependencyParser(**PARSER)).fit(treebank[:60]).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_training_goes_on_after_an_interruption(treebank, tmp_path, pipeline):
    again = tw.Pipeline(parser=tw.DependencyParser(**PARSER)).fit(treebank, checkpoint=tmp_path / "kept")
    weights = [each.parser_.scorer_.weights_ for each in (pipeline, again)]
    np.testing.assert_array_equal(*weights)


def test_threads_of_a_pipeline_are_set_as_those_of_other_models(saved, treebank, text):
    loaded = tw.load(saved)
    expected = loaded(text).to_conllu()
    assert loaded.set_params(n_jobs=2)(text).to_conllu() == expected
    assert loaded.get_params()["n_jobs"] == 2
    assert loaded.using(n_jobs=3).n_jobs == 3
    assert loaded.n_jobs == 2
    threads = tw.Pipeline(parser=tw.DependencyParser(**PARSER), n_jobs=2).fit(treebank)
    assert threads.parser_.n_jobs == 2
    assert threads(text).to_conllu() == expected


def test_threads_of_a_pipeline_are_those_of_its_reranker_and_parser(treebank, monkeypatch):
    reranker = tw.DependencyReranker(parser=tw.DependencyParser(**PARSER), k=2, folds=2)
    seen = []
    monkeypatch.setattr(
        tw.DependencyReranker,
        "fit",
        lambda self, *_, **__: seen.append(self) or self.parser.fit(treebank[:30]),
    )
    tw.Pipeline(parser=reranker, n_jobs=2).fit(treebank[:30])
    assert (seen[0].n_jobs, seen[0].parser.n_jobs) == (2, 2)
    assert reranker.n_jobs == reranker.parser.n_jobs == 1


def test_parameters_of_what_is_not_there_are_refused():
    expected = (
        "parser is None; expected an estimator with the parameter n_jobs, so that parser__n_jobs can be set"
    )
    with pytest.raises(InputError, match=expected):
        tw.Pipeline().set_params(parser__n_jobs=2)


def test_words_that_are_known_are_asked_for_as_a_list(pipeline, treebank):
    assert pipeline.knows_words(treebank[0].words[:1]) == [True]
    with pytest.raises(InputError, match="words is 'abc'; expected a list of words"):
        pipeline.knows_words("abc")


def test_alternatives_of_a_pipeline_are_the_most_probable_heads(pipeline, text):
    (marginals, *_), (first, *_) = pipeline.marginals(text), pipeline.alternatives(text, n=1)
    assert [head for ((head, _),) in first] == marginals.argmax(axis=1).tolist()


@pytest.mark.parametrize("given", [3, None, b"The cat."])
def test_what_is_neither_text_nor_sentences_is_refused_with_both_named(pipeline, given):
    expected = f"the sentences are of type {type(given).__name__}; expected a text, or a list of sentences"
    with pytest.raises(InputError, match=expected):
        pipeline.predict(given)
