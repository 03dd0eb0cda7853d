"""Middleware: checks of request bodies, and security headers of responses."""

import asyncio
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from treewright.web.failures import failure

POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class Gate:
    """Rejects request bodies that are too large, incomplete, or not declared as JSON.

    The actual bytes are counted, not the declared length.

    Parameters
    ----------
    app : ASGI application
        The application.
    guarded : collection of str
        Paths whose requests have bodies.
    max_bytes : int
        Maximum size of a body.
    seconds : float
        Maximum time until a body has arrived.
    """

    def __init__(self, app: ASGIApp, *, guarded: Collection[str], max_bytes: int, seconds: float) -> None:
        self._app = app
        self._guarded = guarded
        self._max_bytes = max_bytes
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        if scope["method"] == "POST" and scope["path"] in self._guarded:
            await self._guard(scope, receive, send_safely)
        else:
            await self._app(scope, receive, send_safely)

    async def _guard(self, scope: Scope, receive: Receive, send: Send) -> None:
        declared = Headers(scope=scope).get("content-type", "")
        if declared.partition(";")[0].strip().lower() != "application/json":
            sentence = f"Content-Type is {declared!r}; expected application/json"
            await failure(415, sentence)(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._seconds):
                body = await self._read(receive)
        except TimeoutError:
            sentence = f"the body did not arrive within {self._seconds:g} seconds; expected a complete body"
            await failure(408, sentence, {"Connection": "close"})(scope, receive, send)
            return
        if body is None:
            return
        if len(body) > self._max_bytes:
            sentence = f"the body is too large; expected at most {self._max_bytes} bytes"
            await failure(413, sentence, {"Connection": "close"})(scope, receive, send)
            return
        await self._app(scope, _handing(body, receive), send)

    async def _read(self, receive: Receive) -> bytes | None:
        """Return the body, or only its beginning if it is too large; None if the client has disconnected."""
        body = bytearray()
        while len(body) <= self._max_bytes:
            message = await receive()
            if message["type"] != "http.request":
                return None
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        return bytes(body)


def _handing(body: bytes, receive: Receive) -> Receive:
    """Return a receive function that yields a body that was already read, then further messages."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def hand_on() -> Message:
        return waiting.pop() if waiting else await receive()

    return hand_on
