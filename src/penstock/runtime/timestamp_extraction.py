"""Assigns timestamps to elements with a strategy's assigner, a batch at a time."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.common.constants import MIN_LONG_VALUE
from penstock.common.timestamps import are_whole, whole_milliseconds
from penstock.common.watermark_strategy import RecordTimestampAssigner, TimestampAssigner, plain_function_of
from penstock.runtime.batch import Batch, Timestamps
from penstock.runtime.generated_loop import EachLoop

if TYPE_CHECKING:
    from penstock.runtime.column_functions import ColumnFunction
    from penstock.runtime.columns import Array, Columns


class TimestampExtraction:
    """Calls an assigner for elements. If an element has no timestamp yet, the assigner gets `MIN_LONG_VALUE` for it."""

    def __init__(self, assigner: TimestampAssigner, inlines_functions: bool = True) -> None:
        self._inlines = inlines_functions
        self.keeps_timestamps = type(assigner) is RecordTimestampAssigner  # A subclass may assign other timestamps.
        self._giver = f"timestamp assigner {type(assigner).__name__}"
        self._extract = plain_function_of(assigner)
        self._extract_all = EachLoop(self._extract, "timestamp extraction", MIN_LONG_VALUE, inlines=inlines_functions)

    @cached_property
    def on_columns(self) -> ColumnFunction | None:
        """The assigner on columns; None if it must be called for each element."""
        from penstock.runtime.column_functions import column_function

        return None if self.keeps_timestamps or not self._inlines else column_function(self._extract, parameters=2)

    def column_of(self, columns: Columns) -> Array | None:
        """The new timestamps; None if the assigner must be called for each element."""
        if self.on_columns is None or columns.timestamps is not None:
            return None
        return self.on_columns.integers(columns, MIN_LONG_VALUE)

    def timestamps_of(self, batch: Batch) -> list[int | None]:
        if self.keeps_timestamps:
            return list(batch.timestamps) if batch.timestamps is not None else [None] * len(batch.values)
        extracted = self._extracted(batch)
        return extracted if are_whole(extracted) else self._whole(batch.values, extracted)

    def _extracted(self, batch: Batch) -> list[int | None]:
        if batch.timestamps is None:
            return self._extract_all(batch.values)
        extracted: list[int | None] = []
        append, extract = extracted.append, self._extract
        for value, timestamp in zip(batch.values, batch.timestamps, strict=True):
            append(extract(value, MIN_LONG_VALUE if timestamp is None else timestamp))
        return extracted

    def _whole(self, values: list[Any], timestamps: list[Any]) -> list[int | None]:
        whole: list[int | None] = []
        # Reports of failures show the local variable `value`.
        for value, timestamp in zip(values, timestamps, strict=True):  # noqa: B007
            whole.append(whole_milliseconds(timestamp, self._giver))
        return whole


def largest_of(timestamps: Timestamps) -> int:
    try:
        largest = max(timestamps)  # type: ignore[type-var]
    except TypeError:  # Some elements have a timestamp and some have none.
        return max(MIN_LONG_VALUE if timestamp is None else timestamp for timestamp in timestamps)
    return MIN_LONG_VALUE if largest is None else largest
