"""union; partitioners of one's own and broadcast over subtasks."""

import tempfile
from pathlib import Path

from pyflink.common import Encoder, Types
from pyflink.datastream import MapFunction, Partitioner, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Modulo(Partitioner):
    def partition(self, key, num_partitions):
        return key % num_partitions


class WithSubtask(MapFunction):
    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return "%d in %d" % (value, self.subtask)


def lines_of(stream):
    """The number of partitions is there only in jobs that `execute` starts, so what they bring is written to files."""
    with tempfile.TemporaryDirectory() as folder:
        stream.sink_to(FileSink.for_row_format(folder, Encoder.simple_string_encoder()).build())
        env.execute()
        return sorted(line for file in Path(folder).glob("*/*") for line in file.read_text().splitlines())


def numbers():
    return env.from_collection([1, 2, 3, 4, 5, 6], Types.INT())


odd, even = numbers().filter(lambda n: n % 2), numbers().filter(lambda n: n % 2 == 0)
print(sorted(odd.union(even, even).map(lambda n: n * 10, Types.INT()).execute_and_collect()))
for name, stream in {
    "custom": numbers().partition_custom(Modulo(), lambda n: n),
    "function": numbers().partition_custom(lambda key, count: key // 4 % count, lambda n: n),
    "broadcast": numbers().filter(lambda n: n < 3).broadcast(),
}.items():
    print(name, lines_of(stream.map(WithSubtask(), Types.STRING()).set_parallelism(2)))
