"""Coverage-guided fuzzing of the readers with atheris (`pip install atheris`; Linux and macOS).

    python benchmarks/atheris_readers.py FOLDER -runs=100000 -max_len=4096

Valid texts are written to the folder as initial inputs; inputs that reach new code are added to it. Other
options are those of libFuzzer. The first byte of an input chooses the reader. Any exception other than those
that readers may raise is a defect.
"""

import logging
import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

with atheris.instrument_imports(include=["treewright.data", "treewright.kernels.files"]):
    import fuzz_readers


class ReaderDefectError(Exception):
    """A reader has neither read nor refused."""


def read_one(data):
    """Let one of the readers read."""
    if data:
        name = fuzz_readers.NAMES[data[0] % len(fuzz_readers.NAMES)]
        outcome = fuzz_readers.judge(name, data[1:])
        if outcome not in ("value", "refused"):
            raise ReaderDefectError(f"{name}: {outcome}")


def write_seeds(folder):
    """Write sound texts, each for the readers of its format."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        texts = fuzz_readers.make_seeds(place)
    for number, (_, kind) in enumerate(fuzz_readers.READERS.values()):
        for at, text in enumerate(texts[kind] if kind else []):
            (folder / f"seed-{number}-{at}").write_bytes(bytes([number]) + text)


def main():
    """Fuzz until a defect is found or the runs are over."""
    logging.disable()
    write_seeds(Path(sys.argv[1]))
    atheris.Setup(sys.argv, read_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
