from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from datetime import datetime, timezone

import pytest

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.serialization import BulkWriterFactory, Encoder, SimpleStringSchema
from penstock.common.time import Duration
from penstock.common.typeinfo import Types
from penstock.datastream.connectors import DeliveryGuarantee, FileSink, FileSource, NumberSequenceSource, StreamFormat
from penstock.datastream.connectors.base import Sink, Source
from penstock.datastream.connectors.cassandra import CassandraSink, ConsistencyLevel
from penstock.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactStrategy,
    OutputFileConfig,
    RollingPolicy,
    StreamingFileSink,
)
from penstock.datastream.connectors.file_system.bucketing import PartFileInfo
from penstock.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from penstock.datastream.connectors.kafka import (
    FlinkKafkaConsumer,
    FlinkKafkaProducer,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecord,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
    KafkaTopicSelector,
    Semantic,
)
from penstock.datastream.connectors.pulsar import PulsarSource, StartCursor
from penstock.datastream.formats.parquet import ParquetBulkWriters
from penstock.datastream.functions import SinkFunction, SourceFunction

SERVERS = {"bootstrap.servers": "host:9092"}


def kafka_source():
    builder = KafkaSource.builder().set_bootstrap_servers("host:9092")
    return builder.set_value_only_deserializer(SimpleStringSchema())


def kafka_schema():
    builder = KafkaRecordSerializationSchema.builder()
    return builder.set_value_serialization_schema(SimpleStringSchema())


def test_kafka_source_keeps_what_it_was_told():
    partition = KafkaTopicPartition("t", 0)
    source = (
        kafka_source()
        .set_topics("a", "b")
        .set_group_id("g")
        .set_client_id_prefix("p")
        .set_properties({"k": "v"})
        .set_starting_offsets(KafkaOffsetsInitializer.offsets({partition: 5}, KafkaOffsetResetStrategy.LATEST))
        .set_bounded(KafkaOffsetsInitializer.latest())
        .build()
    )
    assert source.subscription == {"a", "b"} and source.is_bounded
    assert source.starting_offsets.partition_offsets == {partition: 5}
    assert source.starting_offsets.reset_strategy is KafkaOffsetResetStrategy.LATEST
    assert source.properties == {**SERVERS, "group.id": "g", "client.id.prefix": "p", "k": "v"}
    assert pickle.loads(pickle.dumps(source)).subscription == source.subscription


def test_kafka_source_starts_at_the_earliest_offsets_and_does_not_end():
    source = kafka_source().set_topic_pattern("t.*").build()
    assert (source.starting_offsets, source.is_bounded) == (KafkaOffsetsInitializer.earliest(), False)
    stops = kafka_source().set_partitions({KafkaTopicPartition("t", 1)}).set_unbounded(KafkaOffsetsInitializer.latest())
    assert not stops.build().is_bounded and stops.build().stopping_offsets == KafkaOffsetsInitializer.latest()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KafkaSource.builder().build(), r"servers are missing; call set_bootstrap_servers"),
        (lambda: kafka_source().build(), r"nothing to read; call set_topics"),
        (lambda: kafka_source().set_topics(), r"one or more topic names"),
        (lambda: kafka_source().set_topics("a").set_topic_pattern("b"), r"topic pattern cannot be set because topics"),
        (lambda: kafka_source().set_topic_pattern("("), r"'\(' is not a regular expression"),
        (
            lambda: KafkaSource.builder().set_bootstrap_servers("h").set_topics("a").build(),
            r"no deserializer; call set_value_only_deserializer",
        ),
        (
            lambda: (
                kafka_source().set_topics("a").set_starting_offsets(KafkaOffsetsInitializer.committed_offsets()).build()
            ),
            r"committed offsets belong to a consumer group; call set_group_id",
        ),
        (lambda: KafkaOffsetsInitializer.timestamp(-1), r"must not be negative, got -1"),
        (lambda: kafka_schema().build(), r"no topic; call set_topic"),
        (lambda: KafkaRecordSerializationSchema.builder().set_topic("t").build(), r"no schema for the value"),
        (lambda: kafka_schema().set_topic("t").set_topic("u"), r"the topic is set already"),
        (lambda: kafka_schema().set_topic_selector("t"), r"topic_selector must be a KafkaTopicSelector or a callable"),
        (lambda: KafkaSink.builder().build(), r"servers are missing"),
        (lambda: KafkaSink.builder().set_bootstrap_servers("h").build(), r"no record serializer"),
        (
            lambda: (
                KafkaSink.builder()
                .set_bootstrap_servers("h")
                .set_record_serializer(kafka_schema().set_topic("t").build())
                .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .build()
            ),
            r"EXACTLY_ONCE needs transactions; call set_transactional_id_prefix",
        ),
    ],
)
def test_kafka_says_what_is_missing_or_wrong(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_kafka_records_have_topic_key_and_value():
    class ByLength(KafkaTopicSelector):
        def apply(self, data):
            return f"length-{len(data)}"

    fixed = kafka_schema().set_topic("t").set_key_serialization_schema(SimpleStringSchema()).build()
    assert fixed.to_record("ab") == KafkaRecord("t", b"ab", b"ab")
    assert kafka_schema().set_topic_selector(ByLength()).build().to_record("ab") == KafkaRecord("length-2", None, b"ab")
    assert kafka_schema().set_topic_selector(lambda v: v.upper()).build().to_record("ab").topic == "AB"


def test_kafka_sink_is_at_least_once_unless_told_otherwise():
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers("host:9092")
        .set_property("acks", "all")
        .set_record_serializer(kafka_schema().set_topic("t").build())
        .build()
    )
    assert sink.delivery_guarantee is DeliveryGuarantee.AT_LEAST_ONCE and sink.get_transformer() is None
    assert sink.properties == {**SERVERS, "acks": "all"}


def test_old_kafka_names_become_the_new_source_and_sink():
    with pytest.warns(DeprecationWarning, match="use KafkaSource"):
        consumer = FlinkKafkaConsumer("t", SimpleStringSchema(), {**SERVERS, "group.id": "g"})
    assert isinstance(consumer, SourceFunction) and consumer.get_produced_type() == Types.STRING()
    source = consumer.to_source()
    assert source.starting_offsets == KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.LATEST)
    assert consumer.set_start_from_earliest().to_source().starting_offsets == KafkaOffsetsInitializer.earliest()
    producer = FlinkKafkaProducer("t", SimpleStringSchema(), SERVERS, semantic=Semantic.EXACTLY_ONCE)
    assert isinstance(producer, SinkFunction)
    assert producer.to_sink().delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE
    with pytest.raises(UnsupportedFeatureError, match=r"FlinkKafkaProducer writes no single element"):
        producer.invoke("a", None)


def test_file_source_is_bounded_unless_it_looks_for_new_files():
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "/in/a", "/in/b")
    source = builder.build()
    assert source.paths == ("/in/a", "/in/b") and source.is_bounded
    watching = builder.monitor_continuously(Duration.of_seconds(5)).build()
    assert (watching.discovery_interval_ms, watching.is_bounded) == (5000, False)
    assert builder.process_static_file_set().build() == source == pickle.loads(pickle.dumps(source))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FileSource.for_record_stream_format(StreamFormat.text_line_format()), "give one or more paths"),
        (lambda: FileSource.for_record_stream_format("text", "/in"), "the format must be a StreamFormat, got 'text'"),
        (lambda: StreamFormat.text_line_format("utf-99"), "unknown character set 'utf-99'"),
        (lambda: FileSink.for_row_format("", Encoder.simple_string_encoder()), "base_path must be a folder"),
        (lambda: FileSink.for_row_format("/out", str), "encoder must be an Encoder"),
        (lambda: FileCompactStrategy.builder().build(), "nothing says when to compact"),
        (lambda: RollingPolicy.default_rolling_policy(part_size=0), "part_size must be positive, got 0"),
        (lambda: BucketAssigner.date_time_bucket_assigner("yyyy-QQ"), "'QQ' is not known"),
        (lambda: BucketAssigner.date_time_bucket_assigner(timezone_id="Mars/Base"), "unknown time zone 'Mars/Base'"),
        (lambda: NumberSequenceSource(2, 1), "start must not be after end, got 2 to 1"),
    ],
)
def test_files_and_numbers_say_what_is_wrong(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_file_sink_has_flinks_defaults_and_keeps_what_it_was_told():
    builder = FileSink.for_row_format("/out", Encoder.simple_string_encoder())
    options = builder.build().options
    assert options.rolling_policy == RollingPolicy.default_rolling_policy(128 * 1024 * 1024, 60_000, 60_000)
    assert options.bucket_assigner == BucketAssigner.date_time_bucket_assigner()
    assert (options.bucket_check_interval_ms, options.output_file_config) == (60_000, OutputFileConfig("part", ""))
    names = OutputFileConfig.builder().with_part_prefix("p").with_part_suffix(".txt").build()
    told = (
        builder.with_output_file_config(names)
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_bucket_check_interval(5)
        .disable_compact()
        .build()
        .options
    )
    assert (told.output_file_config.get_part_suffix(), told.bucket_check_interval_ms) == (".txt", 5)
    stream = io.BytesIO()
    told.encoder.encode("line", stream)
    assert stream.getvalue() == b"line\n"


def test_file_sink_refuses_what_it_cannot_write():
    with pytest.raises(UnsupportedFeatureError, match=r"BulkWriterFactory has no create\(stream\)"):
        FileSink.for_bulk_format("/out", BulkWriterFactory())
    bulk = FileSink.for_bulk_format("/out", ParquetBulkWriters.for_row_type(Types.ROW([Types.INT()])))
    with pytest.raises(ValueError, match="a bulk format can only roll on checkpoints"):
        bulk.with_rolling_policy(RollingPolicy.default_rolling_policy())


def test_relative_path_of_a_file_sink_is_below_the_programs_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    encoder = Encoder.simple_string_encoder()
    assert FileSink.for_row_format("out", encoder).build().options.base_path == str(tmp_path / "out")
    assert FileSink.for_row_format("s3://b/out", encoder).build().options.base_path == "s3://b/out"


def test_old_file_sink_becomes_the_new_one():
    builder = StreamingFileSink.for_row_format("/out", Encoder.simple_string_encoder())
    with pytest.warns(DeprecationWarning, match="use FileSink"):
        old = builder.build()
    assert isinstance(old.to_sink(), FileSink) and old.to_sink().options.base_path == "/out"


class At(BucketAssigner.Context):  # type: ignore[valid-type,misc]
    def __init__(self, now_ms):
        self.now_ms = now_ms

    def current_processing_time(self):
        return self.now_ms

    def current_watermark(self):
        return 0

    def timestamp(self):
        return None


def test_bucket_is_the_hour_of_writing():
    now = At(int(datetime(2024, 3, 1, 17, 5, tzinfo=timezone.utc).timestamp() * 1000))
    assert BucketAssigner.date_time_bucket_assigner(timezone_id="UTC").get_bucket_id("x", now) == "2024-03-01--17"
    berlin = BucketAssigner.date_time_bucket_assigner("'day='yyyyMMdd'/h'HH", "Europe/Berlin")
    assert berlin.get_bucket_id("x", now) == "day=20240301/h18"
    assert BucketAssigner.base_path_bucket_assigner().get_bucket_id("x", now) == ""


@dataclass
class Part(PartFileInfo):
    size: int = 0
    updated_ms: int = 0

    def get_bucket_id(self):
        return ""

    def get_creation_time(self):
        return 0

    def get_size(self):
        return self.size

    def get_last_update_time(self):
        return self.updated_ms


def test_default_policy_rolls_by_size_age_and_idleness():
    policy = RollingPolicy.default_rolling_policy(100, 1000, 500)
    assert policy.should_roll_on_event(Part(101), "x") and not policy.should_roll_on_event(Part(100), "x")
    assert policy.should_roll_on_processing_time(Part(updated_ms=999), 1000)
    assert policy.should_roll_on_processing_time(Part(updated_ms=0), 500)
    assert not policy.should_roll_on_processing_time(Part(updated_ms=400), 800)
    assert RollingPolicy.on_checkpoint_rolling_policy().should_roll_on_checkpoint(Part(0))


def test_jdbc_sink_checks_statement_against_type():
    connection = (
        JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
        .with_url("jdbc:postgresql://db/shop")
        .with_user_name("me")
        .with_password("secret")
        .build()
    )
    row = Types.ROW([Types.INT(), Types.STRING()])
    sink = JdbcSink.sink("insert into t values (?, ?, 'why?')", row, connection)
    assert isinstance(sink, SinkFunction) and isinstance(sink.to_sink(), Sink)
    assert (sink.execution_options.get_batch_size(), sink.execution_options.get_max_retries()) == (5000, 3)
    assert "secret" not in repr(sink) and pickle.loads(pickle.dumps(sink)) == sink
    options = JdbcExecutionOptions.builder().with_batch_size(7).with_batch_interval_ms(8).with_max_retries(9).build()
    assert (options.get_batch_size(), options.get_batch_interval_ms(), options.get_max_retries()) == (7, 8, 9)
    with pytest.raises(ValueError, match=r"the statement has 1 '\?' but type_info has 2 fields"):
        JdbcSink.sink("insert into t values (?)", row, connection)
    with pytest.raises(ValueError, match=r"URL is missing; call with_url"):
        JdbcConnectionOptions.JdbcConnectionOptionsBuilder().build()


@pytest.mark.parametrize(
    "use",
    [
        lambda: PulsarSource(),
        lambda: StartCursor.earliest(),
        lambda: CassandraSink.add_sink(None),
        lambda: ConsistencyLevel.ALL,
    ],
)
def test_connectors_that_cannot_run_say_what_to_use_instead(use):
    with pytest.raises(UnsupportedFeatureError, match=r"is not available on Spark; .*SinkFunction"):
        use()


def test_java_sources_and_sinks_are_refused():
    with pytest.raises(UnsupportedFeatureError, match=r"a Java source cannot run here; use env.from_source"):
        Source("org.example.Source")
    with pytest.raises(UnsupportedFeatureError, match=r"a Java sink cannot run here; use stream.sink_to"):
        Sink("org.example.Sink")


@pytest.mark.parametrize(("reset", "kind"), [("earliest", "earliest"), ("latest", "latest"), (None, "latest")])
def test_an_old_consumer_without_a_group_starts_where_offsets_are_reset_to(reset, kind):
    properties = {**SERVERS, **({} if reset is None else {"auto.offset.reset": reset})}
    with pytest.warns(DeprecationWarning):
        consumer = FlinkKafkaConsumer("t", SimpleStringSchema(), properties)
    source = consumer.set_commit_offsets_on_checkpoints(True).to_source()
    assert source.starting_offsets.kind == kind and not source.commits_offsets
