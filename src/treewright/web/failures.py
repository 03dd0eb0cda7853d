"""Error responses of the service: a status code and one sentence."""

import re
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from treewright.errors import TreewrightError, quote
from treewright.web.models import MissingTagsError
from treewright.web.schemas import UntaggedSentence
from treewright.web.work import BusyError, OutOfTimeError, TooMuchError

FAILURES = {
    400: "The body is not JSON.",
    404: "The model does not exist.",
    408: "The body did not arrive in time.",
    413: "The request is larger than the limits.",
    415: "The content type is not JSON.",
    422: "A value is invalid.",
    503: "Too many requests are waiting.",
    504: "The time limit was exceeded.",
}
RETRY_AFTER = "1"


def add_failures(app: FastAPI) -> None:
    """Register handlers that turn every error into a response with one sentence."""
    app.add_exception_handler(TreewrightError, _answer_with(422))
    app.add_exception_handler(MissingTagsError, _answer_untagged)
    app.add_exception_handler(TooMuchError, _answer_with(413))
    app.add_exception_handler(BusyError, _answer_with(503, {"Retry-After": RETRY_AFTER}))
    app.add_exception_handler(OutOfTimeError, _answer_with(504))
    app.add_exception_handler(HTTPException, _answer_http)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(Exception, _answer_unforeseen)


def failure(
    code: int,
    sentence: str,
    headers: Mapping[str, str] | None = None,
    *,
    untagged: Sequence[UntaggedSentence] | None = None,
) -> JSONResponse:
    """Return an error response, with the sentences that need tags if tags are missing."""
    content: dict[str, Any] = {"error": " ".join(sentence.split())}
    if untagged is not None:
        content["sentences"] = [each.model_dump() for each in untagged]
    return JSONResponse(content, code, headers=dict(headers or {}))


def _answer_with(
    code: int, headers: Mapping[str, str] | None = None
) -> Callable[[Request, Exception], Response]:
    def answer(request: Request, error: Exception) -> Response:
        return failure(code, str(error), headers)

    return answer


def _answer_untagged(request: Request, error: Exception) -> Response:
    assert isinstance(error, MissingTagsError)
    return failure(422, str(error), untagged=error.sentences)


def _answer_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentence = error.detail
    if error.status_code == 400 and isinstance(error.__cause__, UnicodeDecodeError | RecursionError):
        reason = "too deeply nested" if isinstance(error.__cause__, RecursionError) else "not UTF-8"
        return failure(400, f"the body is not JSON ({reason}); expected a JSON object")
    path = quote(request.url.path)
    if sentence == HTTPStatus(error.status_code).phrase:  # the framework adds nothing to the code
        if error.status_code == 404:
            sentence = f"{path} does not exist; expected one of the paths listed in /docs"
        elif error.status_code == 405:
            allowed = (error.headers or {}).get("Allow", "another method")
            sentence = f"the method for {path} is {request.method}; expected {allowed}"
    return failure(error.status_code, sentence, error.headers)


def _answer_invalid(request: Request, error: Exception) -> Response:
    """Report the first invalid value."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        reason = str(first.get("ctx", {}).get("error", first["msg"]))
        return failure(400, f"the body is not JSON ({reason}); expected a JSON object")
    place = ".".join(str(part) for part in first["loc"][1:]) or "the body"
    if first["type"] == "value_error":  # already one of our messages
        return failure(422, f"{place} has {first['ctx']['error']}")
    if first["type"] == "missing":
        return failure(422, f"{place} is missing; expected a value")
    if first["type"] == "extra_forbidden":
        return failure(422, f"{quote(place)} is not a field of the request; expected a field listed in /docs")
    expected = re.sub(r"^\w+ should (be |have )?", "", first["msg"])
    if first["type"] == "string_pattern_mismatch":  # users cannot be expected to read a regular expression
        expected = "no whitespace and no control characters"
    return failure(422, f"{place} is {quote(str(first['input']))}; expected {expected}")


def _answer_unforeseen(request: Request, error: Exception) -> Response:
    return failure(500, "internal error; see the log of the service")
