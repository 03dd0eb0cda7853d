"""Explanations of the choice of a reranker or parser, as text."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from treewright.data.deptree import DepTree
from treewright.drawing.terminal import draw_dependencies, encodable
from treewright.parsing.dependency.reasons import Comparison


def show_comparisons(
    console: Console, comparisons: Sequence[Comparison], *, n_candidates: int = 3, n_reasons: int = 10
) -> None:
    """Print the best candidates of each sentence, and the features that distinguish the first two."""
    for number, comparison in enumerate(comparisons, start=1):
        best = comparison.candidates[0].tree
        console.print(Text(f"Sentence {number}: {' '.join(best.words)}", style="bold"))
        console.print(Text("\n" + encodable(draw_dependencies(best), console.encoding)))
        console.print(candidate_table(comparison, n_candidates))
        if len(comparison.candidates) == 1:
            console.print("There is only one candidate.\n")
        elif comparison.reasons:
            for rank in (1, 2):
                if reasons := reasons_for(comparison, rank):
                    console.print(describe_reasons(reasons, rank, n_reasons), soft_wrap=True)
                    console.print(reason_table(reasons[:n_reasons]))
        else:
            console.print("No feature distinguishes the first two candidates: the parser's score decided.\n")


def candidate_table(comparison: Comparison, n_candidates: int) -> Table:
    """Return a table of the best candidates: scores, and arcs that differ from the first."""
    candidates = comparison.candidates[:n_candidates]
    columns = {"score": [each.score for each in candidates]}
    if comparison.scores:
        columns |= {"parser": comparison.parser_scores, "reranker": comparison.scores}
    table = Table("", "probability", *columns, "other heads", box=SIMPLE_HEAD)
    for rank, candidate in enumerate(candidates, start=1):
        shown = [f"{numbers[rank - 1]:.2f}" for numbers in columns.values()]
        other = Text(describe_difference(candidates[0].tree, candidate.tree))
        table.add_row(str(rank), f"{candidate.probability:.3f}", *shown, other)
    for column in table.columns[:-1]:
        column.justify = "right"
    return table


def describe_difference(best: DepTree, other: DepTree) -> str:
    """Return the arcs of `other` that `best` lacks, such as ``man → with``."""
    words = ["ROOT", *best.words]
    return ", ".join(
        f"{words[head]} → {word}"
        for word, head, chosen in zip(best.words, other.heads.tolist(), best.heads.tolist(), strict=True)
        if head != chosen
    )


def reasons_for(comparison: Comparison, rank: int) -> list[tuple[str, float]]:
    """Return the features that favour one of the first two candidates, with positive weights."""
    sign = 1 if rank == 1 else -1
    return [(one.text, sign * one.weight) for one in comparison.reasons if sign * one.weight > 0]


def describe_reasons(reasons: Sequence[tuple[str, float]], rank: int, n_reasons: int) -> str:
    """Describe the features that favour a candidate: number, total weight, and how many are shown."""
    total, n_features = sum(weight for _, weight in reasons), len(reasons)
    shown = f" (largest {n_reasons} shown)" if n_features > n_reasons else ""
    counted = f"{n_features} feature{'s' if n_features > 1 else ''}"
    return f"For tree {rank}, against tree {3 - rank}: {counted}, total {total:.3f}{shown}"


def reason_table(reasons: Sequence[tuple[str, float]]) -> Table:
    """Return features with their weights."""
    table = Table("weight", "feature", box=SIMPLE_HEAD)
    for text, weight in reasons:
        table.add_row(f"{weight:.3f}", Text(text))
    table.columns[0].justify = "right"
    return table
