"""KafkaSource against a real broker."""

from __future__ import annotations

import json
import uuid

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from server_source_job import ServerSourceJob

from penstock.common import Configuration, Row
from penstock.common.exceptions import JobExecutionError
from penstock.common.serialization import SimpleStringSchema
from penstock.common.time import Duration
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.datastream.connectors import BadRecords
from penstock.datastream.connectors.dynamic_kafka import DynamicKafkaSource, SingleClusterTopicMetadataService
from penstock.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordDeserializationSchema,
    KafkaSource,
    KafkaTopicPartition,
)
from penstock.datastream.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema

SMALL_EPOCHS = {"penstock.epoch.max-records": "3"}
LATEST = KafkaOffsetsInitializer.latest()


def reading(kafka, *topics):
    builder = KafkaSource.builder().set_bootstrap_servers(kafka.bootstrap_servers)
    builder.set_value_only_deserializer(SimpleStringSchema())
    return builder.set_topics(*topics) if topics else builder


def all_of(builder, **settings):
    """Everything a bounded source gives."""
    return sorted(ServerSourceJob(builder.set_bounded(LATEST).build(), **settings).to_the_end().values)


def numbers(count, start=0):
    return [f"{number:03}" for number in range(start, start + count)]


# --- what is read ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_every_record_of_every_partition_is_read_once(kafka, parallelism):
    one, other = kafka.topics.new(partitions=3), kafka.topics.new()
    for partition in range(3):
        kafka.topics.fill(one, numbers(100, partition * 100), partition)
    kafka.topics.fill(other, ["x"])
    assert all_of(reading(kafka, one, other), parallelism=parallelism) == [*numbers(300), "x"]


def test_records_have_the_timestamps_of_kafka(kafka):
    topic = kafka.topics.new()
    kafka.topics.fill(topic, ["5", "7"], timestamp_of=int)
    job = ServerSourceJob(reading(kafka, topic).set_bounded(LATEST).build()).to_the_end()
    assert job.shown == [("5", 5), ("7", 7)]


def test_records_without_a_value_are_skipped_and_bytes_that_are_no_text_replaced(kafka):
    topic = kafka.topics.new(partitions=2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for at, value in enumerate([b"a", None, b"\xff", "\u00e9".encode(), None]):
        producer.produce(topic, value, partition=at % 2, timestamp=at + 1)
    producer.flush()
    job = ServerSourceJob(reading(kafka, topic).set_bounded(LATEST).build()).to_the_end()
    assert sorted(job.shown) == [("a", 1), ("\u00e9", 4), ("\ufffd", 3)]


class WholeRecords(KafkaRecordDeserializationSchema):
    def deserialize_record(self, record):
        if record.value is None:
            return None
        return (record.topic, record.partition, record.offset, record.key, record.value, record.headers)


def test_whole_records_are_deserialized(kafka):
    topic = kafka.topics.new()
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce(topic, b"v", b"k", headers=[("h", b"1"), ("n", None)])
    producer.produce(topic, None, b"deleted")
    producer.produce(topic, b"w")
    producer.flush()
    source = reading(kafka, topic).set_deserializer(WholeRecords()).set_bounded(LATEST).build()
    assert ServerSourceJob(source).to_the_end().values == [
        (topic, 0, 0, b"k", b"v", (("h", b"1"), ("n", None))),
        (topic, 0, 2, None, b"w", ()),
    ]
    assert all_of(reading(kafka, topic)) == ["v", "w"]  # Values only: what has none is skipped.


def test_record_that_cannot_be_read_is_named(kafka):
    class OnlyNumbers(SimpleStringSchema):
        def deserialize(self, message):
            return int(message)

    topic = kafka.topics.new()
    kafka.topics.fill(topic, ["1", "two"])
    source = reading(kafka, topic).set_value_only_deserializer(OnlyNumbers()).build()
    with pytest.raises(Exception, match=rf"cannot read the record at offset 1 of {topic}-0: ValueError: invalid"):
        ServerSourceJob(source).until(2)


PERSON = json.dumps({"type": "record", "name": "Person", "fields": [{"name": "name", "type": "string"}]})


@pytest.mark.parametrize("keeps", [False, True], ids=["skipped", "side output"])
def test_records_that_cannot_be_read_are_left_out_or_kept_apart(kafka, keeps):
    topic, tag = kafka.topics.new(), OutputTag("unreadable")
    avro = AvroRowSerializationSchema(avro_schema_string=PERSON)
    kafka.topics.fill(topic, [avro.serialize(Row("Ada")), b"\x20short", avro.serialize(Row("Bob"))])
    bad_records = BadRecords.to_side_output(tag) if keeps else BadRecords.skip()
    reads = reading(kafka, topic).set_value_only_deserializer(AvroRowDeserializationSchema(avro_schema_string=PERSON))
    source = reads.set_bad_records(bad_records).set_bounded(LATEST).build()
    config = Configuration.from_dict({"execution.target": "inline"})
    env = StreamExecutionEnvironment.get_execution_environment(config)
    people = env.from_source(source, WatermarkStrategy.no_watermarks(), "people")
    bad = people.get_side_output(tag).map(lambda record: (record.raw, record.origin))
    with people.map(lambda person: person.name).union(bad).execute_and_collect() as results:
        found = sorted(results, key=str)
    kept = [(b"\x20short", f"the record at offset 1 of {topic}-0")] if keeps else []
    assert found == [*kept, "Ada", "Bob"]


# --- where it begins and ends ----------------------------------------------------------------------------------------


def started(kafka, topic, offsets, group=None, commits=True):
    builder = reading(kafka, topic).set_starting_offsets(offsets)
    builder.set_property("commit.offsets.on.checkpoint", str(commits and group is not None))
    return all_of(builder.set_group_id(group) if group else builder)


def commit(kafka, group, *places):
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition(*place) for place in places], asynchronous=False)
    consumer.close()


def committed(kafka, group, topic, partitions=1):
    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, number) for number in range(partitions)])
    [answer] = client.list_consumer_group_offsets([asked]).values()
    return [place.offset for place in answer.result().topic_partitions]


def test_start_by_position_and_time(kafka):
    topic = kafka.topics.new()
    kafka.topics.fill(topic, numbers(10), timestamp_of=lambda value: 1000 + int(value))
    at_six = KafkaOffsetsInitializer.offsets({KafkaTopicPartition(topic, 0): 6})
    assert started(kafka, topic, KafkaOffsetsInitializer.earliest()) == numbers(10)
    assert started(kafka, topic, at_six) == numbers(4, 6)
    assert started(kafka, topic, KafkaOffsetsInitializer.timestamp(1008)) == numbers(2, 8)
    assert started(kafka, topic, KafkaOffsetsInitializer.timestamp(9999)) == []
    assert started(kafka, topic, LATEST) == []


def test_start_at_the_offsets_of_the_group(kafka):
    topic, group = kafka.topics.new(partitions=2), f"group-{uuid.uuid4().hex[:8]}"
    kafka.topics.fill(topic, numbers(4), partition=0)
    kafka.topics.fill(topic, numbers(4, 10), partition=1)
    commit(kafka, group, (topic, 0, 3))
    strategies = KafkaOffsetResetStrategy
    from_group = KafkaOffsetsInitializer.committed_offsets
    assert started(kafka, topic, from_group(strategies.LATEST), group, commits=False) == ["003"]
    assert started(kafka, topic, from_group(strategies.EARLIEST), group, commits=False) == ["003", *numbers(4, 10)]
    with pytest.raises(JobExecutionError, match=f"group '{group}' has no offsets for {topic}-1; give"):
        started(kafka, topic, from_group(), group)


def test_partitions_without_an_offset_follow_the_strategy(kafka):
    topic = kafka.topics.new(partitions=2)
    kafka.topics.fill(topic, numbers(4), partition=0)
    kafka.topics.fill(topic, numbers(4, 10), partition=1)
    of_one = {KafkaTopicPartition(topic, 1): 2}
    strategies = KafkaOffsetResetStrategy
    initializer = KafkaOffsetsInitializer.offsets
    assert started(kafka, topic, initializer(of_one, strategies.EARLIEST)) == [*numbers(4), "012", "013"]
    assert started(kafka, topic, initializer(of_one, strategies.LATEST)) == ["012", "013"]
    with pytest.raises(JobExecutionError, match=f"has no offsets for {topic}-0; give"):
        started(kafka, topic, initializer(of_one, strategies.NONE))


def test_source_ends_at_the_given_offsets(kafka):
    topic = kafka.topics.new(partitions=2)
    kafka.topics.fill(topic, numbers(4), partition=0)
    kafka.topics.fill(topic, numbers(4, 10), partition=1)
    stop = KafkaOffsetsInitializer.offsets({KafkaTopicPartition(topic, 0): 2, KafkaTopicPartition(topic, 1): 0})
    bounded = reading(kafka, topic).set_bounded(stop).build()
    unbounded = reading(kafka, topic).set_unbounded(stop).build()
    for source in (bounded, unbounded):
        assert ServerSourceJob(source, parallelism=2).to_the_end().values == ["000", "001"]
    assert (bounded.is_bounded, unbounded.is_bounded) == (True, False)


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_end_behind_the_marks_of_transactions_is_found(kafka, isolation):
    topic = kafka.topics.new()
    for action in ("commit_transaction", "abort_transaction"):
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": uuid.uuid4().hex})
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce(topic, action)
        producer.flush()
        getattr(producer, action)()
    found = all_of(reading(kafka, topic).set_property("isolation.level", isolation))
    both = ["abort_transaction", "commit_transaction"]
    assert found == (both[1:] if isolation == "read_committed" else both)


def test_chosen_partitions_are_read_and_no_others(kafka):
    topic = kafka.topics.new(partitions=2)
    kafka.topics.fill(topic, ["no"], partition=0)
    kafka.topics.fill(topic, ["yes"], partition=1)
    assert all_of(reading(kafka).set_partitions({KafkaTopicPartition(topic, 1)})) == ["yes"]


def test_new_topics_and_partitions_are_found(kafka):
    name = f"found-{uuid.uuid4().hex[:8]}"
    kafka.topics.fill(kafka.topics.new(name=f"{name}-a"), ["old"])
    builder = reading(kafka).set_topic_pattern(f"{name}-.").set_property("partition.discovery.interval.ms", "10")
    job = ServerSourceJob(builder.set_starting_offsets(LATEST).build(), parallelism=2).epoch()
    job.wait_for_work()  # The first look is over when there are splits.
    job.epoch()
    kafka.topics.fill(f"{name}-a", ["new"])
    kafka.topics.fill(kafka.topics.new(name=f"{name}-b"), ["from the beginning"])
    kafka.topics.new(name=f"other-{name}-c")
    assert sorted(job.until(2).values) == ["from the beginning", "new"]
    job.crash()
    kafka.topics.fill(f"{name}-b", ["after the crash"])
    assert sorted(job.until(3).values) == ["after the crash", "from the beginning", "new"]
    job.close()


def test_missing_topic_is_named(kafka):
    with pytest.raises(JobExecutionError, match=r"there is no nowhere at 127.0.0.1:\d+; create the topic first"):
        all_of(reading(kafka, "nowhere"))


def test_missing_offset_is_an_error_where_there_is_no_strategy(kafka):
    topic, group = kafka.topics.new(), f"group-{uuid.uuid4().hex[:8]}"
    kafka.topics.fill(topic, ["a"])
    commit(kafka, group, (topic, 0, 7))
    builder = reading(kafka, topic).set_group_id(group)
    builder.set_starting_offsets(KafkaOffsetsInitializer.committed_offsets())
    with pytest.raises(Exception, match=f"{topic}-0 cannot be read: .*AUTO_OFFSET_RESET"):
        ServerSourceJob(builder.build()).until(1)


# --- exactly once ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["fail", "crash", "more subtasks", "fewer subtasks"])
def test_after_a_failure_reading_continues_where_the_checkpoint_was(kafka, change):
    topic = kafka.topics.new(partitions=3)
    for partition in range(3):
        kafka.topics.fill(topic, numbers(10, partition * 10), partition)
    source = reading(kafka, topic).set_bounded(LATEST).build()
    job = ServerSourceJob(source, parallelism=2, settings=SMALL_EPOCHS).until(8)
    job.until(14, is_checkpoint=False)
    assert len(job.unseen) > 0
    if change == "fail":
        job.fail()
    else:
        job.crash({"crash": 2, "more subtasks": 3, "fewer subtasks": 1}[change])
    assert sorted(job.to_the_end().values) == numbers(30)


def test_source_that_has_ended_stays_so_after_a_crash(kafka):
    topic = kafka.topics.new(partitions=2)
    kafka.topics.fill(topic, numbers(3), partition=0)
    job = ServerSourceJob(reading(kafka, topic).set_bounded(LATEST).build(), parallelism=2).to_the_end()
    kafka.topics.fill(topic, ["later"], partition=0)
    assert job.crash(parallelism=1).to_the_end().values == numbers(3)


# --- the group's offsets ---------------------------------------------------------------------------------------------


def test_offsets_of_complete_checkpoints_are_committed_to_the_group(kafka):
    topic, group = kafka.topics.new(partitions=2), f"group-{uuid.uuid4().hex[:8]}"
    kafka.topics.fill(topic, numbers(4), partition=0)
    source = reading(kafka, topic).set_group_id(group).build()
    job = ServerSourceJob(source, parallelism=2).until(4, is_checkpoint=False)
    assert committed(kafka, group, topic, 2) == [-1001, -1001]
    job.epoch()
    job.close()
    assert committed(kafka, group, topic, 2) == [4, 0]


def test_bounded_source_commits_the_offsets_where_it_ended(kafka):
    topic, group = kafka.topics.new(), f"group-{uuid.uuid4().hex[:8]}"
    kafka.topics.fill(topic, numbers(4))
    all_of(reading(kafka, topic).set_group_id(group))
    assert committed(kafka, group, topic) == [4]


def test_group_is_left_alone_if_asked_to(kafka):
    topic, group = kafka.topics.new(), f"group-{uuid.uuid4().hex[:8]}"
    kafka.topics.fill(topic, numbers(4))
    all_of(reading(kafka, topic).set_group_id(group).set_property("commit.offsets.on.checkpoint", "false"))
    assert committed(kafka, group, topic) == [-1001]


# --- event time ------------------------------------------------------------------------------------------------------


def test_each_partition_has_watermarks_of_its_own(kafka):
    topic = kafka.topics.new(partitions=2)
    kafka.topics.fill(topic, numbers(3, 100), 0, timestamp_of=int)
    kafka.topics.fill(topic, numbers(3, 200), 1, timestamp_of=int)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))
    job = ServerSourceJob(reading(kafka, topic).build(), strategy=strategy).until(6)
    assert job.watermarks[0][-1] == 101  # The slower partition's.
    kafka.topics.fill(topic, ["300"], 0, timestamp_of=int)
    job.until(7)
    assert job.watermarks[0][-1] == 201
    job.close()


# --- metrics, other ways to build it ---------------------------------------------------------------------------------


def test_metrics_report_offsets_and_what_is_left(kafka):
    topic = kafka.topics.new()
    kafka.topics.fill(topic, numbers(10))
    job = ServerSourceJob(reading(kafka, topic).build(), settings=SMALL_EPOCHS).until(4)
    metrics = {name.rpartition(".")[2]: metric for name, metric in job.subtasks[0].context.metric_group.metrics()}
    read = len(job.values)
    assert (metrics["currentOffset"].get_value(), metrics["pendingRecords"].get_value()) == (read - 1, 10 - read)
    job.close()


def test_streams_of_a_cluster_are_its_topics(kafka):
    topic = kafka.topics.new()
    kafka.topics.fill(topic, ["a"])
    service = SingleClusterTopicMetadataService("cluster", {"bootstrap.servers": kafka.bootstrap_servers})
    builder = DynamicKafkaSource.builder().set_kafka_metadata_service(service).set_bounded(LATEST)
    builder.set_value_only_deserializer(SimpleStringSchema())
    assert ServerSourceJob(builder.set_stream_ids({topic}).build()).to_the_end().values == ["a"]


# --- alignment -------------------------------------------------------------------------------------------------------


def test_partition_that_is_far_ahead_waits_for_the_other(kafka):
    topic = kafka.topics.new(partitions=2)
    ahead, behind = [str(1000 * number) for number in range(1, 40)], numbers(60, 1)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    aligned = strategy.with_watermark_alignment("group", Duration.of_seconds(5), Duration.of_millis(10))
    job = ServerSourceJob(reading(kafka, topic).build(), strategy=aligned, settings=SMALL_EPOCHS)
    for partition, values in enumerate((ahead, behind)):
        kafka.topics.fill(topic, values[:1], partition, timestamp_of=int)
    job.until(2)  # Nobody waits before both have a watermark.
    for partition, values in enumerate((ahead, behind)):
        kafka.topics.fill(topic, values[1:], partition, timestamp_of=int)
    job.until(40)
    assert max(map(int, job.values)) <= 5000 + 60 + 2 * 3 * 1000  # An epoch's records may be beyond the limit.
    kafka.topics.fill(topic, ["100000"], 1, timestamp_of=int)
    job.until(100)
    assert sorted(job.values) == sorted([*ahead, *behind, "100000"])
    job.close()
