"""Where metrics are reported: the reporters that `metrics.reporter.*` names, as in Flink."""

from __future__ import annotations

import fnmatch
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError, PenstockError
from penstock.jobmaster.metrics.samples import Sample

_log = logging.getLogger(__name__)

_PREFIX = "metrics.reporter."
_FACTORY = "factory.class"


class Reporter(Protocol):
    def close(self) -> None: ...


def _prometheus(name: str, settings: dict[str, str], read: Callable[[], Iterable[Sample]]) -> Reporter:
    from penstock.jobmaster.metrics.prometheus import PrometheusReporter

    return PrometheusReporter(name, settings, read)


def _opentelemetry(name: str, settings: dict[str, str], read: Callable[[], Iterable[Sample]]) -> Reporter:
    from penstock.jobmaster.metrics.opentelemetry import OpenTelemetryReporter

    return OpenTelemetryReporter(name, settings, read)


def _log_reporter(name: str, settings: dict[str, str], read: Callable[[], Iterable[Sample]]) -> Reporter:
    from penstock.jobmaster.metrics.periodic import LogReporter

    return LogReporter(name, settings, read)


_FACTORIES: dict[str, Callable[..., Reporter]] = {
    "prometheus": _prometheus,
    "opentelemetry": _opentelemetry,
    "slf4j": _log_reporter,
    "org.apache.flink.metrics.prometheus.PrometheusReporterFactory": _prometheus,
    "org.apache.flink.metrics.otel.OpenTelemetryMetricReporterFactory": _opentelemetry,
    "org.apache.flink.metrics.slf4j.Slf4jReporterFactory": _log_reporter,
}


def settings_of(config: Configuration) -> dict[str, dict[str, str]]:
    """The settings of each reporter that `metrics.reporters` names, or of all if it is not set."""
    given: dict[str, dict[str, str]] = {}
    for key, value in config.to_dict().items():
        if key.startswith(_PREFIX):
            name, _, setting = key.removeprefix(_PREFIX).partition(".")
            given.setdefault(name, {})[setting] = value
    chosen = config.get_optional(keys.METRIC_REPORTERS)
    if chosen is None:
        return given
    names = [name.strip() for name in chosen.replace(";", ",").split(",") if name.strip()]
    if unknown := [name for name in names if name not in given]:
        raise ConfigurationError(
            f"{keys.METRIC_REPORTERS.key} names {unknown[0]!r}, which is not configured; set "
            f"{_PREFIX}{unknown[0]}.{_FACTORY}, for example to prometheus"
        )
    return {name: given[name] for name in names}


@dataclass(frozen=True)
class SampleFilter:
    """Which metrics a reporter gets, and with which variables; Flink's `filter.*` and `scope.variables.*` keys."""

    includes: tuple[str, ...] = ("*:*:*",)
    excludes: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset()
    additional: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(settings: dict[str, str]) -> SampleFilter:
        additional = settings.get("scope.variables.additional", "")
        pairs = (pair.partition(":") for pair in additional.split(",") if pair.strip())
        return SampleFilter(
            _rules(settings.get("filter.includes")) or ("*:*:*",),
            _rules(settings.get("filter.excludes")),
            frozenset(_rules(settings.get("scope.variables.excludes"))),
            tuple((name.strip(), value.strip()) for name, _, value in pairs),
        )

    def of_all(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        for sample in samples:
            if any(_fits(rule, sample) for rule in self.includes) and not any(
                _fits(rule, sample) for rule in self.excludes
            ):
                kept = {name: value for name, value in sample.variables.items() if name not in self.hidden}
                yield replace(sample, variables={**kept, **dict(self.additional)})


def _rules(text: str | None) -> tuple[str, ...]:
    return tuple(rule.strip() for rule in (text or "").split(";") if rule.strip())


def _fits(rule: str, sample: Sample) -> bool:
    """A rule is `scope:name,name:kind,kind`; what is left out fits all."""
    scope, name, kind = ([*rule.split(":"), "*", "*"])[:3]
    return (
        fnmatch.fnmatchcase(sample.scope.value.replace("_", "."), scope or "*")
        and any(fnmatch.fnmatchcase(sample.logical, each.strip()) for each in (name or "*").split(","))
        and any(fnmatch.fnmatchcase(sample.kind.value, each.strip()) for each in (kind or "*").split(","))
    )


class Reporters:
    """The reporters of one process. Each is started once, whatever the number of jobs."""

    def __init__(self, read: Callable[[], Iterable[Sample]]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self.started: dict[str, Any] = {}

    def start(self, config: Configuration) -> None:
        """Start those that the configuration names. A failure is logged; jobs run all the same, as in Flink."""
        try:
            chosen = settings_of(config)
        except ConfigurationError as error:
            _log.warning("%s", error)
            return
        with self._lock:
            for name, settings in chosen.items():
                if name not in self.started:
                    self.started[name] = self._start(name, settings)

    def _start(self, name: str, settings: dict[str, str]) -> Reporter | None:
        chosen = SampleFilter.of(settings)
        try:
            return _factory(name, settings)(name, settings, lambda: chosen.of_all(self._read()))
        except (OSError, ValueError, PenstockError) as error:
            _log.warning("no metrics are reported by '%s': %s", name, error)
            return None

    def close(self) -> None:
        with self._lock:
            for reporter in self.started.values():
                if reporter is not None:
                    reporter.close()
            self.started.clear()


def _factory(name: str, settings: dict[str, str]) -> Callable[..., Reporter]:
    wanted = settings.get(_FACTORY, "")
    if wanted not in _FACTORIES:
        raise ConfigurationError(
            f"{_PREFIX}{name}.{_FACTORY} is {wanted!r}; use prometheus, opentelemetry or slf4j, or the names of "
            f"Flink's factories of these"
        )
    return _FACTORIES[wanted]
