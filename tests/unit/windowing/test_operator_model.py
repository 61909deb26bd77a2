"""The window operator against the reference model, on random streams and settings."""

from __future__ import annotations

import itertools

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from window_cases import LATE, any_settings, default_settings, describe, finish, streams
from window_model import WindowModel

from penstock.runtime.state.backends import DiskBackend, HeapBackend
from penstock.testing import OperatorHarness

thorough = settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
quick = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))


class Run:
    """A harness that can be restored between steps, with all outputs so far."""

    def __init__(self, description, backends=(None,)):
        self.description = description
        self._backends = itertools.cycle(backends)
        self.harness = OperatorHarness(description, state_backend=next(self._backends))
        self.late = []
        self.dropped = 0

    def step(self, step):
        """Take a step and return what it emitted."""
        before = len(self.harness.output_with_timestamps)
        kind, what = step
        if kind == "batch":
            self.harness.batch(what)
        elif kind == "watermark":
            self.harness.watermark(what)
        else:
            self.harness.processing_time(what)
        return self.harness.output_with_timestamps[before:]

    def restart(self):
        self._keep()
        before = self.harness
        self.harness = OperatorHarness(
            self.description,
            restored=before.snapshot(),
            processing_time=before.context.clock(),
            state_backend=next(self._backends),
        )
        before.close()

    def _keep(self):
        self.late += self.harness.recorded.side.get(LATE.tag_id, [])
        self.dropped += self.harness.metrics.get("numLateRecordsDropped", 0)

    def close(self):
        self._keep()
        self.harness.close()
        return self.late, self.dropped


def expect(model, step):
    kind, what = step
    if kind == "batch":
        return [group for element, timestamp in what for group in model.element(element, timestamp)]
    return model.advance_watermark(what) if kind == "watermark" else model.advance_clock(what)


def assert_same(emitted, groups):
    """The same results group by group; within a group (timers of one time) in any order."""
    at = 0
    for group in groups:
        assert sorted(emitted[at : at + len(group)], key=repr) == sorted(group, key=repr)
        at += len(group)
    assert at == len(emitted)


def check(case, steps, restarts, backends=(None,)):
    run, model = Run(describe(case), backends), WindowModel(case)
    for number, step in enumerate(finish(steps)):
        if number in restarts:
            run.restart()
        assert_same(run.step(step), expect(model, step))
    assert run.close() == (model.late, model.dropped)


@thorough
@given(any_settings(), streams())
def test_operator_does_what_the_model_says_with_any_settings(case, steps):
    event(case.assign.kind)
    event(case.fire.kind)
    check(case, steps, ())


@thorough
@given(default_settings(), streams())
def test_operator_does_what_the_model_says_with_default_triggers(case, steps):
    check(case, steps, ())


@quick
@given(any_settings() | default_settings(), streams(), st.sets(st.integers(0, 40)))
def test_restoring_at_any_point_changes_nothing(case, steps, restarts):
    check(case, steps, restarts)


@quick
@given(any_settings() | default_settings(), streams(), st.sets(st.integers(0, 40)), st.integers(1, 8))
def test_operator_does_the_same_with_state_on_disk_and_going_there_and_back(case, steps, restarts, in_memory):
    disk = DiskBackend(cache_entries=in_memory)
    check(case, steps, restarts, (disk, disk, HeapBackend()))


@quick
@given(default_settings(kinds=("tumbling", "sliding", "session", "dynamic")), streams())
def test_nothing_is_left_when_all_windows_have_closed(case, steps):
    run = Run(describe(case))
    for step in finish(steps):
        run.step(step)
    assert run.harness.timers == []
    assert run.harness.state_entries == 0
