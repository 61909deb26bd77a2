"""Values that a job's functions add to and that the job's result shows when it ends.

Each subtask adds to its own accumulator; the values are merged into one per name:

>>> words, more = IntCounter(), IntCounter(40)
>>> words.add(2)
>>> words.merge(more)
>>> words.get_local_value()
42
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

__all__ = [
    "Accumulator",
    "Average",
    "AverageAccumulator",
    "DoubleCounter",
    "DoubleMaximum",
    "DoubleMinimum",
    "Histogram",
    "IntCounter",
    "IntMaximum",
    "IntMinimum",
    "ListAccumulator",
    "LongCounter",
    "LongMaximum",
    "LongMinimum",
    "SimpleAccumulator",
]

V = TypeVar("V")
R = TypeVar("R")


class Accumulator(ABC, Generic[V, R]):
    """Collects values of one type into a result of another."""

    @abstractmethod
    def add(self, value: V) -> None:
        """Add a value."""

    @abstractmethod
    def get_local_value(self) -> R:
        """The result of what this accumulator has seen."""

    @abstractmethod
    def reset_local(self) -> None:
        """Forget everything."""

    @abstractmethod
    def merge(self, other: Accumulator[V, R]) -> None:
        """Add what another accumulator of the same kind has seen."""

    def clone(self) -> Accumulator[V, R]:
        """A copy that changes on its own."""
        return copy.deepcopy(self)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # it changes all the time

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.get_local_value()})"

    def _check_same_kind(self, other: object) -> None:
        if type(other) is not type(self):
            raise TypeError(
                f"cannot merge a {type(other).__name__} into a {type(self).__name__}; "
                "register one kind of accumulator per name"
            )


class SimpleAccumulator(Accumulator[V, V]):
    """An accumulator whose result has the type of its input."""


N = TypeVar("N", int, float)


class _Number(SimpleAccumulator[N]):
    """One number, which `add` combines with each value; `_start` while there is none."""

    _start: N

    def __init__(self, value: N | None = None) -> None:
        self._value: N = self._start if value is None else value

    def get_local_value(self) -> N:
        return self._value

    def reset_local(self) -> None:
        self._value = self._start

    def merge(self, other: Accumulator[N, N]) -> None:
        self._check_same_kind(other)
        self.add(other.get_local_value())


class _Counter(_Number[N]):
    def add(self, value: N) -> None:
        self._value = self._value + value


class IntCounter(_Counter[int]):
    """Adds whole numbers up."""

    _start = 0


class LongCounter(_Counter[int]):
    """Adds whole numbers up; Python's integers have no limit, so the same as IntCounter."""

    _start = 0


class DoubleCounter(_Counter[float]):
    """Adds floating-point numbers up."""

    _start = 0.0


class _Maximum(_Number[N]):
    def add(self, value: N) -> None:
        self._value = max(self._value, value)


class _Minimum(_Number[N]):
    def add(self, value: N) -> None:
        self._value = min(self._value, value)


class IntMaximum(_Maximum[int]):
    """The largest whole number; the smallest 32-bit integer while there is none."""

    _start = -(2**31)


class IntMinimum(_Minimum[int]):
    """The smallest whole number; the largest 32-bit integer while there is none."""

    _start = 2**31 - 1


class LongMaximum(_Maximum[int]):
    """The largest whole number; the smallest 64-bit integer while there is none."""

    _start = -(2**63)


class LongMinimum(_Minimum[int]):
    """The smallest whole number; the largest 64-bit integer while there is none."""

    _start = 2**63 - 1


class DoubleMaximum(_Maximum[float]):
    """The largest floating-point number; minus infinity while there is none."""

    _start = float("-inf")


class DoubleMinimum(_Minimum[float]):
    """The smallest floating-point number; infinity while there is none."""

    _start = float("inf")


class AverageAccumulator(Accumulator[float, float]):
    """The arithmetic mean; 0.0 while there is nothing."""

    def __init__(self) -> None:
        self._sum = 0.0
        self._count = 0

    def add(self, value: float) -> None:
        self._sum += value
        self._count += 1

    def get_local_value(self) -> float:
        return self._sum / self._count if self._count else 0.0

    def reset_local(self) -> None:
        self._sum, self._count = 0.0, 0

    def merge(self, other: Accumulator[float, float]) -> None:
        self._check_same_kind(other)
        assert isinstance(other, AverageAccumulator)
        self._sum += other._sum
        self._count += other._count


Average = AverageAccumulator


class Histogram(Accumulator[int, dict[int, int]]):
    """How often each whole number was added, by number."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def add(self, value: int) -> None:
        self._counts[value] = self._counts.get(value, 0) + 1

    def get_local_value(self) -> dict[int, int]:
        return dict(sorted(self._counts.items()))

    def reset_local(self) -> None:
        self._counts = {}

    def merge(self, other: Accumulator[int, dict[int, int]]) -> None:
        self._check_same_kind(other)
        for value, count in other.get_local_value().items():
            self._counts[value] = self._counts.get(value, 0) + count


class ListAccumulator(Accumulator[Any, list[Any]]):
    """Everything that was added, in order within a subtask."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def add(self, value: Any) -> None:
        self._values.append(value)

    def get_local_value(self) -> list[Any]:
        return list(self._values)

    def reset_local(self) -> None:
        self._values = []

    def merge(self, other: Accumulator[Any, list[Any]]) -> None:
        self._check_same_kind(other)
        self._values.extend(other.get_local_value())
