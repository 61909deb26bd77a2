"""Plans that Flink made, with the rows of their tables and the changelogs that it gave; small plans by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.table.connectors.formats.json import JsonDecoder
from penstock.table.connectors.options import Options
from penstock.table.connectors.tables import TableSchema
from penstock.table.operators import PlanContext, TableSink, translate

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "pyflink" / "plan_results.json").read_text(encoding="utf-8")
)
CASES: dict[str, Any] = {case["name"]: case for case in RECORDED["cases"]}


def schema_of(name: str) -> TableSchema:
    for case in CASES.values():
        for node in case["plan"]["nodes"]:
            table = node.get("scanTableSource", {}).get("table", {})
            if table.get("identifier", "").endswith(f"`{name}`"):
                return TableSchema.of(table["resolvedTable"])
    raise LookupError(name)


def internal_rows(name: str) -> list[tuple[Any, ...]]:
    """The rows of a table as operators see them."""
    table = RECORDED["tables"][name]
    decoder = JsonDecoder(schema_of(name).physical, Options({}, name))
    return [
        decoder.decode(json.dumps(dict(zip(table["names"], row, strict=True))).encode())[0] for row in table["rows"]
    ]


COLUMNS = {"id": "INT NOT NULL", "name": "STRING", "price": "DECIMAL(5, 2)", "at": "TIMESTAMP(3)"}


def row_type(columns: dict[str, str]) -> str:
    return "ROW<" + ", ".join(f"`{name}` {data_type}" for name, data_type in columns.items()) + ">"


def resolved(options: dict[str, str], columns: dict[str, str], **more: Any) -> dict[str, Any]:
    described = [{"name": name, "dataType": data_type} for name, data_type in columns.items()]
    return {"schema": {"columns": described, **more}, "options": options, "partitionKeys": more.get("partition", [])}


def copy_plan(
    source: dict[str, str],
    sink: dict[str, str],
    columns: dict[str, str] = COLUMNS,
    key: list[str] | None = None,
    partition: tuple[str, ...] = (),
) -> dict[str, Any]:
    """INSERT INTO sink SELECT * FROM source."""
    primary = {"primaryKey": {"type": "PRIMARY_KEY", "columns": key}} if key else {}
    target = resolved(sink, columns, **primary)
    target["partitionKeys"] = list(partition)
    scan = {"table": {"identifier": "`c`.`d`.`src`", "resolvedTable": resolved(source, columns)}}
    return {
        "nodes": [
            {
                "id": 7,
                "type": "stream-exec-table-source-scan_2",
                "scanTableSource": scan,
                "outputType": row_type(columns),
                "description": "TableSourceScan(table=[[c, d, src]])",
            },
            {
                "id": 8,
                "type": "stream-exec-sink_2",
                "dynamicTableSink": {"table": {"identifier": "`c`.`d`.`snk`", "resolvedTable": target}},
                "inputChangelogMode": ["INSERT"],
                "outputType": row_type(columns),
                "description": "Sink(table=[c.d.snk])",
            },
        ],
        "edges": [{"source": 7, "target": 8}],
    }


def environment() -> StreamExecutionEnvironment:
    config = Configuration.from_dict({"execution.target": "inline", "parallelism.default": "1"})
    return StreamExecutionEnvironment.get_execution_environment(config)


def run(plan: dict[str, Any], **context: Any) -> None:
    env = environment()
    translate(plan, env, PlanContext(**context))
    env.execute()


def collected(plan: dict[str, Any], **context: Any) -> list[Any]:
    sink: TableSink
    (sink,) = translate(plan, environment(), PlanContext(**context))
    assert sink.stream is not None
    with sink.stream.execute_and_collect() as rows:
        return list(rows)
