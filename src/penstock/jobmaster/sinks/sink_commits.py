"""Commits what the sinks' writers prepared, once its checkpoint is complete."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from functools import partial
from typing import Any

from penstock.common.abandoned_calls import check_wanted
from penstock.common.daemon_pool import DaemonPool
from penstock.common.exceptions import JobExecutionError
from penstock.datastream.connectors.sink_v2 import (
    CommitRequest,
    Committer,
    CommitterInitContext,
    JobInfo,
)
from penstock.graph.descriptions import SinkWriterDescription
from penstock.graph.job_graph import JobGraph
from penstock.graph.regions import Region
from penstock.graph.stream_graph import StreamNode
from penstock.jobmaster.job_contents import commits_with_checkpoints
from penstock.jobmaster.metrics.job_metrics import JobMetrics
from penstock.metrics import MetricGroup
from penstock.runtime.metric_reports import CounterReport, GaugeReport, MetricName, MetricReport

MOST_RETRIES = 10
"""Flink's default of sink.committer.retries."""
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0
_MOST_LANES = 8

_log = logging.getLogger(__name__)


class _Answer(Enum):
    COMMITTED = auto()
    RETRY = auto()
    GIVEN_UP = auto()
    FAILED = auto()


class PendingRequest(CommitRequest[Any]):
    """One committable on its way. It counts as committed unless the committer says otherwise."""

    def __init__(self, committable: Any) -> None:
        self._committable = committable
        self._retries = 0
        self.answer = _Answer.COMMITTED
        self.reason: BaseException | None = None

    def get_committable(self) -> Any:
        return self._committable

    def get_number_of_retries(self) -> int:
        return self._retries

    def signal_failed_with_known_reason(self, reason: BaseException) -> None:
        self.answer, self.reason = _Answer.GIVEN_UP, reason

    def signal_failed_with_unknown_reason(self, reason: BaseException) -> None:
        self.answer, self.reason = _Answer.FAILED, reason

    def retry_later(self) -> None:
        self.answer = _Answer.RETRY

    def update_and_retry_later(self, committable: Any) -> None:
        self._committable = committable
        self.retry_later()

    def signal_already_committed(self) -> None:
        self.answer = _Answer.COMMITTED

    def try_again(self) -> None:
        self._retries += 1
        self.answer = _Answer.COMMITTED


class _InitContext(CommitterInitContext):
    def __init__(self, job: JobInfo, sink_name: str) -> None:
        self._job = job
        self._metrics = MetricGroup((sink_name,))

    def get_job_info(self) -> JobInfo:
        return self._job

    def metric_group(self) -> MetricGroup:
        return self._metrics


class SinkCommits:
    """The committers of the sinks of a job, or of one region of it, made when they are first needed.

    `commit` may be called with the same committables again, as after a restart: committers take that. Several sinks
    commit side by side, each always in the same thread: what a committer holds may belong to its thread.
    """

    def __init__(
        self,
        job_graph: JobGraph,
        job_id: str = "",
        pause: Callable[[float], object] = time.sleep,
        region: Region | None = None,
        metrics: JobMetrics | None = None,
    ) -> None:
        vertices = [vertex for vertex in job_graph.vertices if region is None or vertex.id in region]
        sinks = [node for vertex in vertices for node in vertex.nodes if commits_with_checkpoints(node.operator)]
        self._sinks = {node.operator_id: node for node in sinks if isinstance(node.operator, SinkWriterDescription)}
        self._job = JobInfo(job_id, job_graph.job_name)
        self._pause = pause
        self._metrics = metrics or JobMetrics()
        self._committers: dict[str, Committer[Any]] = {}
        self._lanes: dict[int, DaemonPool] = {}
        """Threads, by the sink's place modulo their number. A sink that is alone needs none."""
        self.has_committers = bool(sinks)
        """True if what some sink writes becomes visible only by a checkpoint, even if its subtasks commit it."""

    def commit(self, committables: Mapping[str, list[Any]]) -> None:
        """Commit, by operator id; raises JobExecutionError with the sink's name if that fails for good."""
        due = [
            (self._sink(operator_id, len(prepared)), [PendingRequest(each) for each in prepared])
            for operator_id, prepared in committables.items()
            if prepared
        ]
        self._side_by_side([(sink.operator_id, partial(self._commit, sink, requests)) for sink, requests in due])

    def close(self) -> None:
        """Close all committers, even if one of them fails; the first failure is raised."""
        closing = [(operator_id, partial(self._close, operator_id)) for operator_id in list(self._committers)]
        try:
            self._side_by_side(closing)
        finally:
            lanes, self._lanes = self._lanes, {}
            for lane in lanes.values():
                lane.shutdown()

    def _close(self, operator_id: str) -> None:
        try:
            self._committers.pop(operator_id).close()
        except Exception as failure:
            message = f"its committer cannot be closed: {_described(failure)}"
            raise _failed(self._sinks[operator_id], message) from failure

    def _side_by_side(self, actions: Iterable[tuple[str, Callable[[], None]]]) -> None:
        """Carry out an action for each of these sinks, even if one of them fails; the first failure is raised."""
        if len(self._sinks) == 1:
            for _, action in actions:
                action()
            return
        done = [self._lane(operator_id).submit(action) for operator_id, action in actions]
        failures = [failure for each in done if (failure := each.exception()) is not None]
        for other in failures[1:]:
            _log.warning("failed as well: %s", other)
        if failures:
            raise failures[0]

    def _lane(self, operator_id: str) -> DaemonPool:
        number = list(self._sinks).index(operator_id) % _MOST_LANES
        if number not in self._lanes:
            self._lanes[number] = DaemonPool(1, "commit")
        return self._lanes[number]

    def _sink(self, operator_id: str, prepared: int) -> StreamNode:
        sink = self._sinks.get(operator_id)
        if sink is None:
            raise JobExecutionError(
                f"the checkpoint holds {prepared} committables of operator {operator_id}, but the job has no such "
                f"committing sink; run the program that took the checkpoint, with the same uid() of the sink"
            )
        return sink

    def _commit(self, sink: StreamNode, requests: list[PendingRequest]) -> None:
        self._count(sink, len(requests), totalCommittables=len(requests))
        for attempt in range(MOST_RETRIES + 1):
            check_wanted()
            self._attempt(sink, requests)
            committed = sum(request.answer is _Answer.COMMITTED for request in requests)
            given_up = sum(request.answer is _Answer.GIVEN_UP for request in requests)
            requests = [request for request in requests if request.answer is _Answer.RETRY]
            self._count(
                sink,
                len(requests),
                successfulCommittables=committed,
                failedCommittables=given_up,
                retriedCommittables=len(requests),
            )
            if not requests:
                return
            if attempt < MOST_RETRIES:
                self._pause(min(FIRST_PAUSE_S * 2**attempt, LONGEST_PAUSE_S))
        raise _failed(
            sink,
            f"{len(requests)} committables, the first of them {requests[0].get_committable()!r}, could not be "
            f"committed in {MOST_RETRIES + 1} attempts: the committer asked for another one each time",
        )

    def _count(self, sink: StreamNode, pending: int, **counts: int) -> None:
        """The committer of a sink is one for all its subtasks: it counts as the first."""
        reports: dict[MetricName, MetricReport] = {name: CounterReport(count) for name, count in counts.items()}
        self._metrics.add(sink.operator_id, 0, {**reports, "pendingCommittables": GaugeReport(pending)})

    def _attempt(self, sink: StreamNode, requests: list[PendingRequest]) -> None:
        for request in requests:
            if request.answer is _Answer.RETRY:
                request.try_again()
        try:
            self._committer(sink).commit(list(requests))
        except Exception as failure:
            raise _failed(sink, f"commit() raised {_described(failure)}") from failure
        _check(sink, requests)

    def _committer(self, sink: StreamNode) -> Committer[Any]:
        committer = self._committers.get(sink.operator_id)
        if committer is None:
            assert isinstance(sink.operator, SinkWriterDescription)
            committer = sink.operator.sink.create_committer(_InitContext(self._job, sink.name))
            self._committers[sink.operator_id] = committer
        return committer


def _check(sink: StreamNode, requests: Iterable[PendingRequest]) -> None:
    """Log what was given up, then raise for what failed."""
    failed = None
    for request in requests:
        if request.answer is _Answer.GIVEN_UP:
            _log.error("sink '%s': gave up %r: %s", sink.name, request.get_committable(), request.reason)
        elif request.answer is _Answer.FAILED:
            failed = failed or request
    if failed is not None:
        assert failed.reason is not None
        message = f"{failed.get_committable()!r} could not be committed: {_described(failed.reason)}"
        raise _failed(sink, message) from failed.reason


def _failed(sink: StreamNode, what: str) -> JobExecutionError:
    return JobExecutionError(f"sink '{sink.name}': {what}")


def _described(failure: BaseException) -> str:
    return f"{type(failure).__name__}: {failure}"
