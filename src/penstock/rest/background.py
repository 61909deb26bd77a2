"""Runs what takes a while beside the caller."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_background(action: Callable[[], T]) -> Future[T]:
    """Call `action` in a thread of its own; what it raises is raised where the result is waited for."""
    done: Future[T] = Future()

    def act() -> None:
        try:
            done.set_result(action())
        except Exception as failure:  # Raised where the result is waited for
            done.set_exception(failure)

    threading.Thread(target=act, daemon=True).start()
    return done
