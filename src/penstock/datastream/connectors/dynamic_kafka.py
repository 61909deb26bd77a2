"""Kafka sources whose topics are called streams: for one cluster, which a metadata service names.

In Flink a metadata service may also move a stream from one cluster to another while the job runs; PyFlink has none that
does, and neither has Penstock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.redaction import redacted_settings
from penstock.common.serialization import DeserializationSchema
from penstock.datastream.connectors.bad_records import BadRecords
from penstock.datastream.connectors.kafka.deserialization import KafkaRecordDeserializationSchema
from penstock.datastream.connectors.kafka.offsets import KafkaOffsetsInitializer
from penstock.datastream.connectors.kafka.source import KafkaSource, KafkaSourceBuilder

__all__ = [
    "DynamicKafkaSource",
    "DynamicKafkaSourceBuilder",
    "KafkaMetadataService",
    "KafkaRecordDeserializationSchema",
    "KafkaStreamSetSubscriber",
    "KafkaStreamSubscriber",
    "SingleClusterTopicMetadataService",
    "StreamPatternSubscriber",
]


class KafkaMetadataService:
    """Knows which cluster a stream is in. There is one kind: `SingleClusterTopicMetadataService`.

    `DynamicKafkaSource` has an example.
    """

    def __init__(self, j_metadata_service: object = None) -> None:
        if j_metadata_service is not None:
            raise UnsupportedFeatureError(
                f"KafkaMetadataService({j_metadata_service!r}): a Java service cannot run here; use "
                f"SingleClusterTopicMetadataService"
            )


class SingleClusterTopicMetadataService(KafkaMetadataService):
    """All streams are topics of one cluster, which these properties describe.

    `DynamicKafkaSource` has an example.
    """

    def __init__(self, kafka_cluster_id: str, properties: Mapping[str, str]) -> None:
        super().__init__()
        self.kafka_cluster_id = kafka_cluster_id
        self.properties = dict(properties)

    def __repr__(self) -> str:
        return f"SingleClusterTopicMetadataService({self.kafka_cluster_id!r}, {redacted_settings(self.properties)!r})"


class KafkaStreamSubscriber:
    """Chooses the streams: a `KafkaStreamSetSubscriber` or a `StreamPatternSubscriber`.

    `KafkaStreamSetSubscriber` has an example.
    """

    def __init__(self, j_kafka_stream_subscriber: object = None) -> None:
        if j_kafka_stream_subscriber is not None:
            raise UnsupportedFeatureError(
                f"KafkaStreamSubscriber({j_kafka_stream_subscriber!r}): a Java subscriber cannot run here; use "
                f"KafkaStreamSetSubscriber or StreamPatternSubscriber"
            )


class KafkaStreamSetSubscriber(KafkaStreamSubscriber):
    """Chooses streams by their ids.

    >>> KafkaStreamSetSubscriber({"orders", "payments"})
    KafkaStreamSetSubscriber(['orders', 'payments'])
    """

    def __init__(self, stream_ids: Iterable[str]) -> None:
        super().__init__()
        self.stream_ids = frozenset(stream_ids)

    def __repr__(self) -> str:
        return f"KafkaStreamSetSubscriber({sorted(self.stream_ids)!r})"


class StreamPatternSubscriber(KafkaStreamSubscriber):
    """Chooses all streams whose ids match a regular expression.

    >>> subscriber = StreamPatternSubscriber("orders-.*")
    """

    def __init__(self, stream_pattern: str) -> None:
        super().__init__()
        self.stream_pattern = stream_pattern

    def __repr__(self) -> str:
        return f"StreamPatternSubscriber({self.stream_pattern!r})"


class DynamicKafkaSource(KafkaSource):
    """A KafkaSource whose servers come from a metadata service; made by `DynamicKafkaSource.builder()`.

    >>> from penstock.common import SimpleStringSchema
    >>> service = SingleClusterTopicMetadataService("main", {"bootstrap.servers": "localhost:9092"})
    >>> source = (
    ...     DynamicKafkaSource.builder()
    ...     .set_stream_ids({"orders"})
    ...     .set_kafka_metadata_service(service)
    ...     .set_value_only_deserializer(SimpleStringSchema())
    ...     .build()
    ... )
    """

    @staticmethod
    def builder() -> DynamicKafkaSourceBuilder:  # type: ignore[override]  # PyFlink's has other methods
        """Begin to describe a source."""
        return DynamicKafkaSourceBuilder()


class DynamicKafkaSourceBuilder:
    """Collects what to read. Streams, a metadata service and a deserializer are needed.

    `DynamicKafkaSource` has an example.
    """

    def __init__(self) -> None:
        self._builder = KafkaSourceBuilder()
        self._properties: dict[str, str] = {}
        self._service: SingleClusterTopicMetadataService | None = None

    def set_stream_ids(self, stream_ids: Iterable[str]) -> DynamicKafkaSourceBuilder:
        """Read the streams with these ids."""
        return self.set_kafka_stream_subscriber(KafkaStreamSetSubscriber(stream_ids))

    def set_stream_pattern(self, stream_pattern: str) -> DynamicKafkaSourceBuilder:
        """Read all streams whose ids match the regular expression."""
        return self.set_kafka_stream_subscriber(StreamPatternSubscriber(stream_pattern))

    def set_kafka_stream_subscriber(self, kafka_stream_subscriber: KafkaStreamSubscriber) -> DynamicKafkaSourceBuilder:
        """Read the streams that a subscriber chooses."""
        match kafka_stream_subscriber:
            case KafkaStreamSetSubscriber():
                self._builder.set_topics(*sorted(kafka_stream_subscriber.stream_ids))
            case StreamPatternSubscriber():
                self._builder.set_topic_pattern(kafka_stream_subscriber.stream_pattern)
            case _:
                raise TypeError(
                    f"DynamicKafkaSource: a KafkaStreamSetSubscriber or a StreamPatternSubscriber is needed, "
                    f"got {kafka_stream_subscriber!r}"
                )
        return self

    def set_kafka_metadata_service(self, kafka_metadata_service: KafkaMetadataService) -> DynamicKafkaSourceBuilder:
        """Choose the service that knows the cluster of the streams."""
        if not isinstance(kafka_metadata_service, SingleClusterTopicMetadataService):
            raise TypeError(
                f"DynamicKafkaSource: a SingleClusterTopicMetadataService is needed, got {kafka_metadata_service!r}"
            )
        self._service = kafka_metadata_service
        return self

    def set_deserializer(self, deserializer: KafkaRecordDeserializationSchema) -> DynamicKafkaSourceBuilder:
        """Turn whole records, with key, headers and offset, into elements."""
        self._builder.set_deserializer(deserializer)
        return self

    def set_value_only_deserializer(self, deserialization_schema: DeserializationSchema) -> DynamicKafkaSourceBuilder:
        """Turn the values of Kafka's records into elements; keys are dropped, and records without a value skipped."""
        self._builder.set_value_only_deserializer(deserialization_schema)
        return self

    def set_bad_records(self, bad_records: BadRecords) -> DynamicKafkaSourceBuilder:
        """What to do with records that the deserializer cannot read; they fail the job, unless set."""
        self._builder.set_bad_records(bad_records)
        return self

    def set_starting_offsets(self, starting_offsets_initializer: KafkaOffsetsInitializer) -> DynamicKafkaSourceBuilder:
        """Begin here unless the job starts from a checkpoint; the earliest offsets, unless set."""
        self._builder.set_starting_offsets(starting_offsets_initializer)
        return self

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> DynamicKafkaSourceBuilder:
        """Stop at these offsets and count as a bounded source."""
        self._builder.set_bounded(stopping_offsets_initializer)
        return self

    def set_properties(self, props: Mapping[str, str]) -> DynamicKafkaSourceBuilder:
        """Pass settings on to the Kafka consumer; they override those of the metadata service."""
        self._properties.update(props)
        return self

    def set_property(self, key: str, value: str) -> DynamicKafkaSourceBuilder:
        """Pass a setting on to the Kafka consumer."""
        return self.set_properties({key: value})

    def set_group_id(self, group_id: str) -> DynamicKafkaSourceBuilder:
        """The consumer group that offsets are committed to."""
        return self.set_property("group.id", group_id)

    def set_client_id_prefix(self, prefix: str) -> DynamicKafkaSourceBuilder:
        """What the names of the consumers begin with; the number of the subtask follows."""
        return self.set_property("client.id.prefix", prefix)

    def build(self) -> DynamicKafkaSource:
        """The source; ValueError if something is missing."""
        if self._service is None:
            raise ValueError(
                "DynamicKafkaSource: no metadata service; call set_kafka_metadata_service("
                "SingleClusterTopicMetadataService('cluster', {'bootstrap.servers': 'host:9092'}))"
            )
        built = self._builder.set_properties({**self._service.properties, **self._properties}).build()
        return DynamicKafkaSource(
            built.subscription,
            built.deserialization_schema,
            built.starting_offsets,
            built.stopping_offsets,
            built.has_end,
            built.properties,
            built.bad_records,
        )
