"""Formats: what turns messages into rows and rows into messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.table.connectors.formats import cdc, csv, json, raw
from penstock.table.connectors.formats.base import RowDecoder, RowEncoder
from penstock.table.connectors.options import Options
from penstock.table.types import RowType

__all__ = ["RowDecoder", "RowEncoder", "decoder", "encoder", "format_name", "has_changes"]

_DECODERS: dict[str, Callable[..., RowDecoder]] = {
    "json": json.JsonDecoder,
    "csv": csv.CsvDecoder,
    "raw": raw.RawDecoder,
    "debezium-json": cdc.DebeziumDecoder,
    "canal-json": cdc.CanalDecoder,
    "maxwell-json": cdc.MaxwellDecoder,
    "ogg-json": cdc.OggDecoder,
}
_ENCODERS: dict[str, Callable[..., RowEncoder]] = {
    "json": json.JsonEncoder,
    "csv": csv.CsvEncoder,
    "raw": raw.RawEncoder,
    "debezium-json": cdc.DebeziumEncoder,
    "canal-json": cdc.CanalEncoder,
    "maxwell-json": cdc.MaxwellEncoder,
    "ogg-json": cdc.OggEncoder,
}


def format_name(options: Options, prefix: str = "") -> str:
    """The format's name: of `value.format`, `key.format`, or of `format`."""
    return options.get(f"{prefix}format") or options.required("format")


def _made(table: dict[str, Any], name: str, options: Options, row_type: RowType, zone: str, prefix: str) -> Any:
    if name not in table:
        raise UnsupportedFeatureError(
            f"{options.owner}: the format {name!r} is not supported here; supported are {', '.join(table)}"
        )
    own = {**options.below(f"{name}."), **options.below(f"{prefix}{name}.")}
    return table[name](row_type, Options(own, f"{options.owner}, format {name}"), zone)


def decoder(name: str, options: Options, row_type: RowType, zone: str, prefix: str = "") -> RowDecoder:
    made: RowDecoder = _made(_DECODERS, name, options, row_type, zone, prefix)
    return made


def encoder(name: str, options: Options, row_type: RowType, zone: str, prefix: str = "") -> RowEncoder:
    made: RowEncoder = _made(_ENCODERS, name, options, row_type, zone, prefix)
    return made


def has_changes(name: str) -> bool:
    """True if the format's messages are changes: rows come with their kinds."""
    return name.startswith(("debezium", "canal", "maxwell", "ogg"))
