"""Plans that Flink's planner made, with the rows of their tables and the changelogs that Flink gave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from penstock.table.connectors.formats.json import JsonDecoder
from penstock.table.connectors.options import Options
from penstock.table.connectors.tables import TableSchema

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
