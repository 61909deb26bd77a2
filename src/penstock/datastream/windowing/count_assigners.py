"""Windows of a fixed number of elements of a key, tumbling and sliding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.common.serializer import TypeSerializer
from penstock.common.typeinfo import Types
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.windowing.assigner import WindowAssigner
from penstock.datastream.windowing.element_triggers import CountTrigger
from penstock.datastream.windowing.nested_triggers import PurgingTrigger
from penstock.datastream.windowing.spans import check_positive
from penstock.datastream.windowing.trigger import Trigger
from penstock.datastream.windowing.windows import CountWindow, CountWindowSerializer


class _CountWindows(WindowAssigner[Any, CountWindow]):
    """What both count assigners share: a counter per key, and panes that are dropped once they are full."""

    window_size: int

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        # A full count window gets no further element, so purging it changes no result and leaves no state behind.
        return PurgingTrigger(CountTrigger(self.window_size))

    def get_window_serializer(self) -> TypeSerializer[CountWindow]:
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        return False


@dataclass(frozen=True)
class CountTumblingWindowAssigner(_CountWindows):
    """Windows of `window_size` elements of one key each.

    >>> pairs = env.from_collection([("a", 1), ("a", 2), ("a", 3)]).key_by(lambda pair: pair[0])
    >>> list(pairs.window(CountTumblingWindowAssigner.of(2)).sum(1).execute_and_collect())
    [('a', 3)]
    """

    window_size: int

    def __post_init__(self) -> None:
        check_positive("CountTumblingWindowAssigner", "window_size", self.window_size)

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        """Windows of `window_size` elements."""
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[CountWindow]:
        return [CountWindow(_next_number(context, _TUMBLING_COUNT) // self.window_size)]

    def __str__(self) -> str:
        return f"CountTumblingWindowAssigner({self.window_size})"


@dataclass(frozen=True)
class CountSlidingWindowAssigner(_CountWindows):
    """Windows of `window_size` elements of one key, one begun every `window_slide` elements.

    >>> pairs = env.from_collection([("a", 1), ("a", 2), ("a", 3)]).key_by(lambda pair: pair[0])
    >>> list(pairs.window(CountSlidingWindowAssigner.of(2, 1)).sum(1).execute_and_collect())
    [('a', 3), ('a', 5)]
    """

    window_size: int
    window_slide: int

    def __post_init__(self) -> None:
        check_positive("CountSlidingWindowAssigner", "window_size", self.window_size)
        check_positive("CountSlidingWindowAssigner", "window_slide", self.window_slide)

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        """Windows of `window_size` elements, one beginning every `window_slide` elements."""
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[CountWindow]:
        number = _next_number(context, _SLIDING_COUNT)
        last = number // self.window_slide
        first = max(0, (number - self.window_size) // self.window_slide + 1)
        return [CountWindow(i) for i in range(last, first - 1, -1)]

    def __str__(self) -> str:
        return f"CountSlidingWindowAssigner({self.window_size}, {self.window_slide})"


_TUMBLING_COUNT = ValueStateDescriptor("tumble-count-assigner", Types.LONG())
_SLIDING_COUNT = ValueStateDescriptor("slide-count-assigner", Types.LONG())


def _next_number(context: WindowAssigner.WindowAssignerContext, descriptor: ValueStateDescriptor) -> int:
    """The number of this element among those of its key, from 0."""
    counter = context.get_runtime_context().get_state(descriptor)
    number: int = counter.value() or 0
    counter.update(number + 1)
    return number
