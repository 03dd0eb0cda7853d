"""FrameNet's XML release: sentences with the frames that their words evoke.

Ruppenhofer et al. (2016), FrameNet II: Extended Theory and Practice. Files of lexical units
(``lu/lu*.xml``) and of full texts (``fulltext/*.xml``) hold sentences with sets of annotation, each made
of layers of labels with character offsets. A set that has a ``Target`` layer with labels and an ``FE``
layer of rank 1 becomes a `FrameAnnotation`, its offsets turned into words.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, cast
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from treewright.data.consttree import Span
from treewright.data.files import Source, numbered_lines, source_name
from treewright.errors import FormatError, InputError, quote

logger = logging.getLogger("treewright")

NAMESPACE = "{http://framenet.icsi.berkeley.edu}"
LEXICAL_UNIT, FULL_TEXT = f"{NAMESPACE}lexUnit", f"{NAMESPACE}fullTextAnnotation"
SENTENCE = f"{NAMESPACE}sentence"
TAG_LAYERS = ("PENN", "BNC")
NO_TAG = "_"
WORD = re.compile(r"\w+(?:[-'’]\w+|[.,]\d+)*|[^\w\s]")
PLACES = ("lu/lu*.xml*", "fulltext/*.xml*")
SUFFIXES = (".xml", ".xml.gz")


class FrameAnnotation(NamedTuple):
    """One frame evoked in a sentence."""

    frame: str
    lexical_unit: str
    """Lemma and part of speech, as in ``give.v``."""
    target: tuple[Span, ...]
    """The words that evoke the frame; several spans where they are apart."""
    elements: tuple[Span, ...]
    """The frame elements, labelled with their names, from left to right."""
    status: str
    """``MANUAL`` for annotated by hand; ``UNANN`` where the elements are still to be annotated."""
    n_null: int
    """Elements that are understood but not expressed (definite, indefinite, constructional)."""
    n_unaligned: int
    """Labels of target or elements that cover no word and were left out."""
    n_widened: int
    """Labels that began or ended inside a word and were widened to whole words."""


class FrameSentence(NamedTuple):
    """One sentence with all its frames."""

    text: str
    words: list[str]
    tags: list[str]
    """Tags of the release (those of PENN are in small letters here and there); ``_`` where there is none."""
    frames: list[FrameAnnotation]


class _Word(NamedTuple):
    """A word, its tag and its place in the text."""

    form: str
    tag: str
    start: int
    end: int


class _Label(NamedTuple):
    """A label of a layer; `end` is not included, and both offsets are None where it has no place."""

    name: str
    start: int | None
    end: int | None
    is_null: bool


def iter_framenet(source: Source) -> Iterator[FrameSentence]:
    """Stream the sentences of FrameNet files.

    Words are those of the layer of tags, cut at white space; text without tags is split at white space
    and punctuation. What is left out of a file is counted in the annotations and logged.

    Parameters
    ----------
    source : path or file
        A file of a lexical unit or of a full text, or a folder: the release itself, whose lexical units
        come first, or any folder with such files in it.

    Raises
    ------
    FormatError
        With file, line, what was found and what was expected.
    """
    if isinstance(source, str | os.PathLike) and os.path.isdir(source):
        for path in _files_of(Path(source)):
            yield from _iter_file(path)
    else:
        yield from _iter_file(source)


def read_framenet(source: Source) -> list[FrameSentence]:
    """Read all sentences of FrameNet files; see `iter_framenet`."""
    return list(iter_framenet(source))


def _files_of(folder: Path) -> list[Path]:
    """List the annotated files of a folder: those of the release's subfolders, else all in it."""
    in_places = [path for place in PLACES for path in sorted(folder.glob(place))]
    paths = in_places or sorted(folder.glob("*.xml*"))
    found = [path for path in paths if path.name.endswith(SUFFIXES)]
    if not found:
        raise InputError(f"folder {str(folder)!r} has no XML files; expected lu/lu*.xml or fulltext/*.xml")
    return found


def _iter_file(source: Source) -> Iterator[FrameSentence]:
    n_labels = n_unaligned = 0
    for sentence in _parse_file(source):
        n_labels += sum(len(one.target) + len(one.elements) + one.n_unaligned for one in sentence.frames)
        n_unaligned += sum(one.n_unaligned for one in sentence.frames)
        yield sentence
    if n_unaligned:
        name = source_name(source)
        logger.warning("%s: %d of %d labels cover no word and were left out", name, n_unaligned, n_labels)


def _parse_file(source: Source) -> Iterator[FrameSentence]:
    name = source_name(source)
    opened: list[Element] = []
    n_sentences = 0  # those open: what stands inside one is kept until it is read
    for number, event, element in _iter_events(source, name):
        if event == "start":
            opened.append(element)
            n_sentences += element.tag == SENTENCE
            if len(opened) == 1:
                _check_root(element, name, number)
            continue
        opened.pop()
        n_sentences -= element.tag == SENTENCE
        if element.tag == SENTENCE:
            yield _SentenceReader(name, number, opened[0]).read(element)
        if opened and not n_sentences:
            opened[-1].remove(element)


def _iter_events(source: Source, name: str) -> Iterator[tuple[int, str, Element]]:
    """Parse line by line, so that the line of each element is known."""
    parser: XMLPullParser[Element] = XMLPullParser(["start", "end"])
    number = 1
    try:
        for number, line in numbered_lines(source):
            parser.feed(line + "\n")
            for event, element in _new_events(parser):
                yield number, event, element
        parser.close()
        for event, element in _new_events(parser):
            yield number, event, element
    except ParseError as error:
        found = str(error).partition(":")[0]
        raise FormatError(name, error.position[0], found, "well-formed XML") from error


def _new_events(parser: "XMLPullParser[Element]") -> Iterator[tuple[str, Element]]:
    return cast(Iterator[tuple[str, Element]], parser.read_events())


def _check_root(root: Element, name: str, number: int) -> None:
    if root.tag not in (LEXICAL_UNIT, FULL_TEXT):
        expected = f"<lexUnit> or <fullTextAnnotation> of the namespace {NAMESPACE[1:-1]}"
        raise FormatError(name, number, f"root element {quote(root.tag)}", expected)


class _SentenceReader:
    """Makes a sentence of its element; knows the file for error messages."""

    def __init__(self, name: str, number: int, root: Element) -> None:
        self._name = name
        self._number = number
        self._frame = root.get("frame", "")  # of a lexical unit; full texts have it at the annotation
        self._lexical_unit = root.get("name", "")

    def read(self, element: Element) -> FrameSentence:
        """Read a sentence."""
        text = element.findtext(f"{NAMESPACE}text")
        if text is None:
            raise self._error("a sentence without text", "an element <text>")
        words = _make_words(text, self._tag_labels(element))
        frames = [
            annotation
            for one in element.iterfind(f"{NAMESPACE}annotationSet")
            if (annotation := self._annotation(one, words)) is not None
        ]
        return FrameSentence(text, [word.form for word in words], [word.tag for word in words], frames)

    def _tag_labels(self, sentence: Element) -> list[_Label]:
        """Return the labels of the first layer of tags that has any."""
        layers = list(sentence.iterfind(f"{NAMESPACE}annotationSet/{NAMESPACE}layer"))
        for name in TAG_LAYERS:
            for layer in layers:
                if layer.get("name") == name and len(layer):
                    return self._labels([layer])
        return []

    def _annotation(self, element: Element, words: list[_Word]) -> FrameAnnotation | None:
        """Read a set of annotation, if it is one of a frame."""
        layers = list(element.iterfind(f"{NAMESPACE}layer"))
        target = self._labels(one for one in layers if one.get("name") == "Target")
        of_elements = [one for one in layers if one.get("name") == "FE" and one.get("rank", "1") == "1"]
        frame = element.get("frameName", self._frame)
        if not (target and of_elements and frame):
            return None
        labels = self._labels(of_elements)
        placed = [one for one in labels if not one.is_null]
        target_spans, elements = _align(target, words), _align(placed, words)
        aligned = [*target_spans, *elements]
        return FrameAnnotation(
            frame,
            element.get("luName", self._lexical_unit),
            tuple(span for span, _ in target_spans),
            tuple(sorted((span for span, _ in elements), key=lambda span: (span.start, -span.end))),
            element.get("status", ""),
            n_null=len(labels) - len(placed),
            n_unaligned=len(target) + len(placed) - len(aligned),
            n_widened=sum(widened for _, widened in aligned),
        )

    def _labels(self, layers: Iterable[Element]) -> list[_Label]:
        return [self._label(one) for layer in layers for one in layer.iterfind(f"{NAMESPACE}label")]

    def _label(self, element: Element) -> _Label:
        start, last = (self._offset(element, name) for name in ("start", "end"))
        end = None if last is None else last + 1
        return _Label(element.get("name", ""), start, end, "itype" in element.attrib)

    def _offset(self, element: Element, name: str) -> int | None:
        value = element.get(name)
        if value is None:
            return None
        if not re.fullmatch(r"-?[0-9]{1,9}", value):
            raise self._error(f"{name} is {quote(value)}", "a number of characters")
        return int(value)

    def _error(self, found: str, expected: str) -> FormatError:
        return FormatError(self._name, self._number, f"{found} in the sentence that ends here", expected)


def _make_words(text: str, tag_labels: list[_Label]) -> list[_Word]:
    """Cut a text into words along its tags; between them, at white space and punctuation."""
    words: list[_Word] = []
    done = 0
    for tag, start, end, _ in sorted(tag_labels, key=lambda one: (one.start or 0, -(one.end or 0))):
        if start is not None and end is not None and done <= start < end <= len(text):
            words += _cut(text, WORD, NO_TAG, done, start)
            words += _cut(text, re.compile(r"\S+"), tag or NO_TAG, start, end)
            done = end
    return [*words, *_cut(text, WORD, NO_TAG, done, len(text))]


def _cut(text: str, pattern: re.Pattern[str], tag: str, start: int, end: int) -> Iterator[_Word]:
    for match in pattern.finditer(text, start, end):
        yield _Word(match[0], tag, *match.span())


def _align(labels: list[_Label], words: list[_Word]) -> list[tuple[Span, bool]]:
    """Turn characters into words; tell whether a label had to be widened, drop one that covers no word."""
    aligned = []
    for name, start, end, _ in labels:
        if start is None or end is None:
            continue
        covered = [at for at, word in enumerate(words) if word.start < end and start < word.end]
        if start < end and covered:
            first, last = words[covered[0]], words[covered[-1]]
            aligned.append((Span(name, covered[0], covered[-1] + 1), first.start < start or end < last.end))
    return aligned
