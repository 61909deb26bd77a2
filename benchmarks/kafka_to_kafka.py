"""From a Kafka topic to another, exactly once: parse, count per key in state, write, with a checkpoint every second."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from benchmarks import broker
from benchmarks.flink_api import (
    KeyedProcessFunction,
    RuntimeContext,
    Types,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from benchmarks.job import Setting, environment_of, measure_runs, parse_setting, report, sizes_of, watched
from penstock.common.serialization import SimpleStringSchema
from penstock.datastream.connectors import DeliveryGuarantee
from penstock.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)


def orders(setting: Setting, first: int = 0, step: int = 1) -> Iterator[str]:
    """A customer and an amount; every `step`th from the first on."""
    for number in range(first, setting.records, step):
        yield f"{number * 7919 % setting.keys} {number % 97}"


def topic_of(setting: Setting) -> str:
    """Where an input lies; peers make up the same name."""
    return f"orders-{setting.records}-p{setting.parallelism}-{setting.keys}"


def prepare(setting: Setting) -> None:
    """Fill the topic of the input, unless it is there."""
    topic = topic_of(setting)
    if broker.has_topic(topic):
        return
    broker.new_topic(setting.parallelism, topic)
    for partition in range(setting.parallelism):
        broker.fill(topic, partition, orders(setting, partition, setting.parallelism))


class NumberOrders(KeyedProcessFunction):  # type: ignore[misc, unused-ignore]
    """How many orders a customer has made, with each of them."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{value[0]} {count}"


def parse(text: str) -> tuple[int, int]:
    customer, amount = text.split(" ")
    return int(customer), int(amount)


def run(setting: Setting) -> tuple[Iterator[Any], int | None]:
    """From topic to topic; what was written is read when the results are iterated."""
    results = broker.new_topic(setting.parallelism)
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(broker.servers())
        .set_topics(topic_of(setting))
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    schema = KafkaRecordSerializationSchema.builder().set_topic(results)
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(broker.servers())
        .set_record_serializer(schema.set_value_serialization_schema(SimpleStringSchema()).build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(f"benchmark-{uuid.uuid4().hex[:8]}")
        .build()
    )

    def job() -> None:
        env = environment_of(setting)
        read = env.from_source(source, WatermarkStrategy.no_watermarks(), "orders")
        parsed = read.map(parse, Types.TUPLE([Types.LONG(), Types.LONG()]))
        numbered = parsed.key_by(lambda order: order[0], Types.LONG()).process(NumberOrders(), Types.STRING())
        numbered.sink_to(sink)
        env.execute("kafka to kafka")

    _, shuffled_bytes = watched(job)
    return broker.committed(results), shuffled_bytes


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python."""
    totals = Counter(number * 7919 % setting.keys for number in range(setting.records))
    return [f"{customer} {count}" for customer, total in totals.items() for count in range(1, total + 1)]


if __name__ == "__main__":
    asked = parse_setting()
    for size in sizes_of(asked):
        prepare(replace(asked, records=size))
    report(measure_runs(run, asked))
