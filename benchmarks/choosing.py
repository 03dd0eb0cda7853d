"""Linear models, networks and both: accuracy, time, speed, size and calibration of dependency parsers.

    python benchmarks/choosing.py prepare FOLDER TREEBANK [TREEBANK ...] [--tags predicted]
    python benchmarks/choosing.py networks FOLDER NAME [...] [--seeds 0,1,2] [--device cuda] [--set epochs=60]
    python benchmarks/choosing.py networks FOLDER NAME [...] --folds 5 [--device cuda]
    python benchmarks/choosing.py table FOLDER TREEBANK [...] [--kinds 1,2,3,neural,both] [--part dev]
    python benchmarks/choosing.py speed FOLDER TREEBANK [...] --kinds neural [--part dev]

A TREEBANK is a path prefix such as DATA/ud/hu_szeged-ud, before -train.conllu, -dev.conllu and -test.conllu;
NAME is the last part of the prefix. `prepare` writes trees with lifted crossing arcs to FOLDER. `networks`
trains networks on them; it needs PyTorch but no compiled code, and can run on another machine with a GPU.
With --tags predicted, the trees have jackknifed tags. `table` makes parsers from these networks and from
linear models, and scores them on a part of the treebank. Existing files are not computed again.

Kinds are the orders of linear models; `neural` (a network alone); `both` (a network with the linear model of
order 3); and `several` and `several-both`, which average the networks of all seeds. Networks are combined
with the linear model of the first seed. Networks whose options differ from the defaults have a name, given by
--variant, which is also part of their kind, such as neural:vectors. With --folds, a network is trained for
each fold on the documents of the other folds, for `network_reranking.py`. `speed` parses three times with
parsers made by `table`, and prints the best rate and the peak memory of the process; use it with a single
kind, on an idle machine.
"""

import argparse
import json
import resource
import time
from pathlib import Path

import treewright as tw
from treewright.data.documents import deal_folds
from treewright.progress import messages_to
from treewright.tagging.tagger import jackknife

ORDERS = ("1", "2", "3")


def prepare(folder, treebanks, tags):
    """Write lifted trees."""
    for stem in treebanks:
        trees = {part: tw.read_conllu(f"{stem}-{part}.conllu") for part in ("train", "dev")}
        if tags == "predicted":
            tagger = tw.Tagger().fit(trees["train"])
            trees = {
                "train": jackknife(trees["train"], folds=5, tagger=tagger),
                "dev": tagger.predict(trees["dev"]),
            }
        for part, found in trees.items():
            lifted = [tw.projectivize(tree, scheme="path") for tree in found]
            tw.write_conllu(lifted, folder / f"{Path(stem).name}-{part}{suffix(tags)}.lifted.conllu")


def suffix(tags, variant=""):
    """Return what files of these tags and this variant have in their names."""
    return (".predicted" if tags == "predicted" else "") + (f".{variant}" if variant else "")


def train_networks(folder, names, seeds, device, tags, variant, options, folds=None):
    """Train a network for each treebank and seed, or fold, and note the seconds."""
    for name in names:
        train, dev = (
            tw.read_conllu(str(folder / f"{name}-{part}{suffix(tags)}.lifted.conllu"))
            for part in ("train", "dev")
        )
        for seed in seeds:
            path = folder / f"{name}.{seed}{suffix(tags, variant)}.network"
            if folds is None:
                train_network(path, train, dev, device, seed, options)
                continue
            for number, part in enumerate(deal_folds(train, folds, random_state=seed).parts):
                aside = set(part.tolist())
                rest = [tree for at, tree in enumerate(train) if at not in aside]
                train_network(path.with_suffix(f".fold{number}of{folds}"), rest, None, device, seed, options)


def train_network(path, train, dev, device, seed, options):
    """Train a network, unless it is there."""
    if path.exists():
        return
    begin = time.perf_counter()
    scorer = tw.NeuralScorer(device=device, random_state=seed, **options)
    with messages_to(lambda text: print(path.name, text, flush=True)):
        scorer.start(train, dev=dev)
    seconds = time.perf_counter() - begin
    scorer.save(path)
    note = {"seconds": round(seconds), "device": device, "options": options}
    path.with_name(path.name + ".json").write_text(json.dumps(note))


def load_network(folder, name, seed, seeds, tags, kind):
    """Return the network of a seed, or those of all seeds in one scorer."""
    kind, _, variant = kind.partition(":")
    wanted = seeds if kind.startswith("several") else [seed]
    found, *others = (tw.load(folder / f"{name}.{each}{suffix(tags, variant)}.network") for each in wanted)
    if others:
        found.networks = len(wanted)
        found.weights_ = [weights for each in (found, *others) for weights in each.weights_]
        found.restore()
    return found


def make_parser(folder, stem, kind, seed, seeds, tags):
    """Return a trained parser, the seconds of the training of all but its network, and its size."""
    name = Path(stem).name
    path = folder / f"{name}.{seed}{suffix(tags)}.{kind.replace(':', '-')}"
    note = path.with_name(path.name + ".json")
    if not path.exists():
        train, dev = (tw.read_conllu(f"{stem}-{part}.conllu") for part in ("train", "dev"))
        begin = time.perf_counter()
        with messages_to(lambda text: print(name, kind, seed, text, flush=True)):
            if kind in ORDERS:
                parser = tw.DependencyParser(order=int(kind), tags=tags, random_state=seed, n_jobs=2)
                parser.fit(train, dev)
            elif "both" in kind:
                linear = make_parser(folder, stem, "3", seeds[0], seeds, tags)[0]
                parser = linear.with_scorer(load_network(folder, name, seed, seeds, tags, kind), dev)
            else:
                network = load_network(folder, name, seed, seeds, tags, kind)
                parser = tw.DependencyParser(scorer=network, tags=tags, random_state=seed).fit(train, dev)
        parser.save(path)
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


def print_table(folder, treebanks, kinds, seeds, tags, part):
    """Print a row for each treebank, kind of parser and seed."""
    print(f"{'treebank':16} {'kind':14} seed    UAS    LAS  UAS(penn)  seconds  sentences/s       bytes  ECE")
    for stem in treebanks:
        gold = tw.read_conllu(f"{stem}-{part}.conllu")
        for kind in kinds:
            for seed in seeds[:1] if kind.startswith("several") else seeds:
                parser, seconds, size = make_parser(folder, stem, kind, seed, seeds, tags)
                score, penn, rate, error = describe(parser, gold)
                print(
                    f"{Path(stem).name:16} {kind:14} {seed:4} {score.uas:6.2f} {score.las:6.2f} {penn:10.2f} "
                    f"{seconds:8} {rate:12.0f} {size:11,}  {error:.4f}",
                    flush=True,
                )


def print_speed(folder, treebanks, kinds, seeds, tags, part):
    """Print sentences a second, the best of three passes, and the peak memory."""
    for stem in treebanks:
        gold = tw.read_conllu(f"{stem}-{part}.conllu")
        for kind in kinds:
            parser = make_parser(folder, stem, kind, seeds[0], seeds, tags)[0]
            parser.predict(gold[:100])
            seconds = []
            for _ in range(3):
                begin = time.perf_counter()
                parser.predict(gold)
                seconds.append(time.perf_counter() - begin)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(
                f"{Path(stem).name} {kind}: {len(gold) / min(seconds):.0f} sentences/s, {memory} MB",
                flush=True,
            )


def main():
    """Do what is asked for."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("task", choices=("prepare", "networks", "table", "speed"))
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("treebanks", nargs="+")
    arguments.add_argument("--kinds", default="1,2,3,neural,both")
    arguments.add_argument("--seeds", default="0")
    arguments.add_argument("--part", default="dev")
    arguments.add_argument("--tags", choices=("gold", "predicted"), default="gold")
    arguments.add_argument("--variant", default="")
    arguments.add_argument("--folds", type=int)
    arguments.add_argument("--device", default="auto")
    arguments.add_argument(
        "--set", nargs="*", default=[], help="parameters of NeuralScorer, such as epochs=60"
    )
    chosen = arguments.parse_args()
    chosen.folder.mkdir(exist_ok=True)
    seeds = [int(seed) for seed in chosen.seeds.split(",")]
    if chosen.task == "prepare":
        prepare(chosen.folder, chosen.treebanks, chosen.tags)
    elif chosen.task == "networks":
        options = {name: json.loads(value) for name, _, value in (each.partition("=") for each in chosen.set)}
        treebanks, variant = chosen.treebanks, chosen.variant
        train_networks(
            chosen.folder, treebanks, seeds, chosen.device, chosen.tags, variant, options, chosen.folds
        )
    else:
        show = print_table if chosen.task == "table" else print_speed
        show(chosen.folder, chosen.treebanks, chosen.kinds.split(","), seeds, chosen.tags, chosen.part)


if __name__ == "__main__":
    main()
