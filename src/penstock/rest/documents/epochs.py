"""What the REST API reports about the epochs of a job: series for charts, and how busy its tasks are now.

The series are Penstock's own; backpressure has Flink's shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.graph.execution_graph import ExecutionJobVertex
from penstock.jobmaster.dispatcher import RunningJob
from penstock.jobmaster.epoch_history import COARSE_MS, FINE_LENGTH, FINE_MS, Bucket, Total, Totals
from penstock.jobmaster.metrics.samples import BACKPRESSURED_FROM, shares
from penstock.rest.documents.executions import now_ms
from penstock.rest.routes.errors import bad_request
from penstock.rest.routes.lookup import find_vertex

RESOLUTIONS = {str(FINE_MS): True, str(COARSE_MS): False}
_LOW, _HIGH = BACKPRESSURED_FROM, 0.5
"""Flink's bounds: the share of its time that a task must be held up to count as `low` and as `high`."""

_OF_JOB: dict[str, Callable[[Bucket, float], Any]] = {
    "epochs": lambda bucket, seconds: _rounded(bucket.epochs / seconds),
    "checkpoints": lambda bucket, seconds: _rounded(bucket.checkpoints / seconds),
    "planning": lambda bucket, _: _per_epoch(bucket, bucket.planning_ms),
    "running": lambda bucket, _: _per_epoch(bucket, bucket.running_ms),
    "completing": lambda bucket, _: _per_epoch(bucket, bucket.completing_ms),
    "duration-p50": lambda bucket, _: _rounded(bucket.duration_ms(0.5)),
    "duration-p99": lambda bucket, _: _rounded(bucket.duration_ms(0.99)),
    "state-size": lambda bucket, _: bucket.state_size,
}
_OF_VERTEX = {
    "records-in": Total.RECORDS_IN,
    "records-out": Total.RECORDS_OUT,
    "bytes-in": Total.BYTES_IN,
    "bytes-out": Total.BYTES_OUT,
}


def since(job: RunningJob, resolution: str, after: str) -> dict[str, Any]:
    """Series of one resolution, of the buckets that began after a time."""
    if resolution not in RESOLUTIONS:
        raise bad_request(f"resolution={resolution} is not known; use {' or '.join(RESOLUTIONS)} (milliseconds)")
    if not after.isdigit():
        raise bad_request(f"since must be a time in milliseconds, got {after!r}")
    return _series(job, RESOLUTIONS[resolution], int(after), now_ms())


def kept(job: RunningJob) -> dict[str, Any]:
    """What stays of a job that has ended: the finest series that has all of it."""
    first = job.master.epochs.first_ms
    is_short = first is None or now_ms() - first < FINE_MS * FINE_LENGTH
    return _series(job, is_short, 0, now_ms() + (FINE_MS if is_short else COARSE_MS))  # Nothing more will come.


def _series(job: RunningJob, is_fine: bool, after_ms: int, now: int) -> dict[str, Any]:
    width, start, buckets = job.master.epochs.buckets(is_fine, after_ms, now)
    seconds = width / 1000
    return {
        "resolution": width,
        "now": now,
        "timestamps": [start + at * width for at in range(len(buckets))],
        **{name: [of(bucket, seconds) for bucket in buckets] for name, of in _OF_JOB.items()},
        "vertices": {
            vertex.job_vertex.vertex_id: _vertex_series(vertex, buckets, seconds)
            for vertex in job.master.execution_graph.job_vertices
        },
    }


def _vertex_series(vertex: ExecutionJobVertex, buckets: list[Bucket], seconds: float) -> dict[str, list[Any]]:
    at, subtasks = vertex.job_vertex.id, len(vertex.subtasks)
    totals = [bucket.vertices.get(at) for bucket in buckets]
    return {
        **{
            name: [0 if each is None else _rounded(each[total] / seconds) for each in totals]
            for name, total in _OF_VERTEX.items()
        },
        "busy": [_share(each, Total.BUSY_MS, 1000 * seconds * subtasks) for each in totals],
        "backpressured": [_share(each, Total.BACKPRESSURED_MS, 1000 * seconds * subtasks) for each in totals],
        "watermark": [bucket.watermarks.get(at) for bucket in buckets],
    }


def _share(totals: Totals | None, total: Total, of_ms: float) -> float:
    return 0.0 if totals is None else min(1.0, round(totals[total] / of_ms, 3))


def _per_epoch(bucket: Bucket, total_ms: float) -> float | int | None:
    return None if bucket.epochs == 0 else _rounded(total_ms / bucket.epochs)


def _rounded(value: float | None) -> float | int | None:
    """Few digits: documents are read often, and those of ended jobs are kept."""
    return None if value is None else round(value) if value >= 100 else round(value, 2)


def backpressure(job: RunningJob, vertex_id: str) -> dict[str, Any]:
    """How subtasks have spent the last seconds; each ratio is a share of 1."""
    vertex = find_vertex(job, vertex_id)
    recent = job.master.epochs.recent(now_ms())
    subtasks: list[dict[str, Any]] = []
    for subtask in vertex.subtasks:
        busy, held = shares(recent.get((vertex.job_vertex.id, subtask.subtask)))
        subtasks.append(
            {
                "subtask": subtask.subtask,
                "attempt-number": subtask.current.attempt,
                "backpressureLevel": level(held),
                "ratio": held,
                "busyRatio": busy,
                "idleRatio": round(1 - busy - held, 3),
                "other-concurrent-attempts": None,
            }
        )
    worst = max(subtask["ratio"] for subtask in subtasks)
    return {
        "status": "ok",
        "backpressureLevel": level(worst),
        "end-timestamp": now_ms(),
        "subtasks": subtasks,
    }


def level(ratio: float) -> str:
    return "ok" if ratio <= _LOW else "low" if ratio <= _HIGH else "high"
