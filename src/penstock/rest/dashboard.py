"""The files of the dashboard, as `make web` builds them from `web/`, and what browsers are told about every answer."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from penstock.rest.json_response import JsonResponse

STATIC = Path(__file__).with_name("static")
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

# The page brings all it needs: nothing is loaded from elsewhere, nothing runs that is not a file of its own.
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class SecurityHeaders:
    """Adds them to every answer. What the API tells is never kept by a browser; files are asked for again each time."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, send_with_headers)


def dashboard_routes() -> list[BaseRoute]:
    """`/` and `/assets/...`; only files that were there when the server began."""
    files = {path.name: path for path in (STATIC / "assets").iterdir() if path.suffix in _TYPES}

    async def asset(request: Request) -> Response:
        return _answer(request, files.get(request.path_params["name"]))

    async def page(request: Request) -> Response:
        return _answer(request, STATIC / "index.html")

    async def icon(request: Request) -> Response:
        return _answer(request, files.get("icon.svg"))

    return [
        Route("/", page, methods=["GET"]),
        Route("/favicon.ico", icon, methods=["GET"]),
        Route("/assets/{name}", asset, methods=["GET"]),
    ]


def _answer(request: Request, path: Path | None) -> Response:
    if path is None:
        return JsonResponse({"errors": [f"Not found: {request.url.path}"]}, 404)
    content = path.read_bytes()
    headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()[:32]}"', "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=_TYPES[path.suffix])
