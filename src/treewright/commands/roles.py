"""Commands for semantic roles: train, and what parse does with a labeler."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from treewright.commands import choices
from treewright.commands.choices import offer
from treewright.commands.work import begin_checkpoint, check_results, check_writable, say
from treewright.errors import InputError

if TYPE_CHECKING:
    from treewright.data.consttree import ConstTree
    from treewright.data.propbank import PropSentence
    from treewright.srl.labeler import RoleLabeler


def roles(
    trees: Annotated[str, typer.Argument(metavar="TRAIN", help="A treebank in Penn brackets.")],
    props: Annotated[str, typer.Option(help="PropBank columns of the same sentences.")],
    model: Annotated[Path, typer.Option(help="File for the model.")],
    dev: Annotated[str | None, typer.Option(help="Trees to score at the end, with --dev-props.")] = None,
    dev_props: Annotated[str | None, typer.Option(help="PropBank columns of those.")] = None,
    predicates: Annotated[
        str,
        typer.Option(
            autocompletion=offer(choices.PREDICATES),
            help="verbs, or all: also nouns and others that were some in TRAIN.",
        ),
    ] = "verbs",
    kernel: Annotated[
        str,
        typer.Option(
            autocompletion=offer(choices.ROLE_KERNELS),
            help="What names arguments: linear, st, sst, pt, linear+sst, ..., fragments or mined.",
        ),
    ] = "linear",
    features: Annotated[
        str,
        typer.Option(autocompletion=offer(choices.ROLE_FEATURES), help="Of arguments: standard or extended."),
    ] = "extended",
    cost: Annotated[
        float | None, typer.Option("--cost", help="Of wrong names in training; one for the kernel otherwise.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same model.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Threads; the model does not depend on them.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last finished step.")] = False,
) -> None:
    """Train a labeler of semantic roles: who does what to whom, in parsed sentences.

    Example: `treewright train roles train.mrg --props train.props --model roles.tw --kernel linear+sst`
    """
    from treewright.checkpoint import Checkpoint
    from treewright.srl.files import read_pairs
    from treewright.srl.labeler import RoleLabeler

    checkpoint = begin_checkpoint(model, resume=resume)
    if (dev is None) != (dev_props is None):
        raise InputError("--dev has the trees and --dev-props the roles to score; expected both or neither")
    inputs = {"TRAIN": trees, "--props": props, "--dev": dev, "--dev-props": dev_props}
    check_results({"--model": model}, inputs)
    check_writable(model)
    labeler = RoleLabeler(
        predicates=predicates, kernel=kernel, features=features, C=cost, random_state=seed, n_jobs=jobs
    )
    labeler.check_options()
    training = read_pairs(trees, props)
    development = read_pairs(dev, dev_props) if dev is not None and dev_props is not None else None
    labeler.fit(*training, checkpoint=checkpoint).save(model)
    Checkpoint.remove(checkpoint)
    say(f"written: {model}", event="result")
    if development:
        _tell_scores(labeler, *development)


def _tell_scores(labeler: "RoleLabeler", trees: "list[ConstTree]", sentences: "list[PropSentence]") -> None:
    """Tell the scores with predicates that are found and with those that are known."""
    from treewright.metrics import roles as score_roles
    from treewright.srl.arguments import keep_verbal

    gold = keep_verbal(sentences) if labeler.predicates == "verbs" else sentences
    say(f"dev:\n{score_roles(gold, labeler.predict(trees))}")
    known = score_roles(gold, labeler.predict(trees, gold))
    ratios = f"precision {known.precision:.2f}, recall {known.recall:.2f}, F1 {known.f1:.2f}"
    say(f"dev with known predicates: {ratios}")


def write_roles(
    labeler: "RoleLabeler",
    source: str,
    output: str,
    *,
    predicates_from: str | None,
    jobs: int,
    checkpoint: Path | None,
) -> None:
    """Find the roles in trees and write them as PropBank columns."""
    from treewright.srl.files import label_file

    label_file(labeler, source, output, predicates_from=predicates_from, n_jobs=jobs, checkpoint=checkpoint)
