"""A driver that is killed and started again with the same job id, as a cluster manager does."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from penstock.checkpoint.folders import folder_at
from penstock.cluster.fixed_job import fixed_job_id, lead
from penstock.common import Configuration
from penstock.common.exceptions import ConfigurationError, LeadershipLostError
from penstock.common.job_id import JobID
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.graph.job_graph import JobGraph, build_job_graph

JOB_ID = "0123456789abcdef" * 2
WITHIN_S = 60
LAST = 1000
PROGRAM = f"""
import sys

from penstock.common import Configuration
from penstock.common.serialization import Encoder
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import BucketAssigner, FileSink

output, checkpoints, records = sys.argv[1:]
config = Configuration.from_dict({{
    "execution.target": "inline",
    "penstock.job-id": "{JOB_ID}",
    "execution.checkpointing.dir": checkpoints,
    "execution.checkpointing.interval": "10 ms",
    "penstock.epoch.max-records": records,
    "web.ui.enabled": "false",
}})
env = StreamExecutionEnvironment.get_execution_environment(config)
counts = env.from_sequence(1, {LAST}).map(lambda n: (n % 7, 1)).key_by(lambda pair: pair[0]).sum(1)
builder = FileSink.for_row_format(output, Encoder.simple_string_encoder())
counts.sink_to(builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build())
env.execute("counts")
"""


class Driver:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.checkpoints = folder / "checkpoints" / JOB_ID
        (folder / "program.py").write_text(PROGRAM)
        (folder / "out").mkdir()

    def start(self, records: int) -> subprocess.Popen[bytes]:
        words = [
            sys.executable,
            "program.py",
            str(self._folder / "out"),
            str(self._folder / "checkpoints"),
            str(records),
        ]
        return subprocess.Popen(words, cwd=self._folder, stderr=subprocess.PIPE)

    def newest(self) -> int:
        """The number of the newest checkpoint."""
        names = [path.parent.name for path in self.checkpoints.glob("chk-*/_metadata")]
        return max((int(name.removeprefix("chk-")) for name in names), default=0)

    def kill_after(self, checkpoint: int) -> None:
        running = self.start(records=10)
        deadline = time.monotonic() + WITHIN_S
        while self.newest() <= checkpoint:
            assert running.poll() is None and time.monotonic() < deadline, running.communicate()
            threading.Event().wait(0.01)
        os.kill(running.pid, signal.SIGKILL)
        running.communicate()

    def written(self) -> list[str]:
        files = [path for path in (self._folder / "out").rglob("*") if path.is_file() and path.name.startswith("part")]
        return sorted(line for path in files for line in path.read_text().split())


def test_killed_driver_continues_from_its_newest_checkpoint_and_every_result_is_there_once(tmp_path):
    driver = Driver(tmp_path)
    driver.kill_after(checkpoint=2)
    driver.kill_after(checkpoint=driver.newest() + 2)  # It has got further than the first one.
    last = driver.start(records=400)
    _, said = last.communicate(timeout=WITHIN_S)
    assert last.returncode == 0, said
    assert driver.written() == sorted(f"({n % 7},{(n + 6) // 7})" for n in range(1, LAST + 1))
    assert not driver.checkpoints.exists()  # It has finished, so nobody continues it.


def graph(is_batch: bool = False) -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment()
    if is_batch:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.from_sequence(1, 3).print()
    return build_job_graph(env.get_stream_graph())


def config_of(folder: Path, **more: str) -> Configuration:
    return Configuration.from_dict({"execution.checkpointing.dir": str(folder), **more})


def test_second_driver_fences_off_the_first(tmp_path):
    first = lead(JobID(JOB_ID), graph(), config_of(tmp_path))
    first.confirm(3, "chk-3")
    second = lead(JobID(JOB_ID), graph(), config_of(tmp_path))
    assert (second.checkpoint, second.used_ids >= 3) == ("chk-3", True)
    with pytest.raises(LeadershipLostError, match="another process"):
        first.confirm(4, "chk-4")
    third = lead(JobID(JOB_ID), graph(), config_of(tmp_path))
    assert third.checkpoint == "chk-3"


class Interrupted:
    """A folder in which something happens before each operation, whoever made it."""

    def __init__(self, folder, happen):
        self._folder, self._happen = folder, happen

    def within(self, name):
        return Interrupted(self._folder.within(name), self._happen)

    def __getattr__(self, name):
        def operate(*arguments):
            self._happen()
            return getattr(self._folder, name)(*arguments)

        return operate


@pytest.mark.parametrize("moment", range(1, 15))
def test_what_the_first_driver_confirms_while_the_second_starts_is_not_lost(tmp_path, moment):
    """It commits what belongs to its checkpoint then, which must not come again. It may write without confirming."""
    first = lead(JobID(JOB_ID), graph(), config_of(tmp_path))
    first.confirm(3, "chk-3")
    operations = itertools.count(1)
    confirmed = []

    def happen():
        if next(operations) == moment:
            with contextlib.suppress(LeadershipLostError):
                first.confirm(4, "chk-4")
                confirmed.append("chk-4")

    second = lead(JobID(JOB_ID), graph(), config_of(tmp_path), lambda uri: Interrupted(folder_at(uri), happen))
    assert next(operations) > 8, "the moment was one of those in which it starts"
    assert second.checkpoint == "chk-4" or (second.checkpoint == "chk-3" and not confirmed)
    second.confirm(5, "chk-5")


def test_driver_that_was_killed_while_it_started_is_in_nobodys_way(tmp_path):
    """It has put up its fence, and written nothing down."""
    first = lead(JobID(JOB_ID), graph(), config_of(tmp_path))
    first.confirm(3, "chk-3")
    fence = tmp_path / JOB_ID / "drivers" / "fence"
    [token] = [int(path.name) for path in fence.iterdir()]
    (fence / f"{(token // 10**6 + 2) * 10**6 - 1:020d}").touch()
    second = lead(JobID(JOB_ID), graph(), config_of(tmp_path))
    assert second.checkpoint == "chk-3"
    second.confirm(4, "chk-4")


def test_job_that_has_failed_continues_from_what_was_retained(tmp_path):
    first = lead(JobID(JOB_ID), graph(), config_of(tmp_path))
    first.confirm(3, "chk-3")
    first.end("FAILED", None)
    assert lead(JobID(JOB_ID), graph(), config_of(tmp_path)).checkpoint == "chk-3"


def test_what_an_ended_job_could_not_remove_is_removed_and_it_begins_anew(tmp_path):
    first = lead(JobID(JOB_ID), graph(), config_of(tmp_path))
    first.confirm(3, "chk-3")
    (tmp_path / JOB_ID / "chk-3").mkdir()
    first.end("FINISHED", str(tmp_path / JOB_ID))
    second = lead(JobID(JOB_ID), graph(), config_of(tmp_path))
    assert second.checkpoint is None and not (tmp_path / JOB_ID / "chk-3").exists()
    second.confirm(4, "chk-4")


def test_job_that_keeps_nothing_only_has_the_id(tmp_path):
    assert lead(JobID(JOB_ID), graph(), Configuration()) is None
    assert lead(JobID(JOB_ID), graph(is_batch=True), config_of(tmp_path)) is None


def test_id_has_32_digits_and_an_older_key_works():
    assert fixed_job_id(Configuration()) is None
    assert fixed_job_id(Configuration.from_dict({"penstock.job-id": JOB_ID.upper()})) == JobID(JOB_ID)
    with pytest.raises(ConfigurationError, match=r"penstock.job-id: a job id has 32 hexadecimal digits .*'orders'"):
        fixed_job_id(Configuration.from_dict({"penstock.job-id": "orders"}))


def test_two_jobs_of_a_process_cannot_have_the_same_id():
    settings = {"execution.target": "inline", "penstock.job-id": JOB_ID, "web.ui.enabled": "false"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    go_on = threading.Event()
    _events[0] = go_on
    env.from_sequence(1, 3).map(_wait).print()
    running = env.execute_async("first")
    env.from_sequence(1, 3).print()
    with pytest.raises(ConfigurationError, match="a job with this id runs already"):
        env.execute_async("second")
    go_on.set()
    running.get_job_execution_result().result()
    env.from_sequence(1, 3).print()
    assert str(env.execute("third").get_job_id()) == JOB_ID


_events: dict[int, threading.Event] = {}


def _wait(value: int) -> int:
    _events[0].wait(WITHIN_S)
    return value
