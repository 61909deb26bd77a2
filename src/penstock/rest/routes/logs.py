"""The paths of logs, printed output and thread dumps: of the process that runs jobs, and of task managers."""

from __future__ import annotations

from collections.abc import Callable

from starlette.routing import BaseRoute, Route

from penstock.jobmaster.dispatcher import Dispatcher
from penstock.rest.documents import logs, process, task_managers
from penstock.rest.routes.endpoint import Call, Handler, endpoint, text_endpoint

_TM = "/taskmanagers/{taskmanager}"


def log_routes(dispatcher: Dispatcher) -> list[BaseRoute]:
    def get(path: str, handler: Handler) -> Route:
        return Route(path, endpoint(handler), methods=["GET"])

    def text(path: str, handler: Callable[[Call], str]) -> Route:
        return Route(path, text_endpoint(handler), methods=["GET"])

    def wanted(call: Call) -> str:
        return call.path["taskmanager"]

    return [
        get("/jobmanager/logs", lambda _: logs.of_process(dispatcher)),
        text("/jobmanager/logs/{file}", lambda call: logs.file_of_process(dispatcher, call.path["file"])),
        text("/jobmanager/log", lambda _: process.log_tail().text()),
        text("/jobmanager/stdout", lambda _: logs.stdout(dispatcher)),
        get("/taskmanagers", lambda _: task_managers.task_managers(dispatcher)),
        get(_TM, lambda call: task_managers.task_manager(dispatcher, wanted(call))),
        get(f"{_TM}/logs", lambda call: task_managers.logs(dispatcher, wanted(call))),
        text(f"{_TM}/logs/{{file}}", lambda call: task_managers.file(dispatcher, wanted(call), call.path["file"])),
        text(f"{_TM}/log", lambda call: task_managers.log(dispatcher, wanted(call))),
        text(f"{_TM}/stdout", lambda call: task_managers.stdout(dispatcher, wanted(call))),
        get(f"{_TM}/thread-dump", lambda call: task_managers.thread_dump(dispatcher, wanted(call))),
    ]
