"""A linear model of the parts of trees, with template features hashed into one weight table.

The parts are those of Koo & Collins (2010): arcs (order 1), pairs and grandchildren (order 2), grand-siblings
and triples (order 3).
"""

from typing import Annotated, Literal, NamedTuple

from treewright._typing import Range
from treewright.data.deptree import DepTree
from treewright.learn.weights import FloatTable, PackedWeights, table_shift
from treewright.model import expect, saved
from treewright.native.dependency.parts import PartModel, score_parts
from treewright.native.dependency.pruning import Stage, take_sentence
from treewright.native.dependency.spanning import score_sentence
from treewright.parsing.contract import Parts, PartScorer, PartScores
from treewright.parsing.dependency.features import (
    TEMPLATES,
    Corpus,
    Encoder,
    TemplateSet,
    compile_templates,
    max_keys,
)
from treewright.parsing.dependency.lattice import PART_KINDS, Lattice

TableBits = Annotated[int, Range(10, 28)]


class CompiledScorer(NamedTuple):
    """A linear model for compiled loops."""

    model: PartModel
    weights: FloatTable
    max_keys: int

    def stage(self, *, single_root: bool) -> Stage:
        """Return the arc model as a pruning stage that keeps all arcs."""
        model = self.model
        return Stage(model.arc, True, self.weights, model.shift, 0.0, 0, self.max_keys, single_root)


class LinearPartScorer(PartScorer):
    """Scores parts by the sum of the weights of their features.

    Parameters
    ----------
    templates : TemplateSet
        Feature templates.
    order : {1, 2, 3}
        Highest order of the scored parts.
    table_bits : int
        The weight table has 2 ** `table_bits` slots.

    Attributes
    ----------
    weights_ : ndarray of float32, (2 ** table_bits,)
        Weights of the hashed features.
    encoder : Encoder or None
        The parser's encoder, which encodes sentences that are not encoded yet.
    """

    fields = saved(templates=TEMPLATES, weights_=PackedWeights(is_hashed=True))
    encoder: Encoder | None = None
    weights_: FloatTable

    def __init__(
        self, templates: TemplateSet, *, order: Literal[1, 2, 3] = 3, table_bits: TableBits = 23
    ) -> None:
        self.templates = templates
        self.order = order
        self.table_bits = table_bits

    def compiled(self) -> CompiledScorer:
        """Return the model for compiled loops over whole corpora."""
        templates = [compile_templates(getattr(self.templates, kind), kind) for kind in PART_KINDS]
        arc, pair, grandchild, grand_sibling, triple = templates
        shift = table_shift(self.weights_)
        model = PartModel(arc, pair, grandchild, grand_sibling, triple, self.order, shift)
        return CompiledScorer(model, self.weights_, max_keys(*templates))

    def score(self, tree: DepTree, parts: Parts) -> PartScores:
        """Return the scores of the parts of a sentence, by kind."""
        assert self.encoder is not None
        return self.score_encoded(self.encoder.encode([tree]), 0, parts)

    def score_encoded(self, corpus: Corpus, number: int, parts: Parts) -> PartScores:
        """Return the scores of the parts of an encoded sentence."""
        compiled = self.compiled()
        if isinstance(parts, Lattice):
            sentence = take_sentence(corpus, number)
            found = score_parts(parts.arranged, compiled.model, sentence, self.weights_)
            return found._asdict()  # type: ignore[no-any-return]
        heads, modifiers = parts.words("arc").T
        return {"arc": score_sentence(compiled.stage(single_root=True), corpus, number)[heads, modifiers]}

    def check_fitted_state(self) -> None:
        """Check the size of the weight table."""
        expect(len(self.weights_) == 1 << self.table_bits, "a table of 2 ** table_bits weights")
