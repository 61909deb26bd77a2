"""What a job shows in the driver: printed lines, and the values of execute_and_collect."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Iterator
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


def write_to_terminal(lines: list[tuple[bool, str]]) -> None:
    for to_stderr, line in lines:
        print(line, file=sys.stderr if to_stderr else sys.stdout)
    sys.stdout.flush()


class JobOutput:
    """Where what a job shows goes. Regions of the job share it."""

    def __init__(self) -> None:
        self.collected: dict[str, CollectedValues] = {}
        self.write_lines: Callable[[list[tuple[bool, str]]], None] = write_to_terminal
        """Where printed lines go; each with True for standard error."""
        self._lock = threading.Lock()

    def show(self, lines: list[tuple[bool, str]]) -> None:
        with self._lock:  # Lines of two regions must not run into each other.
            self.write_lines(lines)

    def end(self, failure: BaseException | None = None) -> None:
        for values in self.collected.values():
            values.end(failure)


class RegionOutput:
    """Shows what the epochs of a region produced, once they are complete.

    `holds_collected`: an epoch may be repeated although it was complete, if no checkpoint came after it. Collected
    values then wait for a checkpoint, so that nobody gets them twice; printed lines do not wait, as in Flink.
    """

    def __init__(self, output: JobOutput, holds_collected: bool = False) -> None:
        self._output = output
        self._holds_collected = holds_collected
        self._lines: list[tuple[bool, str]] = []
        self._held: list[tuple[str, list[Any]]] = []

    def take(self, outcome: EpochOutcome) -> None:
        """A subtask's part of an epoch that is complete."""
        self._lines.extend(outcome.lines)
        self._held.extend(outcome.collected.items())

    def show(self) -> None:
        lines, self._lines = self._lines, []
        try:
            self._output.show(lines)
        except (OSError, ValueError) as error:
            raise OutputError(f"print: cannot write to the terminal or file it goes to ({error})") from error
        if not self._holds_collected:
            self.release_held()

    def release_held(self) -> None:
        held, self._held = self._held, []
        for collect_id, values in held:
            self._output.collected[collect_id].put_all(values)

    def drop_held(self) -> None:
        """The region goes back to a checkpoint before these values."""
        self._held = []
        self._lines = []
