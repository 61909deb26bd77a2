"""A stream connected with a broadcast stream, whose side changes the broadcast state; both sides read it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from penstock.common.exceptions import StateAccessError
from penstock.datastream.functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction, TimerService
from penstock.datastream.state import BroadcastState, MapStateDescriptor, ReadOnlyBroadcastState
from penstock.datastream.time_domain import TimeDomain
from penstock.graph.descriptions import BroadcastProcessDescription
from penstock.runtime.operators.base import OperatorContext
from penstock.runtime.operators.contexts import EmitSide, EmittingContext
from penstock.runtime.operators.process import ProcessOperator
from penstock.runtime.state.operator import HeapBroadcastState


class ReadOnlyView(ReadOnlyBroadcastState[Any, Any]):
    """Broadcast state that must not be changed, because other subtasks would not make the same change."""

    def __init__(self, state: HeapBroadcastState, name: str, operator_name: str) -> None:
        self._state = state
        self._name = name
        self._operator_name = operator_name
        self.dictionary = state.dictionary
        """For generated loops, which only read it."""
        self.get = state.get  # type: ignore[method-assign]  # Saves a call for every element.

    def get(self, key: Any) -> Any:
        return self._state.get(key)

    def contains(self, key: Any) -> bool:
        return self._state.contains(key)

    def items(self) -> Iterable[tuple[Any, Any]]:
        return self._state.items()

    def keys(self) -> Iterable[Any]:
        return self._state.keys()

    def values(self) -> Iterable[Any]:
        return self._state.values()

    def is_empty(self) -> bool:
        return self._state.is_empty()

    def _refuse(self, *_: Any) -> NoReturn:
        raise StateAccessError(
            f"operator '{self._operator_name}': broadcast state '{self._name}' can only be read here, so that it stays "
            f"the same in all subtasks; change it in process_broadcast_element"
        )

    clear = put = put_all = remove = __setitem__ = __delitem__ = _refuse


class BroadcastStates:
    """The broadcast states of one operator: those whose descriptors were passed to `broadcast(...)`."""

    def __init__(self, context: OperatorContext, descriptors: tuple[MapStateDescriptor, ...]) -> None:
        self._operator_name = context.operator_name
        self._writable = {each.name: context.operator_state.get_broadcast_state(each) for each in descriptors}
        self._read_only = {
            name: ReadOnlyView(state, name, context.operator_name) for name, state in self._writable.items()
        }

    def writable(self, descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        try:
            return self._writable[descriptor.name]
        except KeyError:
            raise self._unknown(descriptor) from None

    def read_only(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        try:
            return self._read_only[state_descriptor.name]
        except KeyError:
            raise self._unknown(state_descriptor) from None

    def _unknown(self, descriptor: MapStateDescriptor) -> StateAccessError:
        known = ", ".join(f"'{name}'" for name in self._writable)
        return StateAccessError(
            f"operator '{self._operator_name}': there is no broadcast state '{descriptor.name}', only {known}; "
            f"give its descriptor to broadcast(...)"
        )


class _BroadcastContext(EmittingContext):
    """What the contexts of both sides have in common."""

    def __init__(self, emit_side: EmitSide, timers: TimerService, states: BroadcastStates) -> None:
        super().__init__(emit_side)
        self._timers = timers
        self._states = states

    def current_processing_time(self) -> int:
        return self._timers.current_processing_time()

    def current_watermark(self) -> int:
        return self._timers.current_watermark()


class WritingContext(_BroadcastContext, BroadcastProcessFunction.Context, KeyedBroadcastProcessFunction.Context):
    """The context of `process_broadcast_element`."""

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        return self._states.writable(state_descriptor)


class ReadingContext(_BroadcastContext, BroadcastProcessFunction.ReadOnlyContext):
    """The context of `process_element` on a stream without keys."""

    def __init__(self, emit_side: EmitSide, timers: TimerService, states: BroadcastStates) -> None:
        super().__init__(emit_side, timers, states)
        self.get_broadcast_state = states.read_only  # type: ignore[method-assign]  # Saves a call for every element.

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        return self._states.read_only(state_descriptor)


class KeyedReadingContext(ReadingContext, KeyedBroadcastProcessFunction.OnTimerContext):
    """The context of `process_element` and `on_timer` on a keyed stream."""

    domain: TimeDomain

    def __init__(
        self, emit_side: EmitSide, timers: TimerService, states: BroadcastStates, context: OperatorContext
    ) -> None:
        super().__init__(emit_side, timers, states)
        self._backend = context.keyed_state

    def timer_service(self) -> TimerService:
        return self._timers

    def get_current_key(self) -> Any:
        return self._backend.key()

    def time_domain(self) -> TimeDomain:
        return self.domain


class BroadcastProcessOperator(ProcessOperator):
    """The first input is the stream, the second the broadcast stream, for whose elements there is no current key."""

    def __init__(self, description: BroadcastProcessDescription) -> None:
        super().__init__(
            description.function, ("process_element", "process_broadcast_element"), description.key_selectors
        )
        self._descriptors = description.state_descriptors

    def make_contexts(self, timers: TimerService) -> tuple[list[Any], Any]:
        states = BroadcastStates(self.context, self._descriptors)
        emit_side = self.output.collect_side
        writing = WritingContext(emit_side, timers, states)
        if not self.is_keyed:
            return [ReadingContext(emit_side, timers, states), writing], None
        reading, on_timer = (KeyedReadingContext(emit_side, timers, states, self.context) for _ in range(2))
        return [reading, writing], on_timer
