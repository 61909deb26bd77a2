"""Streaming mode: the stages of a region in workers that stay, each of them a Spark task."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from penstock.checkpoint.folders import Folder
from penstock.checkpoint.savepoints import Copy
from penstock.common import config_keys as keys
from penstock.common.exceptions import ConfigurationError, JobExecutionError
from penstock.datastream.connectors.data_frame import DataFrameSource
from penstock.datastream.connectors.data_frame_stream import StreamingDataFrameSource
from penstock.datastream.connectors.spark_sink import SparkSink
from penstock.graph.job_graph import JobGraph
from penstock.jobmaster.job_contents import values_in
from penstock.jobmaster.slots import NoResourceAvailableError
from penstock.jobmaster.stage_executor import EpochCancelledError
from penstock.jobmaster.worker_group import GroupSettings, WorkerGroup, WorkerLostError
from penstock.runtime.chunk import encode_in_driver
from penstock.runtime.protocol import EpochCommand
from penstock.runtime.rows import FAILURE, Row
from penstock.runtime.saved_state import StateHandle
from penstock.runtime.stream_task import JobDeployment
from penstock.spark.dependencies import runs_on_this_machine
from penstock.spark.resident_job import ResidentJob
from penstock.spark.spark_executor import SparkSide
from penstock.spark.task_slots import slot_ledger

_MEET_WITHIN_S = 60


class _Regions:
    """How many regions of a job have no workers yet: they share what slots there are."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.waiting = 1


class ResidentExecutor:
    """The workers of one region. They outlive a failure of user code, and are started anew when one is lost."""

    def __init__(self, side: SparkSide, regions: _Regions | None = None) -> None:
        if regions is None:
            _check_encryption(side)
        self._side = side
        self._regions = regions or _Regions()
        self._ledger = slot_ledger(side.context)
        self._group: WorkerGroup | None = None
        self._job: ResidentJob | None = None
        self._slots = 0
        self._failures: list[Row] = []
        self._is_cancelled = False

    def executors(self) -> tuple[str, int]:
        return self._side.executors()

    def sibling(self) -> ResidentExecutor:
        self._regions.waiting += 1
        return ResidentExecutor(self._side, self._regions)

    def deploy(self, deployment: JobDeployment, folder: Folder, on_loss: Callable[[], None]) -> None:
        if self._group is None or self._group.is_broken:
            self._end_workers()
            self._start_workers(deployment, on_loss)
        assert self._group is not None
        pickled = self._side.dependencies.around(encode_in_driver(deployment))
        with self._asking("the workers could not be told what to run"):
            self._failures = [row for row in self._group.deploy(pickled, folder) if row.vertex == FAILURE]

    def check(self) -> None:
        with self._asking("a worker was lost between two epochs"):
            if self._group is not None:
                self._group.check()

    def run_epoch(self, command: EpochCommand, source_rows: list[Row]) -> list[Row]:
        assert self._group is not None
        if self._failures:  # The job could not be loaded.
            return self._failures
        with self._asking(f"epoch {command.epoch} failed"):
            return self._group.run_epoch(command, source_rows)

    def end_run(self) -> None:
        if self._group is not None and not self._group.release():
            self._end_workers(is_patient=False)  # Somebody is lost, or a function has not returned in time.

    def run_copies(self, copies: Iterable[Copy]) -> list[tuple[StateHandle, ...]]:
        return self._side.run_copies(copies)

    def cancel(self) -> None:
        self._is_cancelled = True
        self._ledger.wake_up()
        if self._group is not None:
            self._group.cancel()

    def close(self) -> None:
        self._end_workers()

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        """Around what workers are asked: a loss is told as the job's failure, and a cancellation as such."""
        side = self._side
        try:
            yield
        except WorkerLostError as error:
            if not self._is_cancelled:
                message = f"job '{side.job_name}' on Spark: {what}: {error}"
                raise JobExecutionError(message, side.job_id, side.job_name) from error
        if self._is_cancelled:
            raise EpochCancelledError

    # --- workers ---------------------------------------------------------------------------------------------------

    def _start_workers(self, deployment: JobDeployment, on_loss: Callable[[], None]) -> None:
        side = self._side
        parallelism = max(vertex.parallelism for stage in deployment.stages() for vertex in stage)
        timeout_ms = side.config.get(keys.SLOT_TIMEOUT)
        with self._regions.lock:
            self._slots = self._ledger.take(
                parallelism,
                self._regions.waiting,
                1 if _uses_data_frames(side.job_graph) else 0,
                timeout_ms,
                lambda: self._is_cancelled,
                side.job_name,
            )
            self._regions.waiting = max(1, self._regions.waiting - 1)
        if self._is_cancelled:
            raise EpochCancelledError
        group = WorkerGroup(self._slots, _settings_of(side), on_loss)
        self._group = group
        name = f"{side.job_id}-{secrets.token_hex(4)}"
        self._job = ResidentJob(side.context, group, name, f"{side.job_name}: {self._slots} workers", side.job_id)
        began = time.monotonic()
        with self._asking("the workers could not be started"):
            if not group.wait_until_registered(timeout_ms / 1000) and not self._is_cancelled:
                raise NoResourceAvailableError(
                    f"job '{side.job_name}' could not acquire the slots it needs within "
                    f"{(time.monotonic() - began) * 1000:.0f} ms: required {self._slots}, available "
                    f"{group.registered()}; lower its parallelism, wait for other jobs on this Spark session to end, "
                    f"add executors, or raise slot.request.timeout",
                    side.job_id,
                    side.job_name,
                )
            if not self._is_cancelled:
                group.introduce(_MEET_WITHIN_S)

    def _end_workers(self, is_patient: bool = True) -> None:
        if self._job is not None:
            self._job.end(is_patient)
        self._ledger.give_back(self._slots)
        self._job, self._group, self._slots = None, None, 0


def _settings_of(side: SparkSide) -> GroupSettings:
    interval_ms, timeout_ms = side.config.get(keys.HEARTBEAT_INTERVAL), side.config.get(keys.HEARTBEAT_TIMEOUT)
    if runs_on_this_machine(side.context):
        return GroupSettings(interval_ms, timeout_ms)
    conf = side.context.getConf()
    host = conf.get("spark.driver.host")
    return GroupSettings(interval_ms, timeout_ms, host, conf.get("spark.driver.bindAddress", host))


_ENCRYPTION = (
    "spark.network.crypto.enabled",
    "spark.authenticate.enableSaslEncryption",
    "spark.ssl.rpc.enabled",
    "spark.io.encryption.enabled",
)


def _check_encryption(side: SparkSide) -> None:
    """Workers prove to each other that they belong together, but what they send is not encrypted."""
    conf = side.context.getConf()
    wanted = [key for key in _ENCRYPTION if conf.get(key, "false").lower() == "true"]
    if wanted and not runs_on_this_machine(side.context):
        raise ConfigurationError(
            f"{wanted[0]} is true, but in streaming mode rows go from worker to worker without encryption; run the job "
            f"in batch mode (Spark's shuffle), encrypt the network below (WireGuard, IPsec), or set it to false"
        )


def _uses_data_frames(graph: JobGraph) -> bool:
    """True if the driver has Spark jobs of its own to run beside the workers."""
    own_jobs = (DataFrameSource, StreamingDataFrameSource, SparkSink)
    operators = [node.operator for vertex in graph.vertices for node in vertex.nodes]
    return any(isinstance(value, own_jobs) for operator in operators for value in values_in(operator))
