"""Pretrained word vectors from text files of word2vec, GloVe and fastText.

Training does not change the vectors. They are useful because they cover words that do not occur in the
training sentences.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from treewright._validate import check_integer
from treewright.data.files import Source, numbered_lines, source_name
from treewright.data.vocab import Vocabulary
from treewright.errors import FormatError, quote
from treewright.model import Model, Value, expect, saved
from treewright.parsing.neural.rounding import HalfPrecision

Floats = npt.NDArray[np.float32]
DEFAULT_MAX_VECTORS = 100_000
LARGEST = 1e4
"""Maximum length of a vector relative to the mean, so that half precision suffices."""
BLOCK = 1 << 12
"""Number of vectors that are collected before they are added to the table."""


class WordVectors(Model):
    """Words and their pretrained vectors.

    Parameters
    ----------
    vocabulary : Vocabulary
        The words.
    table : array, (n_words, size)
        Vectors in the order of the vocabulary, in half precision to save space.
    """

    fields = saved(
        vocabulary=Value(
            list, encode=lambda found: found.strings, decode=lambda found: _to_vocabulary(found)
        ),
        table=HalfPrecision(2),
    )

    def __init__(self, vocabulary: Vocabulary, table: npt.NDArray[np.float16]) -> None:
        self.vocabulary, self.table = vocabulary, table

    def restore(self) -> None:
        """Convert the vectors to half precision."""
        self.table = self.table.astype(np.float16)

    def __repr__(self) -> str:
        return f"WordVectors of {len(self.table):,} words in {self.size} dimensions"

    @property
    def size(self) -> int:
        """Number of dimensions."""
        return int(self.table.shape[1])

    def number(self, form: str) -> int:
        """Return the number of the vector of a form or of its lower-cased form; 0 if there is none."""
        return self.vocabulary.id(form) or self.vocabulary.id(form.lower())

    def look_up(self, forms: Sequence[str]) -> Floats:
        """Return the vectors of forms, (n_forms, size); forms without a vector get 0."""
        numbers = np.array([self.number(form) for form in forms], dtype=np.int64)
        found: Floats = self.table[np.maximum(numbers - 1, 0)].astype(np.float32)
        found[numbers == 0] = 0
        return found

    def coverage(self, forms: Iterable[str]) -> float:
        """Return the percentage of forms with a vector."""
        found = [self.number(form) > 0 for form in forms]
        return 100 * sum(found) / max(1, len(found))

    def check_fitted_state(self) -> None:
        """Check that each word has a vector."""
        expect(self.table.shape[0] == len(self.vocabulary.strings), "one vector per word")
        expect(min(self.table.shape) > 0, "at least one vector")


def read_vectors(
    source: Source, *, words: Iterable[str] = (), max_vectors: int | None = DEFAULT_MAX_VECTORS
) -> WordVectors:
    """Read word vectors in the text format of word2vec, GloVe or fastText, plain or gzip-compressed.

    Vectors are divided by their mean length. The file is read once, and only as far as necessary.

    Parameters
    ----------
    source : path or file
        One word with its vector per line, the most frequent words first. A first line with the number of
        words and of dimensions is optional.
    words : iterable of str
        The vectors of these forms and of their lower-cased forms are always kept.
    max_vectors : int, optional
        Number of vectors to keep from the beginning of the file; with 0, only the vectors of `words` are
        kept; with None, all vectors are kept.

    Raises
    ------
    FormatError
        If the file is empty, truncated or not UTF-8, if vectors have different sizes, or if the file contains
        an invalid number, NaN, infinity or a duplicate word.
    """
    if max_vectors is not None:
        check_integer("max_vectors", max_vectors)
    name = source_name(source)
    wanted = {each for form in words for each in (form, form.lower())}
    lines: dict[str, int] = {}
    blocks: list[Floats] = []
    rows: list[Floats] = []
    size, n_announced, n_read, line = 0, None, 0, 1
    for line, text in numbered_lines(source):
        text = text.replace("\t", " ").rstrip(" ")
        if line == 1 and (header := _read_header(text)):
            n_announced, size = header
            continue
        if not text:
            continue
        size = size or text.count(" ")
        word, numbers = _split(name, line, text, size)
        n_read += 1
        if max_vectors is None or n_read <= max_vectors or word in wanted:
            if word in lines:
                found = f"{quote(word)}, which already has a vector in line {lines[word]}"
                raise FormatError(name, line, found, "each word once")
            lines[word] = line
            rows.append(_to_numbers(name, line, numbers))
            if len(rows) == BLOCK:
                blocks.append(np.array(rows))
                rows = []
        if not wanted and n_read == max_vectors:
            break
    else:
        _check_whole(name, line, n_read, n_announced)
    if rows:
        blocks.append(np.array(rows))
    if not blocks:
        found = f"no vector of the {len(wanted):,} requested words"
        raise FormatError(name, line, found, "vectors for words of this language")
    return WordVectors(Vocabulary(list(lines)), _scale(name, np.concatenate(blocks), list(lines.values())))


def _to_vocabulary(strings: list[str]) -> Vocabulary:
    expect(all(isinstance(each, str) for each in strings), "words that are strings")
    expect(len(set(strings)) == len(strings), "each word once")
    return Vocabulary(strings)


def _read_header(text: str) -> tuple[int, int] | None:
    """Return the number of words and of dimensions if the line is a header, or else None."""
    numbers = text.split(" ")
    is_header = len(numbers) == 2 and all(each.isascii() and each.isdecimal() for each in numbers)
    return (int(numbers[0]), int(numbers[1])) if is_header and int(numbers[1]) > 0 else None


def _split(name: str, line: int, text: str, size: int) -> tuple[str, str]:
    """Return the word of a line and its numbers; a word with spaces cannot end in a number."""
    n_found = text.count(" ")
    word, numbers = text, ""
    if n_found == size > 0:
        word, _, numbers = text.partition(" ")
    elif n_found > size > 0:
        pieces = text.rsplit(" ", size)
        word, numbers = pieces[0], " ".join(pieces[1:])
    if not word or not numbers or (" " in word and _is_number(word.rpartition(" ")[2])):
        found = f"{n_found:,} numbers after {quote(text.partition(' ')[0])}" if n_found else quote(text)
        raise FormatError(name, line, found, f"a word and {size or 'its'} numbers")
    return word, numbers


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _to_numbers(name: str, line: int, text: str) -> Floats:
    try:
        with np.errstate(over="ignore"):  # infinity is reported below
            found: Floats = np.array([float(each) for each in text.split(" ")]).astype(np.float32)
    except ValueError:
        wrong = next(each for each in text.split(" ") if not _is_number(each))
        raise FormatError(name, line, quote(wrong), "a number") from None
    if not np.isfinite(found).all():
        wrong = text.split(" ")[int(np.argmin(np.isfinite(found)))]
        raise FormatError(name, line, quote(wrong), "a finite number")
    return found


def _check_whole(name: str, line: int, n_read: int, n_announced: int | None) -> None:
    """Check that a file that was read to the end has vectors, and as many as its header says."""
    if not n_read:
        raise FormatError(name, 1, "no vectors", "a word and its numbers per line")
    if n_announced is not None and n_read != n_announced:
        raise FormatError(name, line, f"{n_read:,} vectors", f"{n_announced:,}, the number in line 1")


def _scale(name: str, table: Floats, lines: Sequence[int]) -> npt.NDArray[np.float16]:
    lengths = np.sqrt(np.square(table, dtype=np.float64).sum(axis=1))
    mean = lengths.mean() or 1.0
    longest = int(lengths.argmax())
    if lengths[longest] > LARGEST * mean:
        found = f"a vector of length {lengths[longest]:.3g}"
        raise FormatError(name, lines[longest], found, f"lengths close to the mean of {mean:.3g}")
    table /= mean
    return table.astype(np.float16)
