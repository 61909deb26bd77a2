"""Keeps web pages from using a browser on this machine to reach the REST API.

The API has no passwords (Flink's has none either) and listens on this machine only; a browser is on this machine too.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse

_READING = ("GET", "HEAD", "OPTIONS")


class BrowserGuard:
    """Refuses requests that a page of another site sends, and names that such a site has pointed at this machine."""

    def __init__(self, app: Any, address: str | None) -> None:
        self._app = app
        self._names = {name.lower() for name in (address, socket.gethostname(), socket.getfqdn()) if name}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await JSONResponse({"errors": [refusal]}, 403)(scope, receive, send)

    def _refusal(self, scope: Any) -> str | None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._is_own(urlsplit(f"//{host}").hostname or ""):
            return f"this server is not called {host}; set rest.address to that name if it is"
        if origin is not None and scope["method"] not in _READING and urlsplit(origin).netloc != host:
            return f"pages of {origin} may not change anything here"
        return None

    def _is_own(self, name: str) -> bool:
        """True for an address, a name of this machine, or one without a dot, which no site can have."""
        if "." not in name or name.lower() in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True
