"""Sinks of one's own: writers, their state, and what they hand to the committer."""

from __future__ import annotations

import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sink_job import CHECKPOINT_STEPS, SinkJob

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.base import StreamTransformer, SupportsPreprocessing
from penstock.datastream.connectors.sink_v2 import (
    Committer,
    Sink,
    SinkWriter,
    SupportsCommitter,
    SupportsWriterState,
)
from penstock.datastream.functions import MapFunction
from penstock.graph.descriptions import SinkWriterDescription
from penstock.testing import OperatorHarness

TABLE = {}
"""What was committed: committable -> elements. Committing again changes nothing."""
CALLS = []


@pytest.fixture(autouse=True)
def nothing_written():
    TABLE.clear()
    CALLS.clear()


class NotingWriter(SinkWriter):
    def __init__(self, context):
        self._context = context

    def write(self, element, context):
        CALLS.append(("write", element, context.timestamp(), context.current_watermark()))

    def flush(self, end_of_input):
        CALLS.append(("flush", end_of_input))

    def write_watermark(self, watermark):
        CALLS.append(("watermark", watermark))

    def close(self):
        CALLS.append("close")


class NotingSink(Sink):
    def create_writer(self, context):
        CALLS.append("create")
        return NotingWriter(context)


class TableWriter(SinkWriter):
    """Prepares every third element at once; what is left over is state."""

    def __init__(self, subtask, restored=()):
        self._subtask = subtask
        self._held = list(restored)

    def write(self, element, context):
        self._held.append(element)

    def flush(self, end_of_input):
        self._whole = len(self._held) if end_of_input else len(self._held) // 3 * 3

    def prepare_commit(self):
        prepared, self._held = self._held[: self._whole], self._held[self._whole :]
        return [tuple(prepared)] if prepared else []

    def snapshot_state(self, checkpoint_id):
        return self._held


class TableCommitter(Committer):
    def commit(self, requests):
        for request in requests:
            if request.get_committable() in TABLE:
                request.signal_already_committed()
            TABLE[request.get_committable()] = list(request.get_committable())


class TableSink(Sink, SupportsWriterState, SupportsCommitter):
    def create_writer(self, context):
        assert context.get_restored_checkpoint_id() is None
        return TableWriter(context.get_task_info().get_index_of_this_subtask())

    def restore_writer(self, context, recovered_state):
        assert context.get_restored_checkpoint_id() is not None
        return TableWriter(context.get_task_info().get_index_of_this_subtask(), recovered_state)

    def create_committer(self, context):
        return TableCommitter()


def described(sink):
    env = StreamExecutionEnvironment.get_execution_environment()
    return env.from_collection([1]).sink_to(sink).transformation


def test_plain_sink_flushes_at_checkpoints_and_commits_nothing(tmp_path):
    job = SinkJob(NotingSink(), tmp_path).write()
    job.operators[0].process_watermark(7)
    job.checkpoint()
    assert CALLS == ["create", ("write", "0", 0, -(2**63)), ("watermark", 7), ("flush", False)]
    assert not job.commits.has_committers and not job.operators[0].waits_for_checkpoint()
    CALLS.clear()
    job.end()
    assert CALLS == [("flush", True), "close"]


def test_sink_without_state_gets_a_new_writer_after_a_restart(tmp_path):
    SinkJob(NotingSink(), tmp_path).checkpoint().fail()
    assert CALLS == ["create", ("flush", False), "close", "create"]


def test_writer_knows_its_job_task_and_time():
    class Curious(NotingSink):
        def create_writer(self, context):
            Curious.context = context
            return super().create_writer(context)

    harness = OperatorHarness(SinkWriterDescription(Curious()), subtask=1, parallelism=2, processing_time=40)
    task = Curious.context.get_task_info()
    assert (task.get_index_of_this_subtask(), task.get_number_of_parallel_subtasks()) == (1, 2)
    assert task.get_task_name_with_subtasks() == "harness (2/2)" and task.get_attempt_number() == 0
    assert task.get_max_number_of_parallel_subtasks() == 128 and task.get_task_name() == "harness"
    assert Curious.context.get_job_info().get_job_name() == "harness" and Curious.context.get_job_info().get_job_id()
    assert Curious.context.get_processing_time_service().get_current_processing_time() == 40
    assert Curious.context.metric_group() is harness.context.metric_group


def test_writers_timers_are_called_once_in_the_order_of_their_times():
    class Timed(NotingSink):
        def create_writer(self, context):
            Timed.time = context.get_processing_time_service()
            return super().create_writer(context)

    harness = OperatorHarness(SinkWriterDescription(Timed()))
    fired = []
    for at in (30, 10, 20):
        Timed.time.register_timer(at, fired.append)
    assert harness.operator.next_processing_time() == 10
    harness.processing_time(20).processing_time(25)
    assert fired == [10, 20] and harness.operator.next_processing_time() == 30


def test_committables_are_handed_out_once(tmp_path):
    job = SinkJob(TableSink(), tmp_path).write(4)
    operator = job.operators[0]
    assert operator.prepare_commit(1) == [("0", "1", "2")]
    assert operator.prepare_commit(2) == []
    operator.finish()
    assert operator.waits_for_checkpoint() and operator.prepare_commit(3) == [("3",)]


def test_writers_state_is_dealt_out_when_the_parallelism_changes(tmp_path):
    job = SinkJob(TableSink(), tmp_path, parallelism=2).write(4).checkpoint("metadata")
    job.fail(parallelism=3).write(2).end()
    assert sorted(each for elements in TABLE.values() for each in elements) == ["0", "1", "2", "3", "4", "5"]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 7)),
        st.tuples(st.sampled_from(["fail", "crash"]), st.sampled_from([None, *CHECKPOINT_STEPS])),
        st.just(("checkpoint", None)),
        st.just(("abort", None)),
    ),
    max_size=20,
)


@given(steps=steps, parallelism=st.integers(1, 3))
def test_every_element_is_committed_exactly_once_whatever_fails(steps, parallelism):
    TABLE.clear()
    with tempfile.TemporaryDirectory() as folder:
        job = SinkJob(TableSink(), folder, parallelism=parallelism)
        for kind, what in steps:
            if kind == "write":
                job.write(what)
            elif kind == "checkpoint":
                job.checkpoint()
            elif kind == "abort":
                job.aborted_checkpoint()
            else:
                if what is not None:
                    job.checkpoint(last_step=what)
                getattr(job, kind)()
        written = job.position
        job.end()
    assert sorted(int(each) for elements in TABLE.values() for each in elements) == list(range(written))


# --- sink_to ---------------------------------------------------------------------------------------------------------


def test_sink_to_describes_the_sink_and_whether_it_commits():
    assert described(NotingSink()).name == "Sink: Writer"
    assert not described(NotingSink()).operator.commits_with_checkpoints
    assert described(TableSink()).operator.commits_with_checkpoints


def test_sink_may_change_its_stream_first():
    class Doubling(MapFunction):
        def map(self, value):
            return 2 * value

    class Doubled(StreamTransformer):
        def apply(self, ds):
            return ds.map(Doubling())

    class DoublingSink(NotingSink, SupportsPreprocessing):
        def get_transformer(self):
            return Doubled()

    [before] = described(DoublingSink()).inputs
    assert isinstance(before.operator.function, Doubling)


def test_sink_to_says_what_it_takes():
    stream = StreamExecutionEnvironment.get_execution_environment().from_collection([1])
    with pytest.raises(TypeError, match="sink_to needs a Sink such as FileSink, got int"):
        stream.sink_to(7)
    with pytest.raises(UnsupportedFeatureError, match=r"sink_to\(Sink\): it can be described but not run"):
        stream.sink_to(Sink())
