"""Scores of rerankers and what results depend on, as the tables of Titov & Henderson (2005) have them."""

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from treewright.data.consttree import ConstTree
from treewright.metrics.parseval import parseval
from treewright.metrics.significance import significance
from treewright.report.tables import Row
from treewright.report.titov.candidates import ConstituentOutcome, DerivedBench

PAPER = "Titov & Henderson (2005)"
PENN = "Penn Treebank"
SCORES = ("recall", "precision", "f1", "exact")


ABOUT_SCORES = (
    "LR, LP and F1 as evalb with COLLINS.prm counts them; exact: sentences with all brackets right."
)
ABOUT_TEST = "two-sided randomisation test of F1"


def score_outcome(
    bench: DerivedBench, outcome: ConstituentOutcome, base: ConstituentOutcome | None
) -> dict[str, Any]:
    """Return the scores of an outcome, and whether it differs from what it improves on."""
    score = parseval(bench.treebank.test, outcome.trees)
    test = compare_trees(bench, outcome.trees, base.trees) if base else {}
    own = {name: getattr(score, name) for name in (*SCORES, "n_sentences")}
    return {**own, **test, **outcome.facts}


def compare_trees(bench: DerivedBench, trees: list[ConstTree], others: list[ConstTree]) -> dict[str, float]:
    """Return how far the F1 of some trees differs from that of others, and the p-value of that."""
    found = significance(
        bench.treebank.test, trees, others, metric="f1", random_state=bench.settings.random_state
    )
    return {"difference": found.difference, "p_value": found.p_value}


def describe_row(row: Row) -> str:
    """Return a row of a table as a line of text."""
    against = f", {row['difference']:+.2f} (p = {row['p_value']:.4f})" if row.get("p_value") else ""
    return f"{row['title']}: F1 {row['f1']:.2f}{against}"


def describe_bench(bench: DerivedBench, *, small_threshold: int | None = None) -> dict[str, str]:
    """Return what a result depends on as texts, by name."""
    settings = bench.settings
    parser = bench.make_leftcorner(settings.large_threshold)
    trained = f"{parser.cell} cells, {parser.units} units, {parser.epochs} epochs at the most"
    given = bench.leftcorner_parser
    return {
        "treebank": bench.whole.describe(),
        "sentences": ", ".join(
            f"{len(trees):,} {use}"
            for trees, use in zip(
                bench.treebank[1:], ("to learn from", "to tune on", "to score"), strict=True
            )
        ),
        "left-corner parser": f"the model {given.name}, trained before" if given else trained,
        "words known": "those of the model"
        if given
        else f"with their tags seen {settings.large_threshold} times"
        + (f", or {small_threshold} in the small vocabulary" if small_threshold else ""),
        "candidates": f"{settings.k} of each parser",
        "training lists": f"{settings.folds} folds, parsed as if new"
        if settings.folds
        else "by parsers that have learnt from the sentences, as in the paper",
        "lists": "all" if settings.list_sentences is None else f"the first {settings.list_sentences:,}",
        "reranker epochs": str(settings.reranker_epochs),
        "random_state": str(settings.random_state),
        "n_jobs": str(settings.n_jobs),
        "torch": _torch_version(),
    }


def _torch_version() -> str:
    try:
        return version("torch")
    except PackageNotFoundError:
        return "none"
