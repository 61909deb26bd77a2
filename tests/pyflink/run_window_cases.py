"""Runs window cases on PyFlink: `python run_window_cases.py cases.json results.json`, in a Python with apache-flink.

Every element carries the watermark that follows it. PyFlink has no watermark generator in Python, so the watermarks are
declared on a table: with an automatic watermark interval of zero the table's watermark assigner emits each at once.
Bundles of one element keep elements and watermarks in order on their way to the Python worker.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyflink.common import Configuration, Types
from pyflink.datastream import ProcessFunction, StreamExecutionEnvironment
from pyflink.table import DataTypes, Schema, StreamTableEnvironment
from window_program import late_tag, load, windowed

BEFORE_ALL = -(2**40)


class WithTimestamp(ProcessFunction):
    """[where, value, timestamp] as JSON text."""

    def __init__(self, where: str) -> None:
        self.where = where

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield json.dumps([self.where, value, ctx.timestamp()])


def source(env: StreamExecutionEnvironment, events: list[list[Any]]) -> Any:
    """The events as a stream of (key, number, text), with their timestamps and watermarks."""
    rows, watermark = [], BEFORE_ALL
    for key, number, text, timestamp, following in events:
        watermark = watermark if following is None else following
        rows.append((key, number, text, timestamp, watermark))
    types = Types.ROW_NAMED(
        ["k", "n", "txt", "ts", "wm"], [Types.STRING(), Types.LONG(), Types.STRING(), Types.LONG(), Types.LONG()]
    )
    tables = StreamTableEnvironment.create(env)
    columns = {"k": DataTypes.STRING(), "n": DataTypes.BIGINT(), "txt": DataTypes.STRING()}
    columns |= {"ts": DataTypes.BIGINT(), "wm": DataTypes.BIGINT()}
    schema = Schema.new_builder()
    for name, data_type in columns.items():
        schema = schema.column(name, data_type)
    schema = schema.column_by_expression("rowtime", "TO_TIMESTAMP_LTZ(ts, 3)")
    schema = schema.watermark("rowtime", "TO_TIMESTAMP_LTZ(wm, 3)")
    table = tables.from_data_stream(env.from_collection(rows, types), schema.build())
    return tables.to_data_stream(table).map(lambda row: (row[0], row[1], row[2]))


def run(case: dict[str, Any]) -> dict[str, Any]:
    config = Configuration()
    config.set_string("pipeline.auto-watermark-interval", "0 ms")
    config.set_string("python.fn-execution.bundle.size", "1")
    config.set_string("parallelism.default", "1")
    env = StreamExecutionEnvironment.get_execution_environment(config)
    api = load("pyflink")
    results = windowed(source(env, case["events"]), case, api)
    shown = results.process(WithTimestamp("main"), Types.STRING())
    if case.get("late_tag"):
        late = results.get_side_output(late_tag(api))
        shown = shown.union(late.process(WithTimestamp("late"), Types.STRING()))
    with shown.execute_and_collect() as emitted:
        records = [json.loads(record) for record in emitted]
    return {where: [record[1:] for record in records if record[0] == where] for where in ("main", "late")}


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        cases = json.load(file)
    results = {}
    for case in cases:
        if case.get("on") == "flink":
            continue
        results[case["name"]] = run(case)
        print(case["name"], json.dumps(results[case["name"]]), flush=True)
    with open(sys.argv[2], "w") as file:
        json.dump(results, file)
