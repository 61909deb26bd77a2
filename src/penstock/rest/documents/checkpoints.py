"""What the REST API reports about a job's checkpoints and savepoints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from penstock.checkpoint.statistics import CheckpointStats, SubtaskStats
from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.redaction import redacted_text
from penstock.jobmaster.dispatcher import RunningJob
from penstock.rest.routes.errors import not_found
from penstock.rest.routes.lookup import find_checkpoint, find_vertex

NO_PERIODIC_CHECKPOINTS = 2**63 - 1
"""Flink's interval of a job that is only checkpointed when asked."""
_CLASS_NAMES = {"IN_PROGRESS": "in_progress", "COMPLETED": "completed", "FAILED": "failed"}
_RETAINED = ("DELETE_ON_CANCELLATION", "RETAIN_ON_CANCELLATION")


def statistics(job: RunningJob) -> dict[str, Any]:
    tracker = job.master.checkpoints
    restored = tracker.restored
    return {
        "counts": tracker.counts(),
        "summary": {name: summary(values) for name, values in tracker.summary().items()},
        "latest": {
            "completed": _optional(tracker.latest_completed),
            "savepoint": _optional(tracker.latest_savepoint),
            "failed": _optional(tracker.latest_failed),
            "restored": None
            if restored is None
            else {
                "id": restored.id,
                "restore_timestamp": restored.restore_timestamp_ms,
                "is_savepoint": restored.is_savepoint,
                "external_path": restored.external_path,
            },
        },
        "history": [checkpoint(each) for each in tracker.history()],
    }


def _optional(stats: CheckpointStats | None) -> dict[str, Any] | None:
    return None if stats is None else checkpoint(stats)


def summary(values: Sequence[int]) -> dict[str, Any]:
    """Flink's eight numbers; 0 for nothing, as in Flink."""
    ordered = sorted(values)
    return {
        "min": ordered[0] if ordered else 0,
        "max": ordered[-1] if ordered else 0,
        "avg": sum(ordered) // len(ordered) if ordered else 0,
        **{name: _quantile(ordered, q) for name, q in (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99))},
        "p999": _quantile(ordered, 0.999),
    }


def _quantile(ordered: Sequence[int], q: float) -> float:
    """Between the two nearest values in proportion."""
    if not ordered:
        return 0.0
    place = q * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def checkpoint(stats: CheckpointStats) -> dict[str, Any]:
    document: dict[str, Any] = {
        "className": _CLASS_NAMES[stats.status],
        "id": stats.id,
        "status": stats.status,
        "is_savepoint": stats.is_savepoint,
        "savepointFormat": None if stats.savepoint_format is None else stats.savepoint_format.upper(),
        "trigger_timestamp": stats.trigger_timestamp_ms,
        "latest_ack_timestamp": -1 if stats.latest_ack_timestamp_ms is None else stats.latest_ack_timestamp_ms,
        "checkpointed_size": stats.checkpointed_size,
        "state_size": stats.state_size,
        "end_to_end_duration": stats.duration_ms,
        "num_subtasks": stats.num_subtasks,
        "num_acknowledged_subtasks": stats.num_acknowledged,
        "checkpoint_type": "SAVEPOINT" if stats.is_savepoint else "CHECKPOINT",
        "tasks": {},
    }
    if stats.status == "COMPLETED":
        document.update(external_path=stats.external_path, discarded=stats.discarded)
    if stats.status == "FAILED":
        message = None if stats.failure_message is None else redacted_text(stats.failure_message)
        document.update(failure_timestamp=stats.failure_timestamp_ms, failure_message=message)
    return document


def details(job: RunningJob, checkpoint_id: str) -> dict[str, Any]:
    stats = find_checkpoint(job, checkpoint_id)
    vertices = job.master.job_graph.vertices
    tasks = {vertices[at].vertex_id: _task(job, stats, at) for at in stats.tasks}
    return {**checkpoint(stats), "tasks": tasks}


def _task(job: RunningJob, stats: CheckpointStats, vertex: int) -> dict[str, Any]:
    subtasks = stats.tasks[vertex]
    expected = job.master.job_graph.vertices[vertex].parallelism
    latest = max((each.ack_timestamp_ms for each in subtasks), default=None)
    is_done = len(subtasks) == expected
    return {
        "id": stats.id,
        "status": stats.status if stats.status != "COMPLETED" and not is_done else "COMPLETED",
        "latest_ack_timestamp": -1 if latest is None else latest,
        "checkpointed_size": sum(each.checkpointed_size for each in subtasks),
        "state_size": sum(each.state_size for each in subtasks),
        "end_to_end_duration": -1 if latest is None else latest - stats.trigger_timestamp_ms,
        "num_subtasks": expected,
        "num_acknowledged_subtasks": len(subtasks),
    }


def task_details(job: RunningJob, checkpoint_id: str, vertex_id: str) -> dict[str, Any]:
    stats = find_checkpoint(job, checkpoint_id)
    vertex = find_vertex(job, vertex_id).job_vertex
    if vertex.id not in stats.tasks:
        raise not_found(f"No subtask of vertex {vertex_id} has acknowledged checkpoint {checkpoint_id}.")
    subtasks = stats.tasks[vertex.id]
    return {
        **_task(job, stats, vertex.id),
        "summary": _task_summary(stats, subtasks),
        "subtasks": [_subtask(stats, each) for each in sorted(subtasks, key=lambda each: each.subtask)],
    }


def _task_summary(stats: CheckpointStats, subtasks: Iterable[SubtaskStats]) -> dict[str, Any]:
    subtasks = list(subtasks)
    return {
        "checkpointed_size": summary([each.checkpointed_size for each in subtasks]),
        "state_size": summary([each.state_size for each in subtasks]),
        "end_to_end_duration": summary([each.ack_timestamp_ms - stats.trigger_timestamp_ms for each in subtasks]),
        "checkpoint_duration": {"sync": summary([each.snapshot_ms for each in subtasks])},
    }


def _subtask(stats: CheckpointStats, subtask: SubtaskStats) -> dict[str, Any]:
    return {
        "index": subtask.subtask,
        "status": "completed",
        "ack_timestamp": subtask.ack_timestamp_ms,
        "end_to_end_duration": subtask.ack_timestamp_ms - stats.trigger_timestamp_ms,
        "checkpointed_size": subtask.checkpointed_size,
        "state_size": subtask.state_size,
        "checkpoint": {"sync": subtask.snapshot_ms},
        "unaligned_checkpoint": False,
        "aborted": False,
    }


def settings(job: RunningJob) -> dict[str, Any]:
    config = job.config
    interval = config.get_optional(keys.CHECKPOINT_INTERVAL)
    retention = config.get(keys.CHECKPOINT_RETENTION).upper()
    return {
        "mode": config.get(keys.CHECKPOINT_MODE).lower().replace("-", "_"),
        "interval": NO_PERIODIC_CHECKPOINTS if interval is None else interval,
        "timeout": config.get(keys.CHECKPOINT_TIMEOUT),
        "min_pause": config.get(keys.CHECKPOINT_MIN_PAUSE),
        "max_concurrent": config.get(keys.MAX_CONCURRENT_CHECKPOINTS),
        "externalization": {
            "enabled": retention in _RETAINED,
            "delete_on_cancellation": retention != "RETAIN_ON_CANCELLATION",
        },
        "state_backend": config.get(keys.STATE_BACKEND),
        "checkpoint_storage": _storage(config),
        "unaligned_checkpoints": False,  # Between epochs no record is on its way: there is nothing to overtake
        "tolerable_failed_checkpoints": config.get(keys.TOLERABLE_FAILED_CHECKPOINTS),
        "checkpoints_after_tasks_finish": config.get(keys.CHECKPOINTS_AFTER_TASKS_FINISH),
    }


def _storage(config: Configuration) -> str:
    if config.get_optional(keys.CHECKPOINT_DIR) is not None:
        return "FileSystemCheckpointStorage"
    return config.get_optional(keys.CHECKPOINT_STORAGE) or "jobmanager"
