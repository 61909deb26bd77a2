"""Queries give what Flink gives: each recorded plan runs on the same rows, and its changelog is compared."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.table import types as t
from penstock.table.operators import PlanContext, translate
from penstock.table.operators.rows import ROW_KINDS
from penstock.table.types import DataType, RowType

RECORDED = json.loads((Path(__file__).parents[2] / "pyflink" / "plan_results.json").read_text(encoding="utf-8"))
CASES = {case["name"]: case for case in RECORDED["cases"]}


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


def changelog(case: Any, files: dict[str, str], **settings: str) -> list[list[Any]]:
    config = Configuration.from_dict(
        {"execution.target": "inline", "parallelism.default": "1", "pipeline.auto-watermark-interval": "0 ms", **settings}
    )
    env = StreamExecutionEnvironment.get_execution_environment(config)
    (sink,) = translate(runnable(case["plan"], files), env, PlanContext(config=RECORDED["settings"]))
    assert sink.stream is not None
    with sink.stream.execute_and_collect() as rows:
        return [
            [ROW_KINDS[row[-1]], *row[:-1]] if sink.is_changelog else ["+I", *row] for row in map(tuple, rows)
        ], sink.row_type  # type: ignore[return-value]


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
        rows[repr(values)] += 1 if kind in ("+I", "+U") else -1
    return Counter({row: count for row, count in rows.items() if count})


def compare(case: Any, files: dict[str, str], **settings: str) -> None:
    ours, row_type = changelog(case, files, **settings)  # type: ignore[misc]
    types = row_type.field_types()
    flinks = [
        [kind, *[expected(value, data_type) for value, data_type in zip(values, types, strict=True)]]
        for kind, *values in case["changelog"]
    ]
    if case["name"] in ORDERED:
        assert ours == flinks
    elif case["name"] in FINAL:
        assert final(ours) == final(flinks)
    else:
        assert Counter(map(repr, ours)) == Counter(map(repr, flinks))


ORDERED: set[str] = set()
FINAL: set[str] = set()


@pytest.mark.parametrize("name", CASES)
def test_changelog_is_flinks(name: str, files: dict[str, str]):
    compare(CASES[name], files)
