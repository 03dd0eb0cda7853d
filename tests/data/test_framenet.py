"""FrameNet's XML: what becomes a frame, how characters become words, what is refused.

The sentences are invented; the structure is that of the release, which NLTK reads, too.
"""

import gzip
import io
from xml.etree import ElementTree

import pytest
from framenet_sample import TEXT, UNIT
from hypothesis import given
from hypothesis import strategies as st
from strategies import mutations, random_bytes

from treewright import Span
from treewright.data.framenet import iter_framenet, read_framenet
from treewright.errors import FormatError, InputError

NAMESPACE = "http://framenet.icsi.berkeley.edu"


def read(content):
    return read_framenet(io.BytesIO(content if isinstance(content, bytes) else content.encode()))


def full_text(body, text="Ann  lent Bob's kite, 3.5 m-long."):
    """Make a full text of one sentence with `body` in it."""
    head = f'<fullTextAnnotation xmlns="{NAMESPACE}">\n<sentence>\n<text>{text}</text>\n'
    return f"{head}{body}\n</sentence>\n</fullTextAnnotation>\n"


def layer(name, *labels, rank=1):
    """Make a layer of labels (name, first character, last character)."""
    made = "".join(f'<label name="{one}" start="{start}" end="{end}"/>' for one, start, end in labels)
    return f'<layer name="{name}" rank="{rank}">{made}</layer>'


def annotation(*layers, attributes='frameName="Lending" luName="lend.v" status="MANUAL"'):
    return f"<annotationSet {attributes}>{''.join(layers)}</annotationSet>"


def frames(body):
    return read(full_text(body))[0].frames


TARGET = layer("Target", ("Target", 5, 8))


def error_of(content):
    with pytest.raises(FormatError) as caught:
        read(content)
    return str(caught.value)


# what is read


def read_by_nltk(folder, monkeypatch):
    """Return frames as NLTK reads them: the texts of the target and of each element with its name."""
    nltk = pytest.importorskip("nltk")
    reading = pytest.importorskip("nltk.corpus.reader.framenet")
    monkeypatch.setattr(nltk.data, "path", [str(folder)])
    reader = reading.FramenetCorpusReader(str(folder), [])
    # The index of a whole release would be read here; frames are named by the annotations, too.
    monkeypatch.setattr(reader, "lu", lambda *_, **__: reading.AttrDict(frame=None))
    unit = reader._handle_lexunit_elt(ElementTree.fromstring(UNIT.encode()), [])
    text = ElementTree.fromstring(TEXT.encode())
    text.remove(text[-1])  # NLTK expects annotations in every sentence
    whole = reader._handle_fulltextannotation_elt(text)
    found = [each for corpus in unit.subCorpus for each in corpus.sentence] + list(whole.sentence)
    return [
        (
            [sentence.text[start:end] for start, end in annotation["Target"]],
            sorted((name, sentence.text[start:end]) for start, end, name in annotation.get("FE", [[]])[0]),
        )
        for sentence in found
        for annotation in sentence.annotationSet
        if "Target" in annotation
    ]


def test_nltk_finds_the_same_targets_and_elements(tmp_path, monkeypatch):
    expected = read_by_nltk(tmp_path, monkeypatch)
    own = [
        (
            [" ".join(sentence.words[part.start : part.end]) for part in frame.target],
            sorted((label, " ".join(sentence.words[start:end])) for label, start, end in frame.elements),
        )
        for content in (UNIT, TEXT)
        for sentence in read(content)
        for frame in sentence.frames
    ]
    assert own == expected


def test_a_lexical_unit_gives_frame_and_name_to_its_annotations():
    (sentence,) = read(UNIT)
    (frame,) = sentence.frames
    assert (frame.frame, frame.lexical_unit, frame.status) == ("Lending", "lend.v", "MANUAL")
    assert frame.target == (Span("Target", 3, 4),)


def test_elements_are_spans_of_words_from_left_to_right():
    (frame,) = read(UNIT)[0].frames
    assert frame.elements == (Span("Lender", 2, 3), Span("Borrower", 4, 5), Span("Theme", 5, 7))
    assert (frame.n_unaligned, frame.n_widened) == (0, 0)


def test_elements_without_words_are_counted():
    assert [frame.n_null for frame in read(UNIT)[0].frames] == [1]
    assert [frame.n_null for frame in read(TEXT)[0].frames] == [2, 0]


def test_words_and_tags_are_those_of_the_layer_of_tags():
    sentence = read(TEXT)[0]
    assert sentence.text == "Zoë picked it up & ran ."
    assert sentence.words == ["Zoë", "picked", "it", "up", "&", "ran", "."]
    assert sentence.tags == ["NP", "VVD", "PP", "rp", "cc", "VVD", "sent"]


def test_a_tag_over_several_words_is_given_to_each():
    sentence = read(UNIT)[0]
    assert sentence.words == ["Of", "course", "Ann", "lent", "Bob", "a", "kite", "."]
    assert sentence.tags == ["AV0", "AV0", "NP0", "VVD", "NP0", "AT0", "NN1", "PUN"]


def test_a_full_text_names_frame_and_lexical_unit_at_each_annotation():
    taking, moving = read(TEXT)[0].frames
    assert (taking.frame, taking.lexical_unit) == ("Taking", "pick up.v")
    assert taking.target == (Span("Target", 1, 2), Span("Target", 3, 4))
    assert taking.elements == (Span("Agent", 0, 1), Span("Theme", 2, 3))
    assert (moving.frame, moving.status, moving.elements) == ("Self_motion", "UNANN", ())


def test_a_sentence_without_annotation_has_words_and_no_frames():
    assert read(TEXT)[1] == ("Yes!", ["Yes", "!"], ["_", "_"], [])


def test_text_without_tags_is_split_at_white_space_and_punctuation():
    (sentence,) = read(full_text(""))
    assert sentence.words == ["Ann", "lent", "Bob's", "kite", ",", "3.5", "m-long", "."]


def test_text_between_tags_is_not_lost():
    tags = annotation(layer("PENN", ("NP", 0, 2), ("NP", 10, 12), ("POS", 13, 14)), attributes="")
    (sentence,) = read(full_text(tags))
    assert sentence.words == ["Ann", "lent", "Bob", "'s", "kite", ",", "3.5", "m-long", "."]
    assert sentence.tags == ["NP", "_", "NP", "POS", "_", "_", "_", "_", "_"]


def test_tags_that_overlap_or_lie_outside_are_passed_over():
    tags = annotation(layer("BNC", ("A", 0, 2), ("B", 0, 1), ("C", 2, 8), ("D", 90, 91), ("E", 5, 2)))
    (sentence,) = read(full_text(tags))
    assert sentence.words[:3] == ["Ann", "lent", "Bob's"]
    assert sentence.tags[:3] == ["A", "_", "_"]


def test_penn_tags_are_taken_before_bnc_tags():
    tags = annotation(layer("BNC", ("VVD", 5, 8)), layer("PENN", ("VBD", 5, 8)))
    assert read(full_text(tags))[0].tags[1] == "VBD"


# what becomes a frame


@pytest.mark.parametrize(
    "layers",
    [
        [TARGET],
        [layer("FE", ("Lender", 0, 2))],
        [layer("Target"), layer("FE", ("Lender", 0, 2))],
        [TARGET, layer("FE", ("Lender", 0, 2), rank=2)],
    ],
)
def test_without_target_or_elements_of_rank_1_there_is_no_frame(layers):
    assert frames(annotation(*layers)) == []


def test_without_a_name_there_is_no_frame():
    assert frames(annotation(TARGET, layer("FE"), attributes="")) == []


def test_elements_of_other_ranks_are_left_out():
    (frame,) = frames(annotation(TARGET, layer("FE", ("A", 0, 2)), layer("FE", ("B", 0, 2), rank=2)))
    assert frame.elements == (Span("A", 0, 1),)


@pytest.mark.parametrize(
    ("label", "span", "n_widened"),
    [
        (("A", 0, 2), (0, 1), 0),
        (("A", 0, 4), (0, 1), 0),
        (("A", 3, 8), (1, 2), 0),
        (("A", 0, 8), (0, 2), 0),
        (("A", 1, 2), (0, 1), 1),
        (("A", 10, 12), (2, 3), 1),
        (("A", 11, 17), (2, 4), 1),
        (("A", 32, 99), (7, 8), 0),
        (("A", -3, 0), (0, 1), 1),
    ],
)
def test_characters_become_all_the_words_that_they_touch(label, span, n_widened):
    (frame,) = frames(annotation(TARGET, layer("FE", label)))
    assert frame.elements == (Span("A", *span),)
    assert (frame.n_widened, frame.n_unaligned) == (n_widened, 0)


@pytest.mark.parametrize("label", [("A", 3, 4), ("A", 90, 95), ("A", 2, 1), ("A", -5, -1)])
def test_labels_that_cover_no_word_are_counted_and_logged(label, caplog):
    (frame,) = frames(annotation(TARGET, layer("FE", label, ("B", 0, 2))))
    assert (frame.elements, frame.n_unaligned) == ((Span("B", 0, 1),), 1)
    assert caplog.messages == ["<stream>: 1 of 3 labels cover no word and were dropped"]


def test_a_label_without_offsets_that_is_not_null_covers_no_word(caplog):
    (frame,) = frames(annotation(TARGET, '<layer name="FE" rank="1"><label name="A"/></layer>'))
    assert (frame.elements, frame.n_null, frame.n_unaligned) == ((), 0, 1)
    assert len(caplog.messages) == 1


# files and folders


@pytest.fixture
def release(tmp_path):
    """Make the folder of a release."""
    for name, content in {
        "lu/lu1.xml": UNIT,
        "lu/lu2.xml": UNIT.replace("lend.v", "loan.v"),
        "lu/lexUnit.xsl": "<x/>",
        "fulltext/I__one.xml": TEXT,
        "frameIndex.xml": "<frameIndex/>",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    return tmp_path


def test_a_release_gives_lexical_units_then_full_texts(release):
    units = [frame.lexical_unit for one in read_framenet(release) for frame in one.frames]
    assert units == ["lend.v", "loan.v", "pick up.v", "run.v"]


@pytest.mark.parametrize(("folder", "n_sentences"), [("lu", 2), ("fulltext", 2)])
def test_a_folder_of_the_release_gives_its_files(release, folder, n_sentences):
    assert len(read_framenet(str(release / folder))) == n_sentences


def test_compressed_files_are_read(tmp_path):
    (tmp_path / "one.xml.gz").write_bytes(gzip.compress(TEXT.encode()))
    assert read_framenet(tmp_path) == read_framenet(tmp_path / "one.xml.gz") == read(TEXT)


def test_a_folder_without_xml_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"has no XML files; expected lu/lu\*\.xml or fulltext/\*\.xml$"):
        read_framenet(tmp_path)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path, streaming_peak):
    start, end = TEXT.index("    <sentence"), TEXT.index("</fullTextAnnotation>")
    peaks = []
    for n_times in (200, 4000):
        path = tmp_path / f"{n_times}.xml"
        path.write_text(TEXT[:start] + TEXT[start:end] * n_times + TEXT[end:], encoding="utf-8")
        peaks.append(streaming_peak(iter_framenet(path)))
    assert max(peaks) < 3_000_000
    assert peaks[1] < 2 * peaks[0]


# what is refused


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "1: no element found; expected well-formed XML"),
        ("Ann lent", "1: syntax error; expected well-formed XML"),
        (UNIT.replace("</subCorpus>", "</subcorpus>"), "42: mismatched tag; expected well-formed XML"),
        (UNIT[: UNIT.index("<valences>")], "13: no element found; expected well-formed XML"),
        (UNIT + "<a/>", "44: junk after document element; expected well-formed XML"),
        (
            UNIT.replace("Ann lent", "Ann & lent"),
            "16: not well-formed (invalid token); expected well-formed XML",
        ),
    ],
)
def test_xml_that_is_not_well_formed_is_refused_with_its_line(content, message):
    assert error_of(content) == f"<stream>:{message}"


@pytest.mark.parametrize("root", ["<frame/>", "<lexUnit/>", f'<frame xmlns="{NAMESPACE}"/>'])
def test_other_xml_is_refused(root):
    expected = f"expected <lexUnit> or <fullTextAnnotation> of the namespace {NAMESPACE}"
    assert error_of(root).endswith(expected)


@pytest.mark.parametrize("value", ["x", "", "1.5", "1" * 10, "\u0661"])
def test_offsets_that_are_no_numbers_are_refused_with_the_line(value):
    body = annotation(TARGET, layer("FE", ("A", value, 3)))
    expected = "in the sentence that ends here; expected a character offset"
    assert error_of(full_text(body)) == f"<stream>:5: start is {value!r} {expected}"


def test_a_sentence_without_text_is_refused():
    content = f'<fullTextAnnotation xmlns="{NAMESPACE}">\n<sentence/></fullTextAnnotation>'
    message = "2: a sentence without text in the sentence that ends here; expected an element <text>"
    assert error_of(content) == f"<stream>:{message}"


def test_external_entities_are_not_fetched(tmp_path):
    (tmp_path / "secret").write_text("secret")
    entity = f'<!DOCTYPE x [<!ENTITY e SYSTEM "{(tmp_path / "secret").as_uri()}">]>\n'
    assert (
        error_of(entity + full_text("", text="&e;"))
        == "<stream>:4: undefined entity &e;; expected well-formed XML"
    )


def test_sentences_before_an_error_are_read():
    stream = iter_framenet(io.BytesIO(TEXT.replace("</fullTextAnnotation>", "</x>").encode()))
    assert [next(stream), next(stream)] == read(TEXT)
    with pytest.raises(FormatError, match="mismatched tag"):
        next(stream)


def test_bytes_that_are_not_utf_8_are_refused():
    assert error_of(TEXT.encode("latin-1")).endswith("; expected UTF-8")


# properties


def check_no_other_error(content):
    try:
        sentences = read(content)
    except FormatError:
        return
    for sentence in sentences:
        assert len(sentence.words) == len(sentence.tags)
        spans = [span for frame in sentence.frames for span in (*frame.target, *frame.elements)]
        assert all(0 <= span.start < span.end <= len(sentence.words) for span in spans)


@given(mutations(st.sampled_from([UNIT.encode(), TEXT.encode()])))
def test_damaged_files_are_refused_or_read(content):
    check_no_other_error(content)


@given(random_bytes())
def test_random_bytes_are_refused_or_read(content):
    check_no_other_error(content)


labels = st.tuples(st.sampled_from("AB"), st.integers(-2, 40), st.integers(-2, 40))


@given(st.lists(labels, max_size=5), st.lists(labels, max_size=5))
def test_every_label_is_aligned_or_counted(tags, elements):
    tagging, body = layer("PENN", *tags), annotation(TARGET, layer("FE", *elements))
    (sentence,) = read(full_text(annotation(tagging) + body))
    (frame,) = sentence.frames
    assert len(frame.target) + len(frame.elements) + frame.n_unaligned == 1 + len(elements)
    assert "".join(sentence.words) == "".join(sentence.text.split())
