"""Dicts and objects declared as named rows become Rows."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Count:
    def __init__(self, word, vc):
        self.word = word
        self.vc = vc


row_type = Types.ROW_NAMED(["word", "vc"], [Types.STRING(), Types.INT()])
dicts = env.from_collection([{"word": "a", "vc": 1}, {"word": "b", "vc": 2}], row_type)
print([(type(row).__name__, row.word, row["vc"]) for row in dicts.execute_and_collect()])
objects = env.from_collection([Count("a", 1), Count("b", 2)], row_type)
print([(type(row).__name__, row.word, row["vc"]) for row in objects.execute_and_collect()])
