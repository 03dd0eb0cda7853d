"""Gains of mined features on many treebanks, and whether a parser would use them.

    python benchmarks/mined_treebanks.py TREEBANK [TREEBANK ...] [--order 3] [--runs 1] [--jobs 2]

A TREEBANK is a path prefix such as DATA/ud/hu_szeged-ud, before -train.conllu, -dev.conllu and -test.conllu.
`DependencyParser(mine=True)` is trained with gold tags. It is compared with the same parser without mined
features: the best trees of its linear model, and the trees with the most expected correct heads ("by heads").
By default, mined features are used if their gain on dev is significant at 0.05; the last column says so. UAS
includes punctuation; p-values are those of approximate randomisation.
"""

import argparse
from pathlib import Path

import treewright as tw
from treewright.metrics.significance import significance
from treewright.parsing.dependency.mined import MinedScorer
from treewright.parsing.dependency.training import ParserTrainer

COLUMNS = (
    *("treebank", "sentences", "features", "dev UAS", "mined, dev"),
    *("test UAS", "by heads, test", "mined, test", "used"),
)
LEVEL = 0.05


def read(stem, part):
    """Return the trees of a part that have words; an empty list if there is no such file."""
    path = Path(f"{stem}-{part}.conllu")
    return [tree for tree in tw.read_conllu(path) if len(tree)] if path.exists() else []


def without_mined(parser, dev):
    """Return the same parser without mined features, with its probabilities calibrated again."""
    assert isinstance(parser.scorer_, MinedScorer)
    plain = parser.with_params(mine=False, predict_by="score")
    learnt = parser._all_learnt._replace(scorer=parser.scorer_.linear)
    if dev:
        learnt = learnt._replace(scale=ParserTrainer(plain)._calibrate(learnt, dev))
    return plain.with_learnt(learnt)


def show(gain):
    """Return a gain as text."""
    return f"{gain.difference:+.2f} (p = {gain.p_value:.4f})"


def main():
    """Print a row for each treebank."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("treebanks", nargs="+")
    arguments.add_argument("--order", type=int, default=3)
    arguments.add_argument("--runs", type=int, default=1)
    arguments.add_argument("--jobs", type=int, default=2)
    options = arguments.parse_args()
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}")
    for stem in options.treebanks:
        train, dev, test = (read(stem, part) for part in ("train", "dev", "test"))
        parser = tw.DependencyParser(
            order=options.order, runs=options.runs, mine=True, mining_significance=None, n_jobs=options.jobs
        ).fit(train, dev or None)
        plain = without_mined(parser, dev)
        by_heads = plain.using(predict_by="heads")
        cells = [Path(stem).name, len(train), f"{len(parser.mined_features_):,}"]
        is_used = "held-out sentences decide"
        if dev:
            before = plain.predict(dev)
            gain = significance(dev, parser.predict(dev), before)
            is_used = "yes" if gain.difference > 0 and gain.p_value < LEVEL else "no"
            cells += [f"{tw.metrics.attachment(dev, before).uas:.2f}", show(gain)]
        else:
            cells += ["", ""]
        before = plain.predict(test)
        cells += [
            f"{tw.metrics.attachment(test, before).uas:.2f}",
            show(significance(test, by_heads.predict(test), before)),
            show(significance(test, parser.predict(test), before)),
            is_used,
        ]
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
