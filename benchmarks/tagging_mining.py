"""Feature templates mined from the errors of the tagger, added to its own templates.

    python benchmarks/tagging_mining.py --train TRAIN --dev DEV [--folds 5] [--threshold 5] [--jobs 1]

The training sentences are tagged by jackknifing. Each word with a wrong UPOS is a violating sample. Its atoms
are the word, its neighbours, their endings, shapes and classes, and the two predicted tags before it; #f+
counts them for the gold tag and #f- for the predicted tag. Conjunctions of up to three atoms whose gradient
exceeds the threshold are mined (Algorithm 1, one round from the trained tagger) and grouped by the kinds of
their atoms. The groups with the largest sums of gradients that are not templates yet become templates of a
new tagger, which is trained as usual. Prints the accuracy on the dev sentences for several numbers of
templates.
"""

import argparse
import time
from collections import Counter

import numpy as np
from scipy.sparse import csr_matrix

import treewright as tw
from treewright.mining.polynomial import PolynomialSpace
from treewright.mining.space import Violations
from treewright.tagging.classifier import WordClassifier, compile_templates
from treewright.tagging.tagger import FIXED_TEMPLATES, MOVING_TEMPLATES, jackknife, label_pieces

ATOMS = [
    "w.lower",
    "w-1.lower",
    "w+1.lower",
    "w-2.lower",
    "w+2.lower",
    "w.suffix2",
    "w.suffix3",
    "w-1.suffix3",
    "w+1.suffix3",
    "w.shape",
    "w-1.shape",
    "w+1.shape",
    "w.class",
    "w-1.class",
    "w+1.class",
    "w-1.tag",
    "w-2.tag",
]
DEGREE = 3
CHOICES = [("with a tag", 4), ("with a tag", 8), ("any", 8), ("any", 20)]
"""Which templates are added, and how many."""


class MinedTagger(tw.Tagger):
    """A tagger with further templates."""

    def __init__(self, *, templates=(), epochs=8, random_state=0):
        super().__init__(epochs=epochs, random_state=random_state)
        self.templates = templates

    def _make_classifier(self):
        moving = [each for each in self.templates if ".tag" in each]
        fixed = [each for each in self.templates if each not in moving]
        return WordClassifier(
            "\n".join([FIXED_TEMPLATES, *fixed]),
            "\n".join([MOVING_TEMPLATES, *moving]),
            label_pieces(self.labels_),
        )


def without_lemmas(trees):
    """Return trees whose lemmas are not learnt, which takes time."""
    return [
        tree.with_tags(upos=tree.upos, xpos=tree.xpos, feats=tree.feats, lemmas=["_"] * len(tree))
        for tree in trees
    ]


def find_errors(trees, predicted, tagger):
    """Return the atoms of wrong words as a binary matrix, the atom of each column, and the violations."""
    known = {label: number for number, label in enumerate(tagger.labels_)}
    labels = [
        known.get(label, 0)
        for tree in predicted
        for label in zip(tree.upos, tree.xpos, tree.feats, strict=True)
    ]
    text = tagger._encode([tree.words for tree in trees])
    keys = WordClassifier._keys(compile_templates("\n".join(ATOMS)), text, np.array(labels, dtype=np.int32))
    gold, found = ([tag for tree in each for tag in tree.upos] for each in (trees, predicted))
    tags = sorted({*gold, *found})
    wrong = [at for at, (right, other) in enumerate(zip(gold, found, strict=True)) if right != other]
    counters = [[2 * tags.index(gold[at]), 2 * tags.index(found[at]) + 1] for at in wrong]
    values = keys[wrong].astype(np.int64) + (np.arange(len(ATOMS)) << 32)
    columns, items = np.unique(values, return_inverse=True)
    indptr = np.arange(len(wrong) + 1) * len(ATOMS)
    shape = (len(wrong), len(columns))
    rows = csr_matrix((np.ones(items.size, dtype=np.int8), items.ravel(), indptr), shape=shape)
    rows.sort_indices()
    print(f"{len(wrong):,} of {len(gold):,} words are wrong", flush=True)
    forms = [word.lower() for tree in trees for word in tree.words]
    counts = Counter(zip(forms, gold, strict=True))
    totals = Counter(forms)
    n_new = sum(totals[forms[at]] == 1 for at in wrong)
    n_other = sum(counts[forms[at], gold[at]] == 1 < totals[forms[at]] for at in wrong)
    print(f"of these, {n_new:,} occur once; {n_other:,} occur elsewhere, but never with this tag", flush=True)
    violations = Violations(np.arange(len(wrong)), np.array(counters, dtype=np.int32), 2 * len(tags))
    return rows, columns >> 32, violations


def mine_templates(rows, atoms, violations, threshold):
    """Return new templates, the sum of their gradients the largest first."""
    search = PolynomialSpace(rows).search(violations, threshold, DEGREE)
    known = {
        tuple(sorted(line.split())) for line in (FIXED_TEMPLATES + MOVING_TEMPLATES).splitlines() if line
    }
    sums = {}
    for order in range(1, DEGREE + 1):
        n_found = 0
        for growth in search.grow():
            gradients = np.abs(growth.counts[:, ::2] - growth.counts[:, 1::2]).max(axis=1, initial=0)
            enters = gradients > threshold
            n_found += int(enters.sum())
            pairs = zip(growth.features[enters], gradients[enters].tolist(), strict=True)
            for feature, gradient in pairs:
                template = " ".join(ATOMS[atom] for atom in sorted(atoms[feature]))
                if order > 1 and tuple(sorted(template.split())) not in known:
                    sums[template] = sums.get(template, 0) + gradient
        print(f"order {order}: {n_found:,} features have a gradient above {threshold:g}", flush=True)
    search.close()
    return sorted(sums, key=lambda template: (-sums[template], template))


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--train", required=True)
    parser.add_argument("--dev", required=True)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--threshold", type=float, default=5.0)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    train, dev = without_lemmas(tw.read_conllu(arguments.train)), tw.read_conllu(arguments.dev)
    plain = tw.Tagger().fit(train)
    print(f"no mined templates: {plain.score(dev)}", flush=True)
    predicted = jackknife(train, folds=arguments.folds, n_jobs=arguments.jobs)
    templates = mine_templates(*find_errors(train, predicted, plain), arguments.threshold)
    print("| templates | added | UPOS | all tags | seconds |\n| --- | --- | --- | --- | --- |")
    for kind, n_added in CHOICES:
        own = [each for each in templates if kind == "any" or ".tag" in each][:n_added]
        begin = time.perf_counter()
        score = MinedTagger(templates=own).fit(train).score(dev)
        seconds = time.perf_counter() - begin
        print(f"| {kind} | {n_added} | {score.upos:.2f} | {score.all_tags:.2f} | {seconds:.0f} |", flush=True)
        print("<!--", "; ".join(own), "-->", flush=True)


if __name__ == "__main__":
    main()
