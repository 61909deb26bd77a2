"""Event time of the splits that a subtask reads."""

from __future__ import annotations

import pickle

import pytest

from penstock.common import Duration
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.graph.descriptions import WatermarksDescription
from penstock.runtime.split_watermarks import SplitWatermarks


@pytest.mark.parametrize("timestamps", [None, [None], [5]])
@pytest.mark.parametrize("kind", ["no_watermarks", "for_monotonous_timestamps"])
def test_a_split_that_brings_elements_is_not_idle_whether_they_have_timestamps_or_not(kind, timestamps):
    now = [0]
    strategy = getattr(WatermarkStrategy, kind)().with_idleness(Duration.of_millis(10))
    watermarks = SplitWatermarks(WatermarksDescription(strategy), lambda: now[0])
    for now[0] in range(0, 100, 5):
        assert sum(len(batch.values) for batch in watermarks.stamped("split", ["element"], timestamps)) == 1
        watermarks.emit_periodic()
        assert not watermarks.combined()[1]
    for now[0] in range(100, 150, 5):
        watermarks.emit_periodic()
    assert watermarks.combined()[1]


@pytest.mark.parametrize("was_idle", [False, True])
def test_idleness_starts_anew_after_a_restore_however_long_the_job_was_down(was_idle):
    now = [0]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_millis(10))
    former, restored = (SplitWatermarks(WatermarksDescription(strategy), lambda: now[0]) for _ in range(2))
    for split_id in ("quiet", "busy"):
        list(former.stamped(split_id, ["element"], [5]))
    for now[0] in range(0, 50 if was_idle else 6, 5):
        list(former.stamped("busy", ["element"], [now[0]]))
        former.emit_periodic()
    assert (former.combined()[0] > 4) == was_idle  # An idle split does not hold the others back.

    now[0] = 1_000_000
    restored.restore(pickle.loads(pickle.dumps(former.memory())))
    restored.emit_periodic()
    list(restored.stamped("busy", ["element"], [now[0]]))
    restored.emit_periodic()
    now[0] += 10
    restored.emit_periodic()
    assert restored.combined() == (4, False)  # The quiet split may still bring what it could not bring before.
    now[0] += 1
    list(restored.stamped("busy", ["element"], [now[0]]))
    restored.emit_periodic()
    assert restored.combined() == (now[0] - 1, False)
