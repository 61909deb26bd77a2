"""The scalars of NumPy, pandas and Arrow as plain Python values.

A key may be such a scalar, and then equals keys of other types: `np.bool_(True) == True`, and a `pd.Timestamp` equals a
`datetime`. The pickle of a scalar differs between versions of its library, so a hash that must last is computed from
the plain value instead.
"""

from __future__ import annotations

import datetime
import math
import sys
from typing import Any

ARRAY_LIBRARIES = ("numpy", "pandas", "pyarrow")
_EPOCH = datetime.datetime(1970, 1, 1)
_ATTOSECONDS = {
    "W": 7 * 24 * 3600 * 10**18,
    "D": 24 * 3600 * 10**18,
    "h": 3600 * 10**18,
    "m": 60 * 10**18,
    "s": 10**18,
    "ms": 10**15,
    "us": 10**12,
    "ns": 10**9,
    "ps": 10**6,
    "fs": 10**3,
    "as": 1,
}


def is_array_scalar(key: Any) -> bool:
    """True for any value whose class belongs to one of these libraries, whether it is a scalar or not."""
    return type(key).__module__.partition(".")[0] in ARRAY_LIBRARIES


def plain(key: Any) -> Any:
    """A plain value that is equal for equal scalars, even of different types; `key` itself if it is not a scalar."""
    libraries: dict[str, Any] = sys.modules  # A library is loaded if one of its values exists.
    match type(key).__module__.partition(".")[0]:
        case "numpy" if isinstance(key, libraries["numpy"].generic):
            return _plain_numpy(key, libraries["numpy"])
        case "pandas" if "pandas" in libraries:
            return _plain_pandas(key, libraries["pandas"])
        case "pyarrow" if hasattr(key, "as_py"):
            return key.as_py()
    return key


def _plain_numpy(key: Any, np: Any) -> Any:
    if isinstance(key, (np.datetime64, np.timedelta64)):
        if np.isnat(key):
            return math.nan
        return _plain_datetime64(key, np) if isinstance(key, np.datetime64) else _plain_timedelta64(key, np)
    if isinstance(key, np.longdouble):  # Its `item` returns a longdouble again.
        return float(key)
    if isinstance(key, np.clongdouble):
        return complex(key)
    return key.item()


def _plain_datetime64(key: Any, np: Any) -> Any:
    unit, count = np.datetime_data(key.dtype)
    if unit in ("Y", "M"):
        key, unit, count = key.astype("datetime64[D]"), "D", 1
    return _moment(int(key.astype(np.int64)) * count * _ATTOSECONDS[unit])


def _plain_timedelta64(key: Any, np: Any) -> Any:
    unit, count = np.datetime_data(key.dtype)
    ticks = int(key.astype(np.int64)) * count
    if unit in ("Y", "M"):  # Comparable with each other, but not with other units.
        return "months", ticks * 12 if unit == "Y" else ticks
    return ticks if unit == "generic" else _duration(ticks * _ATTOSECONDS[unit])


def _plain_pandas(key: Any, pd: Any) -> Any:
    if key is pd.NaT or key is pd.NA:  # There is only one of each.
        return None
    if isinstance(key, pd.Timestamp):
        moment = _plain_numpy(key.to_datetime64(), sys.modules["numpy"])  # In UTC if the timestamp has a time zone.
        if key.tzinfo is None:
            return moment
        return _in_utc(*moment) if isinstance(moment, tuple) else _in_utc(moment)
    if isinstance(key, pd.Timedelta):
        return _plain_numpy(key.to_timedelta64(), sys.modules["numpy"])
    if isinstance(key, pd.Period):
        # Without its frequency, whose name differs between versions of pandas. Few jobs mix frequencies.
        return key.ordinal
    if isinstance(key, pd.Interval):
        return key.left, key.right, key.closed
    return key


def _in_utc(moment: Any, *rest: int) -> Any:
    aware = moment.replace(tzinfo=datetime.timezone.utc) if isinstance(moment, datetime.datetime) else moment
    return (aware, *rest) if rest else aware


def _moment(attoseconds: int) -> Any:
    """A datetime, and the remaining attoseconds unless they are 0; microseconds and attoseconds outside its range."""
    microseconds, rest = divmod(attoseconds, _ATTOSECONDS["us"])
    try:
        moment = _EPOCH + datetime.timedelta(microseconds=microseconds)
    except OverflowError:
        return microseconds, rest
    return (moment, rest) if rest else moment


def _duration(attoseconds: int) -> Any:
    """The same as `_moment`, with a timedelta."""
    microseconds, rest = divmod(attoseconds, _ATTOSECONDS["us"])
    try:
        duration = datetime.timedelta(microseconds=microseconds)
    except OverflowError:
        return microseconds, rest
    return (duration, rest) if rest else duration
