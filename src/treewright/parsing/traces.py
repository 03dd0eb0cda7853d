"""Candidates of a sentence as the choices of a network, for kernels that are derived from it.

Each decision is one to three choices at the same history vector: the kind of decision, then a label, or a tag
and a word. The tag and the word are dictated by the sentence. Outputs are numbered as in `Sizes.starts`.
Candidates share the steps at which they have decided alike so far.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright.kernels.decisions import DecisionList, make_decision_list
from treewright.parsing.decisions import Encoded
from treewright.parsing.derivations import PROJECT, SHIFT
from treewright.parsing.network import Floats, Network, Packed, Sizes, pack

KIND_GROUP, LABEL_GROUP, TAG_GROUP, WORD_GROUP = range(4)
"""Soft-max groups; words of tag t are of group `WORD_GROUP` plus t."""


def trace_candidates(network: Network, derivations: Sequence[Encoded]) -> DecisionList:
    """Return the candidates of a sentence, given by their derivations, as choices of a network."""
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
    return make_decision_list(
        hidden[places],
        chosen[:, 0],
        chosen[:, 1],
        first,
        n_outputs=network.sizes.n_outputs,
        distributions=_distributions(network, hidden[places], packed.legal[places], groups),
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


def _distributions(
    network: Network,
    hidden: Floats,
    legal: npt.NDArray[np.bool_],
    groups: npt.NDArray[np.int64],
) -> csr_matrix:
    """Return the probability of each output of each step, (n_steps, n_outputs)."""
    labels, tags, words = network.sizes.starts
    values, rows, columns = [], [], []
    for group in np.unique(groups).tolist():
        of_group = np.flatnonzero(groups == group)
        vectors = hidden[of_group]
        if group == KIND_GROUP:
            start, logs = 0, network.kind_logs(vectors, legal[of_group])
        elif group == LABEL_GROUP:
            start, logs = labels, network.label_logs(vectors)
        elif group == TAG_GROUP:
            start, logs = tags, network.tag_logs(vectors)
        else:
            tag = group - WORD_GROUP
            start, logs = words + int(network.sizes.first[tag]), network.word_logs(vectors, tag)
        allowed = np.nonzero(logs > -np.inf)
        values.append(np.exp(logs[allowed]))
        rows.append(of_group[allowed[0]])
        columns.append(start + allowed[1])
    places = (np.concatenate(rows), np.concatenate(columns))
    return csr_matrix((np.concatenate(values), places), (len(groups), network.sizes.n_outputs))
