"""Mined features of the parts of trees, in addition to a linear model (Qian & Liu 2015, applied to forests).

Only parts over arcs that are probable under the linear model are scored. The weights of mined features are
those of a log-linear model of whole trees, trained with scores from linear models that were not trained on
the same sentences.
"""

from collections.abc import Mapping
from copy import copy
from functools import cached_property
from typing import Annotated, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from treewright._typing import Fraction, IntArray, Keys, Range
from treewright.data.arcs import ArcEncoder
from treewright.data.deptree import DepTree
from treewright.data.plain_words import say_subtree
from treewright.data.vocab import Vocabulary
from treewright.mining.forest import ForestFeatures, PartMatcher
from treewright.model import Array, Submodel, Value, expect, is_within, saved
from treewright.native.dependency.forests import N_KINDS, split_scores
from treewright.native.mining.part_features import RoleParts
from treewright.parsing.contract import Batch, Parts, PartScorer, PartScores
from treewright.parsing.dependency.constraints import has_tree
from treewright.parsing.dependency.forests import (
    FIRST_MODIFIER,
    LAST_MODIFIER,
    N_SPECIAL,
    BasicFeatures,
    FoundParts,
    probable_arcs,
)
from treewright.parsing.dependency.lattice import PART_KINDS, Lattice
from treewright.parsing.dependency.linear import LinearPartScorer
from treewright.parsing.dependency.reasons import WeighedFeature

SMALLEST_SCALE, LARGEST_SCALE = 1e-9, 1e6
N_CODES = 4 * N_KINDS
DEPTHS = ((0,), (0, 0), (0, 1), (0, 1, 1), (0, 0, 0))
"""Depths of the arcs of each kind of part."""
WITH_TOP = (2, 3)
"""Kinds of parts that include the arc to the head."""
SIDES = ("left", "right")
END_SENTENCES = {
    (FIRST_MODIFIER,): "It is the first dependent of its head on the {side}.",
    (LAST_MODIFIER,): "It is the last dependent of its head on the {side}.",
    (FIRST_MODIFIER, LAST_MODIFIER): "The word has no dependents on its {side}.",
}
"""Descriptions of basic features for missing arcs."""


class MinedFeature(NamedTuple):
    """A mined feature and its weight.

    Attributes
    ----------
    text : str
        The feature as text.
    weight : float
        Weight in units of the linear model's scores; positive if it favours a tree.
    n_arcs : int
        Number of arcs in the feature.
    """

    text: str
    weight: float
    n_arcs: int


class MinedScorer(PartScorer):
    """Adds the weights of mined features to the scores of a linear model.

    Parameters
    ----------
    linear : LinearPartScorer
        The linear model.
    scale : float
        Factor that turns scores of the linear model into log potentials.
    threshold : float
        Minimum probability of a head under the linear model, relative to the best head.
    encoder : ArcEncoder
        Encoder of basic arc features.
    keys : ndarray of uint64
        Keys of basic features, in ascending order.
    codes : ndarray of uint8, (n_features,)
        Kind and directions of the parts that have each feature.
    basic : ndarray of int32, (n_features, 3)
        Basic features of each feature, by role; -1 means none.
    coef : ndarray of float32, (n_features,)
        Weights in units of log potentials.
    """

    fields = saved(
        linear=Submodel(LinearPartScorer),
        scale=Value(Annotated[float, Range(0, LARGEST_SCALE)]),
        threshold=Value(Fraction),
        encoder=Value(
            encode=lambda found: [found.words.strings, found.tags.strings, found.column],
            decode=lambda values: ArcEncoder(Vocabulary(values[0]), Vocabulary(values[1]), column=values[2]),
        ),
        keys=Array("u", is_increasing=True),
        codes=Array("u", high=N_CODES - 1),
        basic=Array("i", 2, low=-1),
        coef=Array("f"),
    )

    def __init__(
        self,
        linear: LinearPartScorer,
        *,
        scale: float,
        threshold: Fraction,
        encoder: ArcEncoder,
        keys: Keys,
        codes: npt.NDArray[np.uint8],
        basic: IntArray,
        coef: npt.NDArray[np.float32],
    ) -> None:
        self.linear = linear
        self.scale = scale
        self.threshold = threshold
        self.encoder = encoder
        self.keys = keys
        self.codes = codes
        self.basic = basic
        self.coef = coef
        self.order = 3

    def check_fitted_state(self) -> None:
        """Check that features consist of known basic features, one for each arc."""
        expect(self.scale > SMALLEST_SCALE, "a scale above 0")
        expect(self.encoder.column in ("xpos", "upos"), "a column of tags")
        expect(self.basic.shape == (len(self.codes), 3), "three columns of basic features")
        expect(len(self.coef) == len(self.codes), "a weight for each feature")
        expect(self.encoder.knows(self.keys), "keys of known basic features")
        expect(is_within(self.basic + 1, N_SPECIAL + len(self.keys) + 1), "numbers of basic features")
        n_arcs = np.array([len(depths) for depths in DEPTHS])[self.codes // 4]
        expect(
            ((self.basic >= 0) == (np.arange(3) < n_arcs[:, np.newaxis])).all(), "one basic feature per arc"
        )

    @cached_property
    def _matcher(self) -> PartMatcher:
        return PartMatcher(ForestFeatures(self.codes, self.basic), N_SPECIAL + len(self.keys))

    def prepare(self, batch: Batch) -> Self:
        """Return a scorer with the encoded sentences of a batch."""
        if vars(self).get("_batch") is batch:
            return self
        self._matcher  # noqa: B018 (made once, for all copies)
        found = copy(self)
        found._batch = batch
        found._numbers = {id(tree): number for number, tree in enumerate(batch.trees)}
        return found

    _batch: Batch
    _numbers: Mapping[int, int]

    def _score_linear(self, tree: DepTree, parts: Parts) -> PartScores:
        number = vars(self).get("_numbers", {}).get(id(tree))
        if number is None:
            return self.linear.score(tree, parts)
        return self.linear.score_encoded(self._batch.corpus, number, parts)

    def narrow(self, tree: DepTree, lattice: Lattice) -> Lattice:
        """Return the parts over the arcs that are probable under the linear model."""
        scored = lattice.with_scores(self._score_linear(tree, lattice))
        kept = probable_arcs(scored, self.scale, float(self.threshold))
        # If many heads are all improbable, none may be left.
        return (
            Lattice(kept, single_root=lattice.single_root)
            if has_tree(kept, single_root=lattice.single_root)
            else lattice
        )

    def score(self, tree: DepTree, parts: Parts) -> PartScores:
        """Return the scores of the parts of a sentence, by kind."""
        linear = self._score_linear(tree, parts)
        if not isinstance(parts, Lattice):
            return linear
        mined = self.score_mined(tree, parts)
        return {kind: scores + mined[kind] / self.scale for kind, scores in linear.items()}

    def score_mined(self, tree: DepTree, lattice: Lattice) -> PartScores:
        """Return the summed weights of the mined features of parts, by kind."""
        found = split_scores(lattice.arranged, self._matcher.weigh(self._parts(tree, lattice), self.coef))
        return found._asdict()  # type: ignore[no-any-return]

    def list_features(self) -> list[MinedFeature]:
        """Return all mined features, by descending absolute weight."""
        return [
            MinedFeature(
                self.name(number),
                float(self.coef[number]) / self.scale,
                int((self.basic[number] >= N_SPECIAL).sum()),
            )
            for number in np.argsort(-np.abs(self.coef), kind="stable").tolist()
        ]

    def features_of(self, tree: DepTree) -> list[WeighedFeature]:
        """Return the mined features of a projective tree, with their weights.

        Weights are in units of the linear model's scores.
        """
        keep = np.zeros((len(tree) + 1, len(tree) + 1), dtype=np.bool_)
        keep[tree.heads, np.arange(1, len(keep))] = True
        lattice = Lattice(keep, single_root=False)
        indptr, ids = self.match(tree, lattice)
        words = [row.tolist() for kind in lattice.kinds for row in lattice.words(kind)]
        is_in_tree = np.concatenate([lattice.contains(kind, tree.heads) for kind in lattice.kinds])
        found = []
        for part in np.flatnonzero(is_in_tree).tolist():
            arcs = tuple(sorted(word for word in words[part][1:] if word > 0))
            for number in ids[indptr[part] : indptr[part + 1]].tolist():
                weight = float(self.coef[number]) / self.scale
                names, said = self.name(number), self.say(number)
                found.append(WeighedFeature(names, self._words_of(number), weight, said, arcs))
        return found

    def name(self, number: int) -> str:
        """Return a feature as ``mined grandchild, right right: VBD → IN [IN → NN]``; ``+`` joins siblings."""
        kind = int(self.codes[number]) // 4
        names = [self._name_basic(basic) for basic in self.basic[number].tolist() if basic >= 0]
        depths = DEPTHS[kind]
        text = names[0]
        for name, above, depth in zip(names[1:], depths, depths[1:], strict=False):
            text += f" [{name}" if depth > above else f" + {name}"
        return f"mined {PART_KINDS[kind]}, {self._sides(number)}: {text}{']' * depths[-1]}"

    def _sides(self, number: int) -> str:
        """Return the sides of the modifiers relative to their heads, from the top downwards."""
        code = int(self.codes[number])
        sides = (SIDES[code // 2 % 2], SIDES[code % 2]) if code // 4 in WITH_TOP else (SIDES[code % 2],)
        return " ".join(sides)

    def _name_basic(self, basic: int) -> str:
        if basic < N_SPECIAL:
            return ("(none before)", "(none after)")[basic]
        return self.encoder.name(int(self.keys[basic - N_SPECIAL]))

    def say(self, number: int) -> str:
        """Return a feature as an English sentence."""
        kind = int(self.codes[number]) // 4
        basic = [each for each in self.basic[number].tolist() if each >= 0]
        arcs = [
            (depth, self.encoder.tell(int(self.keys[each - N_SPECIAL])))
            for depth, each in zip(DEPTHS[kind], basic, strict=True)
            if each >= N_SPECIAL
        ]
        ends = tuple(each for each in basic if each < N_SPECIAL)
        told = [say_subtree(arcs)] if arcs else []
        if ends:
            told.append(END_SENTENCES[ends].format(side=SIDES[int(self.codes[number]) % 2]))
        return " ".join(told)

    def _words_of(self, number: int) -> tuple[str, ...]:
        keys = [int(self.keys[each - N_SPECIAL]) for each in self.basic[number].tolist() if each >= N_SPECIAL]
        return tuple(dict.fromkeys(word for key in keys for word in self.encoder.words_of(key)))

    def match(self, tree: DepTree, lattice: Lattice) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Return the mined features of all parts of all kinds, as offsets of parts and feature numbers."""
        return self._matcher.match(self._parts(tree, lattice))

    def _parts(self, tree: DepTree, lattice: Lattice) -> RoleParts:
        found = FoundParts.from_indices(self.encoder, [tree], [lattice.arranged])
        return found.as_roles(BasicFeatures(self.encoder, self.keys))
