"""KafkaSource in whole jobs; the same on both targets."""

from __future__ import annotations

import uuid

import pytest

from penstock.common import Row, Types
from penstock.common.serialization import SimpleStringSchema
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import RuntimeExecutionMode
from penstock.datastream.connectors.file_system import FileSource, StreamFormat
from penstock.datastream.connectors.hybrid_source import HybridSource
from penstock.datastream.connectors.kafka import FlinkKafkaConsumer, KafkaOffsetsInitializer, KafkaSource
from penstock.datastream.formats.json import JsonRowDeserializationSchema


def bounded(kafka, topic, schema):
    builder = KafkaSource.builder().set_bootstrap_servers(kafka.bootstrap_servers).set_topics(topic)
    return builder.set_value_only_deserializer(schema).set_bounded(KafkaOffsetsInitializer.latest()).build()


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_rows_of_a_topic_are_summed_up(kafka, run_target, mode):
    topic = kafka.topics.new(partitions=2)
    kafka.topics.fill(topic, [(f"k{n % 3}", f'{{"word": "w{n % 3}", "count": {n}}}') for n in range(30)])
    row = Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.INT()])
    schema = JsonRowDeserializationSchema.builder().type_info(row).build()
    env = run_target(2).set_runtime_mode(mode)
    rows = env.from_source(bounded(kafka, topic, schema), WatermarkStrategy.no_watermarks(), "topic")
    sums = rows.key_by(lambda row: row.word).reduce(lambda a, b: Row(word=a.word, count=a["count"] + b["count"]))
    with sums.execute_and_collect() as results:
        last = {row.word: row["count"] for row in results}
    assert last == {"w0": 135, "w1": 145, "w2": 155}


@pytest.mark.filterwarnings("ignore:FlinkKafkaConsumer is deprecated")
def test_old_consumer_reads_too(kafka, run_target):
    topic = kafka.topics.new()
    kafka.topics.fill(topic, ["a", "b", "c"])
    config = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": f"g-{uuid.uuid4().hex[:8]}"}
    consumer = FlinkKafkaConsumer(topic, SimpleStringSchema(), config).set_start_from_earliest()
    env = run_target()
    with env.add_source(consumer).execute_and_collect() as values:
        assert [next(values) for _ in range(3)] == ["a", "b", "c"]


def test_history_in_files_then_a_topic(kafka, run_target, tmp_path):
    topic = kafka.topics.new(partitions=2)
    kafka.topics.fill(topic, [(f"k{number}", f"new {number}") for number in range(6)])
    (tmp_path / "history.txt").write_text("old 1\nold 2\n")
    files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path)).build()
    source = HybridSource.builder(files).add_source(bounded(kafka, topic, SimpleStringSchema())).build()
    stream = run_target(2).from_source(source, WatermarkStrategy.no_watermarks(), "all")
    with stream.execute_and_collect() as values:
        found = list(values)
    assert sorted(found) == sorted(["old 1", "old 2", *(f"new {number}" for number in range(6))])
    assert sorted(found[:2]) == ["old 1", "old 2"]
