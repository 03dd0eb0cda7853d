"""Commands that train parsers of constituents, and rerankers of their trees."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from treewright._validate import check_choice
from treewright.commands import choices
from treewright.commands.choices import offer
from treewright.commands.work import begin_checkpoint, check_results, check_writable, say
from treewright.errors import InputError

if TYPE_CHECKING:
    from treewright.rerank.constituents import ConstituentReranker
    from treewright.rerank.parse_lists import AnyParser

Second = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="A trained parser of constituents whose trees and score join."),
]
Trained = Annotated[
    str | None,
    typer.Option("--parser", metavar="MODEL", help="Rerank this parser, with its options; train none."),
]
RerankFolds = Annotated[
    int | None,
    typer.Option(min=2, help="Parts that are parsed for the reranker as if new; takes longer."),
]
Candidates = Annotated[
    int | None, typer.Option(min=2, help="Trees a sentence among which is chosen; 20 otherwise.")
]
RerankEpochs = Annotated[int | None, typer.Option(min=1, help="Of the reranker; 1 otherwise.")]


RERANKING = ("second", "trained", "rerank_folds", "candidates", "rerank_epochs")
SHARED = ("trees", "model", "dev", "max_length", "rerank", "seed", "jobs", "resume")
"""What has a meaning with any parser, trained or not."""


class Reranking(NamedTuple):
    """Options of a reranker, as they are given."""

    kernel: str | None
    second: str | None
    parser: str | None
    folds: int | None
    k: int | None
    epochs: int | None


class Work(NamedTuple):
    """What is learnt from, and where the result goes."""

    trees: str
    dev: str | None
    model: Path
    max_length: int | None
    resume: bool


def constituent(
    context: typer.Context,
    trees: Annotated[str, typer.Argument(metavar="TRAIN", help="A treebank in Penn brackets.")],
    model: Annotated[Path, typer.Option(help="File for the model.")],
    dev: Annotated[
        str | None, typer.Option(help="Trees by which the penalty is chosen; a tenth of TRAIN otherwise.")
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Only sentences of up to so many words, with punctuation.")
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(
            autocompletion=offer(choices.STRATEGIES),
            help="shift-reduce, or original: as in the paper, with many more examples.",
        ),
    ] = "shift-reduce",
    tags: Annotated[
        str,
        typer.Option(
            autocompletion=offer(choices.TAGS), help="gold: as in the files; predicted: by an own tagger."
        ),
    ] = "gold",
    max_children: Annotated[int, typer.Option(min=1, help="Children of a constituent at the most.")] = 5,
    any_children: Annotated[
        bool,
        typer.Option("--any-children", help="Consider labels over children they were never seen with."),
    ] = False,
    head_rules: Annotated[
        str, typer.Option(autocompletion=offer(choices.HEAD_RULES), help="collins or yamada-matsumoto.")
    ] = "collins",
    min_count: Annotated[int, typer.Option(min=1, help="A word must occur so often to be asked for.")] = 2,
    sample_size: Annotated[
        int, typer.Option(min=1, help="Examples on which each decision tree is built.")
    ] = 20_000,
    lowest_penalty: Annotated[float, typer.Option(help="Training ends there, if not before.")] = 0.1,
    patience: Annotated[int, typer.Option(min=1, help="Stop when dev does not rise so long.")] = 6,
    eta: Annotated[float, typer.Option(help="By which the penalty falls when nothing gains.")] = 0.8,
    least_gain: Annotated[
        float, typer.Option(help="What a split must gain, as a share of the penalty; more is faster.")
    ] = 0.1,
    slack: Annotated[
        float, typer.Option(help="By how much gradients may be above a penalty that is done with.")
    ] = 0.05,
    max_inferences: Annotated[
        int, typer.Option(min=1, help="Inferences scored for a sentence before the search ends.")
    ] = 20_000,
    runs: Annotated[
        int, typer.Option(min=1, help="Trainings with other samples, of which the model is the mean.")
    ] = 1,
    folds: Annotated[int, typer.Option(min=2, help="Parts that are tagged as if new.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same model.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Threads; the model does not depend on them.")] = 1,
    rerank: Annotated[
        str | None,
        typer.Option(
            autocompletion=offer(choices.TREE_RERANKERS),
            help="Also learn to choose among the best trees: sst, or none (--second).",
        ),
    ] = None,
    second: Second = None,
    trained: Trained = None,
    rerank_folds: RerankFolds = None,
    candidates: Candidates = None,
    rerank_epochs: RerankEpochs = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last finished step.")] = False,
) -> None:
    """Train a constituency parser, and with --rerank a reranker of its trees.

    Example: `treewright train constituent train.mrg --dev dev.mrg --model parser.tw --max-length 15`
    """
    from treewright.parsing.constituent.parser import ConstituentParser

    reranking = Reranking(rerank, second, trained, rerank_folds, candidates, rerank_epochs)
    _check_options(context, reranking)
    work = Work(trees, dev, model, max_length, resume)
    parser = ConstituentParser(
        strategy=strategy,
        tags=tags,
        max_children=max_children,
        only_known=not any_children,
        head_rules=head_rules,
        min_count=min_count,
        sample_size=sample_size,
        eta=eta,
        least_gain=least_gain,
        slack=slack,
        lowest_penalty=lowest_penalty,
        patience=patience,
        max_inferences=max_inferences,
        runs=runs,
        folds=folds,
        random_state=seed,
        n_jobs=jobs,
    )
    _train(parser, reranking, work)


def leftcorner(
    context: typer.Context,
    trees: Annotated[str, typer.Argument(metavar="TRAIN", help="A treebank in Penn brackets.")],
    model: Annotated[Path, typer.Option(help="File for the model.")],
    dev: Annotated[
        str | None, typer.Option(help="Trees by which the best epoch is chosen; a tenth of TRAIN otherwise.")
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Only sentences of up to so many words, with punctuation.")
    ] = None,
    tags: Annotated[
        str,
        typer.Option(
            autocompletion=offer(choices.TAGS), help="gold: as in the files; predicted: by an own tagger."
        ),
    ] = "gold",
    cell: Annotated[
        str,
        typer.Option(
            autocompletion=offer(choices.CELLS),
            help="What a unit is: gated, tanh, or sigmoid, as in the paper.",
        ),
    ] = "gated",
    units: Annotated[int, typer.Option(min=1, help="Of a history vector.")] = 80,
    embedding: Annotated[int, typer.Option(min=1, help="Size of vectors of labels, tags and words.")] = 60,
    threshold: Annotated[
        int, typer.Option(min=1, help="A word must occur so often with a tag to be known.")
    ] = 5,
    min_chain: Annotated[
        int, typer.Option(min=1, help="A chain of only children must occur so often to be one label.")
    ] = 10,
    optimizer: Annotated[
        str, typer.Option(autocompletion=offer(choices.OPTIMIZERS), help="adam or momentum.")
    ] = "adam",
    learning_rate: Annotated[float, typer.Option(help="At first; it falls to nearly zero.")] = 0.008,
    weight_decay: Annotated[float, typer.Option(help="In a step, at first; it falls, too.")] = 0.01,
    dropout: Annotated[float, typer.Option(help="Share that is left out at random in training.")] = 0.2,
    batch_size: Annotated[
        int, typer.Option(min=1, help="Decisions after which weights are changed.")
    ] = 2_000,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training sentences.")] = 10,
    patience: Annotated[int, typer.Option(min=1, help="Stop when dev does not rise so long.")] = 5,
    beam: Annotated[int, typer.Option(min=1, help="Hypotheses kept after each word in parsing.")] = 40,
    branching: Annotated[int, typer.Option(min=1, help="Decisions followed from each of them.")] = 10,
    max_projections: Annotated[
        int, typer.Option(min=1, help="Projections in a row at the most in parsing.")
    ] = 5,
    folds: Annotated[int, typer.Option(min=2, help="Parts that are tagged as if new.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same model (on a CPU).")] = 0,
    device: Annotated[
        str,
        typer.Option(
            autocompletion=offer(choices.DEVICES),
            help="Where training runs: cpu, cuda, or auto: a GPU where there is one.",
        ),
    ] = "auto",
    jobs: Annotated[int, typer.Option(min=1, help="Threads; the model does not depend on them.")] = 1,
    rerank: Annotated[
        str | None,
        typer.Option(
            autocompletion=offer(choices.DERIVED_RERANKERS),
            help="Also learn to choose among the best trees, by a kernel: "
            "efficient-top, top-rerank, top, fisher, sst, or none (--second).",
        ),
    ] = None,
    second: Second = None,
    trained: Trained = None,
    rerank_folds: RerankFolds = None,
    candidates: Candidates = None,
    rerank_epochs: RerankEpochs = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last finished step.")] = False,
) -> None:
    """Train a neural left-corner parser of constituents, and with --rerank a reranker of its trees.

    Training a parser needs the extra neural, parsing and reranking do not.

    Example: `treewright train leftcorner train.mrg --dev dev.mrg --model parser.tw --rerank efficient-top`
    """
    from treewright.parsing.leftcorner.parser import LeftCornerParser

    reranking = Reranking(rerank, second, trained, rerank_folds, candidates, rerank_epochs)
    _check_options(context, reranking)
    work = Work(trees, dev, model, max_length, resume)
    parser = LeftCornerParser(
        tags=tags,
        cell=cell,
        units=units,
        embedding=embedding,
        threshold=threshold,
        min_chain=min_chain,
        optimizer=optimizer,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        dropout=dropout,
        batch_size=batch_size,
        epochs=epochs,
        patience=patience,
        beam=beam,
        branching=branching,
        max_projections=max_projections,
        folds=folds,
        random_state=seed,
        device=device,
        n_jobs=jobs,
    )
    _train(parser, reranking, work)


def _train(parser: "AnyParser", reranking: Reranking, work: Work) -> None:
    """Train a parser, or a reranker of its trees, and save it."""
    from treewright.checkpoint import Checkpoint
    from treewright.parsing.bracket_files import read_trees

    checkpoint = begin_checkpoint(work.model, resume=work.resume)
    inputs = {"TRAIN": work.trees, "--dev": work.dev}
    check_results(
        {"--model": work.model}, inputs | {"--second": reranking.second, "--parser": reranking.parser}
    )
    check_writable(work.model)
    learner = parser if reranking.kernel is None else _make_reranker(parser, reranking.kernel, reranking)
    training = read_trees(work.trees, max_length=work.max_length)
    development = read_trees(work.dev, max_length=work.max_length) if work.dev else None
    learner.fit(training, development, checkpoint=checkpoint).save(work.model)
    Checkpoint.remove(checkpoint)
    say(f"written: {work.model}", event="result")


def _check_options(context: typer.Context, reranking: Reranking) -> None:
    """Refuse options that would change nothing."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        if reranking.kernel is None and name in RERANKING:
            raise InputError(f"{_option(name)} is for rerankers; expected --rerank with it")
        if reranking.parser is not None and name not in (*RERANKING, *SHARED):
            raise InputError(f"{_option(name)} is for training a parser; expected it without --parser")


def _option(name: str) -> str:
    return "--parser" if name == "trained" else "--" + name.replace("_", "-")


def _make_reranker(parser: "AnyParser", kernel: str, reranking: Reranking) -> "ConstituentReranker":
    from treewright.parsing.constituent.parser import ConstituentParser
    from treewright.parsing.leftcorner.parser import LeftCornerParser
    from treewright.rerank.constituents import CHOICES, NO_KERNEL, SST, ConstituentReranker

    names = CHOICES if isinstance(parser, LeftCornerParser) else (SST, NO_KERNEL)
    check_choice("--rerank", kernel, names)
    reranker = ConstituentReranker(
        parser=parser,
        kernel=kernel,
        folds=reranking.folds,
        random_state=parser.random_state,
        n_jobs=parser.n_jobs,
    )
    if reranking.parser is not None:
        reranker.parser = _load_parser(reranking.parser, type(parser))
    if reranking.second is not None:
        reranker.second = _load_parser(reranking.second, LeftCornerParser, ConstituentParser)
    reranker.k = reranking.k or reranker.k
    reranker.epochs = reranking.epochs or reranker.epochs
    return reranker


def _load_parser(path: str, *kinds: type) -> "AnyParser":
    from treewright.model import load

    parser: AnyParser = load(path)
    if not isinstance(parser, kinds):
        expected = " or a ".join(kind.__name__ for kind in kinds)
        raise InputError(f"{path} is a {type(parser).__name__}; expected a {expected}")
    return parser
