"""Where tasks run: Spark's executors where they are known, otherwise the processes that tasks have reported.

What functions log and print in them comes to the driver, so it is reported from what the driver knows of their jobs.
"""

from __future__ import annotations

import os
import platform
import socket
import time
from collections import Counter
from typing import Any

from penstock.jobmaster.dispatcher import Dispatcher, RunningJob
from penstock.rest.documents.logs import LogFile, listing, stdout_of
from penstock.rest.documents.process import thread_infos
from penstock.rest.routes.errors import RestError, not_found
from penstock.runtime.thread_dump import ProcessThreads, threads_here

LOG_NAME, STDOUT_NAME = "taskmanager.log", "taskmanager.out"


def task_managers(dispatcher: Dispatcher) -> dict[str, Any]:
    hosts = dispatcher.hosts()
    return {"taskmanagers": _processes(dispatcher) if hosts is None else hosts}


def _processes(dispatcher: Dispatcher) -> list[dict[str, Any]]:
    slots: Counter[tuple[str, int]] = Counter()
    for job in dispatcher.running():
        of_job = Counter(
            (each.current.facts.host, each.current.facts.process, each.job_vertex.id)
            for each in job.master.execution_graph.vertices()
        )
        # Subtasks of different vertices share slots.
        for process in {(host, process) for host, process, _ in of_job if host is not None and process is not None}:
            slots[process] += max(count for (*where, _), count in of_job.items() if tuple(where) == process)
    return [
        {"id": _process_id(host, process), "path": host, "slotsNumber": count, "freeSlots": 0}
        for (host, process), count in sorted(slots.items())
    ]


def _process_id(host: str, process: int) -> str:
    return f"{host}:{process}"


def task_manager(dispatcher: Dispatcher, wanted: str) -> dict[str, Any]:
    for each in task_managers(dispatcher)["taskmanagers"]:
        if each["id"] == wanted:
            found: dict[str, Any] = each
            return found
    raise not_found("There is no such task manager; GET /taskmanagers lists them")


class _Place:
    """Says which processes belong to a task manager.

    A process of an executor reports its machine, not the executor: those of one machine cannot be distinguished.
    """

    def __init__(self, dispatcher: Dispatcher, wanted: str) -> None:
        entry = task_manager(dispatcher, wanted)
        self._id = wanted
        self._is_process = dispatcher.hosts() is None
        self._is_only_one = len(task_managers(dispatcher)["taskmanagers"]) == 1
        self._names = _names_of(str(entry["path"]).rpartition(":")[0] or str(entry["path"]))

    def holds(self, host: str | None, process: int | None) -> bool:
        if host is None or process is None:
            return False
        if self._is_process:
            return _process_id(host, process) == self._id
        return self._is_only_one or bool(self._names & _names_of(host))

    def tasks_of(self, job: RunningJob) -> set[tuple[str, int]]:
        """The names and subtasks of a job's tasks in it."""
        return {
            (each.job_vertex.name, each.subtask)
            for each in job.master.execution_graph.vertices()
            if self.holds(each.current.facts.host, each.current.facts.process)
        }


def _names_of(host: str) -> set[str]:
    try:
        return {host.lower(), socket.gethostbyname(host)}
    except OSError:
        return {host.lower()}


def log(dispatcher: Dispatcher, wanted: str) -> str:
    """What functions have logged in tasks that run there now."""
    place = _Place(dispatcher, wanted)
    lines = [text for job in dispatcher.running() for text in job.master.log.texts_of(place.tasks_of(job))]
    return "".join(f"{line}\n" for line in lines)


def stdout(dispatcher: Dispatcher, wanted: str) -> str:
    """What jobs that have tasks there have printed: lines do not say by which of their tasks."""
    place = _Place(dispatcher, wanted)
    return stdout_of(job for job in dispatcher.running() if place.tasks_of(job))


def logs(dispatcher: Dispatcher, wanted: str) -> dict[str, Any]:
    now_ms = int(time.time() * 1000)
    texts = {LOG_NAME: log(dispatcher, wanted), STDOUT_NAME: stdout(dispatcher, wanted)}
    return listing(LogFile(name, len(text.encode()), now_ms) for name, text in texts.items())


def file(dispatcher: Dispatcher, wanted: str, name: str) -> str:
    if name == LOG_NAME:
        return log(dispatcher, wanted)
    if name == STDOUT_NAME:
        return stdout(dispatcher, wanted)
    raise not_found(f"There is no log of that name; it is {LOG_NAME} or {STDOUT_NAME}")


def thread_dump(dispatcher: Dispatcher, wanted: str) -> dict[str, Any]:
    """What the threads of its Python processes do now. Tasks of batch mode cannot be asked."""
    place = _Place(dispatcher, wanted)
    answers = [each for job in dispatcher.running() if place.tasks_of(job) for each in job.master.threads()]
    found = {each.process: each for each in answers if place.holds(each.host, each.process)}
    if place.holds(platform.node(), os.getpid()) and not found:
        found[os.getpid()] = ProcessThreads(platform.node(), os.getpid(), threads_here())
    if not found:
        raise RestError(409, f"No process of task manager {wanted} has answered; ask again when a job runs there")
    return thread_infos(list(found.values()))
