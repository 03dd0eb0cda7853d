"""The common interface of taggers, parsers, rerankers and role labelers: sentences in, analyses out.

`annotate` returns the analyses of each sentence. The other methods describe what a model can do, how it reads
sentences and how it writes analyses. Therefore, `annotate_file`, the web service and the spaCy component work
with every model class.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

from treewright._naming import named, setting
from treewright._typing import FileName, TagSource, TreeCount
from treewright._validate import check_choice
from treewright.data.files import STANDARD
from treewright.errors import InputError
from treewright.model import Model

Finds = Literal["tags", "dependencies", "constituents", "roles"]


class Analysis(NamedTuple):
    """One analysis of a sentence.

    Attributes
    ----------
    tree : DepTree, ConstTree or PropSentence
        The annotated sentence.
    score : float or None
        Score (higher is better); None if only the best analysis was requested.
    probability : float or None
        Probability; None if the model does not estimate it.
    """

    tree: Any
    score: float | None = None
    probability: float | None = None


Formatter = Callable[[int, list[Analysis]], str]
"""A function that takes the number of a sentence (from 1) and its analyses, and returns text."""


@dataclass(frozen=True)
class Request:
    """Options for annotating sentences.

    Parameters
    ----------
    k : int
        Number of k-best trees per sentence.
    tags : {"gold", "predicted"}, optional
        Use the tags of the input, or predict them (default: as in training).
    confidence : bool
        Write the probability of each arc to MISC, or after the relation in drawings.
    fixed_heads : bool
        Keep the heads given in the input; predict those given as _.
    draw : bool
        Draw the trees instead of writing CoNLL-U or brackets.
    raw : bool
        Always read the input as plain text.
    language : str, optional
        Split plain text with spaCy's rules for this language, such as en (needs the spacy extra).
    predicates_from : str, optional
        File of PropBank columns with the predicates of the same sentences.
    """

    k: TreeCount = 1
    tags: TagSource | None = None
    confidence: bool = False
    fixed_heads: bool = False
    draw: bool = False
    raw: bool = False
    language: str | None = None
    predicates_from: FileName | None = None


class Annotator(Model):
    """Base class of models that annotate sentences.

    Attributes
    ----------
    finds : {"tags", "dependencies", "constituents", "roles"}
        Kind of annotation that the model predicts.
    can : frozenset of str
        The fields of `Request` that the model supports.
    uses_cluster : bool
        Whether batches can be sent to a cluster.
    keeps_input : bool
        Whether a file can be annotated in place, because the output keeps the rest of its content.
    n_at_once, n_sent : int
        Number of sentences per batch on this machine, and per batch that is sent to a worker of a cluster.
    explains : bool
        Whether `explain` is supported.
    """

    finds: ClassVar[Finds]
    can: ClassVar[frozenset[str]] = frozenset()
    uses_cluster: ClassVar[bool] = True
    keeps_input: ClassVar[bool] = False
    n_at_once: ClassVar[int] = 2000
    n_sent: ClassVar[int] = 250
    explains: ClassVar[bool] = False
    own_tokenizer: ClassVar[Any] = None
    """The model's own tokenizer, or None."""

    def annotate(self, sentences: Sequence[Any], *, k: int = 1) -> list[list[Analysis]]:
        """Return up to `k` analyses of each sentence, best first.

        Parameters
        ----------
        sentences : sequence
            The sentences.
        k : int
            Maximum number of analyses per sentence.
        """
        raise NotImplementedError

    @property
    def needs_tags(self) -> bool:
        """Whether the sentences must have tags."""
        return False

    @property
    def own_tagger(self) -> Any:  # noqa: ANN401
        """The model's own tagger, or None."""
        return None

    @property
    def uses_own_tagger(self) -> bool:
        """Whether the model's own tagger tags the sentences."""
        return self.own_tagger is not None and not self.needs_tags

    @property
    def known_tags(self) -> Sequence[str]:
        """The tags of the training set."""
        return ()

    def knows_words(self, words: Sequence[str]) -> list[bool] | None:
        """Return whether each word occurs in the training set; None if the model has no vocabulary."""
        return None

    def prepare_for(self, request: Request, *, n_jobs: int = 1) -> Self:
        """Return a model that fulfils a request, with changed parameters if necessary; `self` is not changed.

        Raises
        ------
        InputError
            If this model does not support the request.
        """
        for field in fields(request):
            name = field.name
            if getattr(request, name) != field.default and name not in self.can:
                found = f"{named(name)} does not work with a {type(self).__name__}"
                raise InputError(f"{found}, which predicts {self.finds}; expected a model that {ABLE[name]}")
        changes: dict[str, Any] = {}
        if getattr(self, "n_jobs", n_jobs) != n_jobs:
            changes["n_jobs"] = n_jobs
        if request.tags is not None:
            check_choice("tags", request.tags, ("gold", "predicted"))
            if request.tags == "predicted" and self.own_tagger is None:
                raise InputError(
                    "the parser has no tagger of its own; expected a parser trained with --tags predicted"
                )
            is_text = request.raw or request.language is not None
            if request.tags == "gold" and is_text and self.own_tagger is not None:
                option = named("raw" if request.raw else "language")
                found = (
                    f"{setting('tags', 'gold')} does not work with {option}, because plain text has no tags"
                )
                raise InputError(f"{found}; expected {setting('tags', 'predicted')}")
            changes["tags"] = request.tags
        return self.using(**changes) if changes else self

    def open_sentences(self, source: str, request: Request) -> AbstractContextManager[Iterator[Any]]:
        """Open a file and yield sentences in the form that the model needs."""
        raise NotImplementedError

    def annotate_batch(self, sentences: Sequence[Any], request: Request) -> list[list[Analysis]]:
        """Return the analyses of sentences from `open_sentences` in the form that the formatter writes."""
        return self.annotate(sentences, k=request.k)

    def make_formatter(self, target: str, request: Request, begun: Path | None) -> Formatter:
        """Return the formatter of analyses; `begun` is a partial output file with earlier sentences."""
        raise NotImplementedError

    def explain(self, sentences: Sequence[Any]) -> Any:  # noqa: ANN401
        """Explain why the best analyses were chosen.

        Parameters
        ----------
        sentences : sequence
            The sentences.
        """
        raise InputError(
            f"a {type(self).__name__} does not support explain; expected a dependency parser or a pipeline"
        )


ABLE = {
    "k": "predicts k-best trees",
    "tags": "reads tags",
    "confidence": "predicts dependencies",
    "fixed_heads": "predicts dependencies",
    "draw": "predicts trees",
    "raw": "reads plain text",
    "language": "reads plain text",
    "predicates_from": "predicts roles",
}
"""Descriptions of the models that support each field of a request, for error messages."""


def draw_analyses(
    target: str, confidence_of: Callable[[Any], Sequence[float]] | None, number: int, analyses: list[Analysis]
) -> str:
    """Draw the trees of a sentence as text; if there are several, each gets its rank and score as a title.

    Parameters
    ----------
    target : str
        The output file; ``"-"`` is standard output, whose encoding limits the characters of drawings.
    confidence_of : callable, optional
        Function that returns the confidence of each arc of a tree; None shows no confidence.
    number : int
        Number of the sentence, from 1.
    analyses : list of Analysis
        The analyses of the sentence, best first.
    """
    from treewright.drawing.pictures import draw_text, for_terminal

    shown = []
    for rank, analysis in enumerate(analyses, start=1):
        title = f"sentence {number}, tree {rank}, score {analysis.score:.4f}\n" if len(analyses) > 1 else ""
        confidence = confidence_of(analysis.tree) if confidence_of else None
        shown.append(f"{title}{draw_text(analysis.tree, confidence=confidence)}\n\n")
    text = "".join(shown)
    return for_terminal(text) if target == STANDARD else text
