"""Sinks: print and collect report to the driver; a sink function writes wherever it wants."""

from __future__ import annotations

from typing import Any

from penstock.common.formatting import formatter_for, pyflink_formatter_for
from penstock.datastream.functions import SinkFunction
from penstock.graph.descriptions import CollectSinkDescription, PrintSinkDescription, SinkFunctionDescription
from penstock.runtime.batch import Batch
from penstock.runtime.operators.base import StreamOperator
from penstock.runtime.runtime_context import StreamingRuntimeContext
from penstock.runtime.user_function import UserFunction


class PrintSinkOperator(StreamOperator):
    """Prints lines as Flink does: `identifier:N> value`, where N is the number of the printing subtask.

    A print of parallelism 1 after a parallel operator shows the number of that operator's subtask, which is more
    useful. With `penstock.print.look: pyflink`, lines look as in PyFlink.
    """

    def __init__(self, description: PrintSinkDescription) -> None:
        self._identifier = description.identifier
        self._to_stderr = description.stream == "stderr"
        self._looks_like_pyflink = description.look == "pyflink"
        self._format = (pyflink_formatter_for if self._looks_like_pyflink else formatter_for)(description.type_info)

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        prefix = self._prefix()
        self.context.report.lines.extend((self._to_stderr, prefix + self._format(value)) for value in batch.values)

    def _prefix(self) -> str:
        subtask, parallelism = self.context.task.subtask, self.context.task.parallelism
        if parallelism == 1 and not self._looks_like_pyflink:
            subtask, parallelism = self.context.current_channel()
        number = str(subtask + 1) if parallelism > 1 else ""
        label = ":".join(part for part in (self._identifier, number) if part)
        return f"{label}> " if label else ""


class CollectSinkOperator(StreamOperator):
    """Reports its values to the driver."""

    def __init__(self, description: CollectSinkDescription) -> None:
        self._collect_id = description.collect_id

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        self.context.report.collected.setdefault(self._collect_id, []).extend(batch.values)


class FunctionSinkContext(SinkFunction.Context):
    """The context of `invoke`, reused for each element."""

    def __init__(self, operator: StreamOperator) -> None:
        self._operator = operator
        self.element_timestamp: int | None = None

    def timestamp(self) -> int | None:
        return self.element_timestamp

    def current_watermark(self) -> int:
        return self._operator.current_watermark

    def current_processing_time(self) -> int:
        return self._operator.context.clock()


class SinkFunctionOperator(StreamOperator):
    """Calls `invoke(value, context)` for every element."""

    def __init__(self, description: SinkFunctionDescription) -> None:
        self.user_function = UserFunction(description.function, "invoke")

    def open(self) -> None:
        self._sink_context = FunctionSinkContext(self)
        self.user_function.open(StreamingRuntimeContext(self.context, has_keyed_state=False))

    def close(self) -> None:
        self.user_function.close()

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        invoke: Any = self.user_function.call
        context = self._sink_context
        for at, value in enumerate(batch.values):
            context.element_timestamp = None if batch.timestamps is None else batch.timestamps[at]
            invoke(value, context)

    def process_watermark(self, watermark: int) -> None:
        super().process_watermark(watermark)
        self.user_function.function.write_watermark(watermark)

    def finish(self) -> None:
        self.user_function.function.finish()
