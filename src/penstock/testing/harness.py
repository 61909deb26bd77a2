"""One operator on a bench: push elements, watermarks and time, read what comes out."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.datastream.on_error import OnError
from penstock.datastream.output_tag import OutputTag
from penstock.graph.descriptions import OperatorDescription
from penstock.runtime.batch import Batch, Timestamps
from penstock.runtime.element_copies import copied
from penstock.runtime.guarded_operator import GuardedOperator
from penstock.runtime.key_groups import KeyOwners
from penstock.runtime.latency import LatencyMarker
from penstock.runtime.operators import build_operator
from penstock.runtime.operators.base import OperatorContext, StreamOperator, TaskInfo
from penstock.runtime.state.backends import HeapBackend, KeyedBackend
from penstock.runtime.state.codec import decode_state, encode_state
from penstock.runtime.state.operator import share_of
from penstock.runtime.state.table import Extent
from penstock.runtime.timers import TIMER_TABLE_PREFIX

if TYPE_CHECKING:
    from penstock.runtime.columns import Columns


@dataclass(frozen=True)
class HarnessSnapshot:
    """The state of an operator as it would be written to a checkpoint."""

    content: bytes


class RecordingOutput:
    """Keeps everything that an operator emits, in order."""

    def __init__(self) -> None:
        self.records: list[tuple[Any, int | None]] = []
        self.side: dict[str, list[tuple[Any, int | None]]] = {}
        self.watermarks: list[int] = []
        self.statuses: list[bool] = []
        self.events: list[tuple[str, Any, int | None]] = []
        """("element", value, timestamp), ("watermark", None, timestamp), ("status", idle, None)."""

    def collect(self, value: Any, timestamp: int | None) -> None:
        value = copied(value)  # The operator may change it afterwards.
        self.records.append((value, timestamp))
        self.events.append(("element", value, timestamp))

    def collect_batch(self, values: list[Any], timestamps: Timestamps | None) -> None:
        for at, value in enumerate(values):
            self.collect(value, None if timestamps is None else timestamps[at])

    def takes_columns(self) -> bool:
        return False

    def collect_columns(self, columns: Columns) -> None:
        values, timestamps, _ = columns.batch()
        self.collect_batch(values, timestamps)

    def collect_side(self, tag_id: str, value: Any, timestamp: int | None) -> None:
        self.side.setdefault(tag_id, []).append((copied(value), timestamp))

    def emit_watermark(self, watermark: int) -> None:
        self.watermarks.append(watermark)
        self.events.append(("watermark", None, watermark))

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        self.events.append(("latency marker", marker, None))

    def emit_status(self, idle: bool) -> None:
        self.statuses.append(idle)
        self.events.append(("status", idle, None))

    def flush(self) -> None:
        """Nothing is held back."""


class OperatorHarness:
    """Runs one operator with a clock that the test sets.

    >>> from penstock.graph.descriptions import MapDescription
    >>> OperatorHarness(MapDescription(lambda x: x + 1)).feed([(1, None), (2, None)]).output
    [2, 3]

    `restored` continues from a `snapshot()` of another harness, as after a restart. A list of snapshots, one for each
    subtask in order, is the state of an operator that had as many subtasks: this one takes its share, as after a change
    of parallelism. `state_backend` says how keyed state is held: `HeapBackend()` or `DiskBackend()`.
    """

    def __init__(
        self,
        description: OperatorDescription,
        restored: HarnessSnapshot | Sequence[HarnessSnapshot] | None = None,
        *,
        subtask: int = 0,
        parallelism: int = 1,
        max_parallelism: int = 128,
        processing_time: int = 0,
        state_backend: KeyedBackend | None = None,
        on_error: OnError | None = None,
    ) -> None:
        self._now = processing_time
        self.recorded = RecordingOutput()
        task = TaskInfo("0" * 32, "harness", "harness", subtask, parallelism, max_parallelism)
        tables = (state_backend or HeapBackend()).tables("harness", f"s{subtask}", "operator")
        self.context = OperatorContext(task, "harness", "harness", lambda: self._now, make_table=tables)
        self.operator: StreamOperator = build_operator(description)
        if on_error is not None and on_error.kind != "fail":
            self.context.inlines_functions = False
            self.operator = GuardedOperator(self.operator, on_error)
        self.operator.setup(self.context, self.recorded)
        if isinstance(restored, HarnessSnapshot):
            self._restore(restored)
        elif restored is not None:
            self._restore_share(restored)
        self.operator.open()
        for service in self.context.timer_services.values():
            service.restore()
            service.current_watermark = self.operator.current_watermark

    @classmethod
    def of(
        cls,
        build: Callable[[Any], Any],
        restored: HarnessSnapshot | Sequence[HarnessSnapshot] | None = None,
        **where: Any,
    ) -> OperatorHarness:
        """The harness of the operator that `build` puts last on a stream, written with the DataStream API.

        `build` gets a DataStream and returns one: `lambda ds: ds.key_by(...).window(...).reduce(...)`.
        """
        from penstock.datastream import StreamExecutionEnvironment

        stream = build(StreamExecutionEnvironment.get_execution_environment().from_collection([]))
        return cls(stream.transformation.operator, restored, on_error=stream.transformation.on_error, **where)

    # --- input -----------------------------------------------------------------------------------------------------

    def element(self, value: Any, at: int | None = None, input: int = 0) -> OperatorHarness:
        """Push one element, with event time `at` if given, into one of the operator's inputs."""
        self.operator.process_batch(Batch([value], None if at is None else [at]), input)
        self.operator.output.flush()
        return self

    def batch(self, elements: Iterable[tuple[Any, int | None]], input: int = 0) -> OperatorHarness:
        """Push several (value, timestamp) in one batch, as they arrive in a chunk."""
        pairs = list(elements)
        self.operator.process_batch(Batch([v for v, _ in pairs], [t for _, t in pairs]), input)
        self.operator.output.flush()
        return self

    def feed(self, elements: Iterable[tuple[Any, int | None]], input: int = 0) -> OperatorHarness:
        """Push several (value, timestamp), one after the other."""
        for value, timestamp in elements:
            self.element(value, timestamp, input)
        return self

    def watermark(self, timestamp: int) -> OperatorHarness:
        """Push a watermark: event time moves, windows and timers that are due fire."""
        self.operator.process_watermark(timestamp)
        return self

    def idle(self, is_idle: bool = True) -> OperatorHarness:
        """Mark the input idle, or active again."""
        self.operator.process_status(is_idle)
        return self

    def processing_time(self, now_ms: int) -> OperatorHarness:
        """Move the clock and fire what is due."""
        self._now = now_ms
        self.operator.advance_processing_time(now_ms)
        self.operator.output.flush()
        return self

    def end_input(self) -> OperatorHarness:
        """The end of a bounded input: the maximum watermark, then finish."""
        self.operator.process_watermark(MAX_LONG_VALUE)
        self.operator.finish()
        self.operator.output.flush()
        return self

    def close(self) -> None:
        """Close the operator and its function."""
        self.operator.close()
        self.context.keyed_state.dispose()

    # --- output ----------------------------------------------------------------------------------------------------

    @property
    def output(self) -> list[Any]:
        """Everything that was emitted, in order."""
        return [value for value, _ in self.recorded.records]

    @property
    def output_with_timestamps(self) -> list[tuple[Any, int | None]]:
        """Everything that was emitted, as (value, timestamp)."""
        return list(self.recorded.records)

    def side_output(self, tag: OutputTag) -> list[Any]:
        """Everything that was emitted to a side output, in order."""
        return [value for value, _ in self.recorded.side.get(tag.tag_id, [])]

    @property
    def watermarks(self) -> list[int]:
        """The watermarks that the operator has passed on, in order."""
        return list(self.recorded.watermarks)

    @property
    def metrics(self) -> dict[str, Any]:
        """The operator's metrics, by name."""
        return self.context.metrics

    @property
    def current_watermark(self) -> int:
        """The last watermark that the operator has passed on."""
        return self.recorded.watermarks[-1] if self.recorded.watermarks else MIN_LONG_VALUE

    @property
    def timers(self) -> list[tuple[str, int, Any, Any]]:
        """Waiting timers, by time: ("event-time" or "processing-time", timestamp, key, namespace)."""
        found = [
            (table.name.rpartition("/")[2], bucket[0], key, bucket[1])  # type: ignore[index]
            for table in self.context.keyed_state.tables.values()
            if table.name.startswith(TIMER_TABLE_PREFIX)
            for bucket, key, _ in table.all_entries()
        ]
        return sorted(found, key=lambda timer: timer[1])

    @property
    def state_entries(self) -> int:
        """How many state entries are held, timers not counted."""
        return len(self.context.keyed_state) + len(self.context.operator_state) - len(self.timers)

    # --- checkpoints -----------------------------------------------------------------------------------------------

    def prepare_commit(self, checkpoint_id: int = 1) -> list[Any]:
        """What the operator wants committed once the checkpoint is complete; comes before `snapshot`."""
        return self.operator.prepare_commit(checkpoint_id)

    def snapshot(self, checkpoint_id: int = 1) -> HarnessSnapshot:
        """The operator's state, as a checkpoint would have it; give it to another harness as `restored`."""
        operator, keyed_state = self.operator, self.context.keyed_state
        operator.snapshot_state(checkpoint_id)
        keyed = [
            (name, encode_state(contents), keyed_state.tables[name].has_times)
            for name, contents in keyed_state.snapshot(Extent.ALL)
        ]
        keyed_state.snapshot_written(Extent.ALL)
        memory = operator.current_watermark, operator.task_memory()
        return HarnessSnapshot(pickle.dumps((checkpoint_id, keyed, self.context.operator_state.snapshot(), memory)))

    def notify_checkpoint_complete(self, checkpoint_id: int = 1) -> OperatorHarness:
        """Notify the operator that a checkpoint is complete."""
        self.operator.notify_checkpoint_complete(checkpoint_id)
        return self

    def _restore(self, restored: HarnessSnapshot) -> None:
        self.context.restored_checkpoint_id, keyed, operator_state, memory = pickle.loads(restored.content)
        for name, contents, has_times in keyed:
            self.context.keyed_state.restore(name, decode_state(contents), None, Extent.ALL, has_times)
        self.context.operator_state.restore(operator_state)
        self.operator.current_watermark, task_memory = memory
        self.operator.restore_task_memory(task_memory)

    def _restore_share(self, restored: Sequence[HarnessSnapshot]) -> None:
        task = self.context.task
        owners = KeyOwners(task.max_parallelism, task.parallelism)
        lists = []
        for each in restored:
            self.context.restored_checkpoint_id, keyed, operator_state, _ = pickle.loads(each.content)
            lists.append(operator_state)
            for name, contents, has_times in keyed:
                self.context.keyed_state.restore(
                    name, decode_state(contents), lambda key: owners[key] == task.subtask, Extent.ALL, has_times
                )
        self.context.operator_state.restore(share_of(lists, task.subtask, task.parallelism))
