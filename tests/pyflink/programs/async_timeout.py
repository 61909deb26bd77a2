"""A timeout that returns None."""

import asyncio

from pyflink.common import Time, Types
from pyflink.datastream import AsyncDataStream, AsyncFunction, StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Slow(AsyncFunction):
    def __init__(self, answer):
        self.answer = answer

    async def async_invoke(self, value):
        await asyncio.sleep(100)
        return [value]

    def timeout(self, value):
        return self.answer


for answer in ([-1], None, 5):
    stream = AsyncDataStream.unordered_wait(
        env.from_collection([0]), Slow(answer), Time.milliseconds(100), 2, Types.PICKLED_BYTE_ARRAY()
    )
    try:
        print(repr(answer), list(stream.execute_and_collect()))
    except Exception as error:
        is_none = "The result of AsyncFunction cannot be none, please check the methods" in str(error)
        is_single = "The result of AsyncFunction should be of list type, please check the methods" in str(error)
        print(repr(answer), "fails", is_none, is_single)
