"""Batch mode: an epoch, which is all of the job, as one Spark job with Spark's shuffle between its stages."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable
from typing import Any

from pyspark.accumulators import AccumulatorParam

from penstock.checkpoint.folders import Folder
from penstock.checkpoint.savepoints import Copy
from penstock.common import config_keys as keys
from penstock.common.exceptions import JobExecutionError
from penstock.jobmaster.execution.stage_executor import EpochCancelledError, TakeOutput, TaskDone
from penstock.runtime.chunk import encode_in_driver
from penstock.runtime.protocol import EpochCommand, JobDeployment
from penstock.runtime.rows import OUTPUT, Row
from penstock.runtime.saved_state import StateHandle
from penstock.runtime.thread_dump import ProcessThreads
from penstock.spark.batch_task import StageTask
from penstock.spark.context_settings import context_settings
from penstock.spark.java_loss import unless_java_ended
from penstock.spark.resident_job import cancel_group, reason_of
from penstock.spark.spark_executor import SparkSide
from penstock.spark.spark_settings import CORES
from penstock.spark.task_slots import slot_ledger


class _SharedSlot:
    """One slot for all running regions of a job, so that resident workers of other jobs cannot take the last one.

    Spark would let the job wait forever then. One is enough: tasks of a batch job can run one after the other.
    """

    def __init__(self, side: SparkSide) -> None:
        self._side = side
        self._ledger = slot_ledger(side.context)
        self._lock = threading.Lock()
        self._users = 0

    def take(self, gave_up: Callable[[], bool]) -> bool:
        """Wait for it; False if it is no longer wanted. Raises if there is none in time."""
        with self._lock:
            timeout_ms = self._side.config.get(keys.SLOT_TIMEOUT)
            if not self._users and not self._ledger.take(1, 1, 0, timeout_ms, gave_up, self._side.job_name):
                return False
            self._users += 1
            return True

    def give_back(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._ledger.give_back(1)


class TasksDone(AccumulatorParam[dict[tuple[int, int], TaskDone]]):
    """By vertex and subtask: a task that Spark repeats counts once."""

    def zero(self, value: dict[tuple[int, int], TaskDone]) -> dict[tuple[int, int], TaskDone]:
        return {}

    def addInPlace(
        self, value1: dict[tuple[int, int], TaskDone], value2: dict[tuple[int, int], TaskDone]
    ) -> dict[tuple[int, int], TaskDone]:
        return {**value1, **value2}


class BatchExecutor:
    """The stages of one region of a job in batch mode."""

    def __init__(self, side: SparkSide, slot: _SharedSlot | None = None) -> None:
        self._side = side
        self._slot = slot or _SharedSlot(side)
        self._has_slot = False
        self._name = f"{side.job_id}-{secrets.token_hex(4)}"
        self._deployment: Any = None
        self._widths: list[int] = []
        self._folder: Folder | None = None
        self._is_cancelled = False
        self._done: Any = None

    def executors(self) -> tuple[str, int]:
        return self._side.executors()

    def sibling(self) -> BatchExecutor:
        return BatchExecutor(self._side, self._slot)

    def deploy(self, deployment: JobDeployment, folder: Folder, on_loss: Callable[[], None]) -> None:
        context = self._side.context
        self._has_slot = self._has_slot or self._slot.take(lambda: self._is_cancelled)
        if self._is_cancelled:
            raise EpochCancelledError
        self._folder = folder
        self._deployment = context.broadcast(self._side.dependencies.around(encode_in_driver(deployment)))
        most = int(context_settings(context).get(CORES, "0"))
        widths = [max(vertex.parallelism for vertex in stage) for stage in deployment.stages()]
        self._widths = [min(width, most or width) for width in widths]

    def show_output(self, take: TakeOutput) -> None:
        self._side.take_output = take

    def check(self) -> None:
        """Between epochs there is nothing that could be lost."""

    def run_epoch(self, command: EpochCommand, source_rows: list[Row]) -> list[Row]:
        context, side = self._side.context, self._side
        context.setJobGroup(self._name, f"{side.job_name}: epoch {command.epoch}", interruptOnCancel=True)
        context.setLocalProperty("spark.scheduler.pool", side.job_id)
        try:
            if self._is_cancelled:
                raise EpochCancelledError
            self._done = context.accumulator({}, TasksDone())
            rows: list[Row] = self._stages(command, source_rows).collect()
        except Exception as error:
            if self._is_cancelled:
                raise EpochCancelledError from None
            raise JobExecutionError(
                f"job '{side.job_name}' failed on Spark: {reason_of(error)}", side.job_id, side.job_name
            ) from error
        if self._is_cancelled:
            raise EpochCancelledError
        for row in rows:
            if row.vertex == OUTPUT:
                side.take_output(row.chunk, lambda: not self._is_cancelled)
        return [row for row in rows if row.vertex != OUTPUT]

    def _stages(self, command: EpochCommand, source_rows: list[Row]) -> Any:
        """A Spark stage for each stage; those of one slot each need no exchange and share one."""
        rdd = self._handed_out(source_rows)
        stages: list[int] = []
        for stage, (width, next_width) in enumerate(zip(self._widths, [*self._widths[1:], None], strict=True)):
            stages.append(stage)
            if (width, next_width) == (1, 1):
                continue
            assert self._folder is not None
            task = StageTask(self._deployment, self._folder, command, tuple(stages), width, self._done)
            rdd = rdd.mapPartitionsWithIndex(task)
            if next_width is not None:
                rdd = rdd.map(_by_subtask).partitionBy(next_width, _as_it_is).values()
            stages = []
        return rdd

    def _handed_out(self, source_rows: list[Row]) -> Any:
        parts: list[list[Row]] = [[] for _ in range(self._widths[0])]
        for row in source_rows:
            parts[row.subtask % len(parts)].append(row)
        return self._side.context_for_workers.parallelize(parts, len(parts)).flatMap(_as_it_is)

    def loss(self) -> str | None:
        return self._side.loss()

    def tasks_done(self) -> list[TaskDone]:
        return [] if self._done is None else list(self._done.value.values())

    def threads(self) -> list[ProcessThreads]:
        return []  # There is no way to its tasks while they run.

    def end_run(self) -> None:
        if self._deployment is not None:
            unless_java_ended(self._side.context, self._deployment.destroy)
            self._deployment = None
        if self._has_slot:
            self._slot.give_back()
            self._has_slot = False

    def end_region(self) -> None:
        """It holds nothing after a run."""

    def run_copies(self, copies: Iterable[Copy]) -> list[tuple[StateHandle, ...]]:
        return self._side.run_copies(copies)

    def cancel(self) -> None:
        self._is_cancelled = True
        cancel_group(self._side.context, self._name)

    def close(self) -> None:
        self.end_run()


def _by_subtask(row: Row) -> tuple[int, Row]:
    return row.subtask, row


def _as_it_is(value: Any) -> Any:
    return value
