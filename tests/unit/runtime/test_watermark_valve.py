from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.runtime.chunk import Status, Watermark
from penstock.runtime.watermarks import InputWatermarks, StatusWatermarkValve


class ValveModel:
    """Flink's rules for the channels of one input, said as plainly as can be: look at all channels after every mark."""

    def __init__(self, channels: int) -> None:
        self.watermarks = [MIN_LONG_VALUE] * channels
        self.idle = [False] * channels
        self.behind = [False] * channels
        """Woke up behind the output watermark and has not caught up."""
        self.output = MIN_LONG_VALUE

    def raise_to(self, candidates: list[int]) -> list:
        if not candidates or min(candidates) <= self.output:
            return []
        self.output = min(candidates)
        return [Watermark(self.output)]

    def counting(self) -> list[int]:
        channels = zip(self.watermarks, self.idle, self.behind, strict=True)
        return [watermark for watermark, idle, behind in channels if not idle and not behind]

    def on_watermark(self, channel: int, watermark: int) -> list:
        if self.idle[channel] or watermark <= self.watermarks[channel]:
            return []
        self.watermarks[channel] = watermark
        if watermark >= self.output:
            self.behind[channel] = False
        return self.raise_to(self.counting())

    def on_status(self, channel: int, is_idle: bool) -> list:
        if self.idle[channel] == is_idle:
            return []
        was_all_idle = all(self.idle)
        self.idle[channel] = is_idle
        if not is_idle:
            self.behind[channel] = self.watermarks[channel] < self.output
            return [Status(False)] if was_all_idle else []
        # Only a channel that held the others back lets them go by falling idle.
        held_back = self.watermarks[channel] == self.output
        if all(self.idle):
            return [*(self.raise_to([max(self.watermarks)]) if held_back else []), Status(True)]
        return self.raise_to(self.counting()) if held_back else []


class TwoInputModel:
    """Flink's rules for an operator with two inputs: each has a valve; the slower one of those not idle decides."""

    def __init__(self, channels: tuple[int, int]) -> None:
        self.valves = [ValveModel(count) for count in channels]
        self.watermarks = [MIN_LONG_VALUE] * 2
        self.idle = [False] * 2
        self.output = MIN_LONG_VALUE

    def on_watermark(self, at: tuple[int, int], watermark: int) -> list:
        return self.combined(at[0], self.valves[at[0]].on_watermark(at[1], watermark))

    def on_status(self, at: tuple[int, int], is_idle: bool) -> list:
        return self.combined(at[0], self.valves[at[0]].on_status(at[1], is_idle))

    def combined(self, side: int, marks: list) -> list:
        sent: list = []
        for mark in marks:
            was_idle = all(self.idle)
            self.idle[side] = mark == Status(True)
            if isinstance(mark, Watermark):
                self.watermarks[side] = mark.timestamp
            awake = [self.watermarks[each] for each in (0, 1) if not self.idle[each]]
            if awake and min(awake) > self.output:
                self.output = min(awake)
                sent.append(Watermark(self.output))
            if was_idle != all(self.idle):
                sent.append(Status(all(self.idle)))
        return sent


values = st.integers(0, 30) | st.booleans()


@st.composite
def marks(draw) -> tuple[int, list]:
    channels = draw(st.integers(1, 4))
    mark = st.tuples(st.integers(0, channels - 1), values)
    return channels, draw(st.lists(mark, max_size=60))


@st.composite
def marks_of_two_inputs(draw) -> tuple[list[int], list]:
    """Which input each channel belongs to, and a sequence of marks."""
    inputs = draw(st.lists(st.integers(0, 1), min_size=2, max_size=5).filter(lambda drawn: set(drawn) == {0, 1}))
    mark = st.tuples(st.integers(0, len(inputs) - 1), values)
    return inputs, draw(st.lists(mark, max_size=60))


def feed(valve, channel, mark: int | bool) -> list:
    return valve.on_status(channel, mark) if isinstance(mark, bool) else valve.on_watermark(channel, mark)


@given(marks())
def test_valve_does_what_the_model_does(case):
    channels, sequence = case
    valve, model = StatusWatermarkValve(channels), ValveModel(channels)
    for channel, mark in sequence:
        assert feed(valve, channel, mark) == feed(model, channel, mark)


@given(marks_of_two_inputs())
def test_two_inputs_do_what_the_model_does(case):
    inputs, sequence = case
    task, model = InputWatermarks(inputs), TwoInputModel((inputs.count(0), inputs.count(1)))
    for channel, mark in sequence:
        side = inputs[channel]
        assert feed(task, channel, mark) == feed(model, (side, inputs[:channel].count(side)), mark)
        assert task.watermark == model.output


@given(marks_of_two_inputs())
def test_watermark_never_passes_an_input_that_is_awake(case):
    inputs, sequence = case
    task = InputWatermarks(inputs)
    valves = [StatusWatermarkValve(inputs.count(side)) for side in (0, 1)]
    for channel, mark in sequence:
        side = inputs[channel]
        feed(valves[side], inputs[:channel].count(side), mark)
        before = task.watermark
        feed(task, channel, mark)
        awake = [valve.watermark for valve in valves if not valve.is_idle]
        assert task.watermark == before or task.watermark <= min(awake, default=task.watermark)


@given(marks())
def test_one_input_is_its_valve(case):
    channels, sequence = case
    valve, task = StatusWatermarkValve(channels), InputWatermarks([0] * channels)
    for channel, mark in sequence:
        assert feed(valve, channel, mark) == feed(task, channel, mark)


@given(marks())
def test_output_watermark_only_rises(case):
    channels, sequence = case
    valve = StatusWatermarkValve(channels)
    sent = [each.timestamp for c, m in sequence for each in feed(valve, c, m) if isinstance(each, Watermark)]
    assert sent == sorted(set(sent))


@given(marks_of_two_inputs(), st.integers(0, 60))
def test_restored_task_continues_as_if_nothing_had_happened_unless_a_channel_was_idle(case, cut):
    inputs, sequence = case
    task = InputWatermarks(inputs)
    for channel, mark in sequence[:cut]:
        if not isinstance(mark, bool):
            feed(task, channel, mark)
    restored = InputWatermarks(inputs)
    restored.restore(pickle.loads(pickle.dumps(task.memory())))
    for channel, mark in sequence[cut:]:
        assert feed(restored, channel, mark) == feed(task, channel, mark)


@given(marks_of_two_inputs(), st.data())
def test_after_a_restore_every_channel_holds_the_watermark_back_until_it_falls_idle_again(case, data):
    inputs, sequence = case
    task = InputWatermarks(inputs)
    for channel, mark in sequence:
        feed(task, channel, mark)
    restored = InputWatermarks(inputs)
    restored.restore(pickle.loads(pickle.dumps(task.memory())))
    before = restored.watermark
    quiet = data.draw(st.sampled_from(range(len(inputs))))
    for channel in set(range(len(inputs))) - {quiet}:
        feed(restored, channel, 1000)
    assert before == task.watermark and restored.watermark < 1000
    feed(restored, quiet, True)
    assert restored.watermark == 1000


@given(marks_of_two_inputs(), st.integers(0, 60))
def test_two_inputs_continue_from_the_single_valve_of_version_0_1(case, cut):
    inputs, sequence = case
    former = StatusWatermarkValve(len(inputs))
    for channel, mark in sequence[:cut]:
        feed(former, channel, mark)
    restored = InputWatermarks(inputs)
    restored.restore(pickle.loads(pickle.dumps(former)))
    assert restored.watermark == former.watermark
    sent = [each.timestamp for c, m in sequence[cut:] for each in feed(restored, c, m) if isinstance(each, Watermark)]
    assert sent == sorted({each for each in sent if each > former.watermark})
    for channel in range(len(inputs)):
        feed(restored, channel, False)
        feed(restored, channel, 100)
    assert restored.watermark == 100  # No channel is stuck.


def test_one_input_continues_from_the_valve_of_version_0_1():
    former = StatusWatermarkValve(2)
    former.on_watermark(0, 10)
    former.on_watermark(1, 7)
    restored = InputWatermarks([0, 0])
    restored.restore(former)
    assert restored.watermark == 7
    assert restored.on_watermark(1, 20) == [Watermark(10)]


def test_slowest_channel_decides():
    valve = StatusWatermarkValve(2)
    assert valve.on_watermark(0, 10) == []
    assert valve.on_watermark(1, 7) == [Watermark(7)]
    assert valve.on_watermark(1, 20) == [Watermark(10)]


def test_idle_channel_does_not_hold_the_others_back():
    valve = StatusWatermarkValve(2)
    valve.on_watermark(0, 10)
    assert valve.on_status(1, True) == [Watermark(10)]
    assert valve.on_watermark(0, 12) == [Watermark(12)]


def test_channel_that_wakes_up_late_counts_only_once_it_has_caught_up():
    valve = StatusWatermarkValve(2)
    valve.on_status(1, True)
    valve.on_watermark(0, 10)
    valve.on_status(1, False)
    assert valve.on_watermark(1, 5) == []
    assert valve.on_watermark(0, 20) == [Watermark(20)]
    assert valve.on_watermark(1, 25) == []
    assert valve.on_watermark(0, 30) == [Watermark(25)]


def test_all_channels_idle_makes_the_output_idle_and_one_wakes_it():
    valve = StatusWatermarkValve(2)
    assert valve.on_status(0, True) == []
    assert valve.on_status(1, True) == [Status(True)]
    assert valve.on_status(0, False) == [Status(False)]
    assert valve.on_status(1, False) == []


def test_channel_that_did_not_hold_back_lets_nothing_go_by_falling_idle():
    valve = StatusWatermarkValve(3)
    feed(valve, 1, True)
    feed(valve, 0, 10)
    feed(valve, 2, 20)
    feed(valve, 1, False)  # It is behind.
    feed(valve, 2, True)
    feed(valve, 0, True)
    feed(valve, 2, False)
    assert valve.on_status(1, True) == []
    assert valve.watermark == 10


@pytest.mark.parametrize("awake", [0, 1])
def test_input_that_wakes_up_holds_time_back_at_once(awake):
    other = 1 - awake
    task = InputWatermarks([0, 1])
    task.on_watermark(awake, 5)
    task.on_watermark(other, 5)
    task.on_status(other, True)
    assert task.on_watermark(awake, 10) == [Watermark(10)]
    assert task.on_status(other, False) == []
    assert task.on_watermark(awake, 50) == []
    assert task.on_watermark(other, 20) == [Watermark(20)]


def test_time_does_not_jump_ahead_when_all_inputs_are_idle():
    task = InputWatermarks([0, 1])
    task.on_watermark(0, 100)
    task.on_watermark(1, 10)
    assert task.on_status(0, True) == []
    assert task.on_status(1, True) == [Status(True)]
    assert task.watermark == 10


@pytest.mark.parametrize("inputs", [[0, 0], [0, 1]], ids=["channels", "inputs"])
def test_end_does_not_pass_while_another_is_idle(inputs):
    watermarks = InputWatermarks(inputs)
    watermarks.on_watermark(0, 10)
    watermarks.on_watermark(1, 10)
    assert watermarks.on_status(1, True) == []
    assert watermarks.on_watermark(0, MAX_LONG_VALUE) == [Status(True)]
    assert watermarks.on_status(1, False) == [Status(False)]
    assert watermarks.on_watermark(1, 20) == [Watermark(20)]
    assert watermarks.on_watermark(1, MAX_LONG_VALUE) == [Watermark(MAX_LONG_VALUE)]
