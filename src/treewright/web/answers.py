"""Trees in the responses of the service."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from treewright.data.conllu import format_tree
from treewright.data.consttree import ConstTree, unescape_word
from treewright.data.deptree import DepTree
from treewright.data.descriptions import read_descriptions
from treewright.drawing.pictures import draw_svg
from treewright.parsing.dependency.reasons import WeighedFeature
from treewright.web.schemas import (
    Alternative,
    ConstituentCandidate,
    ConstituentSentence,
    DependencyCandidate,
    DependencySentence,
    ExplainedArc,
    ExplainedSentence,
    FeatureWeight,
    Kind,
    Layout,
    Meaning,
    Meanings,
    RelationMeaning,
    UntaggedSentence,
)

N_ALTERNATIVES = 3
N_REASONS = 10
DIGITS = 6
"""Number of significant digits of probabilities."""


def dependency_sentence(
    tree: DepTree,
    confidence: Sequence[float],
    *,
    pictures: Layout | None,
    marked: Sequence[int] = (),
    unknown: Sequence[int] | None = None,
) -> DependencySentence:
    """Return a parsed sentence with a drawing, in which the arcs of the words in `marked` are highlighted."""
    text = tree.text
    return DependencySentence(
        words=tree.words,
        upos=tree.upos,
        xpos=tree.xpos,
        lemmas=tree.lemmas,
        heads=tree.heads.tolist(),
        deprels=tree.deprels,
        confidence=list(confidence),
        unknown=None if unknown is None else list(unknown),
        svg=draw_svg(tree, marked=marked, confidence=confidence, title=text, layout=pictures)
        if pictures
        else None,
        conllu=format_tree(tree),
        text=text,
    )


def constituent_sentence(
    tree: ConstTree, *, pictures: Layout | None, marked: Sequence[int] = ()
) -> ConstituentSentence:
    """Return a parsed sentence with a drawing, in which the nodes in `marked` are highlighted."""
    words = [unescape_word(word) for word in tree.words()]
    text = " ".join(words)
    return ConstituentSentence(
        words=words,
        upos=tree.tags(),
        brackets=str(tree),
        svg=draw_svg(tree, marked=marked, title=text, layout=pictures) if pictures else None,
        nodes=tree.n_nodes,
        text=text,
    )


def all_meanings() -> Meanings:
    """Return the descriptions of relations, tags and labels."""
    found = read_descriptions()
    return Meanings(
        groups=found.groups,
        relations={name: RelationMeaning(**one._asdict()) for name, one in found.relations.items()},
        tags={name: Meaning(**one._asdict()) for name, one in found.tags.items()},
        phrases={name: Meaning(**one._asdict()) for name, one in found.phrases.items()},
    )


def untagged_sentence(tree: DepTree, kind: Kind) -> UntaggedSentence:
    """Return a sentence as it was read, with the tags that a model of this kind uses."""
    if kind == "constituent":
        return UntaggedSentence(words=tree.words, upos=tree.xpos, xpos=["_"] * len(tree), conllu=None)
    return UntaggedSentence(words=tree.words, upos=tree.upos, xpos=tree.xpos, conllu=format_tree(tree))


def dependency_candidate(
    best: DepTree,
    tree: DepTree,
    confidence: Sequence[float],
    *,
    score: float,
    probability: float,
    pictures: Layout | None,
    unknown: Sequence[int] | None,
) -> DependencyCandidate:
    """Return one of the k-best trees, with differences from the best tree highlighted."""
    differs = differing_words(best, tree)
    sentence = dependency_sentence(tree, confidence, pictures=pictures, marked=differs, unknown=unknown)
    return DependencyCandidate(
        **dict(sentence), score=score, probability=rounded(probability), differs=differs
    )


def constituent_candidate(
    best: ConstTree, tree: ConstTree, *, score: float, probability: float | None, pictures: Layout | None
) -> ConstituentCandidate:
    """Return one of the k-best trees, with differences from the best tree highlighted."""
    differs = differing_nodes(best, tree)
    sentence = constituent_sentence(tree, pictures=pictures, marked=differs)
    share = None if probability is None else rounded(probability)
    return ConstituentCandidate(**dict(sentence), score=score, probability=share, differs=differs)


def explained_sentence(
    sentence: DependencySentence,
    marginals: npt.NDArray[np.float64],
    features: Sequence[Sequence[WeighedFeature]],
    reasons: Sequence[WeighedFeature],
) -> ExplainedSentence:
    """Return a parsed sentence with the features of each arc; `features` has a list for each word."""
    arcs = [
        ExplainedArc(
            word=word,
            head=sentence.heads[word - 1],
            relation=sentence.deprels[word - 1],
            confidence=(sentence.confidence or [])[word - 1],
            alternatives=alternatives(marginals[word - 1]),
            features=feature_weights(features[word - 1]),
            total_for=total(features[word - 1], 1),
            total_against=total(features[word - 1], -1),
        )
        for word in range(1, len(sentence.words) + 1)
    ]
    return ExplainedSentence(
        **dict(sentence),
        arcs=arcs,
        reasons=feature_weights(reasons),
        total_for=total(reasons, 1),
        total_against=total(reasons, -1),
    )


def feature_weights(features: Sequence[WeighedFeature]) -> list[FeatureWeight]:
    """Return the features with the largest weights; `features` must be sorted."""
    return [
        FeatureWeight(
            text=one.text, sentence=one.sentence, weight=one.weight, arcs=list(one.arcs), rank=one.rank
        )
        for one in features[:N_REASONS]
    ]


def total(features: Sequence[WeighedFeature], sign: int) -> float:
    """Return the sum of the weights with this sign."""
    return sum(one.weight for one in features if sign * one.weight > 0)


def alternatives(probabilities: npt.NDArray[np.float64]) -> list[Alternative]:
    """Return the most probable heads of a word, given the probability of each head."""
    order = np.argsort(-probabilities, kind="stable")[:N_ALTERNATIVES].tolist()
    return [
        Alternative(head=head, probability=rounded(probabilities[head]))
        for head in order
        if probabilities[head] > 0
    ]


def differing_words(one: DepTree, other: DepTree) -> list[int]:
    """Return the words, from 1, whose head or relation differs."""
    pairs = zip(one.heads.tolist(), other.heads.tolist(), one.deprels, other.deprels, strict=True)
    return [word for word, (a, b, c, d) in enumerate(pairs, start=1) if (a, c) != (b, d)]


def differing_nodes(one: ConstTree, other: ConstTree) -> list[int]:
    """Return the nodes of `other`, except words, whose labelled span `one` lacks."""
    known = Counter(one.spans())
    nodes = np.flatnonzero(other.sizes > 1).tolist()
    differing = []
    for node, span in zip(nodes, other.spans(), strict=True):
        if known[span]:
            known[span] -= 1
        else:
            differing.append(node)
    return differing


def rounded(probability: float) -> float:
    """Round a probability to its significant digits, so that a small one does not become 0."""
    return float(f"{min(1.0, max(0.0, float(probability))):.{DIGITS}g}")
