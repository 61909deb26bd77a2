"""Count things on the side while a job runs, and read the totals of all subtasks when it has ended."""

from __future__ import annotations

from penstock.datastream import FilterFunction, StreamExecutionEnvironment
from penstock.datastream.accumulators import Histogram, IntCounter

LINES = ["3", "14", "", "x", "159", "2", "", "65"]


class Valid(FilterFunction):
    def open(self, runtime_context):
        self._empty, self._digits = IntCounter(), Histogram()
        runtime_context.add_accumulator("empty lines", self._empty)
        runtime_context.add_accumulator("lines by digits", self._digits)

    def filter(self, value):
        if not value:
            self._empty.add(1)
        elif value.isdigit():
            self._digits.add(len(value))
        return value.isdigit()


env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
env.from_collection(LINES).rebalance().filter(Valid()).set_parallelism(2).map(int).print("valid")
result = env.execute("accumulators")
print("empty lines:", result.get_accumulator_result("empty lines"))
print("lines by digits:", result.get_accumulator_result("lines by digits"))
