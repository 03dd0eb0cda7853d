"""The command line. Every expected error is one line on standard error and exit code 2."""

import io
import logging
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import typer
from rich.console import Console
from typer.core import TyperGroup

from treewright._version import __version__
from treewright.cli_kernels import kernel
from treewright.errors import InputError, TreewrightError

UsageError = cast(type[Exception], typer.BadParameter.__base__)  # Typer does not export it by name

Number = TypeVar("Number", int, float)
PUNCTUATION_CHOICES: dict[str, bool | str] = {"all": True, "unicode": "unicode", "penn": "penn"}
FORMAT_NAMES = "conllu, conllx, conll2009, brackets or props"


class InterruptedRunError(Exception):
    """The user pressed Ctrl-C."""


class ClosedPipeError(Exception):
    """The reader of our output has left."""


class _Commands(TyperGroup):
    """Commands whose interruptions reach `run`; Typer would end the program in silence."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise InterruptedRunError from error
        except BrokenPipeError as error:
            raise ClosedPipeError from error


app = typer.Typer(
    name="treewright",
    cls=_Commands,
    help="Learn from trees: parsers, tree kernels and feature mining in huge structured spaces.",
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def run() -> int:
    """Run the command line, turn expected errors into one line, and return the exit code."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING, stream=sys.stderr)
    _use_writable_encodings()
    try:
        return app(standalone_mode=False) or 0
    except UsageError as error:
        return fail(f"{cast(typer.BadParameter, error).format_message()} (see: treewright --help)")
    except TreewrightError as error:
        return fail(str(error))
    except ClosedPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more can be written
        return 0
    except OSError as error:
        return fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (InterruptedRunError, KeyboardInterrupt, typer.Abort):
        return fail("interrupted", code=130)


def fail(message: str, *, code: int = 2) -> int:
    """Say in one line what went wrong and return the exit code."""
    print(f"treewright: {' '.join(message.split())}", file=sys.stderr)
    return code


def _use_writable_encodings() -> None:
    """Let drawings be printed whatever the system's encoding: UTF-8 into files, replaced on old terminals."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"treewright {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def demo(
    out: Annotated[
        Path | None, typer.Option(help="Folder for the treebank's files and a page with what was shown.")
    ] = None,
    sentences: Annotated[int, typer.Option(min=20, help="Size of the made-up treebank.")] = 2000,
    seed: Annotated[int, typer.Option(help="Same seed, same treebank.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Threads; the result does not depend on them.")] = 2,
) -> None:
    """Make a treebank, learn a tagger, a parser and a reranker from it, and show what they have found.

    Example: `treewright demo --out demo`
    """
    from treewright.report.demo import run_demo

    run_demo(Console(record=True), n_sentences=sentences, seed=seed, out=out, jobs=jobs)


@app.command()
def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="A file, or - for standard input.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="A file, or - for standard output.")],
    from_format: Annotated[
        str | None, typer.Option("--from", help=f"{FORMAT_NAMES}; told by name or content otherwise.")
    ] = None,
    to_format: Annotated[
        str | None, typer.Option("--to", help=f"{FORMAT_NAMES}; told by the name of OUT otherwise.")
    ] = None,
    rules: Annotated[
        str, typer.Option(help="Head rules from brackets to dependencies: yamada-matsumoto or collins.")
    ] = "yamada-matsumoto",
    functions: Annotated[bool, typer.Option("--functions", help="Keep function tags in brackets.")] = False,
    traces: Annotated[bool, typer.Option("--traces", help="Keep traces in brackets.")] = False,
    unescape: Annotated[bool, typer.Option("--unescape", help="Write words -LRB- as brackets.")] = False,
    lift: Annotated[
        str | None,
        typer.Option("--projectivize", help="Lift crossing arcs: baseline, head, path or head+path."),
    ] = None,
    lower: Annotated[bool, typer.Option("--deprojectivize", help="Undo that lifting.")] = False,
) -> None:
    """Convert between CoNLL-U, CoNLL-X, CoNLL-2009, Penn brackets and PropBank columns.

    Example: `treewright convert wsj.mrg wsj.conllu --rules collins`
    """
    from treewright.data.convert import convert_file

    convert_file(
        source,
        target,
        from_format=from_format,
        to_format=to_format,
        rules=rules,
        functions=functions,
        traces=traces,
        unescape=unescape,
        lift=lift,
        lower=lower,
    )


@app.command()
def evaluate(
    gold: Annotated[str, typer.Argument(metavar="GOLD", help="CoNLL-U or brackets, told by content.")],
    predicted: Annotated[str, typer.Argument(metavar="PREDICTED", help="The same sentences, parsed.")],
    no_punctuation: Annotated[
        bool, typer.Option("--no-punctuation", help="Leave out words made of Unicode punctuation alone.")
    ] = False,
    penn: Annotated[
        bool, typer.Option("--penn-punctuation", help="Leave out words tagged `` '' , . or : in gold.")
    ] = False,
    relations: Annotated[bool, typer.Option("--relations", help="Add a line for each relation.")] = False,
    max_length: Annotated[
        int | None, typer.Option(help="Score brackets only of sentences up to this length.", min=1)
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Another prediction, for a test of significance.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="What to test: uas (the default), las, complete; f1, exact, ...")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the test of significance.")] = 0,
    plot: Annotated[
        Path | None, typer.Option(help="File for a reliability plot (png, svg or pdf), of --confidence.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Score a prediction: attachment scores for CoNLL-U, PARSEVAL (as evalb) for brackets.

    Words with a confidence, as `treewright parse --confidence` writes it, are also scored for that.

    Example: `treewright evaluate gold.conllu parsed.conllu --no-punctuation --against other.conllu`
    """
    from treewright.report.reliability import plot_reliability
    from treewright.report.scores import draw_scores, score_files, scores_as_json

    if penn and no_punctuation:
        raise InputError("--no-punctuation and --penn-punctuation are two rules; expected one of them")
    scores = score_files(
        gold,
        predicted,
        punctuation="penn" if penn else "unicode" if no_punctuation else True,
        max_length=max_length,
        against=against,
        metric=metric,
        seed=seed,
    )
    if plot:
        if scores.reliability is None:
            raise InputError(f"{predicted} has no confidence in MISC to plot; expected Confidence=...")
        plot_reliability(scores.reliability, plot)
    if as_json:
        print(scores_as_json(scores))
    else:
        draw_scores(Console(), scores, relations=relations)


train = typer.Typer(help="Train a model.", cls=_Commands)
app.add_typer(train, name="train")


@train.command()
def dependency(
    trees: Annotated[str, typer.Argument(metavar="TRAIN", help="A treebank in CoNLL-U.")],
    model: Annotated[Path, typer.Option(help="File for the model.")],
    dev: Annotated[str | None, typer.Option(help="Sentences to score after each epoch.")] = None,
    order: Annotated[int, typer.Option(min=1, max=3, help="1 arcs, 2 pairs of arcs, 3 triples.")] = 3,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training sentences.")] = 6,
    runs: Annotated[int, typer.Option(min=1, help="Trainings of which the mean is taken.")] = 4,
    k: Annotated[int, typer.Option(min=1, help="Length of candidate lists in training.")] = 10,
    tags: Annotated[str, typer.Option(help="gold: as in the files; predicted: by an own tagger.")] = "gold",
    decoder: Annotated[
        str, typer.Option(help="projective, or spanning: any tree, crossing arcs or not (order 1).")
    ] = "projective",
    jackknife: Annotated[
        bool, typer.Option("--jackknife", help="Learn labels and probabilities from folds; takes longer.")
    ] = False,
    patience: Annotated[int | None, typer.Option(min=1, help="Stop when dev does not rise so long.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same model.")] = 0,
    table_bits: Annotated[
        int, typer.Option(min=10, max=28, help="The weight table has 2 ** so many slots.")
    ] = 23,
    pruning_threshold: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the best head's probability that others need.")
    ] = 1e-3,
    max_heads: Annotated[int, typer.Option(min=1, help="Heads that are scored a word at the most.")] = 8,
    folds: Annotated[int, typer.Option(min=1, help="Parts that are pruned and tagged as if new.")] = 5,
    lifting: Annotated[
        str, typer.Option(help="How crossing arcs are lifted: path, head, head+path or baseline.")
    ] = "path",
    jobs: Annotated[int, typer.Option(min=1, help="Threads; the model does not depend on them.")] = 1,
    rerank: Annotated[
        bool, typer.Option("--rerank", help="Also learn to choose among the parser's best trees.")
    ] = False,
    space: Annotated[
        str, typer.Option(help="What the reranker looks at: subtree, polynomial or template.")
    ] = "subtree",
    degree: Annotated[
        int | None, typer.Option(min=1, help="Highest order of the reranker's features.")
    ] = None,
    threshold: Annotated[float, typer.Option(help="More select fewer features of the reranker.")] = 3.0,
    rerank_folds: Annotated[int, typer.Option(min=2, help="Parts that are parsed for the reranker.")] = 10,
    fold_epochs: Annotated[
        int | None, typer.Option(min=1, help="Epochs of the parsers of these; --epochs otherwise.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last finished step.")] = False,
) -> None:
    """Train a dependency parser, and with --rerank a reranker of its trees.

    Example: `treewright train dependency train.conllu --dev dev.conllu --model parser.tw --rerank`
    """
    from treewright._cache import cache_folder
    from treewright.checkpoint import Checkpoint
    from treewright.data.conllu import read_conllu
    from treewright.parsing.dependency import DependencyParser
    from treewright.rerank.reranker import DependencyReranker

    checkpoint = _begin_checkpoint(model, resume=resume)
    _check_writable(model)
    parser = DependencyParser(
        order=order,
        k=k,
        epochs=epochs,
        runs=runs,
        tags=tags,
        decoder=decoder,
        jackknife=jackknife,
        patience=patience,
        seed=seed,
        table_bits=table_bits,
        pruning_threshold=pruning_threshold,
        max_heads=max_heads,
        folds=folds,
        lifting=lifting,
        jobs=jobs,
    )
    development = read_conllu(dev) if dev else None
    if rerank:
        reranker = DependencyReranker(
            parser=parser,
            space=space,
            degree=degree,
            threshold=threshold,
            folds=rerank_folds,
            fold_epochs=fold_epochs,
            seed=seed,
            jobs=jobs,
        )
        lists = cache_folder("lists")
        reranker.fit(read_conllu(trees), development, progress=_say, checkpoint=checkpoint, cache=lists).save(
            model
        )
        for step in ("parser", "mining"):
            Checkpoint.remove(checkpoint / step)
    else:
        parser.fit(read_conllu(trees), development, progress=_say, checkpoint=checkpoint).save(model)
    Checkpoint.remove(checkpoint)
    _say(f"written: {model}")


@train.command()
def tagger(
    trees: Annotated[str, typer.Argument(metavar="TRAIN", help="A treebank in CoNLL-U.")],
    model: Annotated[Path, typer.Option(help="File for the model.")],
    dev: Annotated[str | None, typer.Option(help="Sentences to score at the end.")] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training sentences.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same model.")] = 0,
) -> None:
    """Train a tagger of parts of speech, morphological features and lemmas.

    Example: `treewright train tagger train.conllu --dev dev.conllu --model tagger.tw`
    """
    from treewright.data.conllu import read_conllu
    from treewright.parsing.tagger import Tagger

    _check_writable(model)
    development = read_conllu(dev, require_heads=False) if dev else None
    sentences = read_conllu(trees, require_heads=False)
    Tagger(epochs=epochs, seed=seed).fit(sentences, development, progress=_say).save(model)
    _say(f"written: {model}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _check_writable(path: Path) -> None:
    """Find out before long work whether the result can be written."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; expected the name of a file")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        error.filename = str(path)
        raise


@app.command()
def parse(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A parser or a tagger.")],
    source: Annotated[str, typer.Argument(metavar="INPUT", help="CoNLL-U, or text with --raw; - is input.")],
    output: Annotated[str, typer.Option(help="File for the result.")] = "-",
    tags: Annotated[
        str | None, typer.Option(help="gold: as in INPUT; predicted: by the parser; as trained otherwise.")
    ] = None,
    kbest: Annotated[int, typer.Option(min=1, max=10_000, help="Write so many trees a sentence.")] = 1,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Add the probability of each arc to MISC.")
    ] = False,
    raw: Annotated[bool, typer.Option("--raw", help="INPUT is plain text (needs the extra spacy).")] = False,
    language: Annotated[
        str | None, typer.Option(help="Language of the words of --raw, as en; xx, for any, otherwise.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Threads; the result does not depend on them.")] = 1,
) -> None:
    """Parse sentences and write CoNLL-U; comments, multiword tokens and other columns are kept.

    Example: `treewright parse parser.tw input.conllu --output parsed.conllu --kbest 10`
    """
    from treewright._models import load
    from treewright.parsing.files import parse_file

    if language and not raw:
        raise InputError("--language is for plain text; expected --raw with it")
    parse_file(
        load(model),
        source,
        output,
        tags=tags,
        kbest=kbest,
        confidence=confidence,
        language=(language or "xx") if raw else None,
        jobs=jobs,
    )


@app.command()
def explain(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A parser trained with --rerank.")],
    source: Annotated[str, typer.Argument(metavar="INPUT", help="CoNLL-U, or text with --raw; - is input.")],
    reasons: Annotated[int, typer.Option(min=1, help="Features to show for each sentence.")] = 10,
    candidates: Annotated[int, typer.Option(min=1, help="Trees to show for each sentence.")] = 3,
    sentences: Annotated[int, typer.Option(min=1, help="Explain the first so many sentences.")] = 10,
    raw: Annotated[bool, typer.Option("--raw", help="INPUT is plain text (needs the extra spacy).")] = False,
    language: Annotated[str, typer.Option(help="Language of the words of --raw, as en.")] = "xx",
) -> None:
    """Show why a tree won: the best candidates, and the features that decided between the first two.

    Example: `treewright explain parser.tw sentence.conllu`
    """
    from itertools import islice

    from treewright._models import load
    from treewright.data.conllu import iter_conllu
    from treewright.parsing.files import iter_text, with_tags
    from treewright.report.reranking import show_comparisons
    from treewright.rerank.reranker import DependencyReranker

    reranker = load(model)
    if not isinstance(reranker, DependencyReranker):
        raise InputError(f"{model} has no reranker; expected a model trained with --rerank")
    found = iter_text(source, language) if raw else iter_conllu(source, require_heads=False)
    trees = [tree for tree in islice(with_tags(reranker, found, source), sentences) if len(tree)]
    show_comparisons(Console(), reranker.explain(trees), n_candidates=candidates, n_reasons=reasons)


@app.command()
def mine(
    source: Annotated[
        str,
        typer.Argument(metavar="DATA", help="Samples, a line each: a label, then its features; - is input."),
    ],
    out: Annotated[Path, typer.Option(help="File for the table of conjunctions.")],
    degree: Annotated[int, typer.Option(min=1, help="The most features in a conjunction.")] = 3,
    threshold: Annotated[
        str, typer.Option(help="A number: more select less; auto: chosen on held-out samples.")
    ] = "auto",
    max_iter: Annotated[int, typer.Option(min=1, help="Rounds through the space.")] = 20,
    paper: Annotated[
        bool, typer.Option("--paper", help="The settings of Qian & Liu (2015); --max-iter has no effect.")
    ] = False,
    memory_limit: Annotated[
        int | None, typer.Option(min=1, help="MiB that survivors may take; the rest goes to disk.")
    ] = None,
    filter_memory: Annotated[
        int | None, typer.Option(min=1, help="MiB for a Bloom filter before candidates are counted.")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="File for the miner, for `treewright.load`.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same conjunctions.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Threads; the result does not depend on them.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last finished round.")] = False,
) -> None:
    """Select conjunctions of binary features by gradient mining, and write them with their weights.

    Example: `treewright mine data.svmlight --degree 4 --threshold 3 --out features.tsv`
    """
    import numpy as np

    from treewright.checkpoint import Checkpoint
    from treewright.data.svmlight import read_svmlight
    from treewright.mining.gradient import PAPER_SETTINGS
    from treewright.mining.miner import ConjunctionMiner
    from treewright.report.mining import mining_display, write_conjunctions

    checkpoint = _begin_checkpoint(out, resume=resume)
    if model == out:
        raise InputError(f"--model and --out are both {out}; expected two files")
    for path in (out, model):
        if path is not None:
            _check_writable(path)
    options = PAPER_SETTINGS if paper else {"max_iter": max_iter}
    miner = ConjunctionMiner(
        degree=degree,
        threshold=_parse_threshold(threshold),
        memory_limit=memory_limit and memory_limit << 20,
        filter_memory=filter_memory and filter_memory << 20,
        seed=seed,
        jobs=jobs,
        **options,
    )
    samples = read_svmlight(source)
    with mining_display() as progress, warnings.catch_warnings(action="ignore", category=UserWarning):
        miner.fit(samples.X, samples.y, progress=progress, checkpoint=checkpoint)
    write_conjunctions(miner, samples, out)
    if model is not None:
        miner.feature_names_in_ = np.array(samples.names, dtype=object)
        miner.save(model)
    Checkpoint.remove(checkpoint)
    _say(f"threshold {miner.threshold_:.4g}: {len(miner.conjunctions_):,} conjunctions written: {out}")
    if not miner.conjunctions_:
        _say("a lower --threshold selects more")


def _parse_threshold(text: str) -> float | str:
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise InputError(f"--threshold is {text!r}; expected a number or auto") from None


def _begin_checkpoint(result: Path, *, resume: bool) -> Path:
    """Return the folder that keeps unfinished work on a result; one that is there must be wanted."""
    checkpoint = Path(f"{result}.checkpoint")
    if checkpoint.exists() and not checkpoint.is_dir():
        raise InputError(f"{checkpoint} is a file; expected a folder for unfinished work, or nothing")
    if checkpoint.exists() and not resume:
        raise InputError(f"{checkpoint} is left of work that was interrupted; give --resume, or delete it")
    return checkpoint


app.command()(kernel)


@app.command()
def reproduce(
    experiment: Annotated[str, typer.Argument(metavar="EXPERIMENT", help="One of the names above.")],
    data: Annotated[Path, typer.Option(help="Folder with treebanks, or the file to train on of one.")],
    out: Annotated[Path, typer.Option(help="Folder for the tables, the plot and the page.")],
    tags: Annotated[str, typer.Option(help="predicted: by the parser's own tagger; gold.")] = "predicted",
    punctuation: Annotated[
        str, typer.Option(help="all: scored like words; unicode or penn: left out by that rule.")
    ] = "all",
    epochs: Annotated[int | None, typer.Option(min=1, help="Of the parser, if not its own.")] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="Of the parser, if not its own.")] = None,
    k: Annotated[int, typer.Option(min=2, help="Length of the candidate lists.")] = 10,
    folds: Annotated[int, typer.Option(min=2, help="Parts that are parsed as if new.")] = 10,
    threshold: Annotated[float, typer.Option(help="Of the selection, in Tables 2 and 4.")] = 3.0,
    thresholds: Annotated[str, typer.Option(help="To be compared in Table 3.")] = "1,2,3,5,10",
    degrees: Annotated[str, typer.Option(help="Of the polynomial kernels in Table 2.")] = "2,4,8",
    systems: Annotated[
        str | None, typer.Option(help="Rows of Table 2, as kernel-2,mined-tree; all otherwise.")
    ] = None,
    sentences: Annotated[
        int | None, typer.Option(min=1, help="Train on the first so many only, to try things out.")
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder to keep what is finished in.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same result.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Threads; the result does not depend on them.")] = 1,
) -> None:
    """Run an experiment of a paper, and write its table beside the paper's figures.

    - `qian-liu-table2`: kernels against features selected in their spaces
    - `qian-liu-table3`: what the threshold of the selection changes
    - `qian-liu-table4`: every treebank of a folder, reranked
    - `moschitti-figure4`: time of tree kernels by the size of trees

    What is finished is kept: the same command goes on after an interruption.

    Example: `treewright reproduce qian-liu-table2 --data ewt --out results`
    """
    import shlex

    from treewright.report.experiment import Settings
    from treewright.report.reproduce import reproduce as run_experiment

    if punctuation not in PUNCTUATION_CHOICES:
        raise InputError(f"--punctuation is {punctuation!r}; expected {', '.join(PUNCTUATION_CHOICES)}")
    settings = Settings(
        seed=seed,
        jobs=jobs,
        epochs=epochs,
        runs=runs,
        k=k,
        folds=folds,
        threshold=threshold,
        thresholds=_parse_numbers("--thresholds", thresholds, float),
        degrees=_parse_numbers("--degrees", degrees, int),
        systems=tuple(systems.split(",")) if systems else None,
        tags=tags,
        punctuation=PUNCTUATION_CHOICES[punctuation],
        n_sentences=sentences,
    )
    command = shlex.join(["treewright", *sys.argv[1:]])
    files = run_experiment(
        experiment, data, out, settings=settings, cache=cache, command=command, progress=_say
    )
    print(files[0].read_text(encoding="utf-8"))
    _say(f"written: {', '.join(map(str, files))}")


def _parse_numbers(option: str, text: str, kind: type[Number]) -> tuple[Number, ...]:
    try:
        return tuple(kind(number) for number in text.split(","))
    except ValueError:
        wanted = "integers" if kind is int else "numbers"
        raise InputError(f"{option} is {text!r}; expected {wanted} with commas between them") from None


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A treebank, as UD_English-EWT or en_ewt.")],
    release: Annotated[str, typer.Option(help="Release of Universal Dependencies.")] = "2.14",
    base_url: Annotated[
        str | None, typer.Option(help="Where the repositories are, if not on GitHub.")
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder to keep treebanks in.")] = None,
) -> None:
    """Download a Universal Dependencies treebank, once, and print where its files are.

    Example: `treewright fetch UD_Hungarian-Szeged`
    """
    from treewright.data.remote import BASE_URL, fetch_treebank
    from treewright.report.progress import download_bar

    with download_bar() as progress:
        files = fetch_treebank(
            name, release=release, base_url=base_url or BASE_URL, cache=cache, progress=progress
        )
    for path in files:
        if path:
            print(path)
