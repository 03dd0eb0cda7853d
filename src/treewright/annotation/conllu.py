"""CoNLL-U in and out, for models that annotate words."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from treewright.annotation.contract import Request
from treewright.annotation.raw_text import iter_text
from treewright.data.conllu import CONLLU, declared_by, format_tree, iter_conllu
from treewright.data.deptree import DepTree


@contextmanager
def open_conllu(source: str, request: Request) -> Iterator[Iterator[DepTree]]:
    """Open CoNLL-U, whose heads may be missing, or plain text."""
    if request.language is not None:
        yield iter_text(source, request.language)
    else:
        yield iter_conllu(source, require_heads=False)


class ConlluFormatter:
    """Trees of sentences as CoNLL-U, with the columns that the first of all declares.

    Parameters
    ----------
    target : str
        The file, for complaints.
    begun : path, optional
        A file that earlier sentences were written to.
    """

    def __init__(self, target: str, begun: Path | None) -> None:
        self._target, self._layout = target, CONLLU
        if begun is not None:
            self._layout = declared_by(next(iter_conllu(begun, require_heads=False)), target)

    def __call__(self, number: int, trees: list[DepTree]) -> str:
        """Return the text of the trees of a sentence, whose number, from 1, is given first."""
        if number == 1:
            self._layout = declared_by(trees[0], self._target)
        return "".join(format_tree(tree, self._layout) for tree in trees)
