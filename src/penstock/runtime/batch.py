"""Batches of elements, and the output that operators emit them to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from penstock.runtime.columns import Columns
    from penstock.runtime.latency import LatencyMarker

Timestamps = Sequence["int | None"]


class Batch(NamedTuple):
    """Elements in order. `timestamps` is None when no element has one; `keys` is None when they were not computed."""

    values: list[Any]
    timestamps: Timestamps | None = None
    keys: list[Any] | None = None


def call_each(function: Callable[[Any], Any], values: Iterable[Any]) -> list[Any]:
    """The results of a user's function for each value.

    This is a loop because error reports read the record from the variable `value` of this frame. In a comprehension,
    newer Pythons drop that variable when the function raises.
    """
    results: list[Any] = []
    append = results.append
    for value in values:
        append(function(value))
    return results


class Output(Protocol):
    """Where an operator emits. Elements, watermarks and status marks keep their order.

    An operator may change a record after `collect`, so the output copies it. The elements of a batch belong to the
    output from then on.
    """

    def collect(self, value: Any, timestamp: int | None) -> None: ...

    def collect_batch(self, values: list[Any], timestamps: Timestamps | None) -> None: ...

    def takes_columns(self) -> bool: ...

    def collect_columns(self, columns: Columns) -> None: ...

    def collect_side(self, tag_id: str, value: Any, timestamp: int | None) -> None: ...

    def emit_watermark(self, watermark: int) -> None: ...

    def emit_status(self, idle: bool) -> None: ...

    def emit_latency_marker(self, marker: LatencyMarker) -> None: ...

    def flush(self) -> None: ...
