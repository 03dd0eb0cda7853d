"""CoNLL-U in and out, for models that annotate words."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from treewright.annotation.contract import Analysis, Request
from treewright.annotation.raw_text import iter_text
from treewright.data.conllu import CONLLU, declared_layout, format_tree, iter_conllu
from treewright.data.deptree import DepTree


def open_conllu(source: str, request: Request) -> AbstractContextManager[Iterator[DepTree]]:
    """Open CoNLL-U, whose heads may be missing, or plain text."""
    if request.language is not None:
        return nullcontext(iter_text(source, request.language))
    return nullcontext(iter_conllu(source, require_heads=False))


class ConlluFormatter:
    """Analyses of sentences as CoNLL-U, with the columns that the first of all declares.

    Parameters
    ----------
    target : str
        The file, for complaints.
    begun : path, optional
        A file that earlier sentences were written to.
    trees_of : callable, optional
        Returns the trees of analyses as they are written, if they change.
    """

    def __init__(
        self,
        target: str,
        begun: Path | None,
        trees_of: Callable[[list[Analysis]], list[DepTree]] | None = None,
    ) -> None:
        self._target, self._layout, self._trees_of = target, CONLLU, trees_of
        if begun is not None:
            first = next(iter_conllu(begun, require_heads=False))
            self._layout = declared_layout(first.comments, target)

    def __call__(self, number: int, analyses: list[Analysis]) -> str:
        """Return the text of the analyses of a sentence, whose number, from 1, is given first."""
        trees = self._trees_of(analyses) if self._trees_of else [each.tree for each in analyses]
        if number == 1:
            self._layout = declared_layout(trees[0].comments, self._target)
        return "".join(format_tree(tree, self._layout) for tree in trees)
