"""What taggers, parsers, rerankers and role labelers have in common: sentences in, analyses out.

`annotate` returns the analyses of each sentence. The other methods tell the file driver, the service and
spaCy what a model can do, how it reads its sentences and how it writes what it finds. None of these needs to
know which class a model is of.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from treewright._naming import named, setting
from treewright._typing import FileName, Range, TagSource
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
    score : float or None
        The larger, the better; None where only the best analysis was wanted.
    probability : float or None
        None where the model does not know it.
    """

    tree: Any
    score: float | None = None
    probability: float | None = None


Formatter = Callable[[int, list[Analysis]], str]
"""Returns the text of the analyses of a sentence, whose number, from 1, is given first."""


@dataclass(frozen=True)
class Request:
    """What is wanted of an annotator.

    Parameters
    ----------
    k : int
        Number of k-best trees per sentence.
    tags : {"gold", "predicted"}, optional
        Use the tags of the input, or predict them (by default as trained).
    confidence : bool
        Write the probability of each arc to MISC, or draw it behind the relation.
    fixed_heads : bool
        Keep the heads that the input has (_ where unknown).
    draw : bool
        Draw the trees instead of writing CoNLL-U or brackets.
    raw : bool
        Read the input as plain text, whatever it looks like.
    language : str, optional
        Split plain text by spaCy's rules for a language, such as en (needs the extra spacy).
    predicates_from : str, optional
        PropBank columns of the same sentences, with known predicates.
    """

    k: Annotated[int, Range(1, 10_000)] = 1
    tags: TagSource | None = None
    confidence: bool = False
    fixed_heads: bool = False
    draw: bool = False
    raw: bool = False
    language: str | None = None
    predicates_from: FileName | None = None


class Annotator(Model):
    """Base of models that annotate sentences.

    Attributes
    ----------
    finds : {"tags", "dependencies", "constituents", "roles"}
        What the analyses are.
    can : frozenset of str
        The fields of `Request` that the model understands.
    uses_cluster : bool
        Whether batches can be sent to a cluster.
    keeps_input : bool
        Whether a file may be annotated in its place, as everything else in it is kept.
    n_at_once, n_sent : int
        Sentences annotated at a time here, and sent to a worker of a cluster at a time.
    explains : bool
        Whether `explain` has reasons for a choice.
    """

    finds: ClassVar[Finds]
    can: ClassVar[frozenset[str]] = frozenset()
    uses_cluster: ClassVar[bool] = True
    keeps_input: ClassVar[bool] = False
    n_at_once: ClassVar[int] = 2000
    n_sent: ClassVar[int] = 250
    explains: ClassVar[bool] = False

    def annotate(self, sentences: Sequence[Any], *, k: int = 1) -> list[list[Analysis]]:
        """Return up to `k` analyses of each sentence, the best first."""
        raise NotImplementedError

    @property
    def needs_tags(self) -> bool:
        """Whether sentences must bring tags."""
        return False

    @property
    def own_tokenizer(self) -> Any:  # noqa: ANN401
        """The tokenizer inside the model, or None."""
        return None

    @property
    def own_tagger(self) -> Any:  # noqa: ANN401
        """The tagger inside the model, or None."""
        return None

    @property
    def uses_own_tagger(self) -> bool:
        """Whether sentences are tagged by the tagger inside the model."""
        return self.own_tagger is not None and not self.needs_tags

    @property
    def known_tags(self) -> Sequence[str]:
        """The tags that the model was trained with."""
        return ()

    def knows_words(self, words: Sequence[str]) -> list[bool] | None:
        """Tell which words occur in the training sentences; None if the model has not kept them."""
        return None

    def prepare_for(self, request: Request, *, n_jobs: int = 1) -> Self:
        """Return a model that does what is wanted, by other parameters if need be; this one stays as it is.

        Raises
        ------
        InputError
            If this model cannot do it.
        """
        for field in fields(request):
            name = field.name
            if getattr(request, name) != field.default and name not in self.can:
                found = f"{named(name)} with a {type(self).__name__}"
                raise InputError(f"{found}, which finds {self.finds}; expected a model that {ABLE[name]}")
        changes: dict[str, Any] = {}
        if getattr(self, "n_jobs", n_jobs) != n_jobs:
            changes["n_jobs"] = n_jobs
        if request.tags is not None:
            check_choice("tags", request.tags, ("gold", "predicted"))
            if request.tags == "predicted" and self.own_tagger is None:
                raise InputError(
                    "the parser has no tagger of its own; expected one (--tags predicted in training)"
                )
            is_text = request.raw or request.language is not None
            if request.tags == "gold" and is_text and self.own_tagger is not None:
                option = named("raw" if request.raw else "language")
                found = f"{setting('tags', 'gold')} with {option}, but plain text has no tags"
                raise InputError(f"{found}; expected {setting('tags', 'predicted')}")
            changes["tags"] = request.tags
        return self.using(**changes) if changes else self

    def open_sentences(self, source: str, request: Request) -> AbstractContextManager[Iterator[Any]]:
        """Open a file as sentences that have what the model needs."""
        raise NotImplementedError

    def annotate_batch(self, sentences: Sequence[Any], request: Request) -> list[list[Analysis]]:
        """Return the analyses of sentences from `open_sentences`, as they are written."""
        return self.annotate(sentences, k=request.k)

    def make_formatter(self, target: str, request: Request, begun: Path | None) -> Formatter:
        """Return what writes analyses; `begun` is a file that others were written to before."""
        raise NotImplementedError

    def explain(self, sentences: Sequence[Any]) -> Any:  # noqa: ANN401
        """Return why the best analyses won."""
        raise InputError(
            f"a {type(self).__name__} has no reasons; expected a dependency parser or a pipeline"
        )


ABLE = {
    "k": "finds k-best trees",
    "tags": "reads tags",
    "confidence": "finds dependencies",
    "fixed_heads": "finds dependencies",
    "draw": "finds trees",
    "raw": "reads words",
    "language": "reads words",
    "predicates_from": "finds roles",
}
"""Who understands the parts of a request."""


def draw_analyses(
    target: str, confidence_of: Callable[[Any], Sequence[float]] | None, number: int, analyses: list[Analysis]
) -> str:
    """Return the trees of a sentence as drawings, k-best trees with rank and score.

    Parameters
    ----------
    target : str
        The file, or ``"-"``, of which the encoding is respected.
    confidence_of : callable, optional
        Returns the confidence in the arcs of a tree, if it is to be shown.
    number, analyses
        As in `Formatter`.
    """
    from treewright.drawing.pictures import draw_text, for_terminal

    shown = []
    for rank, analysis in enumerate(analyses, start=1):
        title = f"sentence {number}, tree {rank}, score {analysis.score:.4f}\n" if len(analyses) > 1 else ""
        confidence = confidence_of(analysis.tree) if confidence_of else None
        shown.append(f"{title}{draw_text(analysis.tree, confidence=confidence)}\n\n")
    text = "".join(shown)
    return for_terminal(text) if target == STANDARD else text
