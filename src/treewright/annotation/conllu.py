"""CoNLL-U and plain text in, CoNLL-U out, for models that annotate words."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from treewright.annotation.contract import Analysis, Request
from treewright.annotation.raw_text import split_by_rules
from treewright.data.conllu import CONLLU, declared_layout, format_tree, iter_conllu
from treewright.data.deptree import DepTree
from treewright.data.files import iter_text, source_name
from treewright.data.formats import FORMATS, NO_TEXT, TITLES, open_text_or_trees
from treewright.errors import InputError

OTHERS = {"brackets": TITLES["constituents"], "props": TITLES["propositions"], "binary": NO_TEXT}
"""What cannot be read as words, by what it looks like."""


@contextmanager
def open_words(source: str, request: Request, tokenizer: Any) -> Iterator[Iterator[DepTree]]:  # noqa: ANN401
    """Open CoNLL-U or the like, whose heads may be missing, or plain text, whichever it is.

    Text is split by the tokenizer, if there is one, or by spaCy's rules for the language of the request.
    """
    with open_text_or_trees(source) as (content, stream):
        if request.language is not None:
            yield split_by_rules(stream, request.language)
        elif (request.raw or content == "text") and tokenizer is not None:
            if request.fixed_heads:
                place = source_name(source)
                raise InputError(f"--fixed-heads with plain text, {place}; expected CoNLL-U, which has heads")
            yield tokenizer.iter_split(iter_text(stream))
        elif request.raw:
            yield split_by_rules(stream, "xx")
        elif content in FORMATS and FORMATS[content].kind == "dependencies":
            yield FORMATS[content].read(stream, require_heads=False)
        elif content in OTHERS:
            found = f"{source_name(source)} looks like {OTHERS[content]}"
            remedy = " (--raw, if it is text)" if content != "binary" and tokenizer is not None else ""
            raise InputError(f"{found}; expected CoNLL-U or plain text{remedy}")
        elif any(text.strip() for text in iter_text(stream)):
            raise InputError(
                f"{source_name(source)} looks like plain text, and this model has no tokenizer; expected "
                "CoNLL-U, a pipeline such as 'en', or --raw (needs the extra spacy)"
            )
        else:
            yield iter(())


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
