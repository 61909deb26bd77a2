"""The Spark job whose tasks are the workers of a region: it lasts as long as they do."""

from __future__ import annotations

import re
import threading
from typing import Any

from penstock.jobmaster.execution.worker_group import WorkerGroup
from penstock.runtime.resident_worker import GRACE_S
from penstock.spark.java_loss import unless_java_ended
from penstock.spark.resident_task import host_worker

_RAISED = re.compile(r"[\w.]+(Error|Exception|Interrupt): ")
_HURRY_S = 0.5
_KILLED_WITHIN_S = 15
"""Spark gives a Python process that is to end two seconds, then kills it."""


class ResidentJob:
    """Starts at once, in a thread of its own. If it ends by itself, its group is lost."""

    def __init__(self, context: Any, group: WorkerGroup, name: str, description: str, pool: str) -> None:
        self._context = context
        self._group = group
        self._name = name
        self._description = description
        self._pool = pool
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="penstock-resident-job")
        self._thread.start()

    def _run(self) -> None:
        try:
            self._context.setJobGroup(self._name, self._description, interruptOnCancel=True)
            self._context.setLocalProperty("spark.scheduler.pool", self._pool)
            places = self._group.places()
            self._context.parallelize(places, len(places)).mapPartitions(host_worker).collect()
            reason = "the Spark job of its workers has ended"
        except Exception as error:  # Whatever ends the job, its group is notified.
            reason = f"the Spark job of its workers failed: {reason_of(error)}"
        if not self._is_ending:
            self._group.lose(reason)

    def end(self, is_patient: bool) -> None:
        """Stop the workers, which close their functions; kill those that do not end in time.

        `is_patient`: they may take some time for it.
        """
        self._is_ending = True
        self._group.close()
        self._thread.join(GRACE_S if is_patient and not self._group.is_broken else _HURRY_S)
        if self._thread.is_alive():
            cancel_group(self._context, self._name)
            self._thread.join(_KILLED_WITHIN_S)
        self._group.hang_up()


def cancel_group(context: Any, name: str) -> None:
    """Cancel a group's future jobs, too: one may be on its way to Spark at this moment."""
    unless_java_ended(context, lambda: context._jsc.sc().cancelJobGroupAndFutureJobs(name))


def reason_of(error: Exception) -> str:
    """The line of Spark's long message that says what happened."""
    java = getattr(error, "java_exception", None)
    text = str(java.getMessage() if java is not None else error).strip()
    if "java.lang.OutOfMemoryError" in text:
        return (
            "Java's memory was too small for what was exchanged; give it more by spark.driver.memory (local mode) or "
            "spark.executor.memory, or let records be smaller: each is in memory as a whole, several times"
        )
    lines = [line for line in text.splitlines() if line.strip()] or [type(error).__name__]
    # What a Python worker raised ends with the exception itself; Java's messages begin with what matters.
    raised = [line for line in lines if _RAISED.match(line)]
    return raised[-1].strip() if raised else lines[0]
