"""Operators whose work Spark SQL has done, except for the few elements that it has left to Python."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import TYPE_CHECKING, Any

from penstock.datastream.declared_types import converter_of, row_shape_of
from penstock.datastream.lowering.left_to_python import LeftToPython
from penstock.graph.descriptions import (
    FilterDescription,
    LoweredDescription,
    MapDescription,
    OperatorDescription,
)
from penstock.runtime.batch import Batch, Output, Timestamps
from penstock.runtime.latency import LatencyMarker
from penstock.runtime.operators.base import OperatorContext, StreamOperator
from penstock.runtime.operators.stateless import FilterOperator, MapOperator

if TYPE_CHECKING:
    from penstock.runtime.columns import Columns

_BUILT_BY: dict[type[OperatorDescription], Callable[[Any], StreamOperator]] = {
    MapDescription: MapOperator,
    FilterDescription: FilterOperator,
}


class LoweredOperator(StreamOperator):
    """A map or filter that Spark SQL has already applied to most elements, which only pass through.

    The function is applied to elements that were left to Python, and its results become rows if rows are declared. They
    are marked as left to Python for the next lowered operator, too; after the last one they are elements like others.
    """

    def __init__(self, description: LoweredDescription) -> None:
        self._function = _BUILT_BY[type(description.operator)](description.operator)
        self._as_declared = converter_of(row_shape_of(description.output_type))
        self._is_last = description.is_last

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self._function.setup(context, _Results(output, self._as_declared, self._is_last))

    def open(self) -> None:
        self._function.open()

    def close(self) -> None:
        self._function.close()

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        values, timestamps = batch.values, batch.timestamps
        if LeftToPython not in set(map(type, values)):
            self.output.collect_batch(values, timestamps)
            return
        at = 0
        for is_left, group in groupby(values, lambda value: type(value) is LeftToPython):
            some = list(group)
            times = None if timestamps is None else timestamps[at : at + len(some)]
            at += len(some)
            if is_left:
                self._function.process_batch(Batch([each.element for each in some], times))
            else:
                self.output.collect_batch(some, times)


class _Results:
    """The output of the function: passes its results on to the operator's output, in the form for the next operator."""

    def __init__(self, output: Output, as_declared: Callable[[Any], Any] | None, is_last: bool) -> None:
        self._output = output
        self._as_declared = as_declared
        self._is_last = is_last

    def collect_batch(self, values: list[Any], timestamps: Timestamps | None) -> None:
        if self._as_declared is not None:
            values = list(map(self._as_declared, values))
        self._output.collect_batch(values if self._is_last else list(map(LeftToPython, values)), timestamps)

    def takes_columns(self) -> bool:
        return False

    def collect_columns(self, columns: Columns) -> None:
        values, timestamps, _ = columns.batch()
        self.collect_batch(values, timestamps)

    def collect(self, value: Any, timestamp: int | None) -> None:
        self.collect_batch([value], [timestamp])

    def collect_side(self, tag_id: str, value: Any, timestamp: int | None) -> None:
        self._output.collect_side(tag_id, value, timestamp)

    def emit_watermark(self, watermark: int) -> None:
        self._output.emit_watermark(watermark)

    def emit_status(self, idle: bool) -> None:
        self._output.emit_status(idle)

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        self._output.emit_latency_marker(marker)

    def flush(self) -> None:
        self._output.flush()
