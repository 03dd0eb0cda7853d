"""Commands that show what the package does: demo, reproduce."""

from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console

from treewright.commands.signatures import offer
from treewright.commands.work import begin_checkpoint, say
from treewright.errors import InputError
from treewright.report.options import PUNCTUATION_CHOICES, SHOWN

Number = TypeVar("Number", int, float)
EXPERIMENTS = (
    *("qian-liu-table2", "qian-liu-table3", "qian-liu-table4"),
    *("moschitti-figure4", "moschitti-table1", "moschitti-figure5", "moschitti-table2"),
    *("question-classification", "turian-table1", "turian-figure1", "turian-table2"),
    *("titov-table1", "titov-table2"),
)


def demo(
    out: Annotated[
        Path | None, typer.Option(help="Folder for the treebank's files and a page with what was shown.")
    ] = None,
    sentences: Annotated[int, typer.Option(min=20, help="Size of the made-up treebank.")] = 2000,
    seed: Annotated[int, typer.Option(help="Same seed, same treebank.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Threads; the result does not depend on them.")] = 2,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last finished step, in the folder of --out.")
    ] = False,
) -> None:
    """Train on a made-up treebank and show the results.

    Trains a tagger, a parser and a reranker.

    Example: `treewright demo --out demo`
    """
    from treewright.checkpoint import Checkpoint
    from treewright.report.demo import MODEL, run_demo

    if resume and out is None:
        raise InputError("--resume without --out; expected the folder of the demonstration that goes on")
    checkpoint = begin_checkpoint(out / MODEL, resume=resume) if out is not None else None
    console = Console(record=True)
    run_demo(console, n_sentences=sentences, random_state=seed, out=out, n_jobs=jobs, checkpoint=checkpoint)
    if checkpoint is not None:
        Checkpoint.remove(checkpoint)


def reproduce(
    context: typer.Context,
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT", autocompletion=offer(EXPERIMENTS), help="One of the names above."
        ),
    ],
    data: Annotated[Path, typer.Option(help="Folder with treebanks, or the file to train on of one.")],
    out: Annotated[Path, typer.Option(help="Folder for tables, plot and page, and an index of all pages.")],
    tags: Annotated[
        str | None,
        typer.Option(
            help="predicted: by the parser's own tagger; gold; both, in turian. [default: predicted, both]"
        ),
    ] = None,
    punctuation: Annotated[
        str,
        typer.Option(
            autocompletion=offer(["all", "unicode", "penn"]),
            help="all: scored like words; unicode or penn: left out by that rule.",
        ),
    ] = "all",
    epochs: Annotated[int | None, typer.Option(min=1, help="Of the parser, if not its own.")] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="Of the parser, if not its own.")] = None,
    k: Annotated[
        int | None, typer.Option(min=2, help="Length of the candidate lists. [default: 10, 20 in titov]")
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Parts that are parsed as if new. [default: 10, none in titov]")
    ] = None,
    threshold: Annotated[float, typer.Option(help="Of the selection, in Tables 2 and 4.")] = 3.0,
    thresholds: Annotated[str, typer.Option(help="To be compared in Table 3.")] = "1,2,3,5,10",
    degrees: Annotated[str, typer.Option(help="Of the polynomial kernels in Table 2.")] = "2,4,8",
    systems: Annotated[
        str | None, typer.Option(help="Rows of the table, as kernel-2,mined-tree; all otherwise.")
    ] = None,
    sentences: Annotated[
        int | None, typer.Option(min=1, help="Train on the first so many only, to try things out.")
    ] = None,
    strategies: Annotated[
        str | None, typer.Option(help="Of turian: shift-reduce,original. [default: original in Table 2]")
    ] = None,
    max_length: Annotated[
        str | None,
        typer.Option(help="Of the sentences of turian, as 15,all. [default: 15; 15,all in Table 1]"),
    ] = None,
    lowest_penalty: Annotated[
        float | None, typer.Option(help="Where training ends, in turian and titov.")
    ] = None,
    sample_size: Annotated[int | None, typer.Option(min=1, help="Of each tree, in turian.")] = None,
    label: Annotated[str | None, typer.Option(help="To be profiled, if not the most frequent.")] = None,
    penalty: Annotated[float | None, typer.Option(help="To profile at, if not the best parser's.")] = None,
    trees: Annotated[int, typer.Option(min=2, help="To be profiled.")] = 50,
    most_seconds: Annotated[
        float, typer.Option(min=0, help="For a tree on all examples, or a naive kernel.")
    ] = 600.0,
    treebank: Annotated[
        Path | None, typer.Option(help="To train parsers of questions and roles on; --data otherwise.")
    ] = None,
    constituent_parser: Annotated[
        Path | None, typer.Option(help="A model for questions, roles and titov, which else train one.")
    ] = None,
    dependency_parser: Annotated[
        Path | None, typer.Option(help="Of questions; one that was trained with predicted tags.")
    ] = None,
    adjuncts: Annotated[
        str,
        typer.Option(
            autocompletion=offer(["merged", "separate", "both"]),
            help="Kinds of ArgM as roles of their own: merged, separate, or both.",
        ),
    ] = "both",
    framenet: Annotated[
        Path | None, typer.Option(help="FrameNet's XML release, for moschitti-table2.")
    ] = None,
    small_threshold: Annotated[
        int, typer.Option(min=1, help="How often words occur in the small vocabulary of titov-table1.")
    ] = 50,
    large_threshold: Annotated[
        int, typer.Option(min=1, help="The same for the large one, and for titov-table2.")
    ] = 5,
    units: Annotated[
        int | None, typer.Option(min=1, help="Of the networks of titov, if not the parser's own.")
    ] = None,
    cell: Annotated[
        str,
        typer.Option(
            autocompletion=offer(["gated", "tanh", "sigmoid"]),
            help="Of the networks of titov: gated, tanh, sigmoid.",
        ),
    ] = "gated",
    list_sentences: Annotated[
        int | None, typer.Option(min=1, help="Whose lists rerankers learn from, in titov; all otherwise.")
    ] = None,
    all_sentences: Annotated[
        int, typer.Option(min=1, help="The same for derivatives by all weights, in titov-table1.")
    ] = 1000,
    sst_sentences: Annotated[
        int, typer.Option(min=1, help="The same for tree kernels, in titov-table2.")
    ] = 2000,
    reranker_epochs: Annotated[int, typer.Option(min=1, help="Of the rerankers of titov.")] = 1,
    leftcorner_parser: Annotated[
        Path | None, typer.Option(help="A model for titov-table2, which else trains one.")
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder to keep what is finished in.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same result.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Threads; the result does not depend on them.")] = 1,
) -> None:
    """Run an experiment of a paper.

    Writes its table beside the paper's figures.

    - `qian-liu-table2`: kernels against features selected in their spaces
    - `qian-liu-table3`: what the threshold of the selection changes
    - `qian-liu-table4`: every treebank of a folder, reranked
    - `moschitti-figure4`: time of tree kernels by the size of trees
    - `moschitti-table1`: semantic roles on gold trees
    - `moschitti-figure5`: semantic roles by the share of the training data, and training time
    - `moschitti-table2`: semantic roles in automatic parses
    - `question-classification`: tree kernels against a bag of words on questions
    - `turian-table1`: parsing by classification: scores
    - `turian-figure1`: dev scores as training goes on
    - `turian-table2`: what a training iteration costs, on samples and without
    - `titov-table1`: kernels derived from a left-corner parser
    - `titov-table2`: two constituency parsers, reranked with derived and tree kernels

    What is finished is kept: the same command goes on after an interruption.

    Example: `treewright reproduce qian-liu-table2 --data ewt --out results`
    """
    from treewright.report.reproduce import check_options, find_settings
    from treewright.report.reproduce import reproduce as run_experiment

    given = _given_settings(context)
    check_options(experiment, given, shown=SHOWN)
    if punctuation not in PUNCTUATION_CHOICES:
        raise InputError(f"--punctuation is {punctuation!r}; expected {', '.join(PUNCTUATION_CHOICES)}")
    values: dict[str, Any] = {
        "seed": seed,
        "jobs": jobs,
        "epochs": epochs,
        "runs": runs,
        "k": k,
        "folds": folds,
        "threshold": threshold,
        "thresholds": _parse_numbers("--thresholds", thresholds, float),
        "degrees": _parse_numbers("--degrees", degrees, int),
        "systems": _parse_names(systems),
        "tags": tags,
        "punctuation": PUNCTUATION_CHOICES[punctuation],
        "n_sentences": sentences,
        "strategies": _parse_names(strategies),
        "max_lengths": _parse_lengths(max_length),
        "lowest_penalty": lowest_penalty,
        "sample_size": sample_size,
        "label": label,
        "penalty": penalty,
        "n_trees": trees,
        "most_seconds": most_seconds,
        "treebank": treebank,
        "constituent_parser": constituent_parser,
        "dependency_parser": dependency_parser,
        "adjuncts": adjuncts,
        "framenet": framenet,
        "small_threshold": small_threshold,
        "large_threshold": large_threshold,
        "units": units,
        "cell": cell,
        "list_sentences": list_sentences,
        "all_sentences": all_sentences,
        "sst_sentences": sst_sentences,
        "reranker_epochs": reranker_epochs,
        "leftcorner_parser": leftcorner_parser,
    }
    settings = find_settings(experiment)(**{name: values[name] for name in given})
    files = run_experiment(experiment, data, out, settings=settings, cache=cache)
    print(files[0].read_text(encoding="utf-8"))
    say(f"written: {', '.join(map(str, files))}", event="result")


def _given_settings(context: typer.Context) -> list[str]:
    """Return the settings that the user has given, as the library calls them."""
    parameters = {name: option.strip("-").replace("-", "_") for name, option in SHOWN.items()}
    sources = {name: context.get_parameter_source(each) for name, each in parameters.items()}
    return [name for name, source in sources.items() if source is not None and source.name != "DEFAULT"]


def _parse_names(text: str | None) -> tuple[str, ...] | None:
    return tuple(text.split(",")) if text else None


def _parse_lengths(text: str | None) -> tuple[int | None, ...] | None:
    """Read lengths of sentences, of which one may be all."""
    if not text:
        return None
    return tuple(
        None if part == "all" else _parse_numbers("--max-length", part, int)[0] for part in text.split(",")
    )


def _parse_numbers(option: str, text: str, kind: type[Number]) -> tuple[Number, ...]:
    try:
        return tuple(kind(number) for number in text.split(","))
    except ValueError:
        wanted = "integers" if kind is int else "numbers"
        raise InputError(f"{option} is {text!r}; expected {wanted} with commas between them") from None
