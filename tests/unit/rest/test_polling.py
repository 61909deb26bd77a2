"""What a client says about an operation that failed."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.common.exceptions import CheckpointError
from penstock.rest.documents.jobs import failure_cause
from penstock.rest.polling import OperationFailedError, wait_for_operation


class AnsweringClient:
    """Knows one operation, which has failed."""

    def __init__(self, failure: BaseException) -> None:
        self._failure = failure

    def get(self, path: str) -> dict[str, Any]:
        return {"status": {"id": "COMPLETED"}, "operation": {"failure-cause": failure_cause(self._failure)}}


@pytest.mark.parametrize(
    "message",
    ["the disk is full", "several lines:\n  first\n\n  second", "a colon: and another: one", "ends with a break\n\nso"],
)
def test_message_of_a_failed_operation_is_shown_whole(message):
    with pytest.raises(OperationFailedError) as raised:
        wait_for_operation(AnsweringClient(CheckpointError(message)), "/savepoints", {"request-id": "1"})
    assert str(raised.value) == message


def test_failure_without_a_message_is_shown_by_its_class():
    with pytest.raises(OperationFailedError, match="CheckpointError"):
        wait_for_operation(AnsweringClient(CheckpointError()), "/savepoints", {"request-id": "1"})
