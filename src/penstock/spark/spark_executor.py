"""Runs an epoch as one Spark job: a Spark stage for each stage of the job, with Spark's shuffle in between.

Plain RDDs of chunks, not DataFrames: there is nothing in a chunk for Catalyst to see, and planning a DataFrame anew for
every epoch costs more than running a small one (see docs/architecture.md for the figures).
"""

from __future__ import annotations

import copy
import logging
import re
import secrets
import threading
from collections.abc import Iterable
from typing import Any

from pyspark import RDD

from penstock.checkpoint.folders import Folder
from penstock.checkpoint.savepoints import Copy
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError, JobExecutionError
from penstock.datastream.dependencies import JobDependencies
from penstock.graph.job_graph import JobVertex
from penstock.jobmaster.stage_executor import EpochCancelledError
from penstock.runtime.chunk import encode_in_driver
from penstock.runtime.rows import Row
from penstock.runtime.saved_state import StateHandle
from penstock.runtime.stream_task import JobDeployment
from penstock.runtime.task_host import EpochCommand
from penstock.spark.dependencies import runs_on_this_machine, ship
from penstock.spark.epoch_job import BroadcastReference, EpochJobBuilder
from penstock.spark.session import check_working_folder_is_shared, get_context
from penstock.spark.slot_process import SlotRequest
from penstock.spark.spark_settings import STAGE_ATTEMPTS
from penstock.spark.stage_function import SourceRows, StageFunction, TaskFunction, by_slot

_log = logging.getLogger(__name__)
_RAISED = re.compile(r"[\w.]+(Error|Exception|Interrupt): ")

_LARGE_PARTS = 256 * 1024


class SparkExecutor:
    """The stages of one job on a Spark session."""

    def __init__(
        self, job_id: str, job_name: str, config: Configuration, dependencies: JobDependencies, spark: Any
    ) -> None:
        self._job_id = job_id
        self._job_name = job_name
        self._context = get_context(config, dependencies.jars) if spark is None else spark.sparkContext
        check_working_folder_is_shared(self._context, config)
        _check_no_speculation(self._context)
        _warn_of_repeated_stages(self._context)
        # On one machine a slot has one process. Elsewhere Spark may run a partition on any executor, each epoch anew.
        self.keeps_tasks_in_place: bool = str(self._context.master).startswith("local")
        self._folder: Folder | None = None
        self._deployment: Any = None
        self._deployment_id = ""
        self._stages: list[list[JobVertex]] = []
        self._widths: list[int] = []
        self._reference: BroadcastReference | None = None
        self._builder: EpochJobBuilder | None = None
        self._threads = threading.local()
        self._is_cancelled = False
        self._dependencies = ship(self._context, dependencies, config)

    def executors(self) -> tuple[str, int]:
        known = int(self._context._jsc.sc().getExecutorMemoryStatus().size())  # The driver is one of them.
        return str(self._context.applicationId), max(1, known - 1)

    def sibling(self) -> SparkExecutor:
        other = copy.copy(self)
        other._deployment = None
        return other

    def deploy(self, deployment: JobDeployment, folder: Folder) -> None:
        self._release()
        self._folder = folder
        self._deployment = self._context.broadcast(self._dependencies.around(encode_in_driver(deployment)))
        self._deployment_id = secrets.token_hex(8)
        self._stages = deployment.stages()
        self._widths = [max(vertex.parallelism for vertex in stage) for stage in self._stages]
        self._reference = BroadcastReference(self._deployment)
        self._builder = EpochJobBuilder(self._context, self._widths[0], [self._deployment])

    def run_epoch(self, command: EpochCommand, source_rows: list[Row]) -> list[Row]:
        self._prepare_thread()
        self._context.setJobGroup(self._job_id, f"{self._job_name}: epoch {command.epoch}", interruptOnCancel=True)
        parts, broadcasts = self._handed_out(source_rows)
        try:
            rows: list[Row] = self._job(command, parts, broadcasts).collect()
        except Exception as error:
            if self._is_cancelled:
                raise EpochCancelledError from None
            raise JobExecutionError(
                f"epoch {command.epoch} of job '{self._job_name}' failed on Spark: {_reason(error)}",
                self._job_id,
                self._job_name,
            ) from error
        finally:
            for broadcast in broadcasts:
                broadcast.destroy()
        if self._is_cancelled:
            raise EpochCancelledError
        return rows

    def _prepare_thread(self) -> None:
        """With fair scheduling (a job manager's session) no job waits behind another one's tasks."""
        if not hasattr(self._threads, "is_prepared"):
            self._context.setLocalProperty("spark.scheduler.pool", self._job_id)
            self._threads.is_prepared = True

    def _handed_out(self, source_rows: list[Row]) -> tuple[SourceRows, list[Any]]:
        """What sources read, and the broadcasts that hold it. Small parts go along with the function."""
        parts = by_slot(source_rows, self._widths[0])
        if sum(len(row.chunk) for row in source_rows) < _LARGE_PARTS:
            return SourceRows(parts), []
        broadcast = self._context.broadcast(parts)
        return SourceRows((), BroadcastReference(broadcast)), [broadcast]

    def _job(self, command: EpochCommand, source_rows: SourceRows, broadcasts: list[Any]) -> RDD[Row]:
        assert self._builder is not None
        functions: list[TaskFunction] = []
        stages: list[StageFunction] = []
        for stage, (width, next_width) in enumerate(zip(self._widths, [*self._widths[1:], None], strict=True)):
            stages.append(self._function(command, stage))
            if (width, next_width) != (1, 1):  # Between two stages of one slot there is nothing to exchange.
                functions.append(TaskFunction(tuple(stages), next_width, None if functions else source_rows))
                stages = []
        return self._builder.build(functions, broadcasts)

    def _function(self, command: EpochCommand, stage: int) -> StageFunction:
        assert self._folder is not None
        request = SlotRequest(stage, 0, self._deployment_id, self._folder, command)
        return StageFunction(request, self._reference, frozenset(vertex.id for vertex in self._stages[stage]))

    def run_copies(self, copies: Iterable[Copy]) -> list[tuple[StateHandle, ...]]:
        listed = list(copies)
        self._context.setJobGroup(f"{self._job_id}-savepoint", f"{self._job_name}: savepoint")
        written: list[tuple[StateHandle, ...]] = self._context.parallelize(listed, len(listed)).map(_call).collect()
        return written

    def cancel(self) -> None:
        self._is_cancelled = True
        # Future jobs too: an epoch may be on its way to Spark at this moment.
        self._context._jsc.sc().cancelJobGroupAndFutureJobs(self._job_id)

    def close(self) -> None:
        self._release()

    def _release(self) -> None:
        if self._deployment is not None:
            self._deployment.destroy()
            self._deployment = None


def _call(copy: Copy) -> tuple[StateHandle, ...]:
    return copy()


def _check_no_speculation(context: Any) -> None:
    if context.getConf().get("spark.speculation", "false").lower() == "true":
        raise ConfigurationError(
            "spark.speculation is true, but a stateful task cannot run twice at the same time; set it to false"
        )


def _warn_of_repeated_stages(context: Any) -> None:
    """In a session that somebody else made. On one machine nothing is lost but with all."""
    attempts = context.getConf().get(STAGE_ATTEMPTS, "4")
    if not runs_on_this_machine(context) and int(attempts) > 1:
        _log.warning(
            "%s is %s: if an executor is lost in the middle of an epoch, Spark may repeat a part of it, and functions "
            "that go by the clock or by chance may then be counted twice or not at all; set it to 1",
            STAGE_ATTEMPTS,
            attempts,
        )


def _reason(error: Exception) -> str:
    """The line of Spark's long message that tells what happened."""
    java = getattr(error, "java_exception", None)
    text = str(java.getMessage() if java is not None else error).strip()
    lines = [line for line in text.splitlines() if line.strip()] or [type(error).__name__]
    # What a Python worker raised ends with the exception itself; Java's messages begin with what matters.
    raised = [line for line in lines if _RAISED.match(line)]
    return raised[-1].strip() if raised else lines[0]
