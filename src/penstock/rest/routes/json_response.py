"""Answers in JSON."""

from __future__ import annotations

import json
import math
from typing import Any

from starlette.responses import Response


class JsonResponse(Response):
    """Numbers that JSON does not have are null. Text is written in ASCII: half a surrogate pair must not spoil it."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        try:
            return _encoded(content)
        except ValueError:
            return _encoded(_without_odd_numbers(content))


def _encoded(content: Any) -> bytes:
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def _without_odd_numbers(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _without_odd_numbers(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_without_odd_numbers(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
