"""Process functions on one stream or on two connected ones, with and without keys."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import repeat
from typing import TYPE_CHECKING, Any, cast

from penstock.datastream.functions import TimerService
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.time_domain import TimeDomain
from penstock.graph.descriptions import CoProcessDescription, KeyedProcessDescription, ProcessDescription
from penstock.runtime.batch import Batch
from penstock.runtime.element_copies import IMMUTABLE_TYPES, as_it_is
from penstock.runtime.keyed_loop import KeyedLoop, Surroundings, keyed_loop
from penstock.runtime.loop_columns import InColumns
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
from penstock.runtime.timers import KeyTimerQueue

if TYPE_CHECKING:
    from penstock.runtime.columns import Columns

TIMER_SERVICE = "user-timers"
_TIMERS = -1
"""The key of the loop for timers, where loops for elements have the number of their input."""
_LIST_ITEMS_PER_LOOK_UP = 8
"""Looking up one item in a column takes about as long as turning this many of its items into items of a list."""


class ProcessOperator(UserFunctionOperator):
    """Calls a method of the function for every element, and `on_timer` for every timer of a keyed stream.

    Results get the timestamp of their element or timer.
    """

    def open(self) -> None:
        self._loops: dict[tuple[int, bool, InColumns | None], KeyedLoop | None] = {}
        self._inputs_in_lists: set[int] = set()
        """Inputs whose loop needs so many single items that all columns are better turned into lists."""
        self._event_timers: KeyTimerQueue | None = None
        self._timers_set_timers = False
        """True once a timer has set or deleted others while it fired."""
        self._on_timer: Callable[..., Any] | None = getattr(self.user_function.function, "on_timer", None)
        self.element_contexts, self._timer_context = self.make_contexts(self._open_timers())
        super().open()

    def _open_timers(self) -> TimerService:
        if not self.is_keyed:
            return TimeWithoutTimers(self)
        service = self.context.timer_service(TIMER_SERVICE, self.on_event_time, self.on_processing_time, KeyTimerQueue)
        self._event_timers = cast(KeyTimerQueue, service.event_time)
        return KeyedTimerService(service)

    def make_contexts(self, timers: TimerService) -> tuple[list[Any], Any]:
        """The contexts for elements, by input, and the context for timers."""
        emit_side = self.output.collect_side
        if not self.is_keyed:
            return [ElementContext(emit_side, timers)] * 2, None
        backend = self.context.keyed_state
        return [KeyedElementContext(emit_side, timers, backend)] * 2, TimerContext(emit_side, timers, backend)

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        """Process a batch in one loop. It calls only the user's function for each element, to be fast."""
        emitted: list[Any] = []
        times: list[int | None] = []
        loop = self._loop(input_index, self.calls[input_index], batch.timestamps is not None)
        if loop is None:
            self._call_each(batch, input_index, emitted, times)
        else:
            keys = self.keys(batch, input_index)
            loop.run(keys, batch.values, batch.timestamps or (), emitted.append, times.append)
        self.output.collect_batch(emitted, None if batch.timestamps is None else times)

    def takes_columns(self) -> bool:
        return self.context.inlines_functions

    def process_columns(self, columns: Columns, input_index: int = 0) -> None:
        """Process columns in a loop that uses only the items of tuples, so that the tuples need not be built."""
        loop = None
        if columns.key is not None and columns.kinds.count("(") == 1 and self.key_selectors[input_index] is not None:
            in_columns = InColumns(len(columns.arrays), are_late=input_index not in self._inputs_in_lists)
            loop = self._loop(input_index, self.calls[input_index], columns.timestamps is not None, in_columns)
        if loop is None:
            super().process_columns(columns, input_index)
            return
        emitted: list[Any] = []
        times: list[int | None] = []
        if loop.run_columns(columns, emitted.append, times.append) > len(columns) // _LIST_ITEMS_PER_LOOK_UP:
            self._inputs_in_lists.add(input_index)
        self.output.collect_batch(emitted, None if columns.timestamps is None else times)

    def _loop(
        self,
        input_index: int,
        method: Callable[..., Any],
        with_timestamps: bool,
        in_columns: InColumns | None = None,
    ) -> KeyedLoop | None:
        """The loop that does the method's work for the elements of an input; None if the method must be called."""
        at = input_index, with_timestamps, in_columns
        loop = self._loops.get(at)
        is_made = at in self._loops or not self.context.inlines_functions
        if not is_made or (loop is not None and not loop.fits()):
            is_timer = input_index == _TIMERS
            around = Surroundings(
                backend=self.context.keyed_state,
                context=self._timer_context if is_timer else self.element_contexts[input_index],
                has_keys=is_timer or self.key_selectors[input_index] is not None,
                event_timers=self._event_timers,
                emit_side=self.output.collect_side,
                check_results=check_results,
                copied=None if self.context.copied_result is as_it_is else self.context.copied_result,
            )
            loop = self._loops[at] = keyed_loop(method, around, with_timestamps, in_columns)
        return loop

    def process_watermark(self, watermark: int) -> None:
        if self._event_timers is not None and self._on_timer is not None:
            self.context.timer_services[TIMER_SERVICE].current_watermark = watermark
            self._fire_at_once(watermark, self._event_timers, self._on_timer)
        super().process_watermark(watermark)

    def _fire_at_once(self, watermark: int, timers: KeyTimerQueue, on_timer: Callable[..., Any]) -> None:
        """Fire the timers that are due in one loop, up to the first one that sets or deletes others, if there is one.

        Where a function does that, its timers fire one by one from then on.
        """
        if self._timers_set_timers:
            return
        loop = self._loop(_TIMERS, on_timer, with_timestamps=True)
        if loop is None or loop.may_use_timers:
            return
        taken = timers.take(watermark)
        if taken.keys:
            emitted: list[Any] = []
            times: list[int | None] = []
            self._timer_context.domain = TimeDomain.EVENT_TIME
            loop.run_taken(taken, emitted.append, times.append)
            self._timers_set_timers = timers.end_taking()
            self.output.collect_batch(emitted, times)
            self.count_fired(len(taken.keys))
        else:
            timers.end_taking()

    def _call_each(self, batch: Batch, input_index: int, emitted: list[Any], times: list[int | None]) -> None:
        process, backend = self.calls[input_index], self.context.keyed_state
        context: EmittingContext = self.element_contexts[input_index]
        copied = self.context.copied_result
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

    def on_event_time(self, timestamp: int, key: Any, namespace: Hashable) -> None:
        self._fire(timestamp, TimeDomain.EVENT_TIME)

    def on_processing_time(self, timestamp: int, key: Any, namespace: Hashable) -> None:
        self._fire(timestamp, TimeDomain.PROCESSING_TIME)

    def _fire(self, timestamp: int, domain: TimeDomain) -> None:
        if self._on_timer is not None:
            context = self._timer_context
            context.element_timestamp, context.domain = timestamp, domain
            emit_results(self.output, self._on_timer(timestamp, context), timestamp)


TIMER_CALLS = (ProcessOperator._fire.__code__, ProcessOperator._fire_at_once.__code__)
"""One of these is on the stack while `on_timer` runs, so a failure there is reported with its timer, not a record."""


def build_process(description: ProcessDescription) -> ProcessOperator:
    return ProcessOperator(description.function, ("process_element",))


def build_keyed_process(description: KeyedProcessDescription) -> ProcessOperator:
    """Also for a plain ProcessFunction on a keyed stream: it has state and timers, and its `on_timer` is called."""
    return ProcessOperator(description.function, ("process_element",), (description.key_selector,))


def build_co_process(description: CoProcessDescription) -> ProcessOperator:
    return ProcessOperator(description.function, ("process_element1", "process_element2"), description.key_selectors)
