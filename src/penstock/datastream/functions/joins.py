"""Functions over the elements of two joined streams."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from penstock.datastream.functions.base import Function, RichFunction, SideOutputContext


class JoinFunction(Function):
    """Called for each pair of elements of one key and window; always returns one result."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """The result for a pair."""


class FlatJoinFunction(Function):
    """Called for each pair of elements of one key and window; yields any number of results."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Iterable[Any] | None:
        """Yield the results for a pair."""


class CoGroupFunction(Function):
    """Called once per key and window with the elements of both sides; one side may be empty."""

    @abstractmethod
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterable[Any] | None:
        """Yield the results for both groups."""


class ProcessJoinFunction(RichFunction):
    """Called for each pair that an interval join finds."""

    class Context(SideOutputContext, ABC):
        """What `process_element` can ask."""

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """Event time of the left element."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """Event time of the right element."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """Event time of the pair: the later of both."""

    @abstractmethod
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterable[Any] | None:
        """Yield the results for a pair."""
