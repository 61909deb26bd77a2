"""Count the words of a small text. Bounded input: the job ends by itself."""

from __future__ import annotations

from penstock.datastream import StreamExecutionEnvironment

TEXT = [
    "to be or not to be that is the question",
    "whether tis nobler in the mind to suffer",
    "the slings and arrows of outrageous fortune",
    "or to take arms against a sea of troubles",
]

env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
counts = (
    env.from_collection(TEXT)
    .flat_map(lambda line: line.split())
    .map(lambda word: (word, 1))
    .key_by(lambda pair: pair[0])
    .reduce(lambda a, b: (a[0], a[1] + b[1]))
)
counts.print()
env.execute("WordCount")
