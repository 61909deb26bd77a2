"""`penstock jobmanager status` finds the job manager of this user, whatever its port."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from click.testing import CliRunner

from penstock.cli.commands import main
from penstock.cluster.job_manager_process import JobManagerFiles, running_job_managers
from penstock.rest import sockets


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(sockets, "folder", lambda: tmp_path)


def status(*options: str) -> tuple[int, str]:
    answer = CliRunner().invoke(main, ["jobmanager", "status", *options])
    return answer.exit_code, answer.stderr


def test_only_running_ones_are_found():
    JobManagerFiles(9001).pid.write_text("1")  # Of a process that is gone
    with JobManagerFiles(8191).held():
        assert running_job_managers() == [JobManagerFiles(8191)]
    assert running_job_managers() == []


@pytest.mark.parametrize(
    ("ports", "options", "said"),
    [
        ((), (), "There is no job manager for port 8081; `penstock jobmanager start` starts one"),
        ((8191,), (), "does not answer as job manager for port 8191"),
        ((8191,), ("--port", "8082"), "There is no job manager for port 8082"),
        ((8081, 8191), (), "does not answer as job manager for port 8081"),
        ((8191, 8192), (), "there is no job manager for port 8081, but for 8191, 8192; choose one with --port"),
    ],
)
def test_status_is_about_the_only_one(ports, options, said):
    with ExitStack() as running:
        for port in ports:
            running.enter_context(JobManagerFiles(port).held())
        code, shown = status(*options)
    assert code == 1 and said in shown
