"""Two jobs for the dashboard's tests: orders without end, and one that fails on a certain order.

Stays until its standard input ends, so that ended jobs can be looked at.
"""

from __future__ import annotations

import logging
import sys
import time

from penstock.common import Configuration, Duration, Time, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import MapFunction, StreamExecutionEnvironment
from penstock.datastream.accumulators import IntCounter
from penstock.datastream.connectors.data_generator import DataGeneratorSource, GeneratorFunction, RateLimiterStrategy
from penstock.datastream.window import TumblingEventTimeWindows


class Orders(GeneratorFunction):
    def map(self, value):
        return int(time.time() * 1000), f"customer-{value * 7919 % 500}", (value * 31 % 997) / 10


class OrderTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[0]


class Notice(MapFunction):
    """Counts large orders, and logs them."""

    def open(self, runtime_context):
        self._count = IntCounter()
        runtime_context.add_accumulator("large orders", self._count)

    def map(self, order):
        self._count.add(1)
        level = logging.WARNING if order[2] > 99.5 else logging.INFO
        logging.getLogger("shop").log(level, "%s orders for %.2f", order[1], order[2])
        return order


def check_credit(order):
    if order[2] > 95:
        raise ValueError(f"no credit left for {order[1]}")
    return order


def totals(checkpoints: str):
    env = environment({"execution.checkpointing.dir": checkpoints, "execution.checkpointing.interval": "1 s"})
    env.set_parallelism(2)
    source = DataGeneratorSource(Orders(), 10**9, RateLimiterStrategy.per_second(2000))
    watermarks = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    orders = env.from_source(source, watermarks.with_timestamp_assigner(OrderTime()), "Orders")
    paid = orders.filter(lambda order: order[2] > 1).name("paid")
    sums = (
        paid.key_by(lambda order: order[1])
        .window(TumblingEventTimeWindows.of(Time.seconds(5)))
        .reduce(lambda one, other: (max(one[0], other[0]), one[1], one[2] + other[2]))
        .name("sum by customer")
    )
    sums.filter(lambda total: total[2] > 1000).name("best customers").map(lambda t: f"{t[1]} spent {t[2]:.2f}").print()
    large = paid.filter(lambda order: order[2] > 99).name("large").map(Notice()).name("notice")
    large.key_by(lambda order: order[1]).sum(2).name("large by customer").print()
    return env.execute_async("shop orders")


def credit():
    env = environment({"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "10 ms"})
    env.from_collection([(0, f"customer-{n}", float(n)) for n in range(100)]).map(check_credit).name("credit").print()
    return env.execute_async("credit check")


def environment(settings: dict[str, str]) -> StreamExecutionEnvironment:
    config = Configuration.from_dict({"execution.target": "inline", "my.api-token": "hidden", **settings})
    return StreamExecutionEnvironment.get_execution_environment(config)


if __name__ == "__main__":
    logging.basicConfig(handlers=[logging.NullHandler()], level=logging.INFO)  # Only the dashboard shows it.
    running = totals(sys.argv[1])
    failing = credit() if "--with-failure" in sys.argv else None
    sys.stdin.read()
    running.cancel().result()
