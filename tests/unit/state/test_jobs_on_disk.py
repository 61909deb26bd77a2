"""Whole jobs, epoch by epoch: where their state is makes no difference to what comes out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Duration, Time
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from penstock.datastream import KeyedProcessFunction
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows
from penstock.runtime.state.backends import DiskBackend, HeapBackend
from penstock.testing import JobInEpochs, MemoryFolder

HEAP, DISK = HeapBackend(), DiskBackend(cache_entries=2)


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))
EVENT_TIME = BOUNDED.with_timestamp_assigner(SecondField())


def summed(a, b):
    return a[0], max(a[1], b[1]), a[2] + b[2]


class Remembering(KeyedProcessFunction):
    """Emits all it knows of the key; forgets it now and then."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.times = runtime_context.get_list_state(ListStateDescriptor("times"))
        self.by_time = runtime_context.get_map_state(MapStateDescriptor("by time"))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        self.times.add(value[1])
        self.by_time.put(value[1] % 7, value)
        if value[1] % 5 == 0:
            self.by_time.remove(0)
        if value[1] % 11 == 0:
            self.times.clear()
            self.by_time.clear()
        yield value[0], self.count.value(), sorted(self.times.get()), sorted(self.by_time.items())


JOBS = {
    "keyed reduce": lambda s: s.key_by(lambda r: r[0]).reduce(summed),
    "process function": lambda s: s.key_by(lambda r: r[0]).process(Remembering()),
    "sliding windows": lambda s: (
        s.assign_timestamps_and_watermarks(EVENT_TIME)
        .key_by(lambda r: r[0])
        .window(SlidingEventTimeWindows.of(Time.milliseconds(20), Time.milliseconds(10)))
        .reduce(summed)
    ),
    "session windows": lambda s: (
        s.assign_timestamps_and_watermarks(EVENT_TIME)
        .key_by(lambda r: r[0])
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(8)))
        .reduce(summed)
    ),
}

records = st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 60), st.just(1))
epochs = st.lists(st.lists(records, max_size=12), min_size=1, max_size=6)


@pytest.mark.parametrize("name", JOBS)
@settings(max_examples=25)
@given(parts=epochs, parallelism=st.integers(1, 3), fails_after=st.sets(st.integers(0, 5)))
def test_state_on_disk_gives_the_same_also_after_failures(name, parts, parallelism, fails_after):
    on_heap = JobInEpochs(JOBS[name], parallelism, state_backend=HEAP)
    on_disk = JobInEpochs(JOBS[name], parallelism, state_backend=DISK)
    for at, part in enumerate(parts):
        assert on_disk.epoch(part) == on_heap.epoch(part)
        if at in fails_after:
            on_disk.fail()
    assert on_disk.epoch([], is_last=True) == on_heap.epoch([], is_last=True)
    on_heap.close()
    on_disk.close()


@pytest.mark.parametrize("name", ["keyed reduce", "process function"])
@settings(max_examples=25)
@given(parts=epochs, parallelisms=st.lists(st.integers(1, 3), min_size=3, max_size=3))
def test_a_job_continues_from_a_checkpoint_of_the_other_backend_at_another_parallelism(name, parts, parallelisms):
    expected = JobInEpochs(JOBS[name], 1, state_backend=HEAP)
    checkpoint, folder = None, MemoryFolder()
    for parallelism, backend in zip(parallelisms, (HEAP, DISK, HEAP), strict=True):
        job = JobInEpochs(JOBS[name], parallelism, restored=checkpoint, folder=folder, state_backend=backend)
        for part in parts:
            assert job.epoch(part) == expected.epoch(part)
        checkpoint = job.checkpoint
        job.close()
    expected.close()
