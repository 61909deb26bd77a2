"""A job that is to be drained ends with its savepoint, or continues as if nobody had asked."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from job_parts import PATIENCE_S, RESTARTING, CopiesFail, environment, file_sink, job_of, numbers_in
from shared_by_copies import SharedByCopies

from penstock.checkpoint.coordinator import CheckpointFailedError
from penstock.checkpoint.folders import folder_at
from penstock.common import JobStatus, Time, WatermarkStrategy
from penstock.common.exceptions import CheckpointError
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream.functions import MapFunction
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.testing import Fault, FaultPlan, FaultyFolder


class Gate(SharedByCopies):
    """Lets a job see no more than some records at first; shared by all copies of a function."""

    def __init__(self, first):
        self.first = first
        self.was_reached = threading.Event()


class Passing(MapFunction):
    def __init__(self, gate):
        self.gate = gate

    def map(self, value):
        if value >= self.gate.first:
            self.gate.was_reached.set()
        return value


class NumberIsTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


SLOWLY = RESTARTING | {"penstock.epoch.interval": "20 ms"}
WITHOUT_CHECKPOINTS = {"penstock.epoch.interval": "20 ms", "penstock.epoch.max-records": "10"}


def windowed(env, folder, last, gate, regions=1):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(NumberIsTime())
    for region in range(regions):
        numbers = env.from_sequence(0, last).map(Passing(gate)).assign_timestamps_and_watermarks(strategy)
        sums = numbers.key_by(lambda value: 0).window(TumblingEventTimeWindows.of(Time.milliseconds(100)))
        sums.reduce(lambda a, b: a + b).sink_to(file_sink(folder / f"region-{region}"))


def window_sums(last):
    return sorted(sum(range(start, min(start + 100, last + 1))) for start in range(0, last + 1, 100))


@pytest.mark.parametrize("regions", [1, 2])
@pytest.mark.parametrize("settings", [SLOWLY, WITHOUT_CHECKPOINTS], ids=["checkpoints", "none"])
def test_job_whose_savepoint_fails_is_not_drained(tmp_path, settings, regions):
    """No window fires early, and none twice, although the drained job had fired them all."""
    env, gate, last = environment(), Gate(50), 1049
    windowed(env, tmp_path / "out", last, gate, regions)
    job = job_of(env, settings, executor=CopiesFail(2)).start()
    assert gate.was_reached.wait(PATIENCE_S)
    for _ in range(2):
        with pytest.raises(CheckpointError, match=r"the savepoint in .* was not written: OSError: disk full"):
            job.master.stop_with_savepoint(str(tmp_path / "savepoints"), drain=True).result(PATIENCE_S)
        assert not job.master.status.is_terminal_state()
    job.join()
    assert job.master.status is JobStatus.FINISHED
    for region in range(regions):
        assert numbers_in(tmp_path / "out" / f"region-{region}") == window_sums(last)
    assert job.master.restarts == 0, "it was no failure of the job"


@pytest.mark.parametrize("regions", [1, 2])
@pytest.mark.parametrize("settings", [SLOWLY, WITHOUT_CHECKPOINTS], ids=["checkpoints", "none"])
def test_drained_job_fires_what_is_open_and_ends(tmp_path, settings, regions):
    env, gate = environment(), Gate(50)
    windowed(env, tmp_path / "out", 10**6, gate, regions)
    job = job_of(env, settings).start()
    assert gate.was_reached.wait(PATIENCE_S)
    job.master.stop_with_savepoint(str(tmp_path / "savepoints"), drain=True).result(PATIENCE_S)
    job.join()
    assert job.master.status is JobStatus.FINISHED
    reads = []
    for region in range(regions):
        total = sum(numbers_in(tmp_path / "out" / f"region-{region}"))
        reads.append(round((2 * total + 0.25) ** 0.5 + 0.5))
        assert total == sum(range(reads[-1])), "all that was read is in some window"
    assert max(reads) > 50, "the gate opens when any region has come so far"


def test_job_that_fails_while_it_is_drained_continues(tmp_path):
    """The request gets an answer; the region starts again from before."""
    failures = []

    class FailsAtTheEndOfTime(MapFunction):
        def map(self, value):
            if not failures:
                failures.append(value)
                raise RuntimeError("stumbled")
            return value

    env, gate, last = environment(), Gate(50), 1049
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(NumberIsTime())
    numbers = env.from_sequence(0, last).map(Passing(gate)).assign_timestamps_and_watermarks(strategy)
    days = numbers.key_by(lambda value: 0).window(TumblingEventTimeWindows.of(Time.days(1)))
    days.reduce(lambda a, b: a + b).map(FailsAtTheEndOfTime()).sink_to(file_sink(tmp_path / "out"))
    job = job_of(env, SLOWLY).start()
    assert gate.was_reached.wait(PATIENCE_S)
    with pytest.raises(CheckpointError, match="stumbled"):
        job.master.stop_with_savepoint(str(tmp_path / "savepoints"), drain=True).result(PATIENCE_S)
    job.join()
    assert numbers_in(tmp_path / "out") == [sum(range(last + 1))]


@dataclass(frozen=True)
class RefusesCheckpoints(FaultPlan):
    """No checkpoint can be completed once the savepoint is written: the n-th and some more fail."""

    savepoints: str = ""
    first: int = 1
    times: int = 1

    def fault_at(self, operation, path):
        if operation == "rename" and path.endswith("_metadata") and any(Path(self.savepoints).glob("*/_metadata")):
            count = self._note("refused", ".")
            if self.first <= count < self.first + self.times:
                return Fault(operation)
        return None


@pytest.mark.parametrize("failover", ["region", "full"])
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize(("regions", "first"), [(1, 1), (2, 1), (2, 2)])
def test_drained_job_ends_with_its_savepoint_although_its_last_checkpoint_is_refused_at_first(
    tmp_path, regions, first, times, failover
):
    """Some of its regions may have ended with it: no other way is open to the others."""
    env, gate = environment(), Gate(50)
    windowed(env, tmp_path / "out", 10**6, gate, regions)
    plan = RefusesCheckpoints(str(tmp_path / "notes"), (), str(tmp_path / "savepoints"), first, times)
    more = {
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        "jobmanager.execution.failover-strategy": failover,
    }
    job = job_of(env, SLOWLY | more, open_folder=lambda uri: FaultyFolder(folder_at(uri), plan)).start()
    assert gate.was_reached.wait(PATIENCE_S)
    path = job.master.stop_with_savepoint(str(tmp_path / "savepoints"), drain=True).result(PATIENCE_S)
    job.join()
    assert job.master.status is JobStatus.FINISHED and job.master.stopped_with == path
    for region in range(regions):
        total = sum(numbers_in(tmp_path / "out" / f"region-{region}"))
        assert total == sum(range(round((2 * total + 0.25) ** 0.5 + 0.5))), "all that was read is in some window, once"


def test_drained_job_whose_last_checkpoint_is_refused_for_good_fails_and_names_its_savepoint(tmp_path):
    env, gate = environment(), Gate(50)
    windowed(env, tmp_path / "out", 10**6, gate)
    plan = RefusesCheckpoints(str(tmp_path / "notes"), (), str(tmp_path / "savepoints"), 1, 10**6)
    more = {
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        "restart-strategy.fixed-delay.attempts": "3",
    }
    job = job_of(env, SLOWLY | more, open_folder=lambda uri: FaultyFolder(folder_at(uri), plan)).start()
    assert gate.was_reached.wait(PATIENCE_S)
    answer = job.master.stop_with_savepoint(str(tmp_path / "savepoints"), drain=True)
    with pytest.raises(CheckpointError, match=r"the savepoint is in .*savepoints.*, but the job did not stop"):
        answer.result(PATIENCE_S)
    with pytest.raises(CheckpointFailedError, match="metadata could not be written"):
        job.join()
    assert job.master.status is JobStatus.FAILED
