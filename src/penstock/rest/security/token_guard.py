"""Lets only those in who know the token."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response

from penstock.rest.security.access_token import PROOF, AccessToken, is_nonce

OPEN_PATHS = ("/", "/favicon.ico")
OPEN_FOLDERS = ("/assets/",)
"""The files of the dashboard, which are the same for everybody: a page must be there to ask for the token."""

_READING = ("GET", "HEAD")
_BEARER = "bearer "


class TokenGuard:
    """Around a whole application, so that no route can be forgotten. The token comes as `Authorization: Bearer ...`."""

    def __init__(self, app: Any, token: AccessToken) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] == PROOF:
            await self._proof(scope)(scope, receive, send)
        elif is_open(scope) or self._is_known(scope):
            await self._app(scope, receive, send)
        else:
            await _refusal()(scope, receive, send)

    def _is_known(self, scope: Any) -> bool:
        given = Headers(scope=scope).get("authorization", "")
        return given[: len(_BEARER)].lower() == _BEARER and self._token.matches(given[len(_BEARER) :].strip())

    def _proof(self, scope: Any) -> Response:
        nonce = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("nonce", [""])[0]
        if not is_nonce(nonce):
            return JSONResponse({"errors": ["nonce must have 64 hexadecimal digits"]}, 400)
        host, port = scope["server"]
        return JSONResponse({"host": host, "port": port, "proof": self._token.proof(nonce, host, port)})


def is_open(scope: Any) -> bool:
    """True for what may be read without a token."""
    path = scope["path"]
    return scope["method"] in _READING and (path in OPEN_PATHS or path.startswith(OPEN_FOLDERS))


def _refusal() -> Response:
    message = (
        "this needs the token of the server, as `Authorization: Bearer <token>`; its user gets it from "
        "`penstock jobmanager token`"
    )
    # Whatever follows of the request is not read.
    return JSONResponse({"errors": [message]}, 401, {"WWW-Authenticate": "Bearer", "Connection": "close"})
