"""Formats write what Flink writes, and read it back."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.exceptions import ConnectorError, InvalidProgramError, UnsupportedFeatureError
from penstock.table.connectors import formats
from penstock.table.connectors.formats.json import JsonDecoder
from penstock.table.connectors.java_text import row_text
from penstock.table.connectors.options import Options
from penstock.table.logical_types import parse_type, row_type_of
from penstock.table.types import RowField, RowType

RECORDED = json.loads((Path(__file__).parents[2] / "pyflink" / "format_results.json").read_text(encoding="utf-8"))
ALL = RowType([RowField(name, parse_type(text)) for name, text in RECORDED["columns"].items()])
ROWS = [
    JsonDecoder(ALL, Options({}, "rows")).decode(json.dumps(dict(zip(ALL.field_names(), row, strict=True))).encode())[0]
    for row in RECORDED["rows"]
]


def part(columns: list[str]) -> tuple[RowType, list[Any]]:
    places = [ALL.field_names().index(each) for each in columns]
    return RowType([ALL.fields[i] for i in places]), [tuple(row[i] for i in places) for row in ROWS]


def options_of(case: Any) -> Options:
    return Options({f"{case['format']}.{key}": value for key, value in case["options"].items()}, "table t")


@pytest.mark.parametrize("name", RECORDED["formats"])
def test_rows_are_written_as_flink_writes_them(name: str):
    case = RECORDED["formats"][name]
    row_type, rows = part(case["columns"])
    encoder = pickle.loads(pickle.dumps(formats.encoder(case["format"], options_of(case), row_type, "UTC")))
    assert [encoder.encode(row).decode() for row in rows] == case["lines"]


@pytest.mark.parametrize("name", [name for name in RECORDED["formats"] if not name.startswith("csv")])
def test_what_flink_wrote_is_read(name: str):
    case = RECORDED["formats"][name]
    row_type, rows = part(case["columns"])
    decoder = pickle.loads(pickle.dumps(formats.decoder(case["format"], options_of(case), row_type, "UTC")))
    kinds = [(0,)] * len(rows) if formats.has_changes(case["format"]) else [()] * len(rows)
    read = [row for line in case["lines"] for row in decoder.rows(line.encode())]
    assert read == [(*row, *kind) for row, kind in zip(rows, kinds, strict=True)]


def test_rows_are_printed_as_flink_prints_them():
    write = row_text(ALL)
    assert [write(row, "+I") for row in ROWS] == RECORDED["printed"]


def decoded(name: str, row_type: str, message: str, **options: str) -> Any:
    chosen = Options({f"{name}.{key.replace('_', '-')}": value for key, value in options.items()}, "table t")
    return formats.decoder(name, chosen, row_type_of(row_type), "UTC").rows(message.encode())


def test_csv_is_read_with_its_options():
    row_type = "ROW<`a` INT, `b` STRING, `c` DECIMAL(5, 1), `d` ARRAY<INT>>"
    assert decoded("csv", row_type, '1,"x, ""y""",2.25,1;2') == [(1, 'x, "y"', parse_decimal("2.3"), [1, 2])]
    assert decoded("csv", row_type, "1|'x|y'|n/a|", field_delimiter="|", quote_character="'", null_literal="n/a") == [
        (1, "x|y", None, None)
    ]
    assert decoded("csv", row_type, "# no row", allow_comments="true") == []


def parse_decimal(text: str) -> Any:
    from decimal import Decimal

    return Decimal(text)


def test_a_message_that_cannot_be_read_is_shown_or_skipped():
    with pytest.raises(ConnectorError, match=r"table t, format json: b'nonsense' cannot be read as ROW<`a` INT>"):
        decoded("json", "ROW<`a` INT>", "nonsense")
    assert decoded("json", "ROW<`a` INT>", "nonsense", ignore_parse_errors="true") == []
    assert decoded("json", "ROW<`a` INT>", '{"a": "x"}', ignore_parse_errors="true") == [(None,)]
    with pytest.raises(ConnectorError, match="field 'a' is missing"):
        decoded("json", "ROW<`a` INT>", "{}", fail_on_missing_field="true")
    with pytest.raises(ConnectorError, match="2 fields are needed, got 1"):
        decoded("csv", "ROW<`a` INT, `b` INT>", "1")
    assert decoded("csv", "ROW<`a` INT, `b` INT>", "x,2", ignore_parse_errors="true") == [(None, 2)]


@pytest.mark.parametrize(
    ("data_type", "message", "value"),
    [
        ("STRING", b"\xc3\xa9", "é"),
        ("BYTES", b"\x00\x01", b"\x00\x01"),
        ("INT", b"\x00\x00\x00\x07", 7),
        ("DOUBLE", b"\x3f\xf8" + b"\x00" * 6, 1.5),
    ],
)
def test_raw_is_the_value_itself(data_type: str, message: bytes, value: Any):
    row_type = row_type_of(f"ROW<`v` {data_type}>")
    options = Options({}, "table t")
    assert formats.decoder("raw", options, row_type, "UTC").rows(message) == [(value,)]
    assert formats.encoder("raw", options, row_type, "UTC").encode((value,)) == message


def test_raw_has_one_column():
    with pytest.raises(InvalidProgramError, match="single physical column"):
        decoded("raw", "ROW<`a` INT, `b` INT>", "x")


@pytest.mark.parametrize(
    ("name", "message", "kinds"),
    [
        ("debezium-json", '{"before": {"a": 1, "b": 2}, "after": {"a": 1, "b": 3}, "op": "u"}', [(1, 2, 1), (1, 3, 2)]),
        ("debezium-json", '{"before": {"a": 1, "b": 2}, "after": null, "op": "d"}', [(1, 2, 3)]),
        ("canal-json", '{"data": [{"a": 1, "b": 3}], "old": [{"b": 2}], "type": "UPDATE"}', [(1, 2, 1), (1, 3, 2)]),
        ("maxwell-json", '{"data": {"a": 1, "b": 3}, "old": {"b": 2}, "type": "update"}', [(1, 2, 1), (1, 3, 2)]),
        ("ogg-json", '{"before": {"a": 1, "b": 2}, "after": {"a": 1, "b": 3}, "op_type": "U"}', [(1, 2, 1), (1, 3, 2)]),
    ],
)
def test_changes_of_databases_have_kinds(name: str, message: str, kinds: Any):
    assert decoded(name, "ROW<`a` INT, `b` INT>", message) == kinds


def test_an_update_without_the_row_before_says_what_to_do():
    with pytest.raises(ConnectorError, match="REPLICA IDENTITY FULL"):
        decoded("debezium-json", "ROW<`a` INT>", '{"before": null, "after": {"a": 1}, "op": "u"}')


def test_a_format_that_is_missing_is_named():
    with pytest.raises(UnsupportedFeatureError, match="table t: the format 'protobuf' is not supported here"):
        decoded("protobuf", "ROW<`a` INT>", "")


_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from(
        ["7", " 7", "1.5", "2024-02-30 01:02:03", "2024-01-01 00:00:00.123", "2024-01-01T10:00:00", "2024-1-1 1:2:3"]
    )
    | st.sampled_from(["2024-01-01 00:00:00.1234", "2024-01-01 24:00:00", "2024-13-01 00:00:00", "24-01-01 00:00:00"])
)
_ANY = _LEAVES | st.lists(_LEAVES, max_size=2) | st.dictionaries(st.sampled_from("xy"), _LEAVES)
_COLUMNS = [
    "i INT", "b BIGINT", "d DOUBLE", "s STRING", "f BOOLEAN", "t TIMESTAMP(3)", "a ARRAY<INT>",
    "r ROW<x INT, y STRING>",
]  # fmt: skip


@pytest.mark.parametrize("skips_errors", ["true", "false"])
@given(values=st.dictionaries(st.sampled_from([each.split()[0] for each in _COLUMNS]), _ANY), padding=st.booleans())
def test_plain_json_is_read_by_the_same_rules(skips_errors: str, values: dict[str, Any], padding: bool):
    """What the generated reader takes is what all the rules of the format make of the message."""
    row_type = RowType([RowField(each.split()[0], parse_type(each.split(maxsplit=1)[1])) for each in _COLUMNS])
    decoder = JsonDecoder(row_type, Options({"ignore-parse-errors": skips_errors}, "table t"))
    message = json.dumps(values).encode() + b" " * padding
    assert decoder.read_plain is not None
    found = decoder.read_plain(message)
    if found is not None:
        assert repr([found]) == repr(decoder.decode_any(message))


@pytest.mark.parametrize("message", [b"", b"[1]", b"7", b'{"i": 1} {"i": 2}', b'{"i": 1', b'{"i": "\xff"}', b"null"])
def test_what_is_no_plain_object_is_left_to_the_other_rules(message: bytes):
    decoder = JsonDecoder(row_type_of("ROW<`i` INT>"), Options({}, "table t"))
    assert decoder.read_plain is not None and decoder.read_plain(message) is None
