"""Jobs that are killed while they run and started again, by `crashes.py`. Each is a program of its own:

python crashing_programs.py kafka --target inline --checkpoints FOLDER ...
"""

from __future__ import annotations

import argparse

from penstock.common import Configuration, Time, Types
from penstock.common.serialization import SimpleStringSchema
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.connectors import DeliveryGuarantee, NumberSequenceSource
from penstock.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExactlyOnceOptions, JdbcSink
from penstock.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
)
from penstock.datastream.functions import ProcessWindowFunction
from penstock.datastream.window import TumblingEventTimeWindows

PARALLELISM = 2
PARTITIONS = 2
KEYS = 5
WINDOW_MS = 100


def environment(arguments: argparse.Namespace) -> StreamExecutionEnvironment:
    settings = {
        "execution.target": arguments.target,
        "execution.checkpointing.interval": "100 ms",
        "execution.checkpointing.dir": arguments.checkpoints,
        "penstock.epoch.interval": "20 ms",
        "penstock.epoch.max-records": str(arguments.epoch_records),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1000",
        "restart-strategy.fixed-delay.delay": "100 ms",
        "spark.master": "local[2]",
    }
    if arguments.recover:
        settings["execution.state-recovery.path"] = arguments.recover
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    return env.set_parallelism(PARALLELISM).set_runtime_mode(RuntimeExecutionMode.STREAMING)


# --- Kafka -> windows -> Kafka ---------------------------------------------------------------------------------------


def element_of(partition: int, number: int) -> tuple[str, str, int]:
    """Key, value and timestamp of a partition's record."""
    return f"key{(number + partition) % KEYS}", str(number), 1000 + number * 3


def expected_windows(records: int) -> list[str]:
    """What the job writes: a line for each key and window, with the number and the sum of the elements in it."""
    found: dict[tuple[int, str], list[int]] = {}
    for partition in range(PARTITIONS):
        for number in range(records):
            key, value, timestamp = element_of(partition, number)
            found.setdefault((timestamp // WINDOW_MS * WINDOW_MS, key), []).append(int(value))
    return sorted(f"{start} {key} {len(values)} {sum(values)}" for (start, key), values in found.items())


class Line(ProcessWindowFunction):
    def process(self, key, context, elements):
        values = [int(value) for _, value in elements]
        yield f"{context.window().start} {key} {len(values)} {sum(values)}"


def run_kafka(arguments: argparse.Namespace) -> None:
    stop = {KafkaTopicPartition(arguments.input, number): arguments.records for number in range(PARTITIONS)}
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(arguments.servers)
        .set_topics(arguments.input)
        .set_group_id(arguments.output)
        .set_bounded(KafkaOffsetsInitializer.offsets(stop))
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    schema = KafkaRecordSerializationSchema.builder().set_topic(arguments.output)
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(arguments.servers)
        .set_record_serializer(schema.set_value_serialization_schema(SimpleStringSchema()).build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(arguments.output)
        .build()
    )
    env = environment(arguments)
    lines = env.from_source(source, WatermarkStrategy.for_monotonous_timestamps(), "numbers").uid("source")
    words = lines.map(lambda line: tuple(line.split()), Types.TUPLE([Types.STRING(), Types.STRING()]))
    windows = words.key_by(lambda word: word[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
    windows.process(Line()).uid("windows").sink_to(sink).uid("sink")
    env.execute("kafka to kafka")


# --- numbers -> PostgreSQL -------------------------------------------------------------------------------------------


def expected_rows(records: int) -> list[tuple[int, int]]:
    return [(number, number * number) for number in range(records)]


def run_postgres(arguments: argparse.Namespace) -> None:
    sink = JdbcSink.exactly_once_sink(
        f"insert into {arguments.output} values (?, ?)",
        Types.ROW([Types.LONG(), Types.LONG()]),
        JdbcConnectionOptions(arguments.servers, user_name="penstock"),
        JdbcExactlyOnceOptions.builder().with_transaction_prefix(arguments.output).build(),
    )
    env = environment(arguments)
    source = NumberSequenceSource(0, arguments.records - 1)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("source")
    rows = numbers.key_by(lambda number: number % KEYS).map(lambda number: (number, number * number))
    rows.sink_to(sink).uid("sink")
    env.execute("numbers to postgres")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=["kafka", "postgres"])
    for option in ("--target", "--checkpoints", "--servers", "--input", "--output", "--recover"):
        parser.add_argument(option, default="")
    parser.add_argument("--records", type=int)
    parser.add_argument("--epoch-records", type=int)
    arguments = parser.parse_args()
    {"kafka": run_kafka, "postgres": run_postgres}[arguments.job](arguments)


if __name__ == "__main__":
    main()
