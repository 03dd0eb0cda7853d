"""Parsers as the service uses them: sentences in, answers out, with tags as they are given or found."""

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
"""For each sentence the heads that words must have."""
TAGS_SHOWN = 200
MOST_FEATURES = 10_000
"""Of an arc: all, so that totals are those of all."""
EXPECTED_TAGS = "tags for all words, a model trained with --tags predicted, or serve --tagger"


class MissingTagsError(InputError):
    """Words lack the tags that a model needs.

    Parameters
    ----------
    message : str
    sentences : list of UntaggedSentence
        All that were asked about, for tags to be added.
    """

    def __init__(self, message: str, sentences: list[UntaggedSentence]) -> None:
        super().__init__(message)
        self.sentences = sentences


class Certainty(NamedTuple):
    """What is known of the heads of a sentence: their probabilities, and those that are fixed."""

    marginals: npt.NDArray[np.float64]
    fixed: Mapping[int, int] | None


class ServedModel(ABC):
    """A parser under a name.

    Parameters
    ----------
    name : str
    parser : Annotator
        A parser of dependencies or constituents, or a reranker.
    tagger : Tagger, optional
        For words without tags, if the parser has no tagger of its own.
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
        """Say what the model is."""
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
        """Whether sentences must bring tags."""
        return self._wants_tags and self._tagger is None

    def _missing_tags(self, number: int, sentences: Sentences) -> MissingTagsError:
        """Return the refusal of sentences of which one has words without tags."""
        trees = [_with_plain_words(each) if isinstance(each, ConstTree) else each for each in sentences]
        return MissingTagsError(
            f"sentence {number} has words without tags, which model {self.name} needs; "
            f"expected {EXPECTED_TAGS}",
            [untagged_sentence(tree, self.kind) for tree in trees],
        )

    def _knows_words(self, words: Sequence[str]) -> Sequence[bool] | None:
        """Tell which words the model has seen, or, if it cannot, which its tagger has seen several times."""
        known = self._parser.knows_words(words)
        return self._tagger.has_classes(words) if known is None and self._tagger is not None else known

    @abstractmethod
    def _known_tags(self) -> Sequence[str]:
        """Return the tags that the model knows."""

    @abstractmethod
    def warm_up(self) -> None:
        """Parse something, so that no visitor waits for code to be compiled."""

    @abstractmethod
    def parse(
        self, sentences: Sentences, fixed: Fixed, *, pictures: Layout | None
    ) -> list[DependencySentence] | list[ConstituentSentence]:
        """Return the best tree of each sentence."""

    @abstractmethod
    def kbest(
        self, sentences: Sentences, fixed: Fixed, *, k: int, pictures: Layout | None
    ) -> list[DependencyCandidates] | list[ConstituentCandidates]:
        """Return the `k` best trees of each sentence."""

    @abstractmethod
    def explain(
        self, sentences: Sentences, fixed: Fixed, *, pictures: Layout | None
    ) -> list[ExplainedSentence]:
        """Return the best tree of each sentence with what speaks for it."""


class ServedDependencies(ServedModel):
    """A dependency parser, or a reranker of one."""

    kind = "dependency"
    _parser: DependencyAnnotator

    def _known_tags(self) -> Sequence[str]:
        return self._parser.known_tags if self._tagger is None else self._tagger.known_tags

    def warm_up(self) -> None:
        """Parse something, so that no visitor waits for code to be compiled."""
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
        """Return the `k` best trees of each sentence."""
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
        """Return the best tree of each sentence with what speaks for it."""
        trees = self._prepare(sentences)
        found = [best.tree for (best,) in self._parser.annotate(trees, fixed=fixed)]
        parts = zip(
            found,
            self._certainty(trees, fixed),
            self._features(found),
            self._reasons(trees, fixed),
            strict=True,
        )
        return [
            explained_sentence(
                dependency_sentence(
                    tree, self._confidence(tree, known), pictures=pictures, unknown=self._unknown(tree)
                ),
                known.marginals,
                features,
                reasons,
            )
            for tree, known, features, reasons in parts
        ]

    def _prepare(self, sentences: Sentences) -> list[DepTree]:
        """Return sentences with all that the parser looks at."""
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
        """Return the probability of the head of each word of a tree."""
        found = self._parser.confidence(tree, known.marginals, fixed=known.fixed)
        return [rounded(one) for one in found.tolist()]

    def _unknown(self, tree: DepTree) -> list[int] | None:
        """Return the words, from 1, that the model has never seen; numbers and punctuation are not words."""
        known = self._parser.knows_words(tree.words)
        if known is None:
            return None
        pairs = enumerate(zip(tree.words, known, strict=True), start=1)
        return [number for number, (word, is_known) in pairs if not is_known and has_letters(word)]

    def _features(self, found: list[DepTree]) -> list[list[list[WeighedFeature]]]:
        """Return for each word of each tree the features of its arc, if the model has any."""
        if not self._parser.has_arc_reasons:
            return [[[] for _ in tree.words] for tree in found]
        return self._parser.arc_reasons(found, n=MOST_FEATURES)

    def _reasons(self, trees: list[DepTree], fixed: Fixed) -> list[list[WeighedFeature]]:
        if not self._parser.explains:
            return [[] for _ in trees]
        return [each.reasons for each in self._parser.explain(trees, fixed=fixed)]


class ServedConstituents(ServedModel):
    """A constituency parser, or a reranker of one or more."""

    kind = "constituent"
    _parser: ConstituentAnnotator

    def _known_tags(self) -> Sequence[str]:
        if self._tagger is not None:
            return sorted({label.xpos for label in self._tagger.labels_})
        return self._parser.known_tags

    def warm_up(self) -> None:
        """Parse something, so that no visitor waits for code to be compiled."""
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
        """Return the `k` best trees of each sentence."""
        self._refuse(fixed)
        lists = self._parser.annotate(self._prepare(sentences), k=k)
        return [
            ConstituentCandidates(
                candidates=[
                    constituent_candidate(
                        analyses[0].tree, tree, score=score or 0.0, probability=share, pictures=pictures
                    )
                    for tree, score, share in analyses
                ]
            )
            for analyses in lists
        ]

    def explain(
        self, sentences: Sentences, fixed: Fixed, *, pictures: Layout | None
    ) -> list[ExplainedSentence]:
        """Refuse: constituency models have no reasons to show."""
        raise InputError(f"model {self.name} finds constituents; expected a dependency model to explain")

    def _refuse(self, fixed: Fixed) -> None:
        if fixed is not None:
            found = f"model {self.name} finds constituents"
            raise InputError(f"{found}; expected a dependency model for fixed arcs")

    def _prepare(self, sentences: Sentences) -> list[Any]:
        """Return sentences with all that the parser looks at, words escaped as treebanks have them."""
        return [
            each if isinstance(each, ConstTree) else self._tagged(each, number, sentences)
            for number, each in enumerate(sentences, start=1)
        ]

    def _tagged(self, tree: DepTree, number: int, sentences: Sentences) -> list[tuple[str, str]]:
        words, tags = [escape(word) for word in tree.words], [escape(tag) for tag in tree.xpos]
        for text in (*words, *tags):
            if not LABEL.fullmatch(text):
                found = f"sentence {number} has {quote(text)}"
                raise InputError(f"{found}; expected words and tags without white space")
        if MISSING in tags and self._tagger is not None:
            # Its own tagger has learnt from words in brackets, another one from words as they are written.
            (others,) = self._tagger.tag([tree.words if self._own_tagger is None else words])
            tags = [other if tag == MISSING else tag for tag, other in zip(tags, others.xpos, strict=True)]
        if MISSING in tags:
            raise self._missing_tags(number, sentences)
        return list(zip(words, tags, strict=True))


SERVED: dict[str, type[ServedModel]] = {
    "dependencies": ServedDependencies,
    "constituents": ServedConstituents,
}
"""How models are served, by what they find."""


def serve_model(name: str, parser: Annotator, tagger: Tagger | None = None) -> ServedModel:
    """Make a parser ready for the service.

    Raises
    ------
    InputError
        For a model that does not parse.
    """
    return SERVED[check_served(name, parser).finds](name, parser, tagger)


def check_served(name: str, model: Any) -> Annotator:  # noqa: ANN401
    """Return a model that can be served, or refuse it."""
    if getattr(model, "finds", None) not in SERVED:
        raise InputError(f"{name} is a {type(model).__name__}; expected a parser, or a reranker of one")
    found: Annotator = model
    return found


def _with_plain_words(tree: ConstTree) -> DepTree:
    return DepTree([unescape_word(word) for word in tree.words()], xpos=tree.tags())
