"""Mining of features in forests: features are selected by their gradients, then their weights are learnt."""

from dataclasses import dataclass

import numpy as np

from treewright._typing import FloatArray
from treewright.data.arcs import ArcEncoder
from treewright.mining.forest import ForestFeatures, PartMatcher, mine_parts
from treewright.native.dependency.forests import Firing, LogLinear
from treewright.parsing.dependency.forests import N_SPECIAL, BasicFeatures, ForestCorpus, FoundParts
from treewright.parsing.dependency.linear import LinearPartScorer
from treewright.parsing.dependency.mined import MinedScorer
from treewright.progress import report, task

RATE, EPOCHS = 0.01, 3
FIRST_SQUARE = 1.0
"""Initial value of the sums of squared gradients; it keeps the first steps of rare features small."""
MIN_COUNT = 3
"""Minimum count of a basic feature among the arcs of forests."""
MIN_PURITY = 0.6
"""Minimum purity of a mined feature, as defined in `mine_parts`.

Less pure features have large gradients by chance, and the linear model already covers what they could add.
`docs/results/reranking.md` has gains by minimum purity; with order 1, it matters little."""
LIGHT_SHARE = 0.02
"""The features with the smallest weights are dropped, up to this fraction of the total absolute weight."""


@dataclass(frozen=True)
class ForestMiner:
    """Mines features in forests and learns their weights.

    Parameters
    ----------
    threshold : float
        Threshold that the gradient of a feature must exceed.
    degree : int
        Maximum number of arcs of a feature.
    narrowing : float
        Minimum probability of a head under the linear model, relative to the best head.
    random_state : int
    n_jobs : int
        Number of threads (-1: all processors).
    """

    threshold: float
    degree: int
    narrowing: float
    random_state: int
    n_jobs: int

    def fit(self, linear: LinearPartScorer, scale: float, training: ForestCorpus) -> MinedScorer:
        """Return a scorer that adds mined features to a linear model.

        Parameters
        ----------
        linear : LinearPartScorer
        scale : float
        training : ForestCorpus
            Forests whose scores come from linear models that were not trained on the sentences.
        """
        encoder = ArcEncoder.from_trees(training.trees)
        found = FoundParts.from_indices(encoder, training.trees, training.indices)
        basic = BasicFeatures.from_arcs(encoder, found.keys, MIN_COUNT)
        parts = found.as_roles(basic)
        del found  # which takes much memory
        residues, loss = training.residues()
        report(f"forests of {len(training.trees)} sentences: {len(parts.codes):,} parts, log-loss {loss:.3f}")
        mined = mine_parts(
            parts,
            residues,
            len(basic),
            self.threshold,
            min_purity=MIN_PURITY,
            degree=self.degree,
            n_jobs=self.n_jobs,
        )
        firing = Firing(*PartMatcher(mined.features, len(basic)).match(parts))
        coef = self._learn(training, firing, len(mined.features))
        return _make_scorer(linear, scale, self.narrowing, basic, mined.features, coef)

    def _learn(self, training: ForestCorpus, firing: Firing, n_features: int) -> FloatArray:
        """Return the weights of features, averaged over all steps."""
        n = len(training.trees)
        weights, totals = np.zeros(n_features), np.zeros(n_features)
        model = LogLinear(weights, np.full(n_features, FIRST_SQUARE), totals)
        with task("learning mined features", total=EPOCHS * n) as counted:
            for epoch in range(EPOCHS):
                order = np.random.default_rng([self.random_state, epoch]).permutation(n)
                for part in counted.slices(n):
                    training.learn(firing, model, order[part], rate=RATE, n_done=epoch * n + part.start)
        return weights - totals / (EPOCHS * n)


def _make_scorer(
    linear: LinearPartScorer,
    scale: float,
    narrowing: float,
    basic: BasicFeatures,
    features: ForestFeatures,
    coef: FloatArray,
) -> MinedScorer:
    """Return a scorer with the features of largest weight, and the basic features that they need."""
    order = np.argsort(np.abs(coef), kind="stable")
    is_light = np.cumsum(np.abs(coef[order])) <= LIGHT_SHARE * np.abs(coef).sum()
    kept = np.sort(order[~is_light])
    features, coef = features.take(kept), coef[kept]
    report(f"{len(kept):,} features are kept")
    used = np.unique(features.basic[features.basic >= N_SPECIAL])
    numbers = np.full(len(basic) + 1, -1, dtype=np.int32)
    numbers[:N_SPECIAL] = np.arange(N_SPECIAL)
    numbers[used] = N_SPECIAL + np.arange(len(used))
    return MinedScorer(
        linear,
        scale=scale,
        threshold=narrowing,
        encoder=basic.encoder,
        keys=basic.keys[used - N_SPECIAL],
        codes=features.codes,
        basic=numbers[features.basic],
        coef=coef.astype(np.float32),
    )
