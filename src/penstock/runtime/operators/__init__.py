"""The operators of a chain, and the table that says which class runs which description."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.own_copies import own_copy
from penstock.graph import descriptions as d
from penstock.runtime.operators.async_wait import AsyncWaitOperator
from penstock.runtime.operators.base import StreamOperator
from penstock.runtime.operators.broadcast import BroadcastProcessOperator
from penstock.runtime.operators.interval_join import IntervalJoinOperator
from penstock.runtime.operators.list_function import ListFunctionOperator
from penstock.runtime.operators.lowered import LoweredOperator
from penstock.runtime.operators.process import build_co_process, build_keyed_process, build_process
from penstock.runtime.operators.reduce import build_reduce
from penstock.runtime.operators.sink_writer import SinkWriterOperator
from penstock.runtime.operators.sinks import CollectSinkOperator, PrintSinkOperator, SinkFunctionOperator
from penstock.runtime.operators.stateless import (
    CoFlatMapOperator,
    CoMapOperator,
    FilterOperator,
    FlatMapOperator,
    MapOperator,
)
from penstock.runtime.operators.two_phase_commit import TwoPhaseCommitOperator
from penstock.runtime.operators.watermark_delay import WatermarkDelayOperator
from penstock.runtime.operators.watermarks import TimestampsAndWatermarksOperator


def _window_operator(description: Any) -> StreamOperator:
    from penstock.runtime.windowing import build_window_operator

    return build_window_operator(description)


_OPERATORS: dict[type[d.OperatorDescription], Callable[[Any], StreamOperator]] = {
    d.MapDescription: MapOperator,
    d.FlatMapDescription: FlatMapOperator,
    d.FilterDescription: FilterOperator,
    d.LoweredDescription: LoweredOperator,
    d.WatermarksDescription: TimestampsAndWatermarksOperator,
    d.ListFunctionDescription: ListFunctionOperator,
    d.WatermarkDelayDescription: WatermarkDelayOperator,
    d.ProcessDescription: build_process,
    d.KeyedProcessDescription: build_keyed_process,
    d.AsyncDescription: AsyncWaitOperator,
    d.CoMapDescription: CoMapOperator,
    d.CoFlatMapDescription: CoFlatMapOperator,
    d.CoProcessDescription: build_co_process,
    d.BroadcastProcessDescription: BroadcastProcessOperator,
    d.IntervalJoinDescription: IntervalJoinOperator,
    d.ReduceDescription: build_reduce,
    d.WindowDescription: _window_operator,
    d.PrintSinkDescription: PrintSinkOperator,
    d.CollectSinkDescription: CollectSinkOperator,
    d.SinkFunctionDescription: SinkFunctionOperator,
    d.TwoPhaseCommitDescription: TwoPhaseCommitOperator,
    d.SinkWriterDescription: SinkWriterOperator,
}


def build_operator(description: d.OperatorDescription) -> StreamOperator:
    """The operator for `description`, not yet set up, with its own copies of the user's functions."""
    make = _OPERATORS.get(type(description))
    if make is None:
        raise UnsupportedFeatureError(f"there is no operator for {type(description).__name__}")
    return make(own_copy(description))
