"""Threads for calls that may never return: unlike those of ThreadPoolExecutor they do not keep the process alive."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class DaemonPool:
    """Up to `threads` threads, begun when they are needed. Calls have the context of those who submit them.

    >>> pool = DaemonPool(2, "example")
    >>> pool.submit(pow, 2, 10).result()
    1024
    >>> pool.shutdown()
    """

    def __init__(self, threads: int, name: str) -> None:
        self._most = threads
        self._name = name
        self._changed = threading.Condition()
        self._calls: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._is_closed = False

    def submit(self, call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Have a thread make the call. Raises RuntimeError if the system has no more threads."""
        result: Future[R] = Future()
        with self._changed:
            if self._is_closed:
                raise RuntimeError(f"pool '{self._name}' is closed")
            if self._idle <= len(self._calls) and len(self._threads) < self._most:
                self._start_thread()
            self._calls.append((result, partial(copy_context().run, partial(call, *args, **kwargs))))
            self._changed.notify()
        return result

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._run, name=f"{self._name}-{len(self._threads)}", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            if not self._threads:
                raise
            return  # Those that there are do it.
        self._threads.append(thread)

    def shutdown(self) -> None:
        """Wait until all calls have been made, and end the threads."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (each := self._next()) is not None:
            result, call = each
            try:
                value = call()
            except BaseException as error:  # Whoever asks for the result gets it.
                result.set_exception(error)
            else:
                result.set_result(value)
            del each, result, call  # An idle thread must not keep what the call was made with.

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._calls or self._is_closed)
            self._idle -= 1
            return self._calls.popleft() if self._calls else None
