"""What a job of a job manager shows, on its way to the client that waits for it, or else to the log."""

from __future__ import annotations

import base64
import contextlib
import hmac
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

from penstock.jobmaster.sinks.job_output import CollectedValues

Event = dict[str, Any]

_MOST_EVENTS = 10_000
_MOST_AT_ONCE = 1_000
_READER_COMES_WITHIN_S = 60
_LOOK_AROUND_S = 0.5


class OutputChannel:
    """Between the job's thread, which writes, and the one that sends to the client.

    A client that reads slowly slows its job down, as a terminal does. One that has hung up does not: the rest goes to
    the log. Others who read get what comes from then on; they neither take anything from the client nor slow the job.

    :param submitter: The secret that the client that submitted the job shows; None if there is no such client.
    """

    def __init__(
        self,
        is_attached: bool,
        log: Callable[[str], None],
        is_cancelled: Callable[[], bool],
        submitter: str | None = None,
    ) -> None:
        self._is_attached = is_attached
        self._log = log
        self._is_cancelled = is_cancelled
        self._submitter = submitter
        self._events: deque[Event] = deque()
        self._observers: set[Observer] = set()
        self._changed = threading.Condition()
        self._has_ended = False
        self.was_read = False
        self.is_suspended = False
        """True if the job continues elsewhere: what follows comes from there."""
        self._last_read_s = time.monotonic()

    # --- the job's side --------------------------------------------------------------------------------------------

    def write_lines(self, lines: list[tuple[bool, str]]) -> None:
        for to_stderr, line in lines:
            self._put({"line": line, "stderr": to_stderr})

    def put_values(self, collect_id: str, values: list[Any]) -> None:
        self._put({"collect": collect_id, "values": base64.b64encode(cloudpickle.dumps(values)).decode("ascii")})

    def end(self) -> None:
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def suspend(self) -> None:
        """Another job manager continues the job."""
        self.is_suspended = True
        self.end()

    def _put(self, event: Event) -> None:
        with self._changed:
            while self._is_attached and len(self._events) >= _MOST_EVENTS and not self._is_given_up():
                self._changed.wait(_LOOK_AROUND_S)
            for observer in self._observers:
                observer.take(event)
            self._changed.notify_all()
            if self._is_attached:
                self._events.append(event)
                return
        self._write_to_log(event)

    def _is_given_up(self) -> bool:
        """True if nobody will read any more: waiting must not keep a cancelled job from ending."""
        if self._is_cancelled() or time.monotonic() - self._last_read_s > _READER_COMES_WITHIN_S:
            self._hang_up()
        return not self._is_attached

    def _write_to_log(self, event: Event) -> None:
        if "line" in event:
            self._log(event["line"])

    # --- the client's side -----------------------------------------------------------------------------------------

    def read(self, timeout_s: float) -> list[Event] | None:
        """What there is, after waiting for it; empty if nothing came in time, None if nothing more will come."""
        with self._changed:
            self._changed.wait_for(lambda: self._events or self._has_ended, timeout_s)
            self._last_read_s = time.monotonic()
            self.was_read = True
            taken = [self._events.popleft() for _ in range(min(len(self._events), _MOST_AT_ONCE))]
            self._changed.notify_all()
            return taken if taken or not self._has_ended else None

    def is_submitter(self, shown: str | None) -> bool:
        return (
            self._submitter is not None
            and shown is not None
            and hmac.compare_digest(shown.encode("utf-8", "surrogateescape"), self._submitter.encode())
        )

    @contextlib.contextmanager
    def observed(self) -> Iterator[Observer]:
        """Somebody other than the client reads, for as long as the context lasts."""
        observer = Observer(self._changed, lambda: self._has_ended)
        with self._changed:
            self._observers.add(observer)
        try:
            yield observer
        finally:
            with self._changed:
                self._observers.discard(observer)

    def hang_up(self) -> None:
        """The client is gone: what it has not read goes to the log, and so does all that follows."""
        with self._changed:
            self._hang_up()

    def _hang_up(self) -> None:
        self._is_attached = False
        while self._events:
            self._write_to_log(self._events.popleft())
        self._changed.notify_all()

    @property
    def is_over(self) -> bool:
        """True if the job has ended and nobody has read for a while, or all was read."""
        idle_s = time.monotonic() - self._last_read_s
        return self._has_ended and (not self._events or idle_s > _READER_COMES_WITHIN_S)


class Observer:
    """One who watches. What is not read in time is dropped, and an event reports how much."""

    def __init__(self, changed: threading.Condition, has_ended: Callable[[], bool]) -> None:
        self._changed = changed
        self._has_ended = has_ended
        self._events: deque[Event] = deque()
        self._missed = 0

    def take(self, event: Event) -> None:
        if len(self._events) >= _MOST_EVENTS:
            self._events.popleft()
            self._missed += 1
        self._events.append(event)

    def read(self, timeout_s: float) -> list[Event] | None:
        """Like the channel's `read`."""
        with self._changed:
            self._changed.wait_for(lambda: self._events or self._has_ended(), timeout_s)
            missed: list[Event] = [{"missed": self._missed}] if self._missed else []
            self._missed = 0
            taken = missed + [self._events.popleft() for _ in range(min(len(self._events), _MOST_AT_ONCE))]
            return taken if taken or not self._has_ended() else None


class ForwardedValues(CollectedValues):
    """The values of a collect sink whose program runs elsewhere."""

    def __init__(self, channel: OutputChannel, collect_id: str) -> None:
        super().__init__()
        self._channel = channel
        self._collect_id = collect_id

    def put_all(self, values: list[Any]) -> None:
        if values:
            self._channel.put_values(self._collect_id, values)
