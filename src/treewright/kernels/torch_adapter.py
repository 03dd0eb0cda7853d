"""Candidate lists of any PyTorch model, for derived kernels."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from treewright._optional import require
from treewright._typing import FloatArray
from treewright.errors import InputError
from treewright.kernels.decisions import GradientList, make_gradient_list


class TorchGradients:
    """Compute a `GradientList` for each candidate list: log probabilities and their gradients.

    It allows any PyTorch model to be used with the derived kernels (requires the extra `neural`).

    Parameters
    ----------
    module : torch.nn.Module
        The model. Gradients are computed with respect to its parameters.
    log_probability : callable
        Function that is called with a list of candidates of any type. It returns a tensor with the log
        probability of each candidate, which PyTorch can differentiate with respect to the parameters.
    parameters : sequence of str, optional
        Names of the parameters with respect to which derivatives are taken, as in
        ``module.named_parameters()`` (default: all). Fewer parameters mean fewer features, and the parameters
        of the output layer alone often give better results.

    Attributes
    ----------
    names : list of str
        Names of the parameters, in the order of the features.
    sizes : list of int
        Number of features of each parameter.

    See Also
    --------
    TopRerankingKernel : A kernel of such lists.
    make_gradient_list : Creates a list from arrays.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Linear(2, 1, bias=False)
    >>> def log_probability(candidates):
    ...     return torch.log_softmax(model(torch.tensor(candidates)).squeeze(1), dim=0)
    >>> gradients = tw.TorchGradients(model, log_probability)
    >>> gradients.names, gradients.sizes
    (['weight'], [2])
    >>> lists = gradients([[[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]])
    >>> tw.TopRerankingKernel().features(lists).shape
    (3, 3)
    """

    def __init__(
        self,
        module: Any,  # noqa: ANN401
        log_probability: Callable[[Any], Any],
        *,
        parameters: Sequence[str] | None = None,
    ) -> None:
        self._torch = require("torch", "neural")
        if not isinstance(module, self._torch.nn.Module):
            raise InputError(f"module is {type(module).__name__}; expected a torch.nn.Module")
        self._module = module
        self._log_probability = log_probability
        chosen = _choose(dict(module.named_parameters()), parameters)
        self.names = list(chosen)
        self.sizes = [each.numel() for each in chosen.values()]
        self._parameters = list(chosen.values())

    def __call__(self, lists: Iterable[Any]) -> list[GradientList]:
        """Return the log probabilities and gradients of each list, computed in evaluation mode.

        Parameters
        ----------
        lists : iterable of lists of candidates
            Candidate lists. Each is passed to `log_probability`.

        Returns
        -------
        list of GradientList
            One `GradientList` for each candidate list.
        """
        return list(self.iterate(lists))

    def iterate(self, lists: Iterable[Any]) -> Iterator[GradientList]:
        """Yield the log probabilities and gradients of one list at a time, to save memory.

        Parameters
        ----------
        lists : iterable of lists of candidates
            Candidate lists. Each is passed to `log_probability`. A generator is read as needed.

        Yields
        ------
        GradientList
            The log probabilities and gradients of the candidates of a list.
        """
        for number, candidates in enumerate(lists):
            with self._ready():
                logs = self._log_probability(candidates)
                self._check(logs, candidates, number)
                slopes = [self._differentiate(log) for log in logs]
            yield make_gradient_list(logs.detach().cpu().double().numpy(), np.stack(slopes))

    def _differentiate(self, log: Any) -> FloatArray:  # noqa: ANN401
        slopes = self._torch.autograd.grad(log, self._parameters, retain_graph=True, allow_unused=True)
        flat = [
            np.zeros(size) if slope is None else slope.detach().cpu().double().numpy().ravel()
            for slope, size in zip(slopes, self.sizes, strict=True)
        ]
        return np.concatenate(flat)

    def _check(self, logs: Any, candidates: Any, number: int) -> None:  # noqa: ANN401
        if not self._torch.is_tensor(logs) or logs.ndim != 1 or len(logs) != len(candidates):
            found = f"a tensor of the shape {tuple(logs.shape)}" if hasattr(logs, "shape") else repr(logs)
            raise InputError(
                f"list {number}: log_probability returned {found}; expected a tensor ({len(candidates)},)"
            )
        if not logs.requires_grad:
            raise InputError(
                f"list {number}: the result of log_probability does not depend on the parameters; expected "
                "parameters that require gradients, outside of torch.no_grad"
            )

    @contextmanager
    def _ready(self) -> Iterator[None]:
        """Enable gradients and evaluation mode; restore the previous mode at the end."""
        states = [(module, module.training) for module in self._module.modules()]
        self._module.eval()
        try:
            # The recurrent layers of cuDNN have no gradients unless they are in training.
            with self._torch.enable_grad(), self._torch.backends.cudnn.flags(enabled=False):
                yield
        finally:
            for module, is_training in states:
                module.training = is_training


def _choose(known: dict[str, Any], names: Sequence[str] | None) -> dict[str, Any]:
    if isinstance(names, str):
        raise InputError(f"parameters is the string {names!r}; expected a sequence of names")
    chosen = list(known) if names is None else list(names)
    for name in chosen:
        if name not in known:
            raise InputError(f"there is no parameter {name!r}; expected some of {', '.join(known)}")
    found = {name: known[name] for name in chosen if known[name].requires_grad}
    if not found:
        raise InputError("no parameter requires gradients; expected at least one")
    return found
