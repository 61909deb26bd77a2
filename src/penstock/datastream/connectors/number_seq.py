"""A source of numbers in sequence."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.datastream.connectors.base import Source

__all__ = ["NumberSequenceSource"]


@dataclass(frozen=True)
class NumberSequenceSource(Source):
    """The whole numbers from `start` to `end`, both included; split among the subtasks, so in order only within one.

    >>> from penstock.common import WatermarkStrategy
    >>> numbers = env.from_source(NumberSequenceSource(1, 4), WatermarkStrategy.no_watermarks(), "numbers")
    >>> list(numbers.execute_and_collect())
    [1, 2, 3, 4]
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.start > self.end:
            raise ValueError(f"NumberSequenceSource: start must not be after end, got {self.start} to {self.end}")

    @property
    def is_bounded(self) -> bool:
        return True
