"""How values print: as Flink prints them."""

from __future__ import annotations

from penstock.common.typeinfo import TypeInformation
from penstock.common.types import Row

__all__ = ["format_value"]


def format_value(value: object, type_info: TypeInformation | None = None) -> str:
    if isinstance(value, tuple):
        return "(" + ",".join(format_value(item) for item in value) + ")"
    if isinstance(value, Row):
        return f"{value.get_row_kind()}[{', '.join(format_value(item) for item in value)}]"
    return str(value)
