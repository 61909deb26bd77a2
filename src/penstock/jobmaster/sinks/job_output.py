"""What a job shows in the driver: printed lines, and the values of execute_and_collect."""

from __future__ import annotations

import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from penstock.common.exceptions import JobExecutionError
from penstock.runtime.protocol import EpochOutcome

_END = object()
_REMEMBERED_LINES = 1_000
_LONGEST_LINE = 2_000
_REMEMBERED_CHARACTERS = 200_000


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
        self._queue.put(_END)  # A second reader gets the same end.
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
        self._last_lines: deque[tuple[bool, str]] = deque(maxlen=_REMEMBERED_LINES)
        self._line_count = 0

    def show(self, lines: list[tuple[bool, str]]) -> None:
        with self._lock:  # Lines of two regions must not run into each other.
            self._line_count += len(lines)
            self._last_lines.extend((is_error, line[:_LONGEST_LINE]) for is_error, line in lines[-_REMEMBERED_LINES:])
            self.write_lines(lines)

    def last_lines(self) -> tuple[int, list[tuple[bool, str]]]:
        """How many lines were printed, and the last of them, long ones cut; each with True for standard error."""
        with self._lock:
            count, lines = self._line_count, list(self._last_lines)
        left = _REMEMBERED_CHARACTERS
        kept: list[tuple[bool, str]] = []
        for is_error, line in reversed(lines):
            left -= len(line)
            if left < 0:
                break
            kept.append((is_error, line))
        return count, kept[::-1]

    def end(self, failure: BaseException | None = None) -> None:
        for values in self.collected.values():
            values.end(failure)


class RegionOutput:
    """Shows what the epochs of a region produced, once they are complete.

    What may still be taken back waits; what is *due* is shown whatever happens, if need be by the next attempt.
    `holds_collected`: an epoch may be repeated although it was complete, if no checkpoint came after it. Collected
    values then wait for a checkpoint, so that nobody gets them twice; printed lines do not wait, as in Flink.
    """

    def __init__(self, output: JobOutput, holds_collected: bool = False) -> None:
        self._output = output
        self._holds_collected = holds_collected
        self._lines: list[tuple[bool, str]] = []
        self._held: list[tuple[str, list[Any]]] = []
        self._due_lines: list[tuple[bool, str]] = []
        self._due_values: deque[tuple[str, list[Any]]] = deque()

    def take(self, outcome: EpochOutcome) -> None:
        """A subtask's part of an epoch that all subtasks have acknowledged."""
        self._lines.extend(outcome.lines)
        self._held.extend(outcome.collected.items())

    def epoch_completed(self, is_covered: bool) -> None:
        """The epoch is complete; `is_covered`: and is not repeated, because a checkpoint or the job ends with it."""
        self._due_lines += self._lines
        self._lines = []
        if is_covered or not self._holds_collected:
            self._due_values += self._held
            self._held = []

    def show(self) -> None:
        """Show what is due. What could not be shown stays due."""
        try:
            self._output.show(self._due_lines)
        except (OSError, ValueError) as error:
            raise OutputError(f"print: cannot write to the terminal or file it goes to ({error})") from error
        self._due_lines = []
        while self._due_values:
            collect_id, values = self._due_values[0]
            self._output.collected[collect_id].put_all(values)
            self._due_values.popleft()

    def drop_held(self) -> None:
        """The region goes back to a checkpoint before what waits."""
        self._held = []
        self._lines = []
