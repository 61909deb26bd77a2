"""Several regions, restored from a savepoint, fail at any moment and all start again (failover strategy `full`)."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from job_parts import PATIENCE_S, RESTARTING, Numbered, environment, file_sink, job_of, numbers_in
from shared_by_copies import SharedByCopies

from penstock.datastream.functions import CheckpointedFunction, MapFunction
from penstock.jobmaster.execution.stage_executor import InlineExecutor

REGIONS, LAST = 3, 120
MOMENTS = ("open", "restored", "snapshot", "record", "command")


class Trouble(SharedByCopies):
    """Fails when a moment comes for the given time. Shared by all copies of functions, and by all attempts."""

    def __init__(self, moments=()):
        self._wanted = set(moments)
        self._seen = Counter()
        self._lock = threading.Lock()
        self.is_on = False

    def at(self, region, moment):
        with self._lock:
            if not self.is_on:
                return
            self._seen[region, moment] += 1
            if (region, moment, self._seen[region, moment]) in self._wanted:
                raise RuntimeError(f"region {region}, {moment} {self._seen[region, moment]}")


class Stumbling(MapFunction, CheckpointedFunction):
    def __init__(self, region, trouble):
        self.region, self.trouble = region, trouble

    def initialize_state(self, context):
        if context.is_restored():
            self.trouble.at(self.region, "restored")

    def snapshot_state(self, context):
        self.trouble.at(self.region, "snapshot")

    def open(self, runtime_context):
        self.trouble.at(self.region, "open")

    def map(self, value):
        self.trouble.at(self.region, "record")
        return value


class StumblingExecutor(InlineExecutor):
    """Some commands fail as a whole."""

    def __init__(self, trouble, regions):
        super().__init__()
        self._trouble, self._regions = trouble, regions
        self._region = next(regions)

    def sibling(self):
        return StumblingExecutor(self._trouble, self._regions)

    def run_epoch(self, command, source_rows):
        self._trouble.at(self._region, "command")
        return super().run_epoch(command, source_rows)


def job_with(trouble, folder, restored=None, **more):
    env = environment()
    for region in range(REGIONS):
        numbers = env.from_sequence(1, LAST).map(Stumbling(region, trouble)).uid(f"stumbling {region}")
        counts = numbers.key_by(lambda value: 0).process(Numbered()).uid(f"numbered {region}")
        counts.sink_to(file_sink(folder / f"region-{region}"))
    settings = RESTARTING | {"jobmanager.execution.failover-strategy": "full"} | more
    if restored is not None:
        settings["execution.state-recovery.path"] = restored
    return job_of(env, settings, executor=StumblingExecutor(trouble, iter(range(REGIONS))))


@pytest.fixture(scope="module")
def savepoint(tmp_path_factory):
    """Of a job in the middle of its work; its path, and what it had written."""
    folder = tmp_path_factory.mktemp("first")
    job = job_with(Trouble(), folder / "out", **{"penstock.epoch.interval": "300 ms"}).start()
    deadline = time.monotonic() + PATIENCE_S
    while not all(numbers_in(folder / "out" / f"region-{region}") for region in range(REGIONS)):
        assert time.monotonic() < deadline
    path = job.master.stop_with_savepoint(str(folder / "savepoints"), drain=False).result(PATIENCE_S)
    job.join()
    return path, [numbers_in(folder / "out" / f"region-{region}") for region in range(REGIONS)]


moments = st.tuples(st.integers(0, REGIONS - 1), st.sampled_from(MOMENTS), st.integers(1, 6))


@settings(max_examples=10)
@given(troubles=st.sets(moments, min_size=1, max_size=6), interval=st.sampled_from(["0", "5 ms"]))
def test_regions_that_fail_after_a_restore_lose_nothing(savepoint, tmp_path_factory, troubles, interval):
    path, before = savepoint
    folder, trouble = tmp_path_factory.mktemp("second"), Trouble(troubles)
    trouble.is_on = True
    more = {} if interval == "0" else {"execution.checkpointing.interval": interval}
    job_with(trouble, folder, path, **more).start().join()
    for region in range(REGIONS):
        assert sorted([*before[region], *numbers_in(folder / f"region-{region}")]) == list(range(1, LAST + 1))


@pytest.mark.parametrize("moment", MOMENTS)
def test_second_moment_of_each_kind(savepoint, tmp_path, moment):
    """The first epoch saves what was restored, so the second of a region finds others that are not that far."""
    path, before = savepoint
    trouble = Trouble([(1, moment, 1), (1, moment, 2)])
    trouble.is_on = True
    job_with(trouble, tmp_path, path).start().join()
    for each in range(REGIONS):
        assert sorted([*before[each], *numbers_in(tmp_path / f"region-{each}")]) == list(range(1, LAST + 1))
