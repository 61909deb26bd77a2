"""Keys whose hashes are pinned in `key_hashes.json`, as text: what state files and savepoints are laid out by."""

from __future__ import annotations

import datetime
import decimal  # noqa: F401
import enum
import fractions  # noqa: F401
import ipaddress  # noqa: F401
import pathlib  # noqa: F401
import uuid  # noqa: F401
from collections import namedtuple
from dataclasses import dataclass, field

import numpy as np  # noqa: F401
import pandas as pd  # noqa: F401

from penstock.common import Row  # noqa: F401

Point = namedtuple("Point", "x y")


@dataclass(frozen=True)
class User:
    name: str
    age: float
    note: str = field(default="", compare=False)


class Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second

    def __eq__(self, other):
        return type(other) is Pair and vars(self) == vars(other)

    def __hash__(self):
        return hash((self.first, self.second))


class SlottedPair:
    __slots__ = ("first", "second")

    def __init__(self, first, second):
        self.first, self.second = first, second

    def __eq__(self, other):
        return type(other) is SlottedPair and (self.first, self.second) == (other.first, other.second)

    def __hash__(self):
        return hash((self.first, self.second))


class Colour(enum.Enum):
    RED = 1
    BLUE = "blue"


class Level(enum.IntEnum):
    HIGH = 7


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Label(str):
    pass


class Blob(bytes):
    pass


class Day(datetime.date):
    pass


class Moment(datetime.datetime):
    pass


UTC = datetime.timezone.utc
EAST = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
EAST_BY_7 = datetime.timezone(datetime.timedelta(hours=7))

EQUAL = [
    ["0", "0.0", "-0.0", "False", "np.bool_(False)", "np.int8(0)", "decimal.Decimal(0)"],
    ["1", "1.0", "True", "1 + 0j", "np.bool_(True)", "np.uint64(1)", "np.float16(1)", "np.longdouble(1)"],
    ["7", "Level.HIGH", "decimal.Decimal('7.0')", "fractions.Fraction(7)", "np.int32(7)", "np.complex64(7)"],
    ["-1"],
    ["10**20", "decimal.Decimal(10**20)", "1e20"],
    ["2**61 - 1"],
    ["1.5", "np.float32(1.5)", "fractions.Fraction(3, 2)", "decimal.Decimal('1.50')"],
    ["0.1", "np.float64(0.1)"],
    ["np.float32(0.1)", "float(np.float32(0.1))"],
    ["float('inf')", "np.float32('inf')", "decimal.Decimal('Infinity')"],
    ["2.5 + 1j", "np.complex128(2.5 + 1j)"],
    ["None"],
    ["''", "np.str_('')"],
    ["'a'", "np.str_('a')", "Label('a')"],
    ["'gr\\u00f6\\u00dfer'"],
    ["'\\ud800'"],
    ["b''"],
    ["b'a'", "np.bytes_(b'a')", "Blob(b'a')"],
    ["()"],
    ["('a', 1)", "(np.str_('a'), np.bool_(True))", "(Label('a'), 1.0)"],
    ["(1, 2)", "Point(1, 2)", "Point(np.int64(1), 2.0)"],
    ["('a', ('b', None))"],
    ["frozenset()"],
    ["frozenset({'a', 'b'})", "frozenset({np.str_('b'), Label('a')})"],
    ["Row('a', 1)", "Row('a', True)"],
    ["Row(name='a', age=1)", "Row(age=1.0, name=Label('a'))"],
    ["User('ada', 36)", "User('ada', 36.0, 'x')"],
    ["Colour.RED"],
    ["Colour.BLUE"],
    ["Access.READ"],
    ["Access(0)"],
    ["range(0)", "range(5, 5)", "range(3, 1)"],
    ["range(1)", "range(0, 5, 10)"],
    ["range(0, 3, 2)", "range(0, 4, 2)"],
    ["datetime.date(2024, 2, 29)", "Day(2024, 2, 29)"],
    [
        "datetime.datetime(2024, 2, 29, 12, 30, 1, 5)",
        "Moment(2024, 2, 29, 12, 30, 1, 5)",
        "datetime.datetime(2024, 2, 29, 12, 30, 1, 5, fold=1)",
        "pd.Timestamp('2024-02-29 12:30:01.000005')",
        "np.datetime64('2024-02-29T12:30:01.000005')",
        "np.datetime64('2024-02-29T12:30:01.000005000')",
    ],
    [
        "datetime.datetime(2024, 2, 29)",
        "pd.Timestamp('2024-02-29')",
        "np.datetime64('2024-02-29T00:00:00', 'us')",
    ],
    ["np.datetime64('2024-02-29')", "np.datetime64('2024-02-29T00')", "np.datetime64('2024-02-29T00:00', 'ns')"],
    ["np.datetime64('2024')", "np.datetime64('2024-01')", "np.datetime64('2024-01-01')"],
    ["np.datetime64('2024-01-01T00:00:00.000000001')", "pd.Timestamp('2024-01-01T00:00:00.000000001')"],
    ["np.datetime64('-4000-01-01')", "np.datetime64('-4000')"],
    [
        "datetime.datetime(2024, 5, 1, 12, tzinfo=UTC)",
        "datetime.datetime(2024, 5, 1, 17, 30, tzinfo=EAST)",
        "datetime.datetime(2024, 5, 1, 17, 30, tzinfo=EAST, fold=1)",
        "pd.Timestamp('2024-05-01 12:00', tz='UTC')",
        "pd.Timestamp('2024-05-01 21:00', tz='Asia/Tokyo')",
        "pd.Timestamp('2024-05-01 12:00', tz='UTC').as_unit('s')",
    ],
    ["datetime.datetime(1, 1, 1, 3, tzinfo=EAST)", "datetime.datetime(1, 1, 1, 4, 30, tzinfo=EAST_BY_7)"],
    ["datetime.time(12, 30)", "datetime.time(12, 30, fold=1)"],
    ["datetime.time(12, tzinfo=UTC)", "datetime.time(17, 30, tzinfo=EAST)"],
    [
        "datetime.timedelta(seconds=5)",
        "pd.Timedelta('5s')",
        "np.timedelta64(5, 's')",
        "np.timedelta64(5000, 'ms')",
        "np.timedelta64(5_000_000_000, 'ns')",
    ],
    ["np.timedelta64(1, 'ns')", "np.timedelta64(1000, 'ps')", "pd.Timedelta(1, 'ns')"],
    ["np.timedelta64(1, 'Y')", "np.timedelta64(12, 'M')"],
    [
        "uuid.UUID('12345678-1234-5678-1234-567812345678')",
        "uuid.UUID('12345678-1234-5678-1234-567812345678', is_safe=uuid.SafeUUID.safe)",
    ],
    ["pathlib.PurePosixPath('a/b')", "pathlib.PosixPath('a', 'b')", "pathlib.PurePosixPath('a//b')"],
    ["ipaddress.ip_address('127.0.0.1')"],
    ["pd.Period('2024-05', 'M')"],
    ["pd.Interval(0, 1)", "pd.Interval(0.0, 1.0)"],
    ["pd.NaT"],
    ["pd.NA"],
    ["float('nan')"],
]
"""Each list: keys that Python takes for equal."""

BY_THEIR_OWN_HASH = [
    ["Pair('a', 1)", "Pair(np.str_('a'), True)"],
    ["SlottedPair('a', 1)", "SlottedPair(Label('a'), np.int64(1))"],
]
"""The same for classes that say themselves what is equal. Their hashes are not pinned: a change of such a class moves
its keys anyway, so a restore looks for them in the files of all subtasks."""

EXPRESSIONS = [expression for equal in EQUAL for expression in equal]
