"""Slots: how many subtasks may live at the same time, and who waits for them.

Spark runs more partitions than it has cores one after the other, so by default there is no limit. With
`taskmanager.numberOfTaskSlots` every executor offers that many, as in Flink: a job begins when it has all it needs.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.common.exceptions import JobExecutionError
from penstock.graph.job_graph import JobGraph


class NoResourceAvailableError(JobExecutionError):
    """A job did not get the slots it needs in time."""


def required_slots(job_graph: JobGraph) -> int:
    """Flink's rule: operators of one slot sharing group share slots, so a group needs its largest parallelism."""
    groups: dict[str, int] = defaultdict(int)
    for vertex in job_graph.vertices:
        group = vertex.head.slot_sharing_group
        groups[group] = max(groups[group], vertex.parallelism)
    return sum(groups.values())


class SlotPool:
    """The slots of one Spark session, shared by its jobs."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._free = total
        self._changed = threading.Condition()

    @property
    def available(self) -> int:
        return self._free

    def resize(self, total: int) -> None:
        """Executors came or went."""
        with self._changed:
            self._free += total - self.total
            self.total = total
            self._changed.notify_all()

    @contextmanager
    def held(self, required: int, timeout_ms: int, gave_up: Callable[[], bool], job_name: str) -> Iterator[None]:
        """Wait for `required` slots and keep them; return without them once `gave_up` is true."""
        taken = self._take(required, timeout_ms, gave_up, job_name)
        try:
            yield
        finally:
            with self._changed:
                self._free += taken
                self._changed.notify_all()

    def _take(self, required: int, timeout_ms: int, gave_up: Callable[[], bool], job_name: str) -> int:
        deadline = time.monotonic() + timeout_ms / 1000
        with self._changed:
            while self._free < required:
                if gave_up():
                    return 0
                left = deadline - time.monotonic()
                if left <= 0:
                    raise NoResourceAvailableError(
                        f"job '{job_name}' could not acquire the slots it needs within {timeout_ms} ms: required "
                        f"{required}, available {self._free} of {self.total}; lower its parallelism, wait for other "
                        f"jobs to end, add executors, or raise taskmanager.numberOfTaskSlots or slot.request.timeout",
                        job_name=job_name,
                    )
                self._changed.wait(left)
            self._free -= required
            return required

    def wake_up(self) -> None:
        """Somebody may have given up."""
        with self._changed:
            self._changed.notify_all()


_pools: dict[str, SlotPool] = {}
_pools_lock = threading.Lock()


def slot_pool(session: str, total: int) -> SlotPool:
    """The pool of a session of this process, with as many slots as it has now."""
    with _pools_lock:
        pool = _pools.setdefault(session, SlotPool(total))
    if pool.total != total:
        pool.resize(total)
    return pool
