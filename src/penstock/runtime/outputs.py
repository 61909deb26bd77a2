"""Where an operator's output goes: to the next operator of its chain, or to the subtasks downstream."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from penstock.common.constants import MIN_LONG_VALUE
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.declared_types import batches_of, converter_of, fits
from penstock.graph.job_graph import JobEdge
from penstock.graph.partitioners import connected_downstream
from penstock.runtime.batch import Batch, Timestamps, call_each
from penstock.runtime.chunk import ChunkWriter
from penstock.runtime.element_copies import IMMUTABLE_TYPES, Copy, all_copied, as_it_is, copied
from penstock.runtime.latency import LatencyMarker
from penstock.runtime.operators.base import StreamOperator
from penstock.runtime.partitioning import Dealt, DealtColumns, build_dealer
from penstock.runtime.rows import Row

if TYPE_CHECKING:
    from penstock.runtime.columns import Columns, DeclaredColumns


class Target(Protocol):
    """One receiver of an operator's output. It must not change the lists it gets, because others get them, too."""

    only_reads: bool
    """True if the receiver never changes elements: several receivers of this kind can share them."""

    def push_batch(self, values: list[Any], timestamps: Timestamps | None) -> None: ...

    def takes_columns(self) -> bool:
        """True if elements in columns should stay in columns."""

    def push_columns(self, columns: Columns) -> bool:
        """`push_batch` for elements in columns; False if nothing was done, and `push_batch` must be called instead."""

    def push_watermark(self, watermark: int) -> None: ...

    def push_status(self, idle: bool) -> None: ...

    def push_latency_marker(self, marker: LatencyMarker) -> None: ...


class ChainTarget:
    """The next operator of the chain."""

    only_reads = False

    def __init__(self, operator: StreamOperator) -> None:
        self._operator = operator

    def push_batch(self, values: list[Any], timestamps: Timestamps | None) -> None:
        self._operator.context.increment("numRecordsIn", len(values))
        self._operator.process_batch(Batch(values, timestamps))
        self._operator.output.flush()

    def takes_columns(self) -> bool:
        return self._operator.takes_columns()

    def push_columns(self, columns: Columns) -> bool:
        self._operator.context.increment("numRecordsIn", len(columns))
        self._operator.process_columns(columns)
        self._operator.output.flush()
        return True

    def push_watermark(self, watermark: int) -> None:
        self._operator.process_watermark(watermark)

    def push_status(self, idle: bool) -> None:
        self._operator.process_status(idle)

    def push_latency_marker(self, marker: LatencyMarker) -> None:
        self._operator.process_latency_marker(marker)


class WithinOperatorTarget(ChainTarget):
    """Another part of the same operator: the records it gets are already counted."""

    def push_batch(self, values: list[Any], timestamps: Timestamps | None) -> None:
        self._operator.process_batch(Batch(values, timestamps))
        self._operator.output.flush()

    def push_columns(self, columns: Columns) -> bool:
        self._operator.process_columns(columns)
        self._operator.output.flush()
        return True


class EdgeTarget:
    """The channels to the subtasks of another vertex. Full chunks are appended to `ready`."""

    only_reads = True

    def __init__(
        self,
        edge: JobEdge,
        subtask: int,
        parallelism: int,
        target_parallelism: int,
        target_max_parallelism: int,
        ready: list[Row],
    ) -> None:
        self._edge = edge
        self._subtask = subtask
        self._ready = ready
        self._targets = connected_downstream(edge.partitioner, subtask, parallelism, target_parallelism)
        self._writers = [ChunkWriter() for _ in self._targets]
        self._sent = [0] * len(self._targets)
        self.records_out = 0
        self.bytes_out = 0
        self.keeps_columns = True
        """False if elements in columns had to be sent one by one the last time."""
        self.dealer = build_dealer(edge.partitioner, len(self._targets), target_max_parallelism)

    def push_batch(self, values: list[Any], timestamps: Timestamps | None) -> None:
        self.records_out += len(values)
        self.send(self.dealer.deal(values, timestamps))

    def send(self, dealt: Dealt) -> None:
        """Add dealt batches to the chunks of their channels, and send chunks that are full."""
        for target, batch in dealt:
            writer = self._writers[target]
            writer.add_batch(batch.values, batch.timestamps, batch.keys)
            if writer.is_full:
                self._send(target)

    def takes_columns(self) -> bool:
        return True

    def push_columns(self, columns: Columns, values: list[Any] | None = None) -> bool:
        dealt = self.dealer.deal_columns(columns, values)
        if dealt is None:
            return False
        self.records_out += len(columns)
        self.send_columns(dealt)
        self.keeps_columns = not any(isinstance(part, Batch) for _, part in dealt)
        return True

    def send_columns(self, dealt: DealtColumns) -> None:
        for target, part in dealt:
            writer = self._writers[target]
            if isinstance(part, Batch):
                writer.add_batch(*part)
            else:
                writer.add_columns(part)
            if writer.is_full:
                self._send(target)

    def push_watermark(self, watermark: int) -> None:
        for writer in self._writers:
            writer.add_watermark(watermark)

    def push_status(self, idle: bool) -> None:
        for writer in self._writers:
            writer.add_status(idle)

    def push_latency_marker(self, marker: LatencyMarker) -> None:
        random.choice(self._writers).add_latency_marker(marker)  # One channel, as in Flink: markers do not multiply.

    def push_end_of_data(self) -> None:
        for writer in self._writers:
            writer.add_end_of_data()

    def memory(self) -> Any:
        """What the edge needs to continue in another process."""
        return self.dealer.memory()

    def restore(self, memory: Any) -> None:
        self.dealer.restore(memory)

    def end_epoch(self) -> None:
        """Send what is left. The chunks of the next epoch are numbered from 0 again."""
        for target in range(len(self._targets)):
            self._send(target)
        self._sent = [0] * len(self._targets)

    def _send(self, target: int) -> None:
        for chunk in self._writers[target].take_chunks():
            seq = self._sent[target]
            self._sent[target] += 1
            self.bytes_out += len(chunk)
            self._ready.append(
                Row(self._edge.target_vertex, self._targets[target], self._edge.index, self._subtask, seq, chunk)
            )


class DeclaredForm:
    """Converts elements to a declared type, many at a time."""

    def __init__(
        self,
        type_info: TypeInformation,
        convert: Callable[[Any], Any],
        convert_all: Callable[[list[Any]], list[Any]],
    ) -> None:
        self._type_info = type_info
        self.convert = convert
        self._convert_all = convert_all

    def __call__(self, values: list[Any]) -> list[Any]:
        try:
            return self._convert_all(values)
        except Exception:
            # One by one, all elements may be convertible after all. If not, the report shows the failing element.
            return call_each(self.convert, values)

    def fits(self, element: str | tuple[str, ...]) -> str | None:
        """An expression that is true for an element that needs no conversion: see `declared_types.fits`."""
        return fits(self._type_info, element)

    def is_form_of(self, columns: Columns) -> bool:
        """True if the elements in these columns need no conversion."""
        return self._declared_columns is not None and columns.fit(self._declared_columns)

    @cached_property
    def _declared_columns(self) -> DeclaredColumns | None:
        from penstock.runtime.columns import declared_columns

        return declared_columns(self._type_info)


class Attempts:
    """Decides when to try something that may fail: after each failure in a row, less often."""

    def __init__(self) -> None:
        self._failures = 0
        self._pause = 0
        """How many opportunities to skip before the next attempt."""

    def is_due(self) -> bool:
        is_due = not self._pause
        self._pause = max(self._pause - 1, 0)
        return is_due

    def succeeded(self) -> None:
        self._failures = 0

    def failed(self) -> None:
        self._failures += 1
        self._pause = min(1 << self._failures, _LONGEST_PAUSE)


class ColumnMaker(Attempts):
    """Turns batches into columns where that pays off: batches that are not small, once there were many records."""

    def __init__(self) -> None:
        super().__init__()
        self._records = 0

    def of(self, values: list[Any]) -> Columns | None:
        self._records += len(values)
        if not self.is_due() or len(values) < _LEAST_RECORDS or self._records < _MANY_RECORDS:
            return None
        from penstock.runtime.columns import columns_of

        columns = columns_of(values)
        if columns is None:
            self.failed()
        else:
            self.succeeded()
        return columns

    def of_numbers(self, numbers: range) -> Columns | None:
        """The same for a range. The numbers of a range are cheap to make, so loading NumPy takes longer to pay off."""
        self._records += len(numbers)
        may_load = "numpy" in sys.modules or self._records >= _MANY_NUMBERS
        if not self.is_due() or len(numbers) < _LEAST_RECORDS or self._records < _MANY_RECORDS or not may_load:
            return None
        from penstock.runtime.columns import column_of_numbers

        return column_of_numbers(numbers)


_LEAST_RECORDS = 64
_MANY_RECORDS = 1 << 13
"""From this number of records on, loading NumPy pays off."""
_MANY_NUMBERS = 1 << 17
_LONGEST_PAUSE = 1 << 10


def declared_form(type_info: TypeInformation | None) -> DeclaredForm | None:
    """None for a type whose elements are never converted."""
    convert, convert_all = converter_of(type_info), batches_of(type_info)
    if type_info is None or convert is None or convert_all is None:
        return None
    return DeclaredForm(type_info, convert, convert_all)


def _with_copies(targets: Sequence[Target], is_reusing: bool) -> list[tuple[Target, bool]]:
    """Each target, and whether it gets copies of the elements.

    Targets that only read get the elements themselves; if there are none of these, the last target does.
    """
    if not targets or is_reusing:
        return [(target, False) for target in targets]
    are_read = any(target.only_reads for target in targets)
    return [(target, not target.only_reads and (are_read or target is not targets[-1])) for target in targets]


class OperatorOutput:
    """An operator's output: gathers single records into batches, and passes them to every receiver in order.

    The function that emits a record may change it afterwards, so the output keeps a copy. Batches already belong to
    the output.
    """

    def __init__(
        self,
        main: Sequence[Target],
        side: Mapping[str, Sequence[Target]],
        as_declared: DeclaredForm | None = None,
        copied: Copy = copied,
        copied_result: Copy = copied,
        makes_columns: bool = False,
    ) -> None:
        is_reusing = copied is as_it_is
        self.only_target = main[0] if len(main) == 1 else None
        """The receiver of the main output; None unless there is exactly one."""
        only = self.only_target if makes_columns else None
        self._column_edge = only if isinstance(only, EdgeTarget) and only.takes_columns() else None
        """The only receiver, if it is an edge that sends columns: then batches are turned into columns for it."""
        self._makes_columns = makes_columns
        self._column_maker = ColumnMaker()
        self._main = _with_copies(main, is_reusing)
        self._copied = copied
        self._copied_result = copied_result
        self.form = as_declared
        """Converts elements to their declared type; None if they need no conversion."""
        self._side = {tag: _with_copies(targets, is_reusing) for tag, targets in side.items()}
        self._all = [*main, *(target for targets in side.values() for target in targets)]
        self._values: list[Any] = []
        self._timestamps: list[int | None] = []
        self._side_buffers: dict[str, tuple[list[Any], list[int | None]]] = {tag: ([], []) for tag in side}
        self._has_side_records = False
        self.records_out = 0
        """Emitted since the last report."""
        self.watermark = MIN_LONG_VALUE

    def collect(self, value: Any, timestamp: int | None) -> None:
        self._values.append(value if type(value) in IMMUTABLE_TYPES else self._copied_result(value))
        self._timestamps.append(timestamp)

    def collect_batch(self, values: list[Any], timestamps: Timestamps | None) -> None:
        if self._values:
            self._flush_main()
        if values:
            self._push_main(values, timestamps)

    def takes_columns(self) -> bool:
        """True if elements in columns should stay in columns: they are sent like that, or a function can use them."""
        return self._makes_columns and bool(self._main) and all(target.takes_columns() for target, _ in self._main)

    def collect_columns(self, columns: Columns) -> None:
        """`collect_batch` for one or more elements in columns."""
        if self._values:
            self._flush_main()
        if not self._makes_columns or not self.have_form(columns):
            self._column_maker.failed()
            values, timestamps, _ = columns.batch()
            self._push_main(values, timestamps)
            return
        self.records_out += len(columns)
        batch: Batch | None = None
        # Several receivers can share the columns, and the elements made from them, because nothing in them can change.
        for target, _ in self._main:
            if not target.push_columns(columns):
                batch = columns.batch() if batch is None else batch
                target.push_batch(batch.values, batch.timestamps)

    def _push_main(self, values: list[Any], timestamps: Timestamps | None) -> None:
        self.records_out += len(values)
        if self._column_edge is not None and self._pushed_as_columns(self._column_edge, values, timestamps):
            return
        if self.form is not None:
            values = self.form(values)
        self._push(self._main, values, timestamps)

    def _pushed_as_columns(self, edge: EdgeTarget, values: list[Any], timestamps: Timestamps | None) -> bool:
        columns = self._column_maker.of(values)
        if columns is None:
            return False
        timed = columns if timestamps is None else columns.with_timestamps(timestamps)
        is_pushed = timed is not None and self.have_form(timed) and edge.push_columns(timed, values)
        if not is_pushed or not edge.keeps_columns:
            self._column_maker.failed()
        return is_pushed

    def have_form(self, columns: Columns) -> bool:
        """True if the elements are of their declared type. Columns know their types, so this costs next to nothing."""
        return self.form is None or self.form.is_form_of(columns)

    def _push(self, targets: Sequence[tuple[Target, bool]], values: list[Any], timestamps: Timestamps | None) -> None:
        # All copies first: a receiver may change its elements at once.
        shares = [all_copied(values) if gets_copies else values for _, gets_copies in targets]
        for (target, _), share in zip(targets, shares, strict=True):
            target.push_batch(share, timestamps)

    def collect_side(self, tag_id: str, value: Any, timestamp: int | None) -> None:
        buffers = self._side_buffers.get(tag_id)
        if buffers is not None:  # If it is None, nothing reads this side output.
            buffers[0].append(self._copied(value))
            buffers[1].append(timestamp)
            self._has_side_records = True

    def emit_watermark(self, watermark: int) -> None:
        self.flush()
        self.watermark = watermark
        for target in self._all:
            target.push_watermark(watermark)

    def emit_status(self, idle: bool) -> None:
        self.flush()
        for target in self._all:
            target.push_status(idle)

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        self.flush()
        for target in self._all:
            target.push_latency_marker(marker)

    def flush(self) -> None:
        if self._values:
            self._flush_main()
        if self._has_side_records:
            self._flush_side()

    def _flush_main(self) -> None:
        values, timestamps = self._values, self._timestamps
        self._values, self._timestamps = [], []
        self._push_main(values, timestamps)

    def _flush_side(self) -> None:
        self._has_side_records = False
        for tag, (values, timestamps) in list(self._side_buffers.items()):
            if values:
                self._side_buffers[tag] = ([], [])
                self.records_out += len(values)
                self._push(self._side[tag], values, timestamps)
