"""The command `treewright kernel`: Gram matrices of tree kernels for files."""

import inspect
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from treewright._typing import FileName, NonNegativeFloat
from treewright.commands.signatures import Chosen, Options, join_signatures, takes
from treewright.commands.work import (
    begin_checkpoint,
    check_results,
    check_writable,
    open_cluster,
    running,
    say,
)
from treewright.data.files import check_folder
from treewright.errors import InputError
from treewright.kernels.base import KERNELS
from treewright.kernels.convolution import TreeKernel
from treewright.kernels.gram import gram
from treewright.progress import silenced

if TYPE_CHECKING:
    from treewright.kernels.files import Examples

TREE_KERNELS: dict[str, type[TreeKernel]] = {
    name: kind for name, kind in KERNELS.items() if issubclass(kind, TreeKernel)
}
"""All registered tree kernels, including those of modules given by --import."""
KernelName: TypeAlias = Literal[tuple(TREE_KERNELS)]  # type: ignore[valid-type]


def settings(
    *,
    kernel: KernelName = "sst",
    other: FileName | None = None,
    logs: bool = False,
    vectors: FileName | None = None,
    vector_weight: NonNegativeFloat = 0.0,
    functions: bool = False,
    traces: bool = False,
    labels: FileName | None = None,
    float32: bool = False,
) -> None:
    """Declare the options.

    Parameters
    ----------
    kernel : str
        Subtree, subset tree, partial tree or smoothed partial tree kernel.
    other : str, optional
        Compare the trees of DATA with those of this file, instead of with each other.
    logs : bool
        Write the logarithms of kernel values, which do not overflow.
    vectors : str, optional
        File of word vectors for spt, with a word and its vector per line.
    vector_weight : float
        Weight of the linear kernel of the feature vectors in SVM-light-TK.
    functions : bool
        Keep function tags in brackets.
    traces : bool
        Keep traces in brackets.
    labels : str, optional
        File for the labels of SVM-light-TK, one per line.
    float32 : bool
        Write single precision (32 bits) instead of double.
    """


@takes(
    settings=Options(settings),
    parameters=Options(join_signatures(TREE_KERNELS), "Kernel", leave_out=("similarity",)),
    limits=Options(gram, only=("memory_limit", "device", "device_memory")),
    how=Options(running),
)
def kernel(
    source: Annotated[
        str,
        typer.Argument(metavar="DATA", help="Brackets, CoNLL-U or SVM-light-TK (- for standard input)."),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="File for the matrix (NPY).")],
    settings: Chosen,
    parameters: Chosen,
    limits: Chosen,
    how: Chosen,
) -> None:
    """Compute the Gram matrix of a tree kernel.

    Compares all trees of a file with each other. If examples have several trees, the trees at the same
    position are compared, and their kernel values are added up.

    Example: `treewright kernel trees.mrg --kernel sst --decay 0.4 --out gram.npy`
    """
    from treewright.checkpoint import Checkpoint
    from treewright.data.files import open_target
    from treewright.kernels.files import prepare, read_examples, read_vectors

    chosen, labels, logs = settings.values, settings.values["labels"], settings.values["logs"]
    checkpoint = begin_checkpoint(out, resume=how.values["resume"])
    inputs = {"DATA": source, "--other": chosen["other"], "--vectors": chosen["vectors"]}
    check_results({"--labels": labels, "--out": out}, inputs)
    check_writable(out)
    if labels is not None:
        check_folder(labels)
    normalize, centre = parameters.values["normalize"], parameters.values["centre"]
    if logs and normalize:
        raise InputError("--logs and --normalize are both given; expected one of them")
    own = _list_parameters(chosen["kernel"], parameters)
    if (chosen["vectors"] is not None) != (chosen["kernel"] == "spt"):
        raise InputError("--vectors and --kernel spt need each other; expected both or neither")
    read = partial(read_examples, centre=centre, functions=chosen["functions"], traces=chosen["traces"])
    groups = [read(path) for path in (source, chosen["other"]) if path is not None]
    _check_formats(settings, parameters, [group.format for group in groups])
    if labels is not None and not groups[0].has_labels:
        raise InputError(f"{source} has no labels; expected SVM-light-TK for --labels")
    vectors = []
    if chosen["vectors"] is not None:
        known = {label for group in groups for tree in group.trees for label in tree.labels}
        vectors = [read_vectors(chosen["vectors"], known)]
    made, rows = prepare(
        TREE_KERNELS[chosen["kernel"]](*vectors, **own),
        groups,
        vector_weight=chosen["vector_weight"],
        normalize=normalize,
    )
    if logs and not hasattr(made, "logs"):
        raise InputError(
            "examples have several trees, or feature vectors; expected one tree per example for --logs"
        )
    times: list[float] = []
    scheduler = how.values["scheduler"]
    with (
        open_cluster(scheduler) if scheduler is not None else nullcontext() as client,
        open_target(labels) if labels else nullcontext() as stream,
    ):
        with silenced():  # loads compiled code, which is not part of the work
            gram(made, *(some[:2] for some in rows), logs=logs, device=limits.values["device"])
        gram(
            made,
            *rows,
            out=out,
            memory_limit=limits.values["memory_limit"],
            device=limits.values["device"],
            device_memory=limits.values["device_memory"],
            dtype="float32" if chosen["float32"] else "float64",
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


def _check_formats(settings: Chosen, parameters: Chosen, formats: list[str]) -> None:
    """Raise `InputError` for options without effect on these formats, or if the kinds of trees differ."""
    from treewright.kernels.files import BRACKETS, CONLLU

    found = " and ".join(dict.fromkeys(formats))
    if CONLLU not in formats:
        parameters.refuse(f"on {found}; expected CoNLL-U", only=("centre",))
    if BRACKETS not in formats:
        settings.refuse(f"on {found}; expected brackets", only=("functions", "traces"))
    if {BRACKETS, CONLLU} == {*formats}:
        raise InputError(f"DATA is {formats[0]} and --other is {formats[1]}; expected the same kind of trees")


def _list_parameters(kind: str, parameters: Chosen) -> dict[str, Any]:
    """Return the parameters of a kernel; raise `InputError` if others were given."""
    having = {name: inspect.signature(each).parameters for name, each in TREE_KERNELS.items()}
    for name in parameters.specified:
        if name not in having[kind]:
            expected = " or ".join(other for other, names in having.items() if name in names)
            option = parameters.options.spell(name)
            raise InputError(f"{option} has no effect with --kernel {kind}; expected --kernel {expected}")
    return {
        name: value for name, value in parameters.values.items() if name in having[kind] and value is not None
    }


def _summary(groups: "list[Examples]", seconds: float) -> str:
    """Summarise the work and its time; each pair of examples counts once."""
    from treewright.kernels.files import count_things

    n_trees, n_nodes = sum(len(group.trees) for group in groups), sum(group.n_nodes for group in groups)
    sizes = [len(group.items) for group in groups]
    n_pairs = sizes[0] * sizes[1] if len(sizes) > 1 else sizes[0] * (sizes[0] + 1) // 2
    counts = f"{count_things(n_trees, 'tree')}, {count_things(n_nodes, 'node')}"
    work = f"{count_things(n_pairs, 'evaluation')} in {seconds:.2f} s"
    return f"{counts}: {work}, {1e6 * seconds / n_pairs:.3f} microseconds each"
