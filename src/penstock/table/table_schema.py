"""Names and types of a table's columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.table.types import DataType, RowField, RowType

__all__ = ["TableSchema"]


class _Builder:
    def __init__(self) -> None:
        self._names: list[str] = []
        self._types: list[DataType] = []

    def field(self, name: str, data_type: DataType) -> _Builder:
        """Add a column."""
        self._names.append(name)
        self._types.append(data_type)
        return self

    def build(self) -> TableSchema:
        """The schema."""
        return TableSchema(self._names, self._types)


class TableSchema:
    """Names and types of a table's columns.

    >>> from penstock.table import DataTypes
    >>> print(TableSchema(["a"], [DataTypes.INT()]))
    root
     |-- a: INT
    <BLANKLINE>
    """

    Builder = _Builder

    def __init__(self, field_names: Sequence[str] = (), data_types: Sequence[DataType] = ()) -> None:
        if len(field_names) != len(data_types):
            raise ValueError(f"TableSchema: {len(field_names)} names, but {len(data_types)} types")
        self._names, self._types = list(field_names), list(data_types)

    @classmethod
    def builder(cls) -> _Builder:
        """A builder, which adds column after column."""
        return _Builder()

    def copy(self) -> TableSchema:
        """Another schema with the same columns."""
        return TableSchema(self._names, self._types)

    def get_field_data_types(self) -> list[DataType]:
        """The types of the columns."""
        return list(self._types)

    def get_field_data_type(self, field: int | str) -> DataType | None:
        """The type of a column, by position or name; None if there is no such column."""
        if isinstance(field, str):
            return self._types[self._names.index(field)] if field in self._names else None
        if not isinstance(field, int):
            raise TypeError(f"a column is named by its position or name, got {field!r}")
        return self._types[field] if 0 <= field < len(self._types) else None

    def get_field_count(self) -> int:
        """The number of columns."""
        return len(self._names)

    def get_field_names(self) -> list[str]:
        """The names of the columns."""
        return list(self._names)

    def get_field_name(self, field_index: int) -> str | None:
        """The name of a column, by position; None if there is no such column."""
        return self._names[field_index] if 0 <= field_index < len(self._names) else None

    def to_row_data_type(self) -> RowType:
        """The type of a whole row."""
        return RowType([RowField(name, of) for name, of in zip(self._names, self._types, strict=True)], nullable=False)

    def __repr__(self) -> str:
        columns = [f" |-- {name}: {summary(of)}\n" for name, of in zip(self._names, self._types, strict=True)]
        return "root\n" + "".join(columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableSchema) and (self._names, self._types) == (other._names, other._types)

    def __hash__(self) -> int:
        return hash((tuple(self._names), tuple(self._types)))


def summary(data_type: DataType) -> str:
    """The type as Flink shows it to people: STRING and BYTES by these names, time attributes marked."""
    text = data_type.as_sql().replace("VARCHAR(2147483647)", "STRING").replace("VARBINARY(2147483647)", "BYTES")
    text = re.sub(r"TIMESTAMP\((\d)\) WITH LOCAL TIME ZONE", r"TIMESTAMP_LTZ(\1)", text)
    kind = getattr(data_type, "kind", "REGULAR")
    return text if kind == "REGULAR" else f"{text} *{kind}*"
