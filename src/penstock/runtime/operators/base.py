"""The base class of all operators, and the context that a task gives to each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from penstock.common.constants import MIN_LONG_VALUE
from penstock.metrics import MetricGroup
from penstock.runtime.batch import Batch, Output
from penstock.runtime.element_copies import Copy, copied
from penstock.runtime.latency import LatencyMarker, LatencyStats
from penstock.runtime.state.backends import MakeTable
from penstock.runtime.state.heap_table import HeapStateTable
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.operator import OperatorStateBackend
from penstock.runtime.state.table import StateTable
from penstock.runtime.timers import InternalTimerService, OnTimer, TimerQueue

if TYPE_CHECKING:
    from penstock.runtime.columns import Columns


@dataclass(frozen=True)
class TaskInfo:
    """The identity of a subtask. `attempt` counts restarts from 0."""

    job_id: str
    job_name: str
    task_name: str
    subtask: int
    parallelism: int
    max_parallelism: int
    attempt: int = 0
    job_parameters: dict[str, str] = field(default_factory=dict)


class DriverReport:
    """Printed lines and collected values, in order, which a subtask sends to the driver with its acknowledgement."""

    def __init__(self) -> None:
        self.lines: list[tuple[bool, str]] = []
        """Whether a line goes to stderr, and the line."""
        self.collected: dict[str, list[Any]] = {}
        """Values by the id of their collect sink."""


class CheckpointParticipant(Protocol):
    """A user function that takes part in checkpoints."""

    def snapshot_state(self, checkpoint_id: int) -> None: ...

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None: ...

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None: ...


@dataclass
class OperatorContext:
    """What one operator of one subtask has access to: its task, clock, state, timers and metrics."""

    task: TaskInfo
    operator_name: str
    operator_id: str
    clock: Callable[[], int]
    report: DriverReport = field(default_factory=DriverReport)
    metrics: dict[str, Any] = field(default_factory=dict)
    accumulators: dict[str, Any] = field(default_factory=dict)
    cached_files: dict[str, str] = field(default_factory=dict)
    current_channel: Callable[[], tuple[int, int]] = lambda: (0, 1)
    """The channel the current batch came from, and how many there are."""
    restored_checkpoint_id: int | None = None
    """The checkpoint that the state was restored from; None on a fresh start."""
    make_table: MakeTable = HeapStateTable
    copied: Copy = copied
    """Copies a value that the operator shares with others; `as_it_is` if objects are reused."""
    copied_result: Copy = copied
    """The same for the results of the function; it copies less if their declared type is immutable."""
    latency: LatencyStats | None = None
    """None if latency is not measured."""
    inlines_functions: bool = True
    """False if functions must be called, even where a generated loop could do their work."""
    takes_checkpoints: bool = True
    """False if the job has no checkpoint interval."""

    def __post_init__(self) -> None:
        self.metric_group = MetricGroup((self.operator_name,))
        self.keyed_state = KeyedStateBackend(self.operator_name, self.clock, self.make_table)
        self.operator_state = OperatorStateBackend(self.operator_name)
        self.timer_services: dict[str, InternalTimerService] = {}
        self.participants: list[CheckpointParticipant] = []

    def timer_service(
        self,
        name: str,
        on_event_time: OnTimer,
        on_processing_time: OnTimer,
        make_queue: Callable[[StateTable], TimerQueue] = TimerQueue,
    ) -> InternalTimerService:
        service = InternalTimerService(
            name, self.keyed_state, on_event_time, on_processing_time, self.clock, make_queue
        )
        self.timer_services[name] = service
        return service

    def note_latency(self, marker: LatencyMarker) -> None:
        if self.latency is not None and marker.operator_id != self.operator_id:
            self.latency.report(marker)

    def increment(self, metric: str, by: int = 1) -> None:
        self.metrics[metric] = self.metrics.get(metric, 0) + by


class StreamOperator:
    """One operator of a chain.

    Its lifecycle: `setup`, state is restored, `open`, then batches, watermarks and time; `finish` when all input has
    ended, and `close`, also after a failure. Keyed operators set `context.keyed_state.current_key` before they access
    state.
    """

    context: OperatorContext
    output: Output

    def setup(self, context: OperatorContext, output: Output) -> None:
        self.context = context
        self.output = output
        self.current_watermark = MIN_LONG_VALUE

    def open(self) -> None:
        """Called once, after state was restored and before the first element."""

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        raise NotImplementedError

    def takes_columns(self) -> bool:
        """True if `process_columns` may be faster than `process_batch`."""
        return False

    def process_columns(self, columns: Columns, input_index: int = 0) -> None:
        """`process_batch` for one or more elements in columns."""
        self.process_batch(columns.batch(), input_index)

    def process_watermark(self, watermark: int) -> None:
        """Fire the timers up to `watermark`, then pass it on."""
        self.current_watermark = watermark
        for service in self.context.timer_services.values():
            self.count_fired(service.advance_watermark(watermark))
        self.output.emit_watermark(watermark)

    def process_status(self, idle: bool) -> None:
        self.output.emit_status(idle)

    def process_latency_marker(self, marker: LatencyMarker) -> None:
        """Record the marker's latency, then pass it on after all elements that have been emitted."""
        self.context.note_latency(marker)
        self.output.emit_latency_marker(marker)

    def advance_processing_time(self, now_ms: int) -> None:
        for service in self.context.timer_services.values():
            self.count_fired(service.advance_processing_time(now_ms))

    def count_fired(self, timers: int) -> None:
        if timers:
            self.context.increment("numFiredTimers", timers)

    def next_processing_time(self) -> int | None:
        """When this operator must run even without input; None if it need not."""
        times = [service.processing_time.next_timestamp() for service in self.context.timer_services.values()]
        return min((time for time in times if time is not None), default=None)

    def end_epoch(self) -> None:
        """Called after the epoch's input: emit what need not wait for the next epoch."""

    def finish(self) -> None:
        """Called when all input has ended: emit everything that is still held back."""

    def close(self) -> None:
        """Release the resources that `open` acquired; also called after a failure."""

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        """The committables that the driver commits once the checkpoint is complete. Called before `snapshot_state`."""
        return []

    def snapshot_state(self, checkpoint_id: int) -> None:
        """Write everything that must survive into `context.operator_state`, before the task takes its snapshot."""
        for participant in self.context.participants:
            participant.snapshot_state(checkpoint_id)

    def waits_for_checkpoint(self) -> bool:
        """True if the operator must be notified of a complete checkpoint before it may close."""
        return bool(self.context.participants)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is complete: everything that was prepared for it may be committed."""
        for participant in self.context.participants:
            participant.notify_checkpoint_complete(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint failed: everything that was prepared for it becomes part of a later checkpoint."""
        for participant in self.context.participants:
            participant.notify_checkpoint_aborted(checkpoint_id)

    def task_memory(self) -> Any:
        """What the operator needs besides state to continue in another process, such as watermark generators."""
        return None

    def restore_task_memory(self, memory: Any) -> None:
        """Restore what `task_memory` returned."""


def close_all(operators: Iterable[StreamOperator]) -> None:
    """Close every operator, even if some of them fail to close; then raise the first failure."""
    failures = []
    for operator in operators:
        try:
            operator.close()
        except Exception as failure:
            failures.append(failure)
    if failures:
        raise failures[0]
