"""Orders and their payments as in `connected_join`, with the interval join of Flink's Java API and of Penstock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.connected_join import WITHIN_MS, expected, is_kept, orders_and_payments
from benchmarks.flink_api import DataStream, StreamExecutionEnvironment, Time, Types
from benchmarks.job import Setting, run_as_script
from penstock.datastream import ProcessJoinFunction

__all__ = ["build", "expected"]


class Delay(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterator[Any]:
        yield left[0], right[1] - left[1]


def build(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    orders, payments = orders_and_payments(env, setting)
    joined: DataStream = (
        orders.interval_join(payments)
        .between(Time.milliseconds(0), Time.milliseconds(WITHIN_MS))
        .process(Delay(), Types.TUPLE([Types.LONG(), Types.LONG()]))
        .filter(is_kept)
    )
    return joined


if __name__ == "__main__":
    run_as_script(build)
