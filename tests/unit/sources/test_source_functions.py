"""Source functions: a thread in the driver whose records are replayed, and whose state fits the checkpoint."""

from __future__ import annotations

import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_by_copies import SharedByCopies
from source_job import PATIENCE_S, SourceJob

from penstock.common import Configuration, Time
from penstock.common.constants import MAX_LONG_VALUE
from penstock.common.exceptions import StateAccessError, UserFunctionError
from penstock.datastream import MapFunction, StreamExecutionEnvironment
from penstock.datastream.accumulators import IntCounter
from penstock.datastream.functions import (
    CheckpointedFunction,
    CheckpointListener,
    ParallelSourceFunction,
    RichParallelSourceFunction,
    RichSourceFunction,
    SourceFunction,
)
from penstock.datastream.state import ListStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows


class Shared(SharedByCopies):
    """What copies of a function share: it does not take part in copying."""

    def __init__(self):
        self.calls = []
        self.go_on = threading.Semaphore(0)
        self.has_paused = threading.Semaphore(0)

    def pause(self):
        """In the function: wait for the test."""
        self.has_paused.release()
        assert self.go_on.acquire(timeout=PATIENCE_S)

    def wait_until_paused(self, times=1):
        """In the test: the function has done its part."""
        for _ in range(times):
            assert self.has_paused.acquire(timeout=PATIENCE_S)


class Counting(SourceFunction, CheckpointedFunction):
    """Emits the numbers up to `end`, and continues where it stood. Pauses behind those in `pauses`."""

    def __init__(self, end, shared=None, pauses=(), fails_at=None):
        self.end = end
        self.shared = shared or Shared()
        self.pauses = pauses
        self.fails_at = fails_at
        self.next = 0
        self.is_cancelled = False

    def initialize_state(self, context):
        self.offsets = context.get_operator_state_store().get_list_state(ListStateDescriptor("offset"))
        for offset in self.offsets.get():
            self.next = offset
        self.shared.calls.append(("initialized at", self.next, context.is_restored()))

    def snapshot_state(self, context):
        self.offsets.update([self.next])

    def run(self, ctx):
        while self.next < self.end and not self.is_cancelled:
            if self.next == self.fails_at and self.shared.calls.count("failed") == 0:
                self.shared.calls.append("failed")
                raise ConnectionError("the server is away")
            with ctx.get_checkpoint_lock():
                # The state moves first: nothing must be seen in between.
                self.next += 1
                ctx.collect(self.next - 1)
            if self.next in self.pauses:
                self.shared.pause()

    def cancel(self):
        self.is_cancelled = True
        self.shared.go_on.release()

    def close(self):
        self.shared.calls.append("closed")


def test_function_that_returns_ends_the_source():
    function = Counting(5)
    job = SourceJob(function).to_the_end()
    assert job.values == [0, 1, 2, 3, 4]
    assert function.shared.calls == [("initialized at", 0, False), "closed"]


def test_elements_are_replayed_while_the_function_continues():
    shared = Shared()
    job = SourceJob(Counting(6, shared, pauses=(2, 4)))
    shared.wait_until_paused()
    job.epoch()
    shared.go_on.release()
    shared.wait_until_paused()
    job.epoch(is_checkpoint=False)
    assert [value for value, _ in job.unseen] == [2, 3]
    job.fail()
    shared.go_on.release()
    assert job.to_the_end().values == [0, 1, 2, 3, 4, 5]
    assert [call for call in shared.calls if call != "closed"] == [("initialized at", 0, False)]


def test_new_process_continues_exactly_where_the_checkpoint_stood():
    shared = Shared()
    job = SourceJob(Counting(6, shared, pauses=(2, 4)))
    shared.wait_until_paused()
    job.epoch()
    shared.go_on.release()
    shared.wait_until_paused()
    job.epoch(is_checkpoint=False)
    assert job.values == [0, 1]
    shared.go_on.release(), shared.go_on.release()
    assert job.crash().to_the_end().values == [0, 1, 2, 3, 4, 5]
    assert ("initialized at", 2, True) in shared.calls


def test_failed_function_starts_again_from_the_checkpoint():
    shared = Shared()
    job = SourceJob(Counting(7, shared, pauses=(2,), fails_at=5))
    shared.wait_until_paused()
    job.epoch()
    shared.go_on.release()
    with pytest.raises(UserFunctionError, match=r"operator 'Source: the source'.*ConnectionError: the server is away"):
        while True:
            job.wait_for_work()
            job.epoch(is_checkpoint=False)
    assert job.fail().to_the_end().values == [0, 1, 2, 3, 4, 5, 6]
    assert shared.calls[-3:] == ["closed", ("initialized at", 2, True), "closed"]


class Exits(SourceFunction):
    def run(self, ctx):
        sys.exit("no such file")

    def cancel(self):
        """It has ended."""


def test_function_that_exits_has_failed():
    """Its thread would end without a word, and the job would wait for it forever."""
    job = SourceJob(Exits())
    with pytest.raises(UserFunctionError, match="SystemExit: no such file"):
        job.to_the_end()
    job.close()


def test_savepoint_that_stops_the_job_has_everything_that_was_emitted():
    shared = Shared()
    job = SourceJob(Counting(6, shared, pauses=(3,)))
    shared.wait_until_paused()
    job.stop_with_savepoint()
    assert job.values == [0, 1, 2]
    shared.go_on.release()
    assert job.crash().to_the_end().values == [0, 1, 2, 3, 4, 5]


@given(
    end=st.integers(0, 30),
    pauses=st.sets(st.integers(1, 30), max_size=6),
    happenings=st.lists(st.sampled_from(["epoch", "checkpoint", "fail", "crash"]), max_size=14),
)
def test_every_element_comes_once_whatever_happens(end, pauses, happenings):
    shared = Shared()
    job = SourceJob(Counting(end, shared, pauses), settings={"penstock.epoch.max-records": "7"})
    for what in happenings:
        shared.go_on.release()
        if what in ("epoch", "checkpoint") and not job.coordinator.is_exhausted:
            job.epoch(what == "checkpoint")
        elif what == "fail":
            job.fail()
        elif what == "crash":
            job.crash()
    for _ in range(40):
        shared.go_on.release()
    assert job.to_the_end().values == list(range(end))


# --- in parallel -----------------------------------------------------------------------------------------------------


class Shares(RichParallelSourceFunction, CheckpointedFunction):
    """Every subtask emits its share of the numbers up to `end`, part by part."""

    def __init__(self, end):
        self.end = end
        self.parts = []

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("parts"))
        runtime = self.get_runtime_context()
        index, count = runtime.get_index_of_this_subtask(), runtime.get_number_of_parallel_subtasks()
        # 12 parts, whatever the parallelism.
        fresh = [(part, 0) for part in range(index, 12, count)]
        self.parts = list(self.state.get()) if context.is_restored() else fresh

    def snapshot_state(self, context):
        self.state.update(list(self.parts))

    def run(self, ctx):
        while self.parts:
            with ctx.get_checkpoint_lock():
                part, done = self.parts.pop(0)
                ctx.collect((part, done))
                if done + 1 < self.end:
                    self.parts.append((part, done + 1))

    def cancel(self):
        self.parts = []


@pytest.mark.parametrize("others", [(3,), (2, 1), (3, 3)])
def test_parallel_function_is_dealt_its_state_anew(others):
    job = SourceJob(Shares(5), parallelism=1, settings={"penstock.source.spool.max-records": "8"})
    job.epoch()
    for parallelism in others:
        job.wait_for_work()
        job.epoch().crash(parallelism)
    job.to_the_end()
    assert sorted(job.values) == [(part, done) for part in range(12) for done in range(5)]


def test_plain_source_function_has_parallelism_1():
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(4)
    assert env.add_source(Counting(1)).transformation.parallelism == 1
    assert env.add_source(Shares(1)).transformation.parallelism == 4


# --- time ------------------------------------------------------------------------------------------------------------


class WithTime(SourceFunction):
    def run(self, ctx):
        ctx.collect_with_timestamp("a", 10)
        ctx.emit_watermark(5)
        ctx.emit_watermark(4)  # Watermarks do not go back.
        ctx.mark_as_temporarily_idle()
        ctx.collect("b")
        ctx.emit_watermark(20)
        ctx.mark_as_temporarily_idle()

    def cancel(self):
        pass


def test_timestamps_watermarks_and_idleness_come_in_order():
    job = SourceJob(WithTime()).to_the_end()
    assert job.subtasks[0].output.events == [
        ("element", "a", 10),
        ("watermark", None, 5),
        ("status", True, None),
        ("status", False, None),
        ("element", "b", None),
        ("watermark", None, 20),
        ("status", True, None),
        ("status", False, None),
        ("watermark", None, MAX_LONG_VALUE),
    ]


class FallsIdle(SourceFunction):
    """Emits an element, is idle, and waits for the test."""

    def __init__(self, shared):
        self.shared = shared

    def run(self, ctx):
        ctx.collect_with_timestamp("a", 10)
        ctx.emit_watermark(5)
        ctx.mark_as_temporarily_idle()
        self.shared.pause()
        ctx.collect_with_timestamp("b", 20)

    def cancel(self):
        self.shared.go_on.release()


@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_a_function_that_is_idle_is_idle_again_after_its_job_has_failed(has_checkpoint):
    shared = Shared()
    job = SourceJob(FallsIdle(shared))
    shared.wait_until_paused()
    job.epoch(is_checkpoint=has_checkpoint)
    assert job.subtasks[0].output.events[-1] == ("status", True, None)
    for _ in range(2):
        job.fail()
        assert job.has_work()  # Somebody must say so: the others wait for its watermark.
        job.epoch(is_checkpoint=has_checkpoint)
        assert job.subtasks[0].output.events[-1] == ("status", True, None)
    shared.go_on.release()
    job.to_the_end()
    assert [value for value, _ in job.shown] == ["a", "b"]


class Marks:
    """Files by which the functions of a job and its test tell each other what has happened."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, name):
        return (self.folder / name).exists()

    def set(self, name):
        (self.folder / name).touch()


class IdleUntil(SourceFunction):
    def __init__(self, marks):
        self.marks = marks
        self.is_cancelled = False

    def run(self, ctx):
        ctx.collect_with_timestamp(("idle", 1), 3)
        ctx.mark_as_temporarily_idle()
        while not self.is_cancelled and not self.marks("seen"):
            threading.Event().wait(0.01)

    def cancel(self):
        self.is_cancelled = True


class Busy(IdleUntil):
    def run(self, ctx):
        number = 0
        while not self.is_cancelled and not self.marks("seen"):
            ctx.collect_with_timestamp(("busy", 1), number)
            if self.marks("restarted"):
                number += 1
                ctx.emit_watermark(number)
            threading.Event().wait(0.001)


class FailsAfterCheckpoint(MapFunction, CheckpointListener):
    def __init__(self, marks):
        self.marks = marks

    def open(self, runtime_context):
        if runtime_context.get_attempt_number() > 0:
            self.marks.set("restarted")

    def notify_checkpoint_complete(self, checkpoint_id):
        self.marks.set("complete")

    def map(self, value):
        if value[0] == "busy" and self.marks("complete") and not self.marks("restarted"):
            raise ValueError("once")
        return value


def test_an_idle_function_holds_nobody_back_after_an_automatic_restart(tmp_path):
    marks = Marks(tmp_path)
    settings = {
        "execution.target": "inline",
        "execution.checkpointing.interval": "10 ms",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "1 ms",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings)).set_parallelism(1)
    both = env.add_source(IdleUntil(marks)).union(env.add_source(Busy(marks))).map(FailsAfterCheckpoint(marks))
    windows = both.key_by(lambda pair: pair[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    with windows.reduce(lambda a, b: (a[0], a[1] + b[1])).execute_and_collect() as results:
        first = sorted([next(results), next(results)])
        marks.set("seen")
        assert first[1] == ("idle", 1) and first[0][0] == "busy"


# --- back pressure, cancelling ---------------------------------------------------------------------------------------


class Endless(ParallelSourceFunction):
    def __init__(self, shared):
        self.shared = shared
        self.is_cancelled = False

    def run(self, ctx):
        number = 0
        while not self.is_cancelled:
            ctx.collect(str(number) * 1000)
            number += 1
            self.shared.calls.append(number)
        self.shared.calls.append("returned")

    def cancel(self):
        self.is_cancelled = True


@pytest.mark.parametrize(
    ("settings", "most"),
    [({"penstock.source.spool.max-records": "50"}, 50), ({"penstock.source.spool.max-bytes": "20000"}, 40)],
    ids=["records", "bytes"],
)
def test_function_waits_while_it_is_too_far_ahead(settings, most):
    shared = Shared()
    job = SourceJob(Endless(shared), settings=settings)
    for epoch in range(1, 6):
        job.wait_for_work()
        job.epoch()
        assert len(shared.calls) <= most * (epoch + 1)
    job.close()
    assert shared.calls[-1] == "returned"


class IgnoresCancel(Endless):
    def cancel(self):
        """Never ends."""


def test_function_that_ignores_cancel_ends_with_its_next_element():
    shared = Shared()
    job = SourceJob(IgnoresCancel(shared))
    job.wait_for_work()
    job.close()
    assert "returned" not in shared.calls
    assert not any(thread.name.startswith("source function") for thread in threading.enumerate())


class FailsWhenCancelled(Endless):
    def cancel(self):
        super().cancel()
        raise OSError("cannot cancel")


def test_failure_of_cancel_is_only_logged(caplog):
    job = SourceJob(FailsWhenCancelled(Shared()))
    job.wait_for_work()
    job.close()
    assert "cancel() failed" in caplog.text


# --- the function's surroundings -------------------------------------------------------------------------------------


class Rich(RichSourceFunction, CheckpointListener):
    def __init__(self, shared):
        self.shared = shared

    def open(self, runtime_context):
        self.name = runtime_context.get_task_name_with_subtasks()

    def run(self, ctx):
        ctx.collect(self.name)
        self.shared.pause()

    def notify_checkpoint_complete(self, checkpoint_id):
        self.shared.calls.append(checkpoint_id)

    def cancel(self):
        self.shared.go_on.release()


def test_rich_function_knows_its_subtask_and_hears_of_checkpoints():
    shared = Shared()
    job = SourceJob(Rich(shared))
    shared.wait_until_paused()
    job.epoch()
    assert (job.values, shared.calls) == (["Source: the source (1/1)"], [1])
    job.close()


class Accumulating(RichSourceFunction):
    def open(self, runtime_context):
        runtime_context.add_accumulator("count", IntCounter())

    def run(self, ctx):
        pass

    def cancel(self):
        pass


def test_accumulators_are_refused_with_a_reason():
    job = SourceJob(Accumulating())
    with pytest.raises(UserFunctionError, match="count 'count' in a map after the source") as caught:
        job.to_the_end()
    assert isinstance(caught.value.__cause__, StateAccessError)
    job.close()


class EndlessWithState(SourceFunction, CheckpointedFunction):
    """Emits as fast as it may."""

    def __init__(self):
        self.next = 0
        self.is_cancelled = False

    def initialize_state(self, context):
        self.offsets = context.get_operator_state_store().get_list_state(ListStateDescriptor("offset"))

    def snapshot_state(self, context):
        self.offsets.update([self.next])

    def run(self, ctx):
        while not self.is_cancelled:
            with ctx.get_checkpoint_lock():
                self.next += 1
                ctx.collect(self.next - 1)

    def cancel(self):
        self.is_cancelled = True


@pytest.mark.parametrize(("record_ms", "most"), [(2, 250), (50, 10), (0.001, 100_000)])
def test_epoch_of_a_checkpoint_takes_no_more_than_the_job_can_process_in_time(record_ms, most):
    """All that the function has emitted goes into it, so the function must not be far ahead."""
    job = SourceJob(EndlessWithState())
    [subtask] = job.coordinator._subtasks
    for epoch in range(1, 12):
        wait_until_full(subtask.spool)
        job.coordinator.plan(epoch, is_checkpoint=True)
        records = subtask.spool.records_taken
        job.coordinator.epoch_complete({}, round(records * record_ms))
    assert most / 2 <= records <= most * 1.5
    job.coordinator.stop()


def wait_until_full(spool):
    deadline = time.monotonic() + PATIENCE_S
    while not spool._has_to_wait:
        assert time.monotonic() < deadline
        time.sleep(0.001)
