"""Token and sentence boundaries: a binary linear classifier and its features."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from treewright._typing import Booleans, Integers, Keys
from treewright.checkpoint import Checkpoint
from treewright.data.templates import TemplateLanguage
from treewright.learn.weights import PackedWeights, average, pack, unpack
from treewright.model import Array, Model, State, expect, saved
from treewright.native.tagging.boundaries import (
    LINE,
    PARAGRAPH,
    BoundaryWeights,
    Characters,
    Learnt,
    Rules,
    index_keys,
    learn,
)
from treewright.progress import task

CHARACTER_ATTRIBUTES = (
    "point",
    "folded",
    "kind",
    "rest",
    "rest_shape",
    "next",
    "word_begin",
    "word_end",
    "word_over",
    "begun",
    "begun_shape",
    "begun_size",
)
"""Attributes of characters, in the order of `treewright.native.tagging.boundaries`."""
TOKEN_ATTRIBUTES = (
    "form",
    "lower",
    "shape",
    "suffix",
    "first",
    "last",
    "size",
    "gap",
    "class",
    "ahead",
    "since",
    "open",
    "start",
    "previous",
)
MAX_PARTS = 6
CHARACTERS = TemplateLanguage(CHARACTER_ATTRIBUTES, roles=("c",), max_offset=8, max_atoms=MAX_PARTS)
"""Language of templates (`treewright.data.templates`) for the character ``c`` after which a token may end."""
TOKENS = TemplateLanguage(TOKEN_ATTRIBUTES, roles=("t",), max_offset=8, max_atoms=MAX_PARTS)

N_POINTS = 0x110000
LEARNT_AT_A_TIME = 20_000
KINDS = (
    *("outside", "space", "line", "paragraph", "upper", "lower", "title", "letter", "han", "hiragana"),
    *("katakana", "hangul", "unspaced", "mark", "digit", "number", "open", "close", "quote", "dash"),
    *("punctuation", "currency", "math", "symbol", "modifier", "control", "format", "other"),
)
OWN_KINDS = ".,:;!?'\"-/@#&%*_()[]…“”’‘。、，！？「」『』·・"
"""Characters that each form a kind of their own."""
KIND_NUMBERS = {name: number for number, name in enumerate((*KINDS, *OWN_KINDS))}
"""Index of each kind; white space has the kinds `SPACE`, `LINE` and `PARAGRAPH`."""
N_KINDS = len(KIND_NUMBERS)
CATEGORIES = {
    "Cc": "control",
    "Cf": "format",
    "Ll": "lower",
    "Lt": "title",
    "Lu": "upper",
    "Nd": "digit",
    "Pd": "dash",
    "Pe": "close",
    "Pf": "quote",
    "Pi": "quote",
    "Ps": "open",
    "Sc": "currency",
    "Sk": "modifier",
    "Sm": "math",
    "So": "symbol",
}
"""Kinds of characters by Unicode category; for other categories, see `WIDE_CATEGORIES`."""
WIDE_CATEGORIES = {"L": "letter", "N": "number", "P": "punctuation"}
SCRIPTS = (
    *((0x3040, 0x309F, "hiragana"), (0x30A0, 0x30FF, "katakana"), (0x31F0, 0x31FF, "katakana")),
    *(
        (0xFF66, 0xFF9F, "katakana"),
        (0x3400, 0x4DBF, "han"),
        (0x4E00, 0x9FFF, "han"),
        (0x3005, 0x3007, "han"),
    ),
    *(
        (0xF900, 0xFAFF, "han"),
        (0x20000, 0x3FFFF, "han"),
        (0xAC00, 0xD7AF, "hangul"),
        (0x1100, 0x11FF, "hangul"),
    ),
    *((0x0E00, 0x0EFF, "unspaced"), (0x0F00, 0x0FFF, "unspaced"), (0x1000, 0x109F, "unspaced")),
    *((0x1780, 0x17FF, "unspaced"), (0x1950, 0x19DF, "unspaced"), (0x1A20, 0x1AAF, "unspaced")),
)
"""Ranges of code points, with the kinds of their letters."""
EXTENDERS = frozenset(map(chr, [0x200C, *range(0x1F3FB, 0x1F400), *range(0xE0020, 0xE0080)]))
"""Characters that extend the previous character like combining marks, such as skin tones and flag tags."""
ZERO_WIDTH_JOINER = 0x200D
REGIONAL_INDICATORS = (0x1F1E6, 0x1F1FF)
ADDRESS = re.compile(r"(?:\b[a-zA-Z][a-zA-Z0-9+.-]{1,15}://|\bwww\.)[^\s<>\"]*[^\s<>\".,;:!?)\]}'’”»]")
"""Pattern of a web address, without trailing punctuation or closing brackets."""
LINE_BREAKS = "\n\r\x0b\x0c\x85\u2028"
PARAGRAPH_BREAK = "\u2029"


class CharacterTable(NamedTuple):
    """Cached properties of all Unicode characters; the kind is 0 until the properties are computed."""

    points: npt.NDArray[np.uint32]
    folded: npt.NDArray[np.uint32]
    kinds: npt.NDArray[np.uint8]


@cache
def _character_table() -> CharacterTable:
    return CharacterTable(
        np.arange(N_POINTS, dtype=np.uint32),
        np.arange(N_POINTS, dtype=np.uint32),
        np.zeros(N_POINTS, dtype=np.uint8),
    )


def encode_characters(text: str) -> Characters:
    """Encode a text as arrays of code points, folded characters and kinds."""
    table = _character_table()
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    kinds = table.kinds[points]
    if not kinds.all():
        for point in np.unique(points[kinds == 0]).tolist():
            letter = chr(point)
            table.folded[point] = ord(_fold(letter))
            table.points[point] = ord(" ") if letter.isspace() else point
            table.kinds[point] = KIND_NUMBERS[_kind(letter)]
        kinds = table.kinds[points]
    text_kinds = kinds
    if "\n" in text or "\r" in text:
        text_kinds = _mark_paragraphs(points, kinds)
    return Characters(table.points[points], table.folded[points], text_kinds, find_holds(text, points, kinds))


def find_holds(
    text: str, points: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8]
) -> npt.NDArray[np.bool_]:
    """Return a mask of the characters inside grapheme clusters and web addresses, after which no token ends.

    A grapheme cluster is a character with its combining marks, variation selectors and skin tone, characters
    joined by a zero-width joiner, or a pair of regional indicators (a flag).
    """
    holds = np.zeros(len(points), dtype=np.bool_)
    is_extending = kinds == KIND_NUMBERS["mark"]
    if points.max(initial=0) >= ZERO_WIDTH_JOINER:
        is_joining = points == ZERO_WIDTH_JOINER
        is_extending |= is_joining
        is_indicator = (points >= REGIONAL_INDICATORS[0]) & (points <= REGIONAL_INDICATORS[1])
        if is_indicator.any():
            places = np.arange(len(points))
            last_other = np.maximum.accumulate(np.where(is_indicator, -1, places))
            is_extending |= is_indicator & ((places - last_other) % 2 == 0)
        holds |= is_joining
    holds[:-1] |= is_extending[1:]
    if "://" in text or "www." in text:
        for match in ADDRESS.finditer(text):
            holds[match.start() : match.end() - 1] = True
    return holds


def _mark_paragraphs(points: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Set the kind of a line break to `PARAGRAPH` if there is no text since the previous line break."""
    breaks = np.flatnonzero(kinds == LINE)
    breaks = breaks[~((points[breaks] == ord("\n")) & (points[breaks - 1] == ord("\r")) & (breaks > 0))]
    n_words = np.cumsum(kinds > PARAGRAPH)
    is_second = n_words[breaks[1:]] == n_words[breaks[:-1]]
    kinds[breaks[1:][is_second]] = PARAGRAPH
    return kinds


def _fold(letter: str) -> str:
    """Return the lower-case letter, 0 for a digit, or a space for white space."""
    if letter.isspace():
        return " "
    return "0" if letter.isdigit() else letter.lower()[0]


def _kind(letter: str) -> str:
    if letter.isspace():
        return "paragraph" if letter == PARAGRAPH_BREAK else "line" if letter in LINE_BREAKS else "space"
    if letter in OWN_KINDS:
        return letter
    category = unicodedata.category(letter)
    if category[0] == "M" or letter in EXTENDERS:
        return "mark"
    if category[0] in "LN":
        for low, high, name in SCRIPTS:
            if low <= ord(letter) <= high:
                return name
    return CATEGORIES.get(category) or WIDE_CATEGORIES.get(category[0], "other")


class BoundaryWeightsField:
    """A field of a model that holds boundary weights."""

    def put(self, state: State, name: str, value: BoundaryWeights) -> None:
        """Add the keys and weights to a saved state."""
        is_used = value.keys > 0
        order = np.argsort(value.keys[is_used])
        state.arrays[f"{name}.keys"] = value.keys[is_used][order]
        PackedWeights().put(state, name, value.values[is_used][order])

    def take(self, state: State, name: str) -> BoundaryWeights:
        """Remove the weights from a saved state and return them."""
        keys = Array("u", low=1, is_increasing=True).take(state, f"{name}.keys")
        values = PackedWeights().take(state, name)
        expect(len(keys) == len(values), "a weight for each key")
        return make_weights(keys.astype(np.uint32), values)


class BoundaryClassifier(Model):
    """Linear classifier that decides whether there is a boundary after each character or token.

    Parameters
    ----------
    templates : str
        Feature templates, one per line.
    unit : {"c", "t"}
        Unit of the templates: characters or tokens.

    Attributes
    ----------
    weights_ : BoundaryWeights
        Weights of the features.
    """

    fields = saved(weights_=BoundaryWeightsField())

    def __init__(self, templates: str, unit: str) -> None:
        self.templates = templates
        self.unit = unit
        self.rules = compile_templates(CHARACTERS if unit == "c" else TOKENS, templates)

    def learn(
        self,
        keys: Keys,
        gold: Booleans,
        *,
        epochs: int,
        random_state: int,
        min_count: int,
        rate: float,
        penalty: float,
        smallest: float,
        what: str,
        after_epoch: Callable[[int, float], None] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """Train on the feature keys of units (one row each) and their gold boundaries."""
        distinct, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
        number = np.where(counts >= min_count, np.cumsum(counts >= min_count) - 1, -1).astype(np.int32)
        rows = number[inverse.reshape(keys.shape)]
        kept = distinct[counts >= min_count]
        learnt = _begin(len(kept))
        saved = checkpoint.load(what) if checkpoint else None
        n_done = saved.values["epochs"] if saved else 0
        if saved:
            learnt = Learnt(**saved.arrays)
        rng = np.random.default_rng(random_state)
        with task(what, total=(epochs - n_done) * len(gold), unit="places") as counted:
            for epoch in range(epochs):
                order = rng.permutation(len(gold))
                if epoch < n_done:
                    continue  # draw the random numbers of skipped epochs, so that later ones are the same
                loss = 0.0
                for part in counted.slices(len(gold), LEARNT_AT_A_TIME):
                    loss += learn(rows, gold, order[part], rate, penalty, learnt)
                if checkpoint:
                    checkpoint.save(what, State("Epochs", {"epochs": epoch + 1}, learnt._asdict()))
                if after_epoch:
                    after_epoch(epoch, loss / max(1, len(gold)))
        weights = average(learnt.weights, learnt.totals, int(learnt.steps[0]))
        is_kept = np.abs(weights) >= smallest
        values = unpack(pack(weights[is_kept]))  # rounded as after saving and loading
        self.weights_ = make_weights(kept[is_kept].astype(np.uint32), values)
        return self

    @property
    def model(self) -> tuple[Rules, BoundaryWeights, float]:
        """The templates, weights and threshold; a score above the threshold predicts a boundary."""
        return self.rules, self.weights_, 0.0


def _begin(n_features: int) -> Learnt:
    zeros = np.zeros(n_features, dtype=np.float32)
    return Learnt(zeros, np.ones(n_features), np.zeros(n_features), np.zeros(1, dtype=np.int64))


def make_weights(keys: npt.NDArray[np.uint32], values: npt.NDArray[np.float32]) -> BoundaryWeights:
    """Build a hash table from distinct keys and their weights."""
    table, slots = index_table(keys)
    placed = np.zeros(len(table), dtype=np.float32)
    placed[slots] = values
    return BoundaryWeights(table, placed)


def index_table(keys: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.uint32], Integers]:
    """Return a hash table of the keys, and the slot of each key."""
    table = np.zeros(1 << (2 * len(keys) + 1).bit_length(), dtype=np.uint32)
    slots = np.zeros(len(keys), dtype=np.int64)
    index_keys(keys, table, slots)
    return table, slots


def compile_templates(language: TemplateLanguage, text: str) -> Rules:
    """Compile template lines into arrays."""
    names: Sequence[str] = tuple(language.attributes)
    lines = [
        [(names.index(atom.attribute), atom.offset) for atom in template.atoms]
        for template in language.parse(text)
    ]
    parts = np.zeros((len(lines), MAX_PARTS, 2), dtype=np.int32)
    for number, line in enumerate(lines):
        parts[number, : len(line)] = line
    return Rules(np.array([len(line) for line in lines], dtype=np.int32), parts)
