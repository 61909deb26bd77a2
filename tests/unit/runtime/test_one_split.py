"""Event time of a plain stream is that of a source with one split, and both are as in Flink."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Duration, WatermarkStrategy
from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.common.watermark_generator import (
    BoundedOutOfOrdernessWatermarks,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarksWithIdleness,
)
from penstock.datastream.connectors.source_v2 import (
    InputStatus,
    Source,
    SourceReader,
    SourceSplit,
)
from penstock.datastream.state import ListStateDescriptor
from penstock.graph.descriptions import SplitSourceDescription, WatermarksDescription
from penstock.runtime.batch import Batch
from penstock.runtime.operators.base import OperatorContext, TaskInfo
from penstock.runtime.operators.watermarks import TimestampsAndWatermarksOperator
from penstock.runtime.source_reading import READER_STATE, ReadOrder, SourceReaderOperator
from penstock.runtime.state.operator import OperatorStateBackend
from penstock.testing.harness import RecordingOutput

INTERVAL_MS = 5
IDLE, ACTIVE = "idle", "active"


class AsElementsSay(WatermarkGenerator):
    """An element is what the generator is to do: emit a watermark, or mark its output; None for nothing."""

    def on_event(self, event, event_timestamp, output):
        match event:
            case "idle":
                output.mark_idle()
            case "active":
                output.mark_active()
            case int():
                output.emit_watermark(event)
            case (watermark, "idle"):
                output.emit_watermark(watermark)
                output.mark_idle()

    def on_periodic_emit(self, output):
        pass


class BoundedAndAsElementsSay(BoundedOutOfOrdernessWatermarks):
    """A generator of a user's on top of one of the library's."""

    def __init__(self):
        super().__init__(3)

    def on_event(self, event, event_timestamp, output):
        super().on_event(event, event_timestamp, output)
        AsElementsSay.on_event(self, event, event_timestamp, output)


def assigned(value, _):
    return value if isinstance(value, int) else 0


STRATEGIES = {
    "bounded": WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(3)),
    "bounded, idle": WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(3)).with_idleness(
        Duration.of_millis(20)
    ),
    "none, idle": WatermarkStrategy.no_watermarks().with_idleness(Duration.of_millis(20)),
    "as elements say": WatermarkStrategy.for_generator(AsElementsSay),
    "bounded and as elements say": WatermarkStrategy.for_generator(BoundedAndAsElementsSay),
    "as elements say, idle": WatermarkStrategy.for_generator(AsElementsSay).with_idleness(Duration.of_millis(20)),
}


class Flink(WatermarkOutput):
    """What Flink's operator does, one element at a time, in a few lines."""

    def __init__(self, strategy, interval_ms, clock):
        self.generator = strategy.create_watermark_generator(lambda: clock[0])
        self.clock, self.last_ms = clock, clock[0]
        self.interval_ms, self.events = interval_ms, []
        self.watermark, self.is_idle = MIN_LONG_VALUE, False

    def emit_watermark(self, watermark):
        if watermark > self.watermark:
            self.watermark = watermark
            self.mark_active()
            self.events.append(("watermark", None, watermark))

    def mark_idle(self):
        self.mark(True)

    def mark_active(self):
        self.mark(False)

    def mark(self, is_idle):
        if is_idle != self.is_idle:
            self.is_idle = is_idle
            self.events.append(("status", is_idle, None))

    def records(self, values):
        for value in values:
            self.events.append(("element", value, assigned(value, None)))
            self.generator.on_event(value, assigned(value, None), self)
            if self.interval_ms == 0:
                self.generator.on_periodic_emit(self)
        if self.clock[0] - self.last_ms >= self.interval_ms:
            self.end_epoch()

    def end_epoch(self):
        self.generator.on_periodic_emit(self)
        self.last_ms = self.clock[0]

    def restart(self):
        """All is as it was, but the interval begins, and idleness starts anew."""
        self.last_ms, self.is_idle = self.clock[0], False
        if isinstance(self.generator, WatermarksWithIdleness):
            self.generator.restart()


class Split(SourceSplit):
    def split_id(self):
        return "the split"


class Reader(SourceReader):
    def __init__(self, source):
        self.source, self.splits = source, []

    def poll_next(self, output):
        values, self.source.values = self.source.values, []
        output.create_output_for_split("the split").collect_batch(values)
        return InputStatus.NOTHING_AVAILABLE

    def add_splits(self, splits):
        self.splits += splits

    def snapshot_state(self, checkpoint_id):
        return self.splits

    def notify_no_more_splits(self):
        pass


class HandedOver(Source):
    """One split, whose records are those in `values`."""

    values: list = []

    def create_reader(self, reader_context):
        return Reader(self)

    def get_boundedness(self):
        raise NotImplementedError

    create_enumerator = restore_enumerator = get_boundedness


class Operator:
    """An operator that can be built again from what it remembers."""

    def __init__(self, strategy, interval_ms, clock):
        self.strategy = WatermarksDescription(strategy.with_timestamp_assigner(assigned), interval_ms)
        self.clock, self.output = clock, RecordingOutput()
        self.start(None, None)

    def start(self, memory, state):
        context = OperatorContext(TaskInfo("0" * 32, "", "", 0, 1, 128), "", "", lambda: self.clock[0])
        self.operator = self.built()
        self.operator.setup(context, self.output)
        if state is not None:
            context.operator_state.restore(state)
        if memory is not None:
            self.operator.current_watermark, task_memory = pickle.loads(memory)
            self.operator.restore_task_memory(task_memory)
        self.operator.open()

    def restart(self):
        self.operator.snapshot_state(1)
        memory = pickle.dumps((self.operator.current_watermark, self.operator.task_memory()))
        self.start(memory, self.operator.context.operator_state.snapshot())

    def end_epoch(self):
        self.operator.end_epoch()

    @property
    def events(self):
        return self.output.events


class PlainStream(Operator):
    def built(self):
        return TimestampsAndWatermarksOperator(self.strategy)

    def records(self, values):
        self.operator.process_batch(Batch(list(values)))


class SourceWithOneSplit(Operator):
    def built(self):
        self.source = HandedOver()
        return SourceReaderOperator(SplitSourceDescription(source=self.source, watermarks=self.strategy))

    def start(self, memory, state):
        if state is None:
            empty = OperatorStateBackend("")
            empty.get_list_state(ListStateDescriptor(READER_STATE)).update([Split()])
            state = empty.snapshot()
        super().start(memory, state)

    def records(self, values):
        self.source.values = list(values)
        for batch in self.operator.read(ReadOrder(max_records=1000)):
            self.operator.emit(batch)


elements = st.one_of(
    st.integers(0, 60), st.sampled_from([None, IDLE, ACTIVE]), st.tuples(st.integers(0, 60), st.just(IDLE))
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("records"), st.lists(elements, min_size=1, max_size=6)),
        st.tuples(st.just("time"), st.integers(0, 4)),
        st.tuples(st.just("time"), st.integers(20, 50)),
        st.tuples(st.just("restart"), st.none()),
    ),
    max_size=20,
)

# How long an output has been idle is counted from one periodic call to the next: with interval 0 by no common clock.
kinds_and_intervals = st.one_of(
    st.tuples(st.sampled_from(sorted(STRATEGIES)), st.just(INTERVAL_MS)),
    st.tuples(st.sampled_from(["bounded", "as elements say"]), st.just(0)),
)


@settings(max_examples=150)
@given(kinds_and_intervals, steps)
def test_a_plain_stream_a_source_with_one_split_and_flink_say_the_same(kind_and_interval, sequence):
    (kind, interval_ms), clock = kind_and_interval, [0]
    all_three = [each(STRATEGIES[kind], interval_ms, clock) for each in (Flink, PlainStream, SourceWithOneSplit)]
    for step, content in sequence:
        if step == "time":
            clock[0] += content
        for each in all_three:
            if step == "records":
                each.records(content)
            elif step == "restart":
                each.restart()
            else:
                each.end_epoch()
    flink, plain, source = [each.events for each in all_three]
    assert plain == source == flink


@pytest.mark.parametrize("kind", [PlainStream, SourceWithOneSplit])
def test_an_old_record_does_not_end_idleness_because_the_watermark_does_not_rise(kind):
    clock = [0]
    stream = kind(STRATEGIES["bounded, idle"], INTERVAL_MS, clock)
    stream.records([50])
    for clock[0] in (10, 20, 50):
        stream.end_epoch()
    stream.records([10])
    stream.end_epoch()
    assert stream.output.statuses == [True]
    stream.records([51])
    stream.end_epoch()
    assert stream.output.statuses == [True, False] and stream.output.watermarks == [46, 47]


@pytest.mark.parametrize("is_idle", [True, False])
def test_a_plain_stream_takes_back_the_generator_alone_as_version_0_1_kept_it(is_idle):
    clock = [0]
    former = STRATEGIES["bounded, idle"].create_watermark_generator(int)
    former.on_event(None, 50, Flink(STRATEGIES["none, idle"], 0, clock))
    stream = PlainStream(STRATEGIES["bounded, idle"], INTERVAL_MS, clock)
    stream.start(pickle.dumps((46, (former, is_idle))), stream.operator.context.operator_state.snapshot())
    stream.records([10])
    stream.end_epoch()
    assert stream.output.watermarks == [] and stream.output.statuses == []
    stream.records([60])
    stream.end_epoch()
    assert stream.output.watermarks == [56] and stream.output.statuses == []


def test_a_finished_plain_stream_keeps_what_it_was_restored_with():
    operator = TimestampsAndWatermarksOperator(WatermarksDescription(STRATEGIES["bounded"]))
    operator.setup(OperatorContext(TaskInfo("0" * 32, "", "", 0, 1, 128), "", "", int), RecordingOutput())
    kept = ({}, None), False
    operator.current_watermark = MAX_LONG_VALUE
    operator.restore_task_memory(kept)
    assert operator.task_memory() == kept and operator.next_processing_time() is None
