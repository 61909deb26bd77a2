"""How one attempt of a subtask is reported: its times, its states, what went through it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from penstock.graph.execution_graph import Execution, ExecutionState, ExecutionVertex

UNKNOWN_TIME = -1
"""Flink's own value for a time that is not known, or not yet."""


def now_ms() -> int:
    return int(time.time() * 1000)


def start_time(execution: Execution) -> int:
    """When the attempt was deployed, as in Flink."""
    return execution.entered_ms.get(ExecutionState.DEPLOYING, UNKNOWN_TIME)


def end_time(execution: Execution) -> int:
    return execution.entered_ms.get(execution.state, UNKNOWN_TIME) if execution.state.is_terminal else UNKNOWN_TIME


def times(start: int, end: int) -> dict[str, int]:
    duration = UNKNOWN_TIME if start == UNKNOWN_TIME else (now_ms() if end == UNKNOWN_TIME else end) - start
    return {"start-time": start, "end-time": end, "duration": duration}


def times_of_all(executions: Iterable[Execution]) -> dict[str, int]:
    """From the first start to the last end, if all have ended."""
    executions = list(executions)
    starts = [start for each in executions if (start := start_time(each)) != UNKNOWN_TIME]
    ends = [end_time(each) for each in executions]
    has_ended = bool(ends) and UNKNOWN_TIME not in ends
    return times(min(starts, default=UNKNOWN_TIME), max(ends) if has_ended else UNKNOWN_TIME)


def status_durations(execution: Execution) -> dict[str, int]:
    """How long the attempt was, or has been, in each state that it does not end in; -1 for states it never had."""
    entered = sorted(execution.entered_ms.items(), key=lambda item: item[1])
    left = [at for _, at in entered[1:]] + [now_ms()]
    # An attempt that has just been made has entered no state.
    spent = {state: until - at for (state, at), until in zip(entered, left, strict=False)}
    return {state.value: spent.get(state, UNKNOWN_TIME) for state in ExecutionState if not state.is_terminal}


def io_metrics(executions: Iterable[Execution]) -> dict[str, Any]:
    """What went through all attempts; as in Flink, a number that is not wholly known is marked as not complete."""
    facts = [each.facts for each in executions]
    is_known = bool(facts) and all(each.epochs > 0 for each in facts)
    sums = {
        "read-bytes": sum(each.bytes_in for each in facts),
        "write-bytes": sum(each.bytes_out for each in facts),
        "read-records": sum(each.records_in for each in facts),
        "write-records": sum(each.records_out for each in facts),
    }
    marked = {
        key: value for name, count in sums.items() for key, value in ((name, count), (f"{name}-complete", is_known))
    }
    return {**marked, "accumulated-busy-time": sum(each.busy_ms for each in facts)}


def attempt(subtask: ExecutionVertex, execution: Execution) -> dict[str, Any]:
    return {
        "subtask": subtask.subtask,
        "status": execution.state.value,
        "attempt": execution.attempt,
        "endpoint": execution.facts.host,
        **times(start_time(execution), end_time(execution)),
        "metrics": io_metrics([execution]),
        "taskmanager-id": None,
        "status-duration": status_durations(execution),
    }
