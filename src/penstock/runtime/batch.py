"""What travels between operators: batches of elements, and the marks between them."""

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
    """A user's function on each value.

    A loop, not a comprehension: newer Pythons forget a comprehension's variable when it raises, and an error shows it
    as the record: it is `value` in this frame.
    """
    results: list[Any] = []
    append = results.append
    for value in values:
        append(function(value))
    return results


class Output(Protocol):
    """Where an operator emits. Order among elements, watermarks and status marks is kept.

    A single record that is collected may be changed by the operator afterwards. The elements of a batch are given away.
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
