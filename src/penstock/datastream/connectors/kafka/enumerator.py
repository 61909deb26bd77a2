"""The Kafka source in the driver: finds partitions and deals them out."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from penstock.common.exceptions import ConnectorError
from penstock.datastream.connectors.kafka.offsets import KafkaCluster, KafkaOffsetsInitializer, KafkaTopicPartition
from penstock.datastream.connectors.source_v2 import SourceSplit, SplitEnumerator, SplitEnumeratorContext

if TYPE_CHECKING:
    from penstock.datastream.connectors.kafka.source import KafkaSource

_INTERNAL_TOPICS = {"__consumer_offsets", "__transaction_state", "__share_group_state"}
"""What brokers write for themselves. As in Flink, a pattern does not match these; they can be read by name."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class KafkaSplit(SourceSplit):
    """A partition, from the offset of the next record up to, and without, `stop`."""

    partition: KafkaTopicPartition
    offset: int
    stop: int | None = None

    def split_id(self) -> str:
        return f"{self.partition.topic}-{self.partition.partition}"

    @property
    def has_ended(self) -> bool:
        return self.stop is not None and self.offset >= self.stop

    def at(self, offset: int) -> KafkaSplit:
        return replace(self, offset=offset)


@dataclass(frozen=True)
class KafkaEnumeratorState:
    """What a checkpoint keeps of the enumerator."""

    known: frozenset[KafkaTopicPartition] = frozenset()
    unassigned: tuple[KafkaSplit, ...] = ()
    has_looked: bool = False


class KafkaEnumerator(SplitEnumerator[KafkaSplit, KafkaEnumeratorState]):
    """Looks for partitions once, or every `discovery_interval_ms`. Those found later are read from their beginning."""

    def __init__(
        self,
        source: KafkaSource,
        context: SplitEnumeratorContext[KafkaSplit],
        state: KafkaEnumeratorState,
        connect: Callable[[], KafkaCluster] | None = None,
    ) -> None:
        self._source = source
        self._context = context
        self._known = state.known
        """Replaced, never changed: the thread that looks for partitions reads it."""
        self._unassigned = list(state.unassigned)
        self._has_looked = state.has_looked
        self._connect = connect or (lambda: KafkaCluster(source.properties))
        self._cluster: KafkaCluster | None = None
        self._notified: set[int] = set()

    def start(self) -> None:
        period_ms = self._source.discovery_interval_ms
        if period_ms is not None:
            self._context.call_async(self._look, self._found, 0, period_ms)
        elif not self._has_looked:
            self._context.call_async(self._look, self._found)

    def _look(self) -> list[KafkaSplit]:
        """Called in a thread of its own."""
        known = self._known
        if self._cluster is None:
            self._cluster = self._connect()
        new = [each for each in self._wanted(self._cluster.partitions()) if each not in known]
        if not new:
            return []
        earliest = KafkaOffsetsInitializer.earliest()
        starts = self._cluster.offsets(earliest if self._has_looked else self._source.starting_offsets, new)
        stopping = self._source.stopping_offsets
        stops = {} if stopping is None else self._cluster.offsets(stopping, new)
        return [KafkaSplit(each, starts[each], stops.get(each)) for each in new]

    def _wanted(self, partitions: Iterable[KafkaTopicPartition]) -> list[KafkaTopicPartition]:
        there = sorted(partitions, key=lambda each: (each.topic, each.partition))
        subscription = self._source.subscription
        if isinstance(subscription, str):
            pattern = re.compile(subscription)
            return [each for each in there if pattern.fullmatch(each.topic) and each.topic not in _INTERNAL_TOPICS]
        topics = {each for each in subscription if isinstance(each, str)}
        partitions = {each for each in subscription if isinstance(each, KafkaTopicPartition)}
        missing = topics - {each.topic for each in there}
        missing |= {f"{each.topic}-{each.partition}" for each in partitions - set(there)}
        if missing:
            raise ConnectorError(
                f"KafkaSource: there is no {', '.join(sorted(missing))} at {self._source.servers}; create the topic "
                f"first, or allow this client to see it"
            )
        return [each for each in there if each.topic in topics or each in partitions]

    def _found(self, splits: Any, error: BaseException | None) -> None:
        if error is not None:
            if not self._has_looked:
                raise error
            _log.warning("KafkaSource: looking for new partitions failed and will be repeated: %s", error)
            return
        self._has_looked = True
        self._known |= {split.partition for split in splits}
        self._unassigned.extend(splits)
        self._deal()

    def _deal(self) -> None:
        readers = self._context.registered_readers()
        ready = [split for split in self._unassigned if self._owner(split) in readers]
        self._unassigned = [split for split in self._unassigned if self._owner(split) not in readers]
        for split in ready:
            self._context.assign_split(split, self._owner(split))
        if self._has_looked and self._source.discovery_interval_ms is None:
            for reader in sorted(readers - self._notified):
                self._notified.add(reader)
                self._context.signal_no_more_splits(reader)

    def _owner(self, split: KafkaSplit) -> int:
        """The reader of a split: partitions go round the readers, beginning with one that depends on the topic.

        This is Flink's rule, so that `print()` shows the same subtasks.
        """
        readers = self._context.current_parallelism()
        return (first_reader_of(split.partition.topic, readers) + split.partition.partition) % readers

    def handle_split_request(self, subtask_id: int, requester_hostname: str | None) -> None:
        """Does nothing: readers get what is found without asking."""

    def add_splits_back(self, splits: list[KafkaSplit], subtask_id: int) -> None:
        self._unassigned = [*splits, *self._unassigned]

    def add_reader(self, subtask_id: int) -> None:
        self._deal()

    def snapshot_state(self, checkpoint_id: int) -> KafkaEnumeratorState:
        return KafkaEnumeratorState(self._known, tuple(self._unassigned), self._has_looked)


def first_reader_of(topic: str, readers: int) -> int:
    """Where Flink's KafkaSourceEnumerator puts partition 0 of a topic: by Java's hash of the name, which is ASCII."""
    hashed = 0
    for letter in topic:
        hashed = (31 * hashed + ord(letter)) & 0xFFFFFFFF
    return ((hashed * 31) & 0x7FFFFFFF) % readers
