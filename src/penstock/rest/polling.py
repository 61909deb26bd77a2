"""Asks again and again, with growing pauses."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar, overload

from penstock.common.exceptions import PenstockError
from penstock.rest.client import RestClient

T = TypeVar("T")

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 0.5


class OperationFailedError(PenstockError):
    """What was asked for was begun and failed."""


@overload
def poll(question: Callable[[], T | None]) -> T: ...
@overload
def poll(question: Callable[[], T | None], timeout_s: float) -> T | None: ...
def poll(question: Callable[[], T | None], timeout_s: float | None = None) -> T | None:
    """Ask until there is an answer; None if there is none in time."""
    pause, deadline = _FIRST_PAUSE_S, None if timeout_s is None else time.monotonic() + timeout_s
    while (answer := question()) is None:
        if deadline is not None and time.monotonic() > deadline:
            return None
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)
    return answer


def wait_for_operation(client: RestClient, path: str, request: dict[str, str]) -> dict[str, Any]:
    """The result of an operation that a POST began, asked for at `path`."""

    def result() -> dict[str, Any] | None:
        answer = client.get(f"{path}/{request['request-id']}")
        return answer["operation"] if answer["status"]["id"] == "COMPLETED" else None

    operation = poll(result)
    cause = operation.get("failure-cause") or operation.get("failureCause")
    if cause is not None:
        raise OperationFailedError(_message(cause))
    return operation


def _message(cause: dict[str, str]) -> str:
    """What the exception said, without its class and stack; it may have said it in several lines."""
    _, _, message = f"\n{cause['stack-trace'].strip()}".rpartition(f"\n{cause['class']}: ")
    return message or cause["class"]
