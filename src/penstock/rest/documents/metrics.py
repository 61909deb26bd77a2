"""The metrics of a job and of its vertices.

A document holds everything that is known; what a request selects (`get`, `agg`, `subtasks`) is cut from it afterwards.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.common.job_status import JobStatus
from penstock.jobmaster.dispatcher import RunningJob
from penstock.rest.documents.epochs import rates
from penstock.rest.documents.executions import task_metrics
from penstock.rest.routes.errors import bad_request
from penstock.rest.routes.lookup import find_vertex

_UNFIT = re.compile(r"[ .:,]")
_AGGREGATIONS = ("min", "max", "avg", "sum", "skew")
_WATERMARK = "currentInputWatermark"


def job_metrics(job: RunningJob) -> dict[str, Any]:
    master = job.master
    counts = master.checkpoints.counts()
    metrics: dict[str, Any] = {
        "numRestarts": master.restarts,
        "totalNumberOfCheckpoints": counts["total"],
        "numberOfInProgressCheckpoints": counts["in_progress"],
        "numberOfCompletedCheckpoints": counts["completed"],
        "numberOfFailedCheckpoints": counts["failed"],
        "uptime": _uptime(job),
    }
    latest, restored = master.checkpoints.latest_completed, master.checkpoints.restored
    if latest is not None:
        metrics["lastCompletedCheckpointId"] = latest.id
        metrics["lastCheckpointDuration"] = latest.duration_ms
        metrics["lastCheckpointSize"] = latest.checkpointed_size
        metrics["lastCheckpointFullSize"] = latest.state_size
        metrics["lastCheckpointExternalPath"] = latest.external_path
    if restored is not None:
        metrics["lastCheckpointRestoreTimestamp"] = restored.restore_timestamp_ms
    return {name: value for name, value in metrics.items() if value is not None}


def _uptime(job: RunningJob) -> int:
    """Milliseconds in RUNNING without a break, 0 before and between; -1 after the end."""
    if job.master.status.is_terminal_state():
        return -1
    if job.master.status is not JobStatus.RUNNING:
        return 0
    return int(time.time() * 1000) - job.master.timestamps["RUNNING"]


def vertex_metrics(job: RunningJob, vertex_id: str) -> dict[str, dict[str, Any]]:
    """By metric id within the vertex: `subtasks` where the value of each is known, `sum` where only the sum is."""
    vertex = find_vertex(job, vertex_id)
    known: dict[str, dict[str, Any]] = {}
    per_second = rates(job)
    for subtask in vertex.subtasks:
        metrics = {
            **task_metrics(subtask.current),
            **per_second.get((vertex.job_vertex.id, subtask.subtask), {}),
        }
        for name, value in metrics.items():
            known.setdefault(name, {"subtasks": {}})["subtasks"][str(subtask.subtask)] = value
    by_operator = job.master.metrics
    for node in vertex.job_vertex.nodes:
        for name, value in by_operator.get(node.operator_id, {}).items():
            known[f"{_UNFIT.sub('_', node.name)}.{name}"] = _fact(value, vertex.job_vertex.parallelism)
    return known


def _fact(value: Any, parallelism: int) -> dict[str, Any]:
    if isinstance(value, Mapping) and all(isinstance(subtask, int) for subtask in value):
        return {"subtasks": {str(subtask): each for subtask, each in value.items()}}
    if isinstance(value, Mapping):  # A meter or a distribution, of which Flink shows one number
        value = value.get("rate", value.get("mean"))
    fact: dict[str, Any] = {"sum": value}
    if parallelism == 1:
        fact["subtasks"] = {"0": value}
    return fact


def watermarks(job: RunningJob, vertex_id: str) -> list[dict[str, str]]:
    subtasks = vertex_metrics(job, vertex_id).get(_WATERMARK, {}).get("subtasks", {})
    return [{"id": f"{subtask}.{_WATERMARK}", "value": text(value)} for subtask, value in subtasks.items()]


def selected(metrics: Mapping[str, Any], get: str | None) -> list[dict[str, str]]:
    """Flink's answer: ids only, or the values of those that `get` names."""
    if get is None:
        return [{"id": name} for name in metrics]
    return [{"id": name, "value": text(metrics[name])} for name in get.split(",") if name in metrics]


def by_subtask(facts: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Ids as in Flink: `<subtask>.<operator>.<metric>`."""
    return {
        f"{subtask}.{name}": value
        for name, fact in facts.items()
        for subtask, value in fact.get("subtasks", {}).items()
    }


def aggregated(facts: Mapping[str, dict[str, Any]], get: str | None, agg: str | None) -> list[dict[str, Any]]:
    """Over all subtasks; an aggregation that cannot be told from what is known is left out."""
    if get is None:
        return [{"id": name} for name in facts]
    wanted = _AGGREGATIONS[:-1] if agg is None else tuple(agg.split(","))
    if unknown := set(wanted) - set(_AGGREGATIONS):
        raise bad_request(f"agg={','.join(sorted(unknown))} is not known; use {', '.join(_AGGREGATIONS)}")
    return [{"id": name, **_aggregate(facts[name], wanted)} for name in get.split(",") if name in facts]


def _aggregate(fact: dict[str, Any], wanted: Iterable[str]) -> dict[str, Any]:
    values = [value for value in fact.get("subtasks", {}).values() if _is_number(value)]
    known: dict[str, Any] = {}
    if values:
        average = sum(values) / len(values)
        known = {"min": min(values), "max": max(values), "avg": average, "sum": sum(values), "skew": _skew(values)}
    elif _is_number(fact.get("sum")):
        known = {"sum": fact["sum"]}
    return {name: known[name] for name in wanted if name in known}


def _skew(values: list[float]) -> float:
    """Per cent: the mean deviation from the average, in relation to it (Flink's measure)."""
    average = sum(values) / len(values)
    if average == 0:
        return 0.0
    return min(100.0, 100 * sum(abs(value - average) for value in values) / len(values) / average)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
