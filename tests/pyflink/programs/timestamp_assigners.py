"""Where PyFlink uses a timestamp assigner: not at a source, and not if idleness was added after it."""

from pyflink.common import Duration, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource


class Thousands(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value * 1000


class Stamped(ProcessFunction):
    def process_element(self, value, ctx):
        timestamp = ctx.timestamp()
        yield f"{value} at {timestamp}" if timestamp is not None and timestamp >= 0 else f"{value} without"


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
plain = WatermarkStrategy.for_monotonous_timestamps()
seconds = Duration.of_seconds(1)


def show(what, stream):
    print(what)
    for line in stream.process(Stamped(), Types.STRING()).execute_and_collect():
        print(line)


show(
    "at the source", env.from_source(NumberSequenceSource(1, 2), plain.with_timestamp_assigner(Thousands()), "numbers")
)
for what, strategy in (
    ("after the source", plain.with_timestamp_assigner(Thousands())),
    ("before idleness", plain.with_timestamp_assigner(Thousands()).with_idleness(seconds)),
    ("after idleness", plain.with_idleness(seconds).with_timestamp_assigner(Thousands())),
):
    numbers = env.from_collection([1, 2], Types.LONG())
    show(what, numbers.assign_timestamps_and_watermarks(strategy))
