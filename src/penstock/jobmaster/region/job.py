"""The job as one of its regions sees it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from penstock.checkpoint.options import CheckpointOptions
from penstock.checkpoint.restoring import RestoredJob
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ClusterLostError, LeadershipLostError
from penstock.graph.execution_graph import ExecutionGraph
from penstock.graph.job_graph import JobGraph
from penstock.graph.regions import Region
from penstock.jobmaster.epoch_history import EpochReport
from penstock.jobmaster.metrics.job_metrics import JobMetrics
from penstock.jobmaster.savepoint_requests import Request, SavepointRequest
from penstock.jobmaster.sinks.job_output import JobOutput
from penstock.jobmaster.sources.watermark_alignment import AlignmentGroups
from penstock.runtime.latency import LatencyTracking
from penstock.runtime.protocol import TaskAck


class Job(Protocol):
    """What a region needs to know of the job it belongs to, and where it reports what happened."""

    job_graph: JobGraph
    execution_graph: ExecutionGraph
    options: CheckpointOptions
    output: JobOutput
    restored: RestoredJob | None
    config: Configuration
    restarts: int
    alignment_groups: AlignmentGroups
    latency: LatencyTracking | None
    metrics: JobMetrics

    @property
    def name(self) -> str: ...

    @property
    def id_text(self) -> str: ...

    @property
    def is_cancelled(self) -> bool: ...

    def suspend(self, reason: LeadershipLostError | ClusterLostError) -> None:
        """Another process leads, or nothing can run here: nothing of the job may continue in this process."""

    def wait_before_restart(self, failure: Exception, region: Region, is_alone: bool = False) -> None:
        """Decide about a failure: wait until the region may start again; raises if the job is to fail.

        `is_alone`: the region only tries again what has failed, which is no reason for others to start again.
        """

    def acknowledged(self, acks: Sequence[TaskAck]) -> None:
        """What subtasks report on an epoch that is complete."""

    def checkpoint_completed(self, region: Region, requests: Iterable[Request], moves_on: bool) -> None:
        """The region has a new checkpoint, which these requests have asked for.

        `moves_on`: it has read something since the one before.
        """

    def checkpoint_proposed(self, region: Region, request: SavepointRequest) -> None:
        """The region has done its part of a savepoint, and makes it its checkpoint when that is written."""

    def ended_before(self, region: Region, request: Request) -> None:
        """The region had ended when it was asked: its last part of a checkpoint is its part of the answer."""

    def epoch_completed(self, report: EpochReport) -> None:
        """The region has done an epoch, whose acknowledgements were reported before."""

    def sampled_vertices(self) -> frozenset[int]:
        """Those whose stacks somebody wants to see."""
