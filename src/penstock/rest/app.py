"""The REST API as an ASGI application: Flink's paths, with or without `/v1` before them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from penstock.common import config_keys as keys
from penstock.common.redaction import redacted_text
from penstock.jobmaster.dispatcher import Dispatcher
from penstock.jobmaster.metrics import prometheus
from penstock.jobmaster.metrics.samples import of_process
from penstock.rest.description import openapi
from penstock.rest.documents import cluster as cluster_documents
from penstock.rest.documents import jobs as job_documents
from penstock.rest.documents import metrics as metric_documents
from penstock.rest.documents import process as process_documents
from penstock.rest.documents.cluster import penstock_version
from penstock.rest.routes.commands import DISPOSALS, Commands, checkpoints_of, savepoints_of
from penstock.rest.routes.dashboard import dashboard_routes
from penstock.rest.routes.documents import document_routes
from penstock.rest.routes.endpoint import Call, Handler, endpoint
from penstock.rest.routes.errors import RestError
from penstock.rest.routes.json_response import JsonResponse
from penstock.rest.routes.logs import log_routes
from penstock.rest.routes.operations import Operations
from penstock.rest.security.browser_guard import BrowserGuard
from penstock.rest.security.limits import MOST_BYTES, BodyLimit


def build_app(
    dispatcher: Dispatcher,
    operations: Operations,
    shut_down: Callable[[], None],
    more_routes: Sequence[BaseRoute] = (),
) -> Starlette:
    """The application. `shut_down` is what DELETE /cluster does; `more_routes` come first."""
    routes: list[BaseRoute] = [*more_routes, *_routes(dispatcher, operations, shut_down)]
    takes_programs = "POST /jars/upload" in openapi.operations_of(routes) and dispatcher.config.get(keys.WEB_SUBMIT)
    config = endpoint(lambda _: cluster_documents.web_config(dispatcher, takes_programs))
    routes.append(Route("/config", config, methods=["GET"]))
    most_in_file = dispatcher.config.get(keys.REST_MAX_CONTENT)
    described = endpoint(lambda _: openapi.document(routes, penstock_version()))
    routes.append(Route(openapi.PATH, described, methods=["GET"]))
    return Starlette(
        routes=[
            *(dashboard_routes() if dispatcher.config.get(keys.WEB_UI_ENABLED) else ()),
            *routes,
            Mount("/v1", routes=routes),
        ],
        middleware=[
            Middleware(BrowserGuard, address=dispatcher.config.get_optional(keys.REST_ADDRESS)),
            Middleware(BodyLimit, most_bytes=min(MOST_BYTES, most_in_file), most_in_file=most_in_file),
        ],
        exception_handlers={RestError: _refused, HTTPException: _no_such_path, Exception: _broken},
    )


def errors(status: int, *messages: str) -> JsonResponse:
    return JsonResponse({"errors": list(messages)}, status)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, RestError)
    return errors(error.status, str(error))


async def _no_such_path(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = "Method not allowed" if error.status_code == 405 else "Not found"
    refusal = errors(error.status_code, f"{what}: {request.method} {request.url.path}")
    refusal.headers.update(error.headers or {})  # Which methods there are
    return refusal


async def _broken(_: Request, error: Exception) -> Response:
    return errors(500, "Internal server error.", redacted_text(f"{type(error).__name__}: {error}"))


def _routes(dispatcher: Dispatcher, operations: Operations, shut_down: Callable[[], None]) -> list[BaseRoute]:
    return [
        *_cluster_routes(dispatcher, shut_down),
        *document_routes(dispatcher),  # Before the operations: checkpoints/config is not the id of a trigger
        *_operation_routes(Commands(dispatcher, operations), operations),
    ]


def _cluster_routes(dispatcher: Dispatcher, shut_down: Callable[[], None]) -> list[BaseRoute]:
    def get(path: str, make: Callable[[Dispatcher], Any]) -> Route:
        return Route(path, endpoint(lambda _: make(dispatcher)), methods=["GET"])

    def end(_: Call) -> dict[str, Any]:
        shut_down()
        return {}

    return [
        get("/overview", cluster_documents.cluster_overview),
        get("/jobs", cluster_documents.jobs),
        get("/jobs/overview", cluster_documents.jobs_overview),
        Route("/jobs/metrics", endpoint(lambda call: _metrics_of_jobs(dispatcher, call)), methods=["GET"]),
        get("/jobmanager/config", lambda dispatcher: job_documents.all_settings(dispatcher.config)),
        get("/jobmanager/environment", lambda _: process_documents.environment()),
        get("/jobmanager/thread-dump", lambda _: process_documents.thread_dump()),
        *log_routes(dispatcher),
        Route("/metrics", _prometheus_of(dispatcher), methods=["GET"]),
        Route("/cluster", endpoint(end), methods=["DELETE"]),
    ]


def _prometheus_of(dispatcher: Dispatcher) -> Callable[[Request], Any]:
    async def answer(_: Request) -> Response:
        text = await run_in_threadpool(lambda: prometheus.as_text(of_process(dispatcher)))
        return Response(text, media_type=prometheus.CONTENT_TYPE)

    return answer


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
