"""Records how Flink writes rows: `python record_formats.py results.json`, where apache-flink is.

A table with NULLs and extremes is written to files in each format, and printed.
"""

# ruff: noqa: E501
from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment
from record_expressions import COLUMNS, ROWS

MORE = {"ar": "ARRAY<INT>", "ma": "MAP<STRING, INT>", "ro": "ROW<x INT, y STRING>", "bi": "BYTES"}
MORE_ROWS = [
    [[1, None, 3], {"k": 1}, {"x": 1, "y": "a,b"}, "AQL/"],
    [[], {}, {"x": None, "y": 'q"q'}, ""],
    [None, None, None, None],
    [None, None, None, None],
    [[7], {"a b": None}, {"x": 5, "y": ""}, "aGVsbG8="],
    [[-1, 0], {"z": 26}, {"x": 0, "y": "é"}, "AA=="],
]
FORMATS = {
    "json": ("json", {}, True),
    "json ISO": ("json", {"timestamp-format.standard": "ISO-8601", "encode.ignore-null-fields": "true", "encode.decimal-as-plain-number": "true"}, True),
    "csv": ("csv", {}, False),
    "csv with options": ("csv", {"field-delimiter": "|", "quote-character": "'", "null-literal": "n/a"}, False),
    "debezium-json": ("debezium-json", {}, True),
    "canal-json": ("canal-json", {}, True),
    "maxwell-json": ("maxwell-json", {}, True),
    "ogg-json": ("ogg-json", {}, True),
}  # fmt: skip


def main(target: str) -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", "1")
    tables.get_config().set("table.local-time-zone", "Europe/Amsterdam")
    columns = {**COLUMNS, **MORE}
    rows = [[number, *row, *more] for number, (row, more) in enumerate(zip(ROWS, MORE_ROWS, strict=True))]
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
        for row in rows:
            file.write(json.dumps(dict(zip(columns, row, strict=True))) + "\n")
    ddl = ", ".join(f"{name} {data_type}" for name, data_type in columns.items())
    tables.execute_sql(
        f"CREATE TABLE src ({ddl}) WITH ('connector'='filesystem', 'format'='json', 'json.timestamp-format.standard'='SQL', 'path'='{file.name}')"
    )
    found = {}
    for number, (name, (kind, options, has_maps)) in enumerate(FORMATS.items()):
        chosen = [column for column in columns if has_maps or column != "ma"]
        fields = ", ".join(f"{column} {columns[column]}" for column in chosen)
        folder = tempfile.mkdtemp()
        more = "".join(f", '{kind}.{key}'='{value.replace(chr(39), chr(39) * 2)}'" for key, value in options.items())
        tables.execute_sql(
            f"CREATE TABLE sink{number} ({fields}) WITH ('connector'='filesystem', 'format'='{kind}', 'path'='{folder}'{more})"
        )
        tables.execute_sql(f"INSERT INTO sink{number} SELECT {', '.join(chosen)} FROM src").wait()
        lines = [
            line
            for part in sorted(Path(folder).rglob("*part*"))
            for line in part.read_text(encoding="utf-8").splitlines()
        ]
        found[name] = {"format": kind, "options": options, "columns": chosen, "lines": lines}
    java_rows, printed = tables._j_tenv.executeSql("SELECT * FROM src").collect(), []
    while java_rows.hasNext():
        printed.append(java_rows.next().toString())
    result = {"columns": columns, "rows": rows, "formats": found, "printed": printed}
    Path(target).write_text(json.dumps(result, indent=1, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
