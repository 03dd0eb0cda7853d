"""The service: routes, limits and errors."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Response
from fastapi.responses import FileResponse, HTMLResponse
from fastapi.staticfiles import StaticFiles

from treewright._version import __version__
from treewright.errors import InputError
from treewright.tagging.tagger import Tagger
from treewright.web.answers import all_meanings
from treewright.web.failures import FAILURES, add_failures
from treewright.web.middleware import Gate
from treewright.web.models import serve_model
from treewright.web.reference import write_reference
from treewright.web.schemas import (
    ExplainReply,
    Failure,
    Health,
    KBestReply,
    KBestRequest,
    Meanings,
    Models,
    ParseReply,
    ParseRequest,
)
from treewright.web.service import Service
from treewright.web.texts import Splitter
from treewright.web.work import ServiceLimits

PAGE = Path(__file__).parent / "page"
RETRY = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}, "required": True}}
MEANINGS = all_meanings()
DESCRIPTION = "Dependency and constituency trees of sentences, the k best of them, and what speaks for them."


def make_app(
    models: Mapping[str, Any],
    *,
    limits: ServiceLimits | None = None,
    tagger: Tagger | None = None,
    language: str = "xx",
) -> FastAPI:
    """Make the service, for uvicorn or another server of ASGI.

    Parameters
    ----------
    models : mapping of str to model
        Parsers, or rerankers of them, by the names under which they are served; the first is the default.
    limits : ServiceLimits, optional
    tagger : Tagger, optional
        For words without tags, where a model needs them and has no tagger of its own.
    language : str
        Of plain text, as spaCy names it.
    """
    if not models:
        raise InputError("no models were given; expected at least one")
    served = [serve_model(name, model, tagger) for name, model in models.items()]
    service = Service(served, limits or ServiceLimits(), Splitter(language))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.line.close()

    app = FastAPI(
        title="treewright",
        version=__version__,
        description=_describe(service.limits),
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service = service
    _add_questions(app, service)
    _add_pages(app)
    add_failures(app)
    app.add_middleware(
        Gate,
        guarded=("/parse", "/kbest", "/explain"),
        max_bytes=service.limits.max_bytes,
        seconds=service.limits.seconds,
    )
    return app


def _describe(limits: ServiceLimits) -> str:
    return (
        f"{DESCRIPTION} A request may have up to {limits.max_characters} characters, {limits.max_sentences} "
        f"sentences and {limits.max_trees} trees, a sentence up to {limits.max_words} words; it is answered "
        f"within {limits.seconds:g} seconds, or refused."
    )


def _add_questions(app: FastAPI, service: Service) -> None:
    """Add what programs ask for."""

    @app.get("/health", summary="Whether the service runs")
    async def health() -> Health:
        return service.health()

    @app.get("/models", summary="The models that are served")
    async def models() -> Models:
        return service.description

    @app.get("/meanings", summary="What relations, tags and labels stand for")
    async def meanings() -> Meanings:
        return MEANINGS

    failures: dict[int | str, dict[str, Any]] = {
        code: {"model": Failure, "description": text, **({"headers": RETRY} if code == 503 else {})}
        for code, text in FAILURES.items()
    }

    @app.post(
        "/parse", summary="The best tree of each sentence", response_model=ParseReply, responses=failures
    )
    async def parse(request: ParseRequest) -> Response:
        return await service.parse(request)

    @app.post(
        "/kbest", summary="The k best trees of each sentence", response_model=KBestReply, responses=failures
    )
    async def kbest(request: KBestRequest) -> Response:
        return await service.kbest(request)

    @app.post("/explain", summary="Why a tree is the best", response_model=ExplainReply, responses=failures)
    async def explain(request: ParseRequest) -> Response:
        return await service.explain(request)


def _add_pages(app: FastAPI) -> None:
    """Add what people look at."""
    app.mount("/static", StaticFiles(directory=PAGE), name="static")

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", media_type="text/html")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(write_reference(app.openapi()))
