"""The DataStream API that a benchmark runs on: Penstock's, or PyFlink's if BENCH_PACKAGE=pyflink."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

PACKAGE = os.environ.get("BENCH_PACKAGE", "penstock")

if TYPE_CHECKING or PACKAGE == "penstock":
    from penstock.common import Configuration, Duration, Time, Types, WatermarkStrategy
    from penstock.common.watermark_strategy import TimestampAssigner
    from penstock.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
    from penstock.datastream.connectors.number_seq import NumberSequenceSource
    from penstock.datastream.state import ValueStateDescriptor
    from penstock.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
elif PACKAGE == "pyflink":
    from pyflink.common import Configuration, Duration, Time, Types, WatermarkStrategy
    from pyflink.common.watermark_strategy import TimestampAssigner
    from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
    from pyflink.datastream.connectors.number_seq import NumberSequenceSource
    from pyflink.datastream.state import ValueStateDescriptor
    from pyflink.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
else:
    raise ImportError(f"BENCH_PACKAGE is {PACKAGE!r}; it must be penstock or pyflink")

__all__ = [
    "Configuration",
    "DataStream",
    "Duration",
    "EventTimeSessionWindows",
    "KeyedProcessFunction",
    "NumberSequenceSource",
    "PACKAGE",
    "RuntimeContext",
    "StreamExecutionEnvironment",
    "Time",
    "TimestampAssigner",
    "TumblingEventTimeWindows",
    "Types",
    "ValueStateDescriptor",
    "WatermarkStrategy",
]
