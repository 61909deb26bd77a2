"""Elements as their declared type wants them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.common.exceptions import InvalidProgramError
from penstock.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation
from penstock.common.types import Row


def row_form_of(type_info: TypeInformation | None) -> Callable[[Any], Any] | None:
    """What gives elements their declared form; None if there is nothing to do, as for all types but rows."""
    return (lambda value: as_declared(value, type_info)) if isinstance(type_info, RowTypeInfo) else None


def as_declared(value: Any, type_info: TypeInformation | None) -> Any:
    """Where a row type is declared, tuples and lists become rows with the declared names; lists become tuples alike."""
    if isinstance(type_info, RowTypeInfo) and isinstance(value, (tuple, list, Row)):
        return _as_row(value, type_info)
    if isinstance(type_info, TupleTypeInfo) and isinstance(value, (tuple, list)):
        return tuple(_fields(value, list(value), type_info))
    return value


def _as_row(value: Any, type_info: RowTypeInfo) -> Row:
    names = type_info.get_field_names()
    # A row made with names may have them in another order.
    values = value.get_fields_by_names(names) if isinstance(value, Row) else list(value)
    row = Row(*_fields(value, values, type_info))
    if isinstance(value, Row):
        row.set_row_kind(value.get_row_kind())
    row.set_field_names(names)
    return row


def _fields(value: Any, values: list[Any], type_info: RowTypeInfo | TupleTypeInfo) -> list[Any]:
    types = type_info.get_field_types()
    if len(values) != len(types):
        raise InvalidProgramError(
            f"{value!r} has {len(values)} fields, but {type_info} was declared with {len(types)}; declare the type "
            f"that the function returns"
        )
    return [as_declared(item, each) for item, each in zip(values, types, strict=True)]
