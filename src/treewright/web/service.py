"""The service, independent of HTTP routes."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.responses import Response

from treewright._version import __version__
from treewright.data.deptree import DepTree
from treewright.errors import InputError, quote
from treewright.web.models import Fixed, Sentences, ServedModel
from treewright.web.schemas import (
    ExplainReply,
    FixedArc,
    GivenWord,
    Health,
    KBestReply,
    KBestRequest,
    Layout,
    Models,
    ParseReply,
    ParseRequest,
)
from treewright.web.tags import MISSING
from treewright.web.texts import Splitter, read_text
from treewright.web.work import ServiceLimits, TooMuchError, WorkLine

Reply = TypeVar("Reply", ParseReply, KBestReply, ExplainReply)


class Service:
    """The models, limits and worker threads of the service.

    Parameters
    ----------
    models : sequence of ServedModel
        The models; the first is the default.
    limits : ServiceLimits
        Limits of requests.
    splitter : Splitter
        Splits plain text for models without a tokenizer.
    """

    def __init__(self, models: Sequence[ServedModel], limits: ServiceLimits, splitter: Splitter) -> None:
        self.models = {model.name: model for model in models}
        self.limits = limits
        self.line = WorkLine(limits)
        self._splitter = splitter
        self.description = Models(models=[model.describe() for model in models])

    def health(self) -> Health:
        """Return the state of the service and its load."""
        return Health(
            status="ok",
            version=__version__,
            models=list(self.models),
            waiting=self.line.waiting,
            running=self.line.running,
        )

    def warm_up(self) -> None:
        """Parse a sentence with each model, so that compilation does not delay the first request."""
        for model in self.models.values():
            model.warm_up()

    async def parse(self, request: ParseRequest) -> Response:
        """Respond with the best tree of each sentence."""

        def work(model: ServedModel, sentences: Sentences, fixed: Fixed) -> ParseReply:
            found = model.parse(sentences, fixed, pictures=_layout(request))
            return ParseReply(model=model.name, kind=model.kind, sentences=found)

        return await self._answer(request, 1, work)

    async def kbest(self, request: KBestRequest) -> Response:
        """Respond with the k-best trees of each sentence."""

        def work(model: ServedModel, sentences: Sentences, fixed: Fixed) -> KBestReply:
            found = model.kbest(sentences, fixed, k=request.k, pictures=_layout(request))
            return KBestReply(model=model.name, kind=model.kind, sentences=found)

        return await self._answer(request, request.k, work)

    async def explain(self, request: ParseRequest) -> Response:
        """Respond with the best tree of each sentence and its explanation."""

        def work(model: ServedModel, sentences: Sentences, fixed: Fixed) -> ExplainReply:
            found = model.explain(sentences, fixed, pictures=_layout(request))
            return ExplainReply(model=model.name, kind=model.kind, sentences=found)

        return await self._answer(request, 1, work)

    async def _answer(
        self, request: ParseRequest, k: int, work: Callable[[ServedModel, Sentences, Fixed], Reply]
    ) -> Response:
        """Read the sentences, process them and write the response, all in a worker thread."""
        model = self._find_model(request.model)

        def answer() -> bytes:
            sentences = self._read(request, model)
            self._check_size(sentences, k)
            return (
                work(model, sentences, read_fixed(request.fixed, len(sentences))).model_dump_json().encode()
            )

        return Response(await self.line.run(answer), media_type="application/json")

    def _find_model(self, name: str | None) -> ServedModel:
        if name is None:
            return next(iter(self.models.values()))
        if name not in self.models:
            raise HTTPException(404, f"model is {quote(name)}; expected one of {', '.join(self.models)}")
        return self.models[name]

    def _read(self, request: ParseRequest, model: ServedModel) -> Sentences:
        n_characters = len(request.text) + sum(
            len(each.word) for words in request.sentences for each in words
        )
        if n_characters > self.limits.max_characters:
            found = f"the request has {n_characters} characters"
            expected = f"at most {self.limits.max_characters}"
            raise TooMuchError(f"{found}; expected {expected}; send several requests")
        if not request.text:
            if request.raw:
                raise InputError("raw has no effect with sentences; expected text")
            return [make_tree(words, model.kind) for words in request.sentences]
        sentences = read_text(request.text, model.tokenizer or self._splitter, raw=request.raw)
        if not sentences:
            raise InputError("text has no words; expected at least one")
        return sentences

    def _check_size(self, sentences: Sentences, k: int) -> None:
        limits = self.limits
        if len(sentences) > limits.max_sentences:
            found = f"the request has {len(sentences)} sentences"
            raise TooMuchError(f"{found}; expected at most {limits.max_sentences}; send several requests")
        if len(sentences) * k > limits.max_trees:
            found = f"the request is for {k} trees of each of {len(sentences)} sentences"
            raise TooMuchError(f"{found}; expected at most {limits.max_trees} trees; send several requests")
        for number, sentence in enumerate(sentences, start=1):
            n_words = len(sentence) if isinstance(sentence, DepTree) else len(sentence.words())
            if n_words > limits.max_words:
                found = f"sentence {number} has {n_words} words"
                raise TooMuchError(f"{found}; expected at most {limits.max_words}")
            if n_words == 0:
                raise InputError(f"sentence {number} has no words; expected at least one")


def make_tree(words: Sequence[GivenWord], kind: str) -> DepTree:
    """Return words with their tags as a tree; for a constituency model, the tags are stored as XPOS."""
    upos = [each.tag or MISSING for each in words]
    xpos = [each.xpos or (each.tag if kind == "constituent" else None) or MISSING for each in words]
    return DepTree([each.word for each in words], upos=upos, xpos=xpos)


def read_fixed(fixed: Sequence[Sequence[FixedArc]] | None, n_sentences: int) -> Fixed:
    """Return the fixed heads, one mapping per sentence; None if there are none."""
    if not fixed or not any(fixed):
        return None
    if len(fixed) != n_sentences:
        raise InputError(f"fixed has {len(fixed)} lists; expected {n_sentences}, one per sentence")
    for number, arcs in enumerate(fixed, start=1):
        words = [arc.word for arc in arcs]
        if len(set(words)) < len(words):
            raise InputError(f"fixed: sentence {number} has two heads for a word; expected one")
    return [{arc.word: arc.head for arc in arcs} for arcs in fixed]


def _layout(request: ParseRequest) -> Layout | None:
    """Return the layout of drawings; None if none are requested."""
    return request.layout if request.pictures else None
