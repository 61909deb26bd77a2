"""Event time where inputs fall idle and wake up.

An interval join against Flink's rules, and sessions that are combined before the exchange against those that are not.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Time, Types
from penstock.common.constants import MIN_LONG_VALUE
from penstock.common.watermark_generator import WatermarkGenerator
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from penstock.datastream import OutputTag, ProcessJoinFunction
from penstock.datastream.window import EventTimeSessionWindows
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
    """Time advances for the most part; now and then an input falls idle or falls behind."""
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
        if rebuilds:
            model.idle.clear()  # Idleness starts anew.
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


# --- one input with two channels: sessions that are combined on the way ----------------------------------------------


class WhereTold(WatermarkGenerator):
    """An element is (side, timestamp, what it says of time): a watermark, IDLE or nothing."""

    def on_event(self, event, event_timestamp, output):
        if event[2] == IDLE:
            output.mark_idle()
        elif event[2] is not None:
            output.emit_watermark(event[2])

    def on_periodic_emit(self, output):
        pass


def sessions(combines):
    def build(stream):
        strategy = WatermarkStrategy.for_generator(WhereTold).with_timestamp_assigner(SecondField())
        left, right = (
            stream.filter(lambda record, side=side: record[0] == side)
            .assign_timestamps_and_watermarks(strategy)
            .map(lambda record: ("key", record[1], record[1], 1), Types.TUPLE([Types.STRING(), *[Types.LONG()] * 3]))
            for side in ("left", "right")
        )
        keyed = left.union(right).key_by(lambda pair: pair[0])
        windows = keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(10)))
        if not combines:  # A window that reports late elements must get them one by one.
            windows = windows.side_output_late_data(OutputTag("late"))
        reduced = windows.reduce(lambda a, b: (a[0], min(a[1], b[1]), max(a[2], b[2]), a[3] + b[3]))
        assert reduced.transformation.operator.combines is combines
        return reduced

    return build


def in_epochs(combines, epochs):
    job = JobInEpochs(sessions(combines))
    results = [job.epoch(records) for records in epochs]
    results.append(job.epoch([], is_last=True))
    job.close()
    return results


@st.composite
def epochs_with_idleness(draw):
    """The right side wakes up far behind the watermark that the left side has made alone; then anything may follow."""
    epochs = [[("right", 0, IDLE)], [("left", 50, 50)], [("right", 36, 1)]]
    elements = st.lists(st.tuples(st.just("right"), st.integers(34, 48), st.just(None)), max_size=3)
    mark = st.tuples(st.sampled_from(["left", "right"]), st.just(52), st.sampled_from([None, IDLE, 20, 40, 52]))
    return epochs + draw(st.lists(st.builds(lambda sent, said: [*sent, said], elements, mark), max_size=4))


@settings(max_examples=100)
@given(epochs_with_idleness())
def test_combined_sessions_are_those_of_the_window_operator_whoever_was_idle(epochs):
    assert in_epochs(True, epochs) == in_epochs(False, epochs)


def test_late_element_of_a_channel_that_was_idle_gets_into_no_session():
    epochs = [
        [("right", 0, 0), ("right", 0, IDLE)],
        [("left", 50, 50)],
        [("right", 36, 1)],  # Awake, but far behind the watermark of 50 that the other channel alone has made.
        [("right", 36, None), ("right", 45, None)],
    ]
    [*_, last] = in_epochs(True, epochs)
    assert last == in_epochs(False, epochs)[-1] == ["('key', 45, 50, 2)"]
