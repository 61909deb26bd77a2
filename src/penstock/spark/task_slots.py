"""How many tasks Spark can run at once, and how many of these slots are left for the workers of a region.

Workers are tasks that stay. Spark's own jobs (DataFrames, copies of savepoints) cannot use the slots that they hold.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from penstock.jobmaster.execution.slots import NoResourceAvailableError
from penstock.spark.context_settings import context_settings
from penstock.spark.spark_settings import CORES

_SETTLED_S = 5.0
"""On a cluster: once no executor has come for this long, no more are expected."""
_POLL_S = 0.1
_NO_LIMIT = 2**31 - 1


def total_slots(context: Any) -> int:
    """How many tasks Spark can run at once, as it is now."""
    return sum(int(each.maxTasks()) for each in executors(context))


def free_slots(context: Any) -> int:
    return sum(max(0, int(each.maxTasks()) - int(each.activeTasks())) for each in executors(context))


def executors(context: Any) -> list[Any]:
    """What Spark says about each living executor, and on a cluster about the driver, which runs no tasks."""
    known = context._jsc.sc().statusStore().executorList(True)
    return [known.apply(number) for number in range(known.size())]


class SlotLedger:
    """Which slots of one Spark session the workers of this process hold."""

    def __init__(self, total: Callable[[], int], settings: Mapping[str, str], settled_s: float = _SETTLED_S) -> None:
        self._total = total
        self._settings = settings
        self._settled_s = settled_s
        self._is_settled = False
        self._grows = settings.get("spark.dynamicAllocation.enabled", "false").lower() == "true"
        self._changed = threading.Condition()
        self._taken = 0

    def take(
        self, wanted: int, regions: int, spare: int, timeout_ms: int, gave_up: Callable[[], bool], job_name: str
    ) -> int:
        """Take up to `wanted` slots; returns how many. Waits until there is one, and raises if there is none in time.

        0 if there is none and `gave_up` says that nobody waits for it.

        :param regions: How many regions of the job have none yet: they share what is there.
        :param spare: How many slots must stay free for Spark's own jobs.
        """
        wanted = min(wanted, int(self._settings.get(CORES, wanted)))
        deadline = time.monotonic() + timeout_ms / 1000
        if not self._grows:
            self._wait_for_executors(wanted + spare, deadline, gave_up)
        with self._changed:
            while (free := self._most() - self._taken - spare) < 1:
                left = deadline - time.monotonic()
                if gave_up():
                    return 0
                if left <= 0:
                    raise NoResourceAvailableError(
                        f"job '{job_name}' could not acquire the slots it needs within {timeout_ms} ms: required "
                        f"{1 + spare}{' (one of them for DataFrames)' if spare else ''}, available {free + spare} of "
                        f"{self._most()} tasks that Spark can run at once; wait for other jobs to end, add executors "
                        f"or cores, or raise slot.request.timeout",
                        job_name=job_name,
                    )
                self._changed.wait(min(left, _POLL_S))
            taken = min(wanted, max(1, free // max(1, regions)))
            self._taken += taken
            return taken

    def take_one_if_free(self) -> bool:
        """Without waiting, for a Spark job of the driver's own; True if there was one, to be given back."""
        with self._changed:
            is_free = self._most() > self._taken
            self._taken += is_free
            return is_free

    def is_overdrawn(self) -> bool:
        """True if more is taken than there is: executors were lost."""
        return self._taken > self._most()

    def _most(self) -> int:
        return self._most_by_allocation() if self._grows else self._total()

    def _most_by_allocation(self) -> int:
        """Spark adds executors for tasks that wait, up to a limit."""
        settings = self._settings
        executors = int(settings.get("spark.dynamicAllocation.maxExecutors", _NO_LIMIT))
        each = int(settings.get("spark.executor.cores", "1")) // int(settings.get("spark.task.cpus", "1"))
        return max(1, executors * each)

    def _wait_for_executors(self, wanted: int, deadline: float, gave_up: Callable[[], bool]) -> None:
        """Those of a cluster come one after the other: wait for the first, and a little for more."""
        total, since = self._total(), time.monotonic()
        while total < wanted and not self._is_settled and time.monotonic() < deadline and not gave_up():
            time.sleep(_POLL_S)
            if (now := self._total()) != total:
                total, since = now, time.monotonic()
            self._is_settled = total > 0 and time.monotonic() - since > self._settled_s

    def give_back(self, count: int) -> None:
        with self._changed:
            self._taken -= count
            self._changed.notify_all()

    def wake_up(self) -> None:
        """Somebody may have given up."""
        with self._changed:
            self._changed.notify_all()


_ledgers: dict[str, SlotLedger] = {}
_lock = threading.Lock()


def slot_ledger(context: Any) -> SlotLedger:
    """That of a session, which all jobs of this process share."""
    settings = context_settings(context)
    settled_s = 0.5 if str(context.master).startswith("local") else _SETTLED_S
    with _lock:
        name = str(context.applicationId)
        return _ledgers.setdefault(name, SlotLedger(lambda: total_slots(context), settings, settled_s))
