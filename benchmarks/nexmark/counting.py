"""What queries that count bids in windows have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.flink_api import AggregateFunction, ProcessWindowFunction


class CountElements(AggregateFunction):  # type: ignore[misc, unused-ignore]
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, a: int, b: int) -> int:
        return a + b


class WithKeyAndWindow(ProcessWindowFunction):  # type: ignore[misc, type-arg, unused-ignore]
    """Key, count, and the window's start and end in milliseconds."""

    def process(self, key: int, context: Any, elements: Iterable[int]) -> Iterator[Any]:
        window = context.window()
        for count in elements:
            yield key, count, window.start, window.end
