"""Serves an ASGI application on a listening socket, in a thread."""

from __future__ import annotations

import logging
import select
import socket
import threading
from collections.abc import Callable
from typing import Any

from penstock.rest.security.access import ServerAccess

_log = logging.getLogger(__name__)


class LazyServer:
    """Begins with the first connection: until then a job that nobody asks about pays nothing for it.

    The application is made, and the server's packages are imported, in the server's own thread. `access` says who gets
    in over TCP; a Unix socket needs none, because only its user can enter the folder where it lies.
    """

    def __init__(
        self, listener: socket.socket, make_app: Callable[[], Any], access: ServerAccess | None = None
    ) -> None:
        if access is None and listener.family != socket.AF_UNIX:
            raise ValueError("a server on a TCP port needs a rule for who gets in")
        self._listener = listener
        self._access = access
        self._make_app = make_app
        self._server: Any = None
        self._thread = threading.Thread(target=self._run, name="penstock-rest", daemon=True)

    def start(self) -> LazyServer:
        self._thread.start()
        return self

    def _run(self) -> None:
        try:
            waiting = select.poll()  # Not select(): it knows no file number above 1023.
            waiting.register(self._listener, select.POLLIN)
            waiting.poll()
            self._serve()
        except Exception:  # The job must not suffer; the client's connection is closed
            _log.warning("the REST API of this process has ended", exc_info=True)
            self._listener.close()

    def _serve(self) -> None:
        import uvicorn

        from penstock.rest.calm_server import CalmServer
        from penstock.rest.security.limits import LimitedProtocol

        config = uvicorn.Config(
            self._guarded(self._make_app()),
            log_config=None,
            log_level=logging.WARNING,  # A program that logs at INFO wants to see its own lines, not the server's.
            access_log=False,
            lifespan="off",
            loop="asyncio",
            http=LimitedProtocol,
            ws="none",
            proxy_headers=False,
            server_header=False,
        )
        config.load()
        config.ssl = None if self._access is None else self._access.tls
        self._server = CalmServer(config)
        self._server.run(sockets=[self._listener])

    def _guarded(self, app: Any) -> Any:
        from penstock.rest.security.security_headers import SecurityHeaders
        from penstock.rest.security.token_guard import TokenGuard

        if self._access is not None and self._access.token is not None:
            app = TokenGuard(app, self._access.token)
        return SecurityHeaders(app)

    def close(self, timeout_s: float) -> None:
        """Finish the answers that are on their way; a server that never began has none."""
        if self._server is not None:
            self._server.end()
            self._thread.join(timeout_s)
        if self._access is not None:
            self._access.close()
