"""Commands for parsers: train, parse, explain."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from treewright.commands import choices
from treewright.commands.choices import offer
from treewright.commands.roles import write_roles
from treewright.commands.work import (
    Scheduler,
    begin_checkpoint,
    begin_growing,
    check_results,
    check_writable,
    open_cluster,
    say,
)
from treewright.errors import InputError


def dependency(
    trees: Annotated[str, typer.Argument(metavar="TRAIN", help="A treebank in CoNLL-U.")],
    model: Annotated[Path, typer.Option(help="File for the model.")],
    dev: Annotated[str | None, typer.Option(help="Sentences to score after each epoch.")] = None,
    order: Annotated[int, typer.Option(min=1, max=3, help="1 arcs, 2 pairs of arcs, 3 triples.")] = 3,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training sentences.")] = 6,
    runs: Annotated[int, typer.Option(min=1, help="Trainings of which the mean is taken.")] = 4,
    k: Annotated[int, typer.Option(min=1, help="Length of candidate lists in training.")] = 10,
    tags: Annotated[
        str,
        typer.Option(
            autocompletion=offer(choices.TAGS), help="gold: as in the files; predicted: by an own tagger."
        ),
    ] = "gold",
    decoder: Annotated[
        str,
        typer.Option(
            autocompletion=offer(choices.DECODERS),
            help="projective, or spanning: any tree, crossing arcs or not (order 1).",
        ),
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
        str,
        typer.Option(
            autocompletion=offer(choices.LIFTINGS),
            help="How crossing arcs are lifted: path, head, head+path or baseline.",
        ),
    ] = "path",
    jobs: Annotated[int, typer.Option(min=1, help="Threads; the model does not depend on them.")] = 1,
    scheduler: Scheduler = None,
    rerank: Annotated[
        bool, typer.Option("--rerank", help="Also learn to choose among the parser's best trees.")
    ] = False,
    space: Annotated[
        str,
        typer.Option(
            autocompletion=offer(choices.SPACES),
            help="What the reranker looks at: subtree, polynomial or template.",
        ),
    ] = "subtree",
    degree: Annotated[
        int | None, typer.Option(min=1, help="Highest order of the reranker's features.")
    ] = None,
    threshold: Annotated[float, typer.Option(help="More select fewer features of the reranker.")] = 3.0,
    significance_level: Annotated[
        float,
        typer.Option(min=0, max=1, help="Rerank only if chance gains as much on DEV less often; 1: always."),
    ] = 0.05,
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
    from treewright.parsing.dependency.parser import DependencyParser
    from treewright.rerank.reranker import DependencyReranker

    checkpoint = begin_checkpoint(model, resume=resume)
    check_results({"--model": model}, {"TRAIN": trees, "--dev": dev})
    check_writable(model)
    parser = DependencyParser(
        order=order,
        k=k,
        epochs=epochs,
        runs=runs,
        tags=tags,
        decoder=decoder,
        jackknife=jackknife,
        patience=patience,
        random_state=seed,
        table_bits=table_bits,
        pruning_threshold=pruning_threshold,
        max_heads=max_heads,
        folds=folds,
        lifting=lifting,
        n_jobs=jobs,
    )
    development = read_conllu(dev) if dev else None
    if rerank:
        reranker = DependencyReranker(
            parser=parser,
            space=space,
            degree=degree,
            threshold=threshold,
            significance_level=significance_level if significance_level < 1 else None,
            folds=rerank_folds,
            fold_epochs=fold_epochs,
            random_state=seed,
            n_jobs=jobs,
        )
        lists = cache_folder("lists")
        fit: Callable[..., DependencyReranker | DependencyParser] = partial(reranker.fit, cache=lists)
    else:
        fit = parser.fit
    training = read_conllu(trees)
    with open_cluster(scheduler) as client:
        fitted = fit(training, development, checkpoint=checkpoint, client=client)
    fitted.save(model)
    Checkpoint.remove(checkpoint)
    say(f"written: {model}", event="result")


def tagger(
    trees: Annotated[str, typer.Argument(metavar="TRAIN", help="A treebank in CoNLL-U.")],
    model: Annotated[Path, typer.Option(help="File for the model.")],
    dev: Annotated[str | None, typer.Option(help="Sentences to score at the end.")] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training sentences.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same model.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last finished epoch.")] = False,
) -> None:
    """Train a tagger of parts of speech, morphological features and lemmas.

    Example: `treewright train tagger train.conllu --dev dev.conllu --model tagger.tw`
    """
    from treewright.checkpoint import Checkpoint
    from treewright.data.conllu import read_conllu
    from treewright.tagging.tagger import Tagger

    checkpoint = begin_checkpoint(model, resume=resume)
    check_results({"--model": model}, {"TRAIN": trees, "--dev": dev})
    check_writable(model)
    development = read_conllu(dev, require_heads=False) if dev else None
    sentences = read_conllu(trees, require_heads=False)
    fresh = Tagger(epochs=epochs, random_state=seed)
    fresh.fit(sentences, development, checkpoint=checkpoint).save(model)
    Checkpoint.remove(checkpoint)
    say(f"written: {model}", event="result")


def parse(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A parser, a tagger or a labeler of roles.")],
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="CoNLL-U, for constituents and roles brackets, or text with --raw; - is input.",
        ),
    ],
    output: Annotated[str, typer.Option(help="File for the result.")] = "-",
    tags: Annotated[
        str | None,
        typer.Option(
            autocompletion=offer(choices.TAGS),
            help="gold: as in INPUT; predicted: by the parser; as trained otherwise.",
        ),
    ] = None,
    kbest: Annotated[int, typer.Option(min=1, max=10_000, help="Write so many trees a sentence.")] = 1,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Add the probability of each arc to MISC (dependencies).")
    ] = False,
    fixed_heads: Annotated[
        bool,
        typer.Option("--fixed-heads", help="Keep heads that INPUT has, _ where unknown (dependencies)."),
    ] = False,
    raw: Annotated[bool, typer.Option("--raw", help="INPUT is plain text (needs the extra spacy).")] = False,
    language: Annotated[
        str | None,
        typer.Option(
            autocompletion=choices.offer_languages,
            help="Language of the words of --raw, as en; xx, for any, otherwise.",
        ),
    ] = None,
    predicates_from: Annotated[
        str | None, typer.Option(help="PropBank columns whose predicates are known (semantic roles).")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Threads; the result does not depend on them.")] = 1,
    scheduler: Scheduler = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on after the last finished sentence.")] = False,
) -> None:
    """Parse sentences: dependencies as CoNLL-U, which keeps all other columns, constituents as brackets.

    With a labeler of semantic roles, INPUT has trees in brackets, and PropBank columns are written.

    Example: `treewright parse parser.tw input.conllu --output parsed.conllu --kbest 10`
    """
    from treewright.model import load
    from treewright.parsing.bracket_files import TreeParser, parse_to_brackets
    from treewright.parsing.conllu_files import Parser, parse_file
    from treewright.tagging.tagger import Tagger

    if language and not raw:
        raise InputError("--language is for plain text; expected --raw with it")
    # CoNLL-U may be parsed in its place, as nothing but heads, relations and tags changes.
    inputs = {"MODEL": model, "INPUT": source if raw else None, "--predicates-from": predicates_from}
    check_results({"--output": output}, inputs)
    checkpoint = begin_growing(output, [source, predicates_from], resume=resume)
    split_as = (language or "xx") if raw else None
    loaded = load(model)
    if predicates_from is not None and isinstance(loaded, TreeParser | Parser | Tagger):
        raise InputError(f"--predicates-from is for semantic roles; {model} is a {type(loaded).__name__}")
    if fixed_heads and (raw or not isinstance(loaded, Parser)):
        found = "--raw" if raw else f"{model}, which is a {type(loaded).__name__}"
        raise InputError(f"--fixed-heads with {found}; expected a dependency parser, and CoNLL-U")
    if isinstance(loaded, Parser | Tagger):
        with open_cluster(scheduler) as client:
            parse_file(
                loaded,
                source,
                output,
                tags=tags,
                kbest=kbest,
                confidence=confidence,
                fixed_heads=fixed_heads,
                language=split_as,
                n_jobs=jobs,
                checkpoint=checkpoint,
                client=client,
            )
    elif isinstance(loaded, TreeParser):
        check_results({"--output": output}, {"INPUT": source})
        if confidence:
            raise InputError(
                "--confidence is for arcs; expected a dependency parser, not one of constituents"
            )
        with open_cluster(scheduler) as client:
            parse_to_brackets(
                loaded,
                source,
                output,
                tags=tags,
                kbest=kbest,
                language=split_as,
                n_jobs=jobs,
                checkpoint=checkpoint,
                client=client,
            )
    elif type(loaded).__name__ == "RoleLabeler":  # importing it takes more time than parsing a sentence
        check_results({"--output": output}, {"INPUT": source})
        if tags or kbest > 1 or confidence or raw:
            raise InputError(
                f"{model} labels roles in trees; expected none of --tags, --kbest, --confidence and --raw"
            )
        if scheduler is not None:
            raise InputError("--scheduler is for parsers and taggers; expected --jobs for semantic roles")
        write_roles(loaded, source, output, predicates_from=predicates_from, jobs=jobs, checkpoint=checkpoint)
    else:
        raise InputError(
            f"{model} is a {type(loaded).__name__}; expected a parser, a tagger or a labeler of roles"
        )


def explain(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A parser trained with --rerank.")],
    source: Annotated[str, typer.Argument(metavar="INPUT", help="CoNLL-U, or text with --raw; - is input.")],
    reasons: Annotated[int, typer.Option(min=1, help="Features to show for each sentence.")] = 10,
    candidates: Annotated[int, typer.Option(min=1, help="Trees to show for each sentence.")] = 3,
    sentences: Annotated[int, typer.Option(min=1, help="Explain the first so many sentences.")] = 10,
    raw: Annotated[bool, typer.Option("--raw", help="INPUT is plain text (needs the extra spacy).")] = False,
    language: Annotated[
        str,
        typer.Option(autocompletion=choices.offer_languages, help="Language of the words of --raw, as en."),
    ] = "xx",
) -> None:
    """Show why a tree won: the best candidates, and the features that decided between the first two.

    Example: `treewright explain parser.tw sentence.conllu`
    """
    from itertools import islice

    from treewright.data.conllu import iter_conllu
    from treewright.model import load
    from treewright.parsing.conllu_files import iter_text, with_tags
    from treewright.report.reranking import show_comparisons
    from treewright.rerank.reranker import DependencyReranker

    reranker = load(model)
    if not isinstance(reranker, DependencyReranker):
        raise InputError(f"{model} has no reranker; expected a model trained with --rerank")
    found = iter_text(source, language) if raw else iter_conllu(source, require_heads=False)
    trees = [tree for tree in islice(with_tags(reranker, found, source), sentences) if len(tree)]
    show_comparisons(Console(), reranker.explain(trees), n_candidates=candidates, n_reasons=reasons)
