"""The results of benchmarks.latency as the tables of docs/latency.md."""

from __future__ import annotations

from typing import Any

from benchmarks.markdown import table

BEGIN, END = "<!-- latencies -->", "<!-- end of latencies -->"


def section(document: dict[str, Any]) -> str:
    """One table each of latencies, epochs and restarts, as far as they were measured."""
    tables = [
        _latencies(document["latencies"]),
        _floors(document["epoch_floors"]),
        _restarts(document["restarts"]),
    ]
    notes = [f"{note}." for note in document["notes"]]
    return "\n\n".join([*(each for each in tables if each), *notes])


def _latencies(found: list[dict[str, Any]]) -> str:
    head = ["records/s", "system", "median ms", "95 % below", "99 % below", "most", "CPU ms a second"]
    rows = [
        [
            f"{each['rate']:,}",
            each["system"],
            *(f"{each[name]:,.1f}" for name in ("median_ms", "p95_ms", "p99_ms", "most_ms")),
            _known(each["cpu_ms_per_second"], ",.0f"),
        ]
        for each in found
    ]
    return table(head, rows) if rows else ""


def _floors(found: list[dict[str, Any]]) -> str:
    rows = [
        [str(each["parallelism"]), f"{each['median_ms']:.2f}", f"{each['p95_ms']:.2f}", _known(each["cpu_ms"], ".1f")]
        for each in found
    ]
    return table(["an epoch at parallelism", "median ms", "95 % below", "CPU ms"], rows) if rows else ""


def _restarts(found: list[dict[str, Any]]) -> str:
    rows = [
        [each["system"], f"{each['median_ms']:,.0f}", f"{each['most_ms']:,.0f}", str(each["failures"])]
        for each in found
    ]
    return table(["from an exception to the next result", "median ms", "most", "failures"], rows) if rows else ""


def _known(value: float | None, form: str) -> str:
    return "?" if value is None else format(value, form)
