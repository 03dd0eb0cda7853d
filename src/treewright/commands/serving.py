"""The command `treewright serve`: the web page and the JSON API."""

from collections.abc import Container, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treewright._optional import require
from treewright._typing import FileName, Range
from treewright.commands.console import say
from treewright.commands.signatures import Chosen, Options, takes
from treewright.errors import InputError
from treewright.web.work import ServiceLimits

if TYPE_CHECKING:
    from treewright.web.schemas import ModelDescription

DEFAULT_MODEL = "en"


def settings(
    *,
    host: str = "127.0.0.1",
    port: Annotated[int, Range(0, 65_535)] = 8000,
    tagger: FileName | None = None,
    language: str = "xx",
    access_log: bool = False,
) -> None:
    """Declare options.

    Parameters
    ----------
    host : str
        Address to listen on (0.0.0.0: all interfaces).
    port : int
        Port to listen on (0: any free port).
    tagger : str, optional
        Tagger for models that need tags but have no tagger of their own.
    language : str
        Language of plain text for models without a tokenizer, such as en (xx: any).
    access_log : bool
        Log every request.
    """


@takes(settings=Options(settings), limits=Options(ServiceLimits, "Limits", {"seconds": "time-limit"}))
def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL]...",
            help="Parsers to serve; requests use the first unless they name another [default: en].",
        ),
    ] = None,
    *,
    settings: Chosen,
    limits: Chosen,
) -> None:
    """Serve parsers as a web page and a JSON API.

    Without a MODEL, serves the English pipeline included in the package.

    Example: `treewright serve parser.tw constituents.tw --port 8000`
    """
    require("fastapi", "web")
    require("uvicorn", "web")
    from treewright.web.app import make_app
    from treewright.web.server import address_of, listen, run_server

    chosen, paths = settings.values, models or [DEFAULT_MODEL]
    with listen(chosen["host"], chosen["port"]) as listener:
        say(f"loading {', '.join(paths)}")
        loaded = _load(paths)
        tagger = _load_tagger(chosen["tagger"]) if chosen["tagger"] else None
        app = make_app(
            loaded, limits=ServiceLimits(**limits.values), tagger=tagger, language=chosen["language"]
        )
        _warn_of_missing_tags(app.state.service.description.models)
        app.state.service.warm_up()
        line = f"{', '.join(loaded)} at {address_of(listener)}"
        run_server(app, listener, tell=lambda: print(line, flush=True), access_log=chosen["access_log"])


def _warn_of_missing_tags(models: "Sequence[ModelDescription]") -> None:
    """Warn about models that cannot parse plain text."""
    for model in models:
        if model.needs_tags:
            found = f"{model.name} has no tagger and cannot parse plain text"
            say(f"{found}; use a model trained with --tags predicted, or --tagger")


def _load(paths: Sequence[str]) -> dict[str, Any]:
    """Load models and return them by the names under which they are served."""
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
    """Return a file name without its suffix, numbered if it is taken."""
    names = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    return next(name for name in names if name not in taken)
