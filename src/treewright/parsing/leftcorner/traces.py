"""Candidates of a sentence as choices of a network, for kernels derived from the network.

Each decision consists of one to three choices, made from the same history vector: the kind of decision, then
a label, or a tag and a word. The sentence determines the tag and the word. Outputs are numbered as in
`Sizes.starts`. As long as the decisions of several candidates are the same, these candidates share their
steps.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright.kernels.decisions import DecisionList, make_decision_list
from treewright.parsing.leftcorner.decisions import SharedDerivations
from treewright.parsing.leftcorner.derivations import NONE, PROJECT, SHIFT
from treewright.parsing.leftcorner.network import Floats, Network, Sizes

Numbers = npt.NDArray[np.int64]

KIND_GROUP, LABEL_GROUP, TAG_GROUP, WORD_GROUP = range(4)
"""Softmax groups; the words of tag t form the group `WORD_GROUP` plus t."""


def trace_candidates(
    network: Network, decisions: SharedDerivations, *, distributions: bool = True
) -> DecisionList:
    """Return the candidates of a sentence, given by their derivations, as choices of a network.

    `EfficientTopRerankingKernel` does not need `distributions`.
    """
    # Double precision keeps the sums of probabilities exact.
    hidden = network.run(decisions).astype(np.float64)
    rows, groups, outputs, n_choices = _choices(decisions, network.sizes)
    n_groups = int(groups.max()) + 1
    numbers, steps = np.unique(rows * n_groups + groups, return_inverse=True)
    places, group_of = np.divmod(numbers, n_groups)
    found = list(_group_logs(network, hidden[places], decisions.legal[places], group_of))
    return make_decision_list(
        hidden[places],
        steps,
        outputs,
        np.concatenate([[0], np.cumsum(n_choices)])[decisions.indptr],
        n_outputs=network.sizes.n_outputs,
        distributions=_distributions(found, (len(numbers), network.sizes.n_outputs))
        if distributions
        else None,
        log_probabilities=None if distributions else _chosen_logs(found, steps, outputs),
        is_observed=groups >= TAG_GROUP,
    )


def _choices(decisions: SharedDerivations, sizes: Sizes) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return the rows, groups and outputs of all choices, and the number of choices of each decision."""
    labels, tags, words = sizes.starts
    kinds = decisions.kinds
    n_choices = np.select([kinds == PROJECT, kinds == SHIFT], [2, 3], 1)
    groups = np.stack([np.full_like(kinds, KIND_GROUP), np.full_like(kinds, LABEL_GROUP), kinds], axis=1)
    outputs = np.stack([kinds, labels + decisions.labels, kinds], axis=1)
    shifts = kinds == SHIFT
    groups[shifts, 1], groups[shifts, 2] = TAG_GROUP, WORD_GROUP + decisions.tags[shifts]
    outputs[shifts, 1], outputs[shifts, 2] = tags + decisions.tags[shifts], words + decisions.words[shifts]
    is_there = np.arange(3) < n_choices[:, None]
    return np.repeat(decisions.rows, n_choices), groups[is_there], outputs[is_there], n_choices


def _group_logs(
    network: Network,
    hidden: Floats,
    legal: npt.NDArray[np.bool_],
    groups: Numbers,
) -> Iterator[tuple[Numbers, int, Floats]]:
    """Yield the steps of each group, its first output, and the log-probabilities of its outputs."""
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
            yield of_group, words + int(network.sizes.indptr[tag]), network.word_logs(vectors, tag)


def _distributions(found: Iterable[tuple[Numbers, int, Floats]], shape: tuple[int, int]) -> csr_matrix:
    """Return the probability of each output at each step, (n_steps, n_outputs)."""
    values, rows, columns = [], [], []
    for of_group, start, logs in found:
        allowed = np.nonzero(logs > -np.inf)
        values.append(np.exp(logs[allowed]))
        rows.append(of_group[allowed[0]])
        columns.append(start + allowed[1])
    return csr_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape)


def _chosen_logs(
    found: Iterable[tuple[Numbers, int, Floats]], steps: Numbers, outputs: Numbers
) -> npt.NDArray[np.float64]:
    """Return the log-probability of each choice, given as step and output."""
    logs_of = np.zeros(len(steps))
    rows = np.full(steps.max() + 1, NONE)
    for of_group, start, logs in found:
        rows[:] = NONE
        rows[of_group] = np.arange(len(of_group))
        mine = np.flatnonzero(rows[steps] != NONE)
        logs_of[mine] = logs[rows[steps[mine]], outputs[mine] - start]
    return np.minimum(logs_of, 0.0)
