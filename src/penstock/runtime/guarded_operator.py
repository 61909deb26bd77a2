"""An operator whose function may raise: the element is left out, or goes to a side output, instead of failing the job.

Elements go through the operator one by one. What it emits for an element is held back until the element is done. So a
failure of the operators downstream is not taken for its own, and of an element that fails nothing is passed on. No
function is called twice.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from penstock.common.error_notes import add_note
from penstock.datastream.on_error import FailedElement, OnError
from penstock.runtime.batch import Batch, Output, Timestamps
from penstock.runtime.element_copies import as_it_is
from penstock.runtime.failure import describe_failure, short_repr
from penstock.runtime.latency import LatencyMarker
from penstock.runtime.operators.async_wait import AsyncWaitOperator
from penstock.runtime.operators.base import OperatorContext, StreamOperator
from penstock.runtime.outputs import DeclaredForm
from penstock.runtime.state.direct_views import NO_KEY
from penstock.runtime.timers import OnTimer

if TYPE_CHECKING:
    from penstock.runtime.columns import Columns

_log = logging.getLogger(__name__)
ERRORS_METRIC = "numRecordsInErrors"


class AllOrNothingOutput:
    """Holds back what is emitted for an element until `keep`, or drops it with `forget`.

    Results get their declared form here: if one does not fit, it is the element that fails.
    """

    def __init__(self, output: Output, form: DeclaredForm | None, context: OperatorContext) -> None:
        self._output = output
        self._form = form
        self._copied, self._copied_result = context.copied, context.copied_result
        self._values: list[Any] = []
        self._timestamps: list[int | None] = []
        self._side: list[tuple[str, Any, int | None]] = []
        self._kept, self._kept_side = 0, 0
        """How many results belong to elements that are done."""

    def collect(self, value: Any, timestamp: int | None) -> None:
        self._values.append(self._copied_result(value))
        self._timestamps.append(timestamp)

    def collect_batch(self, values: list[Any], timestamps: Timestamps | None) -> None:
        self._values.extend(values)
        self._timestamps.extend([None] * len(values) if timestamps is None else timestamps)

    def takes_columns(self) -> bool:
        return False

    def collect_columns(self, columns: Columns) -> None:
        values, timestamps, _ = columns.batch()
        self.collect_batch(values, timestamps)

    def collect_side(self, tag_id: str, value: Any, timestamp: int | None) -> None:
        self._side.append((tag_id, self._copied(value), timestamp))

    def keep(self) -> None:
        if self._form is not None and len(self._values) > self._kept:
            self._values[self._kept :] = self._form(self._values[self._kept :])
        self._kept, self._kept_side = len(self._values), len(self._side)

    def forget(self) -> None:
        del self._values[self._kept :], self._timestamps[self._kept :], self._side[self._kept_side :]

    def flush(self) -> None:
        self._pass_on()
        self._output.flush()

    def emit_watermark(self, watermark: int) -> None:
        self._pass_on()
        self._output.emit_watermark(watermark)

    def emit_status(self, idle: bool) -> None:
        self._pass_on()
        self._output.emit_status(idle)

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        self._pass_on()
        self._output.emit_latency_marker(marker)

    def _pass_on(self) -> None:
        self.keep()
        values, timestamps, side = self._values, self._timestamps, self._side
        self._values, self._timestamps, self._side = [], [], []
        self._kept = self._kept_side = 0
        if values:
            has_times = any(timestamp is not None for timestamp in timestamps)
            self._output.collect_batch(values, timestamps if has_times else None)
        for tag_id, value, timestamp in side:
            self._output.collect_side(tag_id, value, timestamp)


class GuardedOperator(StreamOperator):
    """Another operator, with an `OnError` that says what happens to elements and timers for which it raises."""

    output: AllOrNothingOutput

    def __init__(self, operator: StreamOperator, on_error: OnError, form: DeclaredForm | None = None) -> None:
        self._operator = operator
        self._on_error = on_error
        self._form = form
        self._failed = 0
        self._recent: deque[int] = deque(maxlen=None if on_error.most is None else on_error.most + 1)
        """When the last elements failed."""

    def setup(self, context: OperatorContext, output: Output) -> None:
        self.context = context
        self.output = AllOrNothingOutput(output, self._form, context)
        # The function may change the element before it raises.
        self._original = context.copied if self._on_error.tag is not None else as_it_is
        self._operator.setup(context, self.output)
        if isinstance(self._operator, AsyncWaitOperator):
            self._operator.leave_out = self._is_left_out

    @property
    def current_watermark(self) -> int:
        return self._operator.current_watermark

    @current_watermark.setter
    def current_watermark(self, watermark: int) -> None:
        self._operator.current_watermark = watermark

    def open(self) -> None:
        self._operator.open()
        for service in self.context.timer_services.values():
            service.wrap(self._guarded)

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        if isinstance(self._operator, AsyncWaitOperator):  # Many calls are in flight, and it knows which one fails.
            self._operator.process_batch(batch, input_index)
            return
        process, backend, original = self._operator.process_batch, self.context.keyed_state, self._original
        keep, times, keys = self.output.keep, batch.timestamps, batch.keys
        for at, value in enumerate(batch.values):
            timestamp = None if times is None else times[at]
            element = original(value)
            backend.current_key = NO_KEY if keys is None else keys[at]  # For the report, if it fails before it has one.
            try:
                process(
                    Batch([value], None if times is None else [timestamp], None if keys is None else [keys[at]]),
                    input_index,
                )
                keep()
            except Exception as error:
                if not self._is_handled(error, element, timestamp):
                    raise

    def _is_left_out(self, error: Exception, value: Any, timestamp: int | None) -> bool:
        self.output.keep()  # What was emitted is of other elements.
        return self._is_handled(error, value, timestamp)

    def _guarded(self, fire: OnTimer) -> OnTimer:
        def guarded(timestamp: int, key: Any, namespace: Hashable) -> None:
            try:
                fire(timestamp, key, namespace)
                self.output.keep()
            except Exception as error:
                if not self._is_handled(error, None, None, timestamp):
                    raise

        return guarded

    def _is_handled(self, error: Exception, value: Any, timestamp: int | None, timer: int | None = None) -> bool:
        """False if the error is to fail the job."""
        self.output.forget()
        if not self._on_error.takes(error) or self._are_too_many(error):
            return False
        key, task = self.context.keyed_state.current_key, self.context.task
        failure = describe_failure(error, 0, task.task_name, task.subtask, task.parallelism)
        failed = FailedElement(
            value,
            None if key is NO_KEY else key,
            timestamp,
            timer,
            self.context.operator_name,
            task.subtask,
            failure.exception_type,
            failure.message,
            failure.user_traceback,
        )
        self._note(failed)
        if self._on_error.tag is not None:
            self.output.collect_side(self._on_error.tag.tag_id, failed, timestamp if timer is None else timer)
            self.output.keep()
        return True

    def _are_too_many(self, error: Exception) -> bool:
        most, per_ms = self._on_error.most, self._on_error.per_ms
        if most is None:
            return False
        self._recent.append(self.context.clock())
        if len(self._recent) <= most or self._recent[-1] - self._recent[0] >= per_ms:
            return False
        add_note(error, f"More than {most} elements failed within {per_ms} ms, and on_error allows no more.")
        return True

    def _note(self, failed: FailedElement) -> None:
        """Count it. The first one, the second, the fourth and so on are logged: a log must not fill up with them."""
        self._failed += 1
        self.context.increment(ERRORS_METRIC)
        if self._failed & (self._failed - 1) == 0:
            what = f"element {short_repr(failed.value)}" if failed.timer is None else f"timer at {failed.timer}"
            _log.warning(
                "operator '%s', subtask %d: %s failed and was left out, %d so far\n%s",
                failed.operator,
                failed.subtask + 1,
                what,
                self._failed,
                failed.traceback.rstrip(),
            )

    # --- everything else is the operator's ---------------------------------------------------------------------------

    def process_watermark(self, watermark: int) -> None:
        self._operator.process_watermark(watermark)

    def process_status(self, idle: bool) -> None:
        self._operator.process_status(idle)

    def process_latency_marker(self, marker: LatencyMarker) -> None:
        self._operator.process_latency_marker(marker)

    def advance_processing_time(self, now_ms: int) -> None:
        self._operator.advance_processing_time(now_ms)

    def next_processing_time(self) -> int | None:
        return self._operator.next_processing_time()

    def end_epoch(self) -> None:
        self._operator.end_epoch()

    def finish(self) -> None:
        self._operator.finish()

    def close(self) -> None:
        self._operator.close()

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        return self._operator.prepare_commit(checkpoint_id)

    def snapshot_state(self, checkpoint_id: int) -> None:
        self._operator.snapshot_state(checkpoint_id)

    def waits_for_checkpoint(self) -> bool:
        return self._operator.waits_for_checkpoint()

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._operator.notify_checkpoint_complete(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._operator.notify_checkpoint_aborted(checkpoint_id)

    def task_memory(self) -> Any:
        return self._operator.task_memory()

    def restore_task_memory(self, memory: Any) -> None:
        self._operator.restore_task_memory(memory)
