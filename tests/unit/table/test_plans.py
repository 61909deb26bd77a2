"""Queries give what Flink gives: each recorded plan runs on the same rows, and its changelog is compared."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from table_plans import CASES, RECORDED

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.table import types as t
from penstock.table.operators import PlanContext, TableSink, translate
from penstock.table.rows import ROW_KINDS
from penstock.table.types import DataType, RowType


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Each table as a file of JSON."""
    folder = tmp_path_factory.mktemp("tables")
    found = {}
    for name, table in RECORDED["tables"].items():
        lines = [json.dumps(dict(zip(table["names"], row, strict=True))) + "\n" for row in table["rows"]]
        (folder / name).write_text("".join(lines), encoding="utf-8")
        found[name] = str(folder / name)
    return found


def runnable(plan: Any, files: dict[str, str]) -> Any:
    """The plan with its tables in files, and with a sink that collects."""
    made = json.loads(json.dumps(plan))
    for node in made["nodes"]:
        if "scanTableSource" in node:
            table = node["scanTableSource"]["table"]
            path = files[table["identifier"].split(".")[-1].strip("`")]
            table["resolvedTable"]["options"] = {"connector": "filesystem", "format": "json", "path": path}
        if "dynamicTableSink" in node:
            node["dynamicTableSink"]["table"]["resolvedTable"]["options"] = {"connector": "collect"}
    return made


def environment(**settings: str) -> StreamExecutionEnvironment:
    chosen = {"execution.target": "inline", "parallelism.default": "1", "pipeline.auto-watermark-interval": "0 ms"}
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({**chosen, **settings}))


def changes_of(rows: Iterable[Any], sink: TableSink) -> list[list[Any]]:
    return [[ROW_KINDS[row[-1]], *row[:-1]] if sink.is_changelog else ["+I", *row] for row in rows]


def changelog(case: Any, files: dict[str, str], **settings: str) -> tuple[list[list[Any]], RowType]:
    plan = runnable(case["plan"], files)
    (sink,) = translate(plan, environment(**settings), PlanContext(config=RECORDED["settings"]))
    assert sink.stream is not None
    with sink.stream.execute_and_collect() as rows:
        return changes_of(rows, sink), sink.row_type


def expected(value: Any, data_type: DataType) -> Any:
    """The value inside a row of what was recorded."""
    match data_type:
        case _ if value is None:
            return None
        case t.DecimalType():
            return Decimal(value)
        case t.ArrayType(element_type=element):
            return [expected(each, element) for each in value]
        case t.MapType(key_type=key, value_type=item):
            return {expected(k, key): expected(v, item) for k, v in value}
        case t.MultisetType(element_type=element):
            return {expected(k, element): v for k, v in value}
        case RowType():
            return tuple(expected(v, each) for v, each in zip(value, data_type.field_types(), strict=True))
    return value


def final(changes: list[list[Any]]) -> Counter[str]:
    """The table after all changes."""
    rows: Counter[str] = Counter()
    for kind, *values in changes:
        rows[repr([sorted(v.items()) if isinstance(v, dict) else v for v in values])] += (
            1 if kind in ("+I", "+U") else -1
        )
    return Counter({row: count for row, count in rows.items() if count})


def flinks(case: Any, row_type: RowType) -> list[list[Any]]:
    types = row_type.field_types()
    return [
        [kind, *[expected(value, data_type) for value, data_type in zip(values, types, strict=True)]]
        for kind, *values in case["changelog"]
    ]


def reads_two_tables(case: Any) -> bool:
    """True if the order of changes is chance, because rows of two sources or branches meet."""
    return case["name"] == "scalar sub-query" or sum("scanTableSource" in node for node in case["plan"]["nodes"]) > 1


SEVERAL_KEYS_AT_ONCE = {
    "cumulate", "hop", "old hop", "old tumble", "tumble keyed", "tumble offset", "window dedup",
    "window grouping sets", "window rows",
}  # fmt: skip
"""A watermark completes windows of several keys, whose order is chance."""


@pytest.mark.parametrize("name", CASES)
def test_changelog_is_flinks(name: str, files: dict[str, str]):
    case = CASES[name]
    ours, row_type = changelog(case, files)
    theirs = flinks(case, row_type)
    if reads_two_tables(case):
        assert final(ours) == final(theirs)
    elif name in SEVERAL_KEYS_AT_ONCE:
        assert Counter(map(repr, ours)) == Counter(map(repr, theirs))
    else:
        assert ours == theirs


LATE = {9, 14}
"""The rows of `bids` that come late, for windows or for OVER."""
IN_ORDER = [name for name in CASES if " by proctime" not in name and not name.startswith("limit")]
"""Cases whose result does not depend on the order in which rows of different sources arrive."""


@pytest.fixture(scope="module")
def files_in_time(files: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The tables without the rows that are late, because with several subtasks that is chance."""
    lines = Path(files["bids"]).read_text(encoding="utf-8").splitlines(keepends=True)
    bids = tmp_path_factory.mktemp("in-time") / "bids"
    bids.write_text("".join(line for number, line in enumerate(lines) if number not in LATE), encoding="utf-8")
    return {**files, "bids": str(bids)}


@pytest.mark.parametrize("name", IN_ORDER)
def test_final_table_does_not_depend_on_parallelism(name: str, files_in_time: dict[str, str]):
    alone, _ = changelog(CASES[name], files_in_time)
    together, _ = changelog(CASES[name], files_in_time, **{"parallelism.default": "3"})
    assert final(together) == final(alone)
