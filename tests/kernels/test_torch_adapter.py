import sys

import numpy as np
import pytest

from treewright.errors import InputError, MissingDependencyError
from treewright.kernels.derived import FisherKernel, TopRerankingKernel, rerank_scores
from treewright.kernels.torch_adapter import TorchGradients


def test_a_missing_torch_is_named_with_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"pip install .*\[neural\]"):
        TorchGradients(object(), len)


def make_model():
    """Return a language model of letters: a recurrent network over at most four kinds of them."""
    torch = pytest.importorskip("torch")

    class Letters(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(4, 3)
            self.dropout = torch.nn.Dropout(0.5)
            self.cell = torch.nn.RNNCell(3, 3)
            self.output = torch.nn.Linear(3, 4)
            self.unused = torch.nn.Linear(2, 1)

        def log_probability(self, candidates):
            return torch.stack([self.one(candidate) for candidate in candidates])

        def one(self, letters):
            state, total = torch.zeros(1, 3, dtype=torch.float64), 0.0
            for letter in letters:
                total = total + torch.log_softmax(self.output(self.dropout(state)), dim=1)[0, letter]
                state = self.cell(self.embedding(torch.tensor([letter])), state)
            return total

    torch.manual_seed(0)
    return Letters().double()


LISTS = [[(0, 1, 2), (0, 1, 3), (2,)], [(1, 1), (3, 0, 0, 2)]]


def differentiate(model, score, names, width=1e-6):
    """Return central differences of scores by each number of the parameters."""
    import torch

    model.eval()
    slopes = []
    with torch.no_grad():
        for name in names:
            flat = dict(model.named_parameters())[name].view(-1)
            for place in range(len(flat)):
                kept = flat[place].item()
                flat[place] = kept + width
                above = score()
                flat[place] = kept - width
                below = score()
                flat[place] = kept
                slopes.append((above - below) / (2 * width))
    model.train()
    return np.array(slopes).T


@pytest.mark.slow_cases
@pytest.mark.parametrize("kernel", [FisherKernel(), TopRerankingKernel()])
def test_features_of_any_module_are_finite_differences(kernel):
    model = make_model()
    gradients = TorchGradients(model, model.log_probability)
    features = kernel.features(gradients(LISTS))
    assert features.shape == (5, 1 + sum(gradients.sizes))
    begin = 0
    for candidates in LISTS:

        def score(candidates=candidates):
            logs = model.log_probability(candidates).detach().numpy().copy()
            return logs if isinstance(kernel, FisherKernel) else rerank_scores(logs)

        slopes = differentiate(model, score, gradients.names)
        found = features[begin : begin + len(candidates)]
        begin += len(candidates)
        np.testing.assert_allclose(found[:, 1:], slopes, atol=1e-6)
    assert model.training


def test_features_can_be_of_some_parameters_only():
    model = make_model()
    all_of_them = TorchGradients(model, model.log_probability)
    output = TorchGradients(model, model.log_probability, parameters=["output.weight"])
    assert (output.names, output.sizes) == (["output.weight"], [12])
    begin = sum(all_of_them.sizes[: all_of_them.names.index("output.weight")])
    for few, many in zip(output(LISTS), all_of_them(LISTS), strict=True):
        np.testing.assert_allclose(few.gradients, many.gradients[:, begin : begin + 12])


def test_what_cannot_be_differentiated_is_named():
    torch = pytest.importorskip("torch")
    model = make_model()
    with pytest.raises(InputError, match="there is no parameter 'outputs'; expected some of embedding"):
        TorchGradients(model, model.log_probability, parameters=["outputs"])
    with pytest.raises(InputError, match="parameters is the string 'output'; expected a sequence"):
        TorchGradients(model, model.log_probability, parameters="output")
    with pytest.raises(InputError, match="module is int; expected a torch"):
        TorchGradients(3, model.log_probability)
    with pytest.raises(InputError, match=r"list 0: log_probability returned .*; expected a tensor \(3,\)"):
        TorchGradients(model, lambda candidates: torch.zeros(2))(LISTS)
    with pytest.raises(InputError, match="does not depend on the parameters"):
        TorchGradients(model, lambda candidates: torch.zeros(len(candidates)))(LISTS)
