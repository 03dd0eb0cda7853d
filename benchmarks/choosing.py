"""Linear models, networks and both: accuracy, time, speed, size and calibration of dependency parsers.

    python benchmarks/choosing.py prepare FOLDER TREEBANK [TREEBANK ...]
    python benchmarks/choosing.py networks FOLDER NAME [...] [--seeds 0,1,2] [--device cuda] [--set epochs=60]
    python benchmarks/choosing.py table FOLDER TREEBANK [...] [--kinds 1,2,3,neural,both] [--part dev]

A TREEBANK is the beginning of file names, as DATA/ud/hu_szeged-ud, before -train.conllu, -dev.conllu and
-test.conllu; NAME is its last part. `prepare` writes trees with crossing arcs lifted to FOLDER, of which
`networks` trains networks: it needs PyTorch but no compiled code, and may run on another machine with a GPU.
`table` makes parsers of these networks and of linear models, and scores a part of the treebank. What is there
already is not made again.
"""

import argparse
import json
import time
from pathlib import Path

import treewright as tw
from treewright.progress import messages_to

ORDERS = ("1", "2", "3")


def prepare(folder, treebanks):
    """Write lifted trees."""
    for stem in treebanks:
        for part in ("train", "dev"):
            trees = [tw.projectivize(tree, scheme="path") for tree in tw.read_conllu(f"{stem}-{part}.conllu")]
            tw.write_conllu(trees, folder / f"{Path(stem).name}-{part}.lifted.conllu")


def train_networks(folder, names, seeds, device, options):
    """Train a network for each treebank and seed, and note the seconds."""
    from treewright.parsing.neural.scorer import NeuralScorer

    for name in names:
        train, dev = (
            tw.read_conllu(str(folder / f"{name}-{part}.lifted.conllu")) for part in ("train", "dev")
        )
        for seed in seeds:
            path = folder / f"{name}.{seed}.network"
            if path.exists():
                continue
            begin = time.perf_counter()
            scorer = NeuralScorer(device=device, random_state=seed, **options)
            with messages_to(lambda text, name=name, seed=seed: print(name, seed, text, flush=True)):
                scorer.start(train, dev=dev)
            seconds = time.perf_counter() - begin
            scorer.save(path)
            note = {"seconds": round(seconds), "device": device, "options": options}
            path.with_suffix(".json").write_text(json.dumps(note))


def make_parser(folder, stem, kind, seed):
    """Return a trained parser, and the seconds of the training of all but its network."""
    path = folder / f"{Path(stem).name}.{seed}.{kind}"
    note = path.with_suffix(f".{kind}.json")
    if not path.exists():
        train, dev = (tw.read_conllu(f"{stem}-{part}.conllu") for part in ("train", "dev"))
        if kind in ORDERS:
            parser = tw.DependencyParser(order=int(kind), random_state=seed)
        else:
            scorer = tw.load(folder / f"{Path(stem).name}.{seed}.network")
            combine = "sum" if kind == "both" else None
            parser = tw.DependencyParser(scorer=scorer, combine=combine, random_state=seed)
        begin = time.perf_counter()
        with messages_to(lambda text: print(Path(stem).name, kind, seed, text, flush=True)):
            parser.fit(train, dev).save(path)
        note.write_text(json.dumps({"seconds": round(time.perf_counter() - begin)}))
    return tw.load(path), json.loads(note.read_text())["seconds"], path.stat().st_size


def describe(parser, gold):
    """Return scores, sentences a second and calibration error."""
    parser.predict(gold[:50])
    begin = time.perf_counter()
    parsed = parser.predict(gold)
    rate = len(gold) / (time.perf_counter() - begin)
    confident = [
        tree.with_misc([f"Confidence={one:.4f}" for one in parser.confidence(tree, marginals)])
        for tree, marginals in zip(parsed, parser.marginals(gold), strict=True)
    ]
    error = tw.metrics.calibration(gold, confident).error
    penn = tw.metrics.attachment(gold, parsed, punctuation="penn").uas
    return tw.metrics.attachment(gold, parsed), penn, rate, error


def print_table(folder, treebanks, kinds, seeds, part):
    """Print a row for each treebank, kind of parser and seed."""
    print(f"{'treebank':16} {'kind':8} seed    UAS    LAS  UAS(penn)  seconds  sentences/s       bytes  ECE")
    for stem in treebanks:
        gold = tw.read_conllu(f"{stem}-{part}.conllu")
        for kind in kinds:
            for seed in seeds:
                parser, seconds, size = make_parser(folder, stem, kind, seed)
                score, penn, rate, error = describe(parser, gold)
                print(
                    f"{Path(stem).name:16} {kind:8} {seed:4} {score.uas:6.2f} {score.las:6.2f} {penn:10.2f} "
                    f"{seconds:8} {rate:12.0f} {size:11,}  {error:.4f}",
                    flush=True,
                )


def main():
    """Do what is asked for."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("task", choices=("prepare", "networks", "table"))
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("treebanks", nargs="+")
    arguments.add_argument("--kinds", default="1,2,3,neural,both")
    arguments.add_argument("--seeds", default="0")
    arguments.add_argument("--part", default="dev")
    arguments.add_argument("--device", default="auto")
    arguments.add_argument("--set", nargs="*", default=[], help="parameters of NeuralScorer, as epochs=60")
    chosen = arguments.parse_args()
    chosen.folder.mkdir(exist_ok=True)
    seeds = [int(seed) for seed in chosen.seeds.split(",")]
    if chosen.task == "prepare":
        prepare(chosen.folder, chosen.treebanks)
    elif chosen.task == "networks":
        options = {name: json.loads(value) for name, _, value in (each.partition("=") for each in chosen.set)}
        train_networks(chosen.folder, chosen.treebanks, seeds, chosen.device, options)
    else:
        print_table(chosen.folder, chosen.treebanks, chosen.kinds.split(","), seeds, chosen.part)


if __name__ == "__main__":
    main()
