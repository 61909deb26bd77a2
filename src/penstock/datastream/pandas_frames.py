"""Collected elements as a pandas DataFrame."""

from __future__ import annotations

import dataclasses
from typing import Any

import pandas

from penstock.common.typeinfo import RowTypeInfo, TypeInformation
from penstock.common.types import Row


def pandas_frame(elements: list[Any], type_info: TypeInformation | None) -> pandas.DataFrame:
    """A row for each element; columns are the fields of the declared row type, or those that the elements have."""
    if isinstance(type_info, RowTypeInfo):
        return pandas.DataFrame([list(element) for element in elements], columns=type_info.get_field_names())
    return pandas.DataFrame([_fields_of(element) for element in elements])


def _fields_of(element: Any) -> Any:
    if isinstance(element, Row):
        return element.as_dict() if element._fields is not None else list(element)
    if isinstance(element, tuple) and hasattr(element, "_asdict"):
        return element._asdict()
    if isinstance(element, (dict, tuple, list)):
        return element
    if dataclasses.is_dataclass(element) and not isinstance(element, type):
        return {field.name: getattr(element, field.name) for field in dataclasses.fields(element)}
    return {"value": element}
