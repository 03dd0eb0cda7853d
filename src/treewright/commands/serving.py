"""The command that serves models: the page and the JSON service."""

from collections.abc import Container, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treewright._optional import require
from treewright.commands.console import say
from treewright.errors import InputError

if TYPE_CHECKING:
    from treewright.web.schemas import ModelDescription


def serve(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL...", help="Parsers; the first is the default one.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 is all of them.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port to listen at; 0 is any free one.")
    ] = 8000,
    tagger: Annotated[
        str | None, typer.Option(help="A tagger for the models that need tags and have none.")
    ] = None,
    language: Annotated[str, typer.Option(help="Language of plain text, as en; xx is any.")] = "xx",
    max_characters: Annotated[int, typer.Option(min=1, help="Of the text of a request.")] = 10_000,
    max_words: Annotated[int, typer.Option(min=1, help="Of a sentence.")] = 150,
    time_limit: Annotated[float, typer.Option(min=0.001, max=86_400, help="Seconds for a request.")] = 20.0,
    queue: Annotated[int, typer.Option(min=0, help="Requests that may wait for a thread.")] = 32,
    jobs: Annotated[int, typer.Option(min=1, help="Threads that parse.")] = 2,
    access_log: Annotated[bool, typer.Option("--access-log", help="Log every request.")] = False,
) -> None:
    """Serve parsers: a web page and a JSON service.

    Example: `treewright serve parser.tw constituents.tw --port 8000`
    """
    require("fastapi", "web")
    require("uvicorn", "web")
    from treewright.web.app import make_app
    from treewright.web.server import address_of, listen, run_server
    from treewright.web.work import ServiceLimits

    limits = ServiceLimits(
        max_characters=max_characters, max_words=max_words, seconds=time_limit, queue=queue, n_jobs=jobs
    )
    with listen(host, port) as listener:
        say(f"loading {', '.join(models)}")
        loaded = _load(models)
        own = _load_tagger(tagger) if tagger else None
        app = make_app(loaded, limits=limits, tagger=own, language=language)
        _tell_of_tags(app.state.service.description.models)
        app.state.service.warm_up()
        line = f"{', '.join(loaded)} at {address_of(listener)}"
        run_server(app, listener, tell=lambda: print(line, flush=True), access_log=access_log)


def _tell_of_tags(models: "Sequence[ModelDescription]") -> None:
    """Say which models will refuse plain text, before a visitor finds out."""
    for model in models:
        if model.needs_tags:
            found = f"{model.name} has no tagger and will refuse plain text"
            say(f"{found}; expected a model trained with --tags predicted, or --tagger")


def _load(paths: Sequence[str]) -> dict[str, Any]:
    """Return models by the names under which they are served."""
    from treewright.model import load
    from treewright.web.models import check_served

    named: dict[str, Any] = {}
    for path in paths:
        named[_free_name(Path(path).stem, named)] = check_served(path, load(path))
    return named


def _load_tagger(path: str) -> Any:  # noqa: ANN401
    from treewright.model import load

    model = load(path)
    if getattr(model, "finds", None) != "tags":
        raise InputError(f"{path} is a {type(model).__name__}; expected a tagger")
    return model


def _free_name(stem: str, taken: Container[str]) -> str:
    """Return the name of a file without its ending, and a number if others have that too."""
    names = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    return next(name for name in names if name not in taken)
