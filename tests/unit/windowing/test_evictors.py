from __future__ import annotations

import pytest

from penstock.common import Time
from penstock.common.exceptions import InvalidProgramError
from penstock.datastream.window import (
    CountEvictor,
    DeltaEvictor,
    DeltaFunction,
    TimeEvictor,
    TimestampedValue,
    TimeWindow,
)


class Distance(DeltaFunction):
    def get_delta(self, old_data_point, new_data_point):
        return abs(old_data_point - new_data_point)


def left(evictor, elements, side="before"):
    panes = [TimestampedValue(value, timestamp) for value, timestamp in elements]
    evict = evictor.evict_before if side == "before" else evictor.evict_after
    evict(panes, len(panes), TimeWindow(0, 10), None)
    return [element.value for element in panes]


ELEMENTS = [(1, 10), (5, 4), (2, 7), (3, 11), (9, 9)]


def test_count_evictor_keeps_the_last_elements():
    assert left(CountEvictor.of(2), ELEMENTS) == [3, 9]
    assert left(CountEvictor.of(5), ELEMENTS) == [1, 5, 2, 3, 9]


def test_time_evictor_goes_by_the_newest_timestamp_wherever_it_is():
    assert left(TimeEvictor.of(Time.milliseconds(4)), ELEMENTS) == [1, 3, 9]


def test_time_evictor_keeps_all_when_elements_have_no_timestamp():
    assert left(TimeEvictor(1), [(1, None), (2, None)]) == [1, 2]


def test_delta_evictor_keeps_what_is_near_the_last_element():
    assert left(DeltaEvictor.of(5, Distance()), ELEMENTS) == [5, 9]
    assert left(DeltaEvictor.of(8, lambda old, new: new - old), ELEMENTS) == [5, 2, 3, 9]


@pytest.mark.parametrize("make", [lambda after: CountEvictor(1, after), lambda after: TimeEvictor(1, after)])
def test_evictors_work_on_one_side_of_the_window_function(make):
    assert left(make(True), ELEMENTS, "before") == [1, 5, 2, 3, 9]
    assert len(left(make(True), ELEMENTS, "after")) == 1
    assert left(make(False), ELEMENTS, "after") == [1, 5, 2, 3, 9]


@pytest.mark.parametrize("evictor", [CountEvictor(1), TimeEvictor(1), DeltaEvictor(1, Distance())])
def test_empty_panes_stay_empty(evictor):
    assert left(evictor, []) == []


def test_evictors_show_as_in_flinks_plans():
    assert [str(CountEvictor(3)), str(TimeEvictor(5))] == ["CountEvictor(3)", "TimeEvictor(5)"]


def test_impossible_sizes_are_refused():
    with pytest.raises(InvalidProgramError, match="CountEvictor: max_count must be positive, got 0"):
        CountEvictor.of(0)
    with pytest.raises(InvalidProgramError, match="TimeEvictor: window_size must be a Time or Duration"):
        TimeEvictor.of(5)
