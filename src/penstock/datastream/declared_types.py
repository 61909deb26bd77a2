"""Elements as their declared type wants them."""

from __future__ import annotations

from typing import Any

from penstock.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation
from penstock.common.types import Row


def as_declared(value: Any, type_info: TypeInformation | None) -> Any:
    """Where a row type is declared, tuples and lists become rows with the declared names; lists become tuples alike."""
    if isinstance(type_info, RowTypeInfo) and isinstance(value, (tuple, list, Row)):
        row = Row(*(as_declared(item, each) for item, each in zip(value, type_info.get_field_types(), strict=True)))
        if isinstance(value, Row):
            row.set_row_kind(value.get_row_kind())
        row.set_field_names(type_info.get_field_names())
        return row
    if isinstance(type_info, TupleTypeInfo) and isinstance(value, (tuple, list)):
        return tuple(as_declared(item, each) for item, each in zip(value, type_info.get_field_types(), strict=True))
    return value
