"""Objects of users within a sink: every subtask has its own, also where several run in one process."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from sink_job import SinkJob, visible_files

from penstock.common.serialization import Encoder, SimpleStringSchema
from penstock.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy
from penstock.datastream.connectors.kafka import KafkaPartitioner, KafkaRecordSerializationSchema, KafkaSink
from penstock.metrics import MetricGroup


class OfThree(RollingPolicy):
    """Files of three elements; counts them itself."""

    count = 0

    def should_roll_on_checkpoint(self, part_file_state):
        return False

    def should_roll_on_event(self, part_file_state, element):
        self.count += 1
        return self.count % 3 == 0

    def should_roll_on_processing_time(self, part_file_state, current_time):
        return False


class Numbered(BucketAssigner):
    """A bucket for every two elements; counts them itself."""

    count = 0

    def get_bucket_id(self, element, context):
        self.count += 1
        return str((self.count - 1) // 2)


def test_every_subtask_has_its_own_rolling_policy(tmp_path):
    rows = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder()).with_rolling_policy(OfThree())
    sink = rows.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    SinkJob(sink, tmp_path, parallelism=2).write(12).end()
    files = sorted(content.split() for content in visible_files(tmp_path).values())
    assert files == [[b"0", b"2", b"4"], [b"1", b"3", b"5"], [b"6", b"8", b"10"], [b"7", b"9", b"11"]]


def test_every_subtask_has_its_own_bucket_assigner(tmp_path):
    rows = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
    SinkJob(rows.with_bucket_assigner(Numbered()).build(), tmp_path, parallelism=2).write(8).end()
    contents = sorted((path[0], content.split()) for path, content in visible_files(tmp_path).items())
    assert contents == [("0", [b"0", b"2"]), ("0", [b"1", b"3"]), ("1", [b"4", b"6"]), ("1", [b"5", b"7"])]


class OfSubtask(KafkaPartitioner):
    def open(self, parallel_instance_id, parallel_instances):
        self.subtask = parallel_instance_id

    def partition(self, record, key, value, target_topic, partitions):
        return partitions[self.subtask]


class Sent:
    """A producer that keeps where records would go."""

    def __init__(self):
        self.partitions_chosen = []

    def partitions(self, topic):
        return [0, 1, 2]

    def send(self, topic, value, key, timestamp, partition, headers):
        self.partitions_chosen.append(partition)


def test_every_subtask_opens_its_own_partitioner():
    pytest.importorskip("confluent_kafka")
    builder = KafkaRecordSerializationSchema.builder().set_topic("t").set_partitioner(OfSubtask())
    schema = builder.set_value_serialization_schema(SimpleStringSchema()).build()
    sink = KafkaSink.builder().set_bootstrap_servers("127.0.0.1:1").set_record_serializer(schema).build()
    tasks = [SimpleNamespace(index_of_this_subtask=number, number_of_parallel_subtasks=3) for number in range(3)]
    writers = []
    for task in tasks:
        context = SimpleNamespace(get_task_info=lambda task=task: task, metric_group=MetricGroup)
        writers.append(sink.create_writer(context))
    for writer in writers:
        writer._producer = Sent()
        writer.write_batch(["a", "b"], None)
    assert [writer._producer.partitions_chosen for writer in writers] == [[0, 0], [1, 1], [2, 2]]
