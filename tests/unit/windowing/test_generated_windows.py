"""Windows whose elements are added in a generated loop do what calls of the user's function do."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Configuration, Time, WatermarkStrategy
from penstock.common.exceptions import JobExecutionError
from penstock.datastream import AggregateFunction, StreamExecutionEnvironment
from penstock.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from penstock.runtime.element_copies import copied
from penstock.runtime.windowing.accumulation import Aggregating, Reducing


class Joined(AggregateFunction):
    def __init__(self) -> None:
        self.separator = ","

    def create_accumulator(self):
        return ""

    def add(self, value, accumulator):
        return accumulator + self.separator + str(value)

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        raise NotImplementedError


class NoneForOdd(Joined):
    """An accumulator that is None counts as empty, but has its timer already."""

    def add(self, value, accumulator):
        return None if value % 2 else accumulator + str(value)


def joined(left, right):
    return f"{left},{right}"


def called(left, right):
    text = f"{left};"
    return text + str(right)


ACCUMULATIONS = {
    "aggregate": (True, lambda inlines: Aggregating(Joined(), copied, inlines)),
    "aggregate to None": (True, lambda inlines: Aggregating(NoneForOdd(), copied, inlines)),
    "reduce": (True, lambda inlines: Reducing(joined, copied, inlines)),
    "reduce that is called": (False, lambda inlines: Reducing(called, copied, inlines)),
}


@pytest.mark.parametrize("name", ACCUMULATIONS)
@given(batches=st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), min_size=1), max_size=4))
def test_the_loop_adds_what_calls_add(name, batches):
    is_inlined, make = ACCUMULATIONS[name]
    in_loop, calling = make(True), make(False)
    assert (in_loop.loop.has_inlined, calling.loop.has_inlined) == (is_inlined, False)
    panes: tuple[dict, dict] = ({}, {})
    for batch in batches:
        keys, values = [key for key, _ in batch], [value for _, value in batch]
        assert in_loop.add_all(panes[0], keys, values) == calling.add_all(panes[1], keys, values)
        assert panes[0] == panes[1] and list(panes[0]) == list(panes[1])


class Sum(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return a + b


def totals(inlines, records, assigner):
    config = {"execution.target": "inline", "penstock.inline-functions.enabled": str(inlines).lower()}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(config))
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: record[2])
    keyed = env.from_collection(records).assign_timestamps_and_watermarks(times).key_by(lambda record: record[0])
    return list(keyed.window(assigner).aggregate(Sum()).execute_and_collect())


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.integers(0, 40)), min_size=1, max_size=30))
def test_jobs_agree_with_and_without_generated_loops(records):
    sliding = SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(4))
    assert totals(True, records, sliding) == totals(False, records, sliding)


@pytest.mark.parametrize("inlines", [True, False])
def test_a_failure_names_the_record_and_shows_the_users_line(inlines):
    records = [("a", 1, 1), ("a", "two", 2), ("a", 3, 3)]
    with pytest.raises(JobExecutionError) as raised:
        totals(inlines, records, TumblingEventTimeWindows.of(Time.milliseconds(10)))
    assert "('a', 'two', 2)" in str(raised.value)
    assert "return accumulator + value[1]" in str(raised.value)
