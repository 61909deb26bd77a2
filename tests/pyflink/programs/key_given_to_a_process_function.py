"""get_current_key of a list."""

from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class ShowKey(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield f"{ctx.get_current_key()} {value}"


words = env.from_collection([("a", 1), ("b", 2)])
print(sorted(words.key_by(lambda pair: [pair[0], 1]).process(ShowKey()).execute_and_collect()))
