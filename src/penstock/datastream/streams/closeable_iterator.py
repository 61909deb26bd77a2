"""CloseableIterator: the values of a job, in the program that started it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic

from penstock.datastream.streams.element_types import T
from penstock.datastream.users_frames import ShowingUsersFrames


class CloseableIterator(Generic[T]):
    """The values of `execute_and_collect`, as they come; closing it cancels the job.

    >>> with env.from_collection([1, 2, 3]).execute_and_collect() as values:
    ...     values.next()
    1
    """

    def __init__(self, values: Iterator[T], close: Callable[[], None]) -> None:
        self._values = values
        self._close = close

    def __iter__(self) -> CloseableIterator[T]:
        return self

    def __next__(self) -> T:
        return self.next()

    def next(self) -> T:
        """The next value; StopIteration when the job has ended."""
        __tracebackhide__ = True
        with ShowingUsersFrames():
            return next(self._values)

    def __enter__(self) -> CloseableIterator[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancel the job, if it still runs."""
        self._close()
