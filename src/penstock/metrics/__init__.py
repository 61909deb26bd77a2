"""Metrics that user functions register through `runtime_context.get_metrics_group()`."""

from __future__ import annotations

from penstock.metrics.metricbase import Counter, Distribution, Gauge, Meter, Metric, MetricGroup

__all__ = ["Counter", "Distribution", "Gauge", "Meter", "Metric", "MetricGroup"]
