"""Operations that take longer than a request: begun by a POST, asked about by GETs."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from penstock.common.exceptions import PenstockError
from penstock.rest.documents.jobs import failure_cause
from penstock.rest.routes.errors import RestError, not_found

_FIRST_ASKED_WITHIN_S = 1
_MOST_IN_PROGRESS = 64
_MOST_KEPT = 1000


def _begun(action: Callable[[], Future[Any]]) -> Future[Any]:
    """What cannot even begin is reported like what failed later."""
    try:
        return action()
    except PenstockError as error:
        failed: Future[Any] = Future()
        failed.set_exception(error)
        return failed


@dataclass
class Operation:
    future: Future[Any]
    is_asked_about: bool = False
    is_read: bool = False
    """True once a client has got the result."""
    done_at_s: float | None = None


class Operations:
    """By family (such as the savepoints of one job) and request id. Results are kept for `store_ms` after the end."""

    def __init__(self, store_ms: int) -> None:
        self._store_s = store_ms / 1000
        self._operations: dict[tuple[str, str], Operation] = {}
        self._changed = threading.Condition()

    def begin(self, family: str, request_id: str | None, action: Callable[[], Future[Any]]) -> dict[str, str]:
        """Begin, unless an operation with this id was begun before; the answer names the request."""
        request_id = request_id or secrets.token_hex(16)
        with self._changed:
            self._forget_old()
            if (family, request_id) not in self._operations:
                self._check_room()
                operation = Operation(_begun(action))
                self._operations[family, request_id] = operation
                operation.future.add_done_callback(lambda _: self._end(operation))
        return {"request-id": request_id}

    def _end(self, operation: Operation) -> None:
        operation.done_at_s = time.monotonic()

    def _forget_old(self) -> None:
        now = time.monotonic()
        done = [(key, each.done_at_s) for key, each in self._operations.items() if each.done_at_s is not None]
        surplus = len(done) - _MOST_KEPT
        for at, (key, done_at_s) in enumerate(done):  # Those that were begun first come first.
            if at < surplus or now - done_at_s > self._store_s:
                del self._operations[key]

    def _check_room(self) -> None:
        """Each may hold a thread and files: the number in progress is limited."""
        in_progress = sum(each.done_at_s is None for each in self._operations.values())
        if in_progress >= _MOST_IN_PROGRESS:
            raise RestError(
                503,
                f"{in_progress} operations are in progress, which is the most allowed; try again when some are done",
            )

    def result(self, family: str, request_id: str, result_name: str | None, cause_name: str) -> dict[str, Any]:
        """Flink's answer about an operation: its status and, once completed, the result or the cause of its failure."""
        with self._changed:
            operation = self._operations.get((family, request_id))
            if operation is None:
                raise not_found(f"There is no operation {request_id}, or its result is no longer kept")
            operation.is_asked_about = True
            if not operation.future.done():
                return {"status": {"id": "IN_PROGRESS"}, "operation": None}
            operation.is_read = True
            self._changed.notify_all()
        failure = operation.future.exception()
        if failure is not None:
            return {"status": {"id": "COMPLETED"}, "operation": {cause_name: failure_cause(failure)}}
        answer = {} if result_name is None else {result_name: operation.future.result()}
        return {"status": {"id": "COMPLETED"}, "operation": answer}

    def wait_until_read(self, timeout_s: float) -> None:
        """Wait until all clients have got their results, but not too long.

        A client that has not asked within a moment never will: it began the operation and left.
        """
        with self._changed:
            waiting = self._operations.values()
            if not self._changed.wait_for(lambda: all(each.is_read for each in waiting), _FIRST_ASKED_WITHIN_S):
                asked = [each for each in waiting if each.is_asked_about]
                self._changed.wait_for(lambda: all(each.is_read for each in asked), timeout_s)
