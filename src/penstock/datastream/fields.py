"""Fields of elements by position or name: for key_by, project, and for sum, min and max."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, Literal

from penstock.common.exceptions import InvalidProgramError
from penstock.common.typeinfo import BasicType, BasicTypeInfo, TypeInformation
from penstock.common.types import Row
from penstock.datastream.declared_types import converter_of
from penstock.datastream.functions import KeySelector, ReduceFunction

Field = int | str


def get_field(element: Any, field: Field) -> Any:
    """A field of a tuple, list, row, dict, dataclass or object; position 0 of a single value is the value itself."""
    if isinstance(element, (tuple, list)) and isinstance(field, str):
        if field in getattr(element, "_fields", ()):
            return getattr(element, field)
        raise InvalidProgramError(
            f"field {field!r} of {element!r}: a {type(element).__name__} has no field of that name; give its position, "
            f"such as sum(1), or make the elements rows, dicts or dataclasses"
        )
    if isinstance(element, (tuple, list, Row, dict)):
        return element[field]  # type: ignore[index]
    if isinstance(field, str):
        return getattr(element, field)
    if dataclasses.is_dataclass(element):
        return getattr(element, dataclasses.fields(element)[field].name)
    if field == 0:
        return element
    raise InvalidProgramError(
        f"field {field} of {element!r}: a {type(element).__name__} has no fields by position; use tuples, rows, "
        f"dataclasses or a field name"
    )


def with_field(element: Any, field: Field, value: Any) -> Any:
    """A copy of `element` with one field replaced."""
    if isinstance(element, tuple):
        if hasattr(element, "_replace"):
            named: Any = element
            return named._replace(**{named._fields[field] if isinstance(field, int) else field: value})
        at = range(len(element))[int(field)]  # From the end, if it is negative.
        return (*element[:at], value, *element[at + 1 :])
    if isinstance(element, (list, Row, dict)):
        copied = copy.copy(element)
        copied[field] = value  # type: ignore[index]
        return copied
    if dataclasses.is_dataclass(element) and not isinstance(element, type):
        name = dataclasses.fields(element)[field].name if isinstance(field, int) else field
        return dataclasses.replace(element, **{name: value})
    if isinstance(field, str):
        copied = copy.copy(element)
        setattr(copied, field, value)
        return copied
    return value


AggregationKind = Literal["sum", "min", "max", "min_by", "max_by"]


@dataclass(frozen=True)
class FieldAggregation(ReduceFunction):
    """sum, min, max: the first element with the field replaced. min_by, max_by: the whole element, first of equals."""

    kind: AggregationKind
    field: Field

    def __post_init__(self) -> None:
        if isinstance(self.field, bool) or not isinstance(self.field, (int, str)):
            raise TypeError(
                f"{self.kind} needs the position (int) or the name (str) of a field, got {self.field!r} of type "
                f"{type(self.field).__name__}"
            )

    def check(self, value: Any) -> None:
        """Raise if an element has no such field."""
        get_field(value, self.field)

    def reduce(self, value1: Any, value2: Any) -> Any:
        first, second = get_field(value1, self.field), get_field(value2, self.field)
        match self.kind:
            case "sum":
                return with_field(value1, self.field, first + second)
            case "min":
                return with_field(value1, self.field, second) if second < first else value1
            case "max":
                return with_field(value1, self.field, second) if second > first else value1
            case "min_by":
                return value2 if second < first else value1
            case "max_by":
                return value2 if second > first else value1

    def __str__(self) -> str:
        return f"{'Sum' if self.kind == 'sum' else 'Comparable'}Aggregator"


def as_key_selector(key_selector: Any, *more_fields: Field) -> Callable[[Any], Any]:
    """A function from an element to its key.

    Takes a callable, a KeySelector, or one or several fields by position or name; several give a tuple.
    """
    if isinstance(key_selector, KeySelector):
        return key_selector.get_key
    if isinstance(key_selector, (int, str)) and not isinstance(key_selector, bool):
        fields = (key_selector, *more_fields)
        if len(fields) == 1:
            return itemgetter(key_selector) if isinstance(key_selector, int) else FieldKey(fields)
        return FieldKey(fields)
    if callable(key_selector) and not more_fields:
        return key_selector  # type: ignore[no-any-return]
    raise TypeError(
        f"key_by needs a function, a KeySelector, or fields by position or name, got {key_selector!r} of type "
        f"{type(key_selector).__name__}"
    )


@dataclass(frozen=True)
class FieldKey:
    """A key selector: one field, or a tuple of several."""

    fields: tuple[Field, ...]

    def __call__(self, element: Any) -> Any:
        if len(self.fields) == 1:
            return get_field(element, self.fields[0])
        return tuple(get_field(element, field) for field in self.fields)


@dataclass(frozen=True)
class DeclaredKey:
    """A key selector whose keys get the form of their declared type, as in PyFlink."""

    select: Callable[[Any], Any]
    key_type: TypeInformation

    @cached_property
    def convert(self) -> Callable[[Any], Any]:
        convert = converter_of(self.key_type)
        assert convert is not None  # `with_key_type` makes no DeclaredKey for other types.
        return convert

    def __call__(self, element: Any) -> Any:
        return self.convert(self.select(element))

    def __reduce__(self) -> Any:
        return DeclaredKey, (self.select, self.key_type)

    @property
    def kept_kind(self) -> type | None:
        """The type whose instances stay as they are (whole numbers of up to 64 bits); None if that is not known."""
        match self.key_type:
            case BasicTypeInfo(_basic_type=basic):
                return {BasicType.LONG: int, BasicType.STRING: str, BasicType.BOOLEAN: bool}.get(basic)
        return None


def with_key_type(selector: Callable[[Any], Any], key_type: TypeInformation | None) -> Callable[[Any], Any]:
    """A key selector that gives keys the form of their declared type."""
    if key_type is None or converter_of(key_type) is None:
        return selector
    return DeclaredKey(selector, key_type)


class Projection:
    """Some fields of an element, by position, as a tuple."""

    def __init__(self, fields: tuple[int, ...]) -> None:
        self._fields = fields

    def __repr__(self) -> str:
        return f"Projection({self._fields!r})"

    def __call__(self, element: Any) -> tuple[Any, ...]:
        return tuple(get_field(element, field) for field in self._fields)
