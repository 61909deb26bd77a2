"""Time to live that is turned on or off between a savepoint and its restore: values stay what they are, as in Flink."""

from __future__ import annotations

import itertools

import pytest

from penstock.checkpoint.finding import find_checkpoint
from penstock.checkpoint.savepoints import write_savepoint
from penstock.common import Time
from penstock.datastream import AggregateFunction, KeyedProcessFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.runtime.state.backends import DiskBackend, HeapBackend
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import VOID_NAMESPACE
from penstock.testing import JobInEpochs, OperatorHarness

DAY_MS = 24 * 3600 * 1000
BACKENDS = [HeapBackend(), DiskBackend(cache_entries=2)]


class Collecting(AggregateFunction):
    def create_accumulator(self):
        return ()

    def add(self, value, accumulator):
        return (*accumulator, value)

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class AllKinds(KeyedProcessFunction):
    """Keeps pairs of a text and a number, which look like values with their times, in every kind of state."""

    def __init__(self, ttl_days):
        self.ttl_days = ttl_days

    def open(self, runtime_context):
        def expiring(descriptor):
            if self.ttl_days:
                descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(self.ttl_days)).build())
            return descriptor

        self.value = runtime_context.get_state(expiring(ValueStateDescriptor("value")))
        self.list = runtime_context.get_list_state(expiring(ListStateDescriptor("list")))
        self.map = runtime_context.get_map_state(expiring(MapStateDescriptor("map")))
        self.reducing = runtime_context.get_reducing_state(
            expiring(ReducingStateDescriptor("reducing", lambda a, b: (a[0] + b[0], b[1])))
        )
        self.aggregating = runtime_context.get_aggregating_state(
            expiring(AggregatingStateDescriptor("aggregating", Collecting()))
        )

    def process_element(self, value, ctx):
        key, adds = value
        if adds:
            pair = (adds, len(adds))
            self.value.update(pair)
            self.list.add(pair)
            self.map.put(adds, pair)
            self.reducing.add(pair)
            self.aggregating.add(pair)
        yield (
            key, self.value.value(), tuple(self.list.get()), tuple(sorted(self.map.items())), self.reducing.get(),
            self.aggregating.get(),
        )  # fmt: skip


def keeping(ttl_days):
    return lambda stream: stream.key_by(lambda record: record[0]).process(AllKinds(ttl_days)).uid("kept")


KEYS = [f"key {number}" for number in range(7)]
ADDED = [(key, text) for key in KEYS for text in ("a", "bb")]
ASKED = [(key, "") for key in KEYS]


@pytest.mark.parametrize("format_type", ["canonical", "native", "checkpoint"])
@pytest.mark.parametrize(("before", "after"), list(itertools.permutations([0, 1, 2], 2)))
@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: type(backend).__name__)
@pytest.mark.parametrize("parallelism", [2, 3])
def test_values_are_the_same_after_ttl_was_turned_on_or_off(tmp_path, format_type, before, after, backend, parallelism):
    job = JobInEpochs(keeping(before), 2, state_backend=backend)
    job.epoch(ADDED[:5])
    job.epoch(ADDED[5:])
    expected = job.epoch(ASKED)
    found = job.checkpoint
    if format_type != "checkpoint":
        found = find_checkpoint(write_savepoint(found, str(tmp_path), format_type))
    restored = JobInEpochs(keeping(after), parallelism, restored=found, state_backend=backend)
    assert restored.epoch(ASKED, 1) == expected
    restored.fail()  # What was migrated is in the checkpoint.
    assert restored.epoch(ASKED, 2) == expected
    again = JobInEpochs(keeping(before), 1, restored=restored.checkpoint, state_backend=backend)
    assert again.epoch(ASKED, 3) == expected
    for each in (job, restored, again):
        each.close()


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: type(backend).__name__)
def test_what_had_no_time_lives_from_its_migration_on(backend):
    job = JobInEpochs(keeping(0), state_backend=backend)
    job.epoch(ADDED)
    expected = job.epoch(ASKED)
    restored = JobInEpochs(keeping(2), restored=job.checkpoint, state_backend=backend)
    restored.epoch([], 10 * DAY_MS)
    assert restored.epoch(ASKED, 11 * DAY_MS) == expected
    assert restored.epoch(ASKED[:1], 13 * DAY_MS) == ["('key 0', None, (), (), None, None)"]


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: type(backend).__name__)
def test_what_had_a_time_lives_for_ever_without_ttl(backend):
    job = JobInEpochs(keeping(1), state_backend=backend)
    job.epoch(ADDED)
    expected = job.epoch(ASKED)
    restored = JobInEpochs(keeping(0), restored=job.checkpoint, state_backend=backend)
    assert restored.epoch(ASKED, 100 * DAY_MS) == expected


def test_migration_counts_as_change():
    """The checkpoints before it are without times, and the next one is not a base."""
    job = JobInEpochs(keeping(0))
    job.epoch(ADDED)
    restored = JobInEpochs(keeping(5), restored=job.checkpoint)
    restored.epoch([], 10 * DAY_MS)
    restored.fail()
    assert restored.epoch(ASKED[:1], 16 * DAY_MS) == ["('key 0', None, (), (), None, None)"]


def test_harness_migrates_too():
    before = OperatorHarness.of(keeping(0)).element(("key", "a"))
    after = OperatorHarness.of(keeping(1), restored=before.snapshot()).element(("key", ""))
    assert after.output == before.output


@pytest.mark.parametrize("has_times_in_fact", [False, True])
@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: type(backend).__name__)
def test_values_of_files_that_do_not_say_whether_they_have_times_are_looked_at(backend, has_times_in_fact):
    """Version 0.1 wrote such files."""
    keyed = KeyedStateBackend("op", lambda: 5, backend.tables("run", "s0", "op"))
    values = {key: (len(key), 4) if has_times_in_fact else len(key) for key in KEYS}
    keyed.restore("value", {VOID_NAMESPACE: values}, has_times=None)
    descriptor = ValueStateDescriptor("value")
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
    state = keyed.state(descriptor)
    for key in KEYS:
        keyed.current_key = key
        assert state.value() == len(key)
    keyed.dispose()


class Late(AllKinds):
    """Asks for its state only when an element comes."""

    def open(self, runtime_context):
        self.context = runtime_context

    def process_element(self, value, ctx):
        super().open(self.context)
        yield from super().process_element(value, ctx)


def test_state_that_only_some_subtasks_have_migrated_is_refused_at_another_parallelism():
    def keeping_late(ttl_days):
        return lambda stream: stream.key_by(lambda record: record[0]).process(Late(ttl_days)).uid("kept")

    job = JobInEpochs(keeping_late(0), 2)
    job.epoch(ADDED)
    expected = job.epoch(ASKED)
    partly = JobInEpochs(keeping_late(1), 2, restored=job.checkpoint)
    partly.epoch(ASKED[:1])
    with pytest.raises(AssertionError, match="operator 'KEYED PROCESS': some subtasks saved state 'value' with times"):
        JobInEpochs(keeping_late(1), 1, restored=partly.checkpoint).epoch(ASKED)
    same = JobInEpochs(keeping_late(1), 2, restored=partly.checkpoint)
    assert same.epoch(ASKED) == expected
    assert JobInEpochs(keeping_late(1), 1, restored=same.checkpoint).epoch(ASKED) == expected
