"""The functions of the other modules with `get_runtime_context()`, by Flink's names."""

from __future__ import annotations

from typing import TypeVar

from penstock.datastream.functions.asynchronous import AsyncFunction
from penstock.datastream.functions.base import RichFunction
from penstock.datastream.functions.elements import (
    AggregateFunction,
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    MapFunction,
    ReduceFunction,
)
from penstock.datastream.functions.joins import CoGroupFunction, FlatJoinFunction, JoinFunction
from penstock.datastream.functions.windows import AllWindowFunction, WindowFunction

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")


class RichMapFunction(RichFunction, MapFunction):
    """A MapFunction with a runtime context."""


class RichFlatMapFunction(RichFunction, FlatMapFunction):
    """A FlatMapFunction with a runtime context."""


class RichFilterFunction(RichFunction, FilterFunction):
    """A FilterFunction with a runtime context."""


class RichReduceFunction(RichFunction, ReduceFunction):
    """A ReduceFunction with a runtime context."""


class RichAggregateFunction(RichFunction, AggregateFunction):
    """An AggregateFunction with a runtime context."""


class RichCoMapFunction(RichFunction, CoMapFunction):
    """A CoMapFunction with a runtime context."""


class RichCoFlatMapFunction(RichFunction, CoFlatMapFunction):
    """A CoFlatMapFunction with a runtime context."""


class RichJoinFunction(RichFunction, JoinFunction):
    """A JoinFunction with a runtime context."""


class RichFlatJoinFunction(RichFunction, FlatJoinFunction):
    """A FlatJoinFunction with a runtime context."""


class RichCoGroupFunction(RichFunction, CoGroupFunction):
    """A CoGroupFunction with a runtime context."""


class RichWindowFunction(RichFunction, WindowFunction[IN, OUT, KEY, W]):
    """A WindowFunction with a runtime context."""


class RichAllWindowFunction(RichFunction, AllWindowFunction[IN, OUT, W]):
    """An AllWindowFunction with a runtime context."""


class RichAsyncFunction(RichFunction, AsyncFunction[IN, OUT]):
    """An AsyncFunction with a runtime context."""
