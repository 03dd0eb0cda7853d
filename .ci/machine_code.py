"""Put machine code into a wheel, so that its first use does not wait for a compiler.

    PYTHON .ci/machine_code.py dist/treewright-VERSION-py3-none-any.whl

PYTHON is the interpreter of an environment in which that wheel is installed, and the package `wheel`. All of
CALLS are made once; the code that is compiled meanwhile, for the processors of TARGETS, goes into a second
wheel beside the first one. It is used with the same versions of Python, Numba and llvmlite, on processors
that have all that the code needs; elsewhere that wheel compiles as the first one does
(`treewright.native.code_cache`).
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np

TARGETS = {
    "x86_64": (
        "x86-64-v3",
        ["sse4.2", "popcnt", "cx16", "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"],
    )
}
"""By machine: a kind of processor as LLVM calls it, and what it must be able to do (x86: since 2013)."""
PLATFORM = "manylinux_2_28"
BINARY = {"degree": 2, "threshold": 2}
FAST = {"epochs": 1, "runs": 1, "table_bits": 14}


def call_parsers() -> None:
    """Train and use parsers of all orders and both decoders, with taggers."""
    import treewright as tw

    trees = tw.make_treebank(40).dependencies
    kinds = [
        {"order": 1},
        {"order": 2},
        {"order": 3, "tags": "predicted"},
        {"order": 1, "decoder": "spanning"},
    ]
    for kind in kinds:
        parser = tw.DependencyParser(**kind, **FAST).fit(trees, trees[:5])
        parser.predict(trees[:5])
        parser.kbest(trees[:5], k=2)
        parser.marginals(trees[:5])
    tw.projectivize(tw.DepTree(["a", "b", "c", "d"], [3, 4, 0, 3]))


def call_pipeline() -> None:
    """Parse text with the English model of the package."""
    import treewright as tw

    tw.load("en")("The old gardener saw a heron. It flew away.")


def call_demo() -> None:
    """Train and use a reranker."""
    from treewright.cli import app

    with tempfile.TemporaryDirectory() as folder:
        app(["demo", "--sentences", "60", "--out", folder], standalone_mode=False)


def call_mining() -> None:
    """Mine conjunctions for two classes, for three with a filter, and with an automatic threshold."""
    import treewright as tw

    samples = (np.random.default_rng(0).random((60, 6)) < 0.5).astype(int)
    for n_classes, memory in ((2, None), (3, 1024)):
        labels = samples[:, :n_classes].argmax(axis=1)
        tw.ConjunctionMiner(**BINARY, filter_memory=memory).fit(samples, labels).transform(samples)
        tw.ConjunctionClassifier(**BINARY, filter_memory=memory).fit(samples, labels).predict(samples)
        tw.ConjunctionClassifier().fit(samples, labels).predict(samples)
    tw.ConjunctionRegressor().fit(samples, samples.sum(axis=1)).predict(samples)
    tw.ConjunctionClassifier().fit([[0, 1], [1, 1], [1, 0]], [0, 1, 1])
    for labels in ([0, 1, 1], [0, 1, 2]):
        tw.StringFeatureClassifier().fit(["a b", "b a", "c"], labels).predict(["a b"])


def call_kernels() -> None:
    """Compare trees by all kernels, and classify them."""
    import treewright as tw

    bank = tw.make_treebank(12)
    labels = np.arange(12) % 2
    kernels = [
        tw.SubtreeKernel(),
        tw.SubsetTreeKernel(),
        tw.PartialTreeKernel(),
    ]
    for kernel in kernels:
        tw.TreeKernelClassifier(kernel=kernel).fit(bank.constituents, labels).predict(bank.constituents)
    tw.DependencyTreeKernel(normalize=True)(bank.dependencies)


def call_constituents() -> None:
    """Train and use a parser of constituents."""
    import treewright as tw

    trees = tw.make_treebank(30).constituents
    tw.ConstituentParser().fit(trees, trees[:5]).predict(trees[:5])


CALLS = (call_pipeline, call_parsers, call_demo, call_mining, call_kernels, call_constituents)


def compile_for(processor: str, folder: Path) -> None:
    """Let a process of its own make all calls and keep the code in `folder`."""
    settings = {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(folder)}
    subprocess.run([sys.executable, __file__, "--call"], env={**os.environ, **settings}, check=True)


def write_manifest(processor: str, features: list[str], folder: Path) -> None:
    """Say what the code in `folder` was compiled with, and for."""
    from treewright.native.code_cache import MANIFEST, describe_compiler

    compiler = describe_compiler()
    target = [compiler["triple"], processor, ""]
    content = {"compiler": compiler, "target": target, "features": features}
    (folder / MANIFEST).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def add_code(wheel: Path, code: Path, machine: str) -> None:
    """Write a wheel for this version of Python and `machine` beside `wheel`, with `code` added."""
    with tempfile.TemporaryDirectory() as place:
        run_wheel("unpack", str(wheel), "--dest", place)
        (root,) = Path(place).iterdir()
        shutil.copytree(code, root / "treewright" / "native" / "machine_code")
        (about,) = root.glob("*.dist-info/WHEEL")
        version = "cp{}{}".format(*sys.version_info)
        tag = f"Tag: {version}-{version}-{PLATFORM}_{machine}"
        text = about.read_text(encoding="utf-8").replace("Tag: py3-none-any", tag)
        about.write_text(text.replace("Root-Is-Purelib: true", "Root-Is-Purelib: false"), encoding="utf-8")
        run_wheel("pack", str(root), "--dest-dir", str(wheel.parent))


def run_wheel(*arguments: str) -> None:
    """Run a command of the package `wheel`."""
    subprocess.run([sys.executable, "-m", "wheel", *arguments], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Make the calls, or the wheel."""
    if sys.argv[1:] == ["--call"]:
        for call in CALLS:
            call()
        return
    machine = sysconfig.get_platform().rpartition("-")[2]
    if not sys.platform.startswith("linux") or machine not in TARGETS:
        raise SystemExit(f"no machine code for {sysconfig.get_platform()}")
    with tempfile.TemporaryDirectory() as place:
        processor, features = TARGETS[machine]
        compile_for(processor, Path(place))
        write_manifest(processor, features, Path(place))
        add_code(Path(sys.argv[1]).resolve(), Path(place), machine)


if __name__ == "__main__":
    main()
