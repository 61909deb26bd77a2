"""Sends what functions print and log in a worker to the driver.

There, printed lines go to the job's output, and log records to the program's logging.
"""

from __future__ import annotations

import contextlib
import io
import logging
import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_SENT_EVERY_S = 0.2
_MOST_WAITING = 500
_LONGEST_LINE = 1 << 20

LogLevels = tuple[tuple[str, int], ...]
"""Names of loggers, and the levels that were set for them. The name of the root logger is empty."""


@dataclass(frozen=True)
class TaskPlace:
    """The subtask that wrote something."""

    task: str
    subtask: int
    parallelism: int
    attempt: int

    def __str__(self) -> str:
        """As Flink names the thread of a task."""
        return f"{self.task} ({self.subtask + 1}/{self.parallelism})#{self.attempt}"


@dataclass(frozen=True)
class PrintedLine:
    is_error: bool
    text: str


@dataclass(frozen=True)
class LoggedRecord:
    fields: dict[str, Any]
    """The attributes of the LogRecord."""
    place: TaskPlace | None


Written = PrintedLine | LoggedRecord

_here = threading.local()


def enter_task(place: TaskPlace | None) -> None:
    """From now on this thread works for this task; for no task if `place` is None."""
    _here.place = place


def current_task() -> TaskPlace | None:
    place: TaskPlace | None = getattr(_here, "place", None)
    return place


def levels_here() -> LogLevels:
    """The levels that the program has set, so that workers can set the same."""
    loggers = [each for each in logging.root.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    known = sorted((each.name, each.level) for each in loggers if each.level != logging.NOTSET)
    return ("", logging.root.level), *known


class TaskOutput:
    """Gathers what is written in this process, and sends it in order: at intervals, when much waits, and on request."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._waiting: list[Written] = []
        self.has_some = threading.Event()
        """Set while something waits to be sent."""
        self._lock = threading.Lock()
        self._sending = threading.Lock()

    def add(self, written: Written, at_once: bool = False) -> None:
        with self._lock:
            self._waiting.append(written)
            self.has_some.set()
            is_due = at_once or len(self._waiting) >= _MOST_WAITING
        if is_due:
            self.flush()

    def flush(self) -> None:
        with self._sending:  # What is taken first is sent first.
            with self._lock:
                taken, self._waiting = self._waiting, []
                self.has_some.clear()
            if taken:
                self._send(pickle.dumps(taken))


class _LineStream(io.TextIOBase):
    """Splits printed text into lines, separately for each thread, so that lines of different threads do not mix."""

    def __init__(self, output: TaskOutput, is_error: bool) -> None:
        self._output = output
        self._is_error = is_error
        self._begun: dict[int, str] = {}

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        thread = threading.get_ident()
        *lines, rest = (self._begun.pop(thread, "") + text).split("\n")
        for line in lines:
            self._output.add(PrintedLine(self._is_error, line))
        if len(rest) > _LONGEST_LINE:
            self._output.add(PrintedLine(self._is_error, rest))
        elif rest:
            self._begun[thread] = rest
        return len(text)

    def finish(self) -> None:
        """Send lines that have not ended, too."""
        for rest in self._begun.values():
            self._output.add(PrintedLine(self._is_error, rest))
        self._begun.clear()


class _RecordHandler(logging.Handler):
    def __init__(self, output: TaskOutput) -> None:
        super().__init__()
        self._output = output

    def emit(self, record: logging.LogRecord) -> None:
        self._output.add(LoggedRecord(_portable(record), current_task()), record.levelno >= logging.WARNING)


_STACKS = logging.Formatter()


def _portable(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of a record as plain values, with its message and stack as text: not every object can be pickled."""
    fields = {**record.__dict__, "msg": record.getMessage(), "args": None, "exc_info": None}
    if record.exc_info:
        fields["exc_text"] = _STACKS.formatException(record.exc_info)
    plain = (str, int, float, bool, type(None))
    return {name: value if isinstance(value, plain) else str(value) for name, value in fields.items()}


@contextlib.contextmanager
def captured(send: Callable[[bytes], None]) -> Iterator[TaskOutput]:
    """Within this context, what the process prints and logs is sent instead."""
    output = TaskOutput(send)
    streams = _LineStream(output, False), _LineStream(output, True)
    ended = threading.Event()

    def send_now_and_then() -> None:
        while not ended.is_set():
            output.has_some.wait()  # So that a process that writes nothing does not wake up.
            ended.wait(_SENT_EVERY_S)
            output.flush()

    before = logging.root.handlers[:], levels_here()
    logging.root.handlers[:] = [_RecordHandler(output)]
    threading.Thread(target=send_now_and_then, daemon=True, name="penstock-output").start()
    try:
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
            yield output
    finally:
        ended.set()
        logging.root.handlers[:] = before[0]
        _reset_levels(before[1])
        for stream in streams:
            stream.finish()
        try:
            output.flush()
        finally:
            output.has_some.set()  # Wakes the thread up, so that it ends; after the last flush, which clears it.


def use_levels(levels: LogLevels) -> None:
    """Set the levels of the program's loggers in this process."""
    for name, level in levels:
        logging.getLogger(name or None).setLevel(level)


def _reset_levels(before: LogLevels) -> None:
    for name, _ in levels_here()[1:]:
        logging.getLogger(name).setLevel(logging.NOTSET)
    use_levels(before)


def read_written(content: bytes) -> list[Written]:
    written: list[Written] = pickle.loads(content)
    return written
