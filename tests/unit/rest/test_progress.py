"""How a job is doing, at a glance: in streaming and in batch mode, while it runs and after its end."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from penstock.cli.commands import main
from penstock.common import Configuration
from penstock.datastream import MapFunction, StreamExecutionEnvironment
from penstock.jobmaster.dispatcher import RunningJob
from penstock.rest.documents.jobs import details
from penstock.rest.documents.progress import progress


def passing(gate: Path, at: int) -> Any:
    """A function that waits at one element until there is a file."""

    def function(value: int) -> int:
        while value == at and not gate.exists():
            threading.Event().wait(0.01)
        return value

    return function


def start(gate: Path, settings: dict[str, str], gate_at: int) -> Any:
    config = Configuration.from_dict({"execution.target": "inline", **settings})
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.from_sequence(1, 100).key_by(lambda value: value % 2).map(passing(gate, gate_at)).print()
    return env.execute_async("waiting")


def told(client: Any) -> dict[str, Any]:
    return progress(RunningJob(client, Configuration()))


def test_share_of_a_bounded_input_is_reported_while_it_is_read(eventually, tmp_path):
    client = start(tmp_path / "open", {"penstock.epoch.max-records": "10"}, gate_at=51)
    # The epoch that runs is planned: what it reads counts as read.
    eventually(lambda: (told(client)["records"], told(client)["share-done"]) == (50, 0.6))
    assert told(client)["state"] == "RUNNING"
    (tmp_path / "open").touch()
    client.get_job_execution_result().result()
    assert (told(client)["records"], told(client)["share-done"]) == (100, None)


def test_batch_job_runs_and_counts_before_its_end(eventually, tmp_path):
    client = start(tmp_path / "open", {"execution.runtime-mode": "BATCH"}, gate_at=1)
    eventually(lambda: told(client)["records"] == 100)
    now, document = told(client), details(RunningJob(client, Configuration()))
    assert now["state"] == "RUNNING" and 0 < now["share-done"] < 1 and now["records-per-second"] > 0
    source, behind = document["vertices"][:2]
    assert (source["status"], source["metrics"]["read-records"]) == ("RUNNING", 100)
    assert (behind["status"], behind["metrics"]["read-records"]) == ("RUNNING", 0)
    (tmp_path / "open").touch()
    client.get_job_execution_result().result()
    assert told(client)["records"] == 100, "what was noted before is not counted again"
    assert {each["status"] for each in details(RunningJob(client, Configuration()))["vertices"]} == {"FINISHED"}


def test_stopped_job_reports_its_savepoint_and_failed_one_its_failure(start_job, tmp_path):
    stopped = start_job()
    path = stopped.client.stop_with_savepoint(False, str(tmp_path)).result()
    stopped.client.get_job_execution_result().result()
    assert stopped.get("/progress")["savepoint"] == path
    failing = start_job(define=lambda text: text.map(lambda word: 1 / 0))
    failing.send("river\n")
    with pytest.raises(Exception, match="ZeroDivisionError"):
        failing.client.get_job_execution_result().result()
    assert "ZeroDivisionError" in failing.get("/progress")["failure"]


class SlowToOpen(MapFunction):
    def __init__(self, folder):
        self.folder = folder

    def open(self, runtime_context):
        (self.folder / "opening").touch()
        while not (self.folder / "open").exists():
            threading.Event().wait(0.01)

    def map(self, value):
        return value


def test_what_a_job_waits_for_before_it_begins_is_reported(start_job, eventually, tmp_path):
    job = start_job(define=lambda text: text.map(SlowToOpen(tmp_path)))
    eventually((tmp_path / "opening").exists)
    assert job.get("/progress")["waiting-for"] == "functions"
    (tmp_path / "open").touch()
    eventually(lambda: job.get("/progress")["waiting-for"] is None)


def test_records_of_earlier_attempts_still_count(start_job, eventually, tmp_path):
    failed = tmp_path / "failed"  # A list would be each attempt's own.

    def once(word):
        if word == "rain" and not failed.exists():
            failed.touch()
            raise ValueError(word)
        return word

    job = start_job({"execution.checkpointing.interval": "10 ms"}, lambda text: text.map(once))
    job.send("river\n")
    eventually(lambda: job.get("/progress")["records"] == 1 and job.get("/progress")["checkpoint"])
    job.send("rain\n")
    eventually(lambda: job.get("/progress")["restarts"] == 1 and job.get("/progress")["records"] >= 2)
    shown = CliRunner().invoke(main, ["status", job.id])
    assert "read in all attempts" in shown.stdout


def test_status_and_top_show_a_running_job(job, eventually):
    job.send("river\n")
    eventually(lambda: job.get("/progress")["records"] == 1)
    shown = CliRunner().invoke(main, ["status", job.id[:12]])
    assert shown.exit_code == 0, shown.output
    assert "State:        RUNNING" in shown.stdout and "Records:      1 read" in shown.stdout
    as_json = CliRunner().invoke(main, ["status", job.id, "--json"])
    assert f'"jid": "{job.id}"' in as_json.stdout
    table = CliRunner().invoke(main, ["top"])
    assert table.exit_code == 0 and job.id[:8] in table.stdout
