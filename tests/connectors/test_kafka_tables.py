"""Tables in Kafka: whole jobs on plans, on the inline target."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.table.operators import PlanContext, translate

COLUMNS = {"id": "INT", "name": "STRING", "ts": "TIMESTAMP(3)"}
WATERMARK = {
    "kind": "CALL", "syntax": "SPECIAL", "internalName": "$-$1", "type": "TIMESTAMP(3)",
    "operands": [
        {"kind": "INPUT_REF", "inputIndex": 2, "type": "TIMESTAMP(3)"},
        {"kind": "LITERAL", "value": "1000", "type": "INTERVAL SECOND(6) NOT NULL"},
    ],
}  # fmt: skip


def row_type(columns: dict[str, str]) -> str:
    return "ROW<" + ", ".join(f"`{name}` {data_type}" for name, data_type in columns.items()) + ">"


def plan(source: dict[str, str], sink: dict[str, str], key: list[str] | None = None, metadata: Any = None) -> Any:
    """INSERT INTO sink SELECT * FROM source, with metadata columns of the source behind the others."""
    columns = [{"name": name, "dataType": data_type} for name, data_type in COLUMNS.items()]
    schema = {"columns": columns, **({"primaryKey": {"type": "PRIMARY_KEY", "columns": key}} if key else {})}
    produced = row_type({**COLUMNS, **(metadata or {})})
    watermark = {"watermarkExpr": WATERMARK, "idleTimeoutMillis": -1, "producedType": row_type(COLUMNS)}
    abilities = [{"type": "WatermarkPushDown", **watermark}]
    if metadata:
        abilities.insert(0, {"type": "ReadingMetadata", "metadataKeys": list(metadata), "producedType": produced})
    scanned = {"schema": copy.deepcopy(schema), "options": source}
    return {
        "nodes": [
            {
                "id": 1, "type": "stream-exec-table-source-scan_2", "outputType": produced, "description": "Scan(src)",
                "scanTableSource": {
                    "table": {"identifier": "`c`.`d`.`src`", "resolvedTable": scanned}, "abilities": abilities,
                },
            },
            {
                "id": 2, "type": "stream-exec-sink_2", "outputType": produced, "description": "Sink(snk)",
                "inputChangelogMode": ["INSERT", "UPDATE_AFTER", "DELETE"],
                "dynamicTableSink": {
                    "table": {"identifier": "`c`.`d`.`snk`", "resolvedTable": {"schema": schema, "options": sink}},
                },
            },
        ],
        "edges": [{"source": 1, "target": 2}],
    }  # fmt: skip


@pytest.fixture
def options(kafka) -> dict[str, str]:
    return {
        "connector": "kafka",
        "properties.bootstrap.servers": kafka.bootstrap_servers,
        "scan.startup.mode": "earliest-offset",
        "scan.bounded.mode": "latest-offset",
    }


@pytest.fixture
def inline_env() -> StreamExecutionEnvironment:
    config = Configuration.from_dict({"execution.target": "inline", "parallelism.default": "1"})
    return StreamExecutionEnvironment.get_execution_environment(config)


def collected(env, described):
    (sink,) = translate(described, env, PlanContext())
    with sink.stream.execute_and_collect() as rows:
        return sorted(rows, key=repr)


MESSAGES = [
    {"id": 1, "name": "ann", "ts": "2024-01-01 00:00:01"},
    {"id": 2, "name": None, "ts": "2024-01-01 00:00:02"},
]
ROWS = [(1, "ann", 1704067201_000_000_000), (2, None, 1704067202_000_000_000)]


def test_json_is_read_with_metadata(kafka, options, inline_env):
    topic = kafka.topics.new()
    kafka.topics.fill(topic, [("k", json.dumps(each)) for each in MESSAGES], timestamp_of=lambda value: 5)
    time = "TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL"
    metadata = {"partition": "INT NOT NULL", "offset": "BIGINT NOT NULL", "timestamp": time}
    described = plan({**options, "topic": topic, "format": "json"}, {"connector": "collect"}, metadata=metadata)
    assert collected(inline_env, described) == [(*row, 0, n, 5_000_000) for n, row in enumerate(ROWS)]


def test_csv_of_one_topic_becomes_json_of_another(kafka, options, inline_env):
    source, target = kafka.topics.new(), kafka.topics.new()
    kafka.topics.fill(source, ["1,ann,2024-01-01 00:00:01", "2,,2024-01-01 00:00:02"])
    written = {**options, "topic": target, "format": "json", "key.format": "json", "key.fields": "id"}
    translate(plan({**options, "topic": source, "format": "csv"}, written), inline_env)
    inline_env.execute()
    found = kafka.topics.records(target)
    assert [each.key for each in found] == ['{"id":1}', '{"id":2}']
    assert [json.loads(each.value)["name"] for each in found] == ["ann", ""]


def test_keys_hold_columns(kafka, options, inline_env):
    topic = kafka.topics.new()
    kafka.topics.fill(topic, [('{"id": 7}', '{"name": "x", "ts": "2024-01-01 00:00:01"}')])
    source = {
        **options, "topic": topic, "value.format": "json", "key.format": "json", "key.fields": "id",
        "value.fields-include": "EXCEPT_KEY",
    }  # fmt: skip
    assert collected(inline_env, plan(source, {"connector": "collect"})) == [(7, "x", 1704067201_000_000_000)]


def test_upserts_are_written_and_read(kafka, options, inline_env, tmp_path):
    topic = kafka.topics.new()
    one, two = MESSAGES
    changes = [
        {"before": None, "after": one, "op": "c"},
        {"before": None, "after": two, "op": "c"},
        {"before": one, "after": {**one, "name": "eve"}, "op": "u"},
        {"before": two, "after": None, "op": "d"},
    ]
    (tmp_path / "changes").write_text("".join(json.dumps(each) + "\n" for each in changes))
    source = {"connector": "filesystem", "format": "debezium-json", "path": str(tmp_path / "changes")}
    upserts = {**options, "connector": "upsert-kafka", "topic": topic, "key.format": "json", "value.format": "json"}
    translate(plan(source, upserts, key=["id"]), inline_env)
    inline_env.execute()
    values = [(each.key, each.value and json.loads(each.value)["name"]) for each in kafka.topics.records(topic)]
    first, second = '{"id":1}', '{"id":2}'
    assert [value for key, value in values if key == first] == ["ann", None, "eve"]
    assert [value for key, value in values if key == second] == [None, None]
    read = collected(inline_env, plan(upserts, {"connector": "collect"}, key=["id"]))
    assert (1, "eve", 1704067201_000_000_000, 2) in read and (2, None, None, 3) in read
