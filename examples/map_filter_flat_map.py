"""Stateless steps: split lines into words, drop short ones, write the others in capitals."""

from __future__ import annotations

from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
lines = env.from_collection(["a penstock feeds a turbine", "a stream feeds a penstock"])
(
    lines.flat_map(lambda line: line.split())  # any number of results for each element
    .filter(lambda word: len(word) > 1)
    .map(lambda word: word.upper())
    .print()
)
env.execute("map, filter, flat_map")
