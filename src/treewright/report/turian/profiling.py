"""What growing the trees of one label of a constituency parser costs, in time and memory."""

from pathlib import Path

import numpy as np

from treewright.errors import InputError
from treewright.learn.boosting import BoostedTrees
from treewright.learn.trees import TreeBuilder
from treewright.model import load_state, save_state
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
"""Trees on samples whose mean time stands against that of one tree on all examples."""
N_LOOKED_AT = 20_000
"""Examples whose features are counted."""


def measure_label(
    bench: ConstituentBench,
    system: ParserSystem,
    *,
    label: str | None,
    penalty: float | None,
    n_trees: int,
    most_seconds: float,
) -> Values:
    """Grow the trees of a label down to a penalty, and return what that and one more tree take.

    Without a label, it is that with the most examples; without a penalty, that of the best parser.
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
            **profile_trees(ensemble, n_trees),
            **compare_trees(ensemble, examples, most_seconds=most_seconds),
            **measure_memory(ensemble, examples),
        }

    return bench.store.find(bench.name(system, "profile", label, lowest, n_trees, most_seconds), measure)


def _grown(path: Path, parser: ConstituentParser, examples: LabelExamples, penalty: float) -> BoostedTrees:
    """Return an ensemble that nothing can be added to under a penalty; it is kept in a file."""
    if path.exists():
        return BoostedTrees.from_state(load_state(path), examples, examples.signs, biases=examples.biases)
    ensemble = make_ensemble(parser, examples)
    ensemble.grow_to(penalty, max_trees=MOST_TREES)
    save_state(ensemble.get_state(), path)
    return ensemble


def choose_label(training: TrainingSet, wanted: str | None) -> int:
    """Return the number of a label, or of that with the most examples."""
    if wanted is None:
        return max(range(training.n_classifiers), key=lambda label: training.examples(label).n_examples)
    if wanted not in training.names:
        raise InputError(f"label is {wanted!r}; expected one of {', '.join(training.names)}")
    return training.names.index(wanted)


def make_ensemble(parser: ConstituentParser, examples: LabelExamples) -> BoostedTrees:
    """Return an ensemble without trees, as the parser would grow it."""
    return make_learner(
        examples,
        eta=parser.eta,
        sample_size=parser.sample_size,
        min_gain=parser.min_gain,
        slack=parser.slack,
        random_state=parser.random_state,
    )


def profile_trees(ensemble: BoostedTrees, n_trees: int) -> Values:
    """Return what the last trees took that were built on samples, step by step."""
    # Where a sample has misled, the next tree is a stump of all examples, which lacks nothing.
    records = [each for each in ensemble.records if each.lost > 0 or not ensemble.is_sampled][-n_trees:]
    if not records:
        raise InputError("no tree was built on a sample; expected a lower penalty or more sentences")
    return {
        "profile": {name: list(cost) for name, cost in profile(records).items()},
        "n_profiled": len(records),
        "n_leaves": float(np.mean([record.n_leaves for record in records])),
    }


def compare_trees(
    ensemble: BoostedTrees,
    examples: LabelExamples,
    *,
    most_seconds: float = float("inf"),
) -> Values:
    """Build the next tree of an ensemble on samples, and once on all examples without keeping features."""
    target = next_target(ensemble, examples.signs, examples.biases)
    size = min(ensemble.sample_size or examples.n_examples, examples.n_examples)
    builder = TreeBuilder(examples.n_features)
    # The first takes memory that the others use again.
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
        f"a tree on all examples {whole.seconds:.2f} s, of which extraction {whole.extraction:.2f} s, "
        f"on a sample {sampled:.4f} s: {whole.seconds / sampled:.1f} times faster"
    )


def measure_memory(ensemble: BoostedTrees, examples: LabelExamples) -> Values:
    """Return how many features an example has, and how many bytes are kept for it instead of them."""
    step = max(1, examples.n_examples // N_LOOKED_AT)
    indptr, columns = examples.extract(np.arange(0, examples.n_examples, step))
    n_features = float(len(columns) / (len(indptr) - 1))
    return {
        "n_features": n_features,
        "direct_bytes": columns.itemsize * n_features,
        "bytes": example_bytes(examples.n_examples, examples, ensemble) / examples.n_examples,
    }


def shared_bytes(training: TrainingSet) -> int:
    """Return the bytes of cuts, items and places of inferences, which serve all labels."""
    groups = (training.items, training.cuts, training.inferences)
    return sum(each.nbytes for group in groups for each in group)
