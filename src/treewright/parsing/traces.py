"""Candidates of a sentence as the choices of a network, for kernels that are derived from it.

Each decision is one to three choices at the same history vector: the kind of decision, then a label, or a tag
and a word. The tag and the word are dictated by the sentence. Outputs are numbered as in `Sizes.starts`.
Candidates share the steps at which they have decided alike so far.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright.kernels.decisions import DecisionList, make_decision_list
from treewright.parsing.decisions import Encoded
from treewright.parsing.derivations import PROJECT, SHIFT
from treewright.parsing.network import Floats, Network, Packed, Sizes, pack

KIND_GROUP, LABEL_GROUP, TAG_GROUP, WORD_GROUP = range(4)
"""Soft-max groups; words of tag t are of group `WORD_GROUP` plus t."""


def trace_candidates(
    network: Network, derivations: Sequence[Encoded], *, distributions: bool = True
) -> DecisionList:
    """Return the candidates of a sentence, given by their derivations, as choices of a network.

    `EfficientTopRerankingKernel` does without `distributions`.
    """
    packed = pack(derivations)
    # Longer sums are more exact: so are then all probabilities, which must add up.
    hidden = network.run(packed).astype(np.float64)
    steps: dict[tuple[int, int], int] = {}
    prefixes: dict[tuple[int, ...], int] = {}
    places: list[int] = []
    choices: list[tuple[int, int]] = []
    first = [0]
    for own in packed.rows:
        node = 0
        for row in own.tolist():
            for group, output in _choices_at(packed, network.sizes, row):
                step = steps.setdefault((node, group), len(steps))
                if step == len(places):
                    places.append(row)
                choices.append((step, output))
            decided = (node, *(int(column[row]) for column in (packed.kinds, packed.labels, packed.words)))
            node = prefixes.setdefault(decided, len(prefixes) + 1)
        first.append(len(choices))
    groups = np.array([group for _, group in steps])
    chosen = np.array(choices, dtype=np.int64)
    found = list(_group_logs(network, hidden[places], packed.legal[places], groups))
    return make_decision_list(
        hidden[places],
        chosen[:, 0],
        chosen[:, 1],
        first,
        n_outputs=network.sizes.n_outputs,
        distributions=_distributions(found, (len(groups), network.sizes.n_outputs))
        if distributions
        else None,
        log_probabilities=None if distributions else _chosen_logs(found, chosen, len(groups)),
        is_observed=groups[chosen[:, 0]] >= TAG_GROUP,
    )


def _choices_at(packed: Packed, sizes: Sizes, row: int) -> list[tuple[int, int]]:
    """Return the groups and outputs of a decision."""
    labels, tags, words = sizes.starts
    kind = int(packed.kinds[row])
    if kind == PROJECT:
        return [(KIND_GROUP, kind), (LABEL_GROUP, labels + int(packed.labels[row]))]
    if kind == SHIFT:
        tag, word = int(packed.tags[row]), int(packed.words[row])
        return [(KIND_GROUP, kind), (TAG_GROUP, tags + tag), (WORD_GROUP + tag, words + word)]
    return [(KIND_GROUP, kind)]


def _group_logs(
    network: Network,
    hidden: Floats,
    legal: npt.NDArray[np.bool_],
    groups: npt.NDArray[np.int64],
) -> Iterator[tuple[npt.NDArray[np.int64], int, Floats]]:
    """Yield the steps of each group, its first output, and the logarithms of the probabilities of all."""
    labels, tags, words = network.sizes.starts
    for group in np.unique(groups).tolist():
        of_group = np.flatnonzero(groups == group)
        vectors = hidden[of_group]
        if group == KIND_GROUP:
            yield of_group, 0, network.kind_logs(vectors, legal[of_group])
        elif group == LABEL_GROUP:
            yield of_group, labels, network.label_logs(vectors)
        elif group == TAG_GROUP:
            yield of_group, tags, network.tag_logs(vectors)
        else:
            tag = group - WORD_GROUP
            yield of_group, words + int(network.sizes.first[tag]), network.word_logs(vectors, tag)


def _distributions(
    found: Iterable[tuple[npt.NDArray[np.int64], int, Floats]], shape: tuple[int, int]
) -> csr_matrix:
    """Return the probability of each output of each step, (n_steps, n_outputs)."""
    values, rows, columns = [], [], []
    for of_group, start, logs in found:
        allowed = np.nonzero(logs > -np.inf)
        values.append(np.exp(logs[allowed]))
        rows.append(of_group[allowed[0]])
        columns.append(start + allowed[1])
    return csr_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape)


def _chosen_logs(
    found: Iterable[tuple[npt.NDArray[np.int64], int, Floats]], chosen: npt.NDArray[np.int64], n_steps: int
) -> npt.NDArray[np.float64]:
    """Return the logarithm of the probability of each choice, a step and an output."""
    order = np.argsort(chosen[:, 0], kind="stable")
    bounds = np.searchsorted(chosen[order, 0], np.arange(n_steps + 1))
    logs_of = np.zeros(len(chosen))
    for of_group, start, logs in found:
        for row, step in enumerate(of_group.tolist()):
            mine = order[bounds[step] : bounds[step + 1]]
            logs_of[mine] = logs[row, chosen[mine, 1] - start]
    return np.minimum(logs_of, 0.0)
