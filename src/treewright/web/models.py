"""Parsers behind the service: sentences in, responses out, with given or predicted tags."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treewright.annotation.contract import Annotator
from treewright.data.consttree import LABEL, ConstTree, escape, unescape_word
from treewright.data.deptree import DepTree
from treewright.errors import InputError, quote
from treewright.parsing.constituent.annotator import ConstituentAnnotator
from treewright.parsing.dependency.annotator import DependencyAnnotator
from treewright.parsing.dependency.reasons import WeighedFeature
from treewright.tagging.tagger import Tagger
from treewright.tagging.tokenizer import Tokenizer
from treewright.web.answers import (
    constituent_candidate,
    constituent_sentence,
    dependency_candidate,
    dependency_sentence,
    explained_sentence,
    rounded,
    untagged_sentence,
)
from treewright.web.examples import choose_examples, has_letters
from treewright.web.schemas import (
    ConstituentCandidates,
    ConstituentSentence,
    DependencyCandidates,
    DependencySentence,
    ExplainedSentence,
    Kind,
    Layout,
    ModelDescription,
    UntaggedSentence,
)
from treewright.web.tags import MISSING, fill_tags
from treewright.web.texts import split_plainly

Sentences = Sequence[DepTree | ConstTree]
Fixed = Sequence[Mapping[int, int]] | None
"""The fixed heads of each sentence."""
TAGS_SHOWN = 200
MOST_FEATURES = 10_000
"""Maximum number of features of an arc; large enough to include all of them, so that totals are complete."""
EXPECTED_TAGS = "tags for all words, a model trained with --tags predicted, or a tagger (serve --tagger)"


class MissingTagsError(InputError):
    """Words lack tags that a model needs.

    Parameters
    ----------
    message : str
        The error.
    sentences : list of UntaggedSentence
        All sentences of the request, so that tags can be added.
    """

    def __init__(self, message: str, sentences: list[UntaggedSentence]) -> None:
        super().__init__(message)
        self.sentences = sentences


class Certainty(NamedTuple):
    """The marginal head probabilities of a sentence, and its fixed heads."""

    marginals: npt.NDArray[np.float64]
    fixed: Mapping[int, int] | None


class ServedModel(ABC):
    """A parser that is served under a name.

    Parameters
    ----------
    name : str
        The name.
    parser : Annotator
        A dependency or constituency parser, or a reranker.
    tagger : Tagger, optional
        Tags words if the parser needs tags and has no tagger.
    """

    kind: Kind

    def __init__(self, name: str, parser: Annotator, tagger: Tagger | None) -> None:
        self.name = name
        self.class_name = type(parser).__name__
        self.tokenizer: Tokenizer | None = parser.own_tokenizer
        self._own_tagger: Tagger | None = parser.own_tagger if parser.uses_own_tagger else None
        self._tagger = self._own_tagger or tagger
        self._wants_tags = self._own_tagger is not None or parser.needs_tags
        self._parser = parser.using(tags="gold", n_jobs=1)

    def describe(self) -> ModelDescription:
        """Return the description of the model."""
        values = {
            "name": self.name,
            "kind": self.kind,
            "class": self.class_name,
            "explains": self.kind == "dependency",
            "compares": self._parser.explains,
            "needs_tags": self.needs_tags,
            "tags_known": [tag for tag in self._known_tags() if tag not in ("", MISSING)][:TAGS_SHOWN],
            "examples": [] if self.needs_tags else self._choose_examples(),
        }
        return ModelDescription.model_validate(values)

    def _choose_examples(self) -> list[str]:
        split = self.tokenizer.split if self.tokenizer is not None else split_plainly
        return choose_examples(self._knows_words, split)

    @property
    def needs_tags(self) -> bool:
        """Whether sentences must have tags."""
        return self._wants_tags and self._tagger is None

    def _missing_tags(self, number: int, sentences: Sentences) -> MissingTagsError:
        """Return the error for a sentence that has words without tags."""
        trees = [_with_plain_words(each) if isinstance(each, ConstTree) else each for each in sentences]
        return MissingTagsError(
            f"sentence {number} has words without tags, which model {self.name} needs; "
            f"expected {EXPECTED_TAGS}",
            [untagged_sentence(tree, self.kind) for tree in trees],
        )

    def _knows_words(self, words: Sequence[str]) -> Sequence[bool] | None:
        """Return whether the parser, or else its tagger, knows each word; None if this is not recorded."""
        known = self._parser.knows_words(words)
        return self._tagger.has_classes(words) if known is None and self._tagger is not None else known

    @abstractmethod
    def _known_tags(self) -> Sequence[str]:
        """Return the tags of the model's training set."""

    @abstractmethod
    def warm_up(self) -> None:
        """Parse a sentence, so that compilation does not delay the first request."""

    @abstractmethod
    def parse(
        self, sentences: Sentences, fixed: Fixed, *, pictures: Layout | None
    ) -> list[DependencySentence] | list[ConstituentSentence]:
        """Return the best tree of each sentence."""

    @abstractmethod
    def kbest(
        self, sentences: Sentences, fixed: Fixed, *, k: int, pictures: Layout | None
    ) -> list[DependencyCandidates] | list[ConstituentCandidates]:
        """Return the `k`-best trees of each sentence."""

    @abstractmethod
    def explain(
        self, sentences: Sentences, fixed: Fixed, *, pictures: Layout | None
    ) -> list[ExplainedSentence]:
        """Return the best tree of each sentence with an explanation."""


class ServedDependencies(ServedModel):
    """A dependency parser or reranker."""

    kind = "dependency"
    _parser: DependencyAnnotator

    def _known_tags(self) -> Sequence[str]:
        return self._parser.known_tags if self._tagger is None else self._tagger.known_tags

    def warm_up(self) -> None:
        """Parse a sentence, so that compilation does not delay the first request."""
        words = DepTree(["a", "b", "."], upos=["X"] * 3, xpos=["X"] * 3)
        self.kbest([words], None, k=2, pictures="horizontal")
        self.explain([words], None, pictures=None)

    def parse(
        self, sentences: Sentences, fixed: Fixed, *, pictures: Layout | None
    ) -> list[DependencySentence]:
        """Return the best tree of each sentence."""
        trees = self._prepare(sentences)
        found = [best.tree for (best,) in self._parser.annotate(trees, fixed=fixed)]
        return [
            dependency_sentence(
                tree, self._confidence(tree, known), pictures=pictures, unknown=self._unknown(tree)
            )
            for tree, known in zip(found, self._certainty(trees, fixed), strict=True)
        ]

    def kbest(
        self, sentences: Sentences, fixed: Fixed, *, k: int, pictures: Layout | None
    ) -> list[DependencyCandidates]:
        """Return the `k`-best trees of each sentence."""
        trees = self._prepare(sentences)
        lists = self._parser.kbest(trees, k, fixed=fixed)
        return [
            DependencyCandidates(
                candidates=[
                    dependency_candidate(
                        candidates[0].tree,
                        tree,
                        self._confidence(tree, known),
                        score=score,
                        probability=probability,
                        pictures=pictures,
                        unknown=self._unknown(tree),
                    )
                    for tree, score, probability in candidates
                ]
            )
            for candidates, known in zip(lists, self._certainty(trees, fixed), strict=True)
        ]

    def explain(
        self, sentences: Sentences, fixed: Fixed, *, pictures: Layout | None
    ) -> list[ExplainedSentence]:
        """Return the best tree of each sentence with an explanation."""
        trees = self._prepare(sentences)
        if self._parser.explains:
            compared = self._parser.explain(trees, fixed=fixed)
            found = [each.candidates[0].tree for each in compared]
            reasons = [each.reasons for each in compared]
        else:
            found = [best.tree for (best,) in self._parser.annotate(trees, fixed=fixed)]
            reasons = [[] for _ in found]
        parts = zip(found, self._certainty(trees, fixed), self._features(found), reasons, strict=True)
        return [
            explained_sentence(
                dependency_sentence(
                    tree, self._confidence(tree, known), pictures=pictures, unknown=self._unknown(tree)
                ),
                known.marginals,
                features,
                own,
            )
            for tree, known, features, own in parts
        ]

    def _prepare(self, sentences: Sentences) -> list[DepTree]:
        """Return sentences with all columns that the parser uses."""
        trees = [_with_plain_words(each) if isinstance(each, ConstTree) else each for each in sentences]
        if self._tagger is not None:
            return fill_tags(trees, self._tagger)
        for number, tree in enumerate(trees, start=1):
            tags = zip(tree.upos, tree.xpos, strict=True)
            if self._wants_tags and (MISSING, MISSING) in tags:
                raise self._missing_tags(number, trees)
        return trees

    def _certainty(self, trees: list[DepTree], fixed: Fixed) -> list[Certainty]:
        squares = self._parser.marginals(trees, fixed=fixed)
        if fixed is None:
            return [Certainty(square, None) for square in squares]
        return [Certainty(*pair) for pair in zip(squares, fixed, strict=True)]

    def _confidence(self, tree: DepTree, known: Certainty) -> list[float]:
        """Return, for each word of a tree, the probability of its head."""
        found = self._parser.confidence(tree, known.marginals, fixed=known.fixed)
        return [rounded(one) for one in found.tolist()]

    def _unknown(self, tree: DepTree) -> list[int] | None:
        """Return the words, from 1, that are not in the training set, except numbers and punctuation."""
        known = self._parser.knows_words(tree.words)
        if known is None:
            return None
        pairs = enumerate(zip(tree.words, known, strict=True), start=1)
        return [number for number, (word, is_known) in pairs if not is_known and has_letters(word)]

    def _features(self, found: list[DepTree]) -> list[list[list[WeighedFeature]]]:
        """Return, for each word of each tree, the features of its arc; empty if the model has no features."""
        if not self._parser.has_arc_reasons:
            return [[[] for _ in tree.words] for tree in found]
        return self._parser.arc_reasons(found, n=MOST_FEATURES)


class ServedConstituents(ServedModel):
    """A constituency parser or reranker."""

    kind = "constituent"
    _parser: ConstituentAnnotator

    def _known_tags(self) -> Sequence[str]:
        if self._tagger is not None:
            return sorted({label.xpos for label in self._tagger.labels_})
        return self._parser.known_tags

    def warm_up(self) -> None:
        """Parse a sentence, so that compilation does not delay the first request."""
        self.kbest([DepTree(["a", "b", "."], xpos=["X"] * 3)], None, k=2, pictures="horizontal")

    def parse(
        self, sentences: Sentences, fixed: Fixed, *, pictures: Layout | None
    ) -> list[ConstituentSentence]:
        """Return the best tree of each sentence."""
        self._refuse(fixed)
        found = self._parser.annotate(self._prepare(sentences))
        return [constituent_sentence(best.tree, pictures=pictures) for best, *_ in found]

    def kbest(
        self, sentences: Sentences, fixed: Fixed, *, k: int, pictures: Layout | None
    ) -> list[ConstituentCandidates]:
        """Return the `k`-best trees of each sentence."""
        self._refuse(fixed)
        # With k = 1, the predicted tree is annotated, which need not be the first of the k-best trees.
        lists = self._parser.annotate(self._prepare(sentences), k=max(k, 2))
        return [
            ConstituentCandidates(
                candidates=[
                    constituent_candidate(
                        analyses[0].tree, tree, score=score or 0.0, probability=share, pictures=pictures
                    )
                    for tree, score, share in analyses[:k]
                ]
            )
            for analyses in lists
        ]

    def explain(
        self, sentences: Sentences, fixed: Fixed, *, pictures: Layout | None
    ) -> list[ExplainedSentence]:
        """Raise `InputError`, since constituency models cannot be explained."""
        raise InputError(
            f"model {self.name} is a constituency model; expected a dependency model for explanations"
        )

    def _refuse(self, fixed: Fixed) -> None:
        if fixed is not None:
            found = f"model {self.name} is a constituency model"
            raise InputError(f"{found}; expected a dependency model for fixed arcs")

    def _prepare(self, sentences: Sentences) -> list[Any]:
        """Return sentences with all columns that the parser uses, and words escaped as in treebanks."""
        return [
            each if isinstance(each, ConstTree) else self._tagged(each, number, sentences)
            for number, each in enumerate(sentences, start=1)
        ]

    def _tagged(self, tree: DepTree, number: int, sentences: Sentences) -> list[tuple[str, str]]:
        words, tags = [escape(word) for word in tree.words], [escape(tag) for tag in tree.xpos]
        for text in (*words, *tags):
            if not LABEL.fullmatch(text):
                found = f"sentence {number} has {quote(text)}"
                raise InputError(f"{found}; expected words and tags without whitespace")
        if MISSING in tags and self._tagger is not None:
            # The model's own tagger was trained on escaped words, another tagger on unescaped ones.
            (others,) = self._tagger.tag([tree.words if self._own_tagger is None else words])
            tags = [other if tag == MISSING else tag for tag, other in zip(tags, others.xpos, strict=True)]
        if MISSING in tags:
            raise self._missing_tags(number, sentences)
        return list(zip(words, tags, strict=True))


SERVED: dict[str, type[ServedModel]] = {
    "dependencies": ServedDependencies,
    "constituents": ServedConstituents,
}
"""Classes of served models, by the kind of trees that they find."""


def serve_model(name: str, parser: Annotator, tagger: Tagger | None = None) -> ServedModel:
    """Wrap a parser for the service.

    Raises
    ------
    InputError
        If the model is not a parser.
    """
    return SERVED[check_served(name, parser).finds](name, parser, tagger)


def check_served(name: str, model: Any) -> Annotator:  # noqa: ANN401
    """Return `model`; raise `InputError` if it is not a parser."""
    if getattr(model, "finds", None) not in SERVED:
        raise InputError(f"{name} is a {type(model).__name__}; expected a parser or a reranker")
    found: Annotator = model
    return found


def _with_plain_words(tree: ConstTree) -> DepTree:
    return DepTree([unescape_word(word) for word in tree.words()], xpos=tree.tags())
