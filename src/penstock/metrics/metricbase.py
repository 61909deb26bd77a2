"""Metrics and the groups that name them. Plain Python objects: a runtime reads and merges their values."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeVar


class Metric(ABC):
    """Something that has a value at any time.

    `MetricGroup` has an example.
    """

    @abstractmethod
    def get_value(self) -> Any:
        """The current value, as reports show it."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.get_value()!r})"


class Counter(Metric):
    """Counts up and down.

    >>> counter = Counter()
    >>> counter.inc(5)
    >>> counter.dec()
    >>> counter.get_count()
    4
    """

    def __init__(self) -> None:
        self._count = 0

    def inc(self, n: int = 1) -> None:
        """Add `n` to the count."""
        self._count += n

    def dec(self, n: int = 1) -> None:
        """Take `n` off the count."""
        self._count -= n

    def get_count(self) -> int:
        """The current count."""
        return self._count

    def get_value(self) -> int:
        return self._count


class Gauge(Metric):
    """Shows what a function returns; it is called only when the value is read.

    >>> waiting = [1, 2, 3]
    >>> Gauge(lambda: len(waiting)).get_value()
    3
    """

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read

    def get_value(self) -> Any:
        return self._read()

    def __repr__(self) -> str:
        return f"Gauge({self._read!r})"


class Meter(Metric):
    """Counts events and reports how many there were per second over a span of time.

    :param time_span_in_seconds: How far back the rate looks.
    :param clock: Seconds from any fixed point.

    >>> meter = Meter(time_span_in_seconds=60)
    >>> meter.mark_event(3)
    >>> meter.get_count()
    3
    """

    def __init__(self, time_span_in_seconds: int = 60, clock: Callable[[], float] = time.monotonic) -> None:
        if time_span_in_seconds <= 0:
            raise ValueError(f"Meter: time_span_in_seconds must be positive, got {time_span_in_seconds}")
        self._span = time_span_in_seconds
        self._clock = clock
        self._count = 0
        self._per_second: deque[tuple[int, int]] = deque()

    def mark_event(self, value: int = 1) -> None:
        """Count `value` events, which happen now."""
        self._count += value
        second = int(self._clock())
        if self._per_second and self._per_second[-1][0] == second:
            value += self._per_second.pop()[1]
        self._per_second.append((second, value))
        self._forget(second)

    def get_count(self) -> int:
        """The number of events so far."""
        return self._count

    def get_rate(self) -> float:
        """Events per second over the time span."""
        self._forget(int(self._clock()))
        return sum(events for _, events in self._per_second) / self._span

    def get_value(self) -> float:
        return self.get_rate()

    def _forget(self, now: int) -> None:
        while self._per_second and self._per_second[0][0] <= now - self._span:
            self._per_second.popleft()


class Distribution(Metric):
    """Sum, count, smallest and largest of the values seen.

    >>> sizes = Distribution()
    >>> sizes.update(3)
    >>> sizes.update(7)
    >>> sizes.get_value()
    {'sum': 10, 'count': 2, 'min': 3, 'max': 7, 'mean': 5.0}
    """

    def __init__(self) -> None:
        self.sum = 0
        self.count = 0
        self.min: int | None = None
        self.max: int | None = None

    def update(self, value: int) -> None:
        """Add a value."""
        self.sum += value
        self.count += 1
        self.min = value if self.min is None or value < self.min else self.min
        self.max = value if self.max is None or value > self.max else self.max

    def get_value(self) -> dict[str, float | None]:
        mean = self.sum / self.count if self.count else None
        return {"sum": self.sum, "count": self.count, "min": self.min, "max": self.max, "mean": mean}


M = TypeVar("M", bound=Metric)


class MetricGroup:
    """Names metrics. Asking again for a name gives the same metric, if it is of the same kind.

    >>> group = MetricGroup().add_group("orders")
    >>> group.counter("accepted").inc()
    >>> [(name, metric.get_value()) for name, metric in group.metrics()]
    [('orders.accepted', 1)]
    """

    def __init__(
        self,
        scope: tuple[str, ...] = (),
        variables: dict[str, str] | None = None,
        logical_scope: tuple[str, ...] | None = None,
    ) -> None:
        self.scope = scope
        self.logical_scope = scope if logical_scope is None else logical_scope
        """The scope without the values of variables."""
        self.variables = dict(variables or {})
        self._metrics: dict[str, Metric] = {}
        self._groups: dict[tuple[str, ...], MetricGroup] = {}

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """A group inside this one; with `extra`, `name` is a variable that has `extra` as its value."""
        path = (name,) if extra is None else (name, extra)
        if path not in self._groups:
            variables = self.variables if extra is None else {**self.variables, name: extra}
            self._groups[path] = MetricGroup(self.scope + path, variables, (*self.logical_scope, name))
        return self._groups[path]

    def counter(self, name: str) -> Counter:
        """A counter of this name; the same one each time."""
        return self._register(name, Counter, Counter)

    def gauge(self, name: str, obj: Callable[[], Any]) -> None:
        """Show what `obj()` returns."""
        if not callable(obj):
            raise TypeError(f"gauge {self._full_name(name)!r}: expected a function without arguments, got {obj!r}")
        self._register(name, Gauge, lambda: Gauge(obj))

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """A meter of this name over the last `time_span_in_seconds`."""
        return self._register(name, Meter, lambda: Meter(time_span_in_seconds))

    def distribution(self, name: str) -> Distribution:
        """A distribution of this name."""
        return self._register(name, Distribution, Distribution)

    def metrics(self) -> Iterator[tuple[str, Metric]]:
        """Every metric of this group and those inside it, by full name such as `my_group.my_counter`."""
        for group, name, metric in self.registered():
            yield group._full_name(name), metric

    def registered(self) -> Iterator[tuple[MetricGroup, str, Metric]]:
        """Every metric of this group and those inside it, each with its own group and its name there."""
        for name, metric in self._metrics.items():
            yield self, name, metric
        for group in self._groups.values():
            yield from group.registered()

    def _register(self, name: str, kind: type[M], make: Callable[[], M]) -> M:
        metric = self._metrics.setdefault(name, make())
        if not isinstance(metric, kind):
            raise ValueError(
                f"metric {self._full_name(name)!r} is a {type(metric).__name__} already and cannot be a "
                f"{kind.__name__} too; choose another name"
            )
        return metric

    def _full_name(self, name: str) -> str:
        return ".".join((*self.scope, name))

    def __repr__(self) -> str:
        return f"MetricGroup({'.'.join(self.scope)!r})"
