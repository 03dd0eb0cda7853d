"""The commands `treewright convert`, `evaluate` and `fetch`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from treewright._typing import Count, FileName, NonNegativeInt
from treewright._validate import GIVEN, effective_if
from treewright.commands.signatures import Chosen, Options, takes
from treewright.commands.work import check_writable
from treewright.data.convert import convert_file
from treewright.data.remote import fetch_treebank
from treewright.errors import InputError, quote


def offer_treebanks(incomplete: str) -> list[str]:
    """Complete the names of treebanks that can be downloaded, long or short."""
    from treewright.data.languages import REPOSITORIES

    names = REPOSITORIES if incomplete and incomplete[0].islower() else REPOSITORIES.values()
    return [name for name in names if name.startswith(incomplete)]


CONVERSION = {"from_format": "from", "to_format": "to", "lift": "projectivize", "lower": "deprojectivize"}
"""Options whose names are reserved in Python."""


@takes(chosen=Options(convert_file, spellings=CONVERSION, leave_out=("source", "target")))
def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="Input file (- is standard input).")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="Output file (- is standard output).")],
    chosen: Chosen,
) -> None:
    """Convert a treebank to another format.

    Formats are CoNLL-U, CoNLL-X, CoNLL-2009, Penn brackets and PropBank columns.

    Example: `treewright convert wsj.mrg wsj.conllu --rules collins`
    """
    convert_file(source, target, **chosen.values)


@effective_if(
    metric={"against": GIVEN},
    random_state={"against": GIVEN},
    relations={"json": (False,)},
)
def scoring(
    *,
    conll2018: bool = False,
    multiple_roots: bool = False,
    no_punctuation: bool = False,
    penn_punctuation: bool = False,
    relations: bool = False,
    max_length: Count | None = None,
    against: FileName | None = None,
    metric: str | None = None,
    verbs: bool = False,
    plot: FileName | None = None,
    json: bool = False,
    random_state: NonNegativeInt = 0,
) -> None:
    """Declare options.

    Parameters
    ----------
    conll2018 : bool
        Score tokens, sentences, tags, lemmas and trees as in the CoNLL 2018 shared task.
    multiple_roots : bool
        Allow several roots per sentence with --conll2018.
    no_punctuation : bool
        Ignore words that consist of Unicode punctuation.
    penn_punctuation : bool
        Ignore words whose gold Penn tag is punctuation.
    relations : bool
        Add a row for each relation.
    max_length : int, optional
        Maximum sentence length when scoring brackets.
    against : str, optional
        Another prediction file, for a significance test.
    metric : str, optional
        Metric to test, such as uas (default) or las for dependencies, and f1 (default) or exact for brackets.
    verbs : bool
        Score only the roles of predicates with a gold verb tag.
    plot : str, optional
        File for a reliability diagram of the confidences (png, svg or pdf).
    json : bool
        Print JSON, including relations, instead of a table.
    random_state : int
        Random seed of the significance test.
    """


@takes(chosen=Options(scoring))
def evaluate(
    gold: Annotated[
        str, typer.Argument(metavar="GOLD", help="CoNLL-U, brackets or PropBank columns (detected).")
    ],
    predicted: Annotated[
        str, typer.Argument(metavar="PREDICTED", help="Predictions for the same sentences or text.")
    ],
    chosen: Chosen,
) -> None:
    """Score predictions against gold annotation.

    CoNLL-U is scored by attachment (UAS, LAS), brackets by PARSEVAL (as in evalb), roles as in srl-eval.

    If GOLD and PREDICTED split the same text into different words or sentences, the words are aligned by
    characters, and all columns are scored as in the CoNLL 2018 shared task (as with `--conll2018`).

    If the words have confidences (see `treewright parse --confidence`), their calibration is also scored.

    Example: `treewright evaluate gold.conllu parsed.conllu --no-punctuation --against other.conllu`
    """
    from treewright.report.reliability import plot_reliability
    from treewright.report.scores import draw_scores, score_files, scores_as_json

    chosen.refuse_without_effect()
    values = dict(chosen.values)
    if values["plot"]:
        check_writable(Path(values["plot"]))
    relations, plot, as_json = values.pop("relations"), values.pop("plot"), values.pop("json")
    penn, no_punctuation = values.pop("penn_punctuation"), values.pop("no_punctuation")
    values["by_characters"] = values.pop("conll2018")
    if penn and no_punctuation:
        raise InputError("--no-punctuation and --penn-punctuation are both given; expected one of them")
    punctuation = "penn" if penn else "unicode" if no_punctuation else True
    word_options = {
        "--no-punctuation": no_punctuation,
        "--penn-punctuation": penn,
        "--relations": relations,
        "--against": values["against"],
        "--plot": plot,
    }
    scores = score_files(
        gold,
        predicted,
        punctuation=punctuation,
        relations=relations,
        word_options=[name for name, value in word_options.items() if value],
        **values,
    )
    if plot:
        if scores.reliability is None:
            raise InputError(
                f"{predicted} has no confidence in MISC to plot; expected Confidence=...; "
                "parse again with --confidence"
            )
        plot_reliability(scores.reliability, Path(plot))
    if as_json:
        print(scores_as_json(scores))
    else:
        draw_scores(Console(), scores, relations=relations)


@takes(chosen=Options(fetch_treebank, only=("release", "code", "base_url", "cache")))
def fetch(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            autocompletion=offer_treebanks,
            help="A treebank, such as UD_English-EWT or en_ewt; with --list, a language or part of a name.",
        ),
    ] = "",
    listed: Annotated[
        bool,
        typer.Option("--list", help="List the available treebanks with their short names and languages."),
    ] = False,
    *,
    chosen: Chosen,
) -> None:
    """Download a Universal Dependencies treebank.

    Existing files are not downloaded again. Prints the paths of all files.

    Example: `treewright fetch UD_Hungarian-Szeged` (`treewright fetch --list Hungarian` lists names)
    """
    from treewright.data.languages import LIST_COMMAND, list_treebanks, suggest_names

    if listed:
        chosen.refuse("with --list; remove one of them")
        found = list_treebanks(name)
        if not found:
            remedy = suggest_names(name) or f" ({LIST_COMMAND} lists all)"
            expected = "expected a language or part of a name, such as English or EWT"
            raise InputError(f"no treebank has {quote(name)} in its name; {expected}{remedy}")
        widths = [max(map(len, column)) for column in zip(*found, strict=True)]
        for each in found:
            print("  ".join(text.ljust(width) for text, width in zip(each, widths, strict=True)).rstrip())
        return
    if not name:
        raise InputError(
            f"no treebank was given; expected a name such as UD_English-EWT ({LIST_COMMAND} lists all)"
        )
    for path in fetch_treebank(name, **chosen.values):
        if path:
            print(path)
