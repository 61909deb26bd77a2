"""window_all takes the functions of keyed windows."""

from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import AllWindowFunction, ProcessAllWindowFunction
from pyflink.datastream.window import CountTumblingWindowAssigner

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class ProcessAll(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield f"process {sorted(elements)}"


class ApplyAll(AllWindowFunction):
    def apply(self, window, inputs):
        yield f"apply {sorted(inputs)}"


numbers = env.from_collection([1, 2, 3, 4])
print(list(numbers.window_all(CountTumblingWindowAssigner.of(2)).process(ProcessAll()).execute_and_collect()))
print(list(numbers.window_all(CountTumblingWindowAssigner.of(2)).apply(ApplyAll()).execute_and_collect()))
