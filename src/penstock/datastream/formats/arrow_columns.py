"""The values of an Arrow column in Python: of the type that the program declares, from the type in the file.

Where the types differ, values are converted if that changes none of them, and refused otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

from penstock.common.time import Instant
from penstock.common.typeinfo import (
    ExternalTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
    element_type_of,
)
from penstock.datastream.formats.exact_values import read_real_number
from penstock.datastream.formats.json_values import BYTES

ColumnReader = Callable[[Any], "list[Any]"]
"""From an Arrow array to its values."""

_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True)
class ColumnReaders:
    """Makes readers. `make_row` puts nested rows together, from names and values; `wall_time` takes datetimes."""

    make_row: Callable[[list[str], list[Any]], Any]
    wall_time: Callable[[datetime], datetime]

    def reader_for(self, declared: TypeInformation, arrow_type: Any) -> ColumnReader:
        """A reader from one type to the other; ValueError if values can never be read like that."""
        from pyarrow import types

        if isinstance(declared, ExternalTypeInfo):
            return self.reader_for(declared._type_info, arrow_type)
        if types.is_dictionary(arrow_type):
            read = self.reader_for(declared, arrow_type.value_type)
            return lambda array: read(array.dictionary_decode())
        if types.is_null(arrow_type):
            return lambda array: [None] * len(array)
        nested = self._nested_reader(declared, arrow_type) if types.is_nested(arrow_type) else None
        reader = nested or self._plain_reader(declared, arrow_type)
        if reader is None:
            raise ValueError("the one is not read as the other")
        return reader

    def _nested_reader(self, declared: TypeInformation, arrow_type: Any) -> ColumnReader | None:
        from pyarrow import types

        match declared:
            case RowTypeInfo() if types.is_struct(arrow_type):
                return self._row_reader(declared, arrow_type)
            case TupleTypeInfo() if types.is_struct(arrow_type):
                return self._tuple_reader(declared, arrow_type)
            case MapTypeInfo() if types.is_map(arrow_type):
                return self._map_reader(declared, arrow_type)
        element = element_type_of(declared)
        if element is None or declared == BYTES:
            return None
        if types.is_fixed_size_list(arrow_type):
            return self._list_reader(element, arrow_type.value_type, lists=_as_list)
        if types.is_list(arrow_type) or types.is_large_list(arrow_type):
            return self._list_reader(element, arrow_type.value_type)
        return None

    def _row_reader(self, declared: RowTypeInfo, arrow_type: Any) -> ColumnReader:
        names, make_row = declared.get_field_names(), self.make_row
        there = {arrow_type.field(at).name: at for at in range(arrow_type.num_fields)}
        readers = [
            None if name not in there else (there[name], self.reader_for(each, arrow_type.field(there[name]).type))
            for name, each in zip(names, declared.get_field_types(), strict=True)
        ]

        def read(array: Any) -> list[Any]:
            fields = [[None] * len(array) if each is None else each[1](array.field(each[0])) for each in readers]
            rows = zip(*fields, strict=True) if fields else [()] * len(array)
            return _with_nulls([make_row(names, list(values)) for values in rows], array)

        return read

    def _tuple_reader(self, declared: TupleTypeInfo, arrow_type: Any) -> ColumnReader:
        types = declared.get_field_types()
        if len(types) != arrow_type.num_fields:
            raise ValueError(f"it has {arrow_type.num_fields} fields, not {len(types)}")
        readers = [self.reader_for(each, arrow_type.field(at).type) for at, each in enumerate(types)]
        return lambda array: _with_nulls(
            list(zip(*(read(array.field(at)) for at, read in enumerate(readers)), strict=True)), array
        )

    def _list_reader(
        self, element: TypeInformation, arrow_type: Any, lists: Callable[[Any], Any] = lambda array: array
    ) -> ColumnReader:
        read_elements = self.reader_for(element, arrow_type)

        def read(array: Any) -> list[Any]:
            array = lists(array)
            ends, first = _ends(array)
            items = read_elements(array.values.slice(first, ends[-1] - first))
            return _with_nulls([items[a - first : b - first] for a, b in pairwise(ends)], array)

        return read

    def _map_reader(self, declared: MapTypeInfo, arrow_type: Any) -> ColumnReader:
        read_keys = self.reader_for(declared._key_type_info, arrow_type.key_type)
        read_items = self.reader_for(declared._value_type_info, arrow_type.item_type)

        def read(array: Any) -> list[Any]:
            ends, first = _ends(array)
            keys = read_keys(array.keys.slice(first, ends[-1] - first))
            items = read_items(array.items.slice(first, ends[-1] - first))
            spans = [slice(a - first, b - first) for a, b in pairwise(ends)]
            return _with_nulls([_without_repeats(keys[span], items[span]) for span in spans], array)

        return read

    def _plain_reader(self, declared: TypeInformation, arrow_type: Any) -> ColumnReader | None:
        """None if the types do not fit."""
        from pyarrow import types

        if declared in (Types.STRING(), Types.CHAR()):
            return _text_reader(arrow_type)
        if declared == Types.BOOLEAN():
            return _to_list if types.is_boolean(arrow_type) else None
        if declared in _number_readers():
            return _number_readers()[declared](arrow_type)
        if declared == Types.SQL_DATE():
            return _to_list if types.is_date(arrow_type) else None
        if declared == Types.SQL_TIME():
            return _time_reader(arrow_type)
        if declared == Types.SQL_TIMESTAMP():
            return self._timestamp_reader(arrow_type)
        if declared == Types.INSTANT():
            return _instant_reader(arrow_type)
        if declared == BYTES:
            is_bytes = types.is_binary(arrow_type) or types.is_large_binary(arrow_type)
            return _to_list if is_bytes or types.is_fixed_size_binary(arrow_type) else None
        # Any type: values as Arrow has them.
        return _to_list if declared == Types.PICKLED_BYTE_ARRAY() else None

    def _timestamp_reader(self, arrow_type: Any) -> ColumnReader | None:
        import pyarrow as pa

        if not pa.types.is_timestamp(arrow_type):
            return None
        wall_time = self.wall_time
        in_micros = pa.timestamp("us", None if arrow_type.tz is None else "UTC")
        if arrow_type.tz is None:
            return lambda array: array.cast(in_micros).to_pylist()
        return lambda array: [None if each is None else wall_time(each) for each in array.cast(in_micros).to_pylist()]


def _to_list(array: Any) -> list[Any]:
    values: list[Any] = array.to_pylist()
    return values


def _cast_to(arrow_type: Any) -> ColumnReader:
    """Values as another type; an error where one would change."""
    return lambda array: _to_list(array.cast(arrow_type))


def _each(convert: Callable[[Any], Any], array: Any) -> list[Any]:
    return [None if value is None else convert(value) for value in array.to_pylist()]


def _with_nulls(values: list[Any], array: Any) -> list[Any]:
    if array.null_count == 0:
        return values
    return [value if is_valid else None for value, is_valid in zip(values, array.is_valid().to_pylist(), strict=True)]


def _ends(array: Any) -> tuple[list[int], int]:
    """Where each list ends in the array of all elements, after where the first begins."""
    ends = array.offsets.to_pylist()
    return ends, ends[0]


def _as_list(array: Any) -> Any:
    import pyarrow as pa

    return array.cast(pa.list_(array.type.value_type))


def _without_repeats(keys: list[Any], items: list[Any]) -> dict[Any, Any]:
    entries = dict(zip(keys, items, strict=True))
    if len(entries) != len(keys):
        raise ValueError(f"a map has a key twice: {keys}")
    return entries


# --- basic types -----------------------------------------------------------------------------------------------------


def _text_reader(arrow_type: Any) -> ColumnReader | None:
    import pyarrow as pa

    if pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type) or pa.types.is_string_view(arrow_type):
        return _to_list
    return _cast_to(pa.string()) if pa.types.is_integer(arrow_type) else None


def _number_readers() -> dict[TypeInformation, Callable[[Any], ColumnReader | None]]:
    import pyarrow as pa

    return {
        Types.BYTE(): lambda arrow_type: _whole_reader(arrow_type, pa.int8()),
        Types.SHORT(): lambda arrow_type: _whole_reader(arrow_type, pa.int16()),
        Types.INT(): lambda arrow_type: _whole_reader(arrow_type, pa.int32()),
        Types.LONG(): lambda arrow_type: _whole_reader(arrow_type, pa.int64()),
        Types.BIG_INT(): _big_int_reader,
        Types.FLOAT(): _float_reader,
        Types.DOUBLE(): _double_reader,
        Types.BIG_DEC(): _decimal_reader,
    }


def _whole_reader(arrow_type: Any, target: Any) -> ColumnReader | None:
    from pyarrow import types

    if arrow_type == target:
        return _to_list
    is_number = types.is_integer(arrow_type) or types.is_floating(arrow_type) or types.is_decimal(arrow_type)
    return _cast_to(target) if is_number else None


def _big_int_reader(arrow_type: Any) -> ColumnReader | None:
    import pyarrow as pa

    if pa.types.is_integer(arrow_type):
        return _to_list
    whole = pa.decimal128(38, 0)
    return (lambda array: _each(int, array.cast(whole))) if pa.types.is_decimal(arrow_type) else None


def _float_reader(arrow_type: Any) -> ColumnReader | None:
    import pyarrow as pa

    if pa.types.is_float64(arrow_type):
        single = read_real_number(Types.FLOAT())
        return lambda array: _each(single, array)
    if pa.types.is_floating(arrow_type):
        return _to_list
    return _cast_to(pa.float32()) if pa.types.is_integer(arrow_type) else None


def _double_reader(arrow_type: Any) -> ColumnReader | None:
    import pyarrow as pa

    if pa.types.is_floating(arrow_type):
        return _to_list
    return _cast_to(pa.float64()) if pa.types.is_integer(arrow_type) else None


def _decimal_reader(arrow_type: Any) -> ColumnReader | None:
    from pyarrow import types

    if types.is_decimal(arrow_type):
        return _to_list
    return (lambda array: _each(Decimal, array)) if types.is_integer(arrow_type) else None


def _time_reader(arrow_type: Any) -> ColumnReader | None:
    import pyarrow as pa

    if not pa.types.is_time(arrow_type):
        return None
    return _cast_to(pa.time64("us")) if arrow_type.unit == "ns" else _to_list


def _instant_reader(arrow_type: Any) -> ColumnReader | None:
    import pyarrow as pa

    if not pa.types.is_timestamp(arrow_type):
        return None
    in_a_second = _UNITS[arrow_type.unit]
    nanos = 1_000_000_000 // in_a_second

    def instant(number: int) -> Instant:
        seconds, rest = divmod(number, in_a_second)
        return Instant(seconds, rest * nanos)

    return lambda array: _each(instant, array.cast(pa.int64()))
