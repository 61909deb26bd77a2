"""Lists of numbers as NumPy arrays, in about a third of the time it takes to check their types and convert them.

`marshal` writes a letter for the type of each object and then its value, without a Python call for each. So a list of
small integers, or of floats, becomes an array of records of the same size. The letters show whether all values had that
type.
"""

from __future__ import annotations

import marshal
from typing import Any

import numpy as np
from numpy.typing import NDArray

_VERSION = 2
"""Of the `marshal` format: later ones write only a reference for an object that was written before."""
_HEAD_BYTES = 5
_SMALL, _FLOAT = (np.dtype([("type", "S1"), ("value", value)]) for value in ("<i4", "<f8"))


def column_of_ints(values: list[Any]) -> NDArray[np.int64] | None:
    """The values as an array; None unless all are of type `int` itself and fit into 64 bits."""
    if not values or type(values[0]) is not int:
        return None
    if -(1 << 31) <= values[0] < 1 << 31:
        small = _records(values, _SMALL, b"i")
        if small is not None:
            return small.astype(np.int64)
    if list(map(type, values)).count(int) < len(values):
        return None
    try:
        return np.array(values, np.int64)
    except OverflowError:
        return None


def column_of_floats(values: list[Any]) -> NDArray[np.float64] | None:
    """The values as an array; None unless all are of type `float` itself."""
    if not values or type(values[0]) is not float:
        return None
    floats = _records(values, _FLOAT, b"g")
    return None if floats is None else floats.astype(np.float64)


def _records(values: list[Any], kind: np.dtype[Any], letter: bytes) -> NDArray[Any] | None:
    """The values, if marshalling makes them records of this kind with this type letter; otherwise None."""
    try:
        content = marshal.dumps(values, _VERSION)
    except ValueError:  # One of the values cannot be marshalled.
        return None
    if len(content) != _HEAD_BYTES + kind.itemsize * len(values):
        return None
    records = np.frombuffer(content, kind, len(values), _HEAD_BYTES)
    column: NDArray[Any] = records["value"]
    return column if (records["type"] == letter).all() else None
