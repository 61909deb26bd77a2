"""What the REST API reports about a job as a whole."""

from __future__ import annotations

import base64
import traceback
from collections import Counter
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.job_status import JobStatus
from penstock.common.redaction import redacted_settings, redacted_text
from penstock.graph.execution_graph import ExecutionState
from penstock.graph.job_graph import JobGraph, JobVertex
from penstock.jobmaster.dispatcher import RunningJob
from penstock.rest.documents.executions import now_ms
from penstock.rest.documents.vertices import job_vertex_entry

_ENDINGS = {JobStatus.FINISHED: "SUCCEEDED", JobStatus.FAILED: "FAILED", JobStatus.CANCELED: "CANCELED"}


def job_type(job: RunningJob) -> str:
    return _type_of(job.master.job_graph)


def _type_of(graph: JobGraph) -> str:
    return "BATCH" if graph.is_batch else "STREAMING"


def overview(job: RunningJob) -> dict[str, Any]:
    """The job's entry in `/jobs/overview`."""
    states = Counter(vertex.state for vertex in job.master.execution_graph.vertices())
    tasks = {state.value.lower(): states[state] for state in ExecutionState}
    return {
        "jid": job.job_id,
        "name": job.master.job_graph.job_name,
        **_times(job),
        "state": job.master.status.name,
        "last-modification": max(job.master.timestamps.values(), default=job.master.started_ms),
        "tasks": {"total": sum(states.values()), **tasks},
        "pending-operators": 0,
        "job-type": job_type(job),
        "schedulerType": "Default",
    }


def _times(job: RunningJob) -> dict[str, int]:
    start, end = job.master.started_ms, job.master.ended_ms
    return {
        "start-time": start,
        "end-time": -1 if end is None else end,
        "duration": (now_ms() if end is None else end) - start,
    }


_KEPT_CHARACTERS = 64_000
"""Of the log of an ended job, of which a job manager may know many."""


def log(job: RunningJob, after: int = -1) -> dict[str, Any]:
    """The newest records of the job's log; of an ended job only the last of them."""
    lines = job.master.log.lines(after)
    if job.master.status.is_globally_terminal_state():
        left, kept = _KEPT_CHARACTERS, len(lines)
        while kept and (left := left - len(lines[kept - 1][1])) >= 0:
            kept -= 1
        lines = lines[kept:]
    return {"lines": [{"number": number, "text": text} for number, text in lines]}


def log_after(document: dict[str, Any], after: int) -> dict[str, Any]:
    return {"lines": [line for line in document["lines"] if line["number"] > after]}


def details(job: RunningJob) -> dict[str, Any]:
    job.master.look_at_batch()
    vertices = [job_vertex_entry(vertex) for vertex in job.master.execution_graph.job_vertices]
    counts = Counter(entry["status"] for entry in vertices)
    return {
        "jid": job.job_id,
        "name": job.master.job_graph.job_name,
        "isStoppable": False,  # As in Flink, where only ancient jobs say otherwise
        "state": job.master.status.name,
        "job-type": job_type(job),
        **_times(job),
        "maxParallelism": job.config.get(keys.MAX_PARALLELISM),
        "now": now_ms(),
        "timestamps": job.master.timestamps,
        "vertices": vertices,
        "status-counts": {state.value: counts[state.value] for state in ExecutionState},
        "plan": plan(job)["plan"],
        "schedulerType": "Default",
        "pending-operators": 0,
    }


def status(job: RunningJob) -> dict[str, Any]:
    return {"status": job.master.status.name}


def plan(job: RunningJob) -> dict[str, Any]:
    return plan_of(job.master.job_graph, job.job_id)


def plan_of(graph: JobGraph, job_id: str) -> dict[str, Any]:
    """The plan of a job, which need not run."""
    return {
        "plan": {
            "jid": job_id,
            "name": graph.job_name,
            "type": _type_of(graph),
            "nodes": [_plan_node(graph, vertex) for vertex in graph.vertices],
        }
    }


def _plan_node(graph: JobGraph, vertex: JobVertex) -> dict[str, Any]:
    node: dict[str, Any] = {
        "id": vertex.vertex_id,
        "parallelism": vertex.parallelism,
        "operator": "",
        "operator_strategy": "",
        "description": "<br/>".join(node.description for node in vertex.nodes) + "<br/>",
        "optimizer_properties": {},
    }
    inputs = graph.in_edges(vertex.id)
    if inputs:
        node["inputs"] = [
            {
                "num": number,
                "id": graph.vertices[edge.source_vertex].vertex_id,
                "ship_strategy": edge.partitioner.ship_strategy,
            }
            for number, edge in enumerate(inputs)
        ]
    return node


def configuration(job: RunningJob) -> dict[str, Any]:
    parameters = job.config.get(keys.GLOBAL_JOB_PARAMETERS) or {}
    return {
        "jid": job.job_id,
        "name": job.master.job_graph.job_name,
        "execution-config": {
            "restart-strategy": job.master.restart_strategy.description,
            "job-parallelism": job.config.get(keys.PARALLELISM),
            "object-reuse-mode": job.config.get(keys.OBJECT_REUSE),
            "user-config": redacted_settings(parameters),
        },
    }


def all_settings(config: Configuration) -> list[dict[str, str]]:
    """The configuration as Flink's list of keys and values."""
    return [{"key": key, "value": value} for key, value in sorted(redacted_settings(config.to_dict()).items())]


def exceptions(job: RunningJob) -> dict[str, Any]:
    """All that is kept; `maxExceptions` of a request cuts it."""
    entries: list[dict[str, Any]] = [
        {
            "timestamp": failure.timestamp_ms,
            "exceptionName": failure.exception_name,
            "stacktrace": redacted_text(failure.stacktrace),
            "taskName": failure.task_name,
            "endpoint": failure.host,
            "taskManagerId": failure.host,
            "failureLabels": {},
            "concurrentExceptions": [],
        }
        for failure in list(job.master.failures)
    ]
    return {"exceptionHistory": {"entries": entries, "truncated": False}}


def printed(job: RunningJob) -> dict[str, Any]:
    """The last lines that the job has printed; `total` counts those before them, too."""
    total, lines = job.master.output.last_lines()
    return {
        "total": total,
        "lines": [{"stream": "stderr" if is_error else "stdout", "text": line} for is_error, line in lines],
    }


def at_most(document: dict[str, Any], limit: int) -> dict[str, Any]:
    entries = document["exceptionHistory"]["entries"]
    return {"exceptionHistory": {"entries": entries[:limit], "truncated": len(entries) > limit}}


def execution_result(job: RunningJob) -> dict[str, Any]:
    ending = _ENDINGS.get(job.master.status)
    if ending is None:
        return {"status": {"id": "IN_PROGRESS"}, "job-execution-result": None}
    end = job.master.ended_ms if job.master.ended_ms is not None else now_ms()
    values = {name: each.get_local_value() for name, each in list(job.master.accumulators.items())}
    result: dict[str, Any] = {
        "id": job.job_id,
        "application-status": ending,
        "accumulator-results": {name: pickled(value) for name, value in values.items()},
        "net-runtime": end - job.master.started_ms,
    }
    failure = job.client.failure
    if failure is not None:
        result["failure-cause"] = failure_cause(failure)
    return {"status": {"id": "COMPLETED"}, "job-execution-result": result}


def failure_cause(failure: BaseException) -> dict[str, Any]:
    """A failure in Flink's form; Penstock's own client reads the exception itself from `serialized-throwable`."""
    kind = type(failure)
    document = {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        "stack-trace": redacted_text("".join(traceback.format_exception(failure))),
    }
    try:
        document["serialized-throwable"] = pickled(failure)
    except Exception:  # A user's exception that does not pickle is reported by its text alone
        return document
    return document


def pickled(value: Any) -> str:
    return base64.b64encode(cloudpickle.dumps(value)).decode("ascii")
