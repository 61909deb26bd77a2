"""Process functions on one stream or on two connected ones, with and without keys."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import repeat
from typing import Any

from penstock.datastream.functions import TimerService
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.time_domain import TimeDomain
from penstock.graph.descriptions import CoProcessDescription, KeyedProcessDescription, ProcessDescription
from penstock.runtime.batch import Batch
from penstock.runtime.element_copies import IMMUTABLE_TYPES, as_it_is
from penstock.runtime.operators.contexts import (
    ElementContext,
    EmittingContext,
    KeyedElementContext,
    KeyedTimerService,
    TimerContext,
    TimeWithoutTimers,
    check_results,
    emit_results,
)
from penstock.runtime.operators.user_function import UserFunctionOperator

TIMER_SERVICE = "user-timers"


class ProcessOperator(UserFunctionOperator):
    """Calls a method of the function for every element, and `on_timer` for every timer of a keyed stream.

    Results take the timestamp of their element or timer.
    """

    def open(self) -> None:
        self._on_timer: Callable[..., Any] | None = getattr(self.user_function.function, "on_timer", None)
        self.element_contexts, self._timer_context = self.make_contexts(self._open_timers())
        super().open()

    def _open_timers(self) -> TimerService:
        if not self.is_keyed:
            return TimeWithoutTimers(self)
        return KeyedTimerService(
            self.context.timer_service(TIMER_SERVICE, self.on_event_time, self.on_processing_time)
        )

    def make_contexts(self, timers: TimerService) -> tuple[list[Any], Any]:
        """The contexts for elements, by input, and the one for timers."""
        emit_side = self.output.collect_side
        if not self.is_keyed:
            return [ElementContext(emit_side, timers)] * 2, None
        backend = self.context.keyed_state
        return [KeyedElementContext(emit_side, timers, backend)] * 2, TimerContext(emit_side, timers, backend)

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        """One loop without a call of our own for each element: the function itself is to be what takes time."""
        process, backend = self.calls[input_index], self.context.keyed_state
        context: EmittingContext = self.element_contexts[input_index]
        copied = self.context.copied_result
        emitted: list[Any] = []
        times: list[int | None] = []
        timestamps: Iterable[int | None] = repeat(None) if batch.timestamps is None else batch.timestamps
        for key, value, timestamp in zip(self.keys(batch, input_index), batch.values, timestamps, strict=False):
            backend.current_key = key
            context.element_timestamp = timestamp
            results = process(value, context)
            if results is None:
                continue
            if not hasattr(results, "__iter__"):
                check_results(results)
            for result in results:
                if type(result) not in IMMUTABLE_TYPES:
                    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], OutputTag):
                        self.output.collect_side(result[0].tag_id, result[1], timestamp)
                        continue
                    result = result if copied is as_it_is else copied(result)
                emitted.append(result)
                times.append(timestamp)
        self.output.collect_batch(emitted, None if batch.timestamps is None else times)

    def on_event_time(self, timestamp: int, key: Any, namespace: Hashable) -> None:
        self._fire(timestamp, TimeDomain.EVENT_TIME)

    def on_processing_time(self, timestamp: int, key: Any, namespace: Hashable) -> None:
        self._fire(timestamp, TimeDomain.PROCESSING_TIME)

    def _fire(self, timestamp: int, domain: TimeDomain) -> None:
        if self._on_timer is not None:
            context = self._timer_context
            context.element_timestamp, context.domain = timestamp, domain
            emit_results(self.output, self._on_timer(timestamp, context), timestamp)


def build_process(description: ProcessDescription) -> ProcessOperator:
    return ProcessOperator(description.function, ("process_element",))


def build_keyed_process(description: KeyedProcessDescription) -> ProcessOperator:
    """Also for a plain ProcessFunction, which gets state and timers, and `on_timer` if it has one."""
    return ProcessOperator(description.function, ("process_element",), (description.key_selector,))


def build_co_process(description: CoProcessDescription) -> ProcessOperator:
    return ProcessOperator(
        description.function, ("process_element1", "process_element2"), description.key_selectors
    )
