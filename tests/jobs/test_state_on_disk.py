"""Whole jobs with their state on local disks; the same on both targets."""

from __future__ import annotations

from collections import Counter

import pytest

from penstock.common.exceptions import ConfigurationError
from penstock.datastream import KeyedProcessFunction
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor

RECORDS, KEYS = 6000, 1500


class Visits(KeyedProcessFunction):
    """Emits how often the key came, and how many different records there were of it."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen"))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        self.seen.put(value % 10, True)
        yield ctx.get_current_key(), self.count.value(), len(list(self.seen.keys()))


class FailsOnce(KeyedProcessFunction):
    """Passes everything on, but not at the first attempt."""

    def open(self, runtime_context):
        self.fails = runtime_context.get_attempt_number() == 0
        self.passed = 0

    def process_element(self, value, ctx):
        self.passed += 1
        if self.fails and self.passed == 1000:
            raise RuntimeError("once")
        yield value


def on_disk(folder) -> dict[str, str]:
    return {
        "state.backend.type": "rocksdb",
        "state.backend.rocksdb.localdir": str(folder),
        "penstock.state.disk.cache-entries": "100",
        "penstock.epoch.max-records": "1000",
        "execution.checkpointing.interval": "1",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "0",
    }


def test_job_with_more_state_than_memory_survives_a_failure(run_target, tmp_path):
    env = run_target(2, on_disk(tmp_path))
    numbers = env.from_sequence(0, RECORDS - 1).key_by(lambda number: number % KEYS).process(FailsOnce())
    visits = numbers.key_by(lambda number: number % KEYS).process(Visits())
    with visits.execute_and_collect() as collected:
        results = list(collected)
    assert Counter(count for _, count, _ in results) == dict.fromkeys(range(1, RECORDS // KEYS + 1), KEYS)
    last = {key: different for key, count, different in results if count == RECORDS // KEYS}
    assert last == {key: len({number % 10 for number in range(key, RECORDS, KEYS)}) for key in range(KEYS)}
    assert list(tmp_path.glob("penstock-files-*")) != [], "state was too large for memory"
    assert list(tmp_path.rglob("data.mdb")) == list(tmp_path.rglob("index-*")) == [], "nothing stays behind"


def test_unknown_backend_is_refused_when_the_job_starts(run_target):
    env = run_target(1, {"state.backend.type": "redis"})
    env.from_collection([1]).print()
    with pytest.raises(ConfigurationError, match=r"state.backend.type is 'redis', and there is no such state backend"):
        env.execute()
