"""The dashboard's files, who serves them, and what browsers are told."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import logging
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.rest.documents.process import LogTail
from penstock.rest.routes.dashboard import STATIC

ROOT = Path(__file__).parents[3]
WEB = ROOT / "web"

PROGRAM = """
from penstock.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2]).map(lambda n: n + 1).print()
env.execute("first")
env.from_collection([3]).print()
env.execute("second")
import sys
print("uvicorn" in sys.modules, "starlette" in sys.modules)
"""


def asked(address: str, path: str, token: str | None = None, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    with contextlib.closing(http.client.HTTPConnection(address, timeout=30)) as connection:
        connection.request(method, path, headers={} if token is None else {"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()


# --- the files -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not WEB.is_dir(), reason="the sources of the dashboard are not here")
def test_committed_files_are_what_the_sources_give():
    """`make web` records which sources it has built; `make web-check` builds them again, where there is Node."""
    tracked = [
        path.relative_to(WEB).as_posix()
        for path in WEB.rglob("*")
        if path.is_file()
        and not any(part == "node_modules" or part.startswith(".") for part in path.relative_to(WEB).parts)
    ]
    # In the order of JavaScript's sort: by UTF-16 code units, which for these names is the order of characters.
    told = hashlib.sha256()
    for name in sorted(tracked):
        told.update(f"{name}\0".encode() + (WEB / name).read_bytes() + b"\0")
    assert (STATIC / "sources.sha256").read_text().strip() == told.hexdigest(), "web/ has changed: run `make web`"


def test_page_loads_nothing_from_elsewhere_and_has_no_inline_script():
    page = (STATIC / "index.html").read_text()
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert loaded == ["./assets/icon.svg", "./assets/index.css", "./assets/index.js"]
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bon\w+=", page)
    style = (STATIC / "assets" / "index.css").read_text()
    assert "@import" not in style and "url(" not in style


@pytest.mark.skipif(not WEB.is_dir(), reason="the sources of the dashboard are not here")
def test_lock_file_names_no_registry():
    lock = json.loads((WEB / "package-lock.json").read_text())
    assert all("resolved" not in package for package in lock["packages"].values())
    assert all("integrity" in package for path, package in lock["packages"].items() if path)


# --- the server ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A process that runs a job which waits for input: its address, and its token."""
    waiting = (
        "import sys, threading\n"
        "from penstock.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.socket_text_stream('localhost', int(sys.argv[1])).print()\n"
        "env.execute('waits')\n"
    )
    with contextlib.closing(socket.create_server(("localhost", 0))) as server:
        script = tmp_path_factory.mktemp("program") / "waits.py"
        script.write_text(waiting)
        flags = ["-t", "inline", "-D", "my.password=hidden"]
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", "run", *flags, str(script), str(server.getsockname()[1])],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PENSTOCK_NO_WEB": ""},
        )
        assert process.stderr is not None
        try:
            lines = (re.match(r"Dashboard: http://(127\.0\.0\.1:\d+)/#token=(\S+)", line) for line in process.stderr)
            yield next(found.groups() for found in lines if found)
        finally:
            process.kill()
            process.wait()


def test_page_and_files_need_no_token_and_the_rest_does(address):
    where, token = address
    answers = {path: asked(where, path)[0] for path in ("/", "/assets/index.js", "/favicon.ico", "/jobs")}
    assert answers == {"/": 200, "/assets/index.js": 200, "/favicon.ico": 200, "/jobs": 401}
    assert asked(where, "/jobs", token)[0] == 200
    assert asked(where, "/assets/..%2Findex.html")[0] == 404 and asked(where, "/assets/none.js")[0] == 404


@pytest.mark.parametrize("is_let_in", [True, False])
@pytest.mark.parametrize("path", ["/", "/assets/index.js", "/jobs", "/none"])
def test_every_answer_has_security_headers(address, path, is_let_in):
    where, token = address
    headers = asked(where, path, token if is_let_in else None)[1]
    assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy


def test_files_are_asked_for_again_and_answers_of_the_api_are_not_kept(address):
    where, token = address
    _, headers, _ = asked(where, "/assets/index.js")
    assert headers["cache-control"] == "no-cache" and headers["etag"]
    assert asked(where, "/jobs", token)[1]["cache-control"] == "no-store"


def test_process_reports_its_threads_its_python_and_its_settings_without_secrets(address):
    where, token = address
    threads = json.loads(asked(where, "/jobmanager/thread-dump", token)[2])["threadInfos"]
    assert "MainThread" in {thread["threadName"] for thread in threads}
    assert any("wait" in thread["stringifiedThreadInfo"] for thread in threads)
    assert "Python" in json.loads(asked(where, "/jobmanager/environment", token)[2])["jvm"]["version"]
    settings = json.loads(asked(where, "/jobmanager/config", token)[2])
    assert {"key": "my.password", "value": "******"} in settings
    (job,) = json.loads(asked(where, "/jobs", token)[2])["jobs"]
    assert json.loads(asked(where, f"/jobs/{job['id']}/jobmanager/config", token)[2]) == settings
    assert json.loads(asked(where, "/jobmanager/logs", token)[2])["logs"][0]["name"] == "penstock.log"


def test_job_manager_serves_the_same_pages(cluster):
    where = f"127.0.0.1:{cluster.port}"
    assert asked(where, "/")[2] == (STATIC / "index.html").read_bytes()
    assert asked(where, "/openapi.json", cluster.token.secret)[0] == 200


def test_job_manager_without_the_dashboard_serves_the_api_alone(start_cluster):
    cluster = start_cluster({"web.ui.enabled": "false"})
    where = f"127.0.0.1:{cluster.port}"
    assert (asked(where, "/")[0], asked(where, "/jobs", cluster.token.secret)[0]) == (404, 200)


def run(tmp_path: Path, *flags: str, **variables: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "job.py"
    script.write_text(PROGRAM)
    return subprocess.run(
        [sys.executable, "-m", "penstock.cli", "run", "-t", "inline", *flags, str(script)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PENSTOCK_NO_WEB": "", **variables},
    )


def test_address_is_reported_once_on_stderr_and_a_job_nobody_looks_at_loads_no_server(tmp_path):
    done = run(tmp_path)
    assert done.stderr.count("Dashboard: http://127.0.0.1:") == 1
    assert "Dashboard" not in done.stdout and done.stdout.endswith("False False\n")


@pytest.mark.parametrize(
    ("flags", "variables"),
    [(["--no-web"], {}), (["-D", "web.ui.enabled=false"], {}), ([], {"PENSTOCK_NO_WEB": "1"})],
)
def test_dashboard_can_be_turned_off(tmp_path, flags, variables):
    assert "Dashboard" not in run(tmp_path, *flags, **variables).stderr


# --- the log -------------------------------------------------------------------------------------------------------


def test_log_tail_keeps_lines_and_python_still_shows_them_where_no_log_is_set_up():
    program = (
        "import logging\n"
        "from penstock.rest.documents.process import log_tail\n"
        "tail = log_tail()\n"
        "logging.getLogger('penstock.jobmaster').warning('one')\n"
        "logging.basicConfig(format='set up: %(message)s')\n"
        "logging.getLogger('penstock.jobmaster').warning('two')\n"
        "print([line.split(' - ')[1] for line in tail.text().splitlines()])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    one, two = done.stderr.splitlines()
    assert re.fullmatch(r"[-0-9]+ [:,0-9]+ WARNING penstock.jobmaster - one", one) and two == "set up: two"
    assert done.stdout == "['one', 'two']\n"


def test_log_tail_is_bounded():
    tail = LogTail()
    for number in range(3_000):
        tail.handle(logging.LogRecord("penstock", logging.DEBUG, "", 0, f"{number} " + "x" * 9_000, None, None))
    lines = tail.text().splitlines()
    assert len(lines) == 2_000 and max(map(len, lines)) == 8_000
