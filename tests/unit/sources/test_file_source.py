"""FileSource: every record of every file once, whatever the format, and from any offset on."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from source_job import SourceJob

from penstock.common import Configuration, Row, Types, WatermarkStrategy
from penstock.common.exceptions import JobExecutionError, UnsupportedFeatureError
from penstock.common.serialization import SimpleStringSchema
from penstock.common.time import Duration, Instant
from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.datastream.connectors.bad_records import BadRecord, BadRecords
from penstock.datastream.connectors.file_system import FileEnumeratorProvider, FileSource, StreamFormat
from penstock.datastream.connectors.file_system import source as file_source
from penstock.datastream.connectors.file_system.formats import FileToRead
from penstock.datastream.connectors.file_system.text_lines import line_blocks
from penstock.datastream.formats import csv_files
from penstock.datastream.formats.avro import AvroSchema
from penstock.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from penstock.datastream.formats.json import JsonRowDeserializationSchema
from penstock.datastream.formats.orc import OrcBulkWriters, OrcColumnarRowInputFormat
from penstock.datastream.formats.parquet import AvroParquetReaders, ParquetBulkWriters, ParquetColumnarRowInputFormat
from penstock.files.arrow_store import ArrowStore

TEXT = StreamFormat.text_line_format()


def lines_of(*paths, parallelism=1, **settings):
    source = FileSource.for_record_stream_format(TEXT, *map(str, paths)).build()
    return SourceJob(source, parallelism, settings=settings).to_the_end().values


# --- which files -----------------------------------------------------------------------------------------------------


def test_folders_are_read_with_all_in_them_but_hidden_names(tmp_path):
    for name in ["b.txt", "a.txt", "sub/c.txt", ".hidden", "_started", "_tmp/d.txt", ".git/e.txt"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"from {name}\n")
    assert lines_of(tmp_path) == ["from a.txt", "from b.txt", "from sub/c.txt"]


def test_a_file_named_twice_is_read_once(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("once\n")
    assert lines_of(file, tmp_path, file.as_uri()) == ["once"]


def test_relative_paths_are_those_of_the_program(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("here\n")
    monkeypatch.chdir(tmp_path)
    assert lines_of("a.txt") == ["here"]


def test_empty_files_and_folders_have_nothing(tmp_path):
    (tmp_path / "empty.txt").touch()
    assert lines_of(tmp_path) == []


def test_old_timestamps_of_parquet_may_be_of_any_year(tmp_path):
    """Spark writes timestamps as INT96, and many programs write 9999-12-31 for a day that is not known."""
    moments = [datetime(9999, 12, 31), None, datetime(2024, 5, 6, 7, 8, 9, 1), datetime(1, 1, 1)]
    column = pa.array(moments, pa.timestamp("us"))
    lists = pa.array([[moment] for moment in moments], pa.list_(pa.timestamp("us")))
    nanos = pa.array([1_000_000_001] * 4, pa.timestamp("ns"))
    table = pa.table({"n": range(4), "t": column, "i": column, "l": lists, "exact": nanos})
    pyarrow.parquet.write_table(table, tmp_path / "old", use_deprecated_int96_timestamps=True)
    instant, timestamp = Types.INSTANT(), Types.SQL_TIMESTAMP()
    row_type = Types.ROW_NAMED(["exact", "i", "l", "t"], [instant, instant, Types.LIST(timestamp), timestamp])
    epoch = datetime(1970, 1, 1)
    instants = [
        None if each is None else Instant((each - epoch) // timedelta(seconds=1), each.microsecond * 1000)
        for each in moments
    ]
    expected = [Row(exact=Instant(1, 1), i=i, l=[t], t=t) for i, t in zip(instants, moments, strict=True)]
    for batch_size in (1, 3, 10):
        for offset in range(5):
            file = FileToRead("old", partial(open, tmp_path / "old", "rb"))
            batches = ParquetColumnarRowInputFormat(row_type, batch_size=batch_size).read_file(file, offset)
            assert [row for batch in batches for row in batch.records] == expected[offset:]


def test_missing_path_is_reported(tmp_path):
    with pytest.raises(JobExecutionError, match=r"there is no file or folder .*nowhere"):
        lines_of(tmp_path / "nowhere")


def test_missing_path_fails_a_job_with_checkpoints_at_once(tmp_path):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration().set_string("execution.target", "inline"))
    env.enable_checkpointing(10)
    files = FileSource.for_record_stream_format(TEXT, str(tmp_path / "nowhere"))
    source = files.monitor_continuously(Duration.of_millis(10)).build()
    env.from_source(source, WatermarkStrategy.no_watermarks(), "files").print()
    with pytest.raises(JobExecutionError, match=r"no file or folder .*nowhere(?s:.*)Not restarted: what is missing"):
        env.execute()


def test_files_are_read_through_arrow_where_they_are_not_local(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt").write_text("1\n2\n")
    (tmp_path / "_hidden").write_text("3\n")
    files = ArrowStore(pyarrow.fs.LocalFileSystem())
    found = list(files.find(str(tmp_path), (".", "_")))
    assert found == [(str(tmp_path / "sub" / "a.txt"), 4)]
    with files.open(found[0][0]) as stream:
        assert [block for block, _ in line_blocks(stream, 2, None, None)] == [b"2\n"]
    with pytest.raises(FileNotFoundError, match="nothing on local"):
        list(files.find(str(tmp_path / "nothing")))


def test_unknown_scheme_is_reported():
    with pytest.raises(JobExecutionError, match=r"nope://x/y: no file system is known.*use a local path"):
        lines_of("nope://x/y")


# --- text ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_ends(tmp_path, ending):
    (tmp_path / "a.txt").write_bytes(ending.join(["one", "", "three"]).encode())
    assert lines_of(tmp_path) == ["one", "", "three"]


@pytest.mark.parametrize("charset", ["UTF-8", "latin-1", "utf-16", "shift_jis"])
def test_character_sets(tmp_path, charset):
    text = "grün\nzwei\n" if charset != "shift_jis" else "表\n能\n"
    (tmp_path / "a.txt").write_bytes(text.encode(charset))
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(charset), str(tmp_path)).build()
    assert SourceJob(source).to_the_end().values == text.split()


def test_bytes_that_are_no_text_become_replacement_characters(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"a\xffb\n\xe4\n")
    assert lines_of(tmp_path) == ["a\ufffdb", "\ufffd"]


@pytest.mark.parametrize(("suffix", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)])
def test_packed_files_are_unpacked_also_from_the_middle_on(tmp_path, suffix, pack):
    lines = [f"line {number}" for number in range(60_000)]
    (tmp_path / f"a.txt.{suffix}").write_bytes(pack("\n".join(lines).encode()))
    source = FileSource.for_record_stream_format(TEXT, str(tmp_path)).build()
    job = SourceJob(source, settings={"penstock.epoch.max-records": "1"})
    while not job.shown:
        job.wait_for_work()
        job.epoch()
    assert len(job.shown) < len(lines)
    assert job.crash().to_the_end().values == lines


def test_zstandard_files_are_unpacked(tmp_path):
    path = str(tmp_path / "a.txt.zst")
    with pa.CompressedOutputStream(path, "zstd") as packed:
        packed.write("\n".join(map(str, range(100_000))).encode())
    source = FileSource.for_record_stream_format(TEXT, path).build()
    job = SourceJob(source, settings={"penstock.epoch.max-records": "1"})
    while not job.shown:
        job.wait_for_work()
        job.epoch()
    assert job.crash().to_the_end().values == list(map(str, range(100_000)))


@given(
    content=st.text(alphabet="ab\n\r", max_size=60).map(str.encode),
    part=st.integers(1, 30),
    block=st.integers(1, 20),
)
def test_parts_of_a_file_have_every_line_once(content, part, block):
    parts = range(0, max(len(content), 1), part)
    read = []
    for start in parts:
        end = None if start == parts[-1] else start + part
        read += [blk for blk, _ in line_blocks(io.BytesIO(content), start, end, None, block)]
    assert b"".join(read) == content
    assert [line for blk in read for line in blk.splitlines()] == content.splitlines()


@given(content=st.text(alphabet="ab\n\r", max_size=60).map(str.encode), block=st.integers(1, 20))
def test_reading_continues_from_any_offset(content, block):
    whole = list(line_blocks(io.BytesIO(content), 0, None, None, block))
    for done, (_, offset) in enumerate(whole, start=1):
        rest = [blk for blk, _ in line_blocks(io.BytesIO(content), 0, None, offset, block)]
        assert b"".join(rest) == b"".join(blk for blk, _ in whole[done:])


def test_large_files_are_read_in_parts_by_several_readers(tmp_path, monkeypatch):
    monkeypatch.setattr(file_source, "PART_BYTES", 100)
    lines = [f"line {number}" for number in range(500)]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    builder = FileSource.for_record_stream_format(TEXT, str(tmp_path))
    job = SourceJob(builder.build(), parallelism=3).to_the_end()
    assert sorted(job.values) == sorted(lines)
    assert all(subtask.output.records for subtask in job.subtasks)
    whole = builder.set_file_enumerator(FileEnumeratorProvider.default_non_splittable_file_enumerator()).build()
    assert SourceJob(whole, parallelism=3).to_the_end().values == lines


# --- looking for new files -------------------------------------------------------------------------------------------


def read_until(job, expected):
    while len(job.shown) < expected:
        job.wait_for_work()
        job.epoch()


def test_new_files_are_found_and_known_ones_are_not_read_again(tmp_path):
    (tmp_path / "1.txt").write_text("one\n")
    builder = FileSource.for_record_stream_format(TEXT, str(tmp_path))
    job = SourceJob(builder.monitor_continuously(Duration.of_millis(1)).build(), parallelism=2)
    read_until(job, 1)
    (tmp_path / "1.txt").write_text("one\nand more\n")
    (tmp_path / "2.txt").write_text("two\n")
    read_until(job, 2)
    job.crash(3)
    (tmp_path / "3.txt").write_text("three\n")
    read_until(job, 3)
    job.close()
    assert job.values == ["one", "two", "three"]


# --- CSV -------------------------------------------------------------------------------------------------------------

SCHEMA = CsvSchema.builder().add_number_column("id").add_string_column("name").add_array_column("tags")


def rows_of(schema, content, tmp_path, **builder_calls):
    (tmp_path / "a.csv").write_text(content, newline="")
    builder = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), str(tmp_path))
    for call, argument in builder_calls.items():
        getattr(builder, call)(argument)
    return SourceJob(builder.build()).to_the_end()


def plain(rows):
    return [tuple(row) for row in rows]


def test_csv_rows_with_quotes_line_breaks_and_missing_fields(tmp_path):
    content = '1,"a, ""b""\nand c",x;y\r\n2,plain\n\n3,,\n'
    job = rows_of(SCHEMA.build(), content, tmp_path)
    assert plain(job.values) == [(1, 'a, "b"\nand c', ["x", "y"]), (2, "plain", None), (3, "", [])]
    assert job.values[0].name == 'a, "b"\nand c'


def test_csv_header_says_where_the_columns_are(tmp_path):
    schema = CsvSchema.builder().add_columns_from(SCHEMA.build()).set_use_header().set_null_value("-").build()
    job = rows_of(schema, "other,name,tags,id\n0,one,-,1\n0,two,a,2\n", tmp_path)
    assert plain(job.values) == [(1, "one", None), (2, "two", ["a"])]


def test_csv_comments_and_first_row_can_be_left_out(tmp_path):
    schema = CsvSchema.builder().add_number_column("id").set_allow_comments().set_skip_first_data_row().build()
    assert plain(rows_of(schema, "#a comment\n1\n2\n#3\n4\n", tmp_path).values) == [(2,), (4,)]


def test_a_quote_in_a_csv_comment_opens_nothing(tmp_path):
    schema = CsvSchema.builder().add_string_column("text").set_allow_comments().build()
    content = '#it is "open\n1\n"2\n#no comment"\n# "\r\n3\n'
    assert plain(rows_of(schema, content, tmp_path).values) == [("1",), ("2\n#no comment",), ("3",)]


def test_empty_fields_of_csv_files_are_none_where_nothing_else_can_be(tmp_path):
    schema = CsvSchema.builder().add_string_column("a").add_number_column("b").add_boolean_column("c").build()
    assert plain(rows_of(schema, "x,1,true\n,,\n", tmp_path).values) == [("x", 1, True), ("", None, None)]


@pytest.mark.parametrize("suffix", ["", ".deflate", ".gz"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_csv_files_with_any_line_ends_are_read_on_from_the_middle(tmp_path, ending, suffix):
    pack = {"": bytes, ".deflate": zlib.compress, ".gz": gzip.compress}[suffix]
    rows = [f"{number},name {number}" for number in range(40_000)]
    (tmp_path / f"a.csv{suffix}").write_bytes(pack(ending.join(["id,name", *rows, ""]).encode()))
    schema = CsvSchema.builder().add_number_column("id").add_string_column("name").set_use_header().build()
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), str(tmp_path)).build()
    job = SourceJob(source, settings={"penstock.epoch.max-records": "1"})
    while not job.shown:
        job.wait_for_work()
        job.epoch()
    assert [row.id for row in job.crash().to_the_end().values] == list(range(40_000))


def test_csv_header_that_does_not_fit_is_reported(tmp_path):
    strict = CsvSchema.builder().add_number_column("id").set_use_header().set_strict_headers().build()
    with pytest.raises(ValueError, match=r"the header is \['other'\], but the schema's columns are \['id'\]"):
        rows_of(strict, "other\n1\n", tmp_path)
    loose = CsvSchema.builder().add_number_column("id").set_use_header().build()
    with pytest.raises(ValueError, match=r"has no column 'id'"):
        rows_of(loose, "other\n1\n", tmp_path)


@given(
    texts=st.lists(st.text(alphabet='ab,"\n\r#; ', max_size=6), max_size=12),
    has_header=st.booleans(),
    line_separator=st.sampled_from(["\n", "\r\n", "\r"]),
    stops=st.integers(0, 12),
)
def test_csv_files_can_be_gone_on_with_behind_any_row(texts, has_header, line_separator, stops):
    builder = CsvSchema.builder().add_string_column("text").add_number_column("at").set_allow_comments()
    schema = builder.set_use_header(has_header).set_line_separator(line_separator).build()
    out = io.BytesIO()
    writer = CsvBulkWriters.for_schema(schema).create(out)
    for at, text in enumerate(texts):
        writer.add_element(Row(text, at))
    whole = []
    offset = None
    original, csv_files._ROWS_AT_ONCE = csv_files._ROWS_AT_ONCE, 1
    try:
        for number, batch in enumerate(csv_files.CsvFile(schema, io.BytesIO(out.getvalue())).batches(None)):
            if number == stops:
                break
            whole += batch.records
            offset = batch.offset
        for batch in csv_files.CsvFile(schema, io.BytesIO(out.getvalue())).batches(offset):
            whole += batch.records
    finally:
        csv_files._ROWS_AT_ONCE = original
    assert plain(whole) == [(text, at) for at, text in enumerate(texts)]


@given(
    lines=st.lists(
        st.text(alphabet='ab,"\\#1 \u2028\u00e9', max_size=8)
        | st.sampled_from(["1,a", "2,b", "", "x,y", "3", "4,c,d", "1_0,e"]),
        max_size=12,
    ),
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
    has_comments=st.booleans(),
    has_quotes=st.booleans(),
    at_once=st.integers(1, 4),
)
def test_csv_rows_are_the_same_many_at_once_and_one_by_one(lines, line_end, has_comments, has_quotes, at_once):
    builder = CsvSchema.builder().add_number_column("n").add_string_column("s").set_allow_comments(has_comments)
    schema = (builder if has_quotes else builder.disable_quote_char()).build()
    content = line_end.join(lines).encode()

    def read():
        batches = list(csv_files.CsvFile(schema, io.BytesIO(content)).batches(None))
        return [row for each in batches for row in each.records], [bad for each in batches for bad in each.bad]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "_ROWS_AT_ONCE", at_once)
        many_at_once = read()
        patch.setattr(csv_files._Lines, "take_plain", lambda self, most: [])
        assert many_at_once == read()


# --- schemas, and what they cannot read ------------------------------------------------------------------------------

PEOPLE = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
JSON = JsonRowDeserializationSchema.builder().type_info(PEOPLE).build()
BAD = OutputTag("bad")


def people(tmp_path, bad_records=None):
    (tmp_path / "a.json").write_text('{"name":"Ada","age":36}\n\n{"name":"Bob","age":"old"}\nno json\n{"name":"Cy"}\n')
    builder = FileSource.for_record_stream_format(StreamFormat.line_format(JSON), str(tmp_path))
    if bad_records is not None:
        builder.set_bad_records(bad_records)
    return SourceJob(builder.build())


def test_a_record_that_cannot_be_read_fails_the_job_and_is_shown(tmp_path):
    with pytest.raises(JobExecutionError, match=r"""a\.json.*cannot read b'\{"name":"Bob".*set_bad_records"""):
        people(tmp_path).to_the_end()


def test_bad_records_can_be_left_out_and_are_counted(tmp_path):
    job = people(tmp_path, BadRecords.skip()).to_the_end()
    assert plain(job.values) == [("Ada", 36), ("Cy", None)]
    metrics = dict(job.subtasks[0].context.metric_group.metrics())
    assert metrics["source.numRecordsInErrors"].get_count() == 2


def test_bad_records_can_go_to_a_side_output(tmp_path):
    job = people(tmp_path, BadRecords.to_side_output(BAD)).to_the_end()
    assert plain(job.values) == [("Ada", 36), ("Cy", None)]
    bad = [value for value, _ in job.subtasks[0].output.side["bad"]]
    assert [(each.raw, "a.json" in each.origin) for each in bad] == [
        (b'{"name":"Bob","age":"old"}', True),
        (b"no json", True),
    ]
    assert all(isinstance(each, BadRecord) and each.error for each in bad)


def test_bad_csv_rows_are_bad_records(tmp_path):
    content = '1,a,x\nnone,b,y\n3,"c"d,z\n4,e,f,g\n5,h,i\n'
    job = rows_of(SCHEMA.build(), content, tmp_path, set_bad_records=BadRecords.to_side_output(BAD))
    assert plain(job.values) == [(1, "a", ["x"]), (5, "h", ["i"])]
    bad = [value for value, _ in job.subtasks[0].output.side["bad"]]
    assert [each.raw for each in bad] == [b"none,b,y\n", b'3,"c"d,z\n', b"4,e,f,g\n"]
    assert bad[0].error.startswith("column 'id': ")


def test_a_side_output_needs_a_tag():
    with pytest.raises(TypeError, match="needs an OutputTag, got 'bad'"):
        BadRecords.to_side_output("bad")


def test_line_format_needs_a_schema():
    with pytest.raises(TypeError, match="line_format needs a DeserializationSchema"):
        StreamFormat.line_format("json")
    assert StreamFormat.line_format(SimpleStringSchema()).get_produced_type() == Types.STRING()


# --- Parquet and ORC -------------------------------------------------------------------------------------------------

EVERYTHING = Types.ROW_NAMED(
    ["id", "name", "price", "day", "at", "instant", "tags", "inner", "by_name", "raw", "big"],
    [
        Types.LONG(),
        Types.STRING(),
        Types.BIG_DEC(),
        Types.SQL_DATE(),
        Types.SQL_TIMESTAMP(),
        Types.INSTANT(),
        Types.LIST(Types.INT()),
        Types.ROW_NAMED(["x", "y"], [Types.INT(), Types.STRING()]),
        Types.MAP(Types.STRING(), Types.DOUBLE()),
        Types.PRIMITIVE_ARRAY(Types.BYTE()),
        Types.BIG_INT(),
    ],
)


def everything(number):
    inner = Row(number, str(number))
    inner.set_field_names(["x", "y"])
    row = Row(
        number,
        f"name {number}",
        Decimal(f"{number}.500000000000000000"),
        date(2024, 1, 1 + number % 28),
        datetime(2024, 1, 1, 12, 30, number % 60, 1000),
        Instant(1_700_000_000 + number, 5_000),
        [number, None],
        inner,
        {"a": 0.5},
        b"\x00\xff",
        10**30 + number,
    )
    row.set_field_names(EVERYTHING.get_field_names())
    return row


def write(factory, path, rows):
    with open(path, "wb") as stream:
        writer = factory.create(stream)
        for row in rows:
            writer.add_element(row)
        writer.finish()


def parquet_of(row_type):
    return ParquetBulkWriters.for_row_type(row_type), ParquetColumnarRowInputFormat(row_type, batch_size=7)


def orc_of(row_type):
    return OrcBulkWriters.for_row_type(row_type), OrcColumnarRowInputFormat(row_type, batch_size=7)


@pytest.mark.parametrize("kind", [parquet_of, orc_of])
def test_what_a_bulk_writer_writes_is_read_back(tmp_path, kind):
    factory, format = kind(EVERYTHING)
    rows = [everything(number) for number in range(40)]
    empty = Row(*[None] * len(EVERYTHING.get_field_names()))
    empty.set_field_names(EVERYTHING.get_field_names())
    write(factory, tmp_path / "a", [*rows, empty])
    source = FileSource.for_bulk_file_format(format, str(tmp_path)).build()
    assert source.get_produced_type() is EVERYTHING
    assert SourceJob(source).to_the_end().values == [*rows, empty]


NUMBERS = Types.ROW_NAMED(["n"], [Types.LONG()])


@pytest.mark.parametrize("kind", [parquet_of, orc_of])
def test_bulk_files_can_be_gone_on_with_from_any_batch(tmp_path, kind):
    factory, format = kind(NUMBERS)
    for name in "ab":
        write(factory, tmp_path / name, [Row(number) for number in range(30)])
    source = FileSource.for_bulk_file_format(format, str(tmp_path)).build()
    job = SourceJob(source, settings={"penstock.epoch.max-records": "1"})
    for parallelism in (2, 1, 3, 1):
        job.epoch().epoch().epoch(is_checkpoint=False).fail().epoch().crash(parallelism)
    assert sorted(row.n for row in job.to_the_end().values) == sorted([*range(30), *range(30)])


def test_row_groups_before_the_offset_are_not_read(tmp_path):
    pyarrow.parquet.write_table(pa.table({"n": range(100)}), tmp_path / "a", row_group_size=10)
    format = ParquetColumnarRowInputFormat(NUMBERS, batch_size=1000)
    file = FileToRead("a", partial((tmp_path / "a").open, "rb"))
    batches = list(format.read_file(file, 25))
    assert [row.n for batch in batches for row in batch.records] == list(range(25, 100))
    assert batches[-1].offset == 100
    assert list(format.read_file(file, 100)) == []


def test_columns_by_other_letters_and_missing_ones(tmp_path):
    pyarrow.parquet.write_table(pa.table({"N": [1, 2]}), tmp_path / "a")
    row_type = Types.ROW_NAMED(["n", "lacking"], [Types.LONG(), Types.STRING()])
    for is_case_sensitive, expected in [(True, [(None, None)] * 2), (False, [(1, None), (2, None)])]:
        format = ParquetColumnarRowInputFormat(row_type, is_case_sensitive=is_case_sensitive)
        source = FileSource.for_bulk_file_format(format, str(tmp_path)).build()
        assert plain(SourceJob(source).to_the_end().values) == expected


def test_parquet_as_the_dicts_of_an_avro_schema(tmp_path):
    pyarrow.parquet.write_table(pa.table({"a": [1], "b": ["x"], "c": [2.5]}), tmp_path / "a")
    schema = AvroSchema.parse_string(
        '{"type":"record","name":"r","fields":[{"name":"b","type":"string"},{"name":"d","type":"int"}]}'
    )
    source = FileSource.for_record_stream_format(AvroParquetReaders.for_generic_record(schema), str(tmp_path)).build()
    assert SourceJob(source).to_the_end().values == [{"b": "x", "d": None}]


# --- formats of one's own --------------------------------------------------------------------------------------------


class Pairs(StreamFormat):
    """Two bytes are a record."""

    def read(self, stream):
        while pair := stream.read(2):
            yield pair.decode()


def test_a_format_needs_only_to_read_a_stream(tmp_path):
    content = "".join(f"{number:02}" for number in range(100)) * 30
    (tmp_path / "a").write_text(content)
    source = FileSource.for_record_stream_format(Pairs(), str(tmp_path)).build()
    job = SourceJob(source, settings={"penstock.epoch.max-records": "1"})
    job.epoch().epoch().epoch().crash()
    expected = [content[at : at + 2] for at in range(0, len(content), 2)]
    assert job.to_the_end().values == expected


def test_a_format_that_cannot_be_read_says_so(tmp_path):
    (tmp_path / "a").touch()
    source = FileSource.for_record_stream_format(StreamFormat(), str(tmp_path)).build()
    with pytest.raises(UnsupportedFeatureError, match="cannot read StreamFormat files"):
        SourceJob(source).to_the_end()
