"""Where the timestamp assigner of a strategy counts (tests/pyflink/programs/timestamp_assigners.py: as on PyFlink)."""

from __future__ import annotations

import warnings
from itertools import permutations

import pytest

from penstock.common import Configuration, Duration, WatermarkStrategy
from penstock.common.exceptions import ConfigurationError
from penstock.common.notices import PenstockWarning
from penstock.common.watermark_strategy import RecordTimestampAssigner
from penstock.datastream import ProcessFunction, StreamExecutionEnvironment
from penstock.datastream.connectors import NumberSequenceSource

PLAIN = WatermarkStrategy.for_monotonous_timestamps()
WITH_ASSIGNER = PLAIN.with_timestamp_assigner(lambda value, _: value * 1000)
STEPS = {
    "assigner": lambda strategy: strategy.with_timestamp_assigner(lambda value, _: value * 1000),
    "idleness": lambda strategy: strategy.with_idleness(Duration.of_seconds(1)),
    "alignment": lambda strategy: strategy.with_watermark_alignment("group", Duration.of_seconds(1)),
}


class Timestamps(ProcessFunction):
    def process_element(self, value, ctx):
        yield ctx.timestamp()


def environment(way: str) -> StreamExecutionEnvironment:
    settings = {"execution.target": "inline", "parallelism.default": "1", "penstock.timestamp-assigners": way}
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))


def times_at_source(way: str) -> list[int | None]:
    numbers = environment(way).from_source(NumberSequenceSource(1, 2), WITH_ASSIGNER, "numbers")
    return list(numbers.process(Timestamps()).execute_and_collect())


def test_at_a_source_an_assigner_counts_as_in_flink():
    assert times_at_source("flink") == [1000, 2000]


def test_at_a_source_no_assigner_counts_as_in_pyflink():
    with pytest.warns(PenstockWarning, match=r"from_source: elements keep .* -D penstock.timestamp-assigners=flink"):
        assert times_at_source("PyFlink") == [None, None]


@pytest.mark.parametrize("order", list(permutations(STEPS)), ids=" ".join)
def test_an_assigner_is_lost_in_pyflink_if_something_else_follows(order):
    strategy = PLAIN
    for step in order:
        strategy = STEPS[step](strategy)
    is_kept = order[-1] == "assigner"
    for way, counts in (("flink", True), ("pyflink", is_kept)):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            settled = environment(way)._strategy_as_configured(strategy, "assign_timestamps_and_watermarks")
        assert (settled.has_assigner, len(told)) == (counts, 0 if counts else 1)
        assert settled.idle_timeout_ms == 1000 and settled.alignment is not None


def test_a_strategy_without_an_assigner_is_not_talked_about(recwarn):
    environment("pyflink").from_source(NumberSequenceSource(1, 2), PLAIN, "numbers")
    assert not recwarn.list


class Doubled(RecordTimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value * 2


def test_an_assigner_that_extends_the_one_that_keeps_timestamps_is_asked():
    strategy = PLAIN.with_timestamp_assigner(Doubled())
    timed = environment("flink").from_collection([3, 4]).assign_timestamps_and_watermarks(strategy)
    assert list(timed.process(Timestamps()).execute_and_collect()) == [6, 8]


def test_an_unknown_way_is_refused():
    with pytest.raises(ConfigurationError, match=r"penstock.timestamp-assigners: 'java' is not one of flink, pyflink"):
        environment("java").from_source(NumberSequenceSource(1, 2), PLAIN, "numbers")
