"""Combines the watermarks of channels and inputs into one that never goes backwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.runtime.chunk import Status, Watermark

Mark = Watermark | Status


@dataclass
class _Channel:
    watermark: int = MIN_LONG_VALUE
    is_idle: bool = False
    is_aligned: bool = True
    """False for a channel that woke up behind the output watermark: it counts again once it has caught up."""

    @property
    def has_ended(self) -> bool:
        return self.watermark == MAX_LONG_VALUE


class StatusWatermarkValve:
    """Flink's StatusWatermarkValve, for the channels of one input: the minimum over active, aligned channels.

    Idle channels do not hold it back. Each method returns the watermarks and changes of status that follow, in order.

    One rule is not Flink's. There, the end of a channel ends event time if all others are idle, so whatever these bring
    later is late: their last records, or the results of windows that their own end fires. Here a channel that has ended
    no longer counts, and the end passes when all channels have ended.
    """

    def __init__(self, channels: int) -> None:
        self._channels = [_Channel() for _ in range(channels)]
        self.watermark = MIN_LONG_VALUE
        self.is_idle = False

    def on_watermark(self, channel: int, watermark: int) -> list[Mark]:
        state = self._channels[channel]
        if state.is_idle or watermark <= state.watermark:
            return []
        state.watermark = watermark
        if state.has_ended:
            return self._ended()
        if not state.is_aligned and watermark >= self.watermark:
            state.is_aligned = True
        return self._raised_to_slowest()

    def on_status(self, channel: int, is_idle: bool) -> list[Mark]:
        state = self._channels[channel]
        if state.is_idle == is_idle:
            return []
        state.is_idle = is_idle
        return self._fell_idle(state) if is_idle else self._woke_up(state)

    def restart_idleness(self) -> None:
        """After a restore all channels are active: they hold the watermark back until they catch up or fall idle."""
        for each in self._channels:
            each.is_idle, each.is_aligned = False, True
            each.watermark = max(each.watermark, self.watermark)
        self.is_idle = False

    def part(self, channels: Sequence[int]) -> StatusWatermarkValve:
        """A valve for some of the channels, in their current state."""
        part = StatusWatermarkValve(len(channels))
        part._channels = [
            replace(each, is_aligned=not each.is_idle) for each in map(self._channels.__getitem__, channels)
        ]
        part.is_idle = all(each.is_idle for each in part._channels)
        slowest = min((each.watermark for each in part._channels if not each.is_idle), default=None)
        part.watermark = max(each.watermark for each in part._channels) if slowest is None else slowest
        return part

    def _left(self) -> list[_Channel]:
        return [each for each in self._channels if not each.has_ended]

    def _ended(self) -> list[Mark]:
        left = self._left()
        if not left:
            return self._raised_to(MAX_LONG_VALUE)
        if not all(each.is_idle for each in left):
            return self._raised_to_slowest()
        # Nothing up to the smallest of these watermarks can follow.
        return [*self._raised_to(min(each.watermark for each in left)), *self._all_idle()]

    def _fell_idle(self, state: _Channel) -> list[Mark]:
        state.is_aligned = False
        held_back = state.watermark == self.watermark
        left = self._left()
        if not all(each.is_idle for each in left):
            return self._raised_to_slowest() if held_back else []
        # The last active channel held the watermark back: with it idle, the largest of all may pass.
        flushed = self._raised_to(max(each.watermark for each in left)) if held_back else []
        return [*flushed, *self._all_idle()]

    def _all_idle(self) -> list[Mark]:
        self.is_idle = True
        return [Status(True)]

    def _woke_up(self, state: _Channel) -> list[Mark]:
        if state.watermark >= self.watermark:
            state.is_aligned = True
        woke_all, self.is_idle = self.is_idle, False
        return [Status(False)] if woke_all else []

    def _raised_to_slowest(self) -> list[Mark]:
        aligned = [each.watermark for each in self._left() if each.is_aligned]
        return self._raised_to(min(aligned)) if aligned else []

    def _raised_to(self, watermark: int) -> list[Mark]:
        if watermark <= self.watermark:
            return []
        self.watermark = watermark
        return [Watermark(watermark)]


class CombinedWatermarkStatus:
    """Flink's IndexedCombinedWatermarkStatus: the smallest watermark of the inputs that are not idle.

    Unlike a channel, an input that becomes active behind the others counts at once: the watermark does not rise until
    this input has caught up. Nor does it rise while all inputs are idle. As in a valve, and unlike in Flink, an input
    that has ended no longer counts: the end passes when all inputs have ended.
    """

    def __init__(self, inputs: int) -> None:
        self._watermarks = [MIN_LONG_VALUE] * inputs
        self._idle = [False] * inputs
        self.watermark = MIN_LONG_VALUE

    @property
    def is_idle(self) -> bool:
        """True if all inputs that have not ended are idle."""
        left = self._left()
        return bool(left) and all(is_idle for _, is_idle in left)

    def _left(self) -> list[tuple[int, bool]]:
        inputs = zip(self._watermarks, self._idle, strict=True)
        return [(watermark, is_idle) for watermark, is_idle in inputs if watermark != MAX_LONG_VALUE]

    def on_mark(self, index: int, mark: Mark) -> list[Mark]:
        """The marks that follow; the watermark comes before a change of status, as in Flink."""
        was_idle = self.is_idle
        if isinstance(mark, Watermark):
            self._idle[index] = False
            self._watermarks[index] = max(self._watermarks[index], mark.timestamp)
        else:
            self._idle[index] = mark.is_idle
        changed: list[Mark] = [] if self.is_idle == was_idle else [Status(self.is_idle)]
        return [*self._raised(), *changed]

    def restart_idleness(self) -> None:
        """After a restore all inputs are active."""
        self._idle = [False] * len(self._idle)

    def _raised(self) -> list[Mark]:
        left = self._left()
        active = [watermark for watermark, is_idle in left if not is_idle] if left else [MAX_LONG_VALUE]
        if not active or min(active) <= self.watermark:
            return []
        self.watermark = min(active)
        return [Watermark(self.watermark)]

    @classmethod
    def of_valves(cls, valves: Sequence[StatusWatermarkValve], watermark: int) -> CombinedWatermarkStatus:
        """The combination of valves in their current state; `watermark` was already emitted."""
        combined = cls(len(valves))
        combined._watermarks = [valve.watermark for valve in valves]
        combined._idle = [valve.is_idle for valve in valves]
        combined.watermark = watermark
        return combined


class InputWatermarks:
    """The event time of a task: a valve for each input, and the combination of the inputs if there are several.

    Channels are numbered over all inputs; `inputs` says which input each of them belongs to.
    """

    def __init__(self, inputs: Sequence[int]) -> None:
        self._inputs = list(inputs)
        self._places = [inputs[:channel].count(index) for channel, index in enumerate(inputs)]
        """The number of each channel within its input."""
        count = 1 + max(inputs, default=0)
        self._valves = [StatusWatermarkValve(self._inputs.count(index)) for index in range(count)]
        self._combined = CombinedWatermarkStatus(count) if count > 1 else None

    @property
    def watermark(self) -> int:
        return self._valves[0].watermark if self._combined is None else self._combined.watermark

    def by_input(self) -> list[int]:
        """The watermark of each input, whether it is idle or not."""
        return [valve.watermark for valve in self._valves]

    def on_watermark(self, channel: int, watermark: int) -> list[Mark]:
        index = self._inputs[channel]
        return self._passed_on(index, self._valves[index].on_watermark(self._places[channel], watermark))

    def on_status(self, channel: int, is_idle: bool) -> list[Mark]:
        index = self._inputs[channel]
        return self._passed_on(index, self._valves[index].on_status(self._places[channel], is_idle))

    def _passed_on(self, index: int, marks: list[Mark]) -> list[Mark]:
        if self._combined is None:
            return marks
        return [passed for mark in marks for passed in self._combined.on_mark(index, mark)]

    # --- in a state file -------------------------------------------------------------------------------------------

    def memory(self) -> tuple[list[StatusWatermarkValve], CombinedWatermarkStatus | None]:
        return self._valves, self._combined

    def restore(self, memory: object) -> None:
        """Continue from what `memory` returned. Idleness starts anew, here and in the tasks that send."""
        if isinstance(memory, StatusWatermarkValve):
            self._restore_single(memory)
        else:
            self._valves, self._combined = memory  # type: ignore[misc]
        for valve in self._valves:
            valve.restart_idleness()
        if self._combined is not None:
            self._combined.restart_idleness()

    def _restore_single(self, valve: StatusWatermarkValve) -> None:
        """State files of version 0.1 have one valve for the channels of all inputs."""
        if self._combined is None:
            self._valves = [valve]
            return
        channels: list[list[int]] = [[] for _ in self._valves]
        for channel, index in enumerate(self._inputs):
            channels[index].append(channel)
        self._valves = [valve.part(each) for each in channels]
        self._combined = CombinedWatermarkStatus.of_valves(self._valves, valve.watermark)
