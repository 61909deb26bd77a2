"""The shapes of Flink's REST API, of jobs that really run (without Spark)."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Any

import pytest
from free_ports import free_port

from penstock.common import Configuration
from penstock.datastream import MapFunction, StreamExecutionEnvironment
from penstock.datastream.accumulators import IntCounter
from penstock.graph.execution_graph import ExecutionGraph
from penstock.graph.job_graph import build_job_graph
from penstock.rest.client import Address, RestClient, RestClientError
from penstock.rest.documents import executions


def refused(action, *arguments, **query) -> RestClientError:
    with pytest.raises(RestClientError) as caught:
        action(*arguments, **query)
    return caught.value


def test_running_job_is_listed_with_flinks_fields(job):
    (entry,) = [each for each in job.rest.get("/jobs/overview")["jobs"] if each["jid"] == job.id]
    assert entry["name"] == "waiting" and entry["end-time"] == -1 and entry["duration"] >= 0
    assert entry["tasks"]["total"] == 2 and entry["job-type"] == "STREAMING"
    assert {"id": job.id, "status": job.get("/status")["status"]} in job.rest.get("/jobs")["jobs"]


def test_prefix_v1_means_the_same(job):
    assert job.rest.get(f"/v1{job.path}/config") == job.get("/config")


def test_details_report_vertices_and_plan(job):
    details = job.get()
    assert [vertex["name"] for vertex in details["vertices"]] == [
        "Source: Socket Stream -> Map",
        "Keyed Aggregation -> Sink: Print to Std. Out",
    ]
    first, second = (vertex["id"] for vertex in details["vertices"])
    node = details["plan"]["nodes"][1]
    assert (node["id"], node["inputs"]) == (second, [{"num": 0, "id": first, "ship_strategy": "HASH"}])
    assert set(details["timestamps"]) >= {"CREATED", "RUNNING", "FAILED", "FINISHED"}
    assert sum(details["status-counts"].values()) == 2


def test_vertex_reports_its_subtasks(job, eventually):
    # Before the first record, as in Flink.
    vertex = eventually(lambda: next((v["id"] for v in job.get()["vertices"][:1] if v["status"] == "RUNNING"), None))
    told = job.get(f"/vertices/{vertex}")
    assert (told["id"], told["parallelism"], len(told["subtasks"])) == (vertex, 1, 1)
    subtask = told["subtasks"][0]
    assert (subtask["attempt"], subtask["start-time"] > 0, subtask["end-time"]) == (0, True, -1)
    assert job.get(f"/vertices/{vertex}/subtasktimes")["subtasks"][0]["timestamps"]["DEPLOYING"] > 0
    assert job.get(f"/vertices/{vertex}/subtasks/0/attempts/0")["attempt"] == 0
    assert refused(job.get, f"/vertices/{vertex}/subtasks/0/attempts/1").status == 404
    assert refused(job.get, f"/vertices/{vertex}/subtasks/7").status == 404


def test_vertex_reports_what_went_through_it_and_where_it_runs(job, eventually):
    job.send("river\nrain\n")
    vertex = eventually(lambda: next((v for v in job.get()["vertices"][1:] if v["metrics"]["read-records"] == 2), None))
    metrics = vertex["metrics"]
    assert metrics["read-records-complete"] is True and metrics["read-bytes"] > 0
    (host,) = job.get(f"/vertices/{vertex['id']}/taskmanagers")["taskmanagers"]
    assert host["endpoint"] == job.get(f"/vertices/{vertex['id']}")["subtasks"][0]["endpoint"] is not None
    assert job.get(f"/vertices/{vertex['id']}/watermarks")[0]["id"] == "0.currentInputWatermark"


def test_vertex_metrics_are_listed_and_read_by_subtask_and_over_all(job, eventually):
    job.send("river\nrain\n")
    vertex = job.get()["vertices"][1]["id"]
    path = f"/vertices/{vertex}/metrics"
    name = "Sink__Print_to_Std__Out.numRecordsIn"
    eventually(lambda: {"id": f"0.{name}"} in job.get(path))
    eventually(lambda: job.get(path, get=f"0.{name}") == [{"id": f"0.{name}", "value": "2"}])
    assert job.get(f"/vertices/{vertex}/subtasks/metrics", get=name, agg="sum,max") == [
        {"id": name, "sum": 2, "max": 2}
    ]
    assert refused(job.get, f"/vertices/{vertex}/subtasks/metrics", get=name, agg="best").status == 400


def test_job_metrics_give_ids_or_values(job):
    assert {"id": "numRestarts"} in job.get("/metrics")
    assert job.get("/metrics", get="numRestarts,unknown") == [{"id": "numRestarts", "value": "0"}]


def test_settings_that_look_secret_are_hidden(start_job):
    job = start_job({"pipeline.global-job-parameters": "db.password:river,rate:3"})
    assert job.get("/config")["execution-config"]["user-config"] == {"db.password": "******", "rate": "3"}


_CHECKPOINTS = {"execution.checkpointing.interval": "1 min"}
_FIVE_TIMES = {**_CHECKPOINTS, "penstock.restart.repeated-failure-attempts": "5"}


@pytest.mark.parametrize(
    ("settings", "strategy"),
    [
        ({}, "none"),
        (_FIVE_TIMES, "exponential-delay, at most 5 times for the same failure"),
        ({**_CHECKPOINTS, "restart-strategy.type": "exponential-delay"}, "exponential-delay"),
        ({"restart-strategy.type": "FIXED_DELAY"}, "fixed-delay"),
        ({"restart-strategy.type": "off"}, "none"),
    ],
)
def test_an_unbounded_job_reports_its_restart_strategy(start_job, settings, strategy):
    assert start_job(settings).get("/config")["execution-config"]["restart-strategy"] == strategy


@pytest.mark.parametrize(
    ("settings", "strategy"),
    [
        ({}, "none"),
        (_FIVE_TIMES, "none; when workers are lost, exponential-delay, at most 5 times for the same failure"),
        ({**_CHECKPOINTS, "restart-strategy.type": "failure-rate"}, "failure-rate"),
    ],
)
def test_a_bounded_job_of_this_program_reports_that_its_errors_are_not_restarted(job, settings, strategy):
    config = Configuration.from_dict({"execution.target": "inline", **settings})
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.from_collection([1]).map(lambda each: each).print()
    client = env.execute_async("bounded")
    client.get_job_execution_result().result()
    reported = job.rest.get(f"/jobs/{client.get_job_id()}/config")  # By the same process, which keeps ended jobs.
    assert reported["execution-config"]["restart-strategy"] == strategy


def test_what_does_not_exist_is_refused_with_flinks_errors(job):
    assert refused(job.rest.get, "/jobs/" + "0" * 32).status == 404
    assert refused(job.rest.get, "/nothing").status == 404
    assert refused(job.get, "/vertices/" + "0" * 32).status == 404
    assert refused(job.get, "/checkpoints/details/99").status == 404
    assert refused(job.rest.delete, "/jobs").status == 405
    assert str(refused(job.rest.get, "/nothing")) == "Not found: GET /nothing"


def test_ended_job_stays_and_reports_the_same(job):
    job.send("river\n")
    job.end()
    assert job.get("/status") == {"status": "FINISHED"}
    details = job.get()
    assert details["state"] == "FINISHED" and details["end-time"] >= details["start-time"]
    vertex = details["vertices"][1]["id"]
    name = "0.Sink__Print_to_Std__Out.numRecordsIn"
    assert job.get(f"/vertices/{vertex}/metrics", get=name) == [{"id": name, "value": "1"}]
    result = job.get("/execution-result")
    assert result["status"] == {"id": "COMPLETED"}
    assert result["job-execution-result"]["application-status"] == "SUCCEEDED"


def test_failed_job_reports_its_exceptions(start_job):
    job = start_job(define=lambda text: text.map(lambda word: 1 / 0))
    job.send("river\n")
    with pytest.raises(Exception, match="ZeroDivisionError"):
        job.client.get_job_execution_result().result()
    history = job.get("/exceptions")["exceptionHistory"]
    assert history["truncated"] is False
    assert "ZeroDivisionError" in history["entries"][0]["exceptionName"]
    assert job.get("/exceptions", maxExceptions="0") == {"exceptionHistory": {"entries": [], "truncated": True}}
    cause = job.get("/execution-result")["job-execution-result"]["failure-cause"]
    assert "ZeroDivisionError" in cause["stack-trace"]


def test_cluster_documents_count_jobs_and_know_no_task_manager_but_those_of_subtasks(job, eventually, monkeypatch):
    # Another test may have started Spark in this process.
    monkeypatch.setattr("penstock.spark.task_managers.task_managers_here", lambda: None)
    overview = job.rest.get("/overview")
    assert overview["jobs-running"] >= 1
    assert overview["taskmanagers"] is None
    [here] = eventually(lambda: job.rest.get("/taskmanagers")["taskmanagers"])
    assert here["id"] == f"{here['path']}:{os.getpid()}"
    assert job.rest.get("/config")["features"]["web-cancel"] is True
    assert {"key": "execution.target", "value": "inline"} in job.rest.get("/jobmanager/config")


class Counting(MapFunction):
    def __init__(self, name: str) -> None:
        self._name = name

    def open(self, runtime_context):
        self._counter = IntCounter()
        runtime_context.add_accumulator(self._name, self._counter)

    def map(self, value):
        self._counter.add(1)
        return value


def test_accumulators_are_reported_by_job_vertex_and_subtask(start_job, eventually):
    def define(text):
        words = text.map(Counting("words")).set_parallelism(1)
        keyed = words.key_by(lambda word: word).map(Counting("words")).set_parallelism(2)
        return keyed.map(Counting("keyed")).set_parallelism(2)

    def entries(path: str) -> Any:
        return {each["name"]: each["value"] for each in job.get(path)["user-accumulators"]}

    job = start_job(define=define)
    vertices = {each["name"]: f"/vertices/{each['id']}" for each in job.get()["vertices"]}
    [first] = [path for name, path in vertices.items() if "Source" in name]
    [second] = [path for name, path in vertices.items() if "Source" not in name and "Map" in name]
    eventually(lambda: entries(second + "/accumulators") == {"words": "0", "keyed": "0"})
    job.send("a\nb\nc\nd\ne\n")
    eventually(lambda: entries(second + "/accumulators") == {"words": "5", "keyed": "5"})
    assert entries(first + "/accumulators") == {"words": "5"}
    assert {e["name"]: e["value"] for e in job.get("/accumulators")["user-task-accumulators"]} == {
        "words": "10",
        "keyed": "5",
    }
    told = job.get(second + "/subtasks/accumulators")
    assert (told["parallelism"], [each["subtask"] for each in told["subtasks"]]) == (2, [0, 1])
    counts = [int(e["value"]) for each in told["subtasks"] for e in each["user-accumulators"] if e["name"] == "keyed"]
    assert sum(counts) == 5 and len(counts) == 2
    job.end()
    assert job.get(second + "/subtasks/accumulators") == told, "it stays as the job left it"


def test_attempt_that_has_entered_no_state_yet_can_be_reported():
    graph = ExecutionGraph(build_job_graph(_environment_with_a_job().get_stream_graph()))
    told = [executions.attempt(each, each.current) for each in graph.vertices()]
    assert told and all(set(each["status-duration"].values()) == {-1} for each in told)
    assert {(each["status"], each["start-time"], each["duration"]) for each in told} == {("CREATED", -1, -1)}


def _environment_with_a_job() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.from_collection([1]).print()
    return env


def test_checkpoint_settings_are_the_jobs(start_job):
    job = start_job({"execution.checkpointing.interval": "10 s", "execution.checkpointing.min-pause": "1 s"})
    told = job.get("/checkpoints/config")
    assert (told["mode"], told["interval"], told["min_pause"]) == ("exactly_once", 10_000, 1_000)
    assert job.get("/checkpoints")["counts"].keys() == {"restored", "total", "in_progress", "completed", "failed"}


def test_job_of_a_plain_program_is_gone_from_the_folder_after_its_end(job):
    from penstock.rest import sockets

    assert job.id in sockets.announced_jobs()
    job.end()
    assert job.id not in sockets.announced_jobs()


def test_named_port_answers_too(start_job):
    port = free_port()
    job = start_job({"rest.bind-port": f"{port}-{port}"})
    told = RestClient(Address(host="127.0.0.1", port=port)).get("/jobs")["jobs"]
    assert job.id in [each["id"] for each in told]


def test_port_that_is_taken_does_no_harm_to_the_job(job, caplog):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        config = Configuration.from_dict({"execution.target": "inline", "rest.port": str(port)})
        env = StreamExecutionEnvironment.get_execution_environment(config)
        env.from_collection([1]).print()
        env.execute()
    assert f"cannot listen on 127.0.0.1, port {port}" in caplog.text
