"""Process functions: full access to time, timers, state and side outputs, on one or two inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from penstock.datastream.functions.base import RichFunction, SideOutputContext

if TYPE_CHECKING:
    from penstock.datastream.time_domain import TimeDomain
    from penstock.datastream.timerservice import TimerService


class TimedContext(SideOutputContext, ABC):
    """What every process function can ask during a call; not to be kept beyond it."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """Gives the time; registers timers on keyed streams."""

    @abstractmethod
    def timestamp(self) -> int | None:
        """Event time of the element or of the firing timer; None if the stream has no timestamps."""


class KeyedContext(TimedContext, ABC):
    """A context on a keyed stream."""

    @abstractmethod
    def get_current_key(self) -> Any:
        """Key of the element or of the firing timer."""


class TimerContext(KeyedContext, ABC):
    """The context of a firing timer."""

    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Whether an event-time or a processing-time timer fired."""


class ProcessFunction(RichFunction):
    """Handles each element of a stream with access to time and side outputs.

    Emit by `yield value`; `yield tag, value` goes to a side output. On a keyed stream, state and the registration of
    timers work as in `KeyedProcessFunction`, which also has `on_timer`.

    >>> from penstock.datastream import OutputTag
    >>> NEGATIVE = OutputTag("negative")
    >>> class Split(ProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         if value < 0:
    ...             yield NEGATIVE, value
    ...         else:
    ...             yield value
    >>> list(env.from_collection([1, -2, 3]).process(Split()).execute_and_collect())
    [1, 3]
    """

    class Context(TimedContext, ABC):
        """What `process_element` can ask."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterable[Any] | None:
        """Yield the results for one element."""


class KeyedProcessFunction(RichFunction):
    """Handles each element of a keyed stream with access to keyed state and timers.

    Emit by `yield value`; `yield tag, value` goes to a side output.

    >>> from penstock.common import WatermarkStrategy
    >>> class Reminder(KeyedProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         ctx.timer_service().register_event_time_timer(ctx.timestamp() + 1000)
    ...     def on_timer(self, timestamp, ctx):
    ...         yield ctx.get_current_key(), timestamp
    >>> timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])
    >>> clicks = env.from_collection([("ann", 5000)]).assign_timestamps_and_watermarks(timed)
    >>> list(clicks.key_by(lambda click: click[0]).process(Reminder()).execute_and_collect())
    [('ann', 6000)]

    `KeyedStream.process` has an example with state.
    """

    class Context(KeyedContext, ABC):
        """What `process_element` can ask."""

    class OnTimerContext(Context, TimerContext, ABC):
        """What `on_timer` can ask."""

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any] | None:
        """Yield the results for one element."""

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """Yield the results of a timer registered for `timestamp`."""
        return None


class CoProcessFunction(RichFunction):
    """Handles the elements of two connected streams, with one instance for both.

    >>> class Labelled(CoProcessFunction):
    ...     def process_element1(self, value, ctx):
    ...         yield "order", value
    ...     def process_element2(self, value, ctx):
    ...         if value > 0:
    ...             yield "payment", value
    >>> orders, payments = env.from_collection([1]), env.from_collection([0, 7])
    >>> sorted(orders.connect(payments).process(Labelled()).execute_and_collect())
    [('order', 1), ('payment', 7)]
    """

    class Context(TimedContext, ABC):
        """What `process_element1` and `process_element2` can ask."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """Yield the results for an element of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """Yield the results for an element of the second stream."""


class KeyedCoProcessFunction(RichFunction):
    """Handles the elements of two streams keyed alike; both share state and timers of a key.

    `ConnectedStreams` has an example.
    """

    class Context(KeyedContext, ABC):
        """What `process_element1` and `process_element2` can ask."""

    class OnTimerContext(Context, TimerContext, ABC):
        """What `on_timer` can ask."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any] | None:
        """Yield the results for an element of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any] | None:
        """Yield the results for an element of the second stream."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """Yield the results of a timer registered for `timestamp`."""
        return None
