"""The measurement of state measures what it says, on small states."""

from __future__ import annotations

import pytest
from benchmarks.state_size import COLUMNS, measure, render


@pytest.mark.parametrize("backend", ["heap", "disk"])
def test_a_delta_is_as_large_as_what_was_touched_and_a_base_as_the_state(backend):
    small, large = (measure(backend, keys, touched=50, epochs=3, cache_entries=100) for keys in (1000, 4000))
    assert large.base_bytes > 3 * small.base_bytes
    assert small.delta_bytes < small.base_bytes / 5
    assert large.delta_bytes == pytest.approx(small.delta_bytes, rel=0.2)


def test_the_table_has_a_line_for_each_size():
    lines = render([measure("heap", 100, touched=10, epochs=1, cache_entries=10)]).splitlines()
    assert len(lines) == 2 and all(title in lines[0] for title in COLUMNS.values())
