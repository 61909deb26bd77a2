"""Elements as columns: numbers and texts, or tuples of them, in buffers that are cheap to partition and to send.

Elements keep their types exactly: a column holds values of a single type, which is `int` (of 64 bits), `float`, `bool`
or `str`. Tuples may hold tuples. Other elements (None, larger integers, subclasses, tuples of different lengths) are
pickled instead.
"""

from __future__ import annotations

import functools
import struct
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from penstock.common.typeinfo import BasicType, BasicTypeInfo, TupleTypeInfo, TypeInformation
from penstock.datastream.declared_types import converter_of
from penstock.runtime.batch import Batch, Timestamps

Array = NDArray[Any]
Places = NDArray[np.intp] | slice
"""Positions of elements in a batch."""

INTS, FLOATS, BOOLS, TEXTS, ANY = "q", "d", "?", "U", "*"
_KINDS = {int: INTS, float: FLOATS, bool: BOOLS, str: TEXTS}
_MOST_COLUMNS = 256
_SEPARATOR = "\0"


@dataclass(frozen=True)
class Columns:
    """Elements of the same types. Their keys and timestamps, if they have them, are further columns."""

    kinds: str
    """A letter for each column; parentheses enclose the items of a tuple: `(qU(qd))`."""
    arrays: list[Array]
    key: Array | int | None = None
    """The keys, or the number of the column that holds them; None if the elements have no keys."""
    timestamps: Array | None = None

    def __len__(self) -> int:
        return len(self.arrays[0])

    def item(self, at: int) -> tuple[str, int] | None:
        """The kinds of item `at` of elements that are tuples, and the number of the item's first column.

        None if the tuples have no item `at`.
        """
        items = items_of(self.kinds)
        if not -len(items) <= at < len(items):
            return None
        at %= len(items)
        return items[at], sum(len(_letters(each)) for each in items[:at])

    @property
    def shape(self) -> tuple[Any, ...]:
        """Equal for columns that `joined` can put together."""
        key = self.key if self.key is None or isinstance(self.key, int) else self.key.dtype
        return self.kinds, key, self.timestamps is None

    def taken(self, places: Places) -> Columns:
        key = self.key if self.key is None or isinstance(self.key, int) else self.key[places]
        timestamps = None if self.timestamps is None else self.timestamps[places]
        return replace(self, arrays=[each[places] for each in self.arrays], key=key, timestamps=timestamps)

    def with_timestamps(self, timestamps: Timestamps) -> Columns | None:
        """None if some timestamps are missing or do not fit into 64 bits."""
        try:
            packed = timestamps if isinstance(timestamps, array) else array(INTS, cast("Sequence[int]", timestamps))
        except (TypeError, OverflowError):
            return None
        return replace(self, timestamps=np.frombuffer(packed, dtype=INTS))

    def fit(self, declared: DeclaredColumns) -> bool:
        """True if the elements already have the form of their declared type."""
        items = items_of(self.kinds)
        if len(items) != len(declared.kinds) or self.kinds.startswith("(") is not declared.are_tuples:
            return False
        at = 0
        for kind, wanted, bits in zip(items, declared.kinds, declared.bits, strict=True):
            column, at = self.arrays[at], at + len(_letters(kind))
            if wanted not in (ANY, kind):
                return False
            if bits < 64 and not -(1 << bits - 1) <= column.min() <= column.max() < 1 << bits - 1:
                return False
        return True

    def size(self) -> int:
        """About how many bytes the elements take; the last text of a column stands for the whole column."""
        letters = _letters(self.kinds)
        widths = (len(each[-1]) if kind == TEXTS else 8 for kind, each in zip(letters, self.arrays, strict=True))
        return len(self) * sum(widths)

    def batch(self) -> Batch:
        """The elements one by one."""
        lists = [each.tolist() for each in self.arrays]
        key = self.key
        keys = lists[key] if isinstance(key, int) else None if key is None else key.tolist()
        timestamps = None if self.timestamps is None else self.timestamps.tolist()
        return Batch(_put_together(self.kinds, iter(lists)), timestamps, keys)

    def packed(self) -> tuple[Any, ...]:
        """The columns as they are sent: bytes and texts, which are cheap to pickle. Numbers have native byte order."""
        key = self.key if self.key is None or isinstance(self.key, int) else _packed(self.key)
        timestamps = None if self.timestamps is None else _packed(self.timestamps)
        return self.kinds, [_packed(each) for each in self.arrays], key, timestamps


def joined(parts: list[Columns]) -> Columns:
    """Batches of the same `shape`, put together in order."""
    first = parts[0]
    if len(parts) == 1:
        return first
    arrays = [np.concatenate(each) for each in zip(*(part.arrays for part in parts), strict=True)]
    key = first.key
    if key is not None and not isinstance(key, int):
        key = np.concatenate([cast(Array, part.key) for part in parts])
    timestamps = first.timestamps
    if timestamps is not None:
        timestamps = np.concatenate([cast(Array, part.timestamps) for part in parts])
    return replace(first, arrays=arrays, key=key, timestamps=timestamps)


@functools.lru_cache(maxsize=1024)
def items_of(kinds: str) -> tuple[str, ...]:
    """The kinds of each item, if the elements are tuples; otherwise `kinds` alone."""
    if not kinds.startswith("("):
        return (kinds,)
    items: list[str] = []
    depth = 0
    for letter in kinds[1:-1]:
        if depth:
            items[-1] += letter
        else:
            items.append(letter)
        depth += (letter == "(") - (letter == ")")
    return tuple(items)


def _letters(kinds: str) -> str:
    return kinds.replace("(", "").replace(")", "")


def column_of_numbers(numbers: range) -> Columns | None:
    """None if some numbers do not fit into 64 bits."""
    try:
        return Columns(INTS, [np.arange(numbers.start, numbers.stop, numbers.step, dtype=np.int64)])
    except OverflowError:
        return None


def columns_of(values: list[Any]) -> Columns | None:
    """The columns of one or more elements; None if the elements cannot be in columns."""
    arrays: list[Array] = []
    kinds = _take_apart(values, arrays)
    return None if kinds is None else Columns(kinds, arrays)


def _take_apart(values: Sequence[Any], arrays: list[Array]) -> str | None:
    """Add the columns of `values` to `arrays` and return their kinds; None if the values cannot be in columns."""
    types = set(map(type, values))
    if types != {tuple}:
        letter = _KINDS.get(types.pop()) if len(types) == 1 else None
        made = None if letter is None else array_of(values, letter)
        if made is None:
            return None
        arrays.append(made)
        return letter
    try:
        columns = list(zip(*values, strict=True))
    except ValueError:  # The tuples differ in length.
        return None
    kinds = "("
    for column in columns:
        kinds_of_item = _take_apart(column, arrays)
        if kinds_of_item is None or len(arrays) > _MOST_COLUMNS:
            return None
        kinds += kinds_of_item
    return f"{kinds})" if columns else None


def array_of(items: Sequence[Any], letter: str) -> Array | None:
    """A column; None if it cannot hold some of the items."""
    if letter == TEXTS:
        texts = np.empty(len(items), dtype=object)
        texts[:] = items
        return texts
    try:
        # Twice as fast as `np.array`.
        return np.frombuffer(struct.pack(f"{len(items)}{letter}", *items), dtype=letter)
    except struct.error:  # An integer does not fit into 64 bits.
        return None


# --- sending ---------------------------------------------------------------------------------------------------------


def _packed(column: Array) -> Any:
    return _packed_texts(column.tolist()) if column.dtype == object else column.tobytes()


def _packed_texts(texts: list[str]) -> str | list[str]:
    """One joined text if it can be split again, otherwise the list.

    It is also the list if the same few objects keep recurring: a pickle writes each of them only once.
    """
    sample = list(islice(texts, 64))
    if len(set(map(id, sample))) <= len(sample) // 2:
        return texts
    text = _SEPARATOR.join(texts)
    return text if text.count(_SEPARATOR) == len(texts) - 1 else texts


def unpacked_columns(packed: tuple[Any, ...]) -> Columns | None:
    """The columns that `Columns.packed` was made of; None if there are texts among them.

    Texts would have to be split and then put into an array, so `unpacked` is cheaper for them.
    """
    kinds, columns, key, timestamps = packed
    if any(isinstance(column, (str, list)) for column in (*columns, key)):
        return None
    keys = key if key is None or isinstance(key, int) else np.frombuffer(key, dtype=INTS)
    times = None if timestamps is None else np.frombuffer(timestamps, dtype=INTS)
    arrays = [np.frombuffer(*each) for each in zip(columns, _letters(kinds), strict=True)]
    return Columns(kinds, arrays, keys, times)


def unpacked(packed: tuple[Any, ...]) -> Batch:
    """The batch that `Columns.packed` was made of."""
    kinds, columns, key, timestamps = packed
    lists = [_items(*each) for each in zip(columns, _letters(kinds), strict=True)]
    values = _put_together(kinds, iter(lists))
    keys = key if key is None else lists[key] if isinstance(key, int) else _items(key, INTS)
    return Batch(values, None if timestamps is None else array(INTS, timestamps), keys)


def _put_together(kinds: str, lists: Iterator[list[Any]]) -> list[Any]:
    if not kinds.startswith("("):
        return next(lists)
    return list(zip(*[_put_together(each, lists) for each in items_of(kinds)], strict=True))


def _items(column: Any, letter: str) -> list[Any]:
    if isinstance(column, bytes):
        items: list[Any] = np.frombuffer(column, dtype=letter).tolist()
        return items
    return column.split(_SEPARATOR) if isinstance(column, str) else column


# --- declared types --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeclaredColumns:
    """The columns that elements must have to be in the form of a declared type."""

    kinds: str
    are_tuples: bool
    bits: tuple[int, ...]
    """For each column: how many bits its integers may have."""


_BASIC_KINDS = {
    BasicType.LONG: INTS,
    BasicType.INT: INTS,
    BasicType.SHORT: INTS,
    BasicType.BYTE: INTS,
    BasicType.DOUBLE: FLOATS,
    BasicType.BOOLEAN: BOOLS,
    BasicType.STRING: TEXTS,
}
_BITS = {BasicType.INT: 32, BasicType.SHORT: 16, BasicType.BYTE: 8}


def declared_columns(type_info: TypeInformation | None) -> DeclaredColumns | None:
    """None if columns cannot show whether elements have the form of `type_info`."""
    are_tuples = isinstance(type_info, TupleTypeInfo)
    fields = type_info.get_field_types() if isinstance(type_info, TupleTypeInfo) else [type_info]
    kinds, bits = "", []
    for each in fields:
        basic = each._basic_type if isinstance(each, BasicTypeInfo) else None
        kind = _BASIC_KINDS.get(basic) if basic is not None else None
        if kind is None and converter_of(each) is not None:
            return None
        kinds += kind or ANY
        bits.append(64 if basic is None else _BITS.get(basic, 64))
    return DeclaredColumns(kinds, are_tuples, tuple(bits))
