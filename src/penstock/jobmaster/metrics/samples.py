"""The values of all metrics at this moment, with Flink's names, scopes and variables.

The REST API and the reporters give them, each in its own form. Their names are listed in the catalogue.
"""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.common.clocks import wall_clock_ms
from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.common.job_status import JobStatus
from penstock.graph.descriptions import SourceDescription
from penstock.graph.execution_graph import Execution, ExecutionJobVertex
from penstock.graph.stream_graph import StreamNode
from penstock.jobmaster.dispatcher import Dispatcher
from penstock.jobmaster.epoch_history import RECENT_MS, Bucket, Total, Totals
from penstock.jobmaster.job_master import JobMaster
from penstock.jobmaster.metrics.catalogue import DEFINED, Kind, Scope
from penstock.jobmaster.metrics.job_metrics import values_of
from penstock.runtime.metric_reports import (
    OUTPUT_WATERMARK,
    CounterReport,
    DistributionReport,
    GaugeReport,
    HistogramReport,
    LabelledName,
    MeterReport,
    MetricName,
    MetricReport,
)

BACKPRESSURED_FROM = 0.1
"""Flink's bound: the share of its time that a task must be held up to count as backpressured."""


@dataclass(frozen=True)
class Sample:
    """The value of one metric at this moment."""

    scope: Scope
    name: str
    """Within its scope; the values of the variables of users' groups are a part of it."""
    logical: str
    """The name without those values."""
    kind: Kind
    value: Any
    """A number, a text, or a HistogramReport."""
    variables: Mapping[str, str]


def of_process(dispatcher: Dispatcher) -> Iterator[Sample]:
    """The metrics of the process, and of all its running jobs."""
    jobs = dispatcher.running()
    values: dict[str, Any] = {"numRunningJobs": len(jobs)}
    hosts = dispatcher.hosts()
    if hosts is not None:
        values["numRegisteredTaskManagers"] = len(hosts)
        values["taskSlotsTotal"] = sum(host["slotsNumber"] for host in hosts)
        values["taskSlotsAvailable"] = sum(host["freeSlots"] for host in hosts)
    values["Status.JVM.CPU.Time"] = time.process_time_ns()
    values["Status.JVM.Threads.Count"] = threading.active_count()
    resident = _resident_bytes()
    if resident is not None:
        values["Status.JVM.Memory.Heap.Used"] = resident
    yield from _defined(Scope.PROCESS, values, {"host": platform.node()})
    for job in jobs:
        yield from of_job(job.master)


def _resident_bytes() -> int | None:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # Not on Linux
        return None


def _defined(scope: Scope, values: Mapping[str, Any], variables: Mapping[str, str]) -> Iterator[Sample]:
    for name, value in values.items():
        if value is not None:
            yield Sample(scope, name, name, DEFINED[scope, name].kind, value, variables)


def of_job(master: JobMaster) -> Iterator[Sample]:
    """All metrics of a job: its own, and those of its tasks and operators."""
    yield from of_job_alone(master)
    for vertex in master.execution_graph.job_vertices:
        yield from of_vertex(master, vertex)


def of_job_alone(master: JobMaster) -> Iterator[Sample]:
    """The samples of a job as a whole, latencies included."""
    now_ms = wall_clock_ms()
    values = {**_times(master, now_ms), **_checkpoints(master), **_epochs(master, now_ms)}
    yield from _defined(Scope.JOB, values, _job_variables(master))
    for vertex in master.execution_graph.job_vertices:
        for node in vertex.job_vertex.nodes:
            yield from _latencies(master, node)


def _job_variables(master: JobMaster) -> dict[str, str]:
    return {"host": platform.node(), "job_id": master.id_text, "job_name": master.name}


def _times(master: JobMaster, now_ms: int) -> dict[str, int]:
    status, entered = master.status, master.timestamps

    def since(wanted: JobStatus) -> int:
        return max(0, now_ms - entered[wanted.name]) if status is wanted else 0

    has_ended = status.is_terminal_state()
    return {
        "uptime": -1 if has_ended else since(JobStatus.RUNNING),
        "downtime": -1 if has_ended else since(JobStatus.RESTARTING),
        "runningTime": since(JobStatus.RUNNING),
        "restartingTime": since(JobStatus.RESTARTING),
        "numRestarts": master.restarts,
    }


def _checkpoints(master: JobMaster) -> dict[str, Any]:
    counts = master.checkpoints.counts()
    values: dict[str, Any] = {
        "totalNumberOfCheckpoints": counts["total"],
        "numberOfInProgressCheckpoints": counts["in_progress"],
        "numberOfCompletedCheckpoints": counts["completed"],
        "numberOfFailedCheckpoints": counts["failed"],
    }
    latest, restored = master.checkpoints.latest_completed, master.checkpoints.restored
    if latest is not None:
        values["lastCompletedCheckpointId"] = latest.id
        values["lastCheckpointDuration"] = latest.duration_ms
        values["lastCheckpointSize"] = latest.checkpointed_size
        values["lastCheckpointFullSize"] = latest.state_size
        values["lastCheckpointExternalPath"] = latest.external_path
    if restored is not None:
        values["lastCheckpointRestoreTimestamp"] = restored.restore_timestamp_ms
    return values


def _epochs(master: JobMaster, now_ms: int) -> dict[str, Any]:
    epochs = master.epochs
    _, _, buckets = epochs.buckets(True, now_ms - RECENT_MS, now_ms)
    recent = Bucket()
    for bucket in buckets:
        recent.epochs += bucket.epochs
        recent.durations.update(bucket.durations)
    values: dict[str, Any] = {
        "numEpochs": epochs.epochs,
        "numEpochsPerSecond": round(recent.epochs / max(1, len(buckets)), 2),
    }
    last = epochs.last
    if last is not None:
        values["lastEpochDuration"] = last.planning + last.running + last.completing
        values["lastEpochPlanningTime"] = last.planning
        values["lastEpochRunningTime"] = last.running
        values["lastEpochCompletingTime"] = last.completing
        values["epochDurationP50"] = recent.duration_ms(0.5) or 0.0
        values["epochDurationP99"] = recent.duration_ms(0.99) or 0.0
    return values


def of_vertex(master: JobMaster, vertex: ExecutionJobVertex) -> Iterator[Sample]:
    """The metrics of a vertex's tasks and of its operators."""
    per_second = rates(master)
    variables = [
        {
            **_job_variables(master),
            "host": subtask.current.facts.host or "",
            "tm_id": f"{subtask.current.facts.host}:{subtask.current.facts.process}",
            "task_id": vertex.job_vertex.vertex_id,
            "task_name": vertex.job_vertex.name,
            "subtask_index": str(subtask.subtask),
            "task_attempt_num": str(subtask.current.attempt),
        }
        for subtask in vertex.subtasks
    ]
    for subtask, own in zip(vertex.subtasks, variables, strict=True):
        values = {**_task_values(subtask.current), **per_second.get((vertex.job_vertex.id, subtask.subtask), {})}
        yield from _defined(Scope.TASK, values, own)
    for node in vertex.job_vertex.nodes:
        of_node = {"operator_id": node.operator_id, "operator_name": node.name}
        yield from _operator(master, node, [{**own, **of_node} for own in variables])


def _task_values(execution: Execution) -> dict[str, Any]:
    facts = execution.facts
    if facts.epochs == 0:
        return {}
    return {
        "numRecordsIn": facts.records_in,
        "numRecordsOut": facts.records_out,
        "numBytesIn": facts.bytes_in,
        "numBytesOut": facts.bytes_out,
        "accumulateBusyTimeMs": facts.busy_ms,
        "stateSize": facts.state_size,
        "currentInputWatermark": facts.watermark,
    }


def rates(master: JobMaster) -> dict[tuple[int, int], dict[str, float | int]]:
    """By (vertex, subtask): what a task did per second, over the last seconds."""
    values_of_subtasks: dict[tuple[int, int], dict[str, float | int]] = {}
    for key, recent in master.epochs.recent(wall_clock_ms()).items():
        busy, held = shares(recent)
        values_of_subtasks[key] = {
            "numRecordsInPerSecond": round(recent[Total.RECORDS_IN], 2),
            "numRecordsOutPerSecond": round(recent[Total.RECORDS_OUT], 2),
            "numBytesInPerSecond": round(recent[Total.BYTES_IN], 2),
            "numBytesOutPerSecond": round(recent[Total.BYTES_OUT], 2),
            "busyTimeMsPerSecond": round(1000 * busy),
            "backPressuredTimeMsPerSecond": round(1000 * held),
            "idleTimeMsPerSecond": round(1000 * (1 - busy - held)),
            "isBackPressured": int(held > BACKPRESSURED_FROM),
        }
    return values_of_subtasks


def shares(recent: Totals | None) -> tuple[float, float]:
    """Busy and backpressured, together no more than 1: an epoch may end a little after its second."""
    if recent is None:
        return 0.0, 0.0
    busy = min(1.0, round(recent[Total.BUSY_MS] / 1000, 3))
    return busy, min(round(1 - busy, 3), round(recent[Total.BACKPRESSURED_MS] / 1000, 3))


def _operator(master: JobMaster, node: StreamNode, variables: list[dict[str, str]]) -> Iterator[Sample]:
    for name, by_subtask in master.metrics.of_operator(node.operator_id).items():
        for subtask, report in by_subtask.items():
            if not isinstance(report, HistogramReport):
                yield from _samples_of(name, report, variables[subtask])
            if name == OUTPUT_WATERMARK and isinstance(node.operator, SourceDescription):
                yield from _lag(report, variables[subtask])
    for rate_name, subtask, rate in master.metrics.rates(node.operator_id):
        yield Sample(Scope.OPERATOR, rate_name, rate_name, Kind.METER, rate, variables[subtask])


def _samples_of(name: MetricName, report: MetricReport, variables: dict[str, str]) -> Iterator[Sample]:
    text, logical = str(name), name.logical if isinstance(name, LabelledName) else name
    if isinstance(name, LabelledName):
        variables = {**variables, **dict(name.variables)}
    match report:
        case DistributionReport():
            for part, value in values_of(report).items():
                yield Sample(Scope.OPERATOR, f"{text}_{part}", f"{logical}_{part}", Kind.GAUGE, value, variables)
        case _:
            yield Sample(Scope.OPERATOR, text, logical, _kind_of(report), values_of(report)[""], variables)


def _kind_of(report: MetricReport) -> Kind:
    if isinstance(report, CounterReport):
        return Kind.COUNTER
    if isinstance(report, MeterReport):
        return Kind.METER
    return Kind.TEXT if isinstance(report, GaugeReport) and isinstance(report.value, str) else Kind.GAUGE


def _lag(report: MetricReport, variables: dict[str, str]) -> Iterator[Sample]:
    watermark = report.value if isinstance(report, GaugeReport) else None
    if isinstance(watermark, int) and MIN_LONG_VALUE < watermark < MAX_LONG_VALUE:
        lag = wall_clock_ms() - watermark
        yield Sample(Scope.OPERATOR, "watermarkLag", "watermarkLag", Kind.GAUGE, lag, variables)


def _latencies(master: JobMaster, node: StreamNode) -> Iterator[Sample]:
    for name, by_subtask in master.metrics.of_operator(node.operator_id).items():
        for subtask, report in by_subtask.items():
            if isinstance(name, LabelledName) and isinstance(report, HistogramReport):
                own = {
                    **dict(name.variables),
                    "operator_id": node.operator_id,
                    "operator_subtask_index": str(subtask),
                }
                yield Sample(
                    Scope.LATENCY,
                    ".".join(("latency", *(part for each in own.items() for part in each), "latency")),
                    ".".join(("latency", *own, "latency")),
                    Kind.HISTOGRAM,
                    report,
                    {**_job_variables(master), **own},
                )
