"""The state of compiled plans: a job that is restored goes on as if nothing was, also at another parallelism."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from typing import Any

import pytest
from table_plans import CASES, RECORDED, internal_rows

from penstock.table.operators import PlanContext, translate
from penstock.testing.job_in_epochs import JobInEpochs

NEEDS_CLOCK = {"over proctime", "values", "values expression"}
"""Cases without a table, or by the clock."""
WITH_STATE = ("aggregate", "window", "join", "deduplicate", "rank", "limit", "sort")
STATEFUL = [
    name
    for name, case in CASES.items()
    if name not in NEEDS_CLOCK and any(word in node["type"] for node in case["plan"]["nodes"] for word in WITH_STATE)
]


LATE = [internal_rows("bids")[9], internal_rows("bids")[14]]
"""Rows that come late, for windows or for OVER: with several subtasks that is chance."""


def is_of(name: str, element: Any) -> bool:
    return bool(element[0] == name)


def row_of(element: Any) -> Any:
    return element[1]


def build(case: Any, stream: Any) -> Any:
    """The job of a plan whose tables are parts of one stream of (table, row)."""
    plan = json.loads(json.dumps(case["plan"]))
    streams = {
        name: stream.filter(partial(is_of, name)).uid(f"filter {name}").map(row_of).uid(f"rows {name}")
        for name in RECORDED["tables"]
    }
    for node in plan["nodes"]:
        if "scanTableSource" in node:
            table = node["scanTableSource"]["table"]
            name = table["identifier"].split(".")[-1].strip("`")
            table["resolvedTable"]["options"] = {"connector": "penstock-stream", "stream": name}
        if "dynamicTableSink" in node:
            node["dynamicTableSink"]["table"]["resolvedTable"]["options"] = {"connector": "collect"}
    env = stream.get_execution_environment()
    env.get_config().set_auto_watermark_interval(0)
    (sink,) = translate(plan, env, PlanContext(config=RECORDED["settings"], streams=streams))
    return sink.stream


def elements() -> list[Any]:
    rows = {name: internal_rows(name) for name in RECORDED["tables"]}
    found = []
    for number in range(max(map(len, rows.values()))):
        found += [(name, rows[name][number]) for name in rows if number < len(rows[name])]
    return found


def outputs(jobs: list[tuple[JobInEpochs, list[list[Any]]]], ends: bool = True) -> Counter[str]:
    """What comes out of jobs, one after the other, each of which is given some epochs."""
    found: Counter[str] = Counter()
    for last, (job, epochs) in enumerate(jobs, start=1):
        for number, records in enumerate(epochs, start=1):
            is_last = ends and last == len(jobs) and number == len(epochs)
            found.update(job.epoch(records, is_last=is_last))
        job.close()
    return found


def parts(records: list[Any], size: int) -> list[list[Any]]:
    return [records[begin : begin + size] for begin in range(0, len(records), size)]


@pytest.mark.parametrize("name", STATEFUL)
def test_restoring_after_every_epoch_changes_nothing(name: str):
    make = partial(build, CASES[name])
    epochs = parts(elements(), 4)
    assert outputs([(JobInEpochs(make, rebuilds=True), epochs)]) == outputs([(JobInEpochs(make), epochs)])


def final(changes: Counter[str]) -> Counter[str]:
    """The table after all changes; the last item of a row is its kind."""
    rows: Counter[str] = Counter()
    for text, count in changes.items():
        row, _, kind = text.removesuffix(")").rpartition(", ")
        rows[row] += count if kind in ("0", "2") else -count
    return Counter({row: count for row, count in rows.items() if count})


@pytest.mark.parametrize("name", ["group", "full join of groups", "top n", "tumble keyed", "session", "over rows"])
def test_a_restored_job_may_have_another_parallelism(name: str):
    make = partial(build, CASES[name])
    epochs = parts([(table, row) for table, row in elements() if row not in LATE], 4)
    alone = outputs([(JobInEpochs(make), epochs)])
    before = JobInEpochs(make, 1)
    found = outputs([(before, epochs[:3])], ends=False)
    after = JobInEpochs(make, 3, restored=before.checkpoint)
    found += outputs([(after, epochs[3:])])
    if name in ("group", "full join of groups", "top n"):  # Several subtasks may take the rows in another order.
        assert final(found) == final(alone)
    else:
        assert found == alone
