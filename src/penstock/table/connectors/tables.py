"""What a connector is told of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.common.exceptions import InvalidProgramError, UnsupportedFeatureError
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.table.connectors.options import Options
from penstock.table.logical_types import parse_type
from penstock.table.types import DataType, RowField, RowType

if TYPE_CHECKING:
    from penstock.datastream import StreamExecutionEnvironment


@dataclass(frozen=True)
class TableSchema:
    """The columns of a table as the plan or the catalog has them."""

    physical: RowType
    metadata: Mapping[str, str]
    """The names of metadata columns that can be written, by their keys."""
    primary_key: tuple[str, ...]
    partition_keys: tuple[str, ...]

    @staticmethod
    def of(table: Mapping[str, Any]) -> TableSchema:
        """Of a resolved table in a plan, or of what the catalog tells of a temporary one."""
        schema = table.get("schema") or table
        physical, metadata = [], {}
        for column in schema["columns"]:
            if column.get("kind", "PHYSICAL") == "PHYSICAL":
                physical.append(RowField(column["name"], parse_type(column["dataType"])))
            elif column["kind"] == "METADATA" and not column.get("isVirtual", False):
                metadata[column.get("metadataKey") or column["name"]] = column["name"]
        key = schema.get("primaryKey") or ()
        columns = key["columns"] if isinstance(key, Mapping) else key
        return TableSchema(RowType(physical), metadata, tuple(columns), tuple(table.get("partitionKeys") or ()))


@dataclass(frozen=True)
class SourceTable:
    """A table that is read: `columns` are those to read, behind which each row has the values of `metadata`."""

    env: StreamExecutionEnvironment
    name: str
    options: Options
    schema: TableSchema
    columns: RowType
    metadata: tuple[tuple[str, DataType], ...]
    time_zone: str
    strategy: WatermarkStrategy | None
    """Watermarks that the source makes itself, for each of its splits; None if it makes none."""

    @property
    def watermarks(self) -> WatermarkStrategy:
        return self.strategy or WatermarkStrategy.no_watermarks()

    def refuse_metadata(self, *known: str) -> None:
        for key, _ in self.metadata:
            if key not in known:
                raise InvalidProgramError(
                    f"{self.options.owner} has no metadata {key!r}; it has {', '.join(known) or 'none'}"
                )


@dataclass(frozen=True)
class SinkTable:
    """A table that is written. Rows have the physical columns, then the metadata ones, then the kind."""

    name: str
    options: Options
    schema: TableSchema
    row_type: RowType
    metadata_keys: tuple[str, ...]
    time_zone: str
    is_changelog: bool
    overwrites: bool
    is_upsert: bool
    """True if rows before an update do not arrive."""

    @property
    def columns(self) -> RowType:
        """The columns without metadata: with the names of the table, and the types of the rows that come."""
        pairs = zip(self.schema.physical.field_names(), self.row_type.field_types(), strict=False)
        return RowType([RowField(name, data_type) for name, data_type in pairs])

    def refuse_changes(self) -> None:
        if self.is_changelog:
            raise UnsupportedFeatureError(f"{self.options.owner} takes no updates and deletes, but the query has some")
