"""Runs things at the same time, one thread each, to the end of all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context


def run_side_by_side(actions: Sequence[Callable[[], None]], on_failure: Callable[[], None]) -> None:
    """Run `actions`, a single one in this thread. `on_failure` is to make the others end when one fails; the first
    failure is raised when all have ended."""
    failures: list[BaseException] = []
    lock = threading.Lock()

    def guarded(action: Callable[[], None]) -> None:
        try:
            action()
        except BaseException as failure:  # Raised again below
            with lock:
                failures.append(failure)
                is_first = len(failures) == 1
            if is_first:
                on_failure()

    if len(actions) == 1:
        actions[0]()
        return
    # Each thread has what this one has for its job, such as the classes of its script.
    threads = [threading.Thread(target=copy_context().run, args=(guarded, action), daemon=True) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
