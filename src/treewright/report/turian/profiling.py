"""Time and memory of growing the trees of one label of a constituency parser."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treewright.errors import InputError
from treewright.learn.boosting import BoostedTrees
from treewright.learn.trees import TreeBuilder
from treewright.model import load_state, save_state
from treewright.native.learn.boosting import DecisionTree
from treewright.parsing.constituent.inferences import LabelExamples, TrainingSet
from treewright.parsing.constituent.parser import ConstituentParser
from treewright.parsing.constituent.training import MOST_TREES, make_learner
from treewright.progress import report, silenced
from treewright.report.separate_process import Values
from treewright.report.turian.bench import ConstituentBench, ParserSystem
from treewright.report.turian.sampling import (
    Uncached,
    UncachedBuilder,
    build_sampled,
    example_bytes,
    next_target,
    profile,
)

N_SAMPLED = 10
"""Number of trees built on samples; their average is compared with one tree built on all examples."""
N_LOOKED_AT = 20_000
"""Number of examples whose features are counted."""


def measure_label(
    bench: ConstituentBench,
    system: ParserSystem,
    *,
    label: str | None,
    penalty: float | None,
    n_trees: int,
    most_seconds: float,
) -> Values:
    """Grow the trees of a label down to a penalty, then build one more tree; return time, memory and sizes.

    By default, use the label with the most examples, and the penalty of the best parser.
    """
    lowest = bench.trained(system).best.penalty if penalty is None else penalty

    def measure() -> Values:
        with silenced():
            training = bench.make_parser(system).make_training(bench.sentences(system.max_length).train)
        number = choose_label(training, label)
        examples = training.examples(number)
        report(
            f"{training.names[number]}: {examples.n_examples:,} examples, down to a penalty of {lowest:.3g}"
        )
        path = bench.store.path("ensembles", f"{bench.name(system, 'ensemble', number, lowest)}.tw")
        ensemble = _grown(path, bench.make_parser(system), examples, lowest)
        return {
            "label": training.names[number],
            "penalty": lowest,
            "shared_bytes": shared_bytes(training),
            "ensemble": describe_ensemble(ensemble, examples.signs),
            **profile_trees(ensemble, n_trees),
            **compare_trees(ensemble, examples, most_seconds=most_seconds),
            **measure_memory(ensemble, examples),
        }

    return bench.store.find(bench.name(system, "profile", label, lowest, n_trees, most_seconds), measure)


def _grown(path: Path, parser: ConstituentParser, examples: LabelExamples, penalty: float) -> BoostedTrees:
    """Return an ensemble that has converged at a penalty; it is stored in a file."""
    if path.exists():
        return BoostedTrees.from_state(load_state(path), examples, examples.signs, biases=examples.biases)
    ensemble = make_ensemble(parser, examples)
    ensemble.grow_to(penalty, max_trees=MOST_TREES)
    save_state(ensemble.get_state(), path)
    return ensemble


def choose_label(training: TrainingSet, wanted: str | None) -> int:
    """Return the index of a label, by default the label with the most examples."""
    if wanted is None:
        return max(range(training.n_classifiers), key=lambda label: training.examples(label).n_examples)
    if wanted not in training.names:
        raise InputError(f"label is {wanted!r}; expected one of {', '.join(training.names)}")
    return training.names.index(wanted)


def make_ensemble(parser: ConstituentParser, examples: LabelExamples) -> BoostedTrees:
    """Return an empty ensemble with the options of the parser."""
    return make_learner(
        examples,
        eta=parser.eta,
        sample_size=parser.sample_size,
        min_gain=parser.min_gain,
        slack=parser.slack,
        prune=parser.prune,
        random_state=parser.random_state,
    )


def profile_trees(ensemble: BoostedTrees, n_trees: int) -> Values:
    """Return the time of each step for the last trees that were built on samples."""
    # After a misleading sample, the next tree is a stump on all examples, which loses no weight.
    records = [each for each in ensemble.records if each.lost > 0 or not ensemble.is_sampled][-n_trees:]
    if not records:
        raise InputError("no tree was built on a sample; choose a lower penalty, or train on more sentences")
    return {
        "profile": {name: list(cost) for name, cost in profile(records).items()},
        "n_profiled": len(records),
        "n_leaves": float(np.mean([record.n_leaves for record in records])),
    }


def describe_ensemble(ensemble: BoostedTrees, signs: npt.NDArray[np.int8]) -> Values:
    """Return the numbers of section 4.2 about the trees, their leaves, and the margins of examples.

    Leaves are counted before splits are undone. A list of two numbers is a mean and a standard deviation.
    """
    leaves = [leaf for tree in ensemble.trees for leaf in list_leaves(tree)]
    n_questions = sum(leaf.n_questions for leaf in leaves)
    margins = ensemble.confidences * signs
    return {
        "n_trees": len(ensemble.records),
        "n_leaves": sum(record.n_leaves for record in ensemble.records),
        "n_nonzero": len(leaves),
        "depth": _describe([leaf.n_questions for leaf in leaves]),
        "negated": sum(leaf.n_negated for leaf in leaves) / max(1, n_questions),
        "only_negated": sum(leaf.n_negated == leaf.n_questions for leaf in leaves) / max(1, len(leaves)),
        "confidence": _describe([abs(leaf.value) for leaf in leaves]),
        "right_margin": _describe(margins[signs > 0]),
        "wrong_margin": _describe(margins[signs < 0]),
    }


def _describe(values: npt.ArrayLike) -> list[float]:
    """Return the mean and the standard deviation; zeros if there are no values."""
    numbers = np.asarray(values, dtype=np.float64)
    return [float(numbers.mean()), float(numbers.std())] if len(numbers) else [0.0, 0.0]


class Leaf(NamedTuple):
    """A leaf of a tree: the number of questions on its path, how many are negated, and its value."""

    n_questions: int
    n_negated: int
    value: float


def list_leaves(tree: DecisionTree) -> list[Leaf]:
    """Return the non-zero leaves of a tree."""
    found, waiting = [], [(0, 0, 0)]
    while waiting:
        node, n_questions, n_negated = waiting.pop()
        if tree.features[node] >= 0:
            waiting.append((int(tree.present[node]), n_questions + 1, n_negated))
            waiting.append((int(tree.absent[node]), n_questions + 1, n_negated + 1))
        elif tree.values[node]:
            found.append(Leaf(n_questions, n_negated, float(tree.values[node])))
    return found


def compare_trees(
    ensemble: BoostedTrees,
    examples: LabelExamples,
    *,
    most_seconds: float = float("inf"),
) -> Values:
    """Build the next tree of an ensemble on several samples, and on all examples without stored features."""
    target = next_target(ensemble, examples.signs, examples.biases)
    size = min(ensemble.sample_size or examples.n_examples, examples.n_examples)
    builder = TreeBuilder(examples.n_features)
    # The first run allocates memory that the others reuse.
    trees = [
        build_sampled(
            examples,
            target,
            builder,
            size=size,
            random_state=(ensemble.random_state, len(ensemble.records), at),
        )
        for at in range(N_SAMPLED + 1)
    ][1:]
    whole = UncachedBuilder(examples, target, most_seconds=most_seconds).build()
    sampled = float(np.mean([tree.seconds for tree in trees]))
    report(_summary(whole, sampled))
    return {
        "n_examples": examples.n_examples,
        "sample_size": size,
        "next_penalty": target.limits.penalty,
        "n_splits": len(whole.tree.features) // 2,
        "extractions": whole.n_extracted / examples.n_examples,
        "uncached": whole.seconds,
        "uncached_extraction": whole.extraction,
        "is_whole": whole.is_whole,
        "n_sampled": len(trees),
        "sampled": sampled,
        "sampled_splits": float(np.mean([len(tree.tree.features) // 2 for tree in trees])),
        "speed_up": whole.seconds / sampled,
    }


def _summary(whole: Uncached, sampled: float) -> str:
    return (
        f"a tree on all examples takes {whole.seconds:.2f} s (extraction {whole.extraction:.2f} s), "
        f"a tree on a sample {sampled:.4f} s, which is {whole.seconds / sampled:.1f} times faster"
    )


def measure_memory(ensemble: BoostedTrees, examples: LabelExamples) -> Values:
    """Return the number of features per example, and the bytes that are stored in their place."""
    step = max(1, examples.n_examples // N_LOOKED_AT)
    indptr, columns = examples.extract(np.arange(0, examples.n_examples, step))
    n_features = float(len(columns) / (len(indptr) - 1))
    return {
        "n_features": n_features,
        "direct_bytes": columns.itemsize * n_features,
        "bytes": example_bytes(examples.n_examples, examples, ensemble) / examples.n_examples,
    }


def shared_bytes(training: TrainingSet) -> int:
    """Return the bytes of cuts, items and positions of inferences, which all labels share."""
    groups = (training.items, training.cuts, training.inferences)
    return sum(each.nbytes for group in groups for each in group)
