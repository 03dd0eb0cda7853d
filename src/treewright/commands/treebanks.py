"""Commands for files of trees: convert, evaluate, fetch."""

from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Console

from treewright._typing import LiftingScheme
from treewright.commands.signatures import offer
from treewright.data.formats import FORMATS
from treewright.data.heads import RuleName
from treewright.errors import InputError

FORMAT_NAMES = ", ".join(FORMATS)


def offer_treebanks(incomplete: str) -> list[str]:
    """Offer a shell the treebanks that can be fetched, by either of their names."""
    from treewright.data.languages import REPOSITORIES

    names = REPOSITORIES if incomplete and incomplete[0].islower() else REPOSITORIES.values()
    return [name for name in names if name.startswith(incomplete)]


def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="A file, or - for standard input.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="A file, or - for standard output.")],
    from_format: Annotated[
        str | None,
        typer.Option(
            "--from",
            autocompletion=offer([*FORMATS]),
            metavar="FORMAT",
            help=f"Format of IN (by default by name or content): {FORMAT_NAMES}.",
        ),
    ] = None,
    to_format: Annotated[
        str | None,
        typer.Option(
            "--to",
            autocompletion=offer([*FORMATS]),
            metavar="FORMAT",
            help="Format of OUT (by default by its name).",
        ),
    ] = None,
    rules: Annotated[
        str,
        typer.Option(
            autocompletion=offer(get_args(RuleName)),
            metavar="NAME",
            help="Head rules for dependencies: yamada-matsumoto, collins.",
        ),
    ] = "yamada-matsumoto",
    functions: Annotated[bool, typer.Option("--functions", help="Keep function tags in brackets.")] = False,
    traces: Annotated[bool, typer.Option("--traces", help="Keep traces in brackets.")] = False,
    unescape: Annotated[bool, typer.Option("--unescape", help="Write words -LRB- as brackets.")] = False,
    lift: Annotated[
        str | None,
        typer.Option(
            "--projectivize",
            autocompletion=offer(get_args(LiftingScheme)),
            metavar="SCHEME",
            help="Lift crossing arcs: baseline, head, path, head+path.",
        ),
    ] = None,
    lower: Annotated[
        bool, typer.Option("--deprojectivize", help="Undo the lifting of --projectivize.")
    ] = False,
) -> None:
    """Convert between formats of treebanks.

    These are CoNLL-U, CoNLL-X, CoNLL-2009, Penn brackets and PropBank columns.

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


def evaluate(
    gold: Annotated[
        str, typer.Argument(metavar="GOLD", help="CoNLL-U, brackets or PropBank columns, told by content.")
    ],
    predicted: Annotated[
        str, typer.Argument(metavar="PREDICTED", help="The same sentences, parsed, or the same text.")
    ],
    by_characters: Annotated[
        bool,
        typer.Option("--conll2018", help="Score tokens, sentences, tags, lemmas and trees as in CoNLL 2018."),
    ] = False,
    multiple_roots: Annotated[
        bool, typer.Option("--multiple-roots", help="Allow several roots per sentence in these scores.")
    ] = False,
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
    seed: Annotated[int, typer.Option(min=0, help="Seed of the significance test.")] = 0,
    verbs: Annotated[
        bool, typer.Option("--verbs", help="Score roles only of predicates that are verbs in gold.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help="File for a reliability plot (png, svg or pdf), of --confidence.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Score predictions against gold annotation.

    CoNLL-U is scored by attachment, brackets by PARSEVAL (as evalb), roles as srl-eval does it.

    If GOLD and PREDICTED are the same text with different words or sentences, these are aligned by
    characters, and all columns are scored as in the CoNLL 2018 shared task (as with `--conll2018`).

    Words with a confidence, as `treewright parse --confidence` writes it, are also scored for that.

    Example: `treewright evaluate gold.conllu parsed.conllu --no-punctuation --against other.conllu`
    """
    from treewright.report.reliability import plot_reliability
    from treewright.report.scores import draw_scores, score_files, scores_as_json

    if penn and no_punctuation:
        raise InputError("--no-punctuation and --penn-punctuation are two rules; expected one of them")
    given = {
        "--no-punctuation": no_punctuation,
        "--penn-punctuation": penn,
        "--relations": relations,
        "--against": against,
        "--plot": plot,
    }
    scores = score_files(
        gold,
        predicted,
        punctuation="penn" if penn else "unicode" if no_punctuation else True,
        max_length=max_length,
        against=against,
        metric=metric,
        random_state=seed,
        verbs=verbs,
        by_characters=by_characters,
        multiple_roots=multiple_roots,
        word_options=[name for name, value in given.items() if value],
    )
    if plot:
        if scores.reliability is None:
            raise InputError(f"{predicted} has no confidence in MISC to plot; expected Confidence=...")
        plot_reliability(scores.reliability, plot)
    if as_json:
        print(scores_as_json(scores))
    else:
        draw_scores(Console(), scores, relations=relations)


def fetch(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            autocompletion=offer_treebanks,
            help="A treebank, as UD_English-EWT or en_ewt.",
        ),
    ],
    release: Annotated[str, typer.Option(help="Release of Universal Dependencies.")] = "2.14",
    base_url: Annotated[
        str | None, typer.Option(help="Where the repositories are, if not on GitHub.")
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder to keep treebanks in.")] = None,
    code: Annotated[
        str | None, typer.Option(help="Of the language in file names, if it is not known here.")
    ] = None,
) -> None:
    """Download a Universal Dependencies treebank.

    What is there is not downloaded again. Prints the paths of its files.

    Example: `treewright fetch UD_Hungarian-Szeged`
    """
    from treewright.data.remote import BASE_URL, fetch_treebank

    files = fetch_treebank(name, release=release, base_url=base_url or BASE_URL, cache=cache, code=code)
    for path in files:
        if path:
            print(path)
