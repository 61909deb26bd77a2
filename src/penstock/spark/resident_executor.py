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
from penstock.common.exceptions import ConfigurationError, WorkersLostError
from penstock.datastream.connectors.spark.data_frame import DataFrameSource
from penstock.datastream.connectors.spark.data_frame_stream import StreamingDataFrameSource
from penstock.datastream.connectors.spark.sink import SparkSink
from penstock.graph.job_graph import JobGraph
from penstock.jobmaster.execution.slots import NoResourceAvailableError
from penstock.jobmaster.execution.stage_executor import EpochCancelledError, TakeOutput, TaskDone
from penstock.jobmaster.execution.worker_group import GroupSettings, WorkerGroup, WorkerLostError
from penstock.jobmaster.job_contents import values_in
from penstock.runtime.chunk import encode_in_driver
from penstock.runtime.local_backups import BackupSettings
from penstock.runtime.protocol import EpochCommand, JobDeployment
from penstock.runtime.rows import FAILURE, Row
from penstock.runtime.saved_state import StateHandle
from penstock.runtime.thread_dump import ProcessThreads
from penstock.spark.context_settings import context_settings
from penstock.spark.dependencies import runs_on_this_machine
from penstock.spark.resident_job import ResidentJob
from penstock.spark.spark_executor import SparkSide
from penstock.spark.task_slots import slot_ledger

_MEET_WITHIN_S = 60
_LOOK_S = 1.0
_SHRUNK_S = 5.0
"""How long fewer slots than taken are tolerated while workers start: an executor may come for one that was lost."""
_THREADS_WITHIN_S = 5.0


class _Regions:
    """The regions of a job. They share what slots there are, and their processes if there are too few."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: set[ResidentExecutor] = set()
        self._hosting: list[ResidentExecutor] = []
        """Those whose workers are Spark tasks, which can host the workers of others."""
        self._ended: set[ResidentExecutor] = set()
        """Those of them that have ended, and whose processes are kept for others."""
        self._homes: dict[ResidentExecutor, ResidentExecutor] = {}
        """By guest: in whose processes it lives."""

    def await_workers(self, region: ResidentExecutor) -> None:
        """The region has no workers, and needs some."""
        with self._lock:
            self._waiting.add(region)

    def waiting(self) -> int:
        """How many regions need workers and have none yet."""
        return max(1, len(self._waiting))

    def has_slots(self, region: ResidentExecutor) -> None:
        with self._lock:
            self._waiting.discard(region)
            self._homes.pop(region, None)
            self._hosting.append(region)

    def can_host(self) -> bool:
        return any(each.is_ready for each in list(self._hosting))

    def move_in(self, guest: ResidentExecutor) -> ResidentExecutor | None:
        """The region whose processes are to host this one; None if it is gone."""
        with self._lock:
            ready = [each for each in self._hosting if each.is_ready]
            home = max(ready, key=lambda each: each.workers, default=None)
            if home is not None:
                self._waiting.discard(guest)
                self._homes[guest] = home
            return home

    def end(self, region: ResidentExecutor) -> bool:
        """The region has ended. True if its workers can end; otherwise they do when the last of their guests has."""
        with self._lock:
            self._waiting.discard(region)
            if region in self._homes.values():
                self._ended.add(region)
                return False
            self._remove(region)
            return True

    def leave(self, region: ResidentExecutor) -> tuple[list[ResidentExecutor], ResidentExecutor | None]:
        """The region's workers end. Returns its guests, and its own host if that was kept only for this guest."""
        with self._lock:
            guests = [guest for guest, home in self._homes.items() if home is region]
            for guest in guests:
                del self._homes[guest]
            home = self._homes.pop(region, None)
            self._remove(region)
            if home in self._ended and home not in self._homes.values():
                self._remove(home)
                return guests, home
            return guests, None

    def _remove(self, region: ResidentExecutor) -> None:
        """No further region can move in."""
        self._hosting = [each for each in self._hosting if each is not region]
        self._ended.discard(region)
        self._waiting.discard(region)


class ResidentExecutor:
    """The workers of one region. They outlive a failure of user code, and are started again when one is lost."""

    def __init__(self, side: SparkSide, regions: _Regions | None = None) -> None:
        if regions is None:
            _check_encryption(side)
            _check_heartbeats(side)
        self._side = side
        self._regions = regions or _Regions()
        self._regions.await_workers(self)
        self._ledger = slot_ledger(side.context)
        self._group: WorkerGroup | None = None
        self._job: ResidentJob | None = None
        self._slots = 0
        self._hosts: tuple[str, ...] = ()
        """Where the workers of the last attempt were, by index."""
        self._failures: list[Row] = []
        self._is_cancelled = False
        self._ending = threading.Lock()

    @property
    def is_ready(self) -> bool:
        """True if all workers are there and none was lost."""
        group = self._group
        return group is not None and group.is_ready

    @property
    def workers(self) -> int:
        group = self._group
        return 0 if group is None else group.workers

    def executors(self) -> tuple[str, int]:
        return self._side.executors()

    def sibling(self) -> ResidentExecutor:
        return ResidentExecutor(self._side, self._regions)

    def deploy(self, deployment: JobDeployment, folder: Folder, on_loss: Callable[[], None]) -> None:
        if self._group is None or self._group.is_broken:
            self._end_workers()
            self._regions.await_workers(self)
            self._start_workers(deployment, on_loss)
        assert self._group is not None
        pickled = self._side.dependencies.around(encode_in_driver(deployment))
        with self._asking("the workers could not be sent what to run"):
            self._failures = [row for row in self._group.deploy(pickled, folder) if row.vertex == FAILURE]

    def show_output(self, take: TakeOutput) -> None:
        self._side.take_output = take

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

    def loss(self) -> str | None:
        return self._side.loss()

    def tasks_done(self) -> list[TaskDone]:
        return []  # Epochs are short.

    def threads(self) -> list[ProcessThreads]:
        group = self._group
        return [] if group is None else group.threads(_THREADS_WITHIN_S)

    def end_run(self) -> None:
        if self._group is not None and not self._group.release():
            self._end_workers(is_patient=False)  # Somebody is lost, or a function has not returned in time.
            self._regions.await_workers(self)  # So that the regions share the slots that are left.

    def end_region(self) -> None:
        if self._regions.end(self):
            self._end_workers(is_over=True)

    def run_copies(self, copies: Iterable[Copy]) -> list[tuple[StateHandle, ...]]:
        return self._side.run_copies(copies)

    def cancel(self) -> None:
        self._is_cancelled = True
        self._ledger.wake_up()
        if self._group is not None:
            self._group.cancel()

    def close(self) -> None:
        self._end_workers(is_over=True)

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        """Around requests to workers: a loss is reported as the job's failure, and a cancellation as such."""
        side = self._side
        try:
            yield
        except WorkerLostError as error:
            if not self._is_cancelled:
                message = f"job '{side.job_name}' on Spark: {what}: {error}"
                raise WorkersLostError(message, side.job_id, side.job_name) from error
        if self._is_cancelled:
            raise EpochCancelledError

    # --- workers ---------------------------------------------------------------------------------------------------

    def _start_workers(self, deployment: JobDeployment, on_loss: Callable[[], None]) -> None:
        side = self._side
        parallelism = max(vertex.parallelism for stage in deployment.stages() for vertex in stage)
        timeout_ms = side.config.get(keys.SLOT_TIMEOUT)
        host = self._take_slots(parallelism, timeout_ms)
        if self._is_cancelled:
            raise EpochCancelledError
        workers = self._slots if host is None else min(parallelism, host.workers)
        group = self._group = WorkerGroup(workers, _settings_of(side), on_loss, side.take_output)
        if self._is_cancelled:  # Meanwhile: `cancel` did not know the group.
            group.cancel()
        began = time.monotonic()
        with self._asking("the workers could not be started"):
            if host is None:
                name = f"{side.job_id}-{secrets.token_hex(4)}"
                description = f"{side.job_name}: {workers} workers"
                self._job = ResidentJob(side.context_for_workers, group, name, description, side.job_id)
            else:
                host.host(group.places())
            if not self._have_registered(group, began + timeout_ms / 1000) and not self._is_cancelled:
                raise NoResourceAvailableError(
                    f"job '{side.job_name}' could not acquire the slots it needs within "
                    f"{(time.monotonic() - began) * 1000:.0f} ms: required {workers}, available "
                    f"{group.registered()}; lower its parallelism, wait for other jobs on this Spark session to end, "
                    f"add executors, or raise slot.request.timeout",
                    side.job_id,
                    side.job_name,
                )
            if not self._is_cancelled:
                group.introduce(_MEET_WITHIN_S, self._hosts)
                self._hosts = group.hosts()

    def _have_registered(self, group: WorkerGroup, deadline: float) -> bool:
        """False if not all workers have called in time; raises if there is no longer room for them."""
        had_room = now = time.monotonic()
        while not group.wait_until_registered(min(_LOOK_S, max(0.0, deadline - now))):
            now = time.monotonic()
            if now >= deadline or self._is_cancelled:
                return False
            if not self._ledger.is_overdrawn():
                had_room = now
            elif now - had_room > _SHRUNK_S:
                raise WorkerLostError(f"executors were lost while {group.workers} workers were to start on them")
        return True

    def _take_slots(self, parallelism: int, timeout_ms: int) -> WorkerGroup | None:
        """Take slots. If there are none, but another region of the job has workers: the group that is to host this one.

        As in Flink, where the regions of a job share slots.
        """
        side, regions = self._side, self._regions
        while not self._is_cancelled:
            self._slots = self._ledger.take(
                parallelism,
                regions.waiting(),
                1 if _uses_data_frames(side.job_graph) else 0,
                timeout_ms,
                lambda: self._is_cancelled or regions.can_host(),
                side.job_name,
            )
            if self._slots:
                regions.has_slots(self)
                return None
            home = regions.move_in(self)  # None if it has ended meanwhile: then its slots are free.
            if home is not None and (group := home._group) is not None:
                return group
        return None

    def _end_workers(self, is_patient: bool = True, is_over: bool = False) -> None:
        with self._ending:
            guests, deserted = self._regions.leave(self)
            if self._group is not None:
                self._group.close(is_over)  # No further region can move in.
            for guest in guests:  # The process cannot end before they do.
                guest.lose_home()
            if self._job is not None:
                self._job.end(is_patient)
            elif self._group is not None:  # A guest: its host's process continues, unless a function does not return.
                self._group.hang_up()
            self._ledger.give_back(self._slots)
            self._job, self._group, self._slots = None, None, 0
        if deserted is not None:
            deserted._end_workers(is_over=True)

    def lose_home(self) -> None:
        group = self._group
        if group is not None:
            group.lose("the process that hosts it ends")


def _settings_of(side: SparkSide) -> GroupSettings:
    interval_ms, timeout_ms = side.config.get(keys.HEARTBEAT_INTERVAL), side.config.get(keys.HEARTBEAT_TIMEOUT)
    backups = BackupSettings.of(side.config, side.job_id)
    if runs_on_this_machine(side.context):
        return GroupSettings(interval_ms, timeout_ms, backups=backups)
    settings = context_settings(side.context)
    host = settings.get("spark.driver.host")
    return GroupSettings(
        interval_ms,
        timeout_ms,
        host,
        settings.get("spark.driver.bindAddress", host),
        side.config.get(keys.DRIVER_PORTS),
        side.config.get(keys.WORKER_PORTS),
        backups,
    )


_ENCRYPTION = (
    "spark.network.crypto.enabled",
    "spark.authenticate.enableSaslEncryption",
    "spark.ssl.rpc.enabled",
    "spark.io.encryption.enabled",
)


def _check_encryption(side: SparkSide) -> None:
    """Workers prove to each other that they belong together, but what they send is not encrypted."""
    settings = context_settings(side.context)
    wanted = [key for key in _ENCRYPTION if settings.get(key, "false").lower() == "true"]
    if wanted and not runs_on_this_machine(side.context):
        raise ConfigurationError(
            f"{wanted[0]} is true, but in streaming mode rows go from worker to worker without encryption; run the job "
            f"in batch mode (Spark's shuffle), encrypt the network below (WireGuard, IPsec), or set it to false"
        )


def _check_heartbeats(side: SparkSide) -> None:
    """Flink's rule: a worker whose heart beats too seldom is taken for dead."""
    interval_ms, timeout_ms = side.config.get(keys.HEARTBEAT_INTERVAL), side.config.get(keys.HEARTBEAT_TIMEOUT)
    if interval_ms <= 0 or timeout_ms < interval_ms:
        raise ConfigurationError(
            f"{keys.HEARTBEAT_INTERVAL.key} is {interval_ms} ms and {keys.HEARTBEAT_TIMEOUT.key} {timeout_ms} ms, but "
            f"the interval must be above 0, and the timeout no shorter than it; make it several intervals"
        )


def _uses_data_frames(graph: JobGraph) -> bool:
    """True if the driver has Spark jobs of its own to run beside the workers."""
    own_jobs = (DataFrameSource, StreamingDataFrameSource, SparkSink)
    operators = [node.operator for vertex in graph.vertices for node in vertex.nodes]
    return any(isinstance(value, own_jobs) for operator in operators for value in values_in(operator))
