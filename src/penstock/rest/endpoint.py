"""A request as the handlers see it, and a handler as the server sees it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from penstock.rest.errors import bad_request


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
        except ValueError as error:
            raise bad_request(f"the body is not JSON: {error}") from error
        if not isinstance(content, dict):
            raise bad_request(f"the body must be a JSON object, got {content!r}")
        return content


Handler = Callable[[Call], Any]


def endpoint(handler: Handler, status: int = 200) -> Callable[[Request], Any]:
    """Handlers run in threads: none of them holds up another request."""

    async def respond(request: Request) -> Response:
        call = Call(request.path_params, request.query_params, await request.body())
        return JSONResponse(await run_in_threadpool(handler, call), status)

    return respond
