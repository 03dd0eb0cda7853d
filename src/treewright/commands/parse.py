"""Commands for trained models: parse, explain."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from rich.console import Console

from treewright._typing import TagSource
from treewright.commands.signatures import RUNNING, offer
from treewright.commands.work import Scheduler, begin_growing, check_results, open_cluster
from treewright.errors import InputError

if TYPE_CHECKING:
    from treewright.annotation.contract import Annotator


def offer_languages(incomplete: str) -> list[str]:
    """Offer a shell the languages that spaCy can split, if it is there, without loading it."""
    found = find_spec("spacy")
    places = list(found.submodule_search_locations or ()) if found else []
    names = sorted(path.parent.name for place in places for path in Path(place, "lang").glob("*/__init__.py"))
    return [name for name in names if name.startswith(incomplete)]


Raw = Annotated[bool, typer.Option("--raw", help="Read INPUT as plain text, whatever it looks like.")]
Language = Annotated[
    str | None,
    typer.Option(
        autocompletion=offer_languages,
        metavar="CODE",
        help="Split plain text by spaCy's rules for a language, such as en (needs the extra spacy).",
    ),
]


def parse(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Pipeline, parser, tagger or role labeler.")],
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="Plain text, CoNLL-U or brackets (- for standard input).",
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
    raw: Raw = False,
    language: Language = None,
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

    MODEL is a file, or the name of a model in the package, such as en. A pipeline reads plain text or
    CoNLL-U, and tells one from the other. Dependencies are written as CoNLL-U, with all other columns kept,
    and constituents as brackets. A semantic role labeler reads trees in brackets and writes PropBank columns.

    Example: `treewright parse en text.txt --output parsed.conllu --kbest 10`
    """
    from treewright.annotation.contract import Request
    from treewright.annotation.files import annotate_file
    from treewright.model import load

    request = Request(
        k=kbest,
        tags=tags,  # type: ignore[arg-type]
        confidence=confidence,
        fixed_heads=fixed_heads,
        raw=raw,
        language=language,
        predicates_from=predicates_from,
    )
    inputs = {
        "MODEL": model,
        "INPUT": source if raw or language else None,
        "--predicates-from": predicates_from,
    }
    check_results({"--output": output}, inputs)
    checkpoint = begin_growing(output, [source, predicates_from], resume=resume)
    loaded = check_annotator(model, load(model))
    if not loaded.keeps_input:
        check_results({"--output": output}, {"INPUT": source})
    if scheduler is not None and not loaded.uses_cluster:
        raise InputError(f"--scheduler with a {type(loaded).__name__}; expected --jobs")
    with open_cluster(scheduler) as client:
        annotate_file(loaded, source, output, request, n_jobs=jobs, checkpoint=checkpoint, client=client)


def check_annotator(path: str, model: Any) -> "Annotator":  # noqa: ANN401
    """Return a model that annotates sentences, or refuse it."""
    if not hasattr(model, "annotate"):
        raise InputError(f"{path} is a {type(model).__name__}; expected a parser, a tagger or a role labeler")
    found: Annotator = model
    return found


def explain(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Dependency parser trained with --rerank.")],
    source: Annotated[
        str, typer.Argument(metavar="INPUT", help="Plain text or CoNLL-U (- for standard input).")
    ],
    reasons: Annotated[int, typer.Option(min=1, help="Number of features to show per sentence.")] = 10,
    candidates: Annotated[int, typer.Option(min=1, help="Number of candidates to show per sentence.")] = 3,
    sentences: Annotated[int, typer.Option(min=1, help="Number of sentences to explain.")] = 10,
    raw: Raw = False,
    language: Language = None,
) -> None:
    """Show why a reranker preferred a tree.

    Prints the best candidates, and the features that decided between the first two.

    Example: `treewright explain parser.tw sentence.conllu`
    """
    from itertools import islice

    from treewright.annotation.contract import Request
    from treewright.model import load
    from treewright.report.reranking import show_comparisons

    reranker = check_annotator(model, load(model))
    if not reranker.explains:
        raise InputError(
            f"{model} has no reasons to show; expected a dependency parser trained with --rerank"
        )
    with reranker.open_sentences(source, Request(raw=raw, language=language)) as found:
        trees = [tree for tree in islice(found, sentences) if len(tree)]
    show_comparisons(Console(), reranker.explain(trees), n_candidates=candidates, n_reasons=reasons)
