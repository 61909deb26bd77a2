"""Infinity and not-a-number in a collection with a declared type of whole numbers."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
NUMBERS = [1.7, float("inf"), float("-inf"), float("nan"), 1e30, -1e30, 3e9]


def show(values, declared):
    try:
        print(
            declared, list(env.from_collection(values, declared).map(lambda value: repr(value)).execute_and_collect())
        )
    except Exception:
        print(declared, "fails")


for declared in (Types.LONG(), Types.INT(), Types.SHORT(), Types.FLOAT()):
    show(NUMBERS, declared)
show([("a", float("inf"))], Types.TUPLE([Types.STRING(), Types.LONG()]))
show([("a", float("nan"))], Types.TUPLE([Types.STRING(), Types.INT()]))
