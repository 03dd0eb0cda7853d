"""Accuracy of head rules and of pseudo-projective lifting on real treebanks.

python benchmarks/transforms.py $TREEWRIGHT_DATA
"""

import sys
from pathlib import Path

import numpy as np

import treewright as tw
from treewright.data.heads import RULES
from treewright.data.projective import SCHEMES


def report_heads(folder):
    """Print the agreement of head rules with the outside conversion, and every disagreement's cause."""
    print("Head rules: words of the Penn sample whose head is that of wsj-*.dep.conllu")
    for rules in RULES:
        n_same = n_words = 0
        for path in sorted(folder.glob("wsj-*.dep.conllu")):
            gold = tw.read_conllu(path)
            trees = tw.read_brackets(path.with_name(path.name.replace(".dep.conllu", ".mrg")))
            for right, tree in zip(gold, trees, strict=True):
                n_same += int((tw.to_dependencies(tree, rules=rules).heads == right.heads).sum())
                n_words += len(right)
        print(f"  {rules:<18}{n_same} of {n_words} ({100 * n_same / n_words:.3f}%)")


def lifted_and_restored(trees, scheme):
    """Count the lifted arcs, and those restored exactly with gold relations."""
    n_lifted = n_restored = n_wrong = 0
    for tree in trees:
        lifted = tw.projectivize(tree, scheme=scheme)
        restored = tw.deprojectivize(lifted)
        moved = lifted.heads != tree.heads
        right = restored.heads == tree.heads
        n_lifted += int(moved.sum())
        n_restored += int(np.count_nonzero(moved & right))
        n_wrong += int(np.count_nonzero(~right))
    return n_lifted, n_restored, n_wrong


def report_lifting(paths):
    """Print, for each treebank and scheme, the share of lifted arcs that come back."""
    print(
        "Pseudo-projective lifting: share of lifted arcs restored exactly; share of all arcs right at the end"
    )
    print(f"  {'file':<32}{'crossing':>9}{'lifted':>7}" + "".join(f"{scheme:>18}" for scheme in SCHEMES))
    for path in paths:
        trees = tw.read_conllu(path)
        n_words = sum(map(len, trees))
        n_crossing = sum(not tw.is_projective(tree) for tree in trees)
        cells = ""
        for scheme in SCHEMES:
            n_lifted, n_restored, n_wrong = lifted_and_restored(trees, scheme)
            share = 100 * n_restored / n_lifted if n_lifted else 100.0
            cells += f"{share:>9.2f}{100 - 100 * n_wrong / n_words:>9.3f}"
        print(f"  {path.name:<32}{100 * n_crossing / len(trees):>8.1f}%{n_lifted:>7}{cells}")


def main(folder):
    """Print both reports."""
    folder = Path(folder)
    report_heads(folder / "wsj_sample")
    report_lifting(
        sorted([*folder.glob("ud/*.conllu"), *folder.glob("ewt/*.conllu"), *folder.glob("conll2007/*")])
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
