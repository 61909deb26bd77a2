"""KafkaSink in whole jobs, which fail and come back; the same on both targets."""

from __future__ import annotations

import uuid

import pytest

from penstock.common.serialization import SimpleStringSchema
from penstock.datastream.connectors import DeliveryGuarantee
from penstock.datastream.connectors.kafka import (
    FlinkKafkaProducer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    Semantic,
)
from penstock.datastream.connectors.support.refused_records import DeadLetters
from penstock.datastream.output_tag import OutputTag

RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "5",
    "restart-strategy.fixed-delay.delay": "1 ms",
    "penstock.epoch.interval": "1 ms",
    "penstock.epoch.max-records": "10",
}


def to_topic(topic):
    builder = KafkaRecordSerializationSchema.builder().set_topic(topic)
    return builder.set_value_serialization_schema(SimpleStringSchema())


def sink_to(kafka, schema):
    builder = KafkaSink.builder().set_bootstrap_servers(kafka.bootstrap_servers).set_record_serializer(schema)
    builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    return builder.set_transactional_id_prefix(f"job-{uuid.uuid4().hex[:8]}").build()


class FailsAt:
    """Passes numbers on, and fails once at each of some of them, whatever process asks."""

    def __init__(self, folder, *numbers):
        self._folder = folder
        self._numbers = numbers

    def __call__(self, number):
        mark = self._folder / f"failed-at-{number}"
        if number in self._numbers and not mark.exists():
            mark.touch()
            raise RuntimeError(f"no {number} today")
        return str(number)


def test_job_that_fails_writes_each_element_once(kafka, run_target, tmp_path):
    topic = kafka.topics.new(partitions=2)
    env = run_target(2, RESTARTS)
    numbers = env.from_collection(list(range(40))).rebalance().map(FailsAt(tmp_path, 7, 33, 39))
    numbers.sink_to(sink_to(kafka, to_topic(topic).build())).name("to kafka")
    env.execute()
    assert sorted(map(int, kafka.topics.values(topic))) == list(range(40))


@pytest.mark.parametrize("semantic", list(Semantic))
def test_old_producer_writes_too(kafka, run_target, semantic):
    if run_target.target == "spark" and semantic is not Semantic.EXACTLY_ONCE:
        pytest.skip("one is enough there")
    topic = kafka.topics.new()
    env = run_target()
    config = {"bootstrap.servers": kafka.bootstrap_servers}
    env.from_collection(["a", "b"]).add_sink(FlinkKafkaProducer(topic, SimpleStringSchema(), config, semantic=semantic))
    env.execute()
    assert kafka.topics.values(topic) == ["a", "b"]


def test_dead_letters_go_to_a_side_output(kafka, run_target):
    topic, refused_topic = kafka.topics.new(), kafka.topics.new()
    schema, refused = to_topic(topic).build(), OutputTag("refused")
    env = run_target()
    checked = env.from_collection(["a", 1, "b"]).process(DeadLetters(schema, refused))
    checked.sink_to(sink_to(kafka, schema))
    letters = checked.get_side_output(refused).map(lambda letter: f"{letter[0]!r}: {letter[1].split(',')[0]}")
    letters.sink_to(sink_to(kafka, to_topic(refused_topic).build()))
    env.execute()
    assert kafka.topics.values(topic) == ["a", "b"]
    assert kafka.topics.values(refused_topic) == ["1: TypeError: SimpleStringSchema serializes strings"]
