"""One subtask of one vertex. It knows nothing of Spark: rows go in, rows come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from penstock.common.constants import MAX_LONG_VALUE
from penstock.common.exceptions import StateMismatchError
from penstock.graph.descriptions import BroadcastProcessDescription
from penstock.runtime.batch import Batch
from penstock.runtime.chunk import EndOfData, Event, Status, Watermark, read_chunk
from penstock.runtime.clocks import Alarms
from penstock.runtime.key_groups import KeyOwners, key_group_range
from penstock.runtime.latency import LatencyMarker, MarkerClock
from penstock.runtime.metric_reports import RECORDS_IN, MetricReporter, Reports
from penstock.runtime.operator_chain import OperatorChain
from penstock.runtime.operators.base import TaskInfo
from penstock.runtime.protocol import Committables, EpochOutcome, JobDeployment
from penstock.runtime.rows import FROM_DRIVER, AnyRow, Row
from penstock.runtime.saved_state import SavedBlock, SavedState
from penstock.runtime.sorted_input import (
    SortedInput,
    end_key,
    key_selectors_of,
    several_keys_at_once,
    takes_keys_one_by_one,
)
from penstock.runtime.sources import SourceAssignment, SourceOperator
from penstock.runtime.state.codec import encode_state, use_script_classes
from penstock.runtime.state.contents import has_fixed_keys
from penstock.runtime.state.operator import Saved, share_of
from penstock.runtime.state.state_file import StateFileWriter
from penstock.runtime.state.table import Extent
from penstock.runtime.watermarks import InputWatermarks, Mark


class StreamTask:
    """One subtask. Its life: construction, `restore` if it has saved state, `open`, any number of epochs, `close`."""

    def __init__(self, deployment: JobDeployment, vertex_id: int, subtask: int, clock: Callable[[], int]) -> None:
        job_graph = deployment.job_graph
        vertex = job_graph.vertices[vertex_id]
        self.vertex = vertex
        self.info = TaskInfo(
            deployment.job_id,
            job_graph.job_name,
            vertex.name,
            subtask,
            vertex.parallelism,
            vertex.max_parallelism,
            deployment.attempt,
            deployment.job_parameters,
        )
        self._script_classes = job_graph.script_classes
        self._alarms = Alarms(clock)
        self._ready: list[Row] = []
        self._inputs = {edge.index: edge.input_index for edge in job_graph.in_edges(vertex_id)}
        self._upstream_parallelism = {
            edge.index: job_graph.vertices[edge.source_vertex].parallelism for edge in job_graph.in_edges(vertex_id)
        }
        channels = job_graph.channels_into(vertex_id, subtask)
        self._channels = {(edge.index, sender): number for number, (edge, sender) in enumerate(channels)}
        self._watermarks = InputWatermarks([edge.input_index for edge, _ in channels])
        self._ended: set[int] = set()
        self._current = (0, 1)
        self.is_finished = False
        """True after all input has ended."""
        self.is_closed = False
        self._is_open = False
        self.chain = OperatorChain(
            job_graph,
            vertex,
            self.info,
            clock,
            lambda: self._current,
            self._ready,
            deployment.cached_files,
            partial(deployment.state_backend.tables, deployment.run_id, f"v{vertex_id}-s{subtask}"),
            deployment.latency,
        )
        self._reporters = self._make_reporters()
        self._marker_clock = None
        if deployment.latency is not None and not job_graph.is_batch:
            self._marker_clock = MarkerClock(deployment.latency)
        self._records_in = 0
        self._bytes_in = 0
        self._notified = 0
        self._was_touched = False
        self._sorted: SortedInput | None = None
        """In batch mode, the input of a keyed task, which is gathered until it is complete; otherwise None."""
        self._reads_broadcast_first = isinstance(vertex.head.operator, BroadcastProcessDescription)
        if job_graph.is_batch and vertex.head.operator.is_keyed:
            self._sorted = SortedInput(key_selectors_of(vertex.head.operator))

    def _make_reporters(self) -> dict[str, MetricReporter]:
        """By operator id. The reporter of the first operator also reports each input's watermark, if it has several."""
        chain, has_several_inputs = self.chain, len(self._watermarks.by_input()) > 1
        return {
            operator_id: MetricReporter(
                context,
                chain.entrances.get(operator_id),
                chain.exits.get(operator_id),
                self._watermarks.by_input if has_several_inputs and context is chain.head.context else None,
            )
            for operator_id, context in chain.contexts.items()
        }

    # --- life ------------------------------------------------------------------------------------------------------

    def restore(
        self,
        saved: Iterable[SavedState],
        checkpoint_id: int,
        is_exact: bool,
        of_others: Callable[[], Iterable[SavedState]] = tuple,
        strays: Iterable[SavedState] = (),
    ) -> None:
        """Restore saved state, before `open`.

        If `is_exact`, it is the state of this subtask, which continues exactly where it stopped. `of_others` is then
        for the state of the other subtasks of the vertex: every subtask restores the union lists of all of them.
        `strays` is state of other subtasks in which there may be keys that belong to this one now.
        Otherwise the job has changed: this subtask restores its share of its operators' state and starts without
        watermarks, as in Flink.
        """
        use_script_classes(self._script_classes)
        contexts = self.chain.contexts
        for context in contexts.values():
            context.restored_checkpoint_id = checkpoint_id
        owners = KeyOwners(self.info.max_parallelism, self.info.parallelism)
        strays = tuple(strays)
        owns_key = None if is_exact and not strays else lambda key: owners[key] == self.info.subtask
        lists: dict[str, dict[int, Saved]] = {}
        has_times: dict[tuple[str, str], dict[int, bool | None]] = {}
        for block in self._saved_blocks(saved):
            if block.kind == "keyed":
                keyed_state = contexts[block.operator_id].keyed_state
                keyed_state.restore(block.name, block.value, owns_key, block.extent, block.has_times)
                has_times.setdefault((block.operator_id, block.name), {})[block.subtask] = block.has_times
            elif block.kind == "operator":
                lists.setdefault(block.operator_id, {})[block.subtask] = block.value
            elif is_exact:
                watermarks, self._ended, self.is_finished, self.is_closed, chain_memory = block.value
                self._watermarks.restore(watermarks)
                self.chain.restore_memory(chain_memory)
        for block in self._saved_blocks(strays):
            if block.kind == "keyed":
                keyed_state = contexts[block.operator_id].keyed_state
                keyed_state.restore(block.name, block.value, owns_key, block.extent, block.has_times)
        for (operator_id, name), by_former in has_times.items():
            self._check_times(contexts[operator_id].operator_name, name, set(by_former.values()) - {None})
        for operator_id, by_subtask in lists.items():
            share = self._own_lists(operator_id, by_subtask, of_others) if is_exact else self._share_of(by_subtask)
            contexts[operator_id].operator_state.restore(share)

    def _check_times(self, operator_name: str, state: str, has_times: set[bool | None]) -> None:
        if len(has_times) > 1:
            raise StateMismatchError(
                f"operator '{operator_name}': some subtasks saved state '{state}' with times to live and some without, "
                f"because time to live was turned on or off and not all have used the state since; restore it with the "
                f"former parallelism, let every subtask use the state, and take another savepoint"
            )

    def _own_lists(
        self, operator_id: str, by_subtask: dict[int, Saved], of_others: Callable[[], Iterable[SavedState]]
    ) -> Saved:
        """The lists that this subtask saved itself. Union lists are joined from those of all subtasks each time."""
        [own] = by_subtask.values()
        if not any(distribution == "union" for distribution, _ in own.values()):
            return own
        blocks = (block for each in of_others() for block in each.blocks(frozenset({operator_id}), range(0)))
        by_others = {block.subtask: block.value for block in blocks if block.kind == "operator"}
        united = self._share_of(by_others | by_subtask)
        return {name: united[name] if saved[0] == "union" else saved for name, saved in own.items()}

    def _share_of(self, by_subtask: dict[int, Saved]) -> Saved:
        former = [by_subtask[subtask] for subtask in sorted(by_subtask)]
        return share_of(former, self.info.subtask, self.info.parallelism)

    def _saved_blocks(self, saved: Iterable[SavedState]) -> Iterator[SavedBlock]:
        key_groups = key_group_range(self.info.subtask, self.info.max_parallelism, self.info.parallelism)
        for each in saved:
            yield from each.blocks(frozenset(self.chain.contexts), key_groups)

    def open(self) -> None:
        self._is_open = True
        self.chain.open()
        self.chain.restore_watermarks()

    def close(self) -> None:
        self.is_closed = True
        if self._sorted is not None:
            self._sorted.close()
        if self._is_open:  # A finished task stays while others run, and each of their epochs may call `close` again.
            self._is_open = False
            self.chain.close()

    def dispose(self) -> None:
        """Release what the state keeps outside of memory. The task is no longer needed."""
        for context in self.chain.contexts.values():
            context.keyed_state.dispose()

    # --- an epoch --------------------------------------------------------------------------------------------------

    def run_epoch(self, rows: Iterable[AnyRow]) -> Iterator[Row]:
        """Process the epoch's rows; yields the rows that leave the task."""
        if self.is_finished:
            return
        use_script_classes(self._script_classes)  # State on disk, which may hold such objects, is read when needed.
        self._advance_processing_time()
        yield from self._drain()
        for row in sorted(rows, key=self._reading_order):
            self._was_touched = True
            for _ in self._assigned(row) if row.edge == FROM_DRIVER else self._received(row):
                yield from self._drain()
        if not self.is_finished:
            self._advance_processing_time()
            self.chain.each(lambda operator: operator.end_epoch())
        for edge in self.chain.edges:
            edge.end_epoch()
        yield from self._drain()

    def _reading_order(self, row: AnyRow) -> tuple[int, ...]:
        """The channels take turns, one chunk at a time; a broadcast input is read first.

        In batch mode it is read to its end, as in Flink. In streaming mode Flink promises no order, and elements should
        see the rules that arrive in the same epoch.
        """
        turn = (row.seq, row.edge, row.channel)
        return (1 - self._inputs[row.edge], *turn) if self._reads_broadcast_first else turn

    def _assigned(self, row: AnyRow) -> Iterator[None]:
        """Read a source's assignment. Yields whenever rows may be ready."""
        assignment = SourceAssignment.decode(row.chunk)
        source = self.chain.head
        assert isinstance(source, SourceOperator)
        batches = source.read(assignment.payload)
        if self._marker_clock is not None:
            batches = self._with_markers(self._marker_clock, source, batches)
        for batch in batches:
            self._records_in += len(batch.values)
            source.emit(batch)
            self._advance_processing_time()
            yield
        if assignment.is_last:
            source.end_reading()
            source.output.emit_watermark(MAX_LONG_VALUE)
            self._finish()
            yield

    def _with_markers(self, clock: MarkerClock, source: SourceOperator, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The same batches, with latency markers emitted between them when they are due."""
        for batch in batches:
            marked_ms = clock.due_ms()
            if marked_ms is not None:
                source.output.emit_latency_marker(
                    LatencyMarker(source.context.operator_id, self.info.subtask, marked_ms)
                )
            yield batch

    def _received(self, row: AnyRow) -> Iterator[None]:
        """Process a chunk from another task. Yields whenever rows may be ready."""
        channel = self._channels[(row.edge, row.channel)]
        self._current = (row.channel, self._upstream_parallelism[row.edge])
        input_index = self._inputs[row.edge]
        chunk = row.chunk
        self._bytes_in += len(chunk)
        keeps_columns = self._sorted is None and self.chain.head.takes_columns()
        for event in read_chunk(chunk, keeps_columns):
            if self._sorted is not None:
                yield from self._gather(self._sorted, event, channel, input_index)
            else:
                self._handle(event, channel, input_index)
            self._advance_processing_time()
            yield
        if self._sorted is not None:
            self._sorted.grew_by(len(chunk))

    def _gather(self, gathered: SortedInput, event: Event, channel: int, input_index: int) -> Iterator[None]:
        """Gather elements with keys; at the end of all input, process them key by key."""
        if isinstance(event, Batch) and gathered.has_keys(input_index):
            self._records_in += len(event.values)
            gathered.add(event, input_index)
            return
        if isinstance(event, EndOfData) and len(self._ended | {channel}) == len(self._channels):
            yield from self._replay(gathered)
        if not isinstance(event, (Watermark, Status)):
            self._handle(event, channel, input_index)

    def _replay(self, gathered: SortedInput) -> Iterator[None]:
        head = self.chain.head
        parts = gathered.parts()
        if not takes_keys_one_by_one(self.vertex.head.operator):
            parts = several_keys_at_once(parts)
        for part in parts:
            head.process_batch(part.batch, part.input_index)
            if part.is_last:
                end_key(head)
            head.output.flush()
            yield
        head.process_watermark(MAX_LONG_VALUE)

    def _handle(self, event: Event, channel: int, input_index: int) -> None:
        match event:
            case Batch():
                head = self.chain.head
                self._records_in += len(event.values)
                head.process_batch(event, input_index)
                head.output.flush()
            case Watermark():
                self._apply(self._watermarks.on_watermark(channel, event.timestamp))
            case Status():
                self._apply(self._watermarks.on_status(channel, event.is_idle))
            case EndOfData():
                self._ended.add(channel)
                if len(self._ended) == len(self._channels):
                    self._finish()
            case LatencyMarker():
                self.chain.head.process_latency_marker(event)
            case columns:
                self._records_in += len(columns)
                self.chain.head.process_columns(columns, input_index)
                self.chain.head.output.flush()

    def _apply(self, marks: list[Mark]) -> None:
        head = self.chain.head
        for mark in marks:
            if isinstance(mark, Watermark):
                head.process_watermark(mark.timestamp)
            else:
                head.process_status(mark.is_idle)

    def _finish(self) -> None:
        self.chain.each(lambda operator: operator.finish())
        for edge in self.chain.edges:
            edge.push_end_of_data()
        self.is_finished = True

    def _advance_processing_time(self) -> None:
        if not self.is_finished:
            now = self._alarms.now()
            # With sorted input, the timers of a key fire when the key ends, not by the clock.
            skipped = None if self._sorted is None else self.chain.head
            for operator in self.chain.operators:
                if operator is not skipped:
                    reached_ms = self._alarms.reached(operator, now)
                    operator.advance_processing_time(reached_ms)
                    operator.output.flush()
                    if reached_ms > now.wall_ms:  # The clock was set back: whoever sets the same timer again waits.
                        self._alarms.set(operator, operator.next_processing_time())

    def _drain(self) -> Iterator[Row]:
        if self._ready:
            self._was_touched = True  # Receivers save the effects of these rows, so this task must be saved, too.
            rows = self._ready.copy()
            self._ready.clear()
            yield from rows

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Notify the operators, once for each checkpoint, at the beginning of the next epoch."""
        if checkpoint_id > self._notified:
            self._notified = checkpoint_id
            for operator in self.chain.operators:
                operator.notify_checkpoint_complete(checkpoint_id)

    def waits_for_checkpoint(self) -> bool:
        """True if the task, once finished, must stay until it is notified of the checkpoint with its last state."""
        return any(operator.waits_for_checkpoint() for operator in self.chain.operators)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        for operator in self.chain.operators:
            operator.notify_checkpoint_aborted(checkpoint_id)

    # --- the end of an epoch ---------------------------------------------------------------------------------------

    def prepare_snapshot(self, checkpoint_id: int, extent: Extent) -> Committables | None:
        """Have the operators put what they hold into state; what the driver must commit with the checkpoint.

        None if nothing has changed since the last snapshot, so that no new one is necessary.
        """
        operators = [] if self.is_closed else self.chain.operators
        prepared = [(each.context.operator_id, each.prepare_commit(checkpoint_id)) for each in operators]
        committables = {operator_id: found for operator_id, found in prepared if found}
        if extent is not Extent.ALL and not committables and not self._has_changed():
            return None
        for operator in operators:
            operator.snapshot_state(checkpoint_id)
        return committables

    def _has_changed(self) -> bool:
        return self._was_touched or any(each.keyed_state.has_changes() for each in self.chain.contexts.values())

    def extent_of_snapshot(self, extent: Extent) -> Extent:
        """How much the snapshot will hold: `extent`, or everything if all entries have changed.

        A full snapshot costs the same then, and makes all earlier files unnecessary.
        """
        backends = [context.keyed_state for context in self.chain.contexts.values() if context.keyed_state.tables]
        return Extent.ALL if backends and all(each.is_all_changed() for each in backends) else extent

    def write_snapshot(self, writer: StateFileWriter, extent: Extent) -> None:
        """Write the state after this epoch: all of it, or what has changed."""
        use_script_classes(self._script_classes)
        for operator_id, context in self.chain.contexts.items():
            for name, contents in context.keyed_state.snapshot(extent):
                has_times = context.keyed_state.tables[name].has_times
                is_fixed = has_fixed_keys(contents)
                writer.add(operator_id, "keyed", name, encode_state(contents), has_times, is_fixed)
            saved = context.operator_state.snapshot()
            if saved:
                writer.add(operator_id, "operator", ", ".join(saved), encode_state(saved))
        # A task that was closed before its input ended, because the job stops with a savepoint, is opened again when it
        # is restored.
        is_over = self.is_finished and self.is_closed
        memory = (self._watermarks.memory(), self._ended, self.is_finished, is_over, self.chain.memory())
        writer.add(self.vertex.head.operator_id, "memory", "task", encode_state(memory))

    def snapshot_written(self, extent: Extent) -> None:
        """The snapshot is safe: the next one need not hold these changes again."""
        self._was_touched = False
        for context in self.chain.contexts.values():
            context.keyed_state.snapshot_written(extent)

    def outcome(self, has_metrics: bool = True) -> EpochOutcome:
        """The report on the epoch. What it contains is reset here; metrics that it leaves out continue to add up."""
        report = self.chain.report
        lines, report.lines = report.lines, []
        collected, report.collected = report.collected, {}
        records_in, self._records_in = self._records_in, 0
        bytes_in, self._bytes_in = self._bytes_in, 0
        records_out, bytes_out = self._sent()
        if records_in:
            self.chain.head.context.increment(RECORDS_IN, records_in)
        operators = [] if self.is_finished else self.chain.operators
        wake_up = [self._alarms.set(operator, operator.next_processing_time()) for operator in operators]
        return EpochOutcome(
            is_finished=self.is_finished,
            next_processing_time=min((time for time in wake_up if time is not None), default=None),
            records_in=records_in,
            records_out=records_out,
            watermark=self._watermarks.watermark,
            lines=lines,
            collected=collected,
            metrics=self._taken_metrics() if has_metrics else {},
            accumulators=self._taken_accumulators(),
            bytes_in=bytes_in,
            bytes_out=bytes_out,
            source_report=self.chain.head.take_report() if isinstance(self.chain.head, SourceOperator) else None,
        )

    # Counts go to the driver and start over in each report, because another process may run the next epoch.

    def _taken_metrics(self) -> dict[str, Reports]:
        taken = {operator_id: reporter.take() for operator_id, reporter in self._reporters.items()}
        return {operator_id: reports for operator_id, reports in taken.items() if reports}

    def _taken_accumulators(self) -> dict[str, Any]:
        taken: dict[str, Any] = {}
        for context in self.chain.contexts.values():
            for name, accumulator in context.accumulators.items():
                if name in taken:
                    taken[name].merge(accumulator)  # Two operators of the chain use the same name.
                else:
                    taken[name] = accumulator.clone()
                accumulator.reset_local()
        return taken

    def _sent(self) -> tuple[int, int]:
        """Records and bytes that left the task in this epoch."""
        edges = self.chain.edges
        sent = sum(edge.records_out for edge in edges), sum(edge.bytes_out for edge in edges)
        for edge in edges:
            edge.records_out = edge.bytes_out = 0
        return sent
