"""KafkaSink against a real broker."""

from __future__ import annotations

import gc
import uuid
from pathlib import Path

import pytest
from server_sink_job import ServerSinkJob

from penstock.common.exceptions import ConnectorError, JobExecutionError
from penstock.common.serialization import SimpleStringSchema
from penstock.datastream.connectors import DeliveryGuarantee
from penstock.datastream.connectors.kafka import KafkaPartitioner, KafkaRecordSerializationSchema, KafkaSink
from penstock.datastream.connectors.kafka.committer import KafkaCommitter
from penstock.datastream.connectors.kafka.transactions import KafkaTransaction
from penstock.datastream.connectors.kafka.writer import RecordProducer
from penstock.datastream.connectors.support.refused_records import REFUSED_METRIC, OnRefused
from penstock.jobmaster.sinks.sink_commits import PendingRequest


def to_topic(topic):
    return (
        KafkaRecordSerializationSchema.builder().set_topic(topic).set_value_serialization_schema(SimpleStringSchema())
    )


def sink_to(kafka, schema, guarantee=DeliveryGuarantee.EXACTLY_ONCE, prefix=None, **properties):
    builder = KafkaSink.builder().set_bootstrap_servers(kafka.bootstrap_servers).set_record_serializer(schema)
    builder.set_delivery_guarantee(guarantee).set_transactional_id_prefix(prefix or f"job-{uuid.uuid4().hex[:8]}")
    for name, value in properties.items():
        builder.set_property(name.replace("_", "."), value)
    return builder.build()


# --- what is written -------------------------------------------------------------------------------------------------


def length_of(word):
    return str(len(word))


class LengthSchema(SimpleStringSchema):
    def serialize(self, element):
        return length_of(element).encode()


class LastPartition(KafkaPartitioner):
    def open(self, parallel_instance_id, parallel_instances):
        self._opened = (parallel_instance_id, parallel_instances)

    def partition(self, record, key, value, target_topic, partitions):
        assert self._opened == (0, 1) and value == record.encode()
        return partitions[-1]


def test_records_have_key_value_headers_timestamp_and_partition(kafka, tmp_path):
    topic = kafka.topics.new(partitions=3)
    schema = to_topic(topic).set_key_serialization_schema(LengthSchema()).set_partitioner(LastPartition())
    schema.set_header_provider(lambda word: {"first": word[0].encode()})
    job = ServerSinkJob(
        sink_to(kafka, schema.build(), DeliveryGuarantee.AT_LEAST_ONCE), tmp_path, lambda i: ["a", "bb"][i]
    )
    job.write(2).checkpoint().close()
    found = [(each.key, each.value, each.partition, each.headers) for each in kafka.topics.records(topic)]
    assert found == [("1", "a", 2, (("first", b"a"),)), ("2", "bb", 2, (("first", b"b"),))]
    assert kafka.topics.records(topic)[1].timestamp == 1


@pytest.mark.parametrize("key_schema", [None, SimpleStringSchema(), LengthSchema()])
def test_many_records_have_keys_values_and_timestamps(kafka, tmp_path, key_schema):
    topic = kafka.topics.new()
    schema = to_topic(topic)
    if key_schema is not None:
        schema.set_key_serialization_schema(key_schema)
    ServerSinkJob(sink_to(kafka, schema.build()), tmp_path).write(20).end()
    key_of = {None: lambda _: None, SimpleStringSchema: str, LengthSchema: lambda i: length_of(str(i))}
    keys = map(key_of[None if key_schema is None else type(key_schema)], range(20))
    records = kafka.topics.records(topic)
    assert [(each.key, each.value) for each in records] == [(key, str(i)) for i, key in enumerate(keys)]
    assert [each.timestamp for each in records[1:]] == list(range(1, 20))  # For the client 0 is none.


def test_more_records_than_the_client_queues_are_all_sent(kafka):
    topic = kafka.topics.new()
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "queue.buffering.max.messages": "10"}
    producer = RecordProducer(settings)
    values = [str(number).encode() for number in range(1000)]
    producer.send_all(topic, values[:500], None, None)
    producer.send_all(topic, values[500:], values[500:], [None, -1, *range(2, 500)])
    producer.flush()
    records = kafka.topics.records(topic)
    assert [each.value for each in records] == [str(number) for number in range(1000)]
    assert [each.key for each in records] == [None] * 500 + [str(number) for number in range(500, 1000)]
    assert [each.timestamp for each in records[502:]] == list(range(2, 500))
    assert min(each.timestamp for each in records[:502]) > 1_000_000_000_000  # The time of writing.


def test_topic_is_chosen_element_by_element(kafka, tmp_path):
    topics = [kafka.topics.new(), kafka.topics.new()]
    schema = KafkaRecordSerializationSchema.builder().set_topic_selector(lambda text: topics[int(text) % 2])
    schema.set_value_serialization_schema(SimpleStringSchema())
    ServerSinkJob(sink_to(kafka, schema.build(), DeliveryGuarantee.AT_LEAST_ONCE), tmp_path).write(4).end()
    assert [kafka.topics.values(topic) for topic in topics] == [["0", "2"], ["1", "3"]]


def test_same_key_goes_to_the_partition_that_java_chooses(kafka, tmp_path):
    topic = kafka.topics.new(partitions=4)
    schema = to_topic(topic).set_key_serialization_schema(SimpleStringSchema()).build()
    ServerSinkJob(sink_to(kafka, schema, DeliveryGuarantee.AT_LEAST_ONCE), tmp_path).write(5).end()
    # murmur2(key) % 4, as Java's client computes it.
    assert {each.key: each.partition for each in kafka.topics.records(topic)} == {
        "0": 0,
        "1": 3,
        "2": 0,
        "3": 3,
        "4": 1,
    }


@pytest.mark.parametrize("guarantee", [DeliveryGuarantee.NONE, DeliveryGuarantee.AT_LEAST_ONCE])
def test_without_transactions_all_is_there_at_the_end(kafka, tmp_path, guarantee):
    topic = kafka.topics.new()
    ServerSinkJob(sink_to(kafka, to_topic(topic).build(), guarantee), tmp_path).write(3000).end()
    assert kafka.topics.values(topic) == [str(i) for i in range(3000)]


def test_at_least_once_has_everything_in_kafka_before_the_checkpoint(kafka, tmp_path):
    topic = kafka.topics.new()
    job = ServerSinkJob(sink_to(kafka, to_topic(topic).build(), DeliveryGuarantee.AT_LEAST_ONCE), tmp_path)
    job.write(10).checkpoint("snapshot")
    assert kafka.topics.values(topic) == [str(i) for i in range(10)]
    job.crash().write(12).end()  # No checkpoint was complete: all come again.
    assert kafka.topics.values(topic) == [str(i) for i in (*range(10), *range(12))]


# --- exactly once ----------------------------------------------------------------------------------------------------


def test_records_show_up_when_their_checkpoint_is_complete(kafka, tmp_path):
    topic = kafka.topics.new()
    job = ServerSinkJob(sink_to(kafka, to_topic(topic).build()), tmp_path).write(3)
    job.checkpoint("metadata")
    assert (kafka.topics.values(topic), len(kafka.topics.values(topic, "read_uncommitted"))) == ([], 3)
    job.crash()
    assert kafka.topics.values(topic) == ["0", "1", "2"]
    job.write(2).end()
    assert kafka.topics.values(topic) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("step", [None, "snapshot", "metadata", "commit"])
def test_crash_at_any_point_writes_each_element_once(kafka, tmp_path, step):
    topic = kafka.topics.new()
    prefix = f"crash-{uuid.uuid4().hex[:8]}"
    job = ServerSinkJob(sink_to(kafka, to_topic(topic).build(), prefix=prefix), tmp_path, parallelism=2)
    job.write(4).checkpoint().write(4)
    if step is not None:
        job.checkpoint(step)
    if step == "commit":
        job.write(2)
    job.crash(parallelism=1)
    assert kafka.topics.open_transactions(prefix) == []
    while job.position < 12:
        job.write()
    job.end()
    assert sorted(map(int, kafka.topics.values(topic))) == list(range(12))
    assert kafka.topics.open_transactions(prefix) == []


def _threads_of_clients():
    return sum(name.read_text() == "rdk:main\n" for name in Path("/proc/self/task").glob("*/comm"))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_producers_of_former_checkpoints_are_gone_at_once(kafka, tmp_path):
    gc.collect()
    before = _threads_of_clients()
    job = ServerSinkJob(sink_to(kafka, to_topic(kafka.topics.new()).build()), tmp_path)
    gc.disable()  # Where records come by the thousand, Python seldom looks for cycles.
    try:
        for _ in range(5):
            job.write(1).checkpoint()
        # The producer of the next transaction is made ahead.
        assert _threads_of_clients() <= before + 1
    finally:
        gc.enable()
    job.end()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_producer_with_records_that_nobody_waits_for_is_gone_at_once():
    producer = RecordProducer({"bootstrap.servers": "127.0.0.1:1"})
    producer.send("t", b"never arrives")
    before = _threads_of_clients()
    del producer
    assert _threads_of_clients() == before - 1


def test_failure_aborts_what_was_open_at_once(kafka, tmp_path):
    topic = kafka.topics.new()
    prefix = f"fails-{uuid.uuid4().hex[:8]}"
    job = ServerSinkJob(sink_to(kafka, to_topic(topic).build(), prefix=prefix), tmp_path).write(3)
    job.operators[0].writer.flush(False)
    assert kafka.topics.open_transactions(prefix) == [f"{prefix}-0-1"]
    for operator in job.operators:
        operator.close()
    assert kafka.topics.open_transactions(prefix) == []


def test_work_of_a_failed_checkpoint_is_committed_with_the_next(kafka, tmp_path):
    topic = kafka.topics.new()
    job = ServerSinkJob(sink_to(kafka, to_topic(topic).build()), tmp_path)
    job.write(2).aborted_checkpoint().write(2)
    assert kafka.topics.values(topic) == []
    job.checkpoint()
    assert kafka.topics.values(topic) == ["0", "1", "2", "3"]
    job.close()


def test_checkpoint_without_elements_needs_no_transaction(kafka, tmp_path):
    prefix = f"quiet-{uuid.uuid4().hex[:8]}"
    job = ServerSinkJob(sink_to(kafka, to_topic("nowhere").build(), prefix=prefix), tmp_path)
    job.checkpoint("metadata")
    assert kafka.topics.open_transactions(prefix) == [] and job.last.committables
    job.crash().end()


def test_other_jobs_with_similar_prefixes_are_left_alone(kafka, tmp_path):
    topic = kafka.topics.new()
    name = f"near-{uuid.uuid4().hex[:8]}"
    others = [
        ServerSinkJob(sink_to(kafka, to_topic(topic).build(), prefix=other), tmp_path).write()
        for other in (f"{name}-0", f"{name}x")
    ]
    ServerSinkJob(sink_to(kafka, to_topic(topic).build(), prefix=name), tmp_path).write().end()
    for other in others:
        other.end()
    assert kafka.topics.values(topic) == ["0", "0", "0"]


def test_transactions_under_the_former_prefix_are_aborted_too(kafka, tmp_path):
    topic = kafka.topics.new()
    name = f"old-{uuid.uuid4().hex[:8]}"
    job = ServerSinkJob(sink_to(kafka, to_topic(topic).build(), prefix=name), tmp_path, parallelism=2)
    job.write(2).checkpoint().write(2)
    renamed = ServerSinkJob(sink_to(kafka, to_topic(topic).build(), prefix=name + "-new"), tmp_path)
    renamed.last = job.last
    renamed.crash()
    assert kafka.topics.open_transactions(name) == []
    renamed.write(2).end()
    assert sorted(kafka.topics.values(topic)) == ["0", "1", "2", "3"]


def committed_later(kafka, tmp_path, topic, prefix):
    """A job whose checkpoint is complete, and whose transaction was aborted before it could be committed."""
    job = ServerSinkJob(sink_to(kafka, to_topic(topic).build(), prefix=prefix), tmp_path).write(3)
    job.checkpoint("metadata")
    kafka.topics.abort(f"{prefix}-0-1")
    return job


def test_lost_transaction_fails_the_job(kafka, tmp_path):
    job = committed_later(kafka, tmp_path, kafka.topics.new(), f"lost-{uuid.uuid4().hex[:8]}")
    with pytest.raises(JobExecutionError, match=r"'lost-\w+-0-1' cannot be committed.*timed out.*records are lost"):
        job.crash()


def test_transaction_that_kafka_has_forgotten_counts_as_committed(kafka):
    committer = KafkaCommitter({"bootstrap.servers": kafka.bootstrap_servers}, ignores_lost=False)
    request = PendingRequest(KafkaTransaction(f"never-{uuid.uuid4().hex}", 1, 0))
    committer.commit([request])
    committer.close()
    assert request.answer.name == "COMMITTED"


# --- what cannot be written ------------------------------------------------------------------------------------------


def test_refused_elements_are_skipped_and_counted(kafka, tmp_path):
    topic = kafka.topics.new()
    builder = KafkaSink.builder().set_bootstrap_servers(kafka.bootstrap_servers)
    sink = builder.set_record_serializer(to_topic(topic).build()).set_on_refused(OnRefused.SKIP).build()
    job = ServerSinkJob(sink, tmp_path, lambda i: str(i) if i % 2 else i)
    job.write(6)
    [operator] = job.operators
    assert dict(operator.context.metric_group.metrics())[_full(operator, REFUSED_METRIC)].get_value() == 3
    job.end()
    assert kafka.topics.values(topic) == ["1", "3", "5"]


def _full(operator, name):
    return next(each for each, _ in operator.context.metric_group.metrics() if each.endswith(name))


def test_refused_elements_fail_the_job_unless_told_otherwise(kafka, tmp_path):
    sink = sink_to(kafka, to_topic("t").build(), DeliveryGuarantee.AT_LEAST_ONCE)
    with pytest.raises(TypeError, match="SimpleStringSchema serializes strings, got 0"):
        ServerSinkJob(sink, tmp_path, int).write()


def test_missing_topic_is_named(kafka, tmp_path):
    topic = f"missing-{uuid.uuid4().hex[:8]}"
    sink = sink_to(kafka, to_topic(topic).build(), DeliveryGuarantee.AT_LEAST_ONCE, delivery_timeout_ms="1000")
    with pytest.raises(ConnectorError, match=f"a record for topic '{topic}' was not written"):
        ServerSinkJob(sink, tmp_path).write().checkpoint()


def test_unknown_setting_is_named(kafka, tmp_path):
    sink = sink_to(kafka, to_topic("t").build(), DeliveryGuarantee.AT_LEAST_ONCE, no_such_thing="1")
    with pytest.raises(ValueError, match=r'No such configuration property: "no\.such\.thing"'):
        ServerSinkJob(sink, tmp_path).write()


def test_timeout_above_what_the_broker_allows_is_explained(kafka, tmp_path):
    sink = sink_to(kafka, to_topic("t").build(), transaction_timeout_ms="99999999")
    with pytest.raises(ConnectorError, match=r"cannot begin.*transaction.max.timeout.ms"):
        ServerSinkJob(sink, tmp_path).write()
