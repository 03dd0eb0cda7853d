"""Training of a Simple Synchrony Network with PyTorch; see `treewright.parsing.leftcorner.network`.

Derivations of similar lengths are computed together, one decision of each at a time. Links can reach back to
any earlier decision, so history vectors are kept in one table, from which each time step gathers rows.
Backpropagation is written by hand: each time step computes the derivatives with respect to the linked vectors
in one matrix product; at the end, the derivatives with respect to the weights are one product over all time
steps.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from treewright._optional import require
from treewright.model import State
from treewright.parsing.leftcorner.decisions import Encoded
from treewright.parsing.leftcorner.derivations import N_KINDS, PROJECT, SHIFT
from treewright.parsing.leftcorner.network import N_LINKS, N_SOURCES, Floats, PackedDerivations, Sizes, pack
from treewright.parsing.neural.batches import make_batches
from treewright.parsing.neural.devices import find_device
from treewright.progress import Task
from treewright.scale import map_jobs, one_blas_thread

Tensor = Any
DECAYED = ("input", "links", "output")
"""Weights with weight decay; embedding tables and biases have none."""
LARGEST_GRADIENT = 5.0
LOWEST_RATE = 0.01
"""Final learning rate, as a fraction of the initial rate."""
AVERAGED_SHARE = 0.1
"""Approximate fraction of the steps so far that the moving average of the weights covers."""
N_SHARES = 2
"""Number of parts of a batch that threads compute in parallel; it changes results in the last bits."""
INPUTS = ("decisions", "symbols", "words", "tags", "input", "bias")
OUTPUTS = ("output", "output_bias")
SPREAD = 64
"""Number of batches whose derivations are sorted by length together."""


class NetworkSettings(NamedTuple):
    """Training settings of a network; see `LeftCornerParser`."""

    cell: str
    units: int
    embedding: int
    optimizer: str
    learning_rate: float
    weight_decay: float
    dropout: float
    batch_size: int
    epochs: int
    random_state: int
    device: str
    average: bool


class Kept(NamedTuple):
    """Values of the forward pass that the backward pass needs.

    Attributes
    ----------
    hidden, memory : tensors, (1 + n, units) and (1 + n, n_memory)
        History vectors and memories; the first row stands for no decision.
    gates : tensor, (n, width)
        Outputs of units and gates.
    """

    hidden: Tensor
    memory: Tensor
    gates: Tensor


def draw_weights(sizes: Sizes, settings: NetworkSettings) -> dict[str, Floats]:
    """Return random initial weights."""
    generator = np.random.default_rng(settings.random_state)
    weights = {}
    for name, shape in sizes.shapes(settings.units, settings.embedding, settings.cell).items():
        if len(shape) == 1:
            weights[name] = np.zeros(shape, dtype=np.float32)
            continue
        scale = 0.1 if name in ("decisions", "symbols", "words", "tags") else shape[0] ** -0.5
        scale = settings.units**-0.5 / 2 if name == "output" else scale
        weights[name] = (scale * generator.standard_normal(shape)).astype(np.float32)
    return weights


class Trainer:
    """Trains the weights of a network, epoch by epoch.

    Parameters
    ----------
    sizes : Sizes
        Sizes of the vocabulary.
    settings : NetworkSettings
        Training settings.
    n_jobs : int
        Number of threads (-1: all processors); it changes only the last bits of weights.
    """

    def __init__(self, sizes: Sizes, settings: NetworkSettings, *, n_jobs: int = 1) -> None:
        self._torch = require("torch", "neural")
        self._sizes = sizes
        self._settings = settings
        self._jobs = n_jobs
        self._device = find_device(settings.device)
        weights = draw_weights(sizes, settings)
        self._weights = {
            name: self._torch.tensor(each, device=self._device, requires_grad=True)
            for name, each in weights.items()
        }
        self._means = {name: each.detach().clone() for name, each in self._weights.items()}
        self._n_steps = 0
        self._optimizer = self._make_optimizer()
        self._input_tags = self._torch.tensor(sizes.input_tags.astype(np.int64), device=self._device)
        words = np.diff(sizes.indptr).tolist()
        self._groups = [N_KINDS, sizes.n_labels, sizes.n_tags, *words]
        self.epoch = 0

    def _make_optimizer(self) -> Any:  # noqa: ANN401
        settings = self._settings
        groups = [
            {"params": [each for name, each in self._weights.items() if name in DECAYED]},
            {"params": [each for name, each in self._weights.items() if name not in DECAYED]},
        ]
        if settings.optimizer == "adam":
            return self._torch.optim.AdamW(
                groups, lr=settings.learning_rate, betas=(0.9, 0.98), weight_decay=0.0
            )
        return self._torch.optim.SGD(groups, lr=settings.learning_rate, momentum=0.9)

    @one_blas_thread
    def run_epoch(self, derivations: Sequence[Encoded], counted: Task | None = None) -> float:
        """Run one epoch over all derivations; return the mean loss per decision.

        The learning rate and the weight decay decrease over all epochs. Random numbers depend only on the
        seed and the epoch, so that training can resume after any epoch.
        """
        generator = np.random.default_rng([self._settings.random_state, self.epoch])
        lengths = np.array([len(each.kinds) for each in derivations], dtype=np.int64)
        batches = make_batches(lengths, self._settings.batch_size, generator, spread=SPREAD)
        total = 0.0
        for number, batch in enumerate(batches):
            self._set_rates(1 - (self.epoch + number / len(batches)) / self._settings.epochs)
            seeds = generator.integers(1 << 62, size=N_SHARES).tolist()
            total += self._learn([derivations[at] for at in batch], seeds)
            if counted is not None:
                counted.advance(len(batch))
        self.epoch += 1
        return total / sum(len(each.kinds) for each in derivations)

    def _set_rates(self, share: float) -> None:
        for group, is_decaying in zip(self._optimizer.param_groups, (True, False), strict=True):
            group["lr"] = self._settings.learning_rate * max(share, LOWEST_RATE)
            group["weight_decay"] = self._settings.weight_decay * share if is_decaying else 0.0

    def _learn(self, derivations: Sequence[Encoded], seeds: Sequence[int]) -> float:
        """Take one optimisation step; return the summed loss of a batch."""
        shares = [derivations[at::N_SHARES] for at in range(N_SHARES)]
        work = [
            (pack(share), random_state) for share, random_state in zip(shares, seeds, strict=True) if share
        ]
        found = map_jobs(lambda each: self.differentiate(*each), work, n_jobs=self._jobs)
        n_decisions = sum(len(each.kinds) for each in derivations)
        for name, weight in self._weights.items():
            weight.grad = sum(slopes[name] for _, slopes in found) / n_decisions
        self._torch.nn.utils.clip_grad_norm_(list(self._weights.values()), LARGEST_GRADIENT)
        self._optimizer.step()
        self._average()
        return sum(loss for loss, _ in found)

    def _average(self) -> None:
        """Update the moving average of the weights, or copy the weights if they are not averaged."""
        self._n_steps += 1
        share = min(1.0, 1 / (AVERAGED_SHARE * self._n_steps)) if self._settings.average else 1.0
        with self._torch.no_grad():
            for name, weight in self._weights.items():
                self._means[name].lerp_(weight, share)

    def differentiate(
        self, packed: PackedDerivations, random_state: int | None = None
    ) -> tuple[float, dict[str, Tensor]]:
        """Return the summed loss of all decisions and its derivatives with respect to all weights.

        Parameters
        ----------
        packed : PackedDerivations
            The derivations.
        random_state : int, optional
            Seed of the dropout masks; None disables dropout.
        """
        torch, weights = self._torch, self._weights
        noise = (
            None if random_state is None else torch.Generator(device=self._device).manual_seed(random_state)
        )
        embedded = self._embed(packed, noise)
        links = torch.tensor(packed.links, device=self._device)
        mask = self._draw_mask((packed.starts[1], N_LINKS * self._settings.units), noise)
        with torch.no_grad():
            kept = self._forward(embedded, links, packed.starts, mask)
        hidden = kept.hidden[1:].detach().requires_grad_()
        loss = self._loss(packed, hidden * self._draw_mask(tuple(hidden.shape), noise))
        of_hidden, *of_outputs = torch.autograd.grad(loss, [hidden, *(weights[name] for name in OUTPUTS)])
        with torch.no_grad():
            of_embedded = self._backward(of_hidden, kept, links, packed.starts, mask)
            of_links = torch.mm(self._follow(kept, links, packed.starts, mask).t(), of_embedded)
        of_inputs = torch.autograd.grad(embedded, [weights[name] for name in INPUTS], of_embedded)
        slopes = zip((*INPUTS, "links", *OUTPUTS), (*of_inputs, of_links, *of_outputs), strict=True)
        return float(loss.detach()), dict(slopes)

    def _draw_mask(self, shape: tuple[int, ...], noise: Any | None) -> Tensor:  # noqa: ANN401
        """Return a dropout mask that preserves the mean."""
        torch, dropout = self._torch, self._settings.dropout
        if noise is None or not dropout:
            return torch.ones(shape, device=self._device)
        drawn = torch.rand(shape, device=self._device, generator=noise)
        return (drawn >= dropout).to(torch.float32) / (1 - dropout)

    def _embed(self, packed: PackedDerivations, noise: Any | None) -> Tensor:  # noqa: ANN401
        """Return the contributions of the inputs to all units, (n, width)."""
        torch, weights = self._torch, self._weights
        inputs = torch.tensor(packed.inputs.T.copy(), device=self._device)
        look_up = torch.nn.functional.embedding
        parts = [look_up(inputs[0], weights["decisions"]), look_up(inputs[1], weights["symbols"])]
        for words in inputs[2:]:
            of_tags = look_up(self._input_tags[words], weights["tags"])
            parts.append(look_up(words, weights["words"]) + of_tags)
        joined = torch.cat(parts, dim=1)
        joined = joined * self._draw_mask(tuple(joined.shape), noise)
        return torch.addmm(weights["bias"], joined, weights["input"])

    def _forward(self, embedded: Tensor, links: Tensor, starts: Sequence[int], mask: Tensor) -> Kept:
        """Compute all history vectors from the contributions of inputs."""
        torch, units = self._torch, self._settings.units
        n_memory = units if self._settings.cell == "gated" else 0
        hidden = embedded.new_zeros(len(embedded) + 1, units)
        memory = embedded.new_zeros(len(embedded) + 1, n_memory)
        gates = torch.empty_like(embedded)
        for begin, end in pairwise(starts):
            rows = links[begin:end].reshape(-1)
            linked = hidden.index_select(0, rows).view(end - begin, -1).mul_(mask[: end - begin])
            torch.addmm(embedded[begin:end], linked, self._weights["links"], out=gates[begin:end])
            if n_memory:
                old = memory.index_select(0, rows).view(end - begin, N_LINKS, units)
                memory[begin + 1 : end + 1] = self._mix(gates[begin:end], old)
                shown = gates[begin:end, -2 * units : -units]
                torch.mul(shown, memory[begin + 1 : end + 1], out=hidden[begin + 1 : end + 1])
            else:
                own = gates[begin:end]
                hidden[begin + 1 : end + 1] = (
                    own.sigmoid_() if self._settings.cell == "sigmoid" else own.tanh_()
                )
        return Kept(hidden, memory, gates)

    def _mix(self, gates: Tensor, old: Tensor) -> Tensor:
        """Apply the gate activations in place; return the new memories."""
        units = self._settings.units
        sources = gates[:, : -2 * units].view(len(gates), N_SOURCES, units)
        shares = sources.softmax(dim=1)
        sources.copy_(shares)
        gates[:, -2 * units : -units].sigmoid_()
        gates[:, -units:].tanh_()
        return (shares[:, 1:] * old).sum(dim=1).addcmul_(shares[:, 0], gates[:, -units:])

    def _backward(
        self, slopes: Tensor, kept: Kept, links: Tensor, starts: Sequence[int], mask: Tensor
    ) -> Tensor:
        """Return the derivatives with respect to the contributions of inputs."""
        torch, units = self._torch, self._settings.units
        transposed = self._weights["links"].detach().t().contiguous()
        of_hidden = torch.cat([slopes.new_zeros(1, units), slopes])
        of_memory = torch.zeros_like(kept.memory)
        of_embedded = torch.empty_like(kept.gates)
        for begin, end in zip(starts[-2::-1], starts[:0:-1], strict=True):
            rows = links[begin:end].reshape(-1)
            own = of_hidden[begin + 1 : end + 1]
            of_embedded[begin:end] = self._turn(own, kept, rows, of_memory, begin, end)
            of_links = torch.mm(of_embedded[begin:end], transposed).mul_(mask[: end - begin])
            of_hidden.index_add_(0, rows, of_links.view(-1, units))
        return of_embedded

    def _follow(self, kept: Kept, links: Tensor, starts: Sequence[int], mask: Tensor) -> Tensor:
        """Return the linked history vectors of each decision, side by side."""
        linked = kept.hidden.index_select(0, links.view(-1)).view(len(links), -1)
        times = np.repeat(np.asarray(starts[:-1]), np.diff(starts))
        places = self._torch.tensor(np.arange(len(links)) - times, device=self._device)
        return linked.mul_(mask.index_select(0, places))

    def _turn(
        self, slopes: Tensor, kept: Kept, rows: Tensor, of_memory: Tensor, begin: int, end: int
    ) -> Tensor:
        """Return the derivatives with respect to the inputs of units.

        The derivatives with respect to linked memories are added to `of_memory`.
        """
        torch, units = self._torch, self._settings.units
        gates = kept.gates[begin:end]
        if self._settings.cell == "sigmoid":
            return slopes * gates * (1 - gates)
        if self._settings.cell == "tanh":
            return slopes * (1 - gates * gates)
        shares = gates[:, : -2 * units].view(end - begin, N_SOURCES, units)
        shown, new = gates[:, -2 * units : -units], gates[:, -units:]
        memory = kept.memory[begin + 1 : end + 1]
        own = of_memory[begin + 1 : end + 1] + slopes * shown
        old = kept.memory.index_select(0, rows).view(end - begin, N_LINKS, units)
        passed = own[:, None] * shares
        of_memory.index_add_(0, rows, passed[:, 1:].reshape(-1, units))
        of_new = passed[:, 0] * (1 - new * new)
        # The derivative of a softmax contains the difference between each source and the mean of all sources.
        of_shares = passed * (torch.cat([new[:, None], old], dim=1) - memory[:, None])
        return torch.cat([of_shares.flatten(1), slopes * memory * shown * (1 - shown), of_new], dim=1)

    def _loss(self, packed: PackedDerivations, hidden: Tensor) -> Tensor:
        """Return the negative log-probability of all decisions."""
        torch = self._torch
        matrices = self._weights["output"].split(self._groups)
        biases = self._weights["output_bias"].split(self._groups)

        def lose(group: int, rows: Any, targets: Any) -> Tensor:  # noqa: ANN401
            chosen = torch.tensor(targets, device=self._device)
            vectors = hidden.index_select(0, torch.tensor(rows, device=self._device))
            logits = torch.addmm(biases[group], vectors, matrices[group].t())
            return torch.nn.functional.cross_entropy(logits, chosen, reduction="sum")

        legal = torch.tensor(packed.legal, device=self._device)
        logits = torch.addmm(biases[0], hidden, matrices[0].t()).masked_fill(~legal, -torch.inf)
        kinds = torch.tensor(packed.kinds, device=self._device)
        loss = torch.nn.functional.cross_entropy(logits, kinds, reduction="sum")
        projected = np.flatnonzero(packed.kinds == PROJECT)
        if len(projected):
            loss = loss + lose(1, projected, packed.labels[projected])
        shifted = np.flatnonzero(packed.kinds == SHIFT)
        loss = loss + lose(2, shifted, packed.tags[shifted])
        for tag in np.unique(packed.tags[shifted]).tolist():
            if self._groups[3 + tag] > 1:
                rows = shifted[packed.tags[shifted] == tag]
                loss = loss + lose(3 + tag, rows, packed.words[rows] - self._sizes.indptr[tag])
        return loss

    @one_blas_thread
    def gradients(self, derivations: Sequence[Encoded]) -> tuple[list[float], Floats]:
        """Return the log-probability of each derivation and its derivatives with respect to all weights.

        The derivatives are rows, in the alphabetical order of the names of weights. The time steps of all
        derivations are computed together.
        """
        torch, weights = self._torch, self._weights
        packed, own = pack(derivations), [pack([each]) for each in derivations]
        rows = [torch.tensor(each, device=self._device) for each in packed.rows]
        parts = [self._embed(each, None) for each in own]
        embedded = parts[0].new_empty(packed.starts[-1], parts[0].shape[1])
        for places, part in zip(rows, parts, strict=True):
            embedded[places] = part.detach()
        links = torch.tensor(packed.links, device=self._device)
        mask = self._draw_mask((packed.starts[1], N_LINKS * self._settings.units), None)
        with torch.no_grad():
            kept = self._forward(embedded, links, packed.starts, mask)
        of_hidden = torch.empty_like(kept.hidden[1:])
        logs, slopes = [], []
        for each, places in zip(own, rows, strict=True):
            hidden = kept.hidden[1:][places].requires_grad_()
            loss = self._loss(each, hidden)
            of_hidden[places], *of_outputs = torch.autograd.grad(
                loss, [hidden, *(weights[name] for name in OUTPUTS)]
            )
            logs.append(-float(loss.detach()))
            slopes.append(dict(zip(OUTPUTS, of_outputs, strict=True)))
        with torch.no_grad():
            of_embedded = self._backward(of_hidden, kept, links, packed.starts, mask)
            linked = self._follow(kept, links, packed.starts, mask)
        for found, part, places in zip(slopes, parts, rows, strict=True):
            of_inputs = torch.autograd.grad(part, [weights[name] for name in INPUTS], of_embedded[places])
            found |= zip(INPUTS, of_inputs, strict=True)
            found["links"] = torch.mm(linked[places].t(), of_embedded[places])
        table = torch.stack(
            [torch.cat([found[name].reshape(-1) for name in sorted(found)]) for found in slopes]
        )
        return logs, table.neg_().cpu().numpy()

    def set_weights(self, weights: dict[str, Floats]) -> None:
        """Set the weights from which training continues."""
        for own in (self._weights, self._means):
            self._copy(own, weights)

    def _copy(self, own: dict[str, Tensor], weights: dict[str, Floats]) -> None:
        with self._torch.no_grad():
            for name, weight in own.items():
                weight.copy_(self._torch.from_numpy(weights[name]))

    def weights(self) -> dict[str, Floats]:
        """Return the moving average of the weights or, without `average`, the last weights."""
        return {name: each.cpu().numpy().copy() for name, each in self._means.items()}

    def get_state(self) -> State:
        """Return the complete state of training."""
        arrays = {name: each.detach().cpu().numpy().copy() for name, each in self._weights.items()}
        for name, weight in self._weights.items():
            for key, value in self._optimizer.state.get(weight, {}).items():
                arrays[f"{name}:{key}"] = value.detach().cpu().numpy().copy()
        values = {"epoch": self.epoch, "n_steps": self._n_steps}
        return State("Trainer", values, arrays, {"means": State("means", {}, self.weights())})

    def set_state(self, state: State) -> None:
        """Restore the state from `get_state`."""
        torch = self._torch
        self.epoch, self._n_steps = state.values["epoch"], state.values["n_steps"]
        self._copy(self._weights, state.arrays)
        self._copy(self._means, state.parts["means"].arrays)
        for key, array in state.arrays.items():
            name, _, kind = key.partition(":")
            if kind:
                value = torch.tensor(array)
                value = value if kind == "step" else value.to(self._device)
                self._optimizer.state[self._weights[name]][kind] = value
