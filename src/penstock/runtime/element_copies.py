"""Copies of elements, so that each element belongs to one function only.

In Flink, object reuse is off by default: a function may change its input, keep the elements it emits, and emit elements
it keeps, and no other function sees a change. So

- an element is copied as soon as a function emits it (`copied`), because the function may keep it;
- if several functions receive an element, each gets its own copy (`all_copied`);
- a function gets copies of the values that its operator keeps (reduced values, contents of windows).

State that a function keeps itself is not copied, as with Flink's heap backend: `value()` returns the object that was
given to `update`.

Immutable values need no copy: numbers, texts, times, and tuples of these.
"""

from __future__ import annotations

import copy
import copyreg
import datetime
import decimal
import enum
import fractions
import re
import types
import uuid
from array import array
from collections import deque
from collections.abc import Callable
from itertools import chain
from typing import Any

from penstock.common.time import Instant
from penstock.common.typeinfo import (
    BasicTypeInfo,
    DateTypeInfo,
    LocalTimeTypeInfo,
    SqlTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from penstock.common.types import Row, empty_row_like

IMMUTABLE_TYPES: set[type] = {
    int,
    float,
    complex,
    bool,
    str,
    bytes,
    type(None),
    type(...),
    type(NotImplemented),
    range,
    slice,
    datetime.date,
    datetime.datetime,
    datetime.time,
    datetime.timedelta,
    datetime.timezone,
    decimal.Decimal,
    fractions.Fraction,
    uuid.UUID,
    re.Pattern,
    re.Match,
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.ModuleType,
    property,
    Instant,
}
"""Types whose values cannot change. Further ones (enumerations, NumPy's scalars) are added when they first occur."""

Copy = Callable[[Any], Any]
_Memo = dict[int, Any]
"""Copies by the id of their original, as in `copy.deepcopy`, so that an object that occurs twice is copied once."""


def copied(value: Any) -> Any:
    """`value` for another function: the value itself if it is immutable, otherwise a copy that shares nothing with it.

    An object that cannot be copied (a generator, a connection) is returned as it is. It can neither be sent to another
    task nor be kept in state, but a chain may pass it on, as in PyFlink.
    """
    kind = type(value)
    if kind in IMMUTABLE_TYPES:
        return value
    if kind is tuple:
        for item in value:
            if type(item) not in IMMUTABLE_TYPES:
                break
        else:
            return value
    try:
        return _copier_of(kind)(value, {})
    except (TypeError, copy.Error):
        return value


def as_it_is(value: Any) -> Any:
    """Replaces `copied` if objects are reused or immutable."""
    return value


def copied_unless_tuple(value: Any) -> Any:
    """Replaces `copied` for values declared as tuples of immutable items. A function may still return a list."""
    return value if type(value) is tuple else copied(value)


def copies_of_type(type_info: TypeInformation | None) -> Copy:
    """How to copy the results of a function with this declared result type."""
    if not is_immutable_type(type_info):
        return copied
    return copied_unless_tuple if isinstance(type_info, TupleTypeInfo) else as_it_is


def all_copied(values: list[Any]) -> list[Any]:
    """`values` for one more receiver: the same list if all of them are immutable."""
    return values if are_immutable(values) else list(map(copied, values))


def are_immutable(values: list[Any]) -> bool:
    """True if all `values` are immutable. A tuple within a tuple counts as mutable: only one level is examined."""
    kinds = set(map(type, values)) - IMMUTABLE_TYPES
    if not kinds:
        return True
    if kinds != {tuple}:
        return False
    tuples = values if len(set(map(type, values))) == 1 else [value for value in values if type(value) is tuple]
    return IMMUTABLE_TYPES.issuperset(map(type, chain.from_iterable(tuples)))


_IMMUTABLE_TYPE_INFOS = (
    BasicTypeInfo,
    SqlTimeTypeInfo,
    DateTypeInfo,
    TimeTypeInfo,
    TimestampTypeInfo,
    LocalTimeTypeInfo,
)


def is_immutable_type(type_info: TypeInformation | None) -> bool:
    """True if values of a declared type are immutable."""
    if isinstance(type_info, TupleTypeInfo):
        return all(map(is_immutable_type, type_info.get_field_types()))
    return type_info is not None and (
        type_info.has_only_immutable_values or isinstance(type_info, _IMMUTABLE_TYPE_INFOS)
    )


# --- a copier for each type ------------------------------------------------------------------------------------------

_Copier = Callable[[Any, _Memo], Any]


def _copy(value: Any, memo: _Memo) -> Any:
    kind = type(value)
    return value if kind in IMMUTABLE_TYPES else _copier_of(kind)(value, memo)


def _copier_of(kind: type) -> _Copier:
    return _COPIERS.get(kind) or _new_copier(kind)


def _new_copier(kind: type) -> _Copier:
    """The copier of a type that occurs for the first time; it is remembered."""
    copier = _choose_copier(kind)
    if copier is _same:
        IMMUTABLE_TYPES.add(kind)
    _COPIERS[kind] = copier
    return copier


def _choose_copier(kind: type) -> _Copier:
    if issubclass(kind, (enum.Enum, type)):
        return _same
    if kind.__module__ == "numpy" and kind.__name__ not in ("ndarray", "void", "object_", "record"):
        import numpy

        if issubclass(kind, numpy.generic):
            return _same
    if hasattr(kind, "__deepcopy__") or kind in copyreg.dispatch_table:
        return copy.deepcopy
    if issubclass(kind, tuple) and _is_named_tuple(kind):
        return _copy_named_tuple
    return _copy_object if _is_plain_class(kind) else copy.deepcopy


def _is_named_tuple(kind: type) -> bool:
    """True for named tuples whose objects hold nothing but their items: a subclass may have further attributes."""
    return (
        hasattr(kind, "_make")
        and hasattr(kind, "_fields")
        and kind.__new__.__module__.startswith("namedtuple_")
        and kind.__dictoffset__ == 0
        and _inherits_from_object(kind, "__reduce__")
        and _inherits_from_object(kind, "__reduce_ex__")
    )


def _inherits_from_object(kind: type, method: str) -> bool:
    return getattr(kind, method, None) is getattr(object, method, None)


_COPY_METHODS = (
    *("__new__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__"),
    *("__getnewargs__", "__getnewargs_ex__"),
)


def _is_plain_class(kind: type) -> bool:
    """True for classes whose objects hold everything in their `__dict__` and do not control how they are copied."""
    return (
        all(_inherits_from_object(kind, method) for method in _COPY_METHODS)
        and not any("__slots__" in base.__dict__ for base in kind.__mro__)
        and kind.__dictoffset__ != 0
    )


def _same(value: Any, memo: _Memo) -> Any:
    return value


def _copy_tuple(value: tuple[Any, ...], memo: _Memo) -> tuple[Any, ...]:
    items = [_copy(item, memo) for item in value]
    # If a list in the tuple contains the tuple itself, copying the list has already copied the tuple.
    if id(value) in memo:
        return memo[id(value)]  # type: ignore[no-any-return]
    made = value if all(map(_is, items, value)) else tuple(items)
    memo[id(value)] = made
    return made


def _copy_named_tuple(value: Any, memo: _Memo) -> Any:
    items = [_copy(item, memo) for item in value]
    return value if all(map(_is, items, value)) else type(value)._make(items)


def _is(one: Any, other: Any) -> bool:
    return one is other


def _copy_list(value: list[Any], memo: _Memo) -> list[Any]:
    made: list[Any] | None = memo.get(id(value))
    if made is None:
        made = memo[id(value)] = value.copy()
        for at, item in enumerate(value):
            if type(item) not in IMMUTABLE_TYPES:
                made[at] = _copy(item, memo)
    return made


def _copy_dict(value: dict[Any, Any], memo: _Memo) -> dict[Any, Any]:
    made: dict[Any, Any] | None = memo.get(id(value))
    if made is None:
        made = memo[id(value)] = {}
        for key, item in value.items():
            if type(key) not in IMMUTABLE_TYPES:
                key = _copy(key, memo)
            made[key] = item if type(item) in IMMUTABLE_TYPES else _copy(item, memo)
    return made


def _copy_set(value: set[Any], memo: _Memo) -> set[Any]:
    made: set[Any] | None = memo.get(id(value))
    if made is None:
        made = memo[id(value)] = {_copy(item, memo) for item in value}
    return made


def _copy_frozenset(value: frozenset[Any], memo: _Memo) -> frozenset[Any]:
    items = [_copy(item, memo) for item in value]
    return value if all(map(_is, items, value)) else frozenset(items)


def _copy_deque(value: deque[Any], memo: _Memo) -> deque[Any]:
    made: deque[Any] | None = memo.get(id(value))
    if made is None:
        made = memo[id(value)] = deque(maxlen=value.maxlen)
        made.extend(_copy(item, memo) for item in value)
    return made


def _copy_flat(value: Any, memo: _Memo) -> Any:
    made = memo.get(id(value))
    if made is None:
        made = memo[id(value)] = value[:]
    return made


def _copy_row(value: Row, memo: _Memo) -> Row:
    made: Row | None = memo.get(id(value))
    if made is None:
        made = memo[id(value)] = empty_row_like(value)
        made[:] = [item if type(item) in IMMUTABLE_TYPES else _copy(item, memo) for item in value]
    return made


def _copy_object(value: Any, memo: _Memo) -> Any:
    made = memo.get(id(value))
    if made is None:
        made = memo[id(value)] = object.__new__(type(value))
        made.__dict__.update(
            {
                name: held if type(held) in IMMUTABLE_TYPES else _copy(held, memo)
                for name, held in value.__dict__.items()
            }
        )
    return made


_COPIERS: dict[type, _Copier] = {
    tuple: _copy_tuple,
    list: _copy_list,
    dict: _copy_dict,
    set: _copy_set,
    frozenset: _copy_frozenset,
    deque: _copy_deque,
    bytearray: _copy_flat,
    array: _copy_flat,
    Row: _copy_row,
}
