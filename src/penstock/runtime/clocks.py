"""The clock of a subtask."""

from __future__ import annotations

from penstock.common.clocks import monotonic_ms


class EpochClock:
    """Processing time in a subtask: the driver's clock when the epoch began, plus the time the subtask has run since.

    So all subtasks of an epoch agree on the time, however late some of them start.
    """

    def __init__(self) -> None:
        self._offset_ms = 0

    def start(self, now_ms: int) -> None:
        self._offset_ms = now_ms - monotonic_ms()

    def __call__(self) -> int:
        return self._offset_ms + monotonic_ms()
