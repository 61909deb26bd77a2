"""What elements are grouped into: `TimeWindow`, `CountWindow`, `GlobalWindow`.

A window is the key of its state and of its timers, so it is hashed and compared for nearly every record. All three are
tuples underneath: hashing, comparing and ordering happen in C. The price is that `TimeWindow(0, 5) == (0, 5)`, and that
the parts of a window cannot be changed; functions may give a window attributes of their own.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable
from io import BytesIO
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.common.serializer import TypeSerializer

if TYPE_CHECKING:
    from penstock.datastream.windowing.assigner import MergingWindowAssigner

_LONG = struct.Struct(">q")
_TWO_LONGS = struct.Struct(">qq")


class Window(ABC):
    """A finite group of elements, with a last timestamp after which nothing more belongs to it.

    `TimeWindow` has an example.
    """

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """The largest timestamp that still belongs to this window."""


TOUCHING = "{start} <= {other_end} and {other_start} <= {end}"
"""The rule for sessions to merge: they overlap, or one begins where the other ends. As text, for generated loops."""


def touching(start: int, end: int, other: tuple[int, int]) -> bool:
    """The same rule as `TOUCHING`."""
    return start <= other[1] and other[0] <= end


def has_passed(time: int, watermark: int) -> bool:
    """The rule for lateness: a time has passed as soon as the watermark has reached it."""
    return time <= watermark


def has_ended(end: int, watermark: int) -> bool:
    """True if a window that ends at `end` has fired: its last timestamp has passed."""
    return has_passed(end - 1, watermark)


def ended_until(watermark: int) -> int:
    """`has_ended` for loops: windows that end here or before."""
    return watermark + 1


def within_time(start: int, end: int) -> tuple[int, int]:
    """The part of a window that 64 bits can express: one that would end after the end of time ends with it."""
    return max(start, MIN_LONG_VALUE), min(end, MAX_LONG_VALUE)


class TimeWindow(tuple[int, int], Window):
    """The interval from `start` (inclusive) to `end` (exclusive), in milliseconds; ordered by start, then end.

    >>> window = TimeWindow(0, 5000)
    >>> window.max_timestamp(), window.intersects(TimeWindow(5000, 9000)), window.cover(TimeWindow(5000, 9000))
    (4999, True, TimeWindow(start=0, end=9000))
    """

    def __new__(cls, start: int, end: int) -> TimeWindow:
        return tuple.__new__(cls, (start, end))

    def __setattr__(self, name: str, to: Any) -> None:
        if name in ("start", "end"):
            raise AttributeError(
                f"TimeWindow.{name} cannot be set: a window is a key of state and timers; make a new one with "
                f"TimeWindow(start, end)"
            )
        object.__setattr__(self, name, to)

    start: int = property(itemgetter(0), doc="First timestamp of the window.")  # type: ignore[assignment]
    end: int = property(itemgetter(1), doc="First timestamp after the window.")  # type: ignore[assignment]

    def __getnewargs__(self) -> tuple[int, int]:
        return self[0], self[1]

    def max_timestamp(self) -> int:
        return self[1] - 1

    def intersects(self, other: TimeWindow) -> bool:
        """True if both windows overlap, or one begins where the other ends."""
        return touching(self[0], self[1], other)

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window that holds this one and the other."""
        return TimeWindow(min(self[0], other[0]), max(self[1], other[1]))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """The start of the window of `window_size`, shifted by `offset`, that holds `timestamp` (negative ones too)."""
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]) -> None:
        """Call `callback` for each group of windows that overlap or touch, with the window that covers the group."""
        groups: list[tuple[TimeWindow, list[TimeWindow]]] = []
        for window in sorted(set(windows)):
            if groups and groups[-1][0].intersects(window):
                covered, members = groups[-1]
                groups[-1] = covered.cover(window), [*members, window]
            else:
                groups.append((window, [window]))
        for covered, members in groups:
            if len(members) > 1:
                callback.merge(members, covered)

    def __repr__(self) -> str:
        return f"TimeWindow(start={self[0]}, end={self[1]})"


class CountWindow(tuple[int], Window):
    """The `id`-th window of a fixed number of elements of one key.

    >>> CountWindow(3).id
    3
    """

    def __new__(cls, id: int) -> CountWindow:
        return tuple.__new__(cls, (id,))

    id: int = property(itemgetter(0), doc="Number of the window, from 0.")  # type: ignore[assignment]

    def __getnewargs__(self) -> tuple[int]:
        return (self[0],)

    def max_timestamp(self) -> int:
        return MAX_LONG_VALUE

    def __repr__(self) -> str:
        return f"CountWindow(id={self[0]})"


class GlobalWindow(tuple[str], Window):
    """The one window that holds all elements of a key; it never ends.

    >>> GlobalWindow.get() is GlobalWindow.get()
    True
    """

    def __new__(cls) -> GlobalWindow:
        # Not the empty tuple: that one is false, and equal to every other empty tuple.
        return tuple.__new__(cls, ("GlobalWindow",))

    def __getnewargs__(self) -> tuple[()]:
        return ()

    @staticmethod
    def get() -> GlobalWindow:
        """The only global window."""
        return _GLOBAL_WINDOW

    def max_timestamp(self) -> int:
        return MAX_LONG_VALUE

    def __repr__(self) -> str:
        return "GlobalWindow"


_GLOBAL_WINDOW = GlobalWindow()


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """Writes a `TimeWindow` as two big-endian longs, as Flink does.

    >>> stream = BytesIO()
    >>> TimeWindowSerializer().serialize(TimeWindow(0, 5000), stream)
    >>> TimeWindowSerializer().deserialize(BytesIO(stream.getvalue()))
    TimeWindow(start=0, end=5000)
    """

    def serialize(self, element: TimeWindow, stream: BytesIO) -> None:
        """Write a window."""
        stream.write(_TWO_LONGS.pack(element[0], element[1]))

    def deserialize(self, stream: BytesIO) -> TimeWindow:
        """Read a window."""
        start, end = _TWO_LONGS.unpack(stream.read(_TWO_LONGS.size))
        return TimeWindow(start, end)


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """Writes a `CountWindow` as one big-endian long.

    `TimeWindowSerializer` has an example.
    """

    def serialize(self, element: CountWindow, stream: BytesIO) -> None:
        """Write a window."""
        stream.write(_LONG.pack(element[0]))

    def deserialize(self, stream: BytesIO) -> CountWindow:
        """Read a window."""
        (number,) = _LONG.unpack(stream.read(_LONG.size))
        return CountWindow(number)


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """Writes a `GlobalWindow` as one zero byte.

    `TimeWindowSerializer` has an example.
    """

    def serialize(self, element: GlobalWindow, stream: BytesIO) -> None:
        """Write a window."""
        stream.write(b"\0")

    def deserialize(self, stream: BytesIO) -> GlobalWindow:
        """Read a window."""
        stream.read(1)
        return GlobalWindow.get()
