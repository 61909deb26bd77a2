"""The Kafka source in a subtask: reads its partitions with one consumer."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.common.exceptions import ConnectorError
from penstock.datastream.connectors.bad_records import BadRecord, BadRecordHandler
from penstock.datastream.connectors.kafka.deserialization import KafkaConsumerRecord
from penstock.datastream.connectors.kafka.enumerator import KafkaSplit
from penstock.datastream.connectors.kafka.offsets import KafkaOffsetResetStrategy, KafkaTopicPartition
from penstock.datastream.connectors.kafka.settings import (
    CLIENT_ID_PREFIX,
    GROUP_ID,
    client_error,
    client_settings,
    kafka_client,
    made_client,
)
from penstock.datastream.connectors.source_v2 import InputStatus, ReaderOutput, SourceReader, SourceReaderContext

if TYPE_CHECKING:
    from penstock.datastream.connectors.kafka.source import KafkaSource

R = TypeVar("R")

_USER = "KafkaSource"
_MOST_AT_ONCE = 4096
_PATIENCE_S = 0.05
"""How long to wait for records that Kafka has and that are on their way."""
_FETCH_PAUSE_MS = 20
_RESETS = {
    KafkaOffsetResetStrategy.EARLIEST: "earliest",
    KafkaOffsetResetStrategy.LATEST: "latest",
    KafkaOffsetResetStrategy.NONE: "error",
}

_log = logging.getLogger(__name__)


class _Partition:
    """A split that is being read."""

    def __init__(self, split: KafkaSplit) -> None:
        self.split = split
        self.offset = split.offset
        self.is_at_end = False
        """True if Kafka had nothing more when it was asked last."""

    @property
    def has_ended(self) -> bool:
        return self.split.stop is not None and self.offset >= self.split.stop


class KafkaReader(SourceReader[Any, KafkaSplit]):
    """Reads partitions from the offsets in their splits on. Checkpoints hold the offsets."""

    def __init__(self, source: KafkaSource, context: SourceReaderContext) -> None:
        self._library = kafka_client(_USER)
        self._schema = source.record_schema
        self._of_value = self._schema.of_value()
        self._of_values = self._schema.of_values()
        self._fails_on_bad = source.bad_records.kind == "fail"
        self._bad_records = BadRecordHandler(source.bad_records, context)
        self._consumer = made_client(self._library.Consumer, self._settings(source, context), _USER)
        self._partitions: dict[KafkaTopicPartition, _Partition] = {}
        self._topics: set[str] = set()
        """Of all partitions that were ever read."""
        self._ended: list[_Partition] = []
        """Partitions that are read to their end, until the output knows of it."""
        self._paused: set[KafkaTopicPartition] = set()
        self._has_all = False
        self._got_something = False
        self._metrics = context.metric_group().add_group("KafkaSourceReader")
        context.metric_group().gauge("pendingRecords", self._pending_records)

    def _settings(self, source: KafkaSource, context: SourceReaderContext) -> dict[str, Any]:
        defaults = {
            "isolation.level": "read_uncommitted",  # Java's default, which Flink keeps.
            "enable.auto.commit": "false",
            # A partition of which the client holds enough is looked at again after this time. Its own default is a
            # second, in which a reader that is faster than expected has nothing to do.
            "fetch.queue.backoff.ms": str(_FETCH_PAUSE_MS),
            GROUP_ID: "penstock",  # The client wants one even if it does not use it.
        }
        prefix = source.properties.get(CLIENT_ID_PREFIX)
        if prefix is not None:
            defaults["client.id"] = f"{prefix}-{context.get_index_of_subtask()}"
        reset = _RESETS[source.starting_offsets.reset_strategy]
        fixed = {"auto.offset.reset": reset, "enable.partition.eof": True}
        return {**defaults, **client_settings(source.properties), **fixed}

    # --- splits ------------------------------------------------------------------------------------------------------

    def add_splits(self, splits: list[KafkaSplit]) -> None:
        for split in splits:
            self._topics.add(split.partition.topic)
            partition = _Partition(split)
            if partition.has_ended:
                self._ended.append(partition)
            else:
                self._partitions[split.partition] = partition
                self._metrics_of(split.partition).gauge("currentOffset", lambda at=partition: at.offset - 1)
        places = [self._place(at, partition.offset) for at, partition in self._partitions.items()]
        self._asked(lambda: self._consumer.assign(places), "the partitions cannot be read")
        self._pause(self._paused)

    def pause_or_resume_splits(self, splits_to_pause: list[str], splits_to_resume: list[str]) -> None:
        by_id = {partition.split.split_id(): at for at, partition in self._partitions.items()}
        resumed = [by_id[split_id] for split_id in splits_to_resume if split_id in by_id]
        if resumed:
            places = [self._place(at) for at in resumed]
            self._asked(lambda: self._consumer.resume(places), "partitions cannot be resumed")
        self._paused = self._paused.difference(resumed)
        self._pause({by_id[split_id] for split_id in splits_to_pause if split_id in by_id})

    def _pause(self, partitions: set[KafkaTopicPartition]) -> None:
        if partitions:
            places = [self._place(at) for at in partitions]
            self._asked(lambda: self._consumer.pause(places), "partitions cannot be paused")
            self._paused = self._paused | partitions

    def notify_no_more_splits(self) -> None:
        self._has_all = True

    def snapshot_state(self, checkpoint_id: int) -> list[KafkaSplit]:
        return [partition.split.at(partition.offset) for partition in self._partitions.values()]

    def close(self) -> None:
        self._consumer.close()

    # --- reading -----------------------------------------------------------------------------------------------------

    def poll_next(self, output: ReaderOutput) -> InputStatus:
        self._got_something = False
        if self._partitions:
            self._take(self._messages(min(_MOST_AT_ONCE, output.room())), output)
        for partition in self._ended:
            output.release_output_for_split(partition.split.split_id())
        self._ended.clear()
        return self._status()

    def _status(self) -> InputStatus:
        if not self._partitions:
            return InputStatus.END_OF_INPUT if self._has_all else InputStatus.NOTHING_AVAILABLE
        has_more = self._got_something and self._is_behind()
        return InputStatus.MORE_AVAILABLE if has_more else InputStatus.NOTHING_AVAILABLE

    def _is_behind(self) -> bool:
        return any(not partition.is_at_end for at, partition in self._partitions.items() if at not in self._paused)

    def _messages(self, most: int) -> list[Any]:
        """What the client has fetched; if there is nothing, waits a little for what is on its way."""
        found: list[Any] = self._asked(lambda: self._consumer.consume(most, 0), "nothing can be read")
        if not found and self._is_behind():
            first = self._asked(lambda: self._consumer.poll(_PATIENCE_S), "nothing can be read")
            if first is not None:
                found = [first]
                if most > 1:
                    found += self._asked(lambda: self._consumer.consume(most - 1, 0), "nothing can be read")
        self._got_something = bool(found)
        return found

    def _take(self, messages: list[Any], output: ReaderOutput) -> None:
        ends = [message for message in messages if message.error() is not None]
        if ends:
            messages = [message for message in messages if message.error() is None]
        for at, found in self._by_partition(messages):
            partition = self._partitions.get(at)
            if partition is not None:  # Otherwise it has ended, and these are beyond its end.
                self._emit(partition, found, output)
        for message in ends:
            self._take_end(message)
        for partition in [each for each in self._partitions.values() if each.has_ended]:
            self._end(partition)

    def _by_partition(self, messages: list[Any]) -> Iterable[tuple[KafkaTopicPartition, list[Any]]]:
        if len(set(map(self._library.Message.partition, messages))) == len(self._topics) == 1:  # As in most readers.
            return [(KafkaTopicPartition(messages[0].topic(), messages[0].partition()), messages)]
        found: defaultdict[tuple[str, int], list[Any]] = defaultdict(list)
        for message in messages:
            found[message.topic(), message.partition()].append(message)
        return [(KafkaTopicPartition(*place), there) for place, there in found.items()]

    def _emit(self, partition: _Partition, messages: list[Any], output: ReaderOutput) -> None:
        partition.is_at_end = False
        stop = partition.split.stop
        partition.offset = messages[-1].offset() + 1
        if stop is not None and partition.offset > stop:
            partition.offset = stop
            messages = [message for message in messages if message.offset() < stop]
        elements, used = self._elements(messages, output)
        if elements:
            timestamps = self._timestamps(used)
            output.create_output_for_split(partition.split.split_id()).collect_batch(elements, timestamps)

    def _timestamps(self, messages: list[Any]) -> list[int | None]:
        timestamps = [timestamp for _, timestamp in map(self._library.Message.timestamp, messages)]
        if min(timestamps) >= 0:
            return timestamps
        return [None if timestamp < 0 else timestamp for timestamp in timestamps]

    def _elements(self, messages: list[Any], output: ReaderOutput) -> tuple[list[Any], list[Any]]:
        """The elements in the messages, and which messages they are from: those that the schema skips are left out."""
        if self._of_values is None:
            return self._elements_one_by_one(messages, output)
        values = list(map(self._library.Message.value, messages))
        if not all(values):  # Some are empty, or missing.
            messages = [message for message, value in zip(messages, values, strict=True) if value is not None]
            values = [value for value in values if value is not None]
        return self._of_values(values), messages

    def _elements_one_by_one(self, messages: list[Any], output: ReaderOutput) -> tuple[list[Any], list[Any]]:
        elements, used = [], []
        of_value, deserialize_record = self._of_value, self._schema.deserialize_record
        for message in messages:
            try:
                if of_value is None:
                    element = deserialize_record(_record(message))
                else:
                    value = message.value()
                    element = None if value is None else of_value(value)
            except Exception as failure:  # Whatever a schema raises makes the record a bad one.
                self._take_bad(message, failure, output)
                continue
            if element is not None:
                elements.append(element)
                used.append(message)
        return elements, used

    def _take_bad(self, message: Any, failure: Exception, output: ReaderOutput) -> None:
        place = f"the record at offset {message.offset()} of {message.topic()}-{message.partition()}"
        reason = f"{type(failure).__name__}: {failure}"
        if self._fails_on_bad:
            raise ConnectorError(
                f"{_USER}: {type(self._schema).__name__} cannot read {place}: {reason}; set_bad_records("
                f"BadRecords.skip()) leaves such records out, BadRecords.to_side_output(tag) keeps them apart"
            ) from failure
        self._bad_records.take(BadRecord(message.value() or b"", reason, place), output)

    def _take_end(self, message: Any) -> None:
        """The end of a partition as of now, behind marks of transactions too; anything else is an error."""
        error = message.error()
        if error.code() != self._library.KafkaError._PARTITION_EOF:
            where = "" if message.topic() is None else f"{message.topic()}-{message.partition()} "
            raise client_error(_USER, f"{where}cannot be read", error)
        partition = self._partitions.get(KafkaTopicPartition(message.topic(), message.partition()))
        if partition is not None and message.offset() >= partition.offset:
            partition.offset = message.offset()
            partition.is_at_end = True

    def _end(self, partition: _Partition) -> None:
        at = partition.split.partition
        del self._partitions[at]
        self._ended.append(partition)
        self._asked(lambda: self._consumer.pause([self._place(at)]), "a partition cannot be paused")

    # --- what the client is asked ------------------------------------------------------------------------------------

    def _place(self, at: KafkaTopicPartition, *offset: int) -> Any:
        return self._library.TopicPartition(at.topic, at.partition, *offset)

    def _asked(self, ask: Callable[[], R], what: str) -> R:
        try:
            return ask()
        except self._library.KafkaException as failure:
            raise client_error(_USER, what, failure) from failure

    def _metrics_of(self, at: KafkaTopicPartition) -> Any:
        return self._metrics.add_group("topic", at.topic).add_group("partition", str(at.partition))

    def _pending_records(self) -> int:
        """How many records Kafka has that are not read yet, as far as the client knows."""
        pending = 0
        for at, partition in self._partitions.items():
            known = self._consumer.get_watermark_offsets(self._place(at), cached=True)
            if known is not None:
                pending += max(known[1] - partition.offset, 0)
        return pending


class CommittingKafkaReader(KafkaReader):
    """Commits the offsets of complete checkpoints to the consumer group, where other programs can see them.

    A restart takes the offsets from the checkpoint, so a failed commit is only counted and logged.
    """

    def __init__(self, source: KafkaSource, context: SourceReaderContext) -> None:
        self._last: dict[KafkaTopicPartition, int] = {}
        """Offsets of partitions that are read to their end."""
        self._by_checkpoint: dict[int, dict[KafkaTopicPartition, int]] = {}
        self._committed: dict[KafkaTopicPartition, int] = {}
        super().__init__(source, context)
        self._succeeded = self._metrics.counter("commitsSucceeded")
        self._failed = self._metrics.counter("commitsFailed")

    def _settings(self, source: KafkaSource, context: SourceReaderContext) -> dict[str, Any]:
        return {**super()._settings(source, context), "on_commit": self._on_commit}

    def _end(self, partition: _Partition) -> None:
        super()._end(partition)
        self._last[partition.split.partition] = partition.offset

    def snapshot_state(self, checkpoint_id: int) -> list[KafkaSplit]:
        now = {at: partition.offset for at, partition in self._partitions.items()}
        self._by_checkpoint[checkpoint_id] = {**self._last, **now}
        return super().snapshot_state(checkpoint_id)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        complete = [each for each in sorted(self._by_checkpoint) if each <= checkpoint_id]
        offsets = {at: offset for each in complete for at, offset in self._by_checkpoint.pop(each).items()}
        new = {at: offset for at, offset in offsets.items() if self._committed.get(at) != offset}
        if new:
            self._commit(new)

    def _commit(self, offsets: dict[KafkaTopicPartition, int]) -> None:
        places = [self._place(at, offset) for at, offset in offsets.items()]
        try:
            self._consumer.commit(offsets=places, asynchronous=True)
        except self._library.KafkaException as failure:
            self._on_commit(failure.args[0], places)
        else:
            self._committed.update(offsets)

    def _on_commit(self, error: Any, places: list[Any]) -> None:
        """Called by the client while it is asked for messages."""
        errors = [each.error for each in places if each.error is not None]
        error = error or next(iter(errors), None)
        if error is None:
            self._succeeded.inc()
        else:
            self._failed.inc()
            _log.warning("%s", client_error(_USER, "the group's offsets were not committed", error))


def _record(message: Any) -> KafkaConsumerRecord:
    _, timestamp = message.timestamp()
    return KafkaConsumerRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        None if timestamp < 0 else timestamp,
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )
