"""What a subtask reports to the driver about its metrics at the end of an epoch.

Counts are those since the last report: another process may run the next epoch, and its metrics start at zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from penstock.metrics import Counter, Distribution, Gauge, Meter, Metric
from penstock.runtime.latency import SourceVariables
from penstock.runtime.operators.base import OperatorContext, StreamOperator
from penstock.runtime.outputs import OperatorOutput

GaugeValue = int | float | str | bool | None

RECORDS_IN, RECORDS_OUT = "numRecordsIn", "numRecordsOut"
INPUT_WATERMARK, OUTPUT_WATERMARK = "currentInputWatermark", "currentOutputWatermark"
LATENCY = "latency"


@dataclass(frozen=True)
class LabelledName:
    """The name of a metric whose group has variables, such as a topic: their values are part of the name."""

    name: str
    logical: str
    """The name without the values."""
    variables: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return self.name


MetricName = str | LabelledName


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


@dataclass(frozen=True)
class HistogramReport:
    """Describes the last values of one subtask."""

    count: int
    """How many values there ever were."""
    min: float
    max: float
    mean: float
    stddev: float
    quantiles: tuple[float, ...]
    """The values for `QUANTILES`, in this order."""


QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.999)


def histogram_of(count: int, values: list[int]) -> HistogramReport:
    ranked = sorted(values)
    mean = sum(ranked) / len(ranked)
    return HistogramReport(
        count,
        ranked[0],
        ranked[-1],
        mean,
        math.sqrt(sum((value - mean) ** 2 for value in ranked) / len(ranked)),
        tuple(ranked[max(0, math.ceil(share * len(ranked)) - 1)] for share in QUANTILES),
    )


MetricReport = CounterReport | GaugeReport | MeterReport | DistributionReport | HistogramReport
Reports = dict[MetricName, MetricReport]


class MetricReporter:
    """Reads the metrics of one operator: those of the runtime and those that its function registered.

    A gauge is reported only if it has changed.
    """

    def __init__(
        self,
        context: OperatorContext,
        entrance: StreamOperator | None = None,
        exit: OperatorOutput | None = None,
        inputs: Callable[[], list[int]] | None = None,
    ) -> None:
        """`inputs`: the watermarks of the inputs, for an operator with several."""
        self._context = context
        self._inputs = inputs
        self._entrance = entrance
        self._exit = exit
        self._reported: dict[str, int] = {}
        self._last_gauges: dict[MetricName, GaugeReport] = {}

    def take(self) -> Reports:
        """The reports by the metric's name within the operator."""
        reports: Reports = {name: CounterReport(count) for name, count in self._context.metrics.items()}
        self._context.metrics.clear()
        gauges: dict[MetricName, GaugeReport] = {}
        if self._exit is not None:
            if self._exit.records_out:
                reports[RECORDS_OUT] = CounterReport(self._exit.records_out)
                self._exit.records_out = 0
            gauges[OUTPUT_WATERMARK] = GaugeReport(self._exit.watermark)
        if self._entrance is not None:
            gauges[INPUT_WATERMARK] = GaugeReport(self._entrance.current_watermark)
        if self._inputs is not None:
            for number, watermark in enumerate(self._inputs(), start=1):
                gauges[f"currentInput{number}Watermark"] = GaugeReport(watermark)
        for name, report in self._registered_metrics():
            if isinstance(report, GaugeReport):
                gauges[name] = report
            else:
                reports[name] = report
        reports.update((name, gauge) for name, gauge in gauges.items() if self._last_gauges.get(name) != gauge)
        self._last_gauges = gauges
        if self._context.latency is not None:
            for variables, (count, values) in self._context.latency.take_changed().items():
                reports[_latency_name(variables)] = histogram_of(count, values)
        return reports

    def _registered_metrics(self) -> Iterator[tuple[MetricName, MetricReport]]:
        for group, name, metric in self._context.metric_group.registered():
            path = ".".join((*group.scope[1:], name))
            report = self._report(path, metric)
            if report is not None:
                logical = ".".join((*group.logical_scope[1:], name))
                yield LabelledName(path, logical, tuple(group.variables.items())) if group.variables else path, report

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
        before = self._reported.get(name, 0)
        self._reported[name] = now
        return now - before


def _read_gauge(gauge: Gauge) -> GaugeReport | None:
    try:
        value = gauge.get_value()
    except Exception:  # As in Flink, a gauge that cannot be read is left out, and the job continues.
        return None
    return GaugeReport(value if isinstance(value, int | float | str | None) else str(value))


def _latency_name(variables: SourceVariables) -> LabelledName:
    return LabelledName(".".join((LATENCY, *(part for each in variables for part in each))), LATENCY, variables)
