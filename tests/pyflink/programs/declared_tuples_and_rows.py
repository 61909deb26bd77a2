"""Fields of tuples and rows have their declared types."""

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)

numbers = env.from_collection([1, 2])
pairs = numbers.map(lambda n: (n * 0.1, n + 2147483645), output_type=Types.TUPLE([Types.FLOAT(), Types.INT()]))
print(list(pairs.rebalance().map(lambda each: repr(each)).execute_and_collect()))
rows = numbers.map(lambda n: Row(n * 0.1, str(n)), output_type=Types.ROW([Types.FLOAT(), Types.STRING()]))
print(list(rows.rebalance().map(lambda each: repr(each)).execute_and_collect()))
named = numbers.map(
    lambda n: Row(n * 0.1, str(n)), output_type=Types.ROW_NAMED(["x", "y"], [Types.FLOAT(), Types.STRING()])
)
print(list(named.rebalance().map(lambda each: repr(each)).execute_and_collect()))
nested = numbers.map(
    lambda n: (n, [("a", n)]),
    output_type=Types.TUPLE([Types.INT(), Types.LIST(Types.TUPLE([Types.STRING(), Types.FLOAT()]))]),
)
print(list(nested.rebalance().map(lambda each: repr(each)).execute_and_collect()))
