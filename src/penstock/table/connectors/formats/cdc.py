"""Changes of databases as JSON, in the forms of Debezium, Canal, Maxwell and Oracle GoldenGate."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from penstock.table.connectors.formats.base import RowDecoder, RowEncoder
from penstock.table.connectors.formats.json import JsonDecoder, JsonEncoder
from penstock.table.rows import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, RowTuple, is_accumulate


class _ChangeDecoder(RowDecoder):
    """Rows with kinds."""

    def prepare(self) -> None:
        self.read_row = JsonDecoder(self.row_type, self.options, self.zone).read_row

    def decode(self, message: bytes) -> list[RowTuple]:
        parsed = json.loads(message, parse_float=Decimal)
        if not isinstance(parsed, dict):
            raise ValueError("a change is an object")
        return self.changes(parsed)

    def changes(self, change: dict[str, Any]) -> list[RowTuple]:
        raise NotImplementedError

    def row(self, values: Any, kind: int) -> RowTuple:
        if values is None:
            raise ValueError(
                "a row before the change is missing; the database must log it (for PostgreSQL: REPLICA IDENTITY FULL)"
            )
        return (*self.read_row(values), kind)


class DebeziumDecoder(_ChangeDecoder):
    def changes(self, change: dict[str, Any]) -> list[RowTuple]:
        if self.options.flag("schema-include"):
            change = change["payload"]
        match change["op"]:
            case "c" | "r":
                return [self.row(change["after"], INSERT)]
            case "u":
                return [self.row(change["before"], UPDATE_BEFORE), self.row(change["after"], UPDATE_AFTER)]
            case "d":
                return [self.row(change["before"], DELETE)]
        raise ValueError(f"op {change['op']!r} is not known")


class OggDecoder(_ChangeDecoder):
    def changes(self, change: dict[str, Any]) -> list[RowTuple]:
        match change["op_type"]:
            case "I":
                return [self.row(change["after"], INSERT)]
            case "U":
                return [self.row(change["before"], UPDATE_BEFORE), self.row(change["after"], UPDATE_AFTER)]
            case "D":
                return [self.row(change["before"], DELETE)]
            case "T":
                return []
        raise ValueError(f"op_type {change['op_type']!r} is not known")


class CanalDecoder(_ChangeDecoder):
    """Updates tell only the fields that changed of the row before."""

    def changes(self, change: dict[str, Any]) -> list[RowTuple]:
        database, table = self.options.get("database.include"), self.options.get("table.include")
        if (database and change.get("database") != database) or (table and change.get("table") != table):
            return []
        data = change.get("data") or []
        match change["type"]:
            case "INSERT":
                return [self.row(each, INSERT) for each in data]
            case "UPDATE":
                made = []
                for after, old in zip(data, change["old"], strict=True):
                    made += [self.row({**after, **old}, UPDATE_BEFORE), self.row(after, UPDATE_AFTER)]
                return made
            case "DELETE":
                return [self.row(each, DELETE) for each in data]
            case "CREATE" | "ALTER" | "ERASE" | "QUERY" | "TRUNCATE":
                return []
        raise ValueError(f"type {change['type']!r} is not known")


class MaxwellDecoder(_ChangeDecoder):
    def changes(self, change: dict[str, Any]) -> list[RowTuple]:
        data = change.get("data")
        match change["type"]:
            case "insert" | "bootstrap-insert":
                return [self.row(data, INSERT)]
            case "update":
                before = {**(data or {}), **change["old"]}
                return [self.row(before, UPDATE_BEFORE), self.row(data, UPDATE_AFTER)]
            case "delete":
                return [self.row(data, DELETE)]
            case "bootstrap-start" | "bootstrap-complete":
                return []
        raise ValueError(f"type {change['type']!r} is not known")


class _ChangeEncoder(RowEncoder):
    """Each row alone: an update is a delete of the row before and an insert of the one after, as Flink writes it."""

    has_changes = True

    def prepare(self) -> None:
        self.write_row = JsonEncoder(self.row_type, self.options, self.zone).write_row

    def encode(self, row: RowTuple, kind: int = 0) -> bytes:
        return self.change(self.write_row(row), is_accumulate(kind)).encode("utf-8")

    def change(self, row: str, is_there: bool) -> str:
        raise NotImplementedError


class DebeziumEncoder(_ChangeEncoder):
    def change(self, row: str, is_there: bool) -> str:
        if is_there:
            return f'{{"before":null,"after":{row},"op":"c"}}'
        return f'{{"before":{row},"after":null,"op":"d"}}'


class OggEncoder(_ChangeEncoder):
    def change(self, row: str, is_there: bool) -> str:
        if is_there:
            return f'{{"before":null,"after":{row},"op_type":"I"}}'
        return f'{{"before":{row},"after":null,"op_type":"D"}}'


class CanalEncoder(_ChangeEncoder):
    def change(self, row: str, is_there: bool) -> str:
        return f'{{"data":[{row}],"type":"{"INSERT" if is_there else "DELETE"}"}}'


class MaxwellEncoder(_ChangeEncoder):
    def change(self, row: str, is_there: bool) -> str:
        return f'{{"data":{row},"type":"{"insert" if is_there else "delete"}"}}'
