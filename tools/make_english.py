"""Make the English model of the package again.

    python tools/make_english.py FOLDER

FOLDER has the files of UD_English-EWT; their checksums are compared with those of the files that the model
was trained on. The pipeline is trained with its defaults and seed 0, scored on dev from raw text, whole and
compact, and written to ``src/treewright/models/en.tw``.
"""

import hashlib
import sys
import tempfile
from pathlib import Path

import treewright as tw

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from raw_text import SHOWN, make_text

TARGET = Path(__file__).parents[1] / "src" / "treewright" / "models" / "en.tw"
FILES = {
    "en_ewt-ud-train.conllu": "d2d7f36676cd68a65be677634b7de36bd44c8b2b1d4d42482ad7095bcb46b65e",
    "en_ewt-ud-dev.conllu": "a3f8840734856c3246eb962d9e0853141c84f06944a3978c5b2757923b987e1d",
}
MAX_SIZE = 10_000_000


def main():
    """Train, score and write the model."""
    paths = [Path(sys.argv[1]) / name for name in FILES]
    for path in paths:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != FILES[path.name]:
            print(f"{path} has the SHA-256 {found}; the model was trained on {FILES[path.name]}")
    train, dev = map(tw.read_conllu, paths)
    nlp = tw.Pipeline().fit(train, dev)
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.tw"
        nlp.save(whole)
        nlp.save(TARGET, compact=True)
        print(f"{'':8} {'bytes':>10} " + " ".join(f"{name:>9}" for name in SHOWN))
        for name, path in {"whole": whole, "compact": TARGET}.items():
            scores = tw.metrics.conll2018(dev, list(tw.load(path)(make_text(dev, documents=True))))
            figures = " ".join(f"{getattr(scores, each).f1:9.2f}" for each in SHOWN)
            print(f"{name:8} {path.stat().st_size:10,} {figures}")
    if TARGET.stat().st_size > MAX_SIZE:
        sys.exit(f"{TARGET} has more than {MAX_SIZE:,} bytes")
    print(f"SHA-256 {hashlib.sha256(TARGET.read_bytes()).hexdigest()}")


if __name__ == "__main__":
    main()
