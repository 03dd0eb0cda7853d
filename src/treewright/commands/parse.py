"""Commands for trained models: parse, explain."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Console

from treewright._typing import TagSource
from treewright.commands.signatures import RUNNING, offer
from treewright.commands.work import Scheduler, begin_growing, check_results, open_cluster
from treewright.errors import InputError


def offer_languages(incomplete: str) -> list[str]:
    """Offer a shell the languages that spaCy can split, if it is there, without loading it."""
    found = find_spec("spacy")
    places = list(found.submodule_search_locations or ()) if found else []
    names = sorted(path.parent.name for place in places for path in Path(place, "lang").glob("*/__init__.py"))
    return [name for name in names if name.startswith(incomplete)]


def parse(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Parser, tagger or role labeler.")],
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="CoNLL-U, brackets, or text with --raw (- for standard input).",
        ),
    ],
    output: Annotated[str, typer.Option(metavar="FILE", help="File for the result.")] = "-",
    tags: Annotated[
        str | None,
        typer.Option(
            autocompletion=offer(get_args(TagSource)),
            metavar="gold|predicted",
            help="Use the tags of INPUT, or predict them (by default as trained).",
        ),
    ] = None,
    kbest: Annotated[int, typer.Option(min=1, max=10_000, help="Number of k-best trees per sentence.")] = 1,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Write the probability of each arc to MISC.")
    ] = False,
    fixed_heads: Annotated[
        bool,
        typer.Option("--fixed-heads", help="Keep the heads that INPUT has (_ where unknown)."),
    ] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Read plain text (needs the extra spacy).")] = False,
    language: Annotated[
        str | None,
        typer.Option(
            autocompletion=offer_languages,
            metavar="CODE",
            help="Language of --raw, such as en (any by default).",
        ),
    ] = None,
    predicates_from: Annotated[
        str | None, typer.Option(metavar="FILE", help="PropBank columns with known predicates.")
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(min=1, help="Number of threads; results do not depend on it.", rich_help_panel=RUNNING),
    ] = 1,
    scheduler: Scheduler = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Resume after the last finished sentence.", rich_help_panel=RUNNING),
    ] = False,
) -> None:
    """Parse sentences with a trained model.

    Dependencies are written as CoNLL-U, with all other columns kept, and constituents as brackets. A semantic
    role labeler reads trees in brackets and writes PropBank columns.

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
        from treewright.srl.files import label_file

        label_file(
            loaded, source, output, predicates_from=predicates_from, n_jobs=jobs, checkpoint=checkpoint
        )
    else:
        raise InputError(
            f"{model} is a {type(loaded).__name__}; expected a parser, a tagger or a labeler of roles"
        )


def explain(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Parser trained with --rerank.")],
    source: Annotated[
        str, typer.Argument(metavar="INPUT", help="CoNLL-U, or text with --raw (- for standard input).")
    ],
    reasons: Annotated[int, typer.Option(min=1, help="Number of features to show per sentence.")] = 10,
    candidates: Annotated[int, typer.Option(min=1, help="Number of candidates to show per sentence.")] = 3,
    sentences: Annotated[int, typer.Option(min=1, help="Number of sentences to explain.")] = 10,
    raw: Annotated[bool, typer.Option("--raw", help="Read plain text (needs the extra spacy).")] = False,
    language: Annotated[
        str,
        typer.Option(autocompletion=offer_languages, metavar="CODE", help="Language of --raw, such as en."),
    ] = "xx",
) -> None:
    """Show why a reranker preferred a tree.

    Prints the best candidates, and the features that decided between the first two.

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
