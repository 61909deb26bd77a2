from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Duration, WatermarkStrategy
from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.common.watermark_generator import (
    AscendingTimestampsWatermarks,
    BoundedOutOfOrdernessWatermarks,
    NoWatermarks,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarksWithIdleness,
)
from penstock.common.watermark_strategy import (
    AssignerWithPeriodicWatermarks,
    AssignerWithPeriodicWatermarksWrapper,
    AssignerWithPunctuatedWatermarks,
    TimestampAssigner,
    WatermarkAlignment,
)


@dataclass
class Recorder(WatermarkOutput):
    """Keeps what a generator emits."""

    events: list[Any] = field(default_factory=list)

    def emit_watermark(self, timestamp: int) -> None:
        self.events.append(timestamp)

    def mark_idle(self) -> None:
        self.events.append("idle")

    def mark_active(self) -> None:
        self.events.append("active")


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class EveryEvent(WatermarkGenerator):
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class Supplier:
    def create_watermark_generator(self) -> WatermarkGenerator:
        return EveryEvent()


def periodic(generator: WatermarkGenerator) -> list[Any]:
    output = Recorder()
    generator.on_periodic_emit(output)
    return output.events


@given(st.integers(0, 10**6), st.lists(st.integers(-(2**60), 2**60), min_size=1))
def test_bounded_watermark_is_the_largest_timestamp_less_the_bound_and_one(bound, timestamps):
    generator = BoundedOutOfOrdernessWatermarks(bound)
    for timestamp in timestamps:
        generator.on_event(None, timestamp, Recorder())
    assert periodic(generator) == [max(timestamps) - bound - 1]


@given(st.integers(0, 10**6))
def test_first_watermark_before_any_event_is_the_smallest(bound):
    assert periodic(BoundedOutOfOrdernessWatermarks(bound)) == [MIN_LONG_VALUE]


def test_ascending_watermark_is_right_behind_the_latest():
    generator = AscendingTimestampsWatermarks()
    generator.on_event(None, 10, Recorder())
    assert periodic(generator) == [9]


def test_no_watermarks_emits_nothing():
    output = Recorder()
    NoWatermarks().on_event(None, 10, output)
    assert output.events == periodic(NoWatermarks()) == []


def test_idle_is_marked_once_after_the_timeout_and_ends_with_the_next_event():
    now = [0]
    generator, output = WatermarksWithIdleness(AscendingTimestampsWatermarks(), 100, lambda: now[0]), Recorder()
    generator.on_event("a", 10, output)

    def tick(ms: int) -> list[Any]:
        now[0] += ms
        output.events.clear()
        generator.on_periodic_emit(output)
        return list(output.events)

    assert tick(50) == [9]  # sees the event
    assert tick(50) == [9]  # the count begins
    assert tick(100) == [9]  # exactly the timeout is not yet idle
    assert tick(1) == ["idle"]
    assert tick(1000) == []
    generator.on_event("b", 20, output)
    assert tick(1) == [19]


def test_watermarks_compare_by_timestamp_and_print_as_in_flink():
    assert Watermark(1) < Watermark(2) and str(Watermark(5)) == "Watermark @ 5"
    assert Watermark.max_watermark().get_timestamp() == MAX_LONG_VALUE


def test_each_with_returns_a_new_strategy_that_keeps_the_rest():
    plain = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    full = (
        plain.with_timestamp_assigner(SecondField())
        .with_idleness(Duration.of_minutes(1))
        .with_watermark_alignment("g", Duration.of_seconds(2))
    )
    assert (plain.idle_timeout_ms, plain.alignment) == (None, None)
    assert full.idle_timeout_ms == 60_000
    assert full.alignment == WatermarkAlignment("g", 2000, 1000)
    assert full.create_timestamp_assigner().extract_timestamp(("a", 7), -1) == 7
    generator = full.create_watermark_generator(lambda: 0)
    assert isinstance(generator, WatermarksWithIdleness)
    assert isinstance(generator.generator, BoundedOutOfOrdernessWatermarks)
    assert generator.generator.max_out_of_orderness_ms == 5000


def test_strategies_survive_pickling():
    for strategy in (
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField()),
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5)).with_idleness(Duration.of_millis(1)),
        WatermarkStrategy.no_watermarks(),
        WatermarkStrategy.for_generator(EveryEvent),
        WatermarkStrategy.for_generator(Supplier()),
    ):
        back = pickle.loads(pickle.dumps(strategy))
        made, again = strategy.create_watermark_generator(), back.create_watermark_generator()
        assert type(again) is type(made)
        assert back.idle_timeout_ms == strategy.idle_timeout_ms


def test_a_function_is_an_assigner_too():
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda value, timestamp: value + timestamp)
    assert strategy.create_timestamp_assigner().extract_timestamp(1, 2) == 3


def test_without_an_assigner_the_record_keeps_its_timestamp():
    assert WatermarkStrategy.no_watermarks().create_timestamp_assigner().extract_timestamp("x", 42) == 42


def test_every_subtask_gets_its_own_generator():
    for strategy in (WatermarkStrategy.for_monotonous_timestamps(), WatermarkStrategy.for_generator(EveryEvent)):
        assert strategy.create_watermark_generator() is not strategy.create_watermark_generator()
    output = Recorder()
    WatermarkStrategy.for_generator(lambda: EveryEvent()).create_watermark_generator().on_event("x", 5, output)
    assert output.events == [5]


def test_wrong_arguments_are_explained():
    with pytest.raises(ValueError, match="max_out_of_orderness cannot be negative, got -1 ms"):
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(-1))
    with pytest.raises(ValueError, match="idle_timeout must be positive, got 0 ms"):
        WatermarkStrategy.no_watermarks().with_idleness(Duration.of_millis(0))
    with pytest.raises(TypeError, match="got one generator of type EveryEvent"):
        WatermarkStrategy.for_generator(EveryEvent())
    with pytest.raises(TypeError, match="needs a class or function"):
        WatermarkStrategy.for_generator(5)
    for wrong in (5, SecondField):
        with pytest.raises(TypeError, match="needs a TimestampAssigner object or a function"):
            WatermarkStrategy.no_watermarks().with_timestamp_assigner(wrong)
    with pytest.raises(ValueError, match="cannot be negative, got -1 ms"):
        BoundedOutOfOrdernessWatermarks(-1)
    with pytest.raises(ValueError, match="idle timeout must be positive"):
        WatermarksWithIdleness(NoWatermarks(), 0, lambda: 0)


class LatestSeen(AssignerWithPeriodicWatermarks):
    def __init__(self) -> None:
        self.latest: int | None = None

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        self.latest = max(self.latest or value, value)
        return int(value)

    def get_current_watermark(self) -> int | None:
        return self.latest


class OnMarkers(AssignerWithPunctuatedWatermarks):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])

    def check_and_get_next_watermark(self, last_element: Any, extracted_timestamp: int) -> int | None:
        return extracted_timestamp if last_element[0] == "mark" else None


@pytest.mark.parametrize("wrap", [lambda a: a, AssignerWithPeriodicWatermarksWrapper])
def test_an_older_periodic_assigner_gives_timestamps_and_watermarks(wrap):
    strategy = WatermarkStrategy.for_assigner(wrap(LatestSeen()))
    assigner, generator = strategy.create_timestamp_assigner(), strategy.create_watermark_generator()
    assert periodic(generator) == []
    assert assigner.extract_timestamp(7, -1) == 7
    assert periodic(generator) == [7]


def test_an_older_punctuated_assigner_emits_on_its_markers_only():
    strategy = WatermarkStrategy.for_assigner(OnMarkers())
    generator, output = strategy.create_watermark_generator(), Recorder()
    generator.on_event(("x", 1), 1, output)
    generator.on_event(("mark", 2), 2, output)
    assert output.events == [2] and periodic(generator) == []
