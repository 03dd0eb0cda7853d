"""The commands `treewright parse` and `treewright explain`."""

from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from treewright.annotation.contract import Request
from treewright.annotation.files import annotate_file
from treewright.commands.signatures import Chosen, Options, takes
from treewright.commands.work import begin_checkpoint, check_results, open_cluster, running
from treewright.data.files import check_folder, is_same_file, is_special
from treewright.data.formats import open_text_or_trees
from treewright.errors import InputError

if TYPE_CHECKING:
    from treewright.annotation.contract import Annotator


def offer_languages(incomplete: str) -> list[str]:
    """Complete the languages that spaCy supports, if it is installed, without importing it."""
    found = find_spec("spacy")
    places = list(found.submodule_search_locations or ()) if found else []
    names = sorted(path.parent.name for place in places for path in Path(place, "lang").glob("*/__init__.py"))
    return [name for name in names if name.startswith(incomplete)]


Language = Annotated[
    str | None,
    typer.Option(
        autocompletion=offer_languages,
        metavar="CODE",
        help="Split plain text with spaCy's rules for this language, such as en (needs the extra spacy).",
    ),
]


@takes(
    wanted=Options(Request, spellings={"k": "kbest"}, leave_out=("language",)),
    jobs=Options(annotate_file, only=("n_jobs",)),
    how=Options(running),
)
def parse(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A pipeline, parser, tagger or role labeler.")
    ],
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="Plain text, CoNLL-U or brackets (- is standard input).",
        ),
    ],
    output: Annotated[str, typer.Option(metavar="FILE", help="Output file (- is standard output).")] = "-",
    language: Language = None,
    *,
    wanted: Chosen,
    jobs: Chosen,
    how: Chosen,
) -> None:
    """Parse sentences with a trained model.

    MODEL is a file, or the name of a model in the package, such as `en`. A pipeline reads plain text or
    CoNLL-U; the format is detected. Dependencies are written as CoNLL-U, with all other columns kept, and
    constituents as brackets. A semantic role labeler reads trees in brackets and writes PropBank columns.

    Example: `treewright parse en text.txt --output parsed.conllu --kbest 10`
    """
    from treewright.model import load

    request = Request(language=language, **wanted.values)
    known, scheduler = request.predicates_from, how.values["scheduler"]
    is_text = request.raw or language is not None
    inputs = {"MODEL": model, "INPUT": source if is_text else None, "--predicates-from": known}
    check_results({"--output": output}, inputs)
    check_folder(output)
    names = [name for name in (output, source, known) if name is not None]
    no_file = next((name for name in names if name == "-" or is_special(name)), None)
    resume = how.values["resume"]
    if no_file is not None and resume:
        found = f"--resume does not work with {no_file}, which is not a file"
        raise InputError(f"{found}; expected files as input and output")
    checkpoint = begin_checkpoint(Path(output), resume=resume) if no_file is None else None
    loaded = check_annotator(model, load(model))
    if request.draw or not loaded.keeps_input or (is_same_file(output, source) and _is_text(source)):
        check_results({"--output": output}, {"INPUT": source})
    if scheduler is not None and not loaded.uses_cluster:
        raise InputError(f"--scheduler does not work with a {type(loaded).__name__}; use --jobs")
    with open_cluster(scheduler) if scheduler is not None else nullcontext() as client:
        annotate_file(loaded, source, output, request, checkpoint=checkpoint, client=client, **jobs.values)


def _is_text(source: str) -> bool:
    """Return whether a file is plain text, which cannot be restored from the trees."""
    with open_text_or_trees(source) as (content, _):
        return content == "text"


def check_annotator(path: str, model: Any) -> "Annotator":  # noqa: ANN401
    """Return `model`; raise `InputError` if it does not annotate sentences."""
    if not hasattr(model, "annotate"):
        raise InputError(f"{path} is a {type(model).__name__}; expected a parser, a tagger or a role labeler")
    found: Annotator = model
    return found


def explain(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A pipeline or dependency parser.")],
    source: Annotated[
        str, typer.Argument(metavar="INPUT", help="Plain text or CoNLL-U (- is standard input).")
    ],
    reasons: Annotated[int, typer.Option(min=1, help="Number of features to show for each tree.")] = 10,
    candidates: Annotated[int, typer.Option(min=1, help="Number of candidates to show per sentence.")] = 3,
    sentences: Annotated[int, typer.Option(min=1, help="Number of sentences to explain.")] = 10,
    raw: Annotated[bool, typer.Option("--raw", help="Always read the input as plain text.")] = False,
    language: Language = None,
) -> None:
    """Show why a parser or reranker chose a tree.

    Prints the best candidates and, for the first two, the features that favour each of them, with totals.

    Example: `treewright explain en sentences.txt`
    """
    from itertools import islice

    from treewright.model import load
    from treewright.report.reranking import show_comparisons

    request = Request(raw=raw, language=language)
    parser = check_annotator(model, load(model))
    if not parser.explains:
        given = f"{model} is a {type(parser).__name__}, which has no features to show"
        raise InputError(f"{given}; expected a pipeline or a dependency parser with a linear model")
    with parser.open_sentences(source, request) as found:
        trees = [tree for tree in islice(found, sentences) if len(tree)]
    show_comparisons(Console(), parser.explain(trees), n_candidates=candidates, n_reasons=reasons)
