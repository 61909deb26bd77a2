"""Answers in order of the questions, with a retry of those that failed."""

import asyncio

from pyflink.common import Time, Types
from pyflink.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    StreamExecutionEnvironment,
    async_retry_predicates,
)

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Slow(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep((5 - value) * 0.02)
        return [value, value * 10]


class EmptyAtFirst(AsyncFunction):
    def __init__(self):
        self.asked = {}

    async def async_invoke(self, value):
        self.asked[value] = self.asked.get(value, 0) + 1
        return [] if self.asked[value] < 3 else [(value, self.asked[value])]


numbers = env.from_collection([1, 2, 3, 4], Types.INT())
print(list(AsyncDataStream.ordered_wait(numbers, Slow(), Time.seconds(20), 10, Types.INT()).execute_and_collect()))
print(sorted(AsyncDataStream.unordered_wait(numbers, Slow(), Time.seconds(20), 2, Types.INT()).execute_and_collect()))
retry = AsyncRetryStrategy.fixed_delay(
    4, 10, async_retry_predicates.empty_result_predicate, async_retry_predicates.has_exception_predicate
)
again = AsyncDataStream.unordered_wait_with_retry(
    numbers, EmptyAtFirst(), Time.seconds(20), retry, 10, Types.TUPLE([Types.INT(), Types.INT()])
)
print(sorted(again.execute_and_collect()))
