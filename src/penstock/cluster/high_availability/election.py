"""What job managers agree on: which one of them leads."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Protocol

OnGrant = Callable[[int], None]
OnRevoke = Callable[[], None]


class LeaderElection(Protocol):
    """One of several contenders leads at a time, as far as that can be known: a paused one learns of its end late."""

    def contend(self, address: str, on_grant: OnGrant, on_revoke: OnRevoke) -> None:
        """Stand by, and lead when it is this process's turn. `address` is where others find it then.

        `on_grant` gets the token, which is larger than any before; both are called one after the other, in a thread of
        their own, and may take their time.
        """

    @property
    def token(self) -> int | None:
        """The token of the leadership that this process believes it has; None if it does not lead."""

    @property
    def is_leader(self) -> bool: ...

    def leader_address(self) -> str | None:
        """Where the leader is found; None if there is none, or none is known now."""

    def close(self) -> None:
        """Give the leadership up, so that another may take over at once, and contend no more."""


class CallQueue:
    """Calls functions one after the other in a thread of its own: the caller does not wait."""

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def call(self, function: Callable[[], None]) -> None:
        self._calls.put(function)

    def close(self, timeout_s: float | None = None) -> None:
        """Wait until all functions were called."""
        self._calls.put(None)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while (function := self._calls.get()) is not None:
            function()
