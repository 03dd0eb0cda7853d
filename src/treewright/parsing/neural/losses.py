"""Losses of arc scores: per word, or of whole trees by the charts of the decoders."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

IGNORED = -1
"""The head of what is no word."""


def head_loss(scores: Tensor, heads: Tensor, lengths: Tensor) -> Tensor:
    """Return the sum over words of the negative logarithm of the probability of the gold head."""
    return cross_entropy(scores.flatten(0, 1), heads.flatten(), ignore_index=IGNORED, reduction="sum")


def tree_loss(kind: str, *, single_root: bool) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Return the negative logarithm of the probability of gold trees.

    Parameters
    ----------
    kind : {"projective", "matrix-tree"}
        Among all projective trees, or all trees.
    single_root : bool
    """
    if kind == "projective":
        from treewright.native.dependency.eisner import arc_marginals as fill_marginals
    else:
        from treewright.native.dependency.arborescence import matrix_tree_marginals as fill_marginals

    class LogSums(torch.autograd.Function):
        """The logarithm of the sum over all trees; its derivatives are the marginals of arcs."""

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
