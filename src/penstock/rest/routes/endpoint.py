"""A request as the handlers see it, and a handler as the server sees it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from penstock.rest.routes.errors import bad_request
from penstock.rest.routes.json_response import JsonResponse

_LONGEST_TEXT = 4096
_MOST_SHOWN = 200


@dataclass(frozen=True)
class Call:
    """A request, as the handlers see it."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes

    @property
    def job_id(self) -> str:
        return self.path["job"]

    def json(self) -> dict[str, Any]:
        try:
            content = json.loads(self.body or b"{}")
        except (ValueError, RecursionError) as error:
            raise bad_request(f"the body is not JSON: {error}") from error
        if not isinstance(content, dict):
            raise bad_request(f"the body must be a JSON object, got {shown(content)}")
        return content


def shown(value: Any) -> str:
    """What a client has sent, as far as an error needs to repeat it."""
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}... ({len(text)} characters)"


def text_in(body: Mapping[str, Any], name: str) -> str | None:
    """A field that must be a text, with a size and characters that a path or an id may have; None if it is missing."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_TEXT or not value.isprintable():
        raise bad_request(f"{name} must be a text of 1 to {_LONGEST_TEXT} printable characters, got {shown(value)}")
    return value


def flag_in(body: Mapping[str, Any], name: str) -> bool:
    """A field that must be true or false, also as a text, which Flink takes as well; False if it is missing."""
    value = body.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    if not isinstance(value, str) or value.lower() not in ("true", "false"):
        raise bad_request(f"{name} must be true or false, got {shown(value)}")
    return value.lower() == "true"


Handler = Callable[[Call], Any]


def endpoint(handler: Handler, status: int = 200) -> Callable[[Request], Any]:
    """Handlers run in threads: none of them holds up another request."""

    async def respond(request: Request) -> Response:
        call = Call(request.path_params, request.query_params, await request.body())
        return JsonResponse(await run_in_threadpool(handler, call), status)

    return respond


def text_endpoint(handler: Callable[[Call], str]) -> Callable[[Request], Any]:
    async def respond(request: Request) -> Response:
        call = Call(request.path_params, request.query_params, b"")
        return PlainTextResponse(await run_in_threadpool(handler, call))

    return respond
