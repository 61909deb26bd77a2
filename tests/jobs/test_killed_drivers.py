"""What a driver that was killed has left in the temporary folder is gone after one more run."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from chaos.processes import end_session, wait_until_gone

import penstock

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ENDS_WITHIN_S = 60
STARTS_WITHIN_S = 120

# Whatever has files: a spooled source, state on disk, checkpoints in the temporary folder, workers of several slots.
COUNTS = """
import sys

from penstock.common import Configuration, Types
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield f"{value}: {self.count.value()}"


env = StreamExecutionEnvironment.get_execution_environment(
    Configuration().set_string("state.backend.type", "rocksdb").set_integer("rest.port", 0)
)
env.set_parallelism(2)
env.enable_checkpointing(50)
words = env.socket_text_stream("localhost", int(sys.argv[1])) if sys.argv[1:] else env.from_collection(["word"])
words.key_by(lambda word: word).process(Count(), Types.STRING()).print()
env.execute()
"""


@pytest.fixture
def temporary_folder() -> Iterator[Path]:
    """Another one than the tests have, and no longer than those that people have."""
    with tempfile.TemporaryDirectory(prefix="k") as folder:
        yield Path(folder)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    script = tmp_path / "counts.py"
    script.write_text(COUNTS)
    return script


@contextlib.contextmanager
def running(script: Path, temporary_folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`penstock run`, in a session of its own so that every process of it can be found again."""
    paths = {"PYTHONPATH": str(Path(penstock.__file__).parents[1]), "TMPDIR": str(temporary_folder)}
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock.cli", "run", "--master", "local[2]", str(script), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **paths, "PYTHONUNBUFFERED": "1"},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        end_session(process.pid)
        process.wait()


def files_in(folder: Path) -> list[Path]:
    """All but folders: two that all processes of a user share stay, empty."""
    return [path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()]


def folders_of(process: int) -> list[Path]:
    """What a process has in /tmp because its temporary folder has too long a name for sockets."""
    return list(Path("/tmp").glob(f"penstock-files-*/{process}-*"))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
def test_nothing_is_left_after_a_kill_and_one_more_run(script, temporary_folder):
    with contextlib.closing(socket.create_server(("localhost", 0))) as server:
        server.settimeout(STARTS_WITHIN_S)
        with running(script, temporary_folder, str(server.getsockname()[1])) as killed:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"word\n")
                assert killed.stdout is not None and killed.stdout.readline().endswith("word: 1\n")
                os.kill(killed.pid, signal.SIGKILL)
                killed.wait()
            # Java and the workers notice by themselves.
            assert wait_until_gone(killed.pid, ENDS_WITHIN_S) == []
    assert files_in(temporary_folder) != []
    with running(script, temporary_folder) as next_run:
        shown, _ = next_run.communicate(timeout=STARTS_WITHIN_S)
        assert (next_run.returncode, shown.splitlines()[-1][-7:]) == (0, "word: 1")
        assert wait_until_gone(next_run.pid, ENDS_WITHIN_S) == []
    assert files_in(temporary_folder) == []
    assert folders_of(killed.pid) + folders_of(next_run.pid) == []
    left = [path.relative_to(temporary_folder).parts for path in temporary_folder.rglob("*")]
    assert all(len(parts) == 1 for parts in left)
