"""What a client may use up: connections, the time to send a request, and its size."""

from __future__ import annotations

import asyncio
import logging
import resource
from typing import Any

import h11
from starlette.datastructures import Headers
from uvicorn.protocols.http.h11_impl import H11Protocol

from penstock.rest.routes.errors import RestError
from penstock.rest.routes.json_response import JsonResponse

_log = logging.getLogger("penstock.rest.connections")
_log.setLevel(logging.ERROR)

_MOST_CONNECTIONS = 256
_SHARE_OF_DESCRIPTORS = 4
"""Jobs of the process need files and sockets of their own: clients get a quarter of what it may open."""

MOST_BYTES = 2 * 1024 * 1024
"""Of a request; uploads of files have a limit of their own."""
_UPLOADS = (("PUT", "/blobs/"),)
_PROGRAMS = ("POST", "/jars/upload")
_AROUND_A_FILE = 64 * 1024
"""What a form has besides the file in it."""


def most_connections() -> int:
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = _MOST_CONNECTIONS if descriptors == resource.RLIM_INFINITY else descriptors // _SHARE_OF_DESCRIPTORS
    return max(8, min(_MOST_CONNECTIONS, allowed))


class LimitedProtocol(H11Protocol):
    """Hangs up on clients that are too many, or that take too long to send the head or the body of a request."""

    look_every_s = 10.0
    """A head must be complete within two looks, and a body must grow between them."""
    least_bytes = 1024
    most_connections = most_connections()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = _log  # A stranger who sends nonsense must not fill the log.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._received = 0
        self._last_cycle: object = None
        self._was_waiting = False
        self._timer = self.loop.call_later(self.look_every_s, self._look)
        if len(self.connections) > self.most_connections:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        super().data_received(data)

    def _look(self) -> None:
        waits_for_head = self.conn.their_state is h11.IDLE
        has_waited = waits_for_head and self._was_waiting and self._last_cycle is self.cycle
        if has_waited or self._is_stuck():
            self.transport.abort()
            return
        self._was_waiting, self._last_cycle, self._received = waits_for_head, self.cycle, 0
        self._timer = self.loop.call_later(self.look_every_s, self._look)

    def _is_stuck(self) -> bool:
        """True if a body is expected that does not come, although it would be read."""
        return (
            self.conn.their_state is h11.SEND_BODY and self._received < self.least_bytes and not self.flow.read_paused
        )


class BodyLimit:
    """Refuses bodies that are larger than any request needs, before they are read."""

    def __init__(self, app: Any, most_bytes: int = MOST_BYTES, most_in_file: int = MOST_BYTES) -> None:
        self._app = app
        self._most_bytes = most_bytes
        self._most_in_file = most_in_file

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or _is_upload(scope):
            await self._app(scope, receive, send)
            return
        is_program = (scope["method"], scope["path"].removeprefix("/v1")) == _PROGRAMS
        most = self._most_in_file + _AROUND_A_FILE if is_program else self._most_bytes
        if _declared_length(scope) > most:
            await JsonResponse({"errors": [_refusal(most)]}, 413, {"Connection": "close"})(scope, receive, send)
            return
        received = 0

        async def counted() -> Any:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > most:
                raise RestError(413, _refusal(most))
            return message

        await self._app(scope, counted, send)


def _refusal(most_bytes: int) -> str:
    return (
        f"the body of this request must not be larger than {most_bytes} bytes; rest.server.max-content-length limits "
        f"files"
    )


def _is_upload(scope: Any) -> bool:
    path = scope["path"].removeprefix("/v1")
    return any(scope["method"] == method and path.startswith(prefix) for method, prefix in _UPLOADS)


def _declared_length(scope: Any) -> int:
    length = Headers(scope=scope).get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 20 else 0
