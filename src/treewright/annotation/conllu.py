"""Functions that read CoNLL-U or plain text and write CoNLL-U, for models that annotate words."""

from collections.abc import Iterator
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
"""Descriptions of file contents that are not sentences of words, for error messages."""


@contextmanager
def open_words(source: str, request: Request, tokenizer: Any) -> Iterator[Iterator[DepTree]]:  # noqa: ANN401
    """Open a file of sentences in plain text, CoNLL-U or a related format; heads may be missing.

    Plain text is split by the tokenizer, if there is one, and otherwise by spaCy's rules for the requested
    language.
    """
    with open_text_or_trees(source) as (content, stream):
        if request.language is not None:
            if content != "text" and not request.raw:
                found = TITLES[FORMATS[content].kind] if content in FORMATS else NO_TEXT
                raise InputError(
                    f"{source_name(source)} looks like {found}, which --language does not split; "
                    "expected plain text, or --raw"
                )
            yield split_by_rules(stream, request.language)
        elif (request.raw or content == "text") and tokenizer is not None:
            if request.fixed_heads:
                place = source_name(source)
                raise InputError(
                    f"{place} is plain text, which has no heads for --fixed-heads; expected CoNLL-U"
                )
            yield tokenizer.iter_split(iter_text(stream))
        elif request.raw:
            yield split_by_rules(stream, "xx")
        elif content in FORMATS and FORMATS[content].kind == "dependencies":
            yield FORMATS[content].read(stream, require_heads=False)
        elif content in OTHERS:
            found = f"{source_name(source)} looks like {OTHERS[content]}"
            remedy = (
                " (use --raw if it is plain text)" if content != "binary" and tokenizer is not None else ""
            )
            raise InputError(f"{found}; expected CoNLL-U or plain text{remedy}")
        elif any(text.strip() for text in iter_text(stream)):
            raise InputError(
                f"{source_name(source)} looks like plain text, but this model has no tokenizer; expected "
                "CoNLL-U, a pipeline such as 'en', or --raw (needs the spacy extra)"
            )
        else:
            yield iter(())


class ConlluFormatter:
    """Formats analyses as CoNLL-U, with the columns that the first sentence declares.

    Parameters
    ----------
    target : str
        The output file, for error messages.
    begun : path, optional
        A partial output file with earlier sentences.
    """

    def __init__(self, target: str, begun: Path | None) -> None:
        self._target, self._layout = target, CONLLU
        if begun is not None:
            first = next(iter_conllu(begun, require_heads=False))
            self._layout = declared_layout(first.comments, target)

    def __call__(self, number: int, analyses: list[Analysis]) -> str:
        """Return the analyses of a sentence as text.

        Parameters
        ----------
        number : int
            Number of the sentence, from 1.
        analyses : list of Analysis
            The analyses of the sentence, best first.
        """
        if number == 1:
            self._layout = declared_layout(analyses[0].tree.comments, self._target)
        return "".join(format_tree(each.tree, self._layout) for each in analyses)
