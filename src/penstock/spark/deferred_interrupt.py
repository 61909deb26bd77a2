"""Ctrl-C at a moment when it would do harm."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def deferred_interrupt() -> Iterator[None]:
    """Hold Ctrl-C back until the end.

    If PySpark is interrupted while it waits for Java, it loses track of the process, and never recovers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held_back: list[int] = []

    def hold_back(signal_number: int, _: Any) -> None:
        held_back.append(signal_number)

    before = signal.signal(signal.SIGINT, hold_back)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is hold_back:  # Otherwise Spark has put its own in.
            signal.signal(signal.SIGINT, before)
    if held_back:
        raise KeyboardInterrupt
