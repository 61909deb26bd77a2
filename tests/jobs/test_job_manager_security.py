"""A real job manager as its user starts it: what others on the machine see of it, and what its user needs to know."""

from __future__ import annotations

import http.client
import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from free_ports import free_port

from penstock.rest import sockets
from penstock.rest.security.access_token import own_token

pytestmark = [pytest.mark.slow]

SECRET = "Zq-this-must-not-be-seen-by-others"

Penstock = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def penstock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Penstock]:
    """Runs the command line in a folder for temporary files of its own; a job manager that was started is stopped."""
    with tempfile.TemporaryDirectory(prefix="jm-", dir="/tmp") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", None)

        def run(*words: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-m", "penstock.cli", *words]
            return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)

        yield run
        for pid_file in sockets.folder().glob("jobmanager-*.pid"):
            run("jobmanager", "stop", "--port", pid_file.stem.partition("-")[2])
    monkeypatch.setattr(tempfile, "tempdir", None)


def started(penstock: Penstock, *settings: str) -> tuple[int, int]:
    """Its port and process."""
    port = free_port()
    result = penstock(
        "jobmanager", "start", "--daemon", "--port", str(port), "-D", "execution.target=inline", "--json", *settings
    )
    assert result.returncode == 0, result.stderr
    return port, int(json.loads(result.stdout)["pid"])


def status_of(port: int, token: str | None) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/jobs", headers={} if token is None else {"Authorization": f"Bearer {token}"})
    return connection.getresponse().status


def test_user_needs_nothing_and_others_need_the_token(penstock, tmp_path):
    port, _ = started(penstock)
    (tmp_path / "job.py").write_text(
        "from penstock.datastream import StreamExecutionEnvironment as Environment\n"
        "env = Environment.get_execution_environment()\n"
        "env.from_collection(['river']).print()\n"
        "env.execute('shouting')\n"
    )
    result = penstock("run", "-m", f"localhost:{port}", "job.py")
    assert result.returncode == 0 and "river" in result.stdout, result.stderr
    assert "shouting (FINISHED)" in penstock("list", "-a", "-m", f"127.0.0.1:{port}").stdout
    token = penstock("jobmanager", "token", "--port", str(port)).stdout.strip()
    assert (status_of(port, None), status_of(port, "0" * 64), status_of(port, token)) == (401, 401, 200)
    assert token in penstock("jobmanager", "token", "--url", "--port", str(port)).stdout.partition("#token=")[2]
    assert penstock("jobmanager", "stop", "--port", str(port)).returncode == 0
    assert own_token(port) is None
    assert penstock("jobmanager", "token", "--port", str(port)).returncode == 1


def test_secrets_are_neither_on_command_lines_nor_in_files_that_others_can_read(penstock):
    port, pid = started(
        penstock, "-D", f"rest.auth.token={SECRET}", "-D", f"fs.azure.account.key={SECRET}", "-D", "pipeline.name=shown"
    )
    assert SECRET not in Path(f"/proc/{pid}/cmdline").read_text()
    for path in sockets.folder().parent.rglob("*"):
        if path.is_file() and not path.is_symlink():
            is_private = stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 or _is_below_private(path)
            assert is_private, path
    log = sockets.folder() / f"jobmanager-{port}.log"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600 and SECRET not in log.read_text()
    assert list(sockets.folder().glob("settings-*")) == []
    assert status_of(port, SECRET) == 200
    told = penstock("list", "-m", f"localhost:{port}", "-D", f"rest.auth.token={SECRET}")
    assert told.returncode == 0, told.stderr
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/jobmanager/config", headers={"Authorization": f"Bearer {SECRET}"})
    shown = connection.getresponse().read().decode()
    assert SECRET not in shown and "fs.azure.account.key" in shown and '"shown"' in shown


def _is_below_private(path: Path) -> bool:
    return any(
        stat.S_IMODE(folder.stat().st_mode) & 0o077 == 0 and folder.stat().st_uid == os.getuid()
        for folder in path.parents
        if folder != sockets.folder().parent and sockets.folder().parent in folder.parents
    )


def test_job_manager_does_not_open_itself_to_the_network_by_mistake(penstock):
    result = penstock("jobmanager", "start", "--port", str(free_port()), "-D", "rest.bind-address=0.0.0.0")
    assert result.returncode == 1 and "rest.auth.token-file" in result.stderr
