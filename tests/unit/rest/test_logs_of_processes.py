"""Logs, printed output and threads of the process and of task managers, in Flink's shapes."""

from __future__ import annotations

import logging
import os
import platform
import time
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Configuration
from penstock.jobmaster.dispatcher import Dispatcher
from penstock.rest.client import RestClientError
from penstock.rest.documents import logs
from penstock.rest.routes.errors import RestError

JOB_LOG = f"penstock-{'ab' * 16}.log"


@pytest.fixture(autouse=True)
def no_spark(monkeypatch):
    """Another test may have started Spark in this process."""
    monkeypatch.setattr("penstock.spark.task_managers.task_managers_here", lambda: None)


def noisy(text: Any) -> Any:
    def say(word: str) -> str:
        logging.getLogger("fish").warning("saw %s", word)
        return word

    return text.map(say).name("say")


def text_at(job: Any, path: str) -> str:
    with job.rest.open("GET", path) as answer:
        return str(answer.read().decode())


def with_log_folder(folder: Any) -> Dispatcher:
    return Dispatcher(lambda job: {}, Configuration.from_dict({"env.log.dir": str(folder)}))


def test_process_and_its_task_manager_report_what_was_logged_and_printed(start_job, eventually):
    job = start_job(define=noisy)
    job.send("river\n")
    eventually(lambda: job.get("/stdout")["lines"])
    names = {each["name"]: each for each in job.rest.get("/jobmanager/logs")["logs"]}
    assert names.keys() == {"penstock.log", "penstock.out"} and names["penstock.out"]["size"] > 0
    assert "river\n" in text_at(job, "/jobmanager/stdout")
    assert text_at(job, "/jobmanager/logs/penstock.out") == text_at(job, "/jobmanager/stdout")
    assert text_at(job, "/jobmanager/logs/penstock.log") == text_at(job, "/jobmanager/log")

    here = f"{platform.node()}:{os.getpid()}"
    assert here in [each["id"] for each in job.rest.get("/taskmanagers")["taskmanagers"]]
    at = f"/taskmanagers/{quote(here)}"
    assert job.rest.get(at)["id"] == here
    assert text_at(job, f"{at}/log").endswith("fish - saw river\n")
    assert "river\n" in text_at(job, f"{at}/stdout")
    sizes = {each["name"]: each["size"] for each in job.rest.get(f"{at}/logs")["logs"]}
    assert sizes.keys() == {"taskmanager.log", "taskmanager.out"}
    assert sizes["taskmanager.log"] == len(text_at(job, f"{at}/logs/taskmanager.log").encode())


def test_thread_dump_shows_where_a_function_is(start_job, eventually, tmp_path):
    gate = tmp_path / "open"

    def stuck_in_the_mud(word: str) -> str:
        while word == "mud" and not gate.exists():
            time.sleep(0.01)
        return word

    job = start_job(define=lambda text: text.map(lambda word: word).map(stuck_in_the_mud))
    job.send("dry\n")
    eventually(lambda: job.rest.get("/taskmanagers")["taskmanagers"])  # It is known from the first epoch on.
    job.send("mud\n")
    for at in ("/jobmanager", f"/taskmanagers/{quote(platform.node())}:{os.getpid()}"):

        def is_seen(at: str = at) -> bool:
            return any("stuck_in_the_mud" in each["stringifiedThreadInfo"] for each in threads_of(job, at))

        eventually(is_seen)
    assert "MainThread" in [each["threadName"] for each in threads_of(job, "/jobmanager")]
    gate.touch()


def threads_of(job: Any, at: str) -> list[dict[str, str]]:
    told: list[dict[str, str]] = job.rest.get(f"{at}/thread-dump")["threadInfos"]
    return told


@pytest.mark.parametrize("path", ["", "/log", "/stdout", "/logs", "/logs/taskmanager.log", "/thread-dump"])
def test_task_manager_that_is_not_there_is_not_found(job, path):
    with pytest.raises(RestClientError) as refused:
        job.rest.get(f"/taskmanagers/none:1{path}")
    assert refused.value.status == 404


def test_log_files_of_jobs_are_listed_and_read_and_nothing_else(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / JOB_LOG).write_text("kept\n")
    (folder / f"{JOB_LOG}.1").write_text("older\n")
    (folder / "passwords.txt").write_text("secret")
    (tmp_path / "outside").write_text("secret")
    (folder / f"penstock-{'cd' * 16}.log").symlink_to(tmp_path / "outside")
    dispatcher = with_log_folder(folder)
    names = [each["name"] for each in logs.of_process(dispatcher)["logs"]]
    assert names == ["penstock.log", "penstock.out", JOB_LOG, f"{JOB_LOG}.1"]
    assert logs.file_of_process(dispatcher, JOB_LOG) == "kept\n"
    assert logs.file_of_process(dispatcher, f"{JOB_LOG}.1") == "older\n"
    for name in (
        "passwords.txt",
        f"penstock-{'cd' * 16}.log",
        f"../logs/{JOB_LOG}",
        "../outside",
        str(folder / JOB_LOG),
    ):
        with pytest.raises(RestError, match="There is no log of that name"):
            logs.file_of_process(dispatcher, name)


@settings(max_examples=200)
@given(st.lists(st.sampled_from(["..", ".", "/", "%2e", "\\", "outside", JOB_LOG, "\0", "~"]), max_size=6).map("".join))
def test_no_name_leads_out_of_the_folder(tmp_path_factory, name):
    root = tmp_path_factory.getbasetemp() / "escapes"
    (root / "logs").mkdir(parents=True, exist_ok=True)
    (root / "outside").write_text("secret")
    (root / "logs" / JOB_LOG).write_text("kept")
    try:
        assert logs.file_of_process(with_log_folder(root / "logs"), name) == "kept" and name == JOB_LOG
    except RestError as refused:
        assert refused.status == 404
