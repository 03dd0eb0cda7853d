"""Completion of missing tags, consistent with the given ones."""

from collections.abc import Sequence

from treewright.data.deptree import DepTree
from treewright.tagging.tagger import Label, Tagger

MISSING = "_"


def fill_tags(trees: Sequence[DepTree], tagger: Tagger) -> list[DepTree]:
    """Return sentences with tags, features and lemmas; given values are kept.

    If only one of the two tags of a word is given, the tagger predicts the other tag and the features. If its
    prediction contradicts the given tag, the most frequent tag and features that agree with the given tag are
    used.
    """
    found = tagger.predict(trees)
    return [_filled(tree, other, tagger.labels_) for tree, other in zip(trees, found, strict=True)]


def _filled(tree: DepTree, found: DepTree, labels: Sequence[Label]) -> DepTree:
    has_features = any(feats != MISSING for feats in tree.feats)
    given = zip(tree.upos, tree.xpos, tree.feats, strict=True)
    predicted = zip(found.upos, found.xpos, found.feats, strict=True)
    whole = [
        _agreeing(Label(*one), Label(*other), labels, keep_features=has_features)
        for one, other in zip(given, predicted, strict=True)
    ]
    lemmas = [other if one == MISSING else one for one, other in zip(tree.lemmas, found.lemmas, strict=True)]
    return tree.with_tags(
        upos=[label.upos for label in whole],
        xpos=[label.xpos for label in whole],
        feats=[label.feats for label in whole],
        lemmas=lemmas,
    )


def _agreeing(given: Label, predicted: Label, labels: Sequence[Label], *, keep_features: bool) -> Label:
    """Return the first label with the given tags; the predicted label is tried first."""
    agreeing = (
        label
        for label in (predicted, *labels)
        if given.upos in (MISSING, label.upos) and given.xpos in (MISSING, label.xpos)
    )
    best = next(agreeing, Label(given.upos, given.xpos, MISSING))
    return Label(
        best.upos if given.upos == MISSING else given.upos,
        best.xpos if given.xpos == MISSING else given.xpos,
        given.feats if keep_features else best.feats,
    )
