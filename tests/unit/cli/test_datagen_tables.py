"""Tables that generate data, which is what most DataStream programs use tables for."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.common import Configuration
from penstock.common.exceptions import InvalidProgramError, UnsupportedFeatureError
from penstock.compat.datagen_tables import DataTypes, Schema, StreamTableEnvironment, TableDescriptor
from penstock.datastream import StreamExecutionEnvironment


def tables() -> StreamTableEnvironment:
    config = Configuration.from_dict({"execution.target": "inline"})
    return StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment(config))


def described(**options: str) -> TableDescriptor:
    schema = Schema.new_builder().column("id", DataTypes.INT()).column("word", DataTypes.STRING())
    schema = schema.column("price", DataTypes.DECIMAL(5, 2)).column("at", DataTypes.TIMESTAMP(3))
    builder = TableDescriptor.for_connector("datagen").schema(schema.build()).option("rows-per-second", "1000")
    for name, value in options.items():
        builder = builder.option(name.replace("__", ".").replace("_", "-"), value)
    return builder.build()


def rows_of(t_env: StreamTableEnvironment, descriptor: TableDescriptor) -> list[Any]:
    t_env.create_temporary_table("source", descriptor)
    return list(t_env.to_data_stream(t_env.from_path("source")).execute_and_collect())


def test_a_sequence_ends_the_stream_and_rows_have_names():
    rows = rows_of(tables(), described(fields__id__kind="sequence", fields__id__start="3", fields__id__end="6"))
    assert [row.id for row in rows] == [3, 4, 5, 6]
    assert {len(row.word) for row in rows} == {100} and all(row.price.as_tuple().exponent == -2 for row in rows)


def test_random_values_keep_to_their_options():
    options = {"number_of_rows": "50", "fields__id__min": "1", "fields__id__max": "3", "fields__word__length": "4"}
    rows = rows_of(tables(), described(**options))
    assert len(rows) == 50 and {row["id"] for row in rows} <= {1, 2, 3} and {len(row.word) for row in rows} == {4}


def test_a_rate_of_nulls():
    rows = rows_of(tables(), described(number_of_rows="20", fields__word__null_rate="1"))
    assert {row.word for row in rows} == {None}


def test_everything_else_about_tables_is_refused_by_name():
    t_env = tables()
    for use, what in (
        (lambda: t_env.execute_sql("select 1"), "StreamTableEnvironment.execute_sql"),
        (lambda: t_env.from_descriptor(described()).select("id"), "Table.select"),
        (lambda: TableDescriptor.for_connector("kafka"), "there is only 'datagen'"),
        (lambda: DataTypes.MULTISET(DataTypes.INT()), "DataTypes.MULTISET"),
        (lambda: Schema.new_builder().column("a", DataTypes.ARRAY(DataTypes.INT())), "of type ARRAY are not generated"),
        (lambda: Schema.new_builder().watermark("at", "at"), "Schema.watermark"),
    ):
        with pytest.raises(UnsupportedFeatureError, match=what):
            use()


def test_wrong_descriptions_are_refused():
    t_env = tables()
    with pytest.raises(InvalidProgramError, match="there is no table 'gone'; known: none"):
        t_env.from_path("gone")
    with pytest.raises(InvalidProgramError, match=r"a sequence needs fields.id.start and fields.id.end"):
        t_env.to_data_stream(t_env.from_descriptor(described(fields__id__kind="sequence")))
    with pytest.raises(InvalidProgramError, match="needs a schema with at least one column"):
        t_env.to_data_stream(t_env.from_descriptor(TableDescriptor.for_connector("datagen").build()))
