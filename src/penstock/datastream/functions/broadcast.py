"""Functions that join a stream with a broadcast one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.datastream.functions.base import RichFunction, SideOutputContext

if TYPE_CHECKING:
    from penstock.datastream.state import BroadcastState, MapStateDescriptor, ReadOnlyBroadcastState
    from penstock.datastream.time_domain import TimeDomain
    from penstock.datastream.timerservice import TimerService

KEY = TypeVar("KEY")
IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")


class BaseBroadcastProcessFunction(RichFunction):
    """What the keyed and the non-keyed broadcast functions share: their contexts.

    `KeyedBroadcastProcessFunction` has an example.
    """

    class BaseContext(SideOutputContext, ABC):
        """Time, as seen by both sides."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """Event time of the element; None if the stream has no timestamps."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The current processing time in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The current watermark."""

    class Context(BaseContext, ABC):
        """The broadcast side's context, which may change broadcast state."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
            """The broadcast state described by `state_descriptor`, given to `broadcast(...)` before."""

    class ReadOnlyContext(BaseContext, ABC):
        """The other side's context, which may only read broadcast state, so that all subtasks keep the same."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
            """The broadcast state described by `state_descriptor`, given to `broadcast(...)` before."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[IN1, IN2, OUT]):
    """Handles a non-keyed stream together with a broadcast one, whose elements reach every subtask.

    `BroadcastConnectedStream` has an example.
    """

    class Context(BaseBroadcastProcessFunction.Context, ABC):
        """What `process_broadcast_element` can ask."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, ABC):
        """What `process_element` can ask."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterable[OUT] | None:
        """Yield the results for an element of the non-broadcast stream."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: BroadcastProcessFunction.Context) -> Iterable[OUT] | None:
        """Yield the results for a broadcast element; changes to the state must be the same in every subtask."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[KEY, IN1, IN2, OUT]):
    """Handles a keyed stream together with a broadcast one, with keyed state and timers on the keyed side.

    >>> from penstock.datastream import RuntimeExecutionMode
    >>> from penstock.datastream.state import MapStateDescriptor
    >>> RULES = MapStateDescriptor("rules")
    >>> class AboveLimit(KeyedBroadcastProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         if value[1] > ctx.get_broadcast_state(RULES)["limit"]:
    ...             yield ctx.get_current_key(), value[1]
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(RULES)[value[0]] = value[1]
    >>> readings = env.from_collection([("a", 3), ("b", 9)]).key_by(lambda reading: reading[0])
    >>> _ = env.set_runtime_mode(RuntimeExecutionMode.BATCH)  # reads the broadcast stream first
    >>> rules = env.from_collection([("limit", 5)]).broadcast(RULES)
    >>> list(readings.connect(rules).process(AboveLimit()).execute_and_collect())
    [('b', 9)]
    """

    class Context(BaseBroadcastProcessFunction.Context, ABC):
        """What `process_broadcast_element` can ask. There is no current key here."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, ABC):
        """What `process_element` can ask."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Registers timers for the current key."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """Key of the element or of the firing timer."""

    class OnTimerContext(ReadOnlyContext, ABC):
        """What `on_timer` can ask."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Whether an event-time or a processing-time timer fired."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Iterable[OUT] | None:
        """Yield the results for an element of the keyed stream."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: KeyedBroadcastProcessFunction.Context) -> Iterable[OUT] | None:
        """Yield the results for a broadcast element; changes to the state must be the same in every subtask."""

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Iterable[OUT] | None:
        """Yield the results of a timer registered for `timestamp`."""
        return None
