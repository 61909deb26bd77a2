"""The columns, the watermark and the key of a table that is described in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.table.expression import Expression
from penstock.table.types import DataType, RowType, quoted

__all__ = ["Schema"]


@dataclass(frozen=True)
class Column:
    """A column: physical if it has only a type, else computed or metadata."""

    name: str
    data_type: str | None = None
    expression: str | None = None
    is_metadata: bool = False
    metadata_key: str | None = None
    is_virtual: bool = False

    @property
    def is_physical(self) -> bool:
        """True if the column is one of the table itself."""
        return self.expression is None and not self.is_metadata

    def as_sql(self) -> str:
        """The column as CREATE TABLE has it."""
        name = quoted(self.name)
        if self.expression is not None:
            return f"{name} AS {self.expression}"
        if not self.is_metadata:
            return f"{name} {self.data_type}"
        source = "" if self.metadata_key is None else f" FROM {_text(self.metadata_key)}"
        return f"{name} {self.data_type} METADATA{source}{' VIRTUAL' if self.is_virtual else ''}"


class _Builder:
    """Adds column after column; `build` gives the schema."""

    def __init__(self) -> None:
        self._columns: list[Column] = []
        self._watermarks: list[tuple[str, str]] = []
        self._key: tuple[str, ...] = ()

    def from_schema(self, unresolved_schema: Schema) -> _Builder:
        """All that another schema has."""
        self._columns += unresolved_schema.columns
        self._watermarks += unresolved_schema.watermarks
        self._key = unresolved_schema.key or self._key
        return self

    def from_row_data_type(self, data_type: DataType) -> _Builder:
        """The fields of a row type, as columns."""
        if not isinstance(data_type, RowType):
            raise TypeError(f"from_row_data_type takes a type such as DataTypes.ROW([...]), got {data_type!r}")
        for each in data_type:
            self.column(each.name, each.data_type)
        return self

    def from_fields(self, field_names: Sequence[str], field_data_types: Sequence[DataType | str]) -> _Builder:
        """Columns with these names and types."""
        if len(field_names) != len(field_data_types):
            raise ValueError(f"from_fields: {len(field_names)} names, but {len(field_data_types)} types")
        for name, data_type in zip(field_names, field_data_types, strict=True):
            self.column(name, data_type)
        return self

    def column(self, column_name: str, data_type: str | DataType) -> _Builder:
        """A column of the table itself."""
        self._columns.append(Column(column_name, _type_text(column_name, data_type)))
        return self

    def column_by_expression(self, column_name: str, expr: str | Expression[Any]) -> _Builder:
        """A column that is computed from others, such as `"price * amount"`."""
        text = expr.as_sql() if isinstance(expr, Expression) else expr
        self._columns.append(Column(column_name, expression=text))
        return self

    def column_by_metadata(
        self,
        column_name: str,
        data_type: DataType | str,
        metadata_key: str | None = None,
        is_virtual: bool = False,
    ) -> _Builder:
        """A column from what the connector knows of a record, such as Kafka's `timestamp`; virtual if only read."""
        text = _type_text(column_name, data_type)
        self._columns.append(Column(column_name, text, None, True, metadata_key, is_virtual))
        return self

    def watermark(self, column_name: str, watermark_expr: str | Expression[Any]) -> _Builder:
        """The column that is the event time, and its watermark, such as `"ts - INTERVAL '5' SECOND"`."""
        text = watermark_expr.as_sql() if isinstance(watermark_expr, Expression) else watermark_expr
        self._watermarks.append((column_name, text))
        return self

    def primary_key(self, *column_names: str) -> _Builder:
        """The columns that tell rows apart; the table is trusted to keep to it."""
        self._key = tuple(column_names)
        return self

    def primary_key_named(self, constraint_name: str, *column_names: str) -> _Builder:
        """A primary key, with a name."""
        return self.primary_key(*column_names)

    def build(self) -> Schema:
        """The schema."""
        return Schema(tuple(self._columns), tuple(self._watermarks), self._key)


@dataclass(frozen=True)
class Schema:
    """The columns, the watermark and the key of a table.

    >>> from penstock.table import DataTypes
    >>> schema = Schema.new_builder().column("id", DataTypes.BIGINT()).column("name", "STRING").build()
    >>> print(schema)
    (
      `id` BIGINT,
      `name` STRING
    )
    """

    columns: tuple[Column, ...] = ()
    watermarks: tuple[tuple[str, str], ...] = ()
    key: tuple[str, ...] = field(default=())

    Builder = _Builder

    @staticmethod
    def new_builder() -> _Builder:
        """A builder, which adds column after column."""
        return _Builder()

    def parts_as_sql(self) -> list[str]:
        """What CREATE TABLE has in its brackets."""
        parts = [column.as_sql() for column in self.columns]
        parts += [f"WATERMARK FOR {quoted(name)} AS {expression}" for name, expression in self.watermarks]
        if self.key:
            parts.append(f"PRIMARY KEY ({', '.join(map(quoted, self.key))}) NOT ENFORCED")
        return parts

    def __str__(self) -> str:
        lines = ",\n  ".join(self.parts_as_sql())
        return f"(\n  {lines}\n)"


def _type_text(column: str, data_type: DataType | str) -> str:
    if isinstance(data_type, DataType):
        return data_type.as_sql()
    if isinstance(data_type, str):
        return data_type
    raise TypeError(f"column {column!r} needs a type such as DataTypes.INT() or 'INT', got {data_type!r}")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
