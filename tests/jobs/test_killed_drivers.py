"""A driver that was killed, and one that has lost Spark's Java process."""

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
from job_parts import wait_until

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
def running(
    script: Path,
    temporary_folder: Path,
    *arguments: str,
    options: tuple[str, ...] = (),
    stderr: int = subprocess.DEVNULL,
) -> Iterator[subprocess.Popen[str]]:
    """`penstock run`, in a session of its own so that every process of it can be found again."""
    paths = {"PYTHONPATH": str(Path(penstock.__file__).parents[1]), "TMPDIR": str(temporary_folder)}
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock.cli", "run", "--master", "local[2]", *options, str(script), *arguments],
        stdout=subprocess.PIPE,
        stderr=stderr,
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


def java_of(process: int) -> int:
    """Spark's Java process, which a driver has started."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return next(int(child) for child in children if Path(f"/proc/{child}/comm").read_text() == "java\n")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
def test_job_whose_java_process_is_killed_is_suspended_and_can_be_continued(script, temporary_folder, tmp_path):
    options = ("-D", f"execution.checkpointing.dir={tmp_path / 'checkpoints'}")
    with contextlib.closing(socket.create_server(("localhost", 0))) as server:
        server.settimeout(STARTS_WITHIN_S)
        port = str(server.getsockname()[1])
        with running(script, temporary_folder, port, options=options, stderr=subprocess.PIPE) as bereft:
            connection, _ = server.accept()
            with connection:
                for count in (1, 2):
                    connection.sendall(b"word\n")
                    assert bereft.stdout is not None and bereft.stdout.readline().endswith(f"word: {count}\n")
                    wait_until(lambda: any(tmp_path.rglob("_metadata")))
                os.kill(java_of(bereft.pid), signal.SIGKILL)
                _, said = bereft.communicate(timeout=ENDS_WITHIN_S)
        assert bereft.returncode == 1
        assert "was suspended: Spark's Java process was killed by signal 9" in said and "Traceback" not in said
        kept = [str(path.parent) for path in tmp_path.rglob("_metadata")]
        assert len(kept) == 1 and f"`penstock run -s {kept[0]} ...` continues from it" in said
        with running(script, temporary_folder, port, options=("-s", kept[0])) as next_run:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"word\n")
                # What was read after the checkpoint is lost: a socket cannot be read again.
                assert next_run.stdout is not None
                assert next_run.stdout.readline().endswith(("word: 2\n", "word: 3\n"))
