from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from penstock.common.constants import MIN_LONG_VALUE
from penstock.runtime.watermarks import NOTHING, StatusWatermarkValve, ValveOutput


class ValveModel:
    """Flink's rules, said as plainly as can be: look at all channels after every mark."""

    def __init__(self, channels: int) -> None:
        self.watermarks = [MIN_LONG_VALUE] * channels
        self.idle = [False] * channels
        self.behind = [False] * channels
        """Woke up behind the output watermark and has not caught up."""
        self.output = MIN_LONG_VALUE

    def counting(self) -> list[int]:
        channels = zip(self.watermarks, self.idle, self.behind, strict=True)
        return [watermark for watermark, idle, behind in channels if not idle and not behind]

    def raise_to(self, watermark: int) -> int | None:
        if watermark <= self.output:
            return None
        self.output = watermark
        return watermark

    def on_watermark(self, channel: int, watermark: int) -> ValveOutput:
        if self.idle[channel] or watermark <= self.watermarks[channel]:
            return NOTHING
        self.watermarks[channel] = watermark
        if watermark >= self.output:
            self.behind[channel] = False
        counting = self.counting()
        return ValveOutput(self.raise_to(min(counting)) if counting else None)

    def on_status(self, channel: int, is_idle: bool) -> ValveOutput:
        if self.idle[channel] == is_idle:
            return NOTHING
        was_all_idle = all(self.idle)
        self.idle[channel] = is_idle
        if not is_idle:
            self.behind[channel] = self.watermarks[channel] < self.output
            return ValveOutput(is_idle=False if was_all_idle else None)
        if all(self.idle):
            held_back = self.watermarks[channel] == self.output
            return ValveOutput(self.raise_to(max(self.watermarks)) if held_back else None, True)
        counting = self.counting()
        return ValveOutput(self.raise_to(min(counting)) if counting else None)


@st.composite
def marks(draw) -> tuple[int, list]:
    channels = draw(st.integers(1, 4))
    mark = st.tuples(st.integers(0, channels - 1), st.integers(0, 30) | st.booleans())
    return channels, draw(st.lists(mark, max_size=60))


def feed(valve, channel: int, mark: int | bool) -> ValveOutput:
    return valve.on_status(channel, mark) if isinstance(mark, bool) else valve.on_watermark(channel, mark)


@given(marks())
def test_valve_does_what_the_model_does(case):
    channels, sequence = case
    valve, model = StatusWatermarkValve(channels), ValveModel(channels)
    for channel, mark in sequence:
        assert feed(valve, channel, mark) == feed(model, channel, mark)


@given(marks())
def test_output_watermark_only_rises(case):
    channels, sequence = case
    valve = StatusWatermarkValve(channels)
    emitted = [out.watermark for c, m in sequence if (out := feed(valve, c, m)).watermark is not None]
    assert emitted == sorted(set(emitted))


@given(marks(), st.integers(0, 60))
def test_restored_valve_goes_on_as_if_nothing_had_happened(case, cut):
    channels, sequence = case
    valve = StatusWatermarkValve(channels)
    for channel, mark in sequence[:cut]:
        feed(valve, channel, mark)
    restored = pickle.loads(pickle.dumps(valve))
    for channel, mark in sequence[cut:]:
        assert feed(restored, channel, mark) == feed(valve, channel, mark)


def test_slowest_channel_decides():
    valve = StatusWatermarkValve(2)
    assert valve.on_watermark(0, 10) == NOTHING
    assert valve.on_watermark(1, 7) == ValveOutput(watermark=7)
    assert valve.on_watermark(1, 20) == ValveOutput(watermark=10)


def test_idle_channel_does_not_hold_the_others_back():
    valve = StatusWatermarkValve(2)
    valve.on_watermark(0, 10)
    assert valve.on_status(1, True) == ValveOutput(watermark=10)
    assert valve.on_watermark(0, 12) == ValveOutput(watermark=12)


def test_channel_that_wakes_up_late_counts_only_once_it_has_caught_up():
    valve = StatusWatermarkValve(2)
    valve.on_status(1, True)
    valve.on_watermark(0, 10)
    valve.on_status(1, False)
    assert valve.on_watermark(1, 5) == NOTHING
    assert valve.on_watermark(0, 20) == ValveOutput(watermark=20)
    assert valve.on_watermark(1, 25) == NOTHING
    assert valve.on_watermark(0, 30) == ValveOutput(watermark=25)


def test_all_channels_idle_makes_the_output_idle_and_one_wakes_it():
    valve = StatusWatermarkValve(2)
    assert valve.on_status(0, True) == NOTHING
    assert valve.on_status(1, True) == ValveOutput(is_idle=True)
    assert valve.on_status(0, False) == ValveOutput(is_idle=False)
    assert valve.on_status(1, False) == NOTHING
