"""Calls that take long, made in a thread of their own, once or again and again."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(order=True)
class _Call:
    due_s: float
    number: int
    call: Callable[[], Any] = field(compare=False)
    done: Callable[[Any, BaseException | None], None] = field(compare=False)
    period_s: float | None = field(compare=False)


class AsyncCalls:
    """One thread, begun with the first call, makes all calls in the order they are due."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: list[_Call] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._is_closed = False
        self._is_busy = False
        self._thread: threading.Thread | None = None

    def add(
        self,
        call: Callable[[], Any],
        done: Callable[[Any, BaseException | None], None],
        delay_ms: int,
        period_ms: int | None,
    ) -> None:
        """`done(result, error)` is called by the same thread, unless closed meanwhile; it must not raise."""
        due_s = time.monotonic() + delay_ms / 1000
        period_s = None if period_ms is None else max(period_ms, 1) / 1000
        with self._changed:
            heapq.heappush(self._waiting, _Call(due_s, next(self._numbers), call, done, period_s))
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def has_single_calls(self) -> bool:
        """True if a call is under way, or one is still to be made that is not repeated."""
        with self._changed:
            return self._is_busy or any(each.period_s is None for each in self._waiting)

    def close(self) -> None:
        """Make no more calls. One that is under way is left to end by itself, and its result is dropped."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def _run(self) -> None:
        while (each := self._next()) is not None:
            result, error = None, None
            try:
                result = each.call()
            except (Exception, SystemExit) as failure:  # The caller decides what a failure means.
                error = failure
            if not self._is_closed:
                each.done(result, error)
            self._end(each)

    def _next(self) -> _Call | None:
        with self._changed:
            while not self._is_closed:
                wait_s = self._waiting[0].due_s - time.monotonic() if self._waiting else None
                if wait_s is not None and wait_s <= 0:
                    self._is_busy = True
                    return heapq.heappop(self._waiting)
                self._changed.wait(wait_s)
        return None

    def _end(self, each: _Call) -> None:
        with self._changed:
            self._is_busy = False
            if each.period_s is not None and not self._is_closed:
                each.due_s = time.monotonic() + each.period_s
                heapq.heappush(self._waiting, each)
            self._changed.notify_all()
