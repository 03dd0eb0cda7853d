"""The command `treewright kernel`: matrices of tree kernels on files."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treewright.commands import choices
from treewright.commands.choices import offer
from treewright.commands.work import (
    Scheduler,
    begin_checkpoint,
    check_results,
    check_writable,
    open_cluster,
    say,
)
from treewright.errors import InputError
from treewright.progress import silenced

if TYPE_CHECKING:
    from treewright.kernels.base import Kernel
    from treewright.kernels.files import Examples

KERNELS = choices.KERNELS
PARTIAL = ("pt", "spt")
OPTIONS = {
    "normalize=True": "--normalize",
    "a call of logs": "--logs",
    "have kernels normalised": "--normalize",
    "or float64": "or no --float32",
}
"""What to do about values that are too large: in Python, and here."""
SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


def kernel(
    source: Annotated[
        str,
        typer.Argument(
            metavar="DATA", help="Brackets, CoNLL-U or SVM-light-TK, told by content; - is input."
        ),
    ],
    out: Annotated[Path, typer.Option(help="File for the matrix, for numpy.load.")],
    kind: Annotated[
        str,
        typer.Option(
            "--kernel",
            autocompletion=offer(choices.KERNELS),
            help="st: subtrees, sst: subset trees, pt: partial trees, spt: smoothed.",
        ),
    ] = "sst",
    other: Annotated[
        str | None, typer.Option(help="Trees to compare those of DATA with, instead of each other.")
    ] = None,
    decay: Annotated[float | None, typer.Option(help="0.4 otherwise, and 1 for st.")] = None,
    depth_decay: Annotated[float | None, typer.Option(help="For pt and spt; 0.4 otherwise.")] = None,
    max_children: Annotated[
        int | None, typer.Option(min=1, help="Children of a node in a fragment of pt and spt, at the most.")
    ] = None,
    normalize: Annotated[
        bool, typer.Option("--normalize/--no-normalize", help="Let each tree have the value 1 with itself.")
    ] = False,
    logs: Annotated[
        bool, typer.Option("--logs", help="Write logarithms; of values too large for a number too.")
    ] = False,
    words: Annotated[
        str,
        typer.Option(
            autocompletion=offer(choices.WORDS),
            help="nodes: as others; none: left out; bag (st, sst): counted also alone.",
        ),
    ] = "nodes",
    centre: Annotated[
        str,
        typer.Option(
            autocompletion=offer(choices.CENTRES),
            help="What nodes of dependency trees are: relation, tag or word.",
        ),
    ] = "relation",
    vectors: Annotated[
        str | None, typer.Option(help="For spt: a text file, a word and its numbers in each line.")
    ] = None,
    vector_weight: Annotated[
        float, typer.Option(min=0, help="Of the vectors of SVM-light-TK, as a linear kernel; 0: left out.")
    ] = 0.0,
    functions: Annotated[bool, typer.Option("--functions", help="Keep function tags in brackets.")] = False,
    traces: Annotated[bool, typer.Option("--traces", help="Keep traces in brackets.")] = False,
    labels: Annotated[
        Path | None, typer.Option(help="File for the labels of SVM-light-TK, one in each line.")
    ] = None,
    memory: Annotated[
        str, typer.Option(help="That values may take while they are made, as 512M or 4G.")
    ] = "4G",
    float32: Annotated[bool, typer.Option("--float32", help="Write values of 32 bits, not of 64.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Threads; the result does not depend on them.")] = 1,
    scheduler: Scheduler = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last finished rows.")] = False,
) -> None:
    """Compare all trees of a file with each other by a tree kernel, and write the matrix.

    Several trees of one example are compared place by place, and the values added up.

    Example: `treewright kernel trees.mrg --kernel sst --decay 0.4 --out gram.npy`
    """
    from treewright.checkpoint import Checkpoint
    from treewright.data.files import open_target
    from treewright.kernels.files import prepare, read_examples
    from treewright.kernels.gram import gram

    checkpoint = begin_checkpoint(out, resume=resume)
    check_results(
        {"--labels": labels, "--out": out}, {"DATA": source, "--other": other, "--vectors": vectors}
    )
    check_writable(out)
    if logs and normalize:
        raise InputError("--logs and --normalize are both given; expected one of them")
    n_bytes = parse_size("--memory", memory)
    options = _list_options(kind, decay=decay, depth_decay=depth_decay, max_children=max_children)
    options |= {"normalize": normalize, "words": words, "centre": centre, "jobs": jobs}
    if (vectors is not None) != (kind == "spt"):
        raise InputError("--vectors is for --kernel spt, which needs it; expected both or neither")
    read = partial(read_examples, centre=centre, functions=functions, traces=traces)
    groups = [read(path) for path in (source, other) if path is not None]
    if labels is not None and not groups[0].has_labels:
        raise InputError(f"{source} has no labels to write; expected lines of SVM-light-TK")
    chosen, rows = prepare(
        _make_kernel(kind, options, vectors, groups), groups, vector_weight=vector_weight, normalize=normalize
    )
    if logs and not hasattr(chosen, "logs"):
        raise InputError("--logs is for one tree of each example; expected no others and no vectors")
    dtype = "float32" if float32 else "float64"
    times: list[float] = []
    with (
        open_cluster(scheduler) as client,
        _options_named(),
        open_target(labels) if labels else nullcontext() as stream,
    ):
        with silenced():  # loads compiled code, which is no evaluation
            gram(chosen, *(some[:2] for some in rows), logs=logs)
        gram(
            chosen,
            *rows,
            out=out,
            memory=n_bytes,
            dtype=dtype,
            logs=logs,
            times=times,
            checkpoint=checkpoint,
            client=client,
        )
        if stream:
            stream.writelines(f"{item.label}\n" for item in groups[0].items)
    Checkpoint.remove(checkpoint)
    typer.echo(_summary(groups, sum(times)))
    say(f"written: {out}", event="result")


@contextmanager
def _options_named() -> Iterator[None]:
    """Let errors name options of the command, where they name what to do in Python."""
    try:
        yield
    except InputError as error:
        message = str(error)
        for name, option in OPTIONS.items():
            message = message.replace(name, option)
        raise InputError(message) from error


def parse_size(option: str, text: str) -> int:
    """Return how many bytes a text such as 4G or 1.5 MiB says."""
    found = SIZE.fullmatch(text.strip())
    if not found or float(found[1]) == 0:
        raise InputError(f"{option} is {text!r}; expected a size such as 512M or 4G")
    return max(1, int(float(found[1]) * (1 << 10 * " KMGT".index(found[2].upper() or " "))))


def _list_options(
    kind: str, *, decay: float | None, depth_decay: float | None, max_children: int | None
) -> dict[str, Any]:
    """Return the options that were given, if the kernel has them."""
    if kind not in KERNELS:
        raise InputError(f"--kernel is {kind!r}; expected one of {', '.join(KERNELS)}")
    own = {"depth_decay": depth_decay, "max_children": max_children}
    for name, value in own.items():
        if value is not None and kind not in PARTIAL:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} is for partial trees; expected --kernel pt or spt with it")
    given = {"decay": decay, **own}
    return {name: value for name, value in given.items() if value is not None}


def _make_kernel(
    kind: str, options: dict[str, Any], vectors: str | None, groups: "list[Examples]"
) -> "Kernel":
    from treewright.kernels import convolution
    from treewright.kernels.files import read_vectors

    if vectors is not None:
        known = {label for group in groups for tree in group.trees for label in tree.labels}
        return convolution.SmoothedPartialTreeKernel(read_vectors(vectors, known), **options)
    kinds = {
        "st": convolution.SubtreeKernel,
        "sst": convolution.SubsetTreeKernel,
        "pt": convolution.PartialTreeKernel,
    }
    return kinds[kind](**options)


def _summary(groups: "list[Examples]", seconds: float) -> str:
    """Say how much was done in which time, each pair counted once."""
    from treewright.kernels.files import count_things

    n_trees, n_nodes = sum(len(group.trees) for group in groups), sum(group.n_nodes for group in groups)
    sizes = [len(group.items) for group in groups]
    n_pairs = sizes[0] * sizes[1] if len(sizes) > 1 else sizes[0] * (sizes[0] + 1) // 2
    counts = f"{count_things(n_trees, 'tree')}, {count_things(n_nodes, 'node')}"
    work = f"{count_things(n_pairs, 'evaluation')} in {seconds:.2f} s"
    return f"{counts}: {work}, {1e6 * seconds / n_pairs:.3f} microseconds each"
