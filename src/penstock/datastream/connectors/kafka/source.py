"""Reading from Kafka."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.common.redaction import redacted_repr
from penstock.common.serialization import DeserializationSchema
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.connectors.bad_records import BadRecords
from penstock.datastream.connectors.base import DescribedSourceFunction
from penstock.datastream.connectors.kafka.deserialization import KafkaRecordDeserializationSchema
from penstock.datastream.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)
from penstock.datastream.connectors.kafka.settings import (
    BOOTSTRAP_SERVERS,
    CLIENT_ID_PREFIX,
    COMMIT_ON_CHECKPOINT,
    DISCOVERY_INTERVAL,
    GROUP_ID,
)
from penstock.datastream.connectors.source_v2 import (
    Boundedness,
    Source,
    SourceReaderContext,
    SplitEnumeratorContext,
)

if TYPE_CHECKING:  # What runs is imported when a job with Kafka runs.
    from penstock.datastream.connectors.kafka.enumerator import KafkaEnumerator, KafkaEnumeratorState, KafkaSplit
    from penstock.datastream.connectors.kafka.reader import KafkaReader

DEFAULT_DISCOVERY_INTERVAL_MS = 5 * 60 * 1000
"""Flink's default."""

Subscription = frozenset[str] | str | frozenset[KafkaTopicPartition]


class KafkaSourceBuilder:
    """Collects what to read from Kafka. Servers, topics and a deserializer are needed.

    `KafkaSource` has an example.
    """

    def __init__(self) -> None:
        self._properties: dict[str, str] = {}
        self._subscription: tuple[str, Subscription] | None = None
        self._starting_offsets = KafkaOffsetsInitializer.earliest()
        self._stopping_offsets: KafkaOffsetsInitializer | None = None
        self._is_bounded = False
        self._deserializer: DeserializationSchema | None = None
        self._bad_records = BadRecords.fail()

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSourceBuilder:
        """Some servers of the Kafka cluster, such as `host1:9092,host2:9092`."""
        return self.set_property(BOOTSTRAP_SERVERS, bootstrap_servers)

    def set_group_id(self, group_id: str) -> KafkaSourceBuilder:
        """The consumer group that offsets are committed to; none are, unless set."""
        return self.set_property(GROUP_ID, group_id)

    def set_topics(self, *topics: str) -> KafkaSourceBuilder:
        """Read all partitions of these topics."""
        if not topics or not all(isinstance(topic, str) and topic for topic in topics):
            raise ValueError(f"KafkaSource: set_topics takes one or more topic names, got {topics!r}")
        return self._subscribe("topics", frozenset(topics))

    def set_topic_pattern(self, topic_pattern: str) -> KafkaSourceBuilder:
        """Read all topics whose names match the regular expression."""
        try:
            re.compile(topic_pattern)
        except re.error as exc:
            raise ValueError(f"KafkaSource: {topic_pattern!r} is not a regular expression: {exc}") from exc
        return self._subscribe("topic pattern", topic_pattern)

    def set_partitions(self, partitions: Iterable[KafkaTopicPartition]) -> KafkaSourceBuilder:
        """Read these partitions only."""
        return self._subscribe("partitions", frozenset(partitions))

    def set_starting_offsets(self, starting_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Begin here unless the job starts from a checkpoint; the earliest offsets, unless set.

        Partitions that appear later are read from their beginning.
        """
        self._starting_offsets = starting_offsets_initializer
        return self

    def set_unbounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Stop at these offsets but run as a stream, without looking for new partitions unless an interval is set."""
        self._stopping_offsets, self._is_bounded = stopping_offsets_initializer, False
        return self

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Stop at these offsets and count as a bounded source."""
        self._stopping_offsets, self._is_bounded = stopping_offsets_initializer, True
        return self

    def set_value_only_deserializer(self, deserialization_schema: DeserializationSchema) -> KafkaSourceBuilder:
        """Turn the values of Kafka's records into elements; keys are dropped, and records without a value skipped."""
        self._deserializer = deserialization_schema
        return self

    def set_deserializer(self, record_deserializer: KafkaRecordDeserializationSchema) -> KafkaSourceBuilder:
        """Turn whole records, with key, headers and offset, into elements."""
        if not isinstance(record_deserializer, KafkaRecordDeserializationSchema):
            raise TypeError(
                f"KafkaSource: set_deserializer takes a KafkaRecordDeserializationSchema, got {record_deserializer!r}; "
                f"schemas for values go to set_value_only_deserializer"
            )
        self._deserializer = record_deserializer
        return self

    def set_bad_records(self, bad_records: BadRecords) -> KafkaSourceBuilder:
        """What to do with records that the deserializer cannot read; they fail the job, unless set."""
        self._bad_records = bad_records
        return self

    def set_client_id_prefix(self, prefix: str) -> KafkaSourceBuilder:
        """What the names of the consumers begin with; the number of the subtask follows."""
        return self.set_property(CLIENT_ID_PREFIX, prefix)

    def set_property(self, key: str, value: str) -> KafkaSourceBuilder:
        """Pass a setting on to the Kafka consumer."""
        self._properties[key] = value
        return self

    def set_properties(self, props: Mapping[str, str]) -> KafkaSourceBuilder:
        """Pass settings on to the Kafka consumer."""
        self._properties.update(props)
        return self

    def build(self) -> KafkaSource:
        """The source; ValueError if something is missing."""
        if not self._properties.get(BOOTSTRAP_SERVERS):
            raise ValueError("KafkaSource: Kafka's servers are missing; call set_bootstrap_servers('host:9092')")
        if self._subscription is None:
            raise ValueError(
                "KafkaSource: nothing to read; call set_topics(...), set_topic_pattern(...) or set_partitions(...)"
            )
        if self._deserializer is None:
            raise ValueError(
                "KafkaSource: no deserializer; call set_value_only_deserializer(SimpleStringSchema()) or another schema"
            )
        self._check_group()
        _, what = self._subscription
        return KafkaSource(
            what,
            self._deserializer,
            self._starting_offsets,
            self._stopping_offsets,
            self._is_bounded,
            self._properties,
            self._bad_records,
        )

    def _check_group(self) -> None:
        commits = self._properties.get(COMMIT_ON_CHECKPOINT, "").lower() == "true"
        if GROUP_ID not in self._properties and (commits or self._starting_offsets.kind == "committed"):
            raise ValueError("KafkaSource: committed offsets belong to a consumer group; call set_group_id(...)")

    def _subscribe(self, how: str, what: Subscription) -> KafkaSourceBuilder:
        if self._subscription is not None:
            raise ValueError(
                f"KafkaSource: {how} cannot be set because {self._subscription[0]} {self._subscription[1]!r} are set "
                "already; choose one of set_topics, set_topic_pattern and set_partitions"
            )
        self._subscription = (how, what)
        return self


@dataclass(frozen=True)
class KafkaSource(Source[Any, Any, Any]):
    """Records of Kafka topics, each of them once; made by `KafkaSource.builder()`. Needs `penstock[kafka]`.

    `subscription` is a set of topics, a regular expression, or a set of partitions. Every partition has watermarks of
    its own; records have Kafka's timestamps, unless the watermark strategy assigns others.

    >>> from penstock.common import SimpleStringSchema
    >>> source = (
    ...     KafkaSource.builder()
    ...     .set_bootstrap_servers("localhost:9092")
    ...     .set_topics("orders")
    ...     .set_value_only_deserializer(SimpleStringSchema())
    ...     .build()
    ... )
    >>> source.is_bounded
    False
    """

    subscription: Subscription
    deserialization_schema: DeserializationSchema
    starting_offsets: KafkaOffsetsInitializer
    stopping_offsets: KafkaOffsetsInitializer | None
    has_end: bool
    properties: Mapping[str, str] = field(hash=False)
    bad_records: BadRecords = field(default_factory=BadRecords.fail)

    __repr__ = redacted_repr

    def __post_init__(self) -> None:
        object.__setattr__(self, "properties", dict(self.properties))
        if self.stopping_offsets is not None and self.stopping_offsets.kind == "earliest":
            raise ValueError("KafkaSource: nothing lies before the earliest offsets; stop at others")

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        """Begin to describe a source."""
        return KafkaSourceBuilder()

    @property
    def servers(self) -> str:
        """The servers that were given."""
        return self.properties[BOOTSTRAP_SERVERS]

    @property
    def record_schema(self) -> KafkaRecordDeserializationSchema:
        """The schema of whole records, also where only one for values was given."""
        schema = self.deserialization_schema
        if isinstance(schema, KafkaRecordDeserializationSchema):
            return schema
        return KafkaRecordDeserializationSchema.value_only(schema)

    @property
    def commits_offsets(self) -> bool:
        """True if offsets are committed to the group; by default they are, if a group is set."""
        return GROUP_ID in self.properties and self.properties.get(COMMIT_ON_CHECKPOINT, "true").lower() == "true"

    @property
    def discovery_interval_ms(self) -> int | None:
        """How often to look for new partitions; None to look once, as a source with an end does."""
        given = self.properties.get(DISCOVERY_INTERVAL)
        if self.has_end or (given is None and self.stopping_offsets is not None):
            return None
        interval_ms = DEFAULT_DISCOVERY_INTERVAL_MS if given is None else int(given)
        return interval_ms if interval_ms > 0 else None

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if self.has_end else Boundedness.CONTINUOUS_UNBOUNDED

    def get_produced_type(self) -> TypeInformation:
        return self.deserialization_schema.get_produced_type()

    def create_enumerator(self, context: SplitEnumeratorContext[KafkaSplit]) -> KafkaEnumerator:
        from penstock.datastream.connectors.kafka.enumerator import KafkaEnumerator, KafkaEnumeratorState

        return KafkaEnumerator(self, context, KafkaEnumeratorState())

    def restore_enumerator(
        self, context: SplitEnumeratorContext[KafkaSplit], checkpoint: KafkaEnumeratorState
    ) -> KafkaEnumerator:
        from penstock.datastream.connectors.kafka.enumerator import KafkaEnumerator

        return KafkaEnumerator(self, context, checkpoint)

    def create_reader(self, context: SourceReaderContext) -> KafkaReader:
        from penstock.datastream.connectors.kafka.reader import CommittingKafkaReader, KafkaReader

        return CommittingKafkaReader(self, context) if self.commits_offsets else KafkaReader(self, context)


class FlinkKafkaConsumerBase(DescribedSourceFunction):
    """The old Kafka source's settings.

    `KafkaSource` has an example of today's source.
    """

    def __init__(
        self, topics: str | list[str], deserialization_schema: DeserializationSchema, properties: Mapping[str, str]
    ) -> None:
        self._topics = [topics] if isinstance(topics, str) else list(topics)
        self._deserialization_schema = deserialization_schema
        self._properties = dict(properties)
        self._start = KafkaOffsetsInitializer.committed_offsets(self._reset_strategy())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._topics!r}, {self._deserialization_schema!r})"

    def set_commit_offsets_on_checkpoints(self, commit_on_checkpoints: bool) -> FlinkKafkaConsumerBase:
        """Write offsets back to Kafka when a checkpoint completes; recovery does not need them."""
        self._properties[COMMIT_ON_CHECKPOINT] = str(commit_on_checkpoints).lower()
        return self

    def set_start_from_earliest(self) -> FlinkKafkaConsumerBase:
        """Begin at the beginning of each partition."""
        return self._start_from(KafkaOffsetsInitializer.earliest())

    def set_start_from_latest(self) -> FlinkKafkaConsumerBase:
        """Begin at the end of each partition."""
        return self._start_from(KafkaOffsetsInitializer.latest())

    def set_start_from_timestamp(self, startup_offsets_timestamp: int) -> FlinkKafkaConsumerBase:
        """Begin at the first record at or after this time, in milliseconds."""
        return self._start_from(KafkaOffsetsInitializer.timestamp(startup_offsets_timestamp))

    def set_start_from_group_offsets(self) -> FlinkKafkaConsumerBase:
        """Begin at the consumer group's committed offsets; the default."""
        return self._start_from(KafkaOffsetsInitializer.committed_offsets(self._reset_strategy()))

    def disable_filter_restored_partitions_with_subscribed_topics(self) -> FlinkKafkaConsumerBase:
        """Accepted as in Flink; offsets are kept by topic, so partitions no longer subscribed are left out anyway."""
        return self

    def get_produced_type(self) -> TypeInformation:
        """The type of the elements."""
        return self._deserialization_schema.get_produced_type()

    def to_source(self) -> KafkaSource:
        properties, start = dict(self._properties), self._start
        if GROUP_ID not in properties:
            # As in Flink: without a group nothing was ever committed, and nothing can be.
            properties.pop(COMMIT_ON_CHECKPOINT, None)
            if start.kind == "committed":
                from_the_start = self._reset_strategy() is KafkaOffsetResetStrategy.EARLIEST
                start = KafkaOffsetsInitializer.earliest() if from_the_start else KafkaOffsetsInitializer.latest()
        builder = KafkaSource.builder().set_properties(properties).set_topics(*self._topics)
        return builder.set_starting_offsets(start).set_value_only_deserializer(self._deserialization_schema).build()

    def _start_from(self, start: KafkaOffsetsInitializer) -> FlinkKafkaConsumerBase:
        self._start = start
        return self

    def _reset_strategy(self) -> KafkaOffsetResetStrategy:
        return KafkaOffsetResetStrategy[self._properties.get("auto.offset.reset", "latest").upper()]


class FlinkKafkaConsumer(FlinkKafkaConsumerBase):
    """The old name of KafkaSource. Starts from the group's offsets by default."""

    def __init__(
        self, topics: str | list[str], deserialization_schema: DeserializationSchema, properties: Mapping[str, str]
    ) -> None:
        warnings.warn("FlinkKafkaConsumer is deprecated; use KafkaSource", DeprecationWarning, stacklevel=2)
        super().__init__(topics, deserialization_schema, properties)
