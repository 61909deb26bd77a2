"""Rows: values with positions, optional field names and a kind of change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, overload

__all__ = ["Row", "RowKind"]


class RowKind(Enum):
    """What a row does to a changing table.

    >>> row = Row("Alice", 11)
    >>> row.set_row_kind(RowKind.DELETE)
    >>> str(row.get_row_kind())
    '-D'
    """

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        return _ROW_KIND_TEXT[self.value]


_ROW_KIND_TEXT = ("+I", "-U", "+U", "-D")


class Row:
    """A list of values, with or without field names.

    >>> Row("Alice", 11)[0]
    'Alice'
    >>> row = Row(name="Alice", age=11)
    >>> row.name, row["age"], "age" in row
    ('Alice', 11, True)
    >>> Person = Row("name", "age")
    >>> Person("Bob", 12)
    Row(name='Bob', age=12)

    Two rows are equal if kind and values are; named rows compare field by field whatever their order.
    """

    __slots__ = ("_fields", "_row_kind", "_values")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                f"Row takes either values or name=value pairs, got both ({len(args)} values and {list(kwargs)})"
            )
        self._fields: list[str] | None = list(kwargs) if kwargs else None
        self._values: list[Any] = list(kwargs.values()) if kwargs else list(args)
        self._row_kind = RowKind.INSERT

    @staticmethod
    def of_kind(row_kind: RowKind, *args: Any, **kwargs: Any) -> Row:
        """A row with this kind of change; other rows are INSERTs.

        >>> Row.of_kind(RowKind.DELETE, "Alice", 11).get_row_kind()
        <RowKind.DELETE: 3>
        """
        row = Row(*args, **kwargs)
        row._row_kind = row_kind
        return row

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """Field names and values; with `recursive`, rows inside rows, lists and dicts become dicts too."""
        if self._fields is None:
            raise TypeError(f"{self!r} has no field names, so it cannot become a dict; call set_field_names first")
        values = map(_rows_to_dicts, self._values) if recursive else self._values
        return dict(zip(self._fields, values, strict=False))

    def get_row_kind(self) -> RowKind:
        """What the row does to a changing table."""
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        """Change what the row does to a changing table."""
        self._row_kind = row_kind

    def set_field_names(self, field_names: list[str]) -> None:
        """Give the values names, in order."""
        self._fields = field_names

    def get_fields_by_names(self, names: list[str]) -> list[Any]:
        """The values of these fields in this order; all values if the row has no names."""
        if self._fields is None or names == self._fields:
            return self._values
        if missing := [name for name in names if name not in self._fields]:
            raise ValueError(f"Row has no field {', '.join(map(repr, missing))}; its fields are {self._fields}")
        return [self._values[self._fields.index(name)] for name in names]

    def _position(self, name: str) -> int:
        if self._fields is None:
            raise KeyError(f"this row has no field names to look up {name!r} in; use a position or set field names")
        try:
            return self._fields.index(name)
        except ValueError:
            raise ValueError(f"row has no field {name!r}; its fields are {self._fields}") from None

    @overload
    def __getitem__(self, item: int | str) -> Any: ...

    @overload
    def __getitem__(self, item: slice) -> list[Any]: ...

    def __getitem__(self, item: int | str | slice) -> Any:
        return self._values[self._position(item) if isinstance(item, str) else item]

    def __setitem__(self, key: int | str | slice, value: Any) -> None:
        self._values[self._position(key) if isinstance(key, str) else key] = value

    def __getattr__(self, item: str) -> Any:
        # copy and pickle ask for dunder and private names before the slots are filled.
        if item.startswith("_") or self._fields is None or item not in self._fields:
            raise AttributeError(f"row has no field {item!r}")
        return self._values[self._fields.index(item)]

    def __contains__(self, item: object) -> bool:
        return item in (self._values if self._fields is None else self._fields)

    def __call__(self, *args: Any) -> Row:
        """Make a row whose field names are this row's values."""
        if len(args) > len(self._values):
            raise ValueError(f"{self!r} names {len(self._values)} fields, got {len(args)} values: {args!r}")
        return _create_row(type(self), self._values, args, self._row_kind.value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row) or type(self) is not type(other) or self._row_kind is not other._row_kind:
            return False
        if self._fields == other._fields:
            return self._values == other._values
        if self._fields is None or other._fields is None or sorted(self._fields) != sorted(other._fields):
            return False
        return all(self[name] == other[name] for name in self._fields)

    def __hash__(self) -> int:
        # Field order must not matter, because it does not for equality.
        if self._fields is None:
            return hash(tuple(self._values))
        return hash(frozenset(zip(self._fields, self._values, strict=False)))

    def __repr__(self) -> str:
        if self._fields is None:
            return f"<Row({', '.join(map(repr, self._values))})>"
        return f"Row({', '.join(f'{k}={v!r}' for k, v in zip(self._fields, self._values, strict=False))})"

    def __reduce__(self) -> tuple[object, ...]:
        if self._fields is None and self._row_kind is RowKind.INSERT:
            return (type(self), tuple(self._values))
        return (_create_row, (type(self), self._fields, tuple(self._values), self._row_kind.value))


def _create_row(kind: type[Row], fields: list[str] | None, values: Iterable[Any], row_kind: int) -> Row:
    row = kind(*values)
    row._fields = fields
    row._row_kind = RowKind(row_kind)
    return row


def make_row(names: list[str], values: Iterable[Any]) -> Row:
    """A row with fields of these names."""
    row = Row(*values)
    row.set_field_names(names)
    return row


def make_rows(names: list[str], columns: Iterable[Iterable[Any]]) -> list[Row]:
    """Rows with fields of these names, from the values of each field."""
    return put_together(names, list(map(list, zip(*columns, strict=True))))


def taken_apart(rows: list[Any]) -> tuple[list[str] | None, list[list[Any]]] | None:
    """The field names that all of them have, and the values of each; None if they differ, or are not plain rows."""
    names = getattr(rows[0], "_fields", None)
    insert = RowKind.INSERT
    if not all(type(row) is Row and row._row_kind is insert and row._fields == names for row in rows):
        return None
    return names, [row._values for row in rows]


def put_together(names: list[str] | None, values: list[list[Any]]) -> list[Row]:
    """Rows with these field names and values; the lists become theirs."""
    rows = []
    new, insert = Row.__new__, RowKind.INSERT
    for each in values:
        row = new(Row)
        row._fields, row._values, row._row_kind = names, each, insert
        rows.append(row)
    return rows


def empty_row_like(row: Row) -> Row:
    """A row of the same kind and field names, without values."""
    made = Row()
    made._fields, made._row_kind = row._fields, row._row_kind
    return made


def _rows_to_dicts(value: Any) -> Any:
    match value:
        case Row():
            return value.as_dict(True)
        case list():
            return [_rows_to_dicts(item) for item in value]
        case dict():
            return {key: _rows_to_dicts(item) for key, item in value.items()}
    return value
