"""Files of bulk formats, read back."""

from __future__ import annotations

import datetime
import io
from decimal import Decimal

import pyarrow.orc
import pyarrow.parquet
import pytest
from sink_job import SinkJob, visible_files

from penstock.common import Configuration, Row, Types
from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.time import Instant
from penstock.datastream.connectors import BucketAssigner, FileSink
from penstock.datastream.connectors.file_system.part_files import PartStream
from penstock.datastream.formats import arrow_rows
from penstock.datastream.formats.csv import CsvBulkWriters, CsvSchema
from penstock.datastream.formats.orc import OrcBulkWriters
from penstock.datastream.formats.parquet import ParquetBulkWriters

PEOPLE = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])


def written(factory, elements):
    """The bytes of a file with these elements."""
    buffer = io.BytesIO()
    stream = PartStream(buffer)
    writer = factory.create(stream)
    for element in elements:
        writer.add_element(element)
    writer.finish()
    assert stream.size == len(buffer.getvalue())
    return buffer.getvalue()


def parquet_rows(content):
    return pyarrow.parquet.read_table(io.BytesIO(content)).to_pylist()


def test_parquet_files_hold_the_rows(tmp_path):
    builder = FileSink.for_bulk_format(str(tmp_path), ParquetBulkWriters.for_row_type(PEOPLE))
    sink = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    job = SinkJob(sink, tmp_path, element_of=lambda number: Row(f"p{number}", number))
    job.write(2).checkpoint().write(1).fail().write(1).end()
    files = [parquet_rows(content) for content in visible_files(tmp_path).values()]
    assert sorted(files, key=len) == [[{"name": "p2", "age": 2}], [{"name": f"p{n}", "age": n} for n in (0, 1)]]


@pytest.mark.parametrize(
    ("factory", "read"),
    [
        (ParquetBulkWriters.for_row_type(PEOPLE), parquet_rows),
        (OrcBulkWriters.for_row_type(PEOPLE), lambda content: pyarrow.orc.read_table(io.BytesIO(content)).to_pylist()),
    ],
)
def test_rows_may_be_rows_tuples_or_dicts_and_come_in_several_batches(factory, read, monkeypatch):
    monkeypatch.setattr(arrow_rows, "ROWS_AT_ONCE", 2)
    found = read(written(factory, [Row("a", 1), ("b", None), {"age": 3, "name": "c"}, Row(name="d", age=4), ["e", 5]]))
    assert found == [{"name": name, "age": age} for name, age in zip("abcde", [1, None, 3, 4, 5], strict=True)]


def test_columns_of_all_types_come_back():
    moment = datetime.datetime(2024, 3, 1, 17, 5, 6, 789_000)
    columns = [
        (Types.BOOLEAN(), True, True),
        (Types.BYTE(), -1, -1),
        (Types.SHORT(), 300, 300),
        (Types.LONG(), 1 << 40, 1 << 40),
        (Types.FLOAT(), 0.5, 0.5),
        (Types.DOUBLE(), 0.1, 0.1),
        (Types.BIG_INT(), 10**30, Decimal(10**30)),
        (Types.BIG_DEC(), Decimal("1.5"), Decimal("1.5")),
        (Types.SQL_DATE(), moment.date(), moment.date()),
        (Types.SQL_TIME(), moment.time(), moment.time()),
        (Types.SQL_TIMESTAMP(), moment, moment),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), bytearray(b"ab"), b"ab"),
        (Types.OBJECT_ARRAY(Types.STRING()), ["a", None], ["a", None]),
        (Types.LIST(Types.SQL_TIMESTAMP()), [moment], [moment]),
        (Types.MAP(Types.STRING(), Types.INT()), {"a": 1}, [("a", 1)]),
        (PEOPLE, Row("a", 1), {"name": "a", "age": 1}),
        (Types.TUPLE([Types.INT(), Types.STRING()]), (1, "x"), {"f0": 1, "f1": "x"}),
    ]
    row_type = Types.ROW([each for each, _, _ in columns])
    [found] = parquet_rows(
        written(ParquetBulkWriters.for_row_type(row_type), [tuple(given for _, given, _ in columns)])
    )
    assert list(found.values()) == [expected for _, _, expected in columns]


def test_instants_and_times_with_a_zone_are_written_in_utc():
    row_type = Types.ROW([Types.INSTANT(), Types.SQL_TIMESTAMP()])
    east = datetime.timezone(datetime.timedelta(hours=2))
    element = (Instant(86_400, 5_000), datetime.datetime(2024, 3, 1, 12, tzinfo=east))
    factory = ParquetBulkWriters.for_row_type(row_type, utc_timestamp=True)
    table = pyarrow.parquet.read_table(io.BytesIO(written(factory, [element])))
    assert table.column(0).cast("int64").to_pylist() == [86_400_000_005_000]
    assert table.column(1).to_pylist() == [datetime.datetime(2024, 3, 1, 10)]


def test_compression_may_be_chosen():
    settings = Configuration().set_string("parquet.compression", "UNCOMPRESSED")
    content = written(ParquetBulkWriters.for_row_type(PEOPLE, settings), [("a", 1)])
    metadata = pyarrow.parquet.read_metadata(io.BytesIO(content))
    assert metadata.row_group(0).column(0).compression == "UNCOMPRESSED"
    settings = Configuration().set_string("orc.compress", "NONE")
    content = written(OrcBulkWriters.for_row_type(PEOPLE, settings), [("a", 1)])
    assert pyarrow.orc.ORCFile(io.BytesIO(content)).compression == "UNCOMPRESSED"


def test_rows_that_do_not_fit_are_reported_by_column():
    factory = ParquetBulkWriters.for_row_type(PEOPLE)
    with pytest.raises(ValueError, match=r"column 'age' is declared as .*, but holds "):
        written(factory, [("a", "old")])
    with pytest.raises(ValueError, match=r"has 1 fields, but the file has \['name', 'age'\]"):
        written(factory, [("a",)])
    with pytest.raises(UnsupportedFeatureError, match="cannot be a column of a Parquet or ORC file"):
        ParquetBulkWriters.for_row_type(Types.ROW([Types.PICKLED_BYTE_ARRAY()]))


def test_csv_files_have_the_schemas_look():
    schema = (
        CsvSchema.builder()
        .add_string_column("name")
        .add_number_column("age", Types.INT())
        .add_array_column("tags", "|")
        .set_column_separator(";")
        .set_use_header(True)
        .set_line_separator("\r\n")
        .set_null_value("-")
        .build()
    )
    content = written(CsvBulkWriters.for_schema(schema), [Row("a;b", 1, ["x", "y"]), ("c", None, None)])
    assert content == b'name;age;tags\r\n"a;b";1;x|y\r\nc;-;-\r\n'
    with pytest.raises(ValueError, match="has 2 fields, but the CSV schema has 3 columns"):
        written(CsvBulkWriters.for_schema(schema), [("a", 1)])
