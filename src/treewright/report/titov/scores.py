"""Scores of rerankers and settings of results, for the tables of Titov & Henderson (2005)."""

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


ABOUT_SCORES = "LR, LP and F1 as in evalb with COLLINS.prm; exact: sentences with all brackets correct."
ABOUT_TEST = "two-sided randomisation test of F1"


def score_outcome(
    bench: DerivedBench, outcome: ConstituentOutcome, base: ConstituentOutcome | None
) -> dict[str, Any]:
    """Return the scores of an outcome, and the significance of its difference from the baseline."""
    score = parseval(bench.treebank.test, outcome.trees)
    test = compare_trees(bench, outcome.trees, base.trees) if base else {}
    own = {name: getattr(score, name) for name in (*SCORES, "n_sentences")}
    return {**own, **test, **outcome.facts}


def compare_trees(bench: DerivedBench, trees: list[ConstTree], others: list[ConstTree]) -> dict[str, float]:
    """Return the F1 difference between two lists of trees, and its p-value."""
    found = significance(
        bench.treebank.test, trees, others, metric="f1", random_state=bench.settings.random_state
    )
    return {"difference": found.difference, "p_value": found.p_value}


def describe_row(row: Row) -> str:
    """Return a row of a table as a line of text."""
    against = f", {row['difference']:+.2f} (p = {row['p_value']:.4f})" if row.get("p_value") else ""
    return f"{row['title']}: F1 {row['f1']:.2f}{against}"


def describe_bench(bench: DerivedBench, *, small_threshold: int | None = None) -> dict[str, str]:
    """Return the settings that affect a result as text, by name."""
    settings = bench.settings
    parser = bench.make_leftcorner(settings.large_threshold)
    trained = (
        f"{parser.cell} cells, {parser.units} units, at most {parser.epochs} epochs by {parser.optimizer}, "
        f"rate {parser.learning_rate:g}, batches of {parser.batch_size:,}, dropout {parser.dropout:g}, "
        f"{'averaged' if parser.average else 'last'} weights, beam {parser.dev_beam} between epochs"
    )
    given = bench.leftcorner_parser
    return {
        "treebank": bench.whole.describe(),
        "sentences": ", ".join(
            f"{len(trees):,} {use}"
            for trees, use in zip(bench.treebank[1:], ("training", "tuning", "scored"), strict=True)
        ),
        "left-corner parser": f"pretrained model {given.name}" if given else trained,
        "words known": "as in the model"
        if given
        else f"minimum count with their tags {settings.large_threshold}"
        + (f", or {small_threshold} in the small vocabulary" if small_threshold else ""),
        "candidates": f"{settings.k} of each parser",
        "training lists": f"{settings.folds} jackknife folds"
        if settings.folds
        else "by parsers trained on the same sentences, as in the paper",
        "lists": "all" if settings.list_sentences is None else f"the first {settings.list_sentences:,}",
        "learner of derived kernels": settings.learner
        + ("" if settings.penalty is None else f", penalty {settings.penalty:g}"),
        "perceptrons": f"epochs {settings.reranker_epochs}, "
        f"{'votes' if settings.voting else 'averaged weights'}, lists in "
        f"{'random order' if settings.shuffle else 'the order of the corpus'}",
        "weight of the parser's score in learning": "default"
        if settings.score_weight is None
        else f"{settings.score_weight:g}, derived kernels",
        "weight of rerankers": "tuned" if settings.kernel_weight is None else f"{settings.kernel_weight:g}",
        "random_state": str(settings.random_state),
        "n_jobs": str(settings.n_jobs),
        "torch": _torch_version(),
    }


def _torch_version() -> str:
    try:
        return version("torch")
    except PackageNotFoundError:
        return "none"
