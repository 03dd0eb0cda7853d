"""Reader of FrameNet's XML release: sentences with the frames that their words evoke.

Ruppenhofer et al. (2016), FrameNet II: Extended Theory and Practice. Files of lexical units (``lu/lu*.xml``)
and of full texts (``fulltext/*.xml``) contain sentences with annotation sets. Each set has layers of labels
with character offsets. A set with labels in a ``Target`` layer and with an ``FE`` layer of rank 1 becomes a
`FrameAnnotation`, whose spans are in words.
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
    """A frame evoked in a sentence.

    See Also
    --------
    FrameSentence : A sentence with its frames.
    read_framenet : Reads sentences with frames.

    Examples
    --------
    >>> frame = tw.read_framenet("fndata-1.7/fulltext")[0].frames[0]  # doctest: +SKIP
    >>> frame.lexical_unit  # doctest: +SKIP
    'give.v'
    """

    frame: str
    """Name of the frame."""
    lexical_unit: str
    """Lemma and part of speech, such as ``give.v``."""
    target: tuple[Span, ...]
    """The words that evoke the frame; several spans if they are not adjacent."""
    elements: tuple[Span, ...]
    """The frame elements as labelled spans, from left to right."""
    status: str
    """``MANUAL`` if annotated by hand; ``UNANN`` if the elements are not annotated yet."""
    n_null: int
    """Number of null-instantiated elements (definite, indefinite or constructional)."""
    n_unaligned: int
    """Number of labels that cover no word and were dropped."""
    n_widened: int
    """Number of labels that start or end inside a word and were extended to whole words."""


class FrameSentence(NamedTuple):
    """A sentence with all its frames.

    See Also
    --------
    FrameAnnotation : A frame in a sentence.
    read_framenet : Reads sentences with frames.

    Examples
    --------
    >>> sentence = tw.read_framenet("fndata-1.7/fulltext")[0]  # doctest: +SKIP
    >>> sentence.words[:2]  # doctest: +SKIP
    ['I', 'gave']
    """

    text: str
    """The sentence as text."""
    words: list[str]
    """The words."""
    tags: list[str]
    """Part-of-speech tags of the release (some Penn tags are in lower case); ``_`` if there is none."""
    frames: list[FrameAnnotation]
    """The frames."""


class _Word(NamedTuple):
    """A word with its tag and character offsets."""

    form: str
    tag: str
    start: int
    end: int


class _Label(NamedTuple):
    """A label of a layer; `end` is exclusive, and both offsets are None for a null element."""

    name: str
    start: int | None
    end: int | None
    is_null: bool


def iter_framenet(source: Source) -> Iterator[FrameSentence]:
    """Iterate over the sentences of FrameNet files.

    The words come from the tag layer and are split at whitespace; text without tags is split at whitespace
    and punctuation. Labels that are dropped are counted in the annotations and logged.

    Parameters
    ----------
    source : path or file
        A file of a lexical unit or of a full text, or a folder. A folder may be the release itself,
        whose lexical units are read first, or any folder with such files.

    Yields
    ------
    FrameSentence
        The next sentence.

    Raises
    ------
    FormatError
        If a file is malformed; gives file, line, value found and value expected.

    See Also
    --------
    read_framenet : Returns all sentences as a list.

    Examples
    --------
    >>> for sentence in tw.iter_framenet("fndata-1.7"):  # doctest: +SKIP
    ...     print(sentence.text, [frame.frame for frame in sentence.frames])
    """
    if isinstance(source, str | os.PathLike) and os.path.isdir(source):
        for path in _files_of(Path(source)):
            yield from _iter_file(path)
    else:
        yield from _iter_file(source)


def read_framenet(source: Source) -> list[FrameSentence]:
    """Read all sentences of FrameNet files.

    Parameters
    ----------
    source : path or file
        A file of a lexical unit or of a full text, or a folder. A folder may be the release itself,
        whose lexical units are read first, or any folder with such files.

    Returns
    -------
    list of FrameSentence
        All sentences.

    See Also
    --------
    iter_framenet : Yields one sentence at a time.

    Examples
    --------
    >>> sentences = tw.read_framenet("fndata-1.7/fulltext")  # doctest: +SKIP
    """
    return list(iter_framenet(source))


def _files_of(folder: Path) -> list[Path]:
    """Return the annotated files of a folder: those in the subfolders of a release, or else all XML files."""
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
        logger.warning("%s: %d of %d labels cover no word and were dropped", name, n_unaligned, n_labels)


def _parse_file(source: Source) -> Iterator[FrameSentence]:
    name = source_name(source)
    opened: list[Element] = []
    n_sentences = 0  # number of open sentences, whose content is kept until they are read
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
    """Parse line by line, so that the line number of each element is known."""
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
    """Reads sentences from their XML elements."""

    def __init__(self, name: str, number: int, root: Element) -> None:
        self._name = name
        self._number = number
        self._frame = root.get("frame", "")  # for a lexical unit; in full texts, the annotation has it
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
        """Return the labels of the first tag layer that has any."""
        layers = list(sentence.iterfind(f"{NAMESPACE}annotationSet/{NAMESPACE}layer"))
        for name in TAG_LAYERS:
            for layer in layers:
                if layer.get("name") == name and len(layer):
                    return self._labels([layer])
        return []

    def _annotation(self, element: Element, words: list[_Word]) -> FrameAnnotation | None:
        """Read an annotation set; None if it has no frame."""
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
            raise self._error(f"{name} is {quote(value)}", "a character offset")
        return int(value)

    def _error(self, found: str, expected: str) -> FormatError:
        return FormatError(self._name, self._number, f"{found} in the sentence that ends here", expected)


def _make_words(text: str, tag_labels: list[_Label]) -> list[_Word]:
    """Split a text into its tagged words; split untagged parts at whitespace and punctuation."""
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
    """Convert character spans to word spans and flag those that were extended; drop labels without words."""
    aligned = []
    for name, start, end, _ in labels:
        if start is None or end is None:
            continue
        covered = [at for at, word in enumerate(words) if word.start < end and start < word.end]
        if start < end and covered:
            first, last = words[covered[0]], words[covered[-1]]
            aligned.append((Span(name, covered[0], covered[-1] + 1), first.start < start or end < last.end))
    return aligned
