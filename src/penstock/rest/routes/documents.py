"""The paths of the documents about jobs, and what requests select from them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from starlette.routing import BaseRoute, Route

from penstock.common import config_keys as keys
from penstock.jobmaster.dispatcher import Dispatcher, RunningJob
from penstock.rest.documents import accumulators as accumulator_documents
from penstock.rest.documents import checkpoints as checkpoint_documents
from penstock.rest.documents import epochs as epoch_documents
from penstock.rest.documents import jobs as job_documents
from penstock.rest.documents import metrics as metric_documents
from penstock.rest.documents.by_path import ATTEMPTS, OF_JOB, OF_VERTEX, OVERVIEW, document
from penstock.rest.documents.vertices import pick_attempt
from penstock.rest.routes.endpoint import Call, Handler, endpoint, shown
from penstock.rest.routes.errors import bad_request
from penstock.rest.routes.lookup import find_job

_NUMBER = re.compile(r"[0-9]{1,9}")

# Documents that are not answered whole.
_CUT_OF_JOB = (OVERVIEW, "/metrics", "/exceptions", "/accumulators", "/epochs", "/log")
_CUT_OF_VERTEX = ("/metrics", ATTEMPTS)


def document_routes(dispatcher: Dispatcher) -> list[BaseRoute]:
    documents = _Documents(dispatcher)
    answers: dict[str, Handler] = {
        **{path: documents.of_job(path) for path in OF_JOB if path not in _CUT_OF_JOB},
        "/accumulators": documents.accumulators,
        "/exceptions": documents.exceptions,
        "/metrics": documents.metrics,
        "/epochs": documents.epochs,
        "/log": documents.log,
        "/checkpoints/details/{checkpoint}": documents.checkpoint,
        "/checkpoints/details/{checkpoint}/subtasks/{vertex}": documents.checkpoint_of_vertex,
        **{
            f"/vertices/{{vertex}}{path}": documents.of_vertex(path) for path in OF_VERTEX if path not in _CUT_OF_VERTEX
        },
        "/vertices/{vertex}/metrics": documents.vertex_metrics,
        "/vertices/{vertex}/subtasks/metrics": documents.aggregated_metrics,
        "/vertices/{vertex}/subtasks/{subtask}": documents.attempt,
        "/vertices/{vertex}/subtasks/{subtask}/attempts/{attempt}": documents.attempt,
    }
    return [Route(f"/jobs/{{job}}{path}", endpoint(handler), methods=["GET"]) for path, handler in answers.items()]


class _Documents:
    """Handlers: each finds its job, has the document made or takes the kept one, and cuts what was asked for."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def _document(self, call: Call, path: str, make: Callable[[RunningJob], Any]) -> Any:
        return document(find_job(self._dispatcher, call.job_id), path, make)

    def of_job(self, path: str) -> Handler:
        return lambda call: self._document(call, path, OF_JOB[path])

    def of_vertex(self, path: str) -> Handler:
        def answer(call: Call) -> Any:
            vertex = call.path["vertex"]
            return self._document(call, f"/vertices/{vertex}{path}", lambda job: OF_VERTEX[path](job, vertex))

        return answer

    def accumulators(self, call: Call) -> dict[str, Any]:
        document: dict[str, Any] = self.of_job("/accumulators")(call)
        has_values = call.query.get("includeSerializedValue", "false").lower() == "true"
        return document if has_values else accumulator_documents.without_values(document)

    def exceptions(self, call: Call) -> dict[str, Any]:
        limit = call.query.get("maxExceptions", str(self._dispatcher.config.get(keys.WEB_EXCEPTION_HISTORY)))
        if not _NUMBER.fullmatch(limit):
            raise bad_request(f"maxExceptions must be a number, got {shown(limit)}")
        return job_documents.at_most(self.of_job("/exceptions")(call), int(limit))

    def metrics(self, call: Call) -> list[dict[str, str]]:
        return metric_documents.selected(self.of_job("/metrics")(call), call.query.get("get"))

    def epochs(self, call: Call) -> Any:
        """What an ended job has left is reported as a whole."""
        resolution, since = call.query.get("resolution", "1000"), call.query.get("since", "0")
        return self._document(call, "/epochs", lambda job: epoch_documents.since(job, resolution, since))

    def log(self, call: Call) -> dict[str, Any]:
        after = call.query.get("after", "-1")
        if after != "-1" and not _NUMBER.fullmatch(after):
            raise bad_request(f"after must be the number of a line, got {shown(after)}")
        return job_documents.log_after(self.of_job("/log")(call), int(after))

    def vertex_metrics(self, call: Call) -> list[dict[str, str]]:
        facts = metric_documents.by_subtask(self.of_vertex("/metrics")(call))
        return metric_documents.selected(facts, call.query.get("get"))

    def aggregated_metrics(self, call: Call) -> list[dict[str, Any]]:
        facts = self.of_vertex("/metrics")(call)
        return metric_documents.aggregated(facts, call.query.get("get"), call.query.get("agg"))

    def attempt(self, call: Call) -> dict[str, Any]:
        return pick_attempt(self.of_vertex(ATTEMPTS)(call), call.path["subtask"], call.path.get("attempt"))

    def checkpoint(self, call: Call) -> Any:
        checkpoint = call.path["checkpoint"]
        return self._document(
            call,
            f"/checkpoints/details/{checkpoint}",
            lambda job: checkpoint_documents.details(job, checkpoint),
        )

    def checkpoint_of_vertex(self, call: Call) -> Any:
        checkpoint, vertex = call.path["checkpoint"], call.path["vertex"]
        return self._document(
            call,
            f"/checkpoints/details/{checkpoint}/subtasks/{vertex}",
            lambda job: checkpoint_documents.task_details(job, checkpoint, vertex),
        )
