"""Event time of the splits that a subtask reads."""

from __future__ import annotations

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
