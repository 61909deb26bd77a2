"""The metrics of a job: what all its subtasks have reported, brought together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from penstock.runtime.metric_reports import (
    CounterReport,
    DistributionReport,
    GaugeReport,
    MeterReport,
    MetricReport,
)


class JobMetrics:
    """Counts are summed over subtasks and epochs; of gauges and rates the latest of each subtask counts."""

    def __init__(self) -> None:
        self._totals: dict[str, dict[str, MetricReport]] = {}
        self._latest: defaultdict[tuple[str, str], dict[int, Any]] = defaultdict(dict)

    def add(self, operator_id: str, subtask: int, reports: dict[str, MetricReport]) -> None:
        totals = self._totals.setdefault(operator_id, {})
        for name, report in reports.items():
            if isinstance(report, GaugeReport):
                self._latest[operator_id, name][subtask] = report.value
            elif isinstance(report, MeterReport):
                self._latest[operator_id, name][subtask] = report.rate
            before = totals.get(name)
            totals[name] = report if type(before) is not type(report) else _merged(before, report)

    def by_operator(self) -> dict[str, dict[str, Any]]:
        """Operator id -> metric -> value: a number for a counter, a value by subtask for a gauge, else a dictionary."""
        return {
            operator_id: {name: self._value(operator_id, name, total) for name, total in totals.items()}
            for operator_id, totals in self._totals.items()
        }

    def _value(self, operator_id: str, name: str, total: MetricReport) -> Any:
        match total:
            case CounterReport(count):
                return count
            case MeterReport(count, _):
                return {"count": count, "rate": sum(self._latest[operator_id, name].values())}
            case DistributionReport():
                mean = total.sum / total.count if total.count else None
                return {"sum": total.sum, "count": total.count, "min": total.min, "max": total.max, "mean": mean}
        return dict(sorted(self._latest[operator_id, name].items()))


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
