"""Runs things at the same time, one thread each, to the end of all of them, or to the end of all patience."""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from penstock.common.abandoned_calls import Wanted, work_for
from penstock.common.exceptions import AbandonedError

_log = logging.getLogger(__name__)

R = TypeVar("R")
A = TypeVar("A")

_ONCE_IMPATIENT_S = 1.0
_SHOWN_FRAMES = 3
_LIBRARY = os.path.dirname(threading.__file__)


class Patience:
    """How long a job that must end waits for calls that do not return: of a store, a committer, a source.

    As long as the job may go on, it waits for ever. What it has given up may not do anything any more: see
    `check_wanted`.
    """

    def __init__(self, timeout_ms: int = 0) -> None:
        """`timeout_ms`: the time for a call to return once the job must end; 0: it waits for ever."""
        self._timeout_s = timeout_ms / 1000 if timeout_ms else None
        self._must_end: Future[None] = Future()
        self._lock = threading.Lock()
        self.has_given_up = False

    def must_end(self) -> None:
        """The job was cancelled, has failed, or is continued elsewhere."""
        with self._lock:
            if not self._must_end.done():
                self._must_end.set_result(None)

    def call(self, action: Callable[[], R]) -> R:
        """What `action` returns or raises; raises AbandonedError if it does neither in time."""
        call = _Call(action)
        call.start()
        if self.wait_for([call]):
            raise AbandonedError("the job ends without waiting for this")
        return call.done.result()

    def wait_for(self, calls: Sequence[_Call[R]]) -> list[_Call[R]]:
        """Wait for all of these; returns those that are given up."""
        pending: set[Future[Any]] = {call.done for call in calls}
        while pending and not self._must_end.done():
            pending = wait([*pending, self._must_end], return_when=FIRST_COMPLETED).not_done - {self._must_end}
        wait(pending, self._left_s())
        abandoned = [call for call in calls if not call.abandon_unless_done()]
        for call in abandoned:
            self.has_given_up = True
            _log.warning("the job ends without waiting for a call that does not return: %s", call.where())
        return abandoned

    def _left_s(self) -> float | None:
        """A call that begins when the job must end has as much time, unless another one has used it up."""
        if self.has_given_up and self._timeout_s is not None:
            return min(self._timeout_s, _ONCE_IMPATIENT_S)
        return self._timeout_s


class _Call(Generic[R]):
    """A call in a thread of its own, which has what this one has for its job, such as the classes of its script."""

    def __init__(self, action: Callable[[], R]) -> None:
        self._action = action
        self._wanted = Wanted()
        self._lock = threading.Lock()
        self.done: Future[R] = Future()
        self._thread = threading.Thread(target=copy_context().run, args=(self._run,), daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        work_for(self._wanted)
        try:
            result = self._action()
        except BaseException as failure:
            self._settle(self.done.set_exception, failure)
        else:
            self._settle(self.done.set_result, result)

    def _settle(self, settle: Callable[[A], None], outcome: A) -> None:
        with self._lock:  # Held until all who asked to be called back were: see `run_side_by_side`.
            if not self._wanted.is_abandoned:
                settle(outcome)

    def abandon_unless_done(self) -> bool:
        """True if the call has returned. Otherwise nobody will know whether it does."""
        with self._lock:
            self._wanted.is_abandoned = not self.done.done()
            return not self._wanted.is_abandoned

    def where(self) -> str:
        """The innermost calls of its thread, for people; those of Python's library say nothing."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        found = [] if frame is None else traceback.extract_stack(frame)
        shown = [each for each in found if not each.filename.startswith(_LIBRARY) or "site-packages" in each.filename]
        return ", called by ".join(
            f"{each.name} ({each.filename}:{each.lineno})" for each in reversed(shown[-_SHOWN_FRAMES:])
        )


def run_side_by_side(
    actions: Sequence[Callable[[], None]],
    on_failure: Callable[[], None],
    patience: Patience | None = None,
    on_abandoned: Callable[[int], None] = lambda place: None,
) -> None:
    """Run `actions`, each in a thread. `on_failure` is to make the others end when one fails; the first failure is
    raised when all have ended. `on_abandoned` is called with the place of each that has not ended in time."""
    failures: list[BaseException] = []
    lock = threading.Lock()

    def note(done: Future[None]) -> None:
        failure = done.exception()
        if failure is None:
            return
        with lock:
            failures.append(failure)
            is_first = len(failures) == 1
        if is_first:
            on_failure()

    calls = [_Call(action) for action in actions]
    for call in calls:
        call.done.add_done_callback(note)
    for call in calls:
        call.start()
    abandoned = (patience or Patience()).wait_for(calls)
    for call in abandoned:
        on_abandoned(calls.index(call))
    if failures:
        raise failures[0]
