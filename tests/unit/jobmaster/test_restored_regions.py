"""The regions of a job end, stop or are cancelled one before the other, and the job that continues loses nothing."""

from __future__ import annotations

import threading

import pytest
from job_parts import (
    PATIENCE_S,
    RESTARTING,
    FileTransactions,
    Numbered,
    environment,
    file_sink,
    job_of,
    numbers_in,
    wait_until,
)
from shared_by_copies import SharedByCopies

from penstock.checkpoint.job_checkpoints import JobCheckpoints
from penstock.common import Types, moment
from penstock.common.clocks import wall_clock_ms
from penstock.datastream.functions import CheckpointedFunction, KeyedProcessFunction, MapFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.jobmaster.region.state_machine import RegionState

REGIONS, LAST = 2, 200
EVERYTHING = list(range(1, LAST + 1))
DAY_MS = 24 * 3600 * 1000
SLOWLY = {"penstock.epoch.interval": "1 ms", "penstock.epoch.max-records": "10"}


class Gate(SharedByCopies, MapFunction):
    """Lets elements beyond `at` pass only when it is open. Shared by all copies of the function."""

    def __init__(self, at):
        self.at = at
        self.came, self.may_pass = threading.Event(), threading.Event()

    def map(self, value):
        if value > self.at:
            self.came.set()
            assert self.may_pass.wait(PATIENCE_S)
        return value


def build(folder, gates=(), has_files=True):
    env = environment()
    for region in range(REGIONS):
        numbers = env.from_sequence(1, LAST).uid(f"numbers {region}")
        gate = gates[region] if gates else Gate(LAST)
        counts = numbers.map(gate).uid(f"gate {region}").key_by(lambda value: 0).process(Numbered())
        if has_files:
            counts.uid(f"numbered {region}").sink_to(file_sink(folder / f"region-{region}")).uid(f"sink {region}")
        else:
            counts.uid(f"numbered {region}").print().uid(f"sink {region}")
    return env


def written(folder):
    return [numbers_in(folder / f"region-{region}") for region in range(REGIONS)]


def saved_halfway(folder, **more):
    """The savepoint of a job in the middle of its work; its path."""
    job = job_of(build(folder / "first", **more), RESTARTING | {"penstock.epoch.interval": "200 ms"}).start()
    wait_until(lambda: len(job.lines) > 1 or all(written(folder / "first")))
    path = job.master.stop_with_savepoint(str(folder / "savepoints"), drain=False).result(PATIENCE_S)
    job.join()
    return path


def has_ended(job, region):
    runners = job.master._runners
    return bool(runners) and runners[region]._machine.state is RegionState.ENDED


@pytest.mark.parametrize("end", ["by itself", "stopped", "drained"])
def test_what_each_region_has_written_shows_up(tmp_path, end):
    path = saved_halfway(tmp_path)
    gates = [Gate(LAST if end == "by itself" else LAST // 2) for _ in range(REGIONS)]
    job = job_of(build(tmp_path / "second", gates), SLOWLY | {"execution.state-recovery.path": path}).start()
    if end != "by itself":
        assert all(gate.came.wait(PATIENCE_S) for gate in gates)
        stopped = job.master.stop_with_savepoint(str(tmp_path / "savepoints"), drain=end == "drained")
        for gate in gates:
            gate.may_pass.set()
        stopped.result(PATIENCE_S)
    job.join()
    for before, now in zip(written(tmp_path / "first"), written(tmp_path / "second"), strict=True):
        assert len(now) >= LAST // 2 - len(before)
        assert sorted([*before, *now]) == EVERYTHING[: len(before) + len(now)]
        assert end != "by itself" or len(before) + len(now) == LAST


def test_savepoint_is_taken_although_a_region_has_ended(tmp_path):
    """It has no checkpoint of its own, because nothing of it waits for a commit."""
    path = saved_halfway(tmp_path, has_files=False)
    gates = [Gate(LAST), Gate(LAST // 2)]
    settings = SLOWLY | {"execution.state-recovery.path": path}
    job = job_of(build(tmp_path / "second", gates, has_files=False), settings).start()
    wait_until(lambda: job.failure or has_ended(job, region=0))
    stopped = job.master.stop_with_savepoint(str(tmp_path / "savepoints"), drain=False)
    gates[1].may_pass.set()
    path = stopped.result(PATIENCE_S)
    job.join()
    assert job.lines.count(LAST) == 1
    last = job_of(build(tmp_path / "third", has_files=False), settings | {"execution.state-recovery.path": path})
    last.start().join()
    assert last.lines == list(range(LAST + 1 - len(last.lines), LAST + 1)), "only the other region had something left"


def test_region_that_was_cancelled_is_not_at_its_end(monkeypatch, tmp_path):
    """Another one completes a checkpoint when it has left already. It has none of its own, and must begin again."""
    gates = [Gate(LAST // 2), Gate(LAST)]
    retaining = {
        "execution.checkpointing.interval": "1 h",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    }
    job = job_of(build(tmp_path / "first", gates), SLOWLY | retaining)
    complete = JobCheckpoints.complete

    def complete_late(*arguments):
        assert gates[0].came.wait(PATIENCE_S), "the other region has read something"
        job.master.cancel()
        gates[0].may_pass.set()
        wait_until(lambda: has_ended(job, region=0))
        return complete(*arguments)

    monkeypatch.setattr(JobCheckpoints, "complete", complete_late)
    job.start().join()
    monkeypatch.undo()
    [checkpoint] = (tmp_path / "checkpoints").glob("*/chk-*")
    settings = SLOWLY | {"execution.state-recovery.path": str(checkpoint)}
    job_of(build(tmp_path / "second"), settings).start().join()
    for before, now in zip(written(tmp_path / "first"), written(tmp_path / "second"), strict=True):
        assert sorted([*before, *now]) == EVERYTHING


class Later(KeyedProcessFunction):
    """Emits the first element a day later."""

    def open(self, runtime_context):
        self._element = runtime_context.get_state(ValueStateDescriptor("element", Types.LONG()))

    def process_element(self, value, ctx):
        if value == 1:
            self._element.update(value)
            ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + DAY_MS)

    def on_timer(self, timestamp, ctx):
        yield self._element.value()


class Held(SharedByCopies, MapFunction, CheckpointedFunction):
    """Saves its state only when it may. Shared by all copies of the function."""

    def __init__(self, may_save):
        self.may_save = may_save

    def initialize_state(self, context):
        """There is none."""

    def snapshot_state(self, context):
        assert self.may_save.wait(PATIENCE_S)

    def map(self, value):
        return value


def test_nothing_is_committed_before_all_regions_have_saved_what_was_restored(monkeypatch, tmp_path):
    """Timers were due while the job was down. They fire when there is a checkpoint of all regions to come back to."""
    out = tmp_path / "out"
    out.mkdir()

    def job(may_save, **more):
        env = environment()
        later = env.from_sequence(1, 10**7).key_by(lambda value: 0).process(Later()).uid("later")
        later.add_sink(FileTransactions(str(out)))
        env.from_sequence(1, 10**7).map(Held(may_save)).uid("held").print()
        return job_of(env, RESTARTING | more).start()

    may_save = threading.Event()
    may_save.set()
    first = job(may_save)
    wait_until(lambda: first.lines)
    path = first.master.stop_with_savepoint(str(tmp_path / "savepoints"), drain=False).result(PATIENCE_S)
    first.join()
    assert numbers_in(out) == []

    monkeypatch.setattr(moment, "wall_clock_ms", lambda: wall_clock_ms() + 2 * DAY_MS)
    may_save.clear()
    second = job(may_save, **{"execution.state-recovery.path": path})
    wait_until(lambda: second.failure or (second.master._runners and was_notified(second.master._runners[0])))
    assert numbers_in(out) == [], "a process that is killed now starts again from the savepoint"
    may_save.set()
    wait_until(lambda: second.failure or numbers_in(out))
    second.master.cancel()
    second.join()
    assert numbers_in(out) == [1]


def was_notified(runner):
    attempt = runner._attempt
    return runner._has_own_checkpoint() and attempt is not None and not attempt.has_news


def test_what_a_region_has_committed_may_be_moved_when_it_has_ended(tmp_path):
    """Checkpoints of the others go on for long, and say nothing of it."""
    gates = [Gate(LAST), Gate(LAST // 2)]
    retaining = {
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    }
    job = job_of(build(tmp_path / "out", gates), RESTARTING | retaining).start()
    wait_until(lambda: job.failure or has_ended(job, region=0))
    gates[1].may_pass.set()
    wait_until(lambda: job.failure or len(written(tmp_path / "out")[1]) > LAST // 2)
    job.master.cancel()
    job.join()
    (tmp_path / "out" / "region-0").rename(tmp_path / "elsewhere")
    [checkpoint] = (tmp_path / "checkpoints").glob("*/chk-*")
    settings = SLOWLY | {"execution.state-recovery.path": str(checkpoint)}
    job_of(build(tmp_path / "out"), settings).start().join()
    assert numbers_in(tmp_path / "elsewhere") == numbers_in(tmp_path / "out" / "region-1") == EVERYTHING
