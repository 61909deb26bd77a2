"""The metrics of a job and of its vertices.

A document holds everything that is known; what a request selects (`get`, `agg`, `subtasks`) is cut from it afterwards.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from penstock.jobmaster.dispatcher import RunningJob
from penstock.jobmaster.metrics import samples
from penstock.jobmaster.metrics.catalogue import Scope
from penstock.jobmaster.metrics.job_metrics import values_of
from penstock.rest.routes.errors import bad_request
from penstock.rest.routes.lookup import find_vertex
from penstock.runtime.metric_reports import HistogramReport

_UNFIT = re.compile(r"[ .:,]")
_AGGREGATIONS = ("min", "max", "avg", "sum", "skew")
_WATERMARK = "currentInputWatermark"


def job_metrics(job: RunningJob) -> dict[str, Any]:
    return {name: value for sample in samples.of_job_alone(job.master) for name, value in _values(sample)}


def _values(sample: samples.Sample) -> Iterator[tuple[str, Any]]:
    """A histogram is reported as several values, as in Flink."""
    if isinstance(sample.value, HistogramReport):
        yield from ((f"{sample.name}_{part}", value) for part, value in values_of(sample.value).items())
    else:
        yield sample.name, sample.value


def vertex_metrics(job: RunningJob, vertex_id: str) -> dict[str, dict[str, Any]]:
    """By metric id within the vertex and by subtask."""
    known: dict[str, dict[str, Any]] = {}
    for sample in samples.of_vertex(job.master, find_vertex(job, vertex_id)):
        name = sample.name
        if sample.scope is Scope.OPERATOR:
            name = f"{_UNFIT.sub('_', sample.variables['operator_name'])}.{name}"
        known.setdefault(name, {"subtasks": {}})["subtasks"][sample.variables["subtask_index"]] = sample.value
    return known


def watermarks(job: RunningJob, vertex_id: str) -> list[dict[str, str]]:
    subtasks = vertex_metrics(job, vertex_id).get(_WATERMARK, {}).get("subtasks", {})
    return [{"id": f"{subtask}.{_WATERMARK}", "value": text(value)} for subtask, value in subtasks.items()]


def selected(metrics: Mapping[str, Any], get: str | None) -> list[dict[str, str]]:
    """Flink's answer: ids only, or the values of those that `get` names."""
    if get is None:
        return [{"id": name} for name in metrics]
    return [{"id": name, "value": text(metrics[name])} for name in get.split(",") if name in metrics]


def by_subtask(facts: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Ids as in Flink: `<subtask>.<operator>.<metric>`."""
    return {
        f"{subtask}.{name}": value
        for name, fact in facts.items()
        for subtask, value in fact.get("subtasks", {}).items()
    }


def aggregated(facts: Mapping[str, dict[str, Any]], get: str | None, agg: str | None) -> list[dict[str, Any]]:
    """Over all subtasks; texts have no aggregations."""
    if get is None:
        return [{"id": name} for name in facts]
    wanted = _AGGREGATIONS[:-1] if agg is None else tuple(agg.split(","))
    if unknown := set(wanted) - set(_AGGREGATIONS):
        raise bad_request(f"agg={','.join(sorted(unknown))} is not known; use {', '.join(_AGGREGATIONS)}")
    return [{"id": name, **_aggregate(facts[name], wanted)} for name in get.split(",") if name in facts]


def _aggregate(fact: dict[str, Any], wanted: Iterable[str]) -> dict[str, Any]:
    values = [value for value in fact.get("subtasks", {}).values() if _is_number(value)]
    known: dict[str, Any] = {}
    if values:
        average = sum(values) / len(values)
        known = {"min": min(values), "max": max(values), "avg": average, "sum": sum(values), "skew": _skew(values)}
    return {name: known[name] for name in wanted if name in known}


def _skew(values: list[float]) -> float:
    """Per cent: the mean deviation from the average, in relation to it (Flink's measure)."""
    average = sum(values) / len(values)
    if average == 0:
        return 0.0
    return min(100.0, 100 * sum(abs(value - average) for value in values) / len(values) / average)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
