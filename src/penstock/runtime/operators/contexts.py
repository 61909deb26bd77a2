"""What operators of process functions share: the contexts of user functions, timers, and the emission of results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from penstock.common.exceptions import StateAccessError
from penstock.datastream.functions import (
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    TimerService,
)
from penstock.datastream.functions.base import SideOutputContext
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.time_domain import TimeDomain
from penstock.runtime.batch import Output
from penstock.runtime.operators.base import StreamOperator
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import VOID_NAMESPACE
from penstock.runtime.timers import InternalTimerService

EmitSide = Callable[[str, Any, "int | None"], None]


def emit_results(output: Output, results: Any, timestamp: int | None) -> None:
    """Emit the results of a function: values, and `(tag, value)` for a side output. None means no results."""
    if results is None:
        return
    if not hasattr(results, "__iter__"):
        check_results(results)
    for result in results:
        if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], OutputTag):
            output.collect_side(result[0].tag_id, result[1], timestamp)
        else:
            output.collect(result, timestamp)


def check_results(results: Any) -> None:
    """Raise TypeError if the results are not iterable: the function returned a value that it should have yielded."""
    try:
        iter(results)
    except TypeError:
        raise TypeError(
            f"a process function gave {results!r} of type {type(results).__name__}, but its results must be iterable; "
            f"write `yield` instead of `return`, or return a list"
        ) from None


# --- timers ----------------------------------------------------------------------------------------------------------


class KeyedTimerService(TimerService):
    """The timers of the current key."""

    def __init__(self, timers: InternalTimerService) -> None:
        self._timers = timers

    def current_processing_time(self) -> int:
        return self._timers.current_processing_time()

    def current_watermark(self) -> int:
        return self._timers.current_watermark

    def register_processing_time_timer(self, timestamp: int) -> None:
        self._timers.register_processing_time_timer(VOID_NAMESPACE, timestamp)

    def register_event_time_timer(self, timestamp: int) -> None:
        self._timers.register_event_time_timer(VOID_NAMESPACE, timestamp)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._timers.delete_processing_time_timer(VOID_NAMESPACE, timestamp)

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._timers.delete_event_time_timer(VOID_NAMESPACE, timestamp)


class TimeWithoutTimers(TimerService):
    """The timer service of a stream without keys: it knows the time, but refuses timers."""

    def __init__(self, operator: StreamOperator) -> None:
        self._operator = operator

    def current_processing_time(self) -> int:
        return self._operator.context.clock()

    def current_watermark(self) -> int:
        return self._operator.current_watermark

    def _refuse(self, timestamp: int) -> NoReturn:
        raise StateAccessError(
            f"operator '{self._operator.context.operator_name}': a timer at {timestamp} was registered or deleted on a "
            f"stream that is not keyed, but timers belong to a key; call key_by(...) before this operator"
        )

    register_processing_time_timer = _refuse
    register_event_time_timer = _refuse
    delete_processing_time_timer = _refuse
    delete_event_time_timer = _refuse


# --- contexts --------------------------------------------------------------------------------------------------------


class EmittingContext(SideOutputContext):
    """A context that is reused for each element or timer; `element_timestamp` belongs to the current one."""

    def __init__(self, emit_side: EmitSide) -> None:
        self._emit_side = emit_side
        self.element_timestamp: int | None = None

    def timestamp(self) -> int | None:
        return self.element_timestamp

    def output(self, tag: OutputTag, value: Any) -> None:
        if not isinstance(tag, OutputTag):
            raise TypeError(f"ctx.output needs an OutputTag, got {tag!r}; write OutputTag('name', type)")
        self._emit_side(tag.tag_id, value, self.element_timestamp)


class ElementContext(EmittingContext, ProcessFunction.Context, CoProcessFunction.Context):
    """The context of functions on streams without keys."""

    def __init__(self, emit_side: EmitSide, timers: TimerService) -> None:
        super().__init__(emit_side)
        self._timers = timers

    def timer_service(self) -> TimerService:
        return self._timers


class KeyedElementContext(ElementContext, KeyedProcessFunction.Context, KeyedCoProcessFunction.Context):
    """The context of functions on keyed streams."""

    def __init__(self, emit_side: EmitSide, timers: TimerService, backend: KeyedStateBackend) -> None:
        super().__init__(emit_side, timers)
        self._backend = backend

    def get_current_key(self) -> Any:
        return self._backend.key()


class TimerContext(KeyedElementContext, KeyedProcessFunction.OnTimerContext, KeyedCoProcessFunction.OnTimerContext):
    """The context of `on_timer`."""

    domain: TimeDomain

    def time_domain(self) -> TimeDomain:
        return self.domain
