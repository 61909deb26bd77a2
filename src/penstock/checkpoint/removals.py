"""Removes what no checkpoint needs, in the background: the next epoch does not wait for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from penstock.common.daemon_pool import DaemonPool
from penstock.common.exceptions import AbandonedError, LeadershipLostError

_log = logging.getLogger(__name__)

_THREADS = 4
"""In an object store a removal is mostly waiting."""
_MOST_WAITING = 1_000


@dataclass(frozen=True, eq=False)
class _Removal:
    path: str
    remove: Callable[[], None]


class Removals:
    """What has yet to be removed.

    A failure is logged with the path of what stays, and does not affect the job.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: set[_Removal] = set()
        self._pool: DaemonPool | None = None

    def start(self, path: str, remove: Callable[[], None]) -> None:
        """Have another thread call `remove` soon. `path` names what it removes, for people."""
        removal = _Removal(path, remove)
        with self._changed:
            self._waiting.add(removal)
            if self._pool is None:
                self._pool = DaemonPool(_THREADS, "removal")
            try:
                self._pool.submit(self._carry_out, removal)
            except RuntimeError as error:  # The system has no more threads, or Python is about to end.
                self._waiting.discard(removal)
                _report(path, error)

    def _carry_out(self, removal: _Removal) -> None:
        try:
            removal.remove()
        except (AbandonedError, LeadershipLostError) as lost:
            _log.info("%s stays: %s", removal.path, lost)
        except Exception as error:  # Stores raise errors of their own.
            _report(removal.path, error)
        finally:
            with self._changed:
                self._waiting.discard(removal)
                self._changed.notify_all()

    def wait_for_room(self) -> None:
        """Wait only while too much has yet to be removed: files must not pile up."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) < _MOST_WAITING)

    def drain(self) -> None:
        """Wait until all is removed, including what is started meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting)

    def close(self) -> None:
        """Wait until all is removed, and end the threads."""
        self.drain()
        with self._changed:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()


def _report(path: str, error: Exception) -> None:
    _log.warning("%s is no longer needed but cannot be removed: %s", path, error)
