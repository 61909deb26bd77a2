"""Reporters that send metrics at intervals."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from penstock.common.exceptions import ConfigurationError
from penstock.common.redaction import redacted_text
from penstock.common.time import parse_duration_ms
from penstock.jobmaster.metrics.catalogue import Kind
from penstock.jobmaster.metrics.job_metrics import values_of
from penstock.jobmaster.metrics.samples import Sample
from penstock.runtime.metric_reports import HistogramReport

_log = logging.getLogger(__name__)


class PeriodicReporter(ABC):
    """Reports every `interval`, and once more at the end. What fails is logged once, and tried again."""

    def __init__(self, name: str, settings: dict[str, str], read: Callable[[], Iterable[Sample]]) -> None:
        self.name = name
        self._read = read
        self._interval_s = parse_duration_ms(settings.get("interval", "10 s")) / 1000
        if self._interval_s <= 0:
            raise ConfigurationError(f"metrics.reporter.{name}.interval must be positive")
        self._has_failed = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"metrics-{name}", daemon=True)
        self._thread.start()

    @abstractmethod
    def report(self, samples: Iterable[Sample]) -> None:
        """Send these."""

    def close(self) -> None:
        self._closing.set()
        self._thread.join(self._interval_s)

    def _run(self) -> None:
        while not self._closing.wait(self._interval_s):
            self._report_once()
        self._report_once()

    def _report_once(self) -> None:
        try:
            self.report(self._read())
            self._has_failed = False
        except Exception as error:  # Jobs must not suffer from being watched
            if not self._has_failed:
                _log.warning("metrics.reporter.%s: %s", self.name, redacted_text(f"{type(error).__name__}: {error}"))
            self._has_failed = True


class LogReporter(PeriodicReporter):
    """Writes metrics to the log, as Flink's Slf4j reporter does."""

    def report(self, samples: Iterable[Sample]) -> None:
        lines = [f"{_identifier(sample)}: {_shown(sample)}" for sample in samples]
        _log.info("metrics\n%s", "\n".join(lines))


def _identifier(sample: Sample) -> str:
    named = ("job_name", "task_name", "operator_name", "subtask_index")
    return ".".join([*(sample.variables[each] for each in named if each in sample.variables), sample.name])


def _shown(sample: Sample) -> str:
    if sample.kind is Kind.HISTOGRAM and isinstance(sample.value, HistogramReport):
        return ", ".join(f"{part}={value}" for part, value in values_of(sample.value).items())
    return str(sample.value)
