"""What the operators of a job have reported, by operator, metric and subtask."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from penstock.runtime.metric_reports import (
    RECORDS_IN,
    RECORDS_OUT,
    CounterReport,
    DistributionReport,
    GaugeReport,
    HistogramReport,
    MeterReport,
    MetricName,
    MetricReport,
)

_log = logging.getLogger(__name__)

MOST_METRICS = 20_000
"""A job's metrics over all operators and subtasks: a function that registers one for every key must not fill the
driver's memory."""
_RATE_SPAN_S = 5
_WITH_RATES = (RECORDS_IN, RECORDS_OUT)


class _Rate:
    """Events per second over the last seconds."""

    def __init__(self, now_s: float) -> None:
        self._began_s = now_s
        self._by_second: deque[list[int]] = deque(maxlen=_RATE_SPAN_S + 1)

    def add(self, count: int, now_s: float) -> None:
        second = int(now_s)
        if self._by_second and self._by_second[-1][0] == second:
            self._by_second[-1][1] += count
        else:
            self._by_second.append([second, count])

    def per_second(self, now_s: float) -> float:
        events = sum(count for second, count in self._by_second if second > now_s - _RATE_SPAN_S)
        return round(events / min(_RATE_SPAN_S, max(1.0, now_s - self._began_s)), 2)


class JobMetrics:
    """Counters are summed over epochs; of gauges and rates the latest value counts. Regions add, requests read."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._reports: dict[str, dict[MetricName, dict[int, MetricReport]]] = {}
        self._rates: dict[tuple[str, str, int], _Rate] = {}
        self._size = 0
        self._is_full_reported = False

    def add(self, operator_id: str, subtask: int, reports: Mapping[MetricName, MetricReport]) -> None:
        """What a subtask of an operator has reported on an epoch."""
        now_s = self._clock()
        with self._lock:
            known = self._reports.setdefault(operator_id, {})
            for name, report in reports.items():
                self._add(known, operator_id, name, subtask, report)
                if name in _WITH_RATES and isinstance(report, CounterReport):
                    rate = self._rates.setdefault((operator_id, str(name), subtask), _Rate(now_s))
                    rate.add(report.count, now_s)

    def _add(
        self,
        known: dict[MetricName, dict[int, MetricReport]],
        operator_id: str,
        name: MetricName,
        subtask: int,
        report: MetricReport,
    ) -> None:
        by_subtask = known.get(name, {})
        before = by_subtask.get(subtask)
        if before is None:
            if self._size >= MOST_METRICS:
                self._report_full(operator_id, name)
                return
            self._size += 1
            known[name] = by_subtask
        by_subtask[subtask] = report if type(before) is not type(report) else _merged(before, report)

    def _report_full(self, operator_id: str, name: MetricName) -> None:
        if not self._is_full_reported:
            self._is_full_reported = True
            _log.warning(
                "the job has more than %d metrics: '%s' of operator %s and others that are new are left out; register "
                "metrics in open(), not for every key",
                MOST_METRICS,
                name,
                operator_id,
            )

    def of_operator(self, operator_id: str) -> dict[MetricName, dict[int, MetricReport]]:
        """By metric and subtask."""
        with self._lock:
            return {name: dict(by_subtask) for name, by_subtask in self._reports.get(operator_id, {}).items()}

    def rates(self, operator_id: str) -> Iterator[tuple[str, int, float]]:
        """Metric, subtask and how many per second, of what has rates."""
        now_s = self._clock()
        with self._lock:
            rates = [(*key, rate.per_second(now_s)) for key, rate in self._rates.items()]
        for operator, name, subtask, per_second in rates:
            if operator == operator_id:
                yield f"{name}PerSecond", subtask, per_second

    def by_operator(self) -> dict[str, dict[str, Any]]:
        """Operator id -> metric -> value: a number for a counter, a value by subtask for a gauge, else a dictionary."""
        with self._lock:
            operators = list(self._reports)
        return {
            operator: {str(name): _over_all(reports) for name, reports in self.of_operator(operator).items()}
            for operator in operators
        }


def _over_all(by_subtask: dict[int, MetricReport]) -> Any:
    """One value for all subtasks, where there can be one."""
    reports = list(by_subtask.values())
    total = reports[0]
    for report in reports[1:]:
        total = _merged(total, report)
    match total:
        case CounterReport(count):
            return count
        case MeterReport(count, _):
            return {"count": count, "rate": sum(each.rate for each in reports if isinstance(each, MeterReport))}
        case DistributionReport():
            return values_of(total)
    return {
        subtask: report.value if isinstance(report, GaugeReport) else values_of(report)
        for subtask, report in sorted(by_subtask.items())
    }


def values_of(report: MetricReport) -> dict[str, Any]:
    """The values of one report, by what is added to the metric's name."""
    match report:
        case CounterReport(count):
            return {"": count}
        case GaugeReport(value):
            return {"": value}
        case MeterReport(count, rate):
            return {"": rate, "count": count}
        case DistributionReport():
            mean = report.sum / report.count if report.count else None
            return {"sum": report.sum, "count": report.count, "min": report.min, "max": report.max, "mean": mean}
        case HistogramReport():
            median, p75, p90, p95, p98, p99, p999 = report.quantiles
            return {
                "count": report.count, "min": report.min, "max": report.max, "mean": report.mean,
                "stddev": report.stddev, "median": median, "p75": p75, "p90": p90, "p95": p95, "p98": p98, "p99": p99,
                "p999": p999,
            }  # fmt: skip


def _merged(before: MetricReport | None, new: MetricReport) -> MetricReport:
    match before, new:
        case CounterReport(), CounterReport():
            return CounterReport(before.count + new.count)
        case MeterReport(), MeterReport():
            return MeterReport(before.count + new.count, new.rate)
        case DistributionReport(), DistributionReport():
            return DistributionReport(
                before.sum + new.sum,
                before.count + new.count,
                _best(min, before.min, new.min),
                _best(max, before.max, new.max),
            )
    return new


def _best(choose: Callable[[list[int]], int], *values: int | None) -> int | None:
    known = [value for value in values if value is not None]
    return choose(known) if known else None
