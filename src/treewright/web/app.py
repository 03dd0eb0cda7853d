"""The web application: routes, limits and errors."""

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
DESCRIPTION = "Parse sentences: dependency and constituency trees, k-best trees, and explanations."


def make_app(
    models: Mapping[str, Any],
    *,
    limits: ServiceLimits | None = None,
    tagger: Tagger | None = None,
    language: str = "xx",
) -> FastAPI:
    """Make the web application, for uvicorn or another ASGI server.

    Parameters
    ----------
    models : mapping of str to model
        Parsers or rerankers by the names under which they are served; the first is the default.
    limits : ServiceLimits, optional
        Limits of requests (by default, those of `ServiceLimits`).
    tagger : Tagger, optional
        Tags words for models that need tags and have no tagger.
    language : str
        Language of plain text, as a spaCy code.
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
        f"{DESCRIPTION} A request may have at most {limits.max_characters} characters, "
        f"{limits.max_sentences} sentences and {limits.max_trees} trees, and a sentence at most "
        f"{limits.max_words} words. The time limit of a request is {limits.seconds:g} seconds."
    )


def _add_questions(app: FastAPI, service: Service) -> None:
    """Add the routes of the JSON API."""

    @app.get("/health", summary="Check that the service is running")
    async def health() -> Health:
        return service.health()

    @app.get("/models", summary="List the models")
    async def models() -> Models:
        return service.description

    @app.get("/meanings", summary="Describe relations, tags and labels")
    async def meanings() -> Meanings:
        return MEANINGS

    failures: dict[int | str, dict[str, Any]] = {
        code: {"model": Failure, "description": text, **({"headers": RETRY} if code == 503 else {})}
        for code, text in FAILURES.items()
    }

    @app.post(
        "/parse", summary="Find the best tree of each sentence", response_model=ParseReply, responses=failures
    )
    async def parse(request: ParseRequest) -> Response:
        return await service.parse(request)

    @app.post(
        "/kbest",
        summary="Find the k-best trees of each sentence",
        response_model=KBestReply,
        responses=failures,
    )
    async def kbest(request: KBestRequest) -> Response:
        return await service.kbest(request)

    @app.post(
        "/explain", summary="Explain why a tree is the best", response_model=ExplainReply, responses=failures
    )
    async def explain(request: ParseRequest) -> Response:
        return await service.explain(request)


def _add_pages(app: FastAPI) -> None:
    """Add the web page and the API reference."""
    app.mount("/static", StaticFiles(directory=PAGE), name="static")

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", media_type="text/html")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(write_reference(app.openapi()))
