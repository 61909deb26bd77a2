"""Bring streams together, and say which subtask gets an element: three subtasks show what came to them."""

from __future__ import annotations

from penstock.datastream import MapFunction, StreamExecutionEnvironment


class ShowSubtask(MapFunction):
    def open(self, runtime_context):
        self._subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return f"{value} in subtask {self._subtask}"


env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
numbers = env.from_collection([1, 2, 3]).union(env.from_collection([40, 50]), env.from_collection([600]))
(
    numbers.partition_custom(lambda key, partitions: key % partitions, lambda number: len(str(number)))
    .map(ShowSubtask())
    .set_parallelism(3)
    .print("by number of digits")
)
numbers.broadcast().map(lambda number: number).set_parallelism(2).map(lambda n: n).print("to all")
numbers.global_().map(ShowSubtask()).set_parallelism(3).print("all to the first")
env.execute("union and partitioning")
