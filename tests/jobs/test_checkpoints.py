"""Checkpoints in whole jobs: when they are there, what becomes of them, and what happens when they fail."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.checkpoint.folders import folder_at
from penstock.common import Configuration, JobID, JobStatus
from penstock.common.exceptions import CheckpointError, PenstockError
from penstock.datastream import KeyedProcessFunction, MapFunction, StreamExecutionEnvironment
from penstock.datastream.functions import CheckpointListener, SinkFunction
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.execution.stage_executor import InlineExecutor
from penstock.jobmaster.job_master import JobMaster
from penstock.testing import Fault, FaultPlan, FaultyFolder

PATIENCE_S = 60
EPOCHS = {"penstock.epoch.interval": "1 ms", "penstock.epoch.max-records": "2"}
RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "20",
    "restart-strategy.fixed-delay.delay": "1 ms",
}
METADATA, STATE = "*/_metadata", "*/shared/*"


def wait_until(is_so: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while not (found := is_so()):
        assert time.monotonic() < deadline, "it did not happen in time"
        threading.Event().wait(0.01)
    return found


def checkpoints_in(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob("*/chk-*/_metadata"))


def fails_once(folder: Path, at: int) -> Callable[[int], int]:
    def function(value: int) -> int:
        mark = folder / f"failed-at-{at}"
        if value == at and not mark.exists():
            mark.touch()
            raise ValueError(f"not {at} yet")
        return value

    return function


def in_this_process(settings: dict[str, str]) -> StreamExecutionEnvironment:
    config = Configuration.from_dict({"execution.target": "inline", **settings})
    return StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(1)


def same(value: int) -> int:
    return value


class Lines(SinkFunction):
    """Appends to a file: shows what has come, how often ever."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def invoke(self, value, context):
        with self._path.open("a") as file:
            file.write(f"{value}\n")


def sums(stream: Any) -> Any:
    return stream.key_by(lambda value: value % 2).reduce(lambda a, b: a + b)


SUMS_OF_TEN = sorted([1, 4, 9, 16, 25, 2, 6, 12, 20, 30])


# --- what stays when a job ends --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("retention", "kept"),
    [
        ("NO_EXTERNALIZED_CHECKPOINTS", []),
        ("DELETE_ON_CANCELLATION", [JobStatus.FAILED]),
        ("RETAIN_ON_CANCELLATION", [JobStatus.FAILED, JobStatus.CANCELED]),
    ],
)
@pytest.mark.parametrize("end", [JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED])
def test_retention_decides_what_stays(tmp_path, retention, kept, end):
    checkpoints = tmp_path / "checkpoints"
    settings = {
        "execution.checkpointing.interval": "1 ms",
        "execution.checkpointing.dir": str(checkpoints),
        "execution.checkpointing.externalized-checkpoint-retention": retention,
        "restart-strategy.type": "none",
    }
    env = in_this_process(EPOCHS | settings)
    numbers = env.from_sequence(1, 20 if end is JobStatus.FINISHED else 10**9)
    sums(numbers.map(fails_once(tmp_path, 9) if end is JobStatus.FAILED else same)).add_sink(Lines(tmp_path / "out"))
    job = env.execute_async()
    if end is JobStatus.CANCELED:
        wait_until(lambda: checkpoints_in(checkpoints))
        job.cancel().result()
    with contextlib.suppress(PenstockError):
        job.get_job_execution_result().result()
    assert job.get_job_status().result() is end
    assert len(checkpoints_in(checkpoints)) == (end in kept)
    assert [path.name for path in checkpoints.iterdir()] == ([str(job.get_job_id())] if end in kept else [])


def test_as_many_checkpoints_stay_as_are_wanted(tmp_path):
    settings = {
        "execution.checkpointing.interval": "1 ms",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        "execution.checkpointing.externalized-checkpoint-retention": "DELETE_ON_CANCELLATION",
        "execution.checkpointing.num-retained": "3",
        "restart-strategy.type": "none",
    }
    env = in_this_process(EPOCHS | settings)
    sums(env.from_sequence(1, 100).map(fails_once(tmp_path, 99))).add_sink(Lines(tmp_path / "out"))
    with pytest.raises(PenstockError, match="not 99 yet"):
        env.execute()
    assert len(checkpoints_in(tmp_path / "checkpoints")) == 3


# --- going on from a checkpoint --------------------------------------------------------------------------------------


@pytest.mark.parametrize("claim_mode", ["NO_CLAIM", "CLAIM"])
def test_claimed_checkpoint_goes_when_the_job_has_one_of_its_own(run_target, tmp_path, claim_mode):
    settings = {
        "execution.checkpointing.interval": "1 ms",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        "execution.checkpointing.externalized-checkpoint-retention": "DELETE_ON_CANCELLATION",
        "restart-strategy.type": "none",
    }

    def start(**recovery):
        env = run_target(2, EPOCHS | settings | recovery)
        numbers = env.from_sequence(1, 20).uid("numbers").map(fails_once(tmp_path, 9)).uid("fails")
        numbers.key_by(lambda value: value).map(same).add_sink(Lines(tmp_path / "out"))
        env.execute()

    with pytest.raises(PenstockError, match="not 9 yet"):
        start()
    [left] = checkpoints_in(tmp_path / "checkpoints")
    start(**{"execution.state-recovery.path": str(left.parent), "execution.state-recovery.claim-mode": claim_mode})
    assert checkpoints_in(tmp_path / "checkpoints") == ([left] if claim_mode == "NO_CLAIM" else [])
    assert {int(line) for line in (tmp_path / "out").read_text().split()} == set(range(1, 21))


class LineServer:
    """Takes a client and says nothing until it is told to."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(PATIENCE_S)
        self.port: int = self._listening.getsockname()[1]
        self._connection: socket.socket | None = None

    def send(self, line: str) -> None:
        self._connection, _ = self._listening.accept()
        self._connection.sendall(f"{line}\n".encode())

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._listening.close()


class Later(KeyedProcessFunction):
    """Shows each element six seconds after it came, by the clock: time enough to write a savepoint before."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 6000)
        yield f"{value} came"

    def on_timer(self, timestamp, ctx):
        yield f"{ctx.get_current_key()} shown"


def test_timer_fires_in_a_restored_job_to_which_nothing_comes(run_target, tmp_path):
    out = tmp_path / "out"

    def start(**recovery):
        server = LineServer()
        env = run_target(1, {"penstock.epoch.interval": "1 ms"} | recovery)
        lines = env.socket_text_stream("127.0.0.1", server.port).uid("lines")
        lines.key_by(lambda line: line).process(Later()).uid("later").add_sink(Lines(out)).uid("out")
        return server, env.execute_async()

    server, job = start()
    with contextlib.closing(server):
        server.send("element")
        wait_until(lambda: out.exists() and "element came" in out.read_text())
        path = job.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
    assert "element shown" not in out.read_text()
    server, job = start(**{"execution.state-recovery.path": path})
    with contextlib.closing(server):
        wait_until(lambda: "element shown" in out.read_text())
        job.cancel().result()


# --- who is notified of checkpoints ----------------------------------------------------------------------------------


class Listening(MapFunction, CheckpointListener):
    """Notes what it hears."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def map(self, value):
        return value

    def notify_checkpoint_complete(self, checkpoint_id):
        self._note("complete", checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id):
        self._note("aborted", checkpoint_id)

    def close(self):
        self._note("closed", 0)

    def _note(self, what, checkpoint_id):
        with self._path.open("a") as file:
            file.write(f"{json.dumps([what, checkpoint_id])}\n")


def heard(path: Path) -> list[tuple[str, int]]:
    return [tuple(json.loads(line)) for line in path.read_text().splitlines()]


def test_listener_hears_of_every_checkpoint_and_of_the_last_before_it_is_closed(run_target, tmp_path):
    env = run_target(1, EPOCHS | {"execution.checkpointing.interval": "1 ms"})
    env.from_sequence(1, 6).map(Listening(tmp_path / "heard")).key_by(same).map(same).add_sink(Lines(tmp_path / "out"))
    job = env.execute_async()
    job.get_job_execution_result().result()
    last = job.master.checkpoints.latest_completed.id
    *told, end = heard(tmp_path / "heard")
    assert end == ("closed", 0)
    assert [what for what, _ in told] == ["complete"] * len(told)
    numbers = [number for _, number in told]
    assert numbers == sorted(set(numbers)) and numbers[-1] == last


def test_bounded_job_without_checkpoints_notifies_its_listener_of_the_last_one(run_target, tmp_path):
    env = run_target()
    env.from_sequence(1, 6).map(Listening(tmp_path / "heard")).add_sink(Lines(tmp_path / "out"))
    env.execute()
    assert [what for what, _ in heard(tmp_path / "heard")] == ["complete", "closed"]


# --- failing storage -------------------------------------------------------------------------------------------------


@pytest.fixture
def faulty_job(tmp_path) -> Callable[..., JobMaster]:
    """Makes a job in this process whose checkpoints go to a storage with faults."""

    def make(build: Callable[[StreamExecutionEnvironment], Any], *faults: Fault, **settings: str) -> JobMaster:
        env = StreamExecutionEnvironment.get_execution_environment()
        build(env)
        named = {f"execution.checkpointing.{key.replace('_', '-')}": value for key, value in settings.items()}
        config = {"execution.checkpointing.dir": str(tmp_path / "checkpoints")} | EPOCHS | RESTARTS | named
        plan = FaultPlan(str(tmp_path / "notes"), faults)
        graph = build_job_graph(env.get_stream_graph(job_name="the job"))
        return JobMaster(
            JobID.generate(),
            graph,
            Configuration.from_dict(config),
            InlineExecutor(),
            lambda uri: FaultyFolder(folder_at(uri), plan),
        )

    return make


@pytest.fixture
def ten_sums(tmp_path) -> Iterator[Callable[[StreamExecutionEnvironment], Any]]:
    yield lambda env: sums(env.from_sequence(1, 10).map(Listening(tmp_path / "heard"))).add_sink(
        Lines(tmp_path / "out")
    )


def shown(tmp_path: Path) -> list[int]:
    return sorted(int(line) for line in (tmp_path / "out").read_text().split())


@pytest.mark.parametrize("operation", ["create", "write", "rename"])
@pytest.mark.parametrize("path", [METADATA, STATE])
def test_job_continues_without_checkpoints_that_may_fail(faulty_job, ten_sums, tmp_path, path, operation):
    fault = Fault(operation, at=2, times=2, path=path)
    master = faulty_job(ten_sums, fault, tolerable_failed_checkpoints="4")
    master.run()
    assert (master.status, master.restarts) == (JobStatus.FINISHED, 0)
    assert shown(tmp_path) == SUMS_OF_TEN
    counts = master.checkpoints.counts()
    assert counts["failed"] > 0 and counts["completed"] > 0
    assert master.checkpoints.history()[0].status == "COMPLETED"


def test_functions_hear_of_failed_checkpoints(faulty_job, ten_sums, tmp_path):
    master = faulty_job(ten_sums, Fault("rename", at=2, path=METADATA), tolerable_failed_checkpoints="4")
    master.run()
    failed = master.checkpoints.latest_failed
    assert ("aborted", failed.id) in heard(tmp_path / "heard")
    assert ("complete", failed.id) not in heard(tmp_path / "heard")


def test_job_restarts_at_a_failed_checkpoint_that_must_not_be(faulty_job, tmp_path):
    def build(env):
        sums(env.from_sequence(1, 10)).print()

    master = faulty_job(build, Fault("rename", at=2, path=METADATA))
    master.run()
    assert (master.status, master.restarts) == (JobStatus.FINISHED, 1)
    [failure] = master.failures
    assert failure.exception_name.endswith("CheckpointFailedError")
    assert re.search(r"checkpoint \d+ failed: its metadata could not be written: .* is 0\)", failure.stacktrace)


def test_job_survives_that_its_storage_is_away_also_while_it_restarts(faulty_job, tmp_path, capfd):
    def build(env):
        sums(env.from_sequence(1, 10).map(fails_once(tmp_path, 7))).print()

    master = faulty_job(build, Fault("list", times=2), Fault("read", times=3), Fault("make", at=5, times=2))
    master.run()
    assert master.status is JobStatus.FINISHED and master.restarts >= 4
    assert sorted(map(int, capfd.readouterr().out.split())) == SUMS_OF_TEN


def test_job_whose_last_checkpoint_fails_does_not_end_with_it(faulty_job, ten_sums, tmp_path):
    """Also if checkpoints may fail: what the sinks hold would never be committed."""
    undisturbed = faulty_job(ten_sums)
    undisturbed.run()
    last = undisturbed.checkpoints.counts()["completed"]
    master = faulty_job(ten_sums, Fault("rename", at=last, path=METADATA), tolerable_failed_checkpoints="99")
    master.run()
    assert (master.status, master.restarts) == (JobStatus.FINISHED, 1)
    assert master.checkpoints.history()[0].status == "COMPLETED"


def test_job_that_cannot_reach_its_storage_at_all_fails_with_a_clear_sentence(faulty_job, ten_sums):
    master = faulty_job(ten_sums, Fault("make"))
    with pytest.raises(CheckpointError, match=r"checkpoints cannot be kept in file://.*planned fault"):
        master.run()
    assert master.status is JobStatus.FAILED


# --- on demand -------------------------------------------------------------------------------------------------------


def test_checkpoint_on_demand(run_target, tmp_path):
    env = run_target(1, EPOCHS)
    sums(env.from_sequence(1, 10**9)).add_sink(Lines(tmp_path / "out"))
    job = env.execute_async()
    try:
        first = job.master.trigger_checkpoint().result(PATIENCE_S)
        second = job.master.trigger_checkpoint().result(PATIENCE_S)
        assert 0 < first < second
        assert job.master.checkpoints.counts()["completed"] == 2
    finally:
        job.cancel().result()
    with pytest.raises(CheckpointError, match=r"is CANCELED and no longer takes savepoints"):
        job.master.trigger_checkpoint()
