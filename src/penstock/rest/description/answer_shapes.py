"""What the REST API answers, in the notation of `schemas`; Flink's names, where the thing is Flink's."""

from __future__ import annotations

from penstock.common.job_status import JobStatus
from penstock.graph.execution_graph import ExecutionState
from penstock.rest.description.schemas import Anything, MapOf, Maybe, OneOf, With

JOB_STATE = OneOf(tuple(state.name for state in JobStatus))
TASK_STATE = OneOf(tuple(state.value for state in ExecutionState))
LEVEL = OneOf(("ok", "low", "high"))
_TIMES = {"start-time": int, "end-time": int, "duration": int}
_IO = {
    **{name: int for name in ("read-bytes", "write-bytes", "read-records", "write-records")},
    **{f"{name}-complete": bool for name in ("read-bytes", "write-bytes", "read-records", "write-records")},
    "accumulated-busy-time": int,
}
SETTINGS = [{"key": str, "value": str}]
METRICS = [With({"id": str}, {"value": str})]
AGGREGATED = [With({"id": str}, dict.fromkeys(("min", "max", "avg", "sum", "skew"), float))]
NOTHING: dict[str, object] = {}
BEGUN = {"request-id": str}
ERRORS = {"errors": [str]}

WEB_CONFIG = {
    "refresh-interval": int,
    "timezone-name": str,
    "timezone-offset": int,
    "flink-version": Maybe(str),
    "flink-revision": Maybe(str),
    "features": MapOf(bool),
}
CLUSTER_OVERVIEW = {
    "taskmanagers": Maybe(int),
    "slots-total": Maybe(int),
    "slots-available": Maybe(int),
    "jobs-running": int,
    "jobs-finished": int,
    "jobs-cancelled": int,
    "jobs-failed": int,
    "flink-version": Maybe(str),
    "flink-commit": Maybe(str),
}
JOBS = {"jobs": [{"id": str, "status": JOB_STATE}]}
JOBS_OVERVIEW = {
    "jobs": [
        {
            "jid": str,
            "name": str,
            **_TIMES,
            "state": JOB_STATE,
            "last-modification": int,
            "tasks": MapOf(int),
            "pending-operators": int,
            "job-type": str,
            "schedulerType": str,
        }
    ]
}
TASK_MANAGER = {"id": str, "path": str, "slotsNumber": int, "freeSlots": int}
TASK_MANAGERS = {"taskmanagers": [TASK_MANAGER]}
ENVIRONMENT = {"jvm": {"version": str, "arch": str, "options": [str]}, "classpath": [str]}
THREAD_DUMP = {"threadInfos": [{"threadName": str, "stringifiedThreadInfo": str}]}
LOGS = {"logs": [{"name": str, "size": int, "mtime": int}]}

PROGRAMS = {
    "address": str,
    "files": [{"id": str, "name": str, "uploaded": int, "entry": [{"name": str, "description": Maybe(str)}]}],
}
PROGRAM_RUN = With(
    {},
    {
        "entryClass": str,
        "programArgsList": [str],
        "parallelism": int,
        "savepointPath": str,
        "allowNonRestoredState": bool,
        "claimMode": str,
        "flinkConfiguration": MapOf(str),
    },
)

_PLAN = {
    "jid": str,
    "name": str,
    "type": str,
    "nodes": [
        With(
            {
                "id": str,
                "parallelism": int,
                "operator": str,
                "operator_strategy": str,
                "description": str,
                "optimizer_properties": MapOf(Anything),
            },
            {"inputs": [{"num": int, "id": str, "ship_strategy": str}]},
        )
    ],
}
JOB_PLAN = {"plan": _PLAN}
JOB_STATUS = {"status": JOB_STATE}
JOB_DETAILS = {
    "jid": str,
    "name": str,
    "isStoppable": bool,
    "state": JOB_STATE,
    "job-type": str,
    **_TIMES,
    "maxParallelism": int,
    "now": int,
    "timestamps": MapOf(int),
    "vertices": [
        {
            "id": str,
            "slotSharingGroupId": str,
            "name": str,
            "maxParallelism": int,
            "parallelism": int,
            "status": TASK_STATE,
            **_TIMES,
            "tasks": MapOf(int),
            "metrics": _IO,
        }
    ],
    "status-counts": MapOf(int),
    "plan": _PLAN,
    "schedulerType": str,
    "pending-operators": int,
}
JOB_CONFIG = {
    "jid": str,
    "name": str,
    "execution-config": {
        "restart-strategy": str,
        "job-parallelism": int,
        "object-reuse-mode": bool,
        "user-config": MapOf(str),
    },
}
EXCEPTIONS = {
    "exceptionHistory": {
        "entries": [
            {
                "timestamp": int,
                "exceptionName": str,
                "stacktrace": str,
                "taskName": Maybe(str),
                "endpoint": Maybe(str),
                "taskManagerId": Maybe(str),
                "failureLabels": MapOf(str),
                "concurrentExceptions": [Anything],
            }
        ],
        "truncated": bool,
    }
}
_ACCUMULATOR = {"name": str, "type": str, "value": str}
ACCUMULATORS = {
    "job-accumulators": [Anything],
    "user-task-accumulators": [_ACCUMULATOR],
    "serialized-user-task-accumulators": MapOf(str),
}
_CAUSE = With({"class": str, "stack-trace": str}, {"serialized-throwable": str})
EXECUTION_RESULT = {
    "status": {"id": str},
    "job-execution-result": Maybe(
        With(
            {"id": str, "application-status": str, "accumulator-results": MapOf(str), "net-runtime": int},
            {"failure-cause": _CAUSE},
        )
    ),
}
PROGRESS = {
    "jid": str,
    "name": str,
    "state": str,
    "waiting-for": Maybe(OneOf(("workers", "state", "functions"))),
    "start-time": int,
    "end-time": int,
    "duration": int,
    "records": int,
    "records-per-second": float,
    "share-done": Maybe(float),
    "watermark": Maybe(int),
    "watermark-lag": Maybe(int),
    "busy": {"share": float, "vertex": Maybe(str)},
    "backpressure": {"level": OneOf(("ok", "low", "high")), "share": float, "vertex": Maybe(str)},
    "checkpoint": Maybe({"id": int, "completed": int, "duration": int, "size": int}),
    "failed-checkpoints": int,
    "restarts": int,
    "failure": Maybe(str),
    "savepoint": Maybe(str),
}
JOB_LOG = {"lines": [{"number": int, "text": str}]}
STDOUT = {"total": int, "lines": [{"stream": OneOf(("stdout", "stderr")), "text": str}]}
_SERIES = [Maybe(float)]
EPOCHS = {
    "resolution": int,
    "now": int,
    "timestamps": [int],
    **dict.fromkeys(
        ("epochs", "checkpoints", "planning", "running", "completing", "duration-p50", "duration-p99", "state-size"),
        _SERIES,
    ),
    "vertices": MapOf(
        dict.fromkeys(
            ("records-in", "records-out", "bytes-in", "bytes-out", "busy", "backpressured", "watermark"), _SERIES
        )
    ),
}

_SUMMARY = {"min": int, "max": int, "avg": int, **dict.fromkeys(("p50", "p90", "p95", "p99", "p999"), float)}
_FIGURES = dict.fromkeys(
    (
        "latest_ack_timestamp", "checkpointed_size", "state_size", "end_to_end_duration", "num_subtasks",
        "num_acknowledged_subtasks",
    ),
    int,
)  # fmt: skip
_CHECKPOINT = With(
    {
        "className": str,
        "id": int,
        "status": OneOf(("IN_PROGRESS", "COMPLETED", "FAILED")),
        "is_savepoint": bool,
        "savepointFormat": Maybe(str),
        "trigger_timestamp": int,
        **_FIGURES,
        "checkpoint_type": str,
        "tasks": MapOf(Anything),
    },
    {"external_path": Maybe(str), "discarded": bool, "failure_timestamp": Maybe(int), "failure_message": Maybe(str)},
)
CHECKPOINT = _CHECKPOINT
CHECKPOINTS = {
    "counts": MapOf(int),
    "summary": MapOf(_SUMMARY),
    "latest": {
        "completed": Maybe(_CHECKPOINT),
        "savepoint": Maybe(_CHECKPOINT),
        "failed": Maybe(_CHECKPOINT),
        "restored": Maybe({"id": int, "restore_timestamp": int, "is_savepoint": bool, "external_path": Maybe(str)}),
    },
    "history": [_CHECKPOINT],
}
CHECKPOINT_CONFIG = {
    "mode": str,
    "interval": int,
    "timeout": int,
    "min_pause": int,
    "max_concurrent": int,
    "externalization": {"enabled": bool, "delete_on_cancellation": bool},
    "state_backend": str,
    "checkpoint_storage": str,
    "unaligned_checkpoints": bool,
    "tolerable_failed_checkpoints": int,
    "checkpoints_after_tasks_finish": bool,
}
CHECKPOINT_OF_VERTEX = {
    "id": int,
    "status": str,
    **_FIGURES,
    "summary": MapOf(Anything),
    "subtasks": [
        {
            "index": int,
            "status": str,
            "ack_timestamp": int,
            "end_to_end_duration": int,
            "checkpointed_size": int,
            "state_size": int,
            "checkpoint": {"sync": int},
            "unaligned_checkpoint": bool,
            "aborted": bool,
        }
    ],
}


_ATTEMPT = {
    "subtask": int,
    "status": TASK_STATE,
    "attempt": int,
    "endpoint": Maybe(str),
    **_TIMES,
    "metrics": _IO,
    "taskmanager-id": Maybe(str),
    "status-duration": MapOf(int),
}
ATTEMPT = _ATTEMPT
VERTEX = {
    "id": str,
    "name": str,
    "parallelism": int,
    "maxParallelism": int,
    "now": int,
    "subtasks": [{**_ATTEMPT, "other-concurrent-attempts": Maybe([Anything])}],
}
SUBTASK_TIMES = {
    "id": str,
    "name": str,
    "now": int,
    "subtasks": [{"subtask": int, "endpoint": Maybe(str), "duration": int, "timestamps": MapOf(int)}],
}
VERTEX_BY_HOST = {
    "id": str,
    "name": str,
    "now": int,
    "taskmanagers": [
        {
            "endpoint": str,
            "status": TASK_STATE,
            **_TIMES,
            "metrics": _IO,
            "status-counts": MapOf(int),
            "taskmanager-id": Maybe(str),
        }
    ],
}
VERTEX_ACCUMULATORS = {"id": str, "user-accumulators": [_ACCUMULATOR]}
SUBTASK_ACCUMULATORS = {
    "id": str,
    "parallelism": int,
    "subtasks": [{"subtask": int, "attempt": int, "endpoint": Maybe(str), "user-accumulators": [_ACCUMULATOR]}],
}
BACKPRESSURE = {
    "status": str,
    "backpressureLevel": LEVEL,
    "end-timestamp": int,
    "subtasks": [
        {
            "subtask": int,
            "attempt-number": int,
            "backpressureLevel": LEVEL,
            "ratio": float,
            "busyRatio": float,
            "idleRatio": float,
            "other-concurrent-attempts": Maybe([Anything]),
        }
    ],
}
FLAME_GRAPH = {"endTimestamp": int, "data": {"name": str, "value": int, "children": [Anything]}}


def operation(result: dict[str, object], cause: str) -> dict[str, object]:
    """The status of an operation that is in progress, or has ended."""
    return {
        "status": {"id": OneOf(("IN_PROGRESS", "COMPLETED"))},
        "operation": Maybe(With({}, {**result, cause: _CAUSE})),
    }
