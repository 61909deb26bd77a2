"""One attempt of a region: the tasks that belong to it, and the orders they get."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from penstock.checkpoint.coordinator import CheckpointCoordinator
from penstock.checkpoint.folders import Folder
from penstock.common import config_keys as keys
from penstock.common.moment import Moment
from penstock.graph.regions import Region
from penstock.jobmaster.execution.stage_executor import EpochResult, StageExecutor, run_whole_epoch
from penstock.jobmaster.job_contents import without_collections
from penstock.jobmaster.region.job import Job
from penstock.runtime.protocol import EpochCommand, JobDeployment
from penstock.runtime.rows import Row
from penstock.runtime.state.backends import backend_of
from penstock.runtime.task_host import TaskHost
from penstock.runtime.task_output import levels_here

REPORT_MS = 200
"""How often all subtasks report their metrics."""


def deployment_of(job: Job, region: Region) -> JobDeployment:
    """What the processes of an attempt need to know to build its tasks."""
    parameters = job.config.get(keys.GLOBAL_JOB_PARAMETERS)
    return JobDeployment(
        job.id_text,
        without_collections(job.job_graph),
        job.restarts,
        parameters or {},
        state_backend=backend_of(job.config, tracks_changes=job.options.interval_ms is not None),
        region=region,
        run_id=secrets.token_hex(8),
        latency=job.latency,
        compresses_snapshots=job.config.get(keys.SNAPSHOT_COMPRESSION),
        log_levels=levels_here(),
    )


class RegionAttempt:
    def __init__(
        self, executor: StageExecutor, deployment: JobDeployment, folder: Folder, coordinator: CheckpointCoordinator
    ) -> None:
        self._executor = executor
        self._deployment = deployment
        self._folder = folder
        self._coordinator = coordinator
        self._host = TaskHost(deployment, folder)
        """Of the tasks that live in the driver."""
        self._origin = self._notified_checkpoint = coordinator.completed_id
        """The checkpoint that it began with; 0 for none."""
        self.last_epoch = 0
        """The last one that all tasks have done; 0 for none."""
        self._reported_tick_ms: int | None = None
        """When all subtasks last reported their metrics."""
        self._owes_report = False
        """True if an epoch has run since then."""

    def deploy(self, on_loss: Callable[[], None]) -> None:
        self._executor.deploy(self._deployment, self._folder, on_loss=on_loss)

    @property
    def is_unopened(self) -> bool:
        """True if the tasks have not run: their functions are not open, and timers in their state are not known."""
        return self.last_epoch == 0

    @property
    def has_news(self) -> bool:
        """True if a checkpoint has completed or failed of which the tasks were not notified."""
        return self._coordinator.completed_id > self._notified_checkpoint or bool(self._coordinator.aborted)

    def report_wait_ms(self, now: Moment) -> int | None:
        """How long until subtasks must report their metrics, 0 for now; None if no epoch has run since they did."""
        if not self._owes_report or self._reported_tick_ms is None:
            return None
        # Most often an epoch runs at that time anyway, and brings the reports.
        return max(0, self._reported_tick_ms + 2 * REPORT_MS - now.tick_ms)

    def run_epoch(
        self,
        epoch: int,
        now: Moment,
        source_rows: list[Row],
        sampled: frozenset[int],
        *,
        is_checkpoint: bool = False,
        is_last: bool = False,
        processes_nothing: bool = False,
    ) -> EpochResult:
        """`sampled`: vertices whose stacks are asked for. `processes_nothing`: see EpochCommand."""
        aborted, self._coordinator.aborted = self._coordinator.aborted, []
        completed = self._coordinator.completed_id
        is_due = self._reported_tick_ms is None or now.tick_ms - self._reported_tick_ms >= REPORT_MS
        command = EpochCommand(
            epoch=epoch,
            orders=self._coordinator.orders() if is_checkpoint or processes_nothing or not self.last_epoch else {},
            now_ms=now.wall_ms,
            previous_epoch=self.last_epoch,
            restorable_epoch=completed,
            is_checkpoint=is_checkpoint,
            # Tasks are not notified of the checkpoint that they were restored from, as in Flink.
            completed_checkpoint=completed if completed > self._origin else 0,
            aborted_checkpoints=tuple(aborted),
            is_last=is_last,
            processes_nothing=processes_nothing,
            sampled_vertices=sampled,
            is_report=is_due,
        )
        result = run_whole_epoch(self._executor, self._host, self._deployment, command, source_rows)
        if not result.failures:
            self._notified_checkpoint, self.last_epoch = completed, epoch
            self._owes_report = command.is_plain
            if not command.is_plain:
                self._reported_tick_ms = now.tick_ms
        return result

    def end(self) -> None:
        try:
            self._executor.end_run()
        finally:
            self._host.close()
