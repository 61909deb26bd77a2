"""The interval join: pairs of two keyed streams whose timestamps are near each other."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple, NoReturn

from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.common.exceptions import InvalidProgramError
from penstock.datastream.functions import ProcessJoinFunction
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.state import MapState, MapStateDescriptor
from penstock.graph.descriptions import IntervalJoinDescription
from penstock.runtime.batch import Batch
from penstock.runtime.operators.contexts import EmitSide, EmittingContext, emit_results
from penstock.runtime.operators.user_function import UserFunctionOperator

TIMER_SERVICE = "interval-join-timers"
LATE_RECORDS_DROPPED = "numLateRecordsDropped"


class PairContext(EmittingContext, ProcessJoinFunction.Context):
    """What `process_element` gets; the pair's timestamp is the later of both."""

    def __init__(self, emit_side: EmitSide) -> None:
        super().__init__(emit_side)
        self.left_timestamp = self.right_timestamp = 0

    def at(self, left_timestamp: int, right_timestamp: int) -> int:
        """Make this the context of a pair; returns the pair's timestamp."""
        self.left_timestamp, self.right_timestamp = left_timestamp, right_timestamp
        self.element_timestamp = later = max(left_timestamp, right_timestamp)
        return later

    def get_left_timestamp(self) -> int:
        return self.left_timestamp

    def get_right_timestamp(self) -> int:
        return self.right_timestamp

    def get_timestamp(self) -> int:
        return max(self.left_timestamp, self.right_timestamp)


class _Side(NamedTuple):
    """One of the two inputs: it matches others at `lower` to `upper` (both included) from its own timestamp."""

    name: str
    lower: int
    upper: int
    late_tag: OutputTag | None

    @property
    def kept_ms(self) -> int:
        """How long after its timestamp an element can still find partners that are not late."""
        return max(self.upper, 0)

    @property
    def cleanup_step_ms(self) -> int:
        """Elements are dropped at multiples of this: a little late, so that few timers are enough for many of them."""
        return max((self.upper - self.lower) // _CLEANUPS_AN_INTERVAL, 1)


_CLEANUPS_AN_INTERVAL = 16


class IntervalJoinOperator(UserFunctionOperator):
    """Keeps the elements of both sides, by key and timestamp, until no partner can come any more.

    An element behind the watermark is late: it goes to its side's late output, or is dropped and counted.
    """

    def __init__(self, description: IntervalJoinDescription) -> None:
        super().__init__(description.function, ("process_element",), description.key_selectors)
        lower = description.lower_bound_ms + (0 if description.is_lower_inclusive else 1)
        upper = description.upper_bound_ms - (0 if description.is_upper_inclusive else 1)
        self._sides = (
            _Side("left", lower, upper, description.late_left_tag),
            _Side("right", -upper, -lower, description.late_right_tag),
        )

    def open(self) -> None:
        backend = self.context.keyed_state
        self._buffers: list[MapState[int, list[Any]]] = [
            backend.state(MapStateDescriptor(f"_interval_join/{side.name}")) for side in self._sides
        ]
        self._kept: dict[Hashable, tuple[MapState[int, list[Any]], int]] = {
            side.name: (buffer, side.kept_ms) for side, buffer in zip(self._sides, self._buffers, strict=True)
        }
        self._timers = self.context.timer_service(TIMER_SERVICE, self._clean_up, self._clean_up)
        self._pair = PairContext(self.output.collect_side)
        super().open()

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        """Keep every element, and call the function for each partner of it that is there already."""
        side, mine, others = self._sides[input_index], self._buffers[input_index], self._buffers[1 - input_index]
        kept_ms, step_ms = side.kept_ms, side.cleanup_step_ms
        watermark, add_timer = self._timers.current_watermark, self._timers.event_time.add
        # An element at the watermark is not late, but partners whose time ends there are gone, as in Flink.
        gone_until = watermark - self._sides[1 - input_index].kept_ms
        backend = self.context.keyed_state
        timestamps = batch.timestamps or [None] * len(batch.values)
        for key, value, timestamp in zip(self.keys(batch, input_index), batch.values, timestamps, strict=False):
            backend.current_key = key
            if timestamp is None or timestamp == MIN_LONG_VALUE:
                self._refuse(value)
            if timestamp < watermark:
                self._skip_late(value, timestamp, side)
                continue
            bucket = mine.get(timestamp)
            if bucket is None:
                mine.put(timestamp, [value])
            else:
                bucket.append(value)
                mine.put(timestamp, bucket)
            add_timer(min(-(-(timestamp + kept_ms) // step_ms) * step_ms, MAX_LONG_VALUE), key, side.name)
            for other_timestamp, partners in others.items():
                if other_timestamp > gone_until and side.lower <= other_timestamp - timestamp <= side.upper:
                    for partner in partners:
                        if input_index == 0:
                            self._emit(value, timestamp, partner, other_timestamp)
                        else:
                            self._emit(partner, other_timestamp, value, timestamp)

    def _emit(self, left: Any, left_timestamp: int, right: Any, right_timestamp: int) -> None:
        """Call the function with copies: both stay here for other partners."""
        timestamp, copied = self._pair.at(left_timestamp, right_timestamp), self.context.copied
        emit_results(self.output, self.calls[0](copied(left), copied(right), self._pair), timestamp)

    def _clean_up(self, time: int, key: Any, namespace: Hashable) -> None:
        buffer, kept_ms = self._kept[namespace]
        for timestamp in buffer.keys():  # noqa: SIM118 (the state changes in the loop)
            if timestamp + kept_ms <= time:
                buffer.remove(timestamp)

    def _skip_late(self, value: Any, timestamp: int, side: _Side) -> None:
        if side.late_tag is not None:
            self.output.collect_side(side.late_tag.tag_id, value, timestamp)
        else:
            self.context.increment(LATE_RECORDS_DROPPED)

    def _refuse(self, value: Any) -> NoReturn:
        raise InvalidProgramError(
            f"operator '{self.context.operator_name}': element {value!r} has no event time, but an interval join needs "
            f"one; call assign_timestamps_and_watermarks(...) before key_by(...)"
        )
