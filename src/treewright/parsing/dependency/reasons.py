"""The features of the arcs of a tree, with their weights in a linear model of parts."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from treewright.data.deptree import DepTree
from treewright.data.plain_words import (
    ANY,
    EDGE,
    UNKNOWN,
    Surroundings,
    ToldArc,
    as_sentence,
    say_with_neighbours,
)
from treewright.data.plain_words import (
    ROOT as THE_ROOT,
)
from treewright.learn.weights import table_shift
from treewright.native.dependency.features import (
    END,
    MAX_BETWEEN,
    MAX_MORPHS,
    NO_TOKEN,
    ROOT,
    PartTemplates,
)
from treewright.native.hashing import PRIME
from treewright.parsing.dependency.features import ATTRIBUTES, LANGUAGES, Encoder, attributes_of
from treewright.parsing.dependency.lattice import PART_KINDS
from treewright.parsing.dependency.linear import LinearPartScorer

if TYPE_CHECKING:
    from treewright.parsing.dependency.parser import Candidate

FACTOR: int = int(PRIME)
MASK = (1 << 64) - 1
"""Mask that reduces keys to 64 bits, as in `treewright.native.dependency.features`."""
TAG, BETWEEN_TAG = ATTRIBUTES.index("pos"), ATTRIBUTES.index("tag")
BINS = ("0", "1", "2", "3", "4", "5-6", "7-10", "11-20", "21+")
SIDES = ("left", "right")


class WeighedFeature(NamedTuple):
    """A feature of a tree with its weight, as text and as an English sentence.

    Attributes
    ----------
    text : str
        The feature in the notation of templates.
    words : tuple of str
        The words (not the tags) in the feature.
    weight : float
        Weight of the feature; positive if it favours the tree.
    sentence : str
        The feature as an English sentence.
    arcs : tuple of int
        The words, numbered from 1, whose arcs have the feature.
    rank : int
        Rank, from 1, of the candidate that has the feature.

    See Also
    --------
    DependencyParser.arc_reasons : The features of each arc.
    Comparison : The features that decided between two trees.

    Examples
    --------
    >>> import treewright as tw
    >>> trees = tw.make_treebank(20, random_state=0).dependencies
    >>> parser = tw.DependencyParser(order=1, epochs=1).fit(trees)
    >>> features = parser.arc_reasons(parser.predict(trees[:1]), n=2)[0]
    >>> len(features) == len(trees[0]), len(features[0])
    (True, 2)
    """

    text: str
    words: tuple[str, ...]
    weight: float
    sentence: str = ""
    arcs: tuple[int, ...] = ()
    rank: int = 1


class Comparison(NamedTuple):
    """The candidates of a sentence, and the features that decided between the first two.

    Attributes
    ----------
    candidates : list of Candidate
        The candidates, the best first.
    parser_scores, scores : list of float
        Scores of the parser and of the reranker; `scores` is empty without a reranker.
    reasons : list of WeighedFeature
        Features that only one of the first two candidates has, with their contribution to the winner
        (negative if they count against it), the largest first.

    See Also
    --------
    DependencyParser.explain : Returns comparisons.
    DependencyReranker.explain : Returns comparisons of reranked trees.

    Examples
    --------
    >>> import treewright as tw
    >>> trees = tw.make_treebank(20, random_state=0).dependencies
    >>> parser = tw.DependencyParser(order=1, epochs=1).fit(trees)
    >>> comparison = parser.explain(trees[:1])[0]
    >>> difference = comparison.parser_scores[0] - comparison.parser_scores[1]
    >>> abs(sum(feature.weight for feature in comparison.reasons) - difference) < 0.01
    True
    """

    candidates: list["Candidate"]
    parser_scores: list[float]
    scores: list[float]
    reasons: list[WeighedFeature]


class PartOfTree(NamedTuple):
    """A part of a tree: its words by role (0: root, None: no word), directions and binned distance."""

    kind: str
    words: dict[str, int | None]
    situation: int
    distance: int

    @property
    def side(self) -> str:
        """The side of the head that the modifier is on."""
        return SIDES[self.situation % 2]

    @property
    def arcs(self) -> tuple[int, ...]:
        """The words whose arcs are in the part."""
        below = "hstm" if "g" in self.words else "stm"
        return tuple(sorted(word for role in below if (word := self.words.get(role))))


FeaturesOfTree = Callable[[DepTree], list[WeighedFeature]]
"""Function that returns features of a tree in addition to those of the linear model."""


def arc_reasons(
    tree: DepTree, scorer: LinearPartScorer, encoder: Encoder, n: int, others: FeaturesOfTree | None = None
) -> list[list[WeighedFeature]]:
    """Return up to `n` features that involve each arc of a tree, largest weight first.

    A feature and its variant that includes the distance are listed as one feature. A feature of several arcs
    is listed under each of them.
    """
    features = PartFeatures(tree, scorer, encoder)
    parts = parts_of(tree.heads.tolist(), scorer.order)
    found = [feature for part in parts if part.arcs for feature in features.of(part)]
    arcs: list[list[WeighedFeature]] = [[] for _ in tree.words]
    for feature in found + (others(tree) if others else []):
        for word in feature.arcs:
            arcs[word - 1].append(feature)
    return [sorted(found, key=lambda one: (-abs(one.weight), one.text))[:n] for found in arcs]


def differences(
    best: DepTree,
    second: DepTree,
    scorer: LinearPartScorer,
    encoder: Encoder,
    others: FeaturesOfTree | None = None,
) -> list[WeighedFeature]:
    """Return the features that only one of two trees of a sentence has, largest weight first.

    The weights of the features of the second tree are negated, so that all weights add up to the difference
    between the scores.
    """
    features = PartFeatures(best, scorer, encoder)
    parts = [list(parts_of(tree.heads.tolist(), scorer.order)) for tree in (best, second)]
    own, other = ([one for part in each for one in features.of(part)] for each in parts)
    if others is not None:
        own, other = own + others(best), other + others(second)
    found = [one._replace(rank=1) for one in _without(own, other)]
    found += [one._replace(rank=2, weight=-one.weight) for one in _without(other, own)]
    return sorted(found, key=lambda one: (-abs(one.weight), one.text))


def add_scorer_share(
    reasons: Sequence[WeighedFeature], best: DepTree, second: DepTree, difference: float, name: str
) -> list[WeighedFeature]:
    """Add the contribution of a custom scorer, so that the weights add up to the difference of two scores."""
    rest = difference - sum(one.weight for one in reasons)
    pairs = zip(best.heads.tolist(), second.heads.tolist(), strict=True)
    arcs = tuple(word for word, (one, other) in enumerate(pairs, start=1) if one != other)
    rank = 1 if rest > 0 else 2
    share = WeighedFeature(f"score of the {name}", (), rest, f"The {name} prefers this tree.", arcs, rank)
    return sorted([*reasons, share], key=lambda one: (-abs(one.weight), one.text))


def _without(features: Iterable[WeighedFeature], others: Iterable[WeighedFeature]) -> list[WeighedFeature]:
    """Return the multiset difference of features, compared by text and weight."""
    left = Counter((one.text, one.weight) for one in others)
    kept = []
    for one in features:
        left[one.text, one.weight] -= 1
        if left[one.text, one.weight] < 0:
            kept.append(one)
    return kept


def parts_of(heads: Sequence[int], order: int) -> Iterator[PartOfTree]:
    """Yield the parts of a tree that a scorer of this order scores."""
    above = [-1, *heads]
    children: list[list[int]] = [[] for _ in above]
    for word in range(1, len(above)):
        children[above[word]].append(word)
        head = above[word]
        yield PartOfTree("arc", {"h": head, "m": word}, int(head < word), _bin(head - word))
        if order > 1 and head > 0:
            top = above[head]
            situation = 2 * (top < head) + (head < word)
            yield PartOfTree("grandchild", {"g": top, "h": head, "m": word}, situation, _bin(top - word))
    if order > 1:
        for head, below in enumerate(children):
            yield from _siblings(
                head, above[head], [word for word in reversed(below) if word < head], 0, order
            )
            yield from _siblings(head, above[head], [word for word in below if word > head], 1, order)


def _siblings(head: int, top: int, line: list[int], side: int, order: int) -> Iterator[PartOfTree]:
    """Yield the parts formed by the dependents on one side of a head; `line` starts with the nearest."""
    for sibling, word in zip([None, *line], [*line, None], strict=True):
        distance = 0 if word is None else _bin((head if sibling is None else sibling) - word)
        words = {"h": head, "s": sibling, "m": word}
        yield PartOfTree("pair", words, side, distance)
        if order > 2 and head > 0:
            yield PartOfTree("grand_sibling", {"g": top, **words}, 2 * (top < head) + side, distance)
    if order > 2:
        for outer, sibling, word in zip(line, line[1:], line[2:], strict=False):
            yield PartOfTree(
                "triple", {"h": head, "t": outer, "s": sibling, "m": word}, side, _bin(sibling - word)
            )


def _bin(distance: int) -> int:
    """Return one of nine distance bins, like `treewright.native.dependency.features.distance_bin`."""
    size = abs(distance)
    bounds = (4, 6, 10, 20)
    return (
        size if size <= bounds[0] else next((5 + at for at, most in enumerate(bounds[1:]) if size <= most), 8)
    )


class PartFeatures:
    """The features of the parts of one sentence, as text and with their weights."""

    def __init__(self, tree: DepTree, scorer: LinearPartScorer, encoder: Encoder) -> None:
        corpus = encoder.encode([tree])
        self._values = corpus.values.tolist()
        bounds, morphs = corpus.first_morph.tolist(), corpus.morphs.tolist()
        self._morphs = [morphs[begin:end] for begin, end in pairwise(bounds)]
        self._encoder = encoder
        self._strings = attributes_of(tree)
        self._weights, self._shift = scorer.weights_, int(table_shift(scorer.weights_))
        compiled = scorer.compiled().model
        self._templates: Mapping[str, PartTemplates] = {kind: getattr(compiled, kind) for kind in PART_KINDS}
        self._lines = {kind: LANGUAGES[kind].parse(getattr(scorer.templates, kind)) for kind in PART_KINDS}

    def of(self, part: PartOfTree) -> Iterator[WeighedFeature]:
        """Yield the features of a part, except features with weight 0."""
        rows = {role: self._row(role, word) for role, word in part.words.items()}
        yield from self._by_templates(part, rows)
        if part.kind == "arc":
            yield from self._between(part, rows)
            yield from self._morphology(part, rows)

    @staticmethod
    def _row(role: str, word: int | None) -> int:
        if word is None:
            return NO_TOKEN if role == "s" else END
        return ROOT + word

    def _weight(self, key: int) -> float:
        return float(self._weights[(key & MASK) >> self._shift])

    def _by_templates(self, part: PartOfTree, rows: Mapping[str, int]) -> Iterator[WeighedFeature]:
        templates = self._templates[part.kind]
        seeds, factors, bounds = (
            templates.seed.tolist(),
            templates.factor.tolist(),
            templates.first_atom.tolist(),
        )
        for number, line in enumerate(self._lines[part.kind]):
            # In the key, atoms of one word are adjacent, in this order.
            atoms = sorted(line.atoms, key=lambda atom: atom.role)
            key = seeds[number]
            for atom, factor in zip(atoms, factors[bounds[number] : bounds[number + 1]], strict=True):
                value = self._values[rows[atom.role] + atom.offset][ATTRIBUTES.index(atom.attribute)]
                key += value * factor
            weight = self._weight(key + part.situation * FACTOR)
            if line.with_distance:
                weight += self._weight(key + (part.situation + 16 * (part.distance + 1)) * FACTOR)
            if weight:
                told: dict[str, dict[int, dict[str, str]]] = {}
                for atom in line.atoms:
                    known = told.setdefault(atom.role, {}).setdefault(atom.offset, {})
                    known.update(self._tell(rows[atom.role] + atom.offset, atom.attribute))
                yield self._feature(
                    part, told, weight, length=BINS[part.distance] if line.with_distance else ""
                )

    def _between(self, part: PartOfTree, rows: Mapping[str, int]) -> Iterator[WeighedFeature]:
        """Yield a feature for each tag between head and modifier."""
        numbers = self._templates["arc"].between.tolist()
        low, high = min(rows.values()) + 1, max(rows.values())
        tags: dict[int, int] = {}
        for row in range(low, min(high, low + MAX_BETWEEN)):
            tags.setdefault(self._values[row][BETWEEN_TAG], row)
        base = self._with_tags(numbers, part, rows, BETWEEN_TAG)
        for tag, row in tags.items():
            if weight := self._weight(base + tag * numbers[3]):
                told = {role: {0: self._tell(at, "tag")} for role, at in rows.items()}
                between = say_with_neighbours({0: self._tell(row, "tag")})
                yield self._feature(part, told, weight, after=f", with {between} between them")

    def _morphology(self, part: PartOfTree, rows: Mapping[str, int]) -> Iterator[WeighedFeature]:
        """Yield each morphological feature of a word, alone and with each feature of the other word."""
        numbers = self._templates["arc"].morphs.tolist()
        base = self._with_tags(numbers, part, rows, TAG)
        above, below = ([0, *self._morphs[rows[role]][:MAX_MORPHS]] for role in ("h", "m"))
        names = self._encoder.vocabularies[-1]
        for high in above:
            for low in below:
                if (high or low) and (weight := self._weight(base + high * numbers[3] + low * numbers[4])):
                    told = {role: {0: self._tell(at, "pos")} for role, at in rows.items()}
                    for role, number in (("h", high), ("m", low)):
                        if number:
                            told[role][0]["morph"] = names[number]
                    yield self._feature(part, told, weight)

    def _with_tags(
        self, numbers: Sequence[int], part: PartOfTree, rows: Mapping[str, int], attribute: int
    ) -> int:
        head, modifier = (self._values[rows[role]][attribute] for role in ("h", "m"))
        key: int = numbers[0] + part.situation * FACTOR + head * numbers[1] + modifier * numbers[2]
        return key

    def _tell(self, row: int, attribute: str) -> dict[str, str]:
        """Return an attribute of the word in a row, or the meaning of a row that is not a word."""
        if row == ROOT:
            return {"special": THE_ROOT}
        if not ROOT < row <= ROOT + len(self._strings):
            return {"special": EDGE}
        at = ATTRIBUTES.index(attribute)
        if not self._values[row][at]:
            return {"special": UNKNOWN} if attribute == "word" else {}
        text = self._strings[row - ROOT - 1][at]
        return {} if text == "_" else {attribute: text}

    def _feature(
        self,
        part: PartOfTree,
        told: Mapping[str, Surroundings],
        weight: float,
        *,
        length: str = "",
        after: str = "",
    ) -> WeighedFeature:
        text = " ".join(
            f"{role}{f'{offset:+}' if offset else ''}.{name}={value}"
            for role, around in told.items()
            for offset, known in around.items()
            for name, value in known.items()
        )
        words = tuple(
            dict.fromkeys(
                known["word"] for around in told.values() for known in around.values() if "word" in known
            )
        )
        sentence = as_sentence(_say_part(part, told, length) + after)
        return WeighedFeature(
            f"{part.kind}: {text}" if text else part.kind, words, weight, sentence, part.arcs
        )


def _say_part(part: PartOfTree, told: Mapping[str, Surroundings], length: str) -> str:
    """Describe a part in English; dependents on one side are listed from the nearest outwards."""
    if part.words["h"] == 0:
        told = {**told, "h": {**told.get("h", {}), 0: {"special": THE_ROOT}}}
    where = SIDES[1 - part.situation % 2]
    if part.kind in ("arc", "grandchild"):
        length = length if part.kind == "arc" else ""
        arc = ToldArc(told.get("h", {}), told.get("m", {}), where, length).say()
        return f"{arc}, below {_say(told, 'g')}" if part.kind == "grandchild" else arc
    line = f"the dependents of {_say(told, 'h')} on its {part.side}"
    if part.words["m"] is None:
        last = f"{_say(told, 's')} is the last of {line}"
        said = last if part.words["s"] else f"{_say(told, 'h')} has no dependents on its {part.side}"
    elif part.words["s"] is None:
        said = f"{_say(told, 'm')} is the first of {line}"
    else:
        before = " and ".join(_say(told, role) for role in "ts" if role in part.words)
        said = f"{_say(told, 'm')} comes after {before} among {line}"
    return f"{said}, below {_say(told, 'g')}" if "g" in part.words else said


def _say(told: Mapping[str, Surroundings], role: str) -> str:
    return say_with_neighbours(told[role]) if role in told else ANY
