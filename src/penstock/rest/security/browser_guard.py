"""Keeps web pages from using a browser on this machine to reach the REST API.

A browser runs on this machine, too. A request that a page of another site sends with it must not count as its user's.
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
    """Refuses requests to change something that pages of other sites send, and requests for other hosts' names.

    A site can point its own name at this machine, and then counts as the server's own site in the browser.
    """

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
        if not self._is_own(_name_in(host)):
            return f"this server is not called {host}; set rest.address to that name if it is"
        if origin is not None and scope["method"] not in _READING and origin.partition("://")[2] != host:
            return f"pages of {origin} may not change anything here"
        return None

    def _is_own(self, name: str | None) -> bool:
        """True for an address, a name of this machine, or one without a dot, which no site can have."""
        if name is None:
            return False
        if "." not in name or name.lower() in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _name_in(host: str) -> str | None:
    """The name without the port; None if it cannot be read."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:  # Half of an IPv6 address
        return None
