"""The server, which runs until it is interrupted."""

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
"""Seconds until an idle connection is closed; proxies and browsers reuse connections."""
GRACE = 5
"""Seconds to finish running requests when the server shuts down."""


class _TellingServer(uvicorn.Server):
    """A server that calls a function when it is ready."""

    def __init__(self, config: uvicorn.Config, tell: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell = tell

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._tell()


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; connections wait until the server is ready.

    Raises
    ------
    InputError
        If the port is in use, or the address is not available.
    """
    place = f"port {port} at {host}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InputError(f"{place} does not exist ({error.strerror}); choose another --host") from error
    try:
        if os.name == "posix":  # on other systems it would let two programs share one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise InputError(
                f"{place} is in use; expected a free port; use --port 0 for any free port"
            ) from error
        reason = f"{place} is not available ({error.strerror})"
        raise InputError(f"{reason}; choose another --host or --port") from error
    return listener


def address_of(listener: socket.socket) -> str:
    """Return the URL of the service."""
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"


def run_server(
    app: FastAPI, listener: socket.socket, *, tell: Callable[[], None], access_log: bool = False
) -> None:
    """Serve until Ctrl-C or SIGTERM, and then finish the running requests.

    Parameters
    ----------
    app : FastAPI
        The application.
    listener : socket
        A socket from `listen`.
    tell : callable
        Called when the server is ready.
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
    """Ignore the signals that the server raises again after it has shut down."""

    def ignore(number: int, frame: FrameType | None) -> None:
        """Do nothing."""

    before = {number: signal.signal(number, ignore) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
