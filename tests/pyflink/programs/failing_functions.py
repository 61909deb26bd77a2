"""What a failing function looks like to the program."""

from pyflink.common import Types
from pyflink.datastream import MapFunction, StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Fails(MapFunction):
    def open(self, runtime_context):
        self.seen = []

    def map(self, value):
        self.seen.append(value)
        return 6 // value

    def close(self):
        self.seen.clear()


for values in ([1, 2, 3], [1, 0, 3]):
    try:
        print(list(env.from_collection(values, Types.INT()).map(Fails(), Types.INT()).execute_and_collect()))
    except Exception as error:
        print("ZeroDivisionError" in str(error), "return 6 // value" in str(error))
