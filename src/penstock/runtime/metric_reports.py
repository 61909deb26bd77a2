"""What a subtask tells the driver about its metrics at the end of an epoch.

Counts are told as what came on top since the last report: another process may run the next epoch, and its metrics start
at zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.metrics import Counter, Distribution, Gauge, Meter, Metric
from penstock.runtime.operators.base import OperatorContext

GaugeValue = int | float | str | bool | None


@dataclass(frozen=True)
class CounterReport:
    count: int


@dataclass(frozen=True)
class GaugeReport:
    value: GaugeValue


@dataclass(frozen=True)
class MeterReport:
    count: int
    rate: float
    """Events per second at this moment."""


@dataclass(frozen=True)
class DistributionReport:
    sum: int
    count: int
    min: int | None
    max: int | None
    """Smallest and largest of all values that the process has seen, not only of the new ones."""


MetricReport = CounterReport | GaugeReport | MeterReport | DistributionReport


class MetricReporter:
    """Reads the metrics of one operator: those of the runtime and those that its function registered."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context
        self._told: dict[str, int] = {}

    def take(self) -> dict[str, MetricReport]:
        """The reports by the metric's name within the operator."""
        counts = {name: CounterReport(count) for name, count in self._context.metrics.items()}
        self._context.metrics.clear()
        return {**counts, **dict(self._of_the_user())}

    def _of_the_user(self) -> Iterator[tuple[str, MetricReport]]:
        for full_name, metric in self._context.metric_group.metrics():
            name = full_name.removeprefix(f"{self._context.operator_name}.")
            report = self._report(name, metric)
            if report is not None:
                yield name, report

    def _report(self, name: str, metric: Metric) -> MetricReport | None:
        match metric:
            case Counter():
                return CounterReport(self._since_last(name, metric.get_count()))
            case Meter():
                return MeterReport(self._since_last(name, metric.get_count()), metric.get_rate())
            case Distribution():
                added = self._since_last(f"{name}.sum", metric.sum)
                return DistributionReport(added, self._since_last(name, metric.count), metric.min, metric.max)
            case Gauge():
                return _read_gauge(metric)
        return None

    def _since_last(self, name: str, now: int) -> int:
        before = self._told.get(name, 0)
        self._told[name] = now
        return now - before


def _read_gauge(gauge: Gauge) -> GaugeReport | None:
    try:
        value = gauge.get_value()
    except Exception:  # As in Flink, a gauge that cannot be read is left out; the job goes on
        return None
    return GaugeReport(value if isinstance(value, int | float | str | None) else str(value))
