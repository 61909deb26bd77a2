"""Event time of an operator with two inputs that fall idle and wake up: an interval join against Flink's rules."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Time
from penstock.common.constants import MIN_LONG_VALUE
from penstock.common.watermark_generator import WatermarkGenerator
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from penstock.datastream import ProcessJoinFunction
from penstock.testing import JobInEpochs

IDLE = -1
BOUND_MS = 4


class Pairs(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left[1], right[1]


class AsTold(WatermarkGenerator):
    """Every element is a watermark too, except for the mark that says the input is idle."""

    def on_event(self, event, event_timestamp, output):
        if event[1] == IDLE:
            output.mark_idle()
        else:
            output.emit_watermark(event[1])

    def on_periodic_emit(self, output):
        pass


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def join(stream):
    strategy = WatermarkStrategy.for_generator(AsTold).with_timestamp_assigner(SecondField())

    def input_of(side):
        timed = stream.filter(lambda record: record[0] == side).assign_timestamps_and_watermarks(strategy)
        return timed.filter(lambda record: record[1] != IDLE).key_by(lambda record: "key")

    bounds = Time.milliseconds(-BOUND_MS), Time.milliseconds(BOUND_MS)
    return input_of("left").interval_join(input_of("right")).between(*bounds).process(Pairs())


class JoinModel:
    """What Flink joins: time is that of the slower input among those that are awake, and never goes back."""

    def __init__(self) -> None:
        self.watermarks = {"left": MIN_LONG_VALUE, "right": MIN_LONG_VALUE}
        self.idle: set[str] = set()
        self.now = MIN_LONG_VALUE
        self.kept: dict[str, list[int]] = {"left": [], "right": []}

    def joined(self, side: str, timestamp: int) -> list[str]:
        pairs = [] if timestamp == IDLE or timestamp < self.now else self.pairs_of(side, timestamp)
        self.mark(side, timestamp)
        return sorted(pairs)

    def pairs_of(self, side: str, timestamp: int) -> list[str]:
        self.kept[side].append(timestamp)
        other = self.kept["right" if side == "left" else "left"]
        near = [each for each in other if abs(each - timestamp) <= BOUND_MS]
        return [repr((timestamp, each) if side == "left" else (each, timestamp)) for each in near]

    def mark(self, side: str, timestamp: int) -> None:
        if timestamp == IDLE:
            self.idle.add(side)
        elif timestamp > self.watermarks[side]:  # Only a watermark that is sent ends idleness.
            self.idle.discard(side)
            self.watermarks[side] = timestamp
        awake = [watermark for each, watermark in self.watermarks.items() if each not in self.idle]
        self.now = max([self.now, min(awake)] if awake else [self.now])
        self.kept = {each: [t for t in kept if t + BOUND_MS > self.now] for each, kept in self.kept.items()}


@st.composite
def sequences(draw):
    """Time goes on most of the time; now and then an input falls idle or falls behind."""
    sequence, now = [], 0
    for _ in range(draw(st.integers(0, 30))):
        now += draw(st.integers(0, 5))
        at = draw(st.sampled_from([now, now, now - 7, now - 15, IDLE]))
        sequence.append((draw(st.sampled_from(["left", "right"])), max(at, IDLE)))
    return sequence


@settings(max_examples=100)
@given(sequences(), st.booleans())
def test_interval_join_with_random_idleness_joins_what_flink_joins(sequence, rebuilds):
    job, model = JobInEpochs(join, rebuilds=rebuilds), JoinModel()
    for side, timestamp in sequence:
        assert job.epoch([(side, timestamp)]) == model.joined(side, timestamp)
    job.close()


def test_interval_join_keeps_the_records_of_an_input_that_wakes_up():
    job = JobInEpochs(join)
    job.epoch([("left", 10), ("right", 10)])
    job.epoch([("right", IDLE)])
    job.epoch([("left", 20)])
    job.epoch([("right", 12)])  # Too late itself; but it is awake, and the left input no longer moves time.
    job.epoch([("left", 40)])
    assert job.epoch([("right", 22)]) == ["(20, 22)"]
    job.close()
