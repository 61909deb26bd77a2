"""Ask a slow service for every element, many at a time, and keep the order of the elements."""

from __future__ import annotations

import asyncio

from penstock.common import Time
from penstock.datastream import AsyncDataStream, AsyncFunction, StreamExecutionEnvironment

NAMES = ["Ann", "Bob", "Cid", "Dan", "Eve", "Fay"]


class LookUp(AsyncFunction):
    """Stands for a database or a web service with an asynchronous client, which would be made in open()."""

    async def async_invoke(self, value):
        await asyncio.sleep(0.01 * (3 - value % 3))
        return [f"user {value} is called {NAMES[value]}"]

    def timeout(self, value):
        return [f"user {value} is unknown: no answer in time"]


env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
ids = env.from_collection([0, 3, 1, 5, 2, 4])
AsyncDataStream.ordered_wait(ids, LookUp(), Time.seconds(10), 3).print()  # at most 3 questions at a time
env.execute("asynchronous I/O")
