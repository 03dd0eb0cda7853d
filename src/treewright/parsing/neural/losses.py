"""Losses of arc scores, for single words or for whole trees with the charts of the decoders."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from treewright.parsing.neural.network import ParserNetwork
from treewright.parsing.neural.probabilities import marginals_by
from treewright.parsing.neural.sizes import PART_ROLES

PRUNING_THRESHOLD, MAX_HEADS = 1e-3, 6
"""Limits of pruning: in training, only second-order parts over the remaining arcs are used."""
IGNORED = -1
"""Head of padding."""


def head_loss(scores: Tensor, heads: Tensor, lengths: Tensor) -> Tensor:
    """Return the summed negative log-probability of the gold heads."""
    return cross_entropy(scores.flatten(0, 1), heads.flatten(), ignore_index=IGNORED, reduction="sum")


def tree_loss(kind: str, *, single_root: bool) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Return a loss function: the negative log-probability of gold trees.

    Parameters
    ----------
    kind : {"projective", "matrix-tree"}
        Normalise over projective trees, or over all trees.
    single_root : bool
        Whether trees have exactly one root.
    """
    fill_marginals = marginals_by(kind)

    class LogSums(torch.autograd.Function):
        """The log partition function; its derivatives are the marginals of arcs."""

        @staticmethod
        def forward(ctx: Any, scores: Tensor, lengths: Tensor) -> Tensor:  # noqa: ANN401
            squares = scores.detach().double().cpu().numpy()
            found = np.zeros_like(squares)
            total = 0.0
            for square, marginals, length in zip(squares, found, lengths.tolist(), strict=True):
                mine = np.ascontiguousarray(square[:length, :length].T)
                filled = np.empty_like(mine)
                total += fill_marginals(mine, single_root, filled)
                marginals[1:length, :length] = filled.T[1:]
            ctx.save_for_backward(torch.from_numpy(found).to(scores))
            return scores.new_tensor(total)

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
            (marginals,) = ctx.saved_tensors
            return gradient * marginals, None

    def loss(scores: Tensor, heads: Tensor, lengths: Tensor) -> Tensor:
        is_word = heads != IGNORED
        chosen = scores.gather(2, heads.clamp(min=0).unsqueeze(2)).squeeze(2)
        log_sums: Tensor = LogSums.apply(scores, lengths)  # type: ignore[no-untyped-call]
        return log_sums - (chosen * is_word).sum()

    return loss


def second_order_loss(
    network: ParserNetwork,
    arcs: Tensor,
    vectors: dict[str, Tensor],
    heads: Tensor,
    lengths: Tensor,
    *,
    single_root: bool,
) -> Tensor:
    """Return the negative log-probability of gold trees, scored by arcs, siblings and grandchildren.

    Probabilities are normalised over the projective trees that consist of gold arcs and of arcs with a high
    first-order score.

    Parameters
    ----------
    network : ParserNetwork
        The network.
    arcs : Tensor, (sentences, modifiers, heads)
        Scores of arcs.
    vectors : dict of str to Tensor
        Vectors from `network.read_parts`.
    heads : Tensor, (sentences, longest)
        Gold heads.
    lengths : Tensor
        Number of words of each sentence, including the root.
    single_root : bool
        Whether trees have exactly one root.
    """
    from treewright.parsing.dependency.lattice import Lattice
    from treewright.parsing.dependency.pruning import ScoredFilter, left_arcs

    total = arcs.new_zeros(())
    probable = arcs.detach().double().log_softmax(dim=2).transpose(1, 2).cpu().numpy()
    for number, length in enumerate(lengths.tolist()):
        square = np.ascontiguousarray(probable[number, :length, :length])
        square[:, 0] = 0.0
        np.fill_diagonal(square, 0.0)
        gold = heads[number, 1:length].cpu().numpy().astype(np.int32)
        keep = left_arcs(ScoredFilter(square, single_root, PRUNING_THRESHOLD, MAX_HEADS))
        keep[gold, np.arange(1, length)] = True
        lattice = Lattice(keep, single_root=single_root)
        scores: dict[str, Tensor] = {}
        for kind in ("arc", *PART_ROLES):
            words = torch.from_numpy(lattice.words(kind).astype(np.int64)).to(arcs.device)
            if kind == "arc":
                scores[kind] = arcs[number, words[:, 1], words[:, 0]]
            else:
                scores[kind] = network.score_parts(kind, vectors, number, words)
        values = {kind: each.detach().double().cpu().numpy() for kind, each in scores.items()}
        marginals, log_sum = lattice.part_marginals(values)
        value = log_sum
        slope = arcs.new_zeros(())
        for kind, each in scores.items():
            is_gold = lattice.contains(kind, gold).astype(np.float64)
            value -= float(values[kind] @ is_gold)
            # The probability of a part is the derivative of the log partition function with respect to the
            # score of the part.
            slope = slope + (each * torch.from_numpy(marginals[kind] - is_gold).to(each)).sum()
        total = total + slope - slope.detach() + value
    return total
