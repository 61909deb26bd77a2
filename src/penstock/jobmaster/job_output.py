"""What a job shows in the driver: printed lines, and the values of execute_and_collect."""

from __future__ import annotations

import queue
import sys
from collections.abc import Iterator
from typing import Any

from penstock.common.exceptions import JobExecutionError
from penstock.runtime.stream_task import EpochOutcome

_END = object()


class OutputError(JobExecutionError):
    """What a complete epoch gave could not be shown. It cannot be repeated: the epoch is complete."""


class CollectedValues:
    """The values of one collect sink, in the order they were committed; ends or fails with the job."""

    def __init__(self) -> None:
        self._queue: queue.Queue[Any] = queue.Queue()
        self._failure: BaseException | None = None

    def put_all(self, values: list[Any]) -> None:
        if values:
            self._queue.put(values)

    def end(self, failure: BaseException | None = None) -> None:
        self._failure = failure
        self._queue.put(_END)

    def __iter__(self) -> Iterator[Any]:
        while (values := self._queue.get()) is not _END:
            yield from values
        self._queue.put(_END)  # Whoever asks again gets the same answer.
        if self._failure is not None:
            raise self._failure


class JobOutput:
    """Shows what an epoch produced, once the epoch is complete: a repeated epoch shows nothing twice."""

    def __init__(self) -> None:
        self.collected: dict[str, CollectedValues] = {}

    def show(self, outcome: EpochOutcome) -> None:
        try:
            for to_stderr, line in outcome.lines:
                print(line, file=sys.stderr if to_stderr else sys.stdout)
        except (OSError, ValueError) as error:
            raise OutputError(f"print: cannot write to the terminal or file it goes to ({error})") from error
        for collect_id, values in outcome.collected.items():
            self.collected[collect_id].put_all(values)

    def flush(self) -> None:
        sys.stdout.flush()

    def end(self, failure: BaseException | None = None) -> None:
        for values in self.collected.values():
            values.end(failure)
