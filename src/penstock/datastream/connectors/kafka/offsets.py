"""Where reading Kafka's partitions begins and ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

from penstock.common.exceptions import ConnectorError
from penstock.common.optional_packages import optional_package
from penstock.datastream.connectors.kafka.settings import (
    GROUP_ID,
    client_error,
    client_settings,
    kafka_client,
    made_client,
)

_USER = "KafkaSource"
_TIMEOUT_S = 60.0
_ASKED_AGAIN_AFTER_S = 0.1
_NOT_READY = (
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION",
)
_CONSUMERS_SETTINGS = (
    "group.",
    "fetch.",
    "max.poll.",
    "max.partition.",
    "auto.offset.",
    "auto.commit.",
    "enable.auto.",
    "enable.partition.",
    "partition.assignment.",
    "isolation.",
    "queued.",
    "session.",
    "heartbeat.",
)
"""Prefixes of settings that an admin client does not take."""

Offsets = dict["KafkaTopicPartition", int]


@dataclass(frozen=True)
class KafkaTopicPartition:
    """One partition of a topic.

    >>> KafkaTopicPartition("orders", 0)
    KafkaTopicPartition(topic='orders', partition=0)
    """

    topic: str
    partition: int


class KafkaOffsetResetStrategy(Enum):
    """Where to begin if the wanted offset does not exist.

    `KafkaOffsetsInitializer` has an example.
    """

    LATEST = 0
    EARLIEST = 1
    NONE = 2
    """Fail."""


@dataclass(frozen=True)
class KafkaOffsetsInitializer:
    """Where reading partitions begins or ends.

    >>> KafkaOffsetsInitializer.timestamp(1_700_000_000_000).timestamp_ms
    1700000000000
    """

    kind: Literal["earliest", "latest", "committed", "timestamp", "offsets"]
    timestamp_ms: int | None = None
    partition_offsets: Mapping[KafkaTopicPartition, int] = field(default_factory=dict, hash=False)
    reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """The consumer group's committed offsets."""
        return KafkaOffsetsInitializer("committed", reset_strategy=offset_reset_strategy)

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """The first record at or after `timestamp` (milliseconds), the end if there is none."""
        if timestamp < 0:
            raise ValueError(f"KafkaOffsetsInitializer.timestamp: must not be negative, got {timestamp}")
        return KafkaOffsetsInitializer("timestamp", timestamp, reset_strategy=KafkaOffsetResetStrategy.LATEST)

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """The beginning of each partition."""
        return KafkaOffsetsInitializer("earliest", reset_strategy=KafkaOffsetResetStrategy.EARLIEST)

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """The end of each partition at the job's start."""
        return KafkaOffsetsInitializer("latest", reset_strategy=KafkaOffsetResetStrategy.LATEST)

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """An offset for each partition; others begin at their group's committed offset, or where the strategy says."""
        return KafkaOffsetsInitializer("offsets", partition_offsets=dict(offsets), reset_strategy=offset_reset_strategy)


class KafkaCluster:
    """Asks Kafka which partitions there are, and where they begin and end."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._library = kafka_client(_USER)
        self._admin = optional_package("confluent_kafka.admin", "kafka", _USER)
        self._group = properties.get(GROUP_ID)
        self._reads_committed = properties.get("isolation.level") == "read_committed"
        settings = client_settings(properties)
        settings = {name: value for name, value in settings.items() if not name.startswith(_CONSUMERS_SETTINGS)}
        self._client = made_client(self._admin.AdminClient, settings, _USER)

    def partitions(self) -> Iterator[KafkaTopicPartition]:
        """All partitions of all topics that this client may see."""
        with self._reporting("the topics cannot be listed"):
            topics = self._client.list_topics(timeout=_TIMEOUT_S).topics
        for name, topic in topics.items():
            if topic.error is None:
                yield from (KafkaTopicPartition(name, number) for number in topic.partitions)

    def offsets(self, initializer: KafkaOffsetsInitializer, partitions: Iterable[KafkaTopicPartition]) -> Offsets:
        """The offset that the initializer means for each partition, as of now."""
        wanted = list(partitions)
        match initializer.kind:
            case "earliest":
                return self._listed(wanted, self._admin.OffsetSpec.earliest())
            case "latest":
                return self._listed(wanted, self._admin.OffsetSpec.latest())
            case "timestamp":
                return self._at_time(wanted, initializer.timestamp_ms or 0)
        given = {each: initializer.partition_offsets[each] for each in wanted if each in initializer.partition_offsets}
        return {**self._committed([each for each in wanted if each not in given], initializer), **given}

    def _at_time(self, partitions: list[KafkaTopicPartition], timestamp_ms: int) -> Offsets:
        found = self._listed(partitions, self._admin.OffsetSpec.for_timestamp(timestamp_ms))
        later = [each for each in partitions if found[each] < 0]
        return {**found, **self._listed(later, self._admin.OffsetSpec.latest())}

    def _committed(self, partitions: list[KafkaTopicPartition], initializer: KafkaOffsetsInitializer) -> Offsets:
        found = self._group_offsets(partitions) if self._group is not None and partitions else {}
        missing = [each for each in partitions if found.get(each, -1) < 0]
        match initializer.reset_strategy:
            case KafkaOffsetResetStrategy.EARLIEST:
                return {**found, **self._listed(missing, self._admin.OffsetSpec.earliest())}
            case KafkaOffsetResetStrategy.LATEST:
                return {**found, **self._listed(missing, self._admin.OffsetSpec.latest())}
        if missing:
            raise ConnectorError(
                f"{_USER}: group {self._group!r} has no offsets for {_names(missing)}; give committed_offsets or "
                f"offsets a KafkaOffsetResetStrategy that says where to begin"
            )
        return found

    def _listed(self, partitions: list[KafkaTopicPartition], spec: Any) -> Offsets:
        if not partitions:
            return {}
        levels = self._library.IsolationLevel
        level = levels.READ_COMMITTED if self._reads_committed else levels.READ_UNCOMMITTED
        asked = {self._library.TopicPartition(each.topic, each.partition): spec for each in partitions}
        with self._reporting(f"the offsets of {_names(partitions)} are not known"):
            found = self._asked_until_answered(
                lambda: self._client.list_offsets(asked, isolation_level=level, request_timeout=_TIMEOUT_S)
            )
            return {_named(at): answer.offset for at, answer in found.items()}

    def _group_offsets(self, partitions: list[KafkaTopicPartition]) -> Offsets:
        asked = [self._library.TopicPartition(each.topic, each.partition) for each in partitions]
        request = self._library.ConsumerGroupTopicPartitions(self._group, asked)
        with self._reporting(f"the offsets of group {self._group!r} are not known"):
            [found] = self._asked_until_answered(
                lambda: self._client.list_consumer_group_offsets([request], request_timeout=_TIMEOUT_S)
            ).values()
            return {_named(at): at.offset for at in found.topic_partitions}

    def _asked_until_answered(self, ask: Callable[[], Mapping[Any, Any]]) -> dict[Any, Any]:
        """What brokers answer, by what they were asked.

        A broker that has just become a group's coordinator or a partition's leader reports for a while that it is not
        ready. Java's client repeats the question by itself; this one leaves that to its user.
        """
        passing = {getattr(self._library.KafkaError, name) for name in _NOT_READY}
        until = time.monotonic() + _TIMEOUT_S
        while True:
            try:
                return {asked: answer.result() for asked, answer in ask().items()}
            except self._library.KafkaException as failure:
                if failure.args[0].code() not in passing or time.monotonic() > until:
                    raise
                time.sleep(_ASKED_AGAIN_AFTER_S)

    @contextmanager
    def _reporting(self, what: str) -> Iterator[None]:
        try:
            yield
        except self._library.KafkaException as failure:
            raise client_error(_USER, what, failure) from failure


def _named(at: Any) -> KafkaTopicPartition:
    return KafkaTopicPartition(at.topic, at.partition)


def _names(partitions: Iterable[KafkaTopicPartition]) -> str:
    return ", ".join(f"{each.topic}-{each.partition}" for each in partitions)
