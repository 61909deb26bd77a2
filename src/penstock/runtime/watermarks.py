"""Combines the watermarks of many channels into one that never goes backwards."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.common.constants import MIN_LONG_VALUE


@dataclass
class _Channel:
    watermark: int = MIN_LONG_VALUE
    is_idle: bool = False
    is_aligned: bool = True
    """False for a channel that woke up behind the output watermark: it counts again once it has caught up."""


@dataclass(frozen=True)
class ValveOutput:
    """What follows from one mark: a new watermark, a change of status, both or nothing."""

    watermark: int | None = None
    is_idle: bool | None = None


NOTHING = ValveOutput()


class StatusWatermarkValve:
    """Flink's StatusWatermarkValve: the minimum over active, aligned channels; idle ones do not hold it back."""

    def __init__(self, channels: int) -> None:
        self._channels = [_Channel() for _ in range(channels)]
        self.watermark = MIN_LONG_VALUE
        self.is_idle = False

    def on_watermark(self, channel: int, watermark: int) -> ValveOutput:
        state = self._channels[channel]
        if state.is_idle or watermark <= state.watermark:
            return NOTHING
        state.watermark = watermark
        if not state.is_aligned and watermark >= self.watermark:
            state.is_aligned = True
        return ValveOutput(watermark=self._advance())

    def on_status(self, channel: int, is_idle: bool) -> ValveOutput:
        state = self._channels[channel]
        if state.is_idle == is_idle:
            return NOTHING
        state.is_idle = is_idle
        if is_idle:
            state.is_aligned = False
            if all(each.is_idle for each in self._channels):
                return self._fall_idle(state)
            return ValveOutput(watermark=self._advance())
        if state.watermark >= self.watermark:
            state.is_aligned = True
        woke_up = self.is_idle
        self.is_idle = False
        return ValveOutput(is_idle=False if woke_up else None)

    def _fall_idle(self, last: _Channel) -> ValveOutput:
        # The last active channel held the watermark back: with it idle, the largest of all may pass.
        advanced = None
        if last.watermark == self.watermark:
            largest = max(each.watermark for each in self._channels)
            if largest > self.watermark:
                self.watermark = advanced = largest
        self.is_idle = True
        return ValveOutput(watermark=advanced, is_idle=True)

    def _advance(self) -> int | None:
        aligned = [each.watermark for each in self._channels if each.is_aligned and not each.is_idle]
        if not aligned or min(aligned) <= self.watermark:
            return None
        self.watermark = min(aligned)
        return self.watermark
