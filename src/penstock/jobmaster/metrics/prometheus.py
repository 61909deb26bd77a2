"""Metrics in Prometheus' text format, and a port where Prometheus finds them.

Names and labels are those of Flink's reporter, so that dashboards made for Flink work.
"""

from __future__ import annotations

import logging
import math
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from penstock.common.exceptions import ConfigurationError
from penstock.jobmaster.metrics.catalogue import DEFINED, Kind
from penstock.jobmaster.metrics.samples import Sample
from penstock.runtime.metric_reports import QUANTILES, HistogramReport

_log = logging.getLogger(__name__)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_UNFIT = re.compile(r"[^a-zA-Z0-9:_]")
_UNFIT_FOR_LABELS = re.compile(r"[^a-zA-Z0-9_]")
DEFAULT_PORTS = "9249"
"""Flink's."""


def metric_name(sample: Sample) -> str:
    return _UNFIT.sub("_", f"flink_{sample.scope.value}_{sample.logical}")


def as_text(samples: Iterable[Sample]) -> str:
    """All that are numbers. Each name has one block, as the format wants it."""
    blocks: dict[str, list[str]] = {}
    for sample in samples:
        if sample.kind is Kind.TEXT:
            continue
        name = metric_name(sample)
        lines = list(_lines(name, sample))
        if lines:
            blocks.setdefault(name, _head(name, sample)).extend(lines)
    return "".join(f"{line}\n" for lines in blocks.values() for line in lines)


def _head(name: str, sample: Sample) -> list[str]:
    """As with Flink's reporter counters are gauges, too: a user's counter may count down."""
    definition = DEFINED.get((sample.scope, sample.logical))
    kind = "summary" if isinstance(sample.value, HistogramReport) else "gauge"
    help_text = [] if definition is None else [f"# HELP {name} {definition.meaning}"]
    return [*help_text, f"# TYPE {name} {kind}"]


def _lines(name: str, sample: Sample) -> Iterable[str]:
    value = sample.value
    if isinstance(value, HistogramReport):
        for quantile, at in zip(QUANTILES, value.quantiles, strict=True):
            yield f"{name}{_labels({**sample.variables, 'quantile': str(quantile)})} {_number(at)}"
        yield f"{name}_count{_labels(sample.variables)} {value.count}"
    elif isinstance(value, int | float):
        yield f"{name}{_labels(sample.variables)} {_number(value)}"


def _labels(variables: Mapping[str, str]) -> str:
    named = {_label_name(name): _escaped(value) for name, value in variables.items()}
    shown = ",".join(f'{name}="{value}"' for name, value in named.items())
    return f"{{{shown}}}" if shown else ""


def _label_name(name: str) -> str:
    """Two underscores at the beginning are Prometheus' own, and a digit cannot be there."""
    fit = _UNFIT_FOR_LABELS.sub("_", name)
    return re.sub(r"\A_{2,}", "_", fit) if fit[:1].isalpha() or fit[:1] == "_" else f"_{fit}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return str(value)


class PrometheusReporter:
    """Answers on the first free port of `port`, which may be a range, on this machine alone by default."""

    def __init__(self, name: str, settings: dict[str, str], read: Callable[[], Iterable[Sample]]) -> None:
        self._server = _bound(name, settings.get("port", DEFAULT_PORTS), settings.get("bind-address", "127.0.0.1"))
        self._server.read = read  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, name=f"metrics-{name}", daemon=True)
        self._thread.start()
        host, port = self._server.server_address[:2]
        _log.info("metrics for Prometheus: http://%s:%s/metrics", host, port)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _bound(name: str, ports: str, host: str) -> ThreadingHTTPServer:
    taken: list[str] = []
    for part in ports.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            raise ConfigurationError(
                f"metrics.reporter.{name}.port: {ports!r} is neither a port nor a range such as 9249-9260"
            )
        for port in range(int(first), int(last or first) + 1):
            try:
                return ThreadingHTTPServer((host, port), _Handler)
            except OSError as error:
                taken.append(f"{port} ({error.strerror})")
    raise OSError(
        f"metrics.reporter.{name}: cannot listen on {host}, port {', '.join(taken)}; give it a range of ports"
    )


class _Handler(BaseHTTPRequestHandler):
    timeout = 30

    def do_GET(self) -> None:
        if self.path.partition("?")[0] not in ("/", "/metrics"):
            self.send_error(404)
            return
        body = as_text(self.server.read()).encode()  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests that come every few seconds must not fill a log."""
