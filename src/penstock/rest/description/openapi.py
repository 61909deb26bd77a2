"""The REST API described for tools, as OpenAPI; served at `/openapi.json`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from starlette.routing import BaseRoute, Route

from penstock.rest.description import answer_shapes as shapes
from penstock.rest.description.schemas import Anything, MapOf, Shape, With, schema_of

PATH = "/openapi.json"
_JOB, _VERTEX, _CHECKPOINT = "/jobs/{job}", "/jobs/{job}/vertices/{vertex}", "/jobs/{job}/checkpoints"
_TM = "/taskmanagers/{taskmanager}"
_GET, _AGG = {"get": "names of metrics, separated by commas"}, {"agg": "min, max, avg, sum, skew; separated by commas"}
_ID = {"triggerId": str}


@dataclass(frozen=True)
class Described:
    """What a method of a path does; `answer` is the shape of its JSON, or the type of its text."""

    summary: str
    answer: Shape | str
    query: dict[str, str] = field(default_factory=dict)
    body: Shape | None = None
    form: dict[str, str] = field(default_factory=dict)
    """Files of a form instead of a body, with what they mean."""
    status: int = 200


def _body(**optional: Shape) -> With:
    return With({}, {name.replace("_", "-"): shape for name, shape in optional.items()} | _ID)


DESCRIBED: dict[str, Described] = {
    "GET /config": Described("What a dashboard needs to know first", shapes.WEB_CONFIG),
    "GET /overview": Described("How many jobs and slots there are", shapes.CLUSTER_OVERVIEW),
    "GET /jobs": Described("All jobs, with their states", shapes.JOBS),
    "GET /jobs/overview": Described("All jobs, with their times and tasks", shapes.JOBS_OVERVIEW),
    "GET /jobs/metrics": Described(
        "Metrics over all running jobs", shapes.AGGREGATED, {**_GET, **_AGG, "jobs": "ids, separated by commas"}
    ),
    "GET /taskmanagers": Described("Where tasks run", shapes.TASK_MANAGERS),
    f"GET {_TM}": Described("An executor, or a process with tasks", shapes.TASK_MANAGER),
    f"GET {_TM}/logs": Described("The logs of a task manager", shapes.LOGS),
    f"GET {_TM}/logs/{{file}}": Described("One of them", "text/plain"),
    f"GET {_TM}/log": Described("What functions have logged in tasks that run there", "text/plain"),
    f"GET {_TM}/stdout": Described("What jobs with tasks there have printed", "text/plain"),
    f"GET {_TM}/thread-dump": Described("What the threads of its Python processes do now", shapes.THREAD_DUMP),
    "GET /jobmanager/config": Described("The settings of the process, without secrets", shapes.SETTINGS),
    "GET /jobmanager/environment": Described("The interpreter of the process", shapes.ENVIRONMENT),
    "GET /jobmanager/thread-dump": Described("What the threads of the process do now", shapes.THREAD_DUMP),
    "GET /jobmanager/logs": Described("The logs of the process", shapes.LOGS),
    "GET /jobmanager/logs/{file}": Described("One of them, at most its last 10 MB", "text/plain"),
    "GET /jobmanager/stdout": Described("What the jobs of the process have printed", "text/plain"),
    "GET /jobmanager/log": Described("The last lines that Penstock logged in the process", "text/plain"),
    "GET /metrics": Described("All metrics of the process and its jobs, in Prometheus' format", "text/plain"),
    "DELETE /cluster": Described("Cancel all jobs; a job manager ends", shapes.NOTHING),
    f"GET {PATH}": Described("This document", MapOf(Anything)),
    f"GET {_JOB}": Described("A job: its vertices, its plan, its times", shapes.JOB_DETAILS),
    f"PATCH {_JOB}": Described("Cancel the job", shapes.NOTHING, {"mode": "cancel, which is the default"}, status=202),
    f"GET {_JOB}/status": Described("The state of a job", shapes.JOB_STATUS),
    f"GET {_JOB}/plan": Described("The graph of a job", shapes.JOB_PLAN),
    f"GET {_JOB}/config": Described("How a job is executed", shapes.JOB_CONFIG),
    f"GET {_JOB}/jobmanager/config": Described("The settings of a job, without secrets", shapes.SETTINGS),
    f"GET {_JOB}/exceptions": Described(
        "What failed, newest first", shapes.EXCEPTIONS, {"maxExceptions": "how many at most"}
    ),
    f"GET {_JOB}/accumulators": Described(
        "Accumulators of a job", shapes.ACCUMULATORS, {"includeSerializedValue": "true: with pickled values"}
    ),
    f"GET {_JOB}/execution-result": Described("How a job has ended", shapes.EXECUTION_RESULT),
    f"GET {_JOB}/metrics": Described("Metrics of a job", shapes.METRICS, _GET),
    f"GET {_JOB}/epochs": Described(
        "What the epochs of a job did over the last minutes, or the last hour; rates are per second, times in ms",
        shapes.EPOCHS,
        {"resolution": "1000 or 10000 (milliseconds)", "since": "only what began after this time (milliseconds)"},
    ),
    f"GET {_JOB}/log": Described(
        "The last lines of the log of a job", shapes.JOB_LOG, {"after": "only lines after the one with this number"}
    ),
    f"GET {_JOB}/progress": Described("How a job is doing, at a glance", shapes.PROGRESS),
    f"GET {_JOB}/stdout": Described("The last lines that a job has printed", shapes.STDOUT),
    f"GET {_CHECKPOINT}": Described("Checkpoints and savepoints of a job", shapes.CHECKPOINTS),
    f"POST {_CHECKPOINT}": Described("Take a checkpoint", shapes.BEGUN, body=_body(checkpointType=str), status=202),
    f"GET {_CHECKPOINT}/config": Described("How checkpoints are taken", shapes.CHECKPOINT_CONFIG),
    f"GET {_CHECKPOINT}/details/{{checkpoint}}": Described("One checkpoint", shapes.CHECKPOINT),
    f"GET {_CHECKPOINT}/details/{{checkpoint}}/subtasks/{{vertex}}": Described(
        "One checkpoint of one vertex, by subtask", shapes.CHECKPOINT_OF_VERTEX
    ),
    f"GET {_CHECKPOINT}/{{trigger}}": Described(
        "What became of a checkpoint that was asked for", shapes.operation({"checkpointId": int}, "failureCause")
    ),
    f"POST {_JOB}/savepoints": Described(
        "Write a savepoint; the job continues, or is cancelled afterwards",
        shapes.BEGUN,
        body=_body(target_directory=str, cancel_job=bool, formatType=str),
        status=202,
    ),
    f"POST {_JOB}/stop": Described(
        "Write a savepoint, and end the job with it",
        shapes.BEGUN,
        body=_body(targetDirectory=str, drain=bool, formatType=str),
        status=202,
    ),
    f"GET {_JOB}/savepoints/{{trigger}}": Described(
        "What became of a savepoint that was asked for", shapes.operation({"location": str}, "failure-cause")
    ),
    "POST /savepoint-disposal": Described(
        "Remove a savepoint", shapes.BEGUN, body=With({"savepoint-path": str}, _ID), status=202
    ),
    "GET /savepoint-disposal/{trigger}": Described("What became of a disposal", shapes.operation({}, "failure-cause")),
    f"GET {_VERTEX}": Described("The subtasks of a vertex", shapes.VERTEX),
    f"GET {_VERTEX}/subtasktimes": Described("When subtasks entered their states", shapes.SUBTASK_TIMES),
    f"GET {_VERTEX}/taskmanagers": Described("A vertex by the machines it runs on", shapes.VERTEX_BY_HOST),
    f"GET {_VERTEX}/watermarks": Described("The watermarks of the subtasks", [{"id": str, "value": str}]),
    f"GET {_VERTEX}/accumulators": Described("Accumulators of a vertex", shapes.VERTEX_ACCUMULATORS),
    f"GET {_VERTEX}/subtasks/accumulators": Described("Accumulators of the subtasks", shapes.SUBTASK_ACCUMULATORS),
    f"GET {_VERTEX}/backpressure": Described("How subtasks have spent the last seconds", shapes.BACKPRESSURE),
    f"GET {_VERTEX}/flamegraph": Described(
        "What the vertex's threads were seen doing; each request samples them for 30 seconds", shapes.FLAME_GRAPH
    ),
    f"GET {_VERTEX}/metrics": Described("Metrics of the subtasks", shapes.METRICS, _GET),
    f"GET {_VERTEX}/subtasks/metrics": Described("Metrics over all subtasks", shapes.AGGREGATED, {**_GET, **_AGG}),
    f"GET {_VERTEX}/subtasks/{{subtask}}": Described("The current attempt of a subtask", shapes.ATTEMPT),
    f"GET {_VERTEX}/subtasks/{{subtask}}/attempts/{{attempt}}": Described("One attempt of a subtask", shapes.ATTEMPT),
    "POST /jobs": Described(
        "Hand a job over to a job manager (Penstock's own clients do)",
        {"jobUrl": str, "jobid": str},
        body=MapOf(Anything),
        status=202,
    ),
    "GET /jars": Described("Programs that were uploaded; all of /jars needs web.submit.enable", shapes.PROGRAMS),
    "POST /jars/upload": Described(
        "Upload a Python program (.py) or an archive of one (.zip, .pyz)",
        {"filename": str, "status": str},
        form={"jarfile": "the file"},
    ),
    "GET /jars/{jar}/plan": Described("The graph of the job that a program executes", shapes.JOB_PLAN),
    "POST /jars/{jar}/plan": Described(
        "The same, for a program that runs with these arguments and settings", shapes.JOB_PLAN, body=shapes.PROGRAM_RUN
    ),
    "POST /jars/{jar}/run": Described(
        "Run a program until it executes a job, and the job from there on", {"jobid": str}, body=shapes.PROGRAM_RUN
    ),
    "DELETE /jars/{jar}": Described("Forget a program", shapes.NOTHING),
    "POST /blobs/missing": Described(
        "Which of these files the job manager does not have", {"missing": [str], "max-size": int}, body={"blobs": [str]}
    ),
    "PUT /blobs/{blob}": Described("Upload a file under its SHA-256", shapes.NOTHING, status=201),
    "GET /jobs/{job}/output": Described("What a job gives to the client that waits for it", "application/x-ndjson"),
}


def operations_of(routes: list[BaseRoute]) -> list[str]:
    """`GET /path` and so on, in the order of the routes."""
    return [
        f"{method} {route.path}"
        for route in routes
        if isinstance(route, Route)
        for method in sorted((route.methods or set()) - {"HEAD"})
    ]


def document(routes: list[BaseRoute], version: str | None) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for each in operations_of(routes):
        method, _, path = each.partition(" ")
        paths.setdefault(path, {})[method.lower()] = _operation(each, path, DESCRIBED[each])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Penstock",
            "version": version or "0",
            "description": "Flink's REST API, as far as Penstock has it. All paths may have /v1 before them.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Errors": schema_of(shapes.ERRORS)},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(name: str, path: str, described: Described) -> dict[str, Any]:
    is_text, names = isinstance(described.answer, str), re.findall(r"{(\w+)}", path)
    answer = {described.answer: {"schema": {"type": "string"}}} if is_text else _json(schema_of(described.answer))
    refused = {"description": "Refused", "content": _json({"$ref": "#/components/schemas/Errors"})}
    operation: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", name).strip("_"),
        "summary": described.summary,
        "parameters": [
            *({"name": each, "in": "path", "required": True, "schema": {"type": "string"}} for each in names),
            *(
                {"name": each, "in": "query", "description": meaning, "schema": {"type": "string"}}
                for each, meaning in described.query.items()
            ),
        ],
        "responses": {
            str(described.status): {"description": described.summary, "content": answer},
            **{str(status): refused for status in (400, 401, 403, 404, 409)},
        },
    }
    if described.body is not None:
        operation["requestBody"] = {"content": _json(schema_of(described.body))}
    if described.form:
        operation["requestBody"] = {
            "required": True,
            "content": {"multipart/form-data": {"schema": _files(described.form)}},
        }
    return operation


def _files(form: dict[str, str]) -> dict[str, Any]:
    files = {
        name: {"type": "string", "contentMediaType": "application/octet-stream", "description": meaning}
        for name, meaning in form.items()
    }
    return {"type": "object", "properties": files, "required": list(form)}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
