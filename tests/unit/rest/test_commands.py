"""What the REST API does to jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.rest.client import RestClientError


@pytest.fixture
def operation(eventually):
    """`operation(job, path, request)` waits for what a request has begun; its result."""

    def wait(job, path: str, request) -> dict:
        def completed():
            answer = job.rest.get(f"{path}/{request['request-id']}")
            return answer if answer["status"]["id"] == "COMPLETED" else None

        return eventually(completed)["operation"]

    return wait


def test_cancelled_job_ends_as_canceled_and_may_be_cancelled_again(job, eventually):
    assert job.rest.patch(f"{job.path}?mode=cancel") == {}
    eventually(lambda: job.get("/status") == {"status": "CANCELED"})
    assert job.rest.patch(job.path) == {}


def test_other_modes_of_ending_are_refused(job):
    with pytest.raises(RestClientError, match=r"POST /jobs/.*/stop to stop with a savepoint") as caught:
        job.rest.patch(f"{job.path}?mode=stop")
    assert caught.value.status == 400


def test_finished_job_cannot_be_cancelled_or_saved(job):
    job.end()
    for ask in (lambda: job.rest.patch(job.path), lambda: job.rest.post(f"{job.path}/savepoints", {})):
        with pytest.raises(RestClientError, match="has ended already") as caught:
            ask()
        assert caught.value.status == 409


def test_savepoint_is_begun_and_asked_about(job, tmp_path, operation):
    job.send("river\n")
    request = job.rest.post(f"{job.path}/savepoints", {"target-directory": str(tmp_path), "triggerId": "ab" * 16})
    assert request == {"request-id": "ab" * 16}
    location = operation(job, f"{job.path}/savepoints", request)["location"]
    folder = Path(location.removeprefix("file://"))
    assert folder.parent == tmp_path and (folder / "_metadata").is_file()
    assert folder.name.startswith(f"savepoint-{job.id[:6]}-")


def test_flag_may_be_a_text_and_means_what_it_says(job, tmp_path, operation):
    body = {"target-directory": str(tmp_path), "cancel-job": "false"}
    operation(job, f"{job.path}/savepoints", job.rest.post(f"{job.path}/savepoints", body))
    assert job.get("/status") == {"status": "RUNNING"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/savepoints", {"target-directory": "/savepoints", "cancel-job": "no"}),
        ("/stop", {"targetDirectory": "/savepoints", "drain": [True]}),
    ],
)
def test_flag_that_is_neither_true_nor_false_is_refused(job, path, body):
    with pytest.raises(RestClientError, match="must be true or false, got") as caught:
        job.rest.post(job.path + path, body)
    assert caught.value.status == 400


@pytest.mark.parametrize("kind", ["SOME", 7])
def test_unknown_kind_of_checkpoint_is_refused(job, kind):
    with pytest.raises(RestClientError, match="checkpointType") as caught:
        job.rest.post(f"{job.path}/checkpoints", {"checkpointType": kind})
    assert caught.value.status == 400


def test_savepoint_without_a_folder_is_refused_at_once(job):
    with pytest.raises(RestClientError, match="target-directory") as caught:
        job.rest.post(f"{job.path}/savepoints", {})
    assert caught.value.status == 400


def test_unknown_savepoint_format_is_refused(job, tmp_path):
    with pytest.raises(RestClientError, match="use CANONICAL or NATIVE"):
        job.rest.post(f"{job.path}/savepoints", {"target-directory": str(tmp_path), "formatType": "ZIP"})


def test_stopped_job_finishes_and_leaves_a_savepoint(job, tmp_path, eventually, operation):
    request = job.rest.post(f"{job.path}/stop", {"targetDirectory": str(tmp_path), "drain": False})
    location = operation(job, f"{job.path}/savepoints", request)["location"]
    assert (Path(location.removeprefix("file://")) / "_metadata").is_file()
    eventually(lambda: job.get("/status") == {"status": "FINISHED"})


def test_disposed_savepoint_is_gone_and_other_folders_are_not_touched(start_job, tmp_path, operation):
    settings = {"execution.checkpointing.dir": str(tmp_path / "running"), "execution.checkpointing.interval": "1 h"}
    job = start_job(settings)
    begun = job.rest.post(f"{job.path}/savepoints", {"target-directory": str(tmp_path)})
    location = operation(job, f"{job.path}/savepoints", begun)["location"]
    operation(job, f"{job.path}/checkpoints", job.rest.post(f"{job.path}/checkpoints", {}))
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "_metadata").write_bytes(b"PAR1")
    (running,) = (tmp_path / "running").glob("*/chk-*")
    for path in (tmp_path, tmp_path / "dataset", running, running.parent):
        request = job.rest.post("/savepoint-disposal", {"savepoint-path": str(path)})
        assert "failure-cause" in operation(job, "/savepoint-disposal", request)
    gone = job.rest.post("/savepoint-disposal", {"savepoint-path": location})
    assert operation(job, "/savepoint-disposal", gone) == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dataset", "running"]
    assert (tmp_path / "dataset" / "_metadata").exists() and (running / "_metadata").exists()


def test_checkpoint_can_be_triggered(start_job, tmp_path, operation):
    job = start_job({"execution.checkpointing.dir": tmp_path.as_uri(), "execution.checkpointing.interval": "1 h"})
    request = job.rest.post(f"{job.path}/checkpoints", {"checkpointType": "FULL"})
    checkpoint_id = operation(job, f"{job.path}/checkpoints", request)["checkpointId"]
    told = job.get(f"/checkpoints/details/{checkpoint_id}")
    assert (told["status"], told["is_savepoint"]) == ("COMPLETED", False)
    vertex = job.get()["vertices"][0]["id"]
    assert job.get(f"/checkpoints/details/{checkpoint_id}/subtasks/{vertex}")["num_acknowledged_subtasks"] == 1
    assert job.get("/checkpoints")["latest"]["completed"]["id"] == checkpoint_id


def test_request_that_is_no_json_is_refused(job):
    with pytest.raises(RestClientError, match="not JSON") as caught:
        job.rest.open("POST", f"{job.path}/stop", b"{")
    assert caught.value.status == 400
