"""What is said about a function that fails: which operator it was, with what, and where the program made it."""

from __future__ import annotations

import re

import pytest

from penstock.common import Configuration, Row, Types, WatermarkStrategy
from penstock.common.exceptions import UserFunctionError
from penstock.datastream import KeyedProcessFunction
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.formats.parquet import ParquetBulkWriters


class FailsLater(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(7)

    def on_timer(self, timestamp, ctx):
        yield 1 // (timestamp - 7)


class SetsAnother(FailsLater):
    """Its timers are called one by one."""

    def on_timer(self, timestamp, ctx):
        ctx.timer_service().register_event_time_timer(timestamp + 1)
        yield 1 // (timestamp - 7)


class Opaque(FailsLater):
    """Cannot stand in a loop."""

    def on_timer(self, timestamp, ctx):
        try:
            return [1 // (timestamp - 7)]
        finally:
            self.seen = locals()


@pytest.mark.parametrize("inlines", ["true", "false"])
@pytest.mark.parametrize("function", [FailsLater(), SetsAnother(), Opaque()], ids=lambda each: type(each).__name__)
def test_failing_timer_is_named_by_its_key_and_its_time(env, function, inlines):
    env.configure(Configuration.from_dict({"penstock.inline-functions.enabled": inlines}))
    timed = env.from_collection(["fish"]).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, at: 0)
    )
    timed.key_by(lambda value: value).process(function).name("later").print()
    with pytest.raises(UserFunctionError, match="operator 'later', subtask 1/1, in the timer of key 'fish' at 7: Zero"):
        env.execute()


def test_wrong_type_for_a_parquet_file_names_row_and_sink(env, tmp_path):
    row_type = Types.ROW_NAMED(["item", "tax"], [Types.STRING(), Types.DOUBLE()])
    sink = FileSink.for_bulk_format(str(tmp_path), ParquetBulkWriters.for_row_type(row_type)).build()
    rows = [Row(item="fish", tax=0.1), Row(item="salt", tax="none")]
    env.from_collection(rows).sink_to(sink).name("files")
    with pytest.raises(UserFunctionError) as caught:
        env.execute()
    said = str(caught.value)
    assert re.search(r"operator 'Sink: files', subtask 1/1, at record Row\(item='salt', tax='none'\): ValueError", said)
    assert "column 'tax' is declared as Double, but holds 'none'" in said
    assert f"made at {__file__}" in said and "  File " not in said


def test_failing_key_selector_is_not_blamed_on_the_operator_before_it(env):
    env.from_collection([1, 0]).map(lambda value: value).name("fine").key_by(lambda value: 1 // value).sum().print()
    with pytest.raises(UserFunctionError, match=r"operator 'key_by', subtask 1/1, at record 0: Zero") as caught:
        env.execute()
    assert ".key_by(lambda value: 1 // value)" in str(caught.value)


def test_field_that_is_no_key_names_the_line_of_the_key_by(env):
    env.from_collection([("a", 1), ()]).key_by(0).max(1).print()
    with pytest.raises(
        UserFunctionError, match=r"operator 'key_by', subtask 1/1, at record \(\): IndexError"
    ) as caught:
        env.execute()
    assert f"made at {__file__}" in str(caught.value) and ".key_by(0)" in str(caught.value)
