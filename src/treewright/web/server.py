"""Running the service until it is told to stop."""

import errno
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI

from treewright.errors import InputError

KEPT_ALIVE = 30
"""Seconds for which an idle connection stays open; proxies and browsers use it again."""
GRACE = 5
"""Seconds for which requests may be finished when the service is told to stop."""


class _TellingServer(uvicorn.Server):
    """A server that says when it is ready."""

    def __init__(self, config: uvicorn.Config, tell: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell = tell

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._tell()


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; what comes before the service runs waits.

    Raises
    ------
    InputError
        If the port is taken or the address cannot be listened at.
    """
    place = f"port {port} of {host}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InputError(f"{place} cannot be found ({error.strerror}); expected another --host") from error
    try:
        if os.name == "posix":  # elsewhere this would let two programs have one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise InputError(f"{place} is taken; expected a free one, or --port 0") from error
        reason = f"{place} cannot be listened at ({error.strerror})"
        raise InputError(f"{reason}; expected another --host or --port") from error
    return listener


def address_of(listener: socket.socket) -> str:
    """Return the address at which a browser finds the service."""
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"


def run_server(
    app: FastAPI, listener: socket.socket, *, tell: Callable[[], None], access_log: bool = False
) -> None:
    """Serve until Ctrl-C or SIGTERM; requests that are being answered are finished.

    Parameters
    ----------
    app : FastAPI
    listener : socket
        As `listen` returns it.
    tell : callable
        Called when requests are answered.
    access_log : bool
        Log every request.
    """
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=access_log,
        server_header=False,
        ws="none",
        timeout_keep_alive=KEPT_ALIVE,
        timeout_graceful_shutdown=GRACE,
    )
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    logging.getLogger("uvicorn.access").setLevel(logging.INFO)
    with _stopping_quietly():
        _TellingServer(config, tell).run(sockets=[listener])


@contextmanager
def _stopping_quietly() -> Iterator[None]:
    """Let signals that end the server, which it raises again when it has ended, do no more than that."""

    def ignore(number: int, frame: FrameType | None) -> None:
        """Go on."""

    before = {number: signal.signal(number, ignore) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
