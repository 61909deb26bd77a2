"""Sends metrics by OpenTelemetry's own exporters (`pip install 'penstock[opentelemetry]'`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from penstock.common.exceptions import ConfigurationError
from penstock.common.optional_packages import optional_package
from penstock.common.time import parse_duration_ms
from penstock.jobmaster.metrics.catalogue import DEFINED, Kind
from penstock.jobmaster.metrics.job_metrics import values_of
from penstock.jobmaster.metrics.periodic import PeriodicReporter
from penstock.jobmaster.metrics.samples import Sample
from penstock.runtime.metric_reports import HistogramReport

_EXPORTERS = {
    "http": "opentelemetry.exporter.otlp.proto.http.metric_exporter",
    "grpc": "opentelemetry.exporter.otlp.proto.grpc.metric_exporter",
}


class OpenTelemetryReporter(PeriodicReporter):
    """Exports all metrics every `interval`, over `exporter.protocol` (gRPC or HTTP) to `exporter.endpoint`."""

    def __init__(self, name: str, settings: dict[str, str], read: Callable[[], Iterable[Sample]]) -> None:
        self._exporter = _exporter(name, settings)
        self._export = _sdk("opentelemetry.sdk.metrics.export")
        resources = _sdk("opentelemetry.sdk.resources")
        attributes = {"service.name": settings.get("service.name", "penstock")}
        if "service.version" in settings:
            attributes["service.version"] = settings["service.version"]
        self._resource = resources.Resource.create(attributes)
        self._scope = _sdk("opentelemetry.sdk.util.instrumentation").InstrumentationScope("penstock")
        self._began_ns = time.time_ns()
        super().__init__(name, settings, read)

    def report(self, samples: Iterable[Sample]) -> None:
        outcome = self._exporter.export(self._data(samples))
        if outcome is not self._export.MetricExportResult.SUCCESS:
            raise OSError(f"metrics.reporter.{self.name}: the exporter could not send all metrics")

    def close(self) -> None:
        super().close()
        self._exporter.shutdown()

    def _data(self, samples: Iterable[Sample]) -> Any:
        """The exporter's own values. Names come and go with jobs, which instruments of a meter cannot."""
        export, now_ns = self._export, time.time_ns()
        points: dict[tuple[str, Kind], list[Any]] = {}
        meanings: dict[str, str] = {}
        for sample in samples:
            for name, value in _numbers(sample):
                definition = DEFINED.get((sample.scope, sample.logical))
                meanings[name] = "" if definition is None else definition.meaning
                point = export.NumberDataPoint(dict(sample.variables), self._began_ns, now_ns, value)
                points.setdefault((name, sample.kind), []).append(point)
        metrics = [
            export.Metric(name, meanings[name], "", self._points(kind, of_name))
            for (name, kind), of_name in points.items()
        ]
        scoped = export.ScopeMetrics(self._scope, metrics, "")
        return export.MetricsData([export.ResourceMetrics(self._resource, [scoped], "")])

    def _points(self, kind: Kind, points: list[Any]) -> Any:
        if kind is Kind.COUNTER:
            return self._export.Sum(points, self._export.AggregationTemporality.CUMULATIVE, is_monotonic=False)
        return self._export.Gauge(points)


def _numbers(sample: Sample) -> Iterable[tuple[str, float]]:
    name = f"flink.{sample.scope.value.replace('_', '.')}.{sample.logical}"
    if isinstance(sample.value, HistogramReport):
        yield from ((f"{name}.{part}", value) for part, value in values_of(sample.value).items())
    elif isinstance(sample.value, int | float):
        yield name, sample.value


def _sdk(module: str) -> Any:
    return optional_package(module, "opentelemetry", "the OpenTelemetry reporter of metrics")


def _exporter(name: str, settings: dict[str, str]) -> Any:
    endpoint = settings.get("exporter.endpoint")
    if endpoint is None:
        raise ConfigurationError(f"set metrics.reporter.{name}.exporter.endpoint to the address of the collector")
    protocol = settings.get("exporter.protocol", "gRPC").lower()
    if protocol not in _EXPORTERS:
        raise ConfigurationError(f"metrics.reporter.{name}.exporter.protocol: {protocol!r} is neither gRPC nor HTTP")
    timeout = parse_duration_ms(settings.get("exporter.timeout", "10 s")) / 1000
    return _sdk(_EXPORTERS[protocol]).OTLPMetricExporter(endpoint=endpoint, timeout=timeout)
