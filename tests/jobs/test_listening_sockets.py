"""All sockets on which a job and a job manager listen are those that docs/security.md names."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest
from free_ports import free_port

sys.path.insert(0, str(Path(__file__).parent))

from listening import Listening, listening_sockets

from penstock.rest import sockets
from penstock.rest.client import Address, RestClient, RestClientError

pytestmark = [pytest.mark.slow, pytest.mark.spark]

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
WITHIN_S = 180

JOB = """
from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
words = env.socket_text_stream("localhost", {port})
words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).sum(1).print()
env.execute("waiting")
"""


@dataclass(frozen=True)
class Promise:
    """A row of the page's table."""

    process: str
    kind: str
    pattern: str

    def covers(self, found: Listening, rest_port: int) -> bool:
        if self.kind == "tcp":
            is_of_process = "Java" not in self.process or "/java " in found.command
            pattern = self.pattern.replace("<rest.port>", str(rest_port))
            return is_of_process and found.family.startswith("tcp") and fnmatch(found.address, pattern)
        folder = self.pattern.replace("<uid>", str(os.getuid())).partition("/")[0]
        return found.family == "unix" and fnmatch(private_folder_of(found.address).name, folder)


def promises() -> list[Promise]:
    (table,) = re.findall(r"\| Process \| Listens on .*?\n\n", PAGE.read_text(), re.DOTALL)
    rows = [line.strip("| \n").split(" | ") for line in table.strip().splitlines()[2:]]
    return [Promise(row[0], *row[1].strip("`").split(":", 1)) for row in rows]


def private_folder_of(path: str) -> Path:
    """The folder above that only this user can enter; fails if there is none."""
    for folder in Path(path).parents:
        status = folder.lstat()
        if folder.name.startswith("penstock-") and stat.S_IMODE(status.st_mode) == 0o700:
            assert status.st_uid == os.getuid()
            return folder
    raise AssertionError(f"{path} is in no folder that is this user's alone")


def own_sockets(pid: int) -> list[Listening]:
    """With IPv4 addresses as such, where Java has IPv6 sockets for them."""
    found = listening_sockets(pid)
    return [Listening(each.family, each.address.removeprefix("::ffff:"), each.pid, each.command) for each in found]


def eventually(is_so: Callable[[], object], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not is_so():
        assert process.poll() is None and time.monotonic() < deadline, log.read_text(errors="replace")
        threading.Event().wait(0.2)


@contextlib.contextmanager
def running(words: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        command = [sys.executable, "-m", "penstock.cli", *words]
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture
def short_tmp(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A folder for temporary files where all that a process makes is found; sockets need short names.

    The test's own folder is made before, where it belongs.
    """
    with tempfile.TemporaryDirectory(prefix="ls-", dir="/tmp") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield Path(folder)
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_page_has_a_row_for_each_socket():
    assert {each.kind for each in promises()} == {"unix", "tcp"} and len(promises()) >= 5
    assert all(each.pattern.startswith("127.0.0.1:") for each in promises() if each.kind == "tcp")


@pytest.mark.parametrize("way", ["a process of its own", "at a job manager"])
def test_all_sockets_of_a_running_job_are_on_the_page(short_tmp, tmp_path, way):
    rest_port, log = free_port(), tmp_path / "log"
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(contextlib.closing(socket.create_server(("localhost", 0))))
        source.settimeout(WITHIN_S)
        job = tmp_path / "job.py"
        job.write_text(JOB.format(port=source.getsockname()[1]))
        if way == "at a job manager":
            start = ["jobmanager", "start", "--port", str(rest_port), "--master", "local[2]"]
            process = stack.enter_context(running(start, log))
            rest = RestClient(Address(host="localhost", port=rest_port))
            eventually(lambda: is_answered(rest), process, log)
            stack.enter_context(running(["run", "-m", f"localhost:{rest_port}", str(job)], tmp_path / "client.log"))
        else:
            process = stack.enter_context(running(["run", "-D", f"rest.port={rest_port}", str(job)], log))
        connection = stack.enter_context(contextlib.closing(source.accept()[0]))
        connection.sendall(b"river rain\n")
        shown = tmp_path / "client.log" if way == "at a job manager" else log
        eventually(lambda: "(river rain,1)" in shown.read_text(), process, log)  # All processes are there now.
        found = own_sockets(process.pid)
        # While it runs: folders of sockets go with the processes.
        told = [each for each in promises() if each.process != "job manager" or way == "at a job manager"]
        unknown = [each for each in found if not any(row.covers(each, rest_port) for row in told)]
        assert unknown == []
        kinds = {row.pattern for row in told for each in found if row.covers(each, rest_port)}
        assert kinds == {row.pattern for row in told}, "the page names sockets that are not there"
        assert any(each.address == f"127.0.0.1:{rest_port}" for each in found)
    assert sockets.folder().parent == short_tmp


def is_answered(rest: RestClient) -> bool:
    try:
        return bool(rest.get("/overview"))
    except RestClientError:
        return False
