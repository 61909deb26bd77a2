"""Declared types hold behind timestamps and watermarks, too. The expected values are what PyFlink 2.3 gave."""

from __future__ import annotations

import datetime

import pytest

from penstock.common import Configuration, Types, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment

PLAIN = WatermarkStrategy.for_monotonous_timestamps()
STAMPED = PLAIN.with_timestamp_assigner(lambda value, _: 1000)
SINGLE = 0.10000000149011612
PAIR = Types.TUPLE([Types.FLOAT(), Types.INT()])


def tenths():
    settings = {"execution.target": "inline", "parallelism.default": "1"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    return env.from_collection([1], Types.INT()).map(lambda number: (number / 10, number), PAIR)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (tenths, 0.1),
        (lambda: tenths().assign_timestamps_and_watermarks(PLAIN), SINGLE),
        (lambda: tenths().assign_timestamps_and_watermarks(STAMPED), SINGLE),
        (lambda: tenths().filter(lambda value: True).assign_timestamps_and_watermarks(PLAIN), SINGLE),
    ],
    ids=["in a chain", "behind watermarks", "behind timestamps", "behind a filter"],
)
def test_single_precision(made, expected):
    assert list(made().map(lambda value: value[0], Types.DOUBLE()).execute_and_collect()) == [expected]


def test_a_timestamp_shows_what_its_clock_showed_and_loses_its_time_zone():
    noon = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    times = tenths().map(lambda value: noon, Types.SQL_TIMESTAMP()).assign_timestamps_and_watermarks(PLAIN)
    assert list(times.map(repr, Types.STRING()).execute_and_collect()) == ["datetime.datetime(2026, 1, 1, 12, 0)"]
