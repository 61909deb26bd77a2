"""The REST API as an ASGI application: Flink's paths, with or without `/v1` before them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from penstock.common import config_keys as keys
from penstock.jobmaster.dispatcher import Dispatcher
from penstock.rest import (
    accumulator_documents,
    checkpoint_documents,
    cluster_documents,
    job_documents,
    metric_documents,
)
from penstock.rest.browser_guard import BrowserGuard
from penstock.rest.commands import DISPOSALS, Commands, checkpoints_of, savepoints_of
from penstock.rest.documents import OF_JOB, OF_VERTEX, OVERVIEW, document
from penstock.rest.errors import RestError, bad_request
from penstock.rest.lookup import find_job
from penstock.rest.operations import Operations

_CHECKPOINT = "/checkpoints/details/{checkpoint}"
_CUT = (OVERVIEW, "/metrics", "/exceptions", "/accumulators")
"""Documents that are not answered whole."""


@dataclass(frozen=True)
class Call:
    """A request, as the handlers see it."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes

    @property
    def job_id(self) -> str:
        return self.path["job"]

    def json(self) -> dict[str, Any]:
        try:
            content = json.loads(self.body or b"{}")
        except ValueError as error:
            raise bad_request(f"the body is not JSON: {error}") from error
        if not isinstance(content, dict):
            raise bad_request(f"the body must be a JSON object, got {content!r}")
        return content


Handler = Callable[[Call], Any]


def build_app(
    dispatcher: Dispatcher,
    operations: Operations,
    shut_down: Callable[[], None],
    more_routes: Sequence[BaseRoute] = (),
) -> Starlette:
    """The application. `shut_down` is what DELETE /cluster does; `more_routes` come first."""
    routes = [*more_routes, *_routes(dispatcher, operations, shut_down)]
    return Starlette(
        routes=[*routes, Mount("/v1", routes=routes)],
        middleware=[Middleware(BrowserGuard, address=dispatcher.config.get_optional(keys.REST_ADDRESS))],
        exception_handlers={RestError: _refused, HTTPException: _no_such_path, Exception: _broken},
    )


def endpoint(handler: Handler, status: int = 200) -> Callable[[Request], Any]:
    """Handlers run in threads: none of them holds up another request."""

    async def respond(request: Request) -> Response:
        call = Call(request.path_params, request.query_params, await request.body())
        return JSONResponse(await run_in_threadpool(handler, call), status)

    return respond


def errors(status: int, *messages: str) -> JSONResponse:
    return JSONResponse({"errors": list(messages)}, status)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, RestError)
    return errors(error.status, str(error))


async def _no_such_path(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = "Method not allowed" if error.status_code == 405 else "Not found"
    return errors(error.status_code, f"{what}: {request.method} {request.url.path}")


async def _broken(_: Request, error: Exception) -> Response:
    return errors(500, "Internal server error.", f"{type(error).__name__}: {error}")


def _routes(dispatcher: Dispatcher, operations: Operations, shut_down: Callable[[], None]) -> list[BaseRoute]:
    return [
        *_cluster_routes(dispatcher, shut_down),
        *_document_routes(dispatcher),  # Before the operations: checkpoints/config is not the id of a trigger
        *_operation_routes(Commands(dispatcher, operations), operations),
    ]


def _cluster_routes(dispatcher: Dispatcher, shut_down: Callable[[], None]) -> list[BaseRoute]:
    def get(path: str, make: Callable[[Dispatcher], Any]) -> Route:
        return Route(path, endpoint(lambda _: make(dispatcher)), methods=["GET"])

    def end(_: Call) -> dict[str, Any]:
        shut_down()
        return {}

    return [
        get("/config", cluster_documents.web_config),
        get("/overview", cluster_documents.cluster_overview),
        get("/jobs", cluster_documents.jobs),
        get("/jobs/overview", cluster_documents.jobs_overview),
        Route("/jobs/metrics", endpoint(lambda call: _metrics_of_jobs(dispatcher, call)), methods=["GET"]),
        get("/taskmanagers", cluster_documents.task_managers),
        get("/jobmanager/config", lambda dispatcher: job_documents.all_settings(dispatcher.config)),
        Route("/cluster", endpoint(end), methods=["DELETE"]),
    ]


def _metrics_of_jobs(dispatcher: Dispatcher, call: Call) -> list[dict[str, Any]]:
    """Over all running jobs, or those that `jobs` names."""
    chosen = call.query.get("jobs")
    facts: dict[str, dict[str, Any]] = {}
    for job in dispatcher.running():
        if chosen is None or job.job_id in chosen.split(","):
            for name, value in metric_documents.job_metrics(job).items():
                facts.setdefault(name, {"subtasks": {}})["subtasks"][job.job_id] = value
    return metric_documents.aggregated(facts, call.query.get("get"), call.query.get("agg"))


def _operation_routes(commands: Commands, operations: Operations) -> list[BaseRoute]:
    def post(path: str, handler: Handler) -> Route:
        return Route(path, endpoint(handler, 202), methods=["POST"])

    def get(path: str, family: Callable[[Call], str], result_name: str | None, cause_name: str) -> Route:
        def answer(call: Call) -> dict[str, Any]:
            return operations.result(family(call), call.path["trigger"], result_name, cause_name)

        return Route(path, endpoint(answer), methods=["GET"])

    def cancel(call: Call) -> dict[str, Any]:
        return commands.cancel(call.job_id, call.query.get("mode", "cancel"))

    return [
        Route("/jobs/{job}", endpoint(cancel, 202), methods=["PATCH"]),
        post("/jobs/{job}/savepoints", lambda call: commands.savepoint(call.job_id, call.json())),
        post("/jobs/{job}/stop", lambda call: commands.stop(call.job_id, call.json())),
        post("/jobs/{job}/checkpoints", lambda call: commands.checkpoint(call.job_id, call.json())),
        post("/savepoint-disposal", lambda call: commands.dispose(call.json())),
        get("/jobs/{job}/savepoints/{trigger}", lambda c: savepoints_of(c.job_id), "location", "failure-cause"),
        get("/savepoint-disposal/{trigger}", lambda _: DISPOSALS, None, "failure-cause"),
        get("/jobs/{job}/checkpoints/{trigger}", lambda c: checkpoints_of(c.job_id), "checkpointId", "failureCause"),
    ]


def _document_routes(dispatcher: Dispatcher) -> list[BaseRoute]:
    def get(path: str, handler: Handler) -> Route:
        return Route(f"/jobs/{{job}}{path}", endpoint(handler), methods=["GET"])

    def of_job(path: str) -> Handler:
        return lambda call: document(find_job(dispatcher, call.job_id), path, OF_JOB[path])

    def of_vertex(path: str) -> Handler:
        def answer(call: Call) -> Any:
            vertex = call.path["vertex"]
            job = find_job(dispatcher, call.job_id)
            return document(job, f"/vertices/{vertex}{path}", lambda job: OF_VERTEX[path](job, vertex))

        return answer

    def vertex_metrics(call: Call) -> dict[str, Any]:
        facts: dict[str, Any] = of_vertex("/metrics")(call)
        return facts

    return [
        *(get(path, of_job(path)) for path in OF_JOB if path not in _CUT),
        get("/accumulators", lambda call: _accumulators(of_job("/accumulators")(call), call)),
        get("/exceptions", lambda call: _cut_exceptions(dispatcher, of_job("/exceptions")(call), call)),
        get("/metrics", lambda call: metric_documents.selected(of_job("/metrics")(call), call.query.get("get"))),
        get(_CHECKPOINT, _checkpoint(dispatcher)),
        get(_CHECKPOINT + "/subtasks/{vertex}", _checkpoint_task(dispatcher)),
        get(
            "/vertices/{vertex}/metrics",
            lambda c: metric_documents.selected(metric_documents.by_subtask(vertex_metrics(c)), c.query.get("get")),
        ),
        get(
            "/vertices/{vertex}/subtasks/metrics",
            lambda c: metric_documents.aggregated(vertex_metrics(c), c.query.get("get"), c.query.get("agg")),
        ),
        *(get(f"/vertices/{{vertex}}{path}", of_vertex(path)) for path in OF_VERTEX if path != "/metrics"),
    ]


def _accumulators(told: dict[str, Any], call: Call) -> dict[str, Any]:
    has_values = call.query.get("includeSerializedValue", "false").lower() == "true"
    return told if has_values else accumulator_documents.without_values(told)


def _cut_exceptions(dispatcher: Dispatcher, told: dict[str, Any], call: Call) -> dict[str, Any]:
    limit = call.query.get("maxExceptions", str(dispatcher.config.get(keys.WEB_EXCEPTION_HISTORY)))
    if not limit.isdigit():
        raise bad_request(f"maxExceptions must be a number, got {limit!r}")
    return job_documents.at_most(told, int(limit))


def _checkpoint(dispatcher: Dispatcher) -> Handler:
    def answer(call: Call) -> Any:
        checkpoint = call.path["checkpoint"]
        return document(
            find_job(dispatcher, call.job_id),
            f"/checkpoints/details/{checkpoint}",
            lambda job: checkpoint_documents.details(job, checkpoint),
        )

    return answer


def _checkpoint_task(dispatcher: Dispatcher) -> Handler:
    def answer(call: Call) -> Any:
        checkpoint, vertex = call.path["checkpoint"], call.path["vertex"]
        return document(
            find_job(dispatcher, call.job_id),
            f"/checkpoints/details/{checkpoint}/subtasks/{vertex}",
            lambda job: checkpoint_documents.task_details(job, checkpoint, vertex),
        )

    return answer
