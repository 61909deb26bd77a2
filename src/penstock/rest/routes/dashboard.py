"""The files of the dashboard, as `make web` builds them from `web/`."""

from __future__ import annotations

import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from penstock.rest.routes.json_response import JsonResponse

STATIC = Path(__file__).parents[1] / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


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
