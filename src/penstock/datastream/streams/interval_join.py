"""The interval join of two keyed streams, as programs write it."""

from __future__ import annotations

from typing import Any

from penstock.common.exceptions import InvalidProgramError
from penstock.common.time import to_milliseconds
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.functions import ProcessJoinFunction
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.streams.data_stream import DataStream
from penstock.datastream.streams.keyed_stream import KeyedStream
from penstock.graph.descriptions import IntervalJoinDescription

__all__ = ["IntervalJoin", "IntervalJoined"]


class IntervalJoin:
    """Two keyed streams, waiting for the bounds of their join.

    `ProcessJoinFunction` has an example.
    """

    def __init__(self, left: KeyedStream, right: KeyedStream) -> None:
        if not isinstance(right, KeyedStream):
            raise InvalidProgramError(
                "interval_join: the other stream is not keyed; call key_by(...) on it, with the same kind of key"
            )
        self._left = left
        self._right = right

    def __repr__(self) -> str:
        return f"<IntervalJoin of {self._left!r} and {self._right!r}>"

    def between(self, lower_bound: Any, upper_bound: Any) -> IntervalJoined:
        """Pairs with left + lower <= right <= left + upper, in event time. Bounds may be negative."""
        lower_ms, upper_ms = to_milliseconds(lower_bound), to_milliseconds(upper_bound)
        if lower_ms > upper_ms:
            raise InvalidProgramError(
                f"interval_join: the lower bound must not be above the upper one, got {lower_ms} ms and {upper_ms} ms"
            )
        return IntervalJoined(self._left, self._right, lower_ms, upper_ms)


class IntervalJoined:
    """An interval join, waiting for its function. Each setting changes this object and returns it.

    `ProcessJoinFunction` has an example.
    """

    def __init__(self, left: KeyedStream, right: KeyedStream, lower_bound_ms: int, upper_bound_ms: int) -> None:
        self._left = left
        self._right = right
        self._lower_bound_ms = lower_bound_ms
        self._upper_bound_ms = upper_bound_ms
        self._is_lower_inclusive = True
        self._is_upper_inclusive = True
        self._late_left_tag: OutputTag | None = None
        self._late_right_tag: OutputTag | None = None

    def __repr__(self) -> str:
        bounds = f"{self._lower_bound_ms} to {self._upper_bound_ms} ms"
        return f"<IntervalJoined of {self._left!r} and {self._right!r}, {bounds}>"

    def upper_bound_exclusive(self) -> IntervalJoined:
        """Leave out pairs that are exactly the upper bound apart."""
        self._is_upper_inclusive = False
        return self

    def lower_bound_exclusive(self) -> IntervalJoined:
        """Leave out pairs that are exactly the lower bound apart."""
        self._is_lower_inclusive = False
        return self

    def side_output_left_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Send elements of the left stream that are behind the watermark to a side output; else they are dropped."""
        self._late_left_tag = output_tag
        return self

    def side_output_right_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Send elements of the right stream that are behind the watermark to a side output; else they are dropped."""
        self._late_right_tag = output_tag
        return self

    def process(
        self, process_join_function: ProcessJoinFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Call the function for every pair; results have the later timestamp of the two."""
        if not isinstance(process_join_function, ProcessJoinFunction):
            raise TypeError(
                f"process on an interval join needs a ProcessJoinFunction, got {type(process_join_function).__name__}"
            )
        description = IntervalJoinDescription(
            process_join_function,
            (self._left.key_selector, self._right.key_selector),
            lower_bound_ms=self._lower_bound_ms,
            upper_bound_ms=self._upper_bound_ms,
            is_lower_inclusive=self._is_lower_inclusive,
            is_upper_inclusive=self._is_upper_inclusive,
            late_left_tag=self._late_left_tag,
            late_right_tag=self._late_right_tag,
        )
        inputs = [self._left.transformation, self._right.transformation]
        return self._left.get_execution_environment()._add_operator("Interval Join", description, inputs, output_type)
