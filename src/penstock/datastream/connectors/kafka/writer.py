"""The Kafka sink in a subtask: plain producers, and producers whose transactions the driver commits."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.common.exceptions import ConnectorError
from penstock.common.own_copies import own_copy
from penstock.common.serialization import serializer_of_many
from penstock.datastream.connectors.kafka.records import KafkaRecord
from penstock.datastream.connectors.kafka.settings import (
    TRANSACTION_TIMEOUT,
    client_error,
    kafka_client,
    made_client,
    producer_settings,
)
from penstock.datastream.connectors.kafka.transactions import KafkaTransaction, KafkaTransactions
from penstock.datastream.connectors.sink_v2 import (
    BatchSinkWriter,
    CommittingSinkWriter,
    StatefulSinkWriter,
    WriterInitContext,
)
from penstock.datastream.connectors.support.refused_records import RefusedRecords

if TYPE_CHECKING:
    from penstock.datastream.connectors.kafka.sink import KafkaSink

_USER = "KafkaSink"
_POLL_EVERY = 1024
"""Records between two checks of what was delivered."""
_PAUSE_S = 0.005
# The client's own values for "not given".
_ANY_PARTITION = -1
_NOW = 0
_PARTITIONS_ARE_KNOWN_FOR_S = 300.0
_CONNECT_TIMEOUT_S = 5.0
_BEGIN_TIMEOUT_S = 60.0
_ABORT_TIMEOUT_S = 5.0
_STATISTICS_INTERVAL_MS = 100
"""The client computes all of them each time: every 20 ms would take 8 % of a core for each subtask."""

_log = logging.getLogger(__name__)


class _Deliveries:
    """Keeps the first failed delivery, or logs them all.

    Apart from the producer: every record on its way refers to this object, and would otherwise keep the client that
    sends it, with its threads, as long as the process lives.
    """

    def __init__(self, logs_failures_only: bool) -> None:
        self._logs_failures_only = logs_failures_only
        self._failure: ConnectorError | None = None

    def delivered(self, error: Any, message: Any) -> None:
        if error is None:
            return
        failure = _not_written(message.topic(), error)
        if self._logs_failures_only:
            _log.error("%s", failure)
        else:
            self._failure = self._failure or failure

    def check(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure


class RecordProducer:
    """A producer of Kafka's client. A failed delivery is raised by the next call, or only logged."""

    def __init__(self, settings: Mapping[str, Any], logs_failures_only: bool = False) -> None:
        self._library = kafka_client(_USER)
        # Like Java's client: the same key goes to the same partition, no matter which client writes it.
        defaults = {"partitioner": "murmur2_random", "delivery.report.only.error": True}
        self._producer = made_client(self._library.Producer, {**defaults, **settings}, _USER)
        self._deliveries = _Deliveries(logs_failures_only)
        self._until_poll = _POLL_EVERY
        self._partitions: dict[str, tuple[float, list[int]]] = {}

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        timestamp: int | None = None,
        partition: int | None = None,
        headers: tuple[tuple[str, bytes | None], ...] = (),
    ) -> None:
        partition = _ANY_PARTITION if partition is None else partition
        time_ms = _NOW if timestamp is None or timestamp < 0 else timestamp
        delivered = self._deliveries.delivered
        self._enqueue((topic, value, key, partition, delivered, None, time_ms, list(headers) or None))
        self._until_poll -= 1
        if self._until_poll <= 0:
            self._look()

    def send_all(
        self,
        topic: str,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None,
        timestamps: Sequence[int | None] | None,
    ) -> None:
        """As `send`, for many records of a topic."""
        produce, delivered = self._producer.produce, self._deliveries.delivered
        keys_or_none = itertools.repeat(None) if keys is None else keys
        times: Iterable[int] = itertools.repeat(_NOW)
        if timestamps is not None:
            times = [_NOW if timestamp is None or timestamp < 0 else timestamp for timestamp in timestamps]
        for value, key, time_ms in zip(values, keys_or_none, times):  # noqa: B905 - repeats have no length
            # By position: names would take as much time as all the rest of the call.
            try:
                produce(topic, value, key, _ANY_PARTITION, delivered, None, time_ms)
            except (BufferError, self._library.KafkaException):
                self._enqueue((topic, value, key, _ANY_PARTITION, delivered, None, time_ms))
        self._look()

    def _enqueue(self, arguments: tuple[Any, ...]) -> None:
        """Hand a record to the client. If its queue is full, wait until some records are on their way."""
        while True:
            try:
                self._producer.produce(*arguments)
                return
            except BufferError:
                # Not for longer: the client reports failures only, so that nothing ends this when there is room.
                self._producer.poll(_PAUSE_S)
                self._deliveries.check()
            except self._library.KafkaException as failure:
                raise _not_written(arguments[0], failure) from failure

    def _look(self) -> None:
        """See what the client has to report."""
        self._until_poll = _POLL_EVERY
        self._producer.poll(0)
        self._deliveries.check()

    def flush(self) -> None:
        """Wait until Kafka has everything; raises if it has not taken something in `delivery.timeout.ms`."""
        self._producer.flush()
        self._deliveries.check()

    def partitions(self, topic: str) -> list[int]:
        """The numbers of a topic's partitions, as of some minutes ago."""
        known_until, partitions = self._partitions.get(topic, (0.0, []))
        if time.monotonic() >= known_until:
            partitions = self._ask_for_partitions(topic)
            self._partitions[topic] = (time.monotonic() + _PARTITIONS_ARE_KNOWN_FOR_S, partitions)
        return partitions

    def _ask_for_partitions(self, topic: str) -> list[int]:
        try:
            metadata = self._producer.list_topics(topic, timeout=_BEGIN_TIMEOUT_S).topics[topic]
        except self._library.KafkaException as failure:
            raise client_error(_USER, f"the partitions of topic {topic!r} are not known", failure) from failure
        if metadata.error is not None:
            raise client_error(_USER, f"the partitions of topic {topic!r} are not known", metadata.error)
        return sorted(metadata.partitions)


class _ProducerName:
    """What the brokers call a producer. The client reports it in its statistics only."""

    def __init__(self) -> None:
        self.producer_id = self.epoch = -1

    def read(self, statistics: str) -> None:
        if self.producer_id < 0:
            names = json.loads(statistics)["eos"]
            self.producer_id, self.epoch = names["producer_id"], names["producer_epoch"]


class TransactionalProducer(RecordProducer):
    """A producer for one transaction, which begins when it is made.

    :param topic: What it will write to, if that is known.
    """

    def __init__(self, settings: Mapping[str, Any], transactional_id: str, topic: str | None = None) -> None:
        self._id = transactional_id
        # Apart from this object: a client that referred to it would keep both, with the client's threads, until Python
        # next collects cycles. There is a producer for every checkpoint.
        self._name = _ProducerName()
        own = {"transactional.id": transactional_id, "statistics.interval.ms": _STATISTICS_INTERVAL_MS}
        super().__init__({**settings, **own, "stats_cb": self._name.read})
        if topic is not None:
            self._connect(topic)
        self._begin()

    def _connect(self, topic: str) -> None:
        """Wait until a broker has answered, here about the topic.

        A client that is to begin a transaction before it is connected looks for a broker again after half a second.
        Having learned the broker's name from a first answer, it is not connected for a moment: so there is a second.
        """
        with contextlib.suppress(self._library.KafkaException):  # Brokers that do not answer are reported by `_begin`.
            self._producer.list_topics(topic, timeout=_CONNECT_TIMEOUT_S)
            self._producer.list_topics(topic, timeout=_CONNECT_TIMEOUT_S)

    def _begin(self) -> None:
        """Also aborts what an earlier producer left open under this id, and locks that producer out."""
        try:
            self._producer.init_transactions(_BEGIN_TIMEOUT_S)
            self._producer.begin_transaction()
        except self._library.KafkaException as failure:
            refusal = client_error(_USER, f"transaction {self._id!r} cannot begin", failure)
            raise ConnectorError(
                f"{refusal}; if it says that the timeout is invalid, set {TRANSACTION_TIMEOUT} to no more than the "
                f"brokers' transaction.max.timeout.ms"
            ) from failure

    def prepared(self) -> KafkaTransaction:
        """The transaction, for its committer. All records must be flushed; the producer cannot be used after this."""
        self.learn_name()
        return KafkaTransaction(self._id, self._name.producer_id, self._name.epoch)

    def learn_name(self) -> None:
        """Wait until the client has reported what the brokers call this producer."""
        until = time.monotonic() + _BEGIN_TIMEOUT_S
        while self._name.producer_id < 0:
            self._producer.poll(0.01)
            if time.monotonic() > until:
                raise ConnectorError(f"{_USER}: the client does not report the producer id of transaction {self._id!r}")

    def abort(self) -> None:
        try:
            self._producer.abort_transaction(_ABORT_TIMEOUT_S)
        except self._library.KafkaException as failure:
            # The next start of the job does it, or else the coordinator when the transaction times out.
            _log.warning("%s", client_error(_USER, f"transaction {self._id!r} stays open for now", failure))


class ProducerAhead:
    """Makes the producer of the next transaction in the background: that takes several round trips.

    What the brokers call it is known later, when the client has reported it.
    """

    def __init__(self, settings: Mapping[str, Any], transactional_id: str, topic: str | None) -> None:
        self._made: Future[TransactionalProducer] = Future()
        arguments = (settings, transactional_id, topic)
        # A daemon: a program must be able to end even if no broker answers.
        self._thread = threading.Thread(target=self._make, args=arguments, name="kafka-producer-ahead", daemon=True)
        self._thread.start()

    def _make(self, settings: Mapping[str, Any], transactional_id: str, topic: str | None) -> None:
        try:
            self._made.set_result(TransactionalProducer(settings, transactional_id, topic))
        except BaseException as failure:  # Raised where the producer is wanted.
            self._made.set_exception(failure)

    def get(self) -> TransactionalProducer:
        return self._made.result()

    def give_up(self) -> None:
        """Wait a little until it is made: a name that is claimed late would lock out the next writer."""
        self._thread.join(_ABORT_TIMEOUT_S)


@dataclass(frozen=True)
class _Serialized:
    """Keys and values of some elements, as bytes to write."""

    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None
    places: Sequence[int] = ()
    """The positions of these elements in the batch, if they are not all of it."""


class KafkaWriter(CommittingSinkWriter[Any, KafkaTransaction], BatchSinkWriter[Any]):
    """Sends elements; with the guarantee AT_LEAST_ONCE all have arrived before a checkpoint is complete."""

    def __init__(self, sink: KafkaSink, context: WriterInitContext) -> None:
        self._schema = sink.record_serializer
        self._partitioner = sink.record_serializer.partitioner
        self._writes_timestamps = sink.writes_timestamps
        self._settings = producer_settings(sink.properties)
        self._flushes = sink.flushes_on_checkpoint
        self._logs_failures_only = sink.logs_failures_only
        self._refused = RefusedRecords(sink.on_refused, context.metric_group(), _USER)
        task = context.get_task_info()
        if self._partitioner is not None:
            # Subtasks may run in one process, and each opens its own partitioner.
            self._partitioner = own_copy(self._partitioner)
            self._partitioner.open(task.index_of_this_subtask, task.number_of_parallel_subtasks)
        self._producer: RecordProducer | None = None

    def write_batch(self, elements: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        if not self._writes_timestamps:
            timestamps = None
        topic = self._schema.only_topic()
        if topic is not None and self._partitioner is None:
            self._write_plain(topic, elements, timestamps)
        else:
            times = [None] * len(elements) if timestamps is None else timestamps
            for element, timestamp in zip(elements, times, strict=True):
                self._write_record(element, timestamp)

    def _write_plain(self, topic: str, elements: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Send elements that have only a key and a value, without making records of them."""
        serialized = self._serialized_at_once(elements) or self._serialized(elements)
        if len(serialized.values) < len(elements) and timestamps is not None:
            timestamps = [timestamps[at] for at in serialized.places]
        if serialized.values:  # A transaction begins with the first element that is written.
            (self._producer or self._open()).send_all(topic, serialized.values, serialized.keys, timestamps)

    def _serialized_at_once(self, elements: Sequence[Any]) -> _Serialized | None:
        """None if the schemas cannot do that, or refuse an element."""
        key_schema = self._schema.key_schema
        values_of = serializer_of_many(self._schema.value_schema)
        keys_of = None if key_schema is None else serializer_of_many(key_schema)
        if values_of is None or (key_schema is not None and keys_of is None):
            return None
        try:
            return _Serialized(values_of(elements), None if keys_of is None else keys_of(elements))
        except Exception:  # Which one, and why, is found out by asking for each.
            return None

    def _serialized(self, elements: Sequence[Any]) -> _Serialized:
        """What the schemas make of each element that they do not refuse."""
        value_of = self._schema.value_schema.serialize
        key_of = None if self._schema.key_schema is None else self._schema.key_schema.serialize
        values, keys, places = [], [], []
        for at, element in enumerate(elements):
            try:
                key = None if key_of is None else key_of(element)
                value = value_of(element)
            except Exception as reason:  # Whatever a schema raises is its way to refuse.
                self._refused.add(element, reason)
                continue
            values.append(value)
            keys.append(key)
            places.append(at)
        return _Serialized(values, keys, places)

    def _write_record(self, element: Any, timestamp: int | None) -> None:
        try:
            record = self._schema.to_record(element)
        except Exception as reason:  # As above.
            self._refused.add(element, reason)
            return
        producer = self._producer or self._open()
        partition = record.partition
        if partition is None and self._partitioner is not None:
            partition = self._choose_partition(element, record, producer.partitions(record.topic))
        timestamp = timestamp if record.timestamp is None else record.timestamp
        producer.send(record.topic, record.value, record.key, timestamp, partition, record.headers)

    def flush(self, end_of_input: bool) -> None:
        if self._producer is not None and (self._flushes or end_of_input):
            self._producer.flush()

    def prepare_commit(self) -> list[KafkaTransaction]:
        return []

    def close(self) -> None:
        """What was not flushed is lost, as it belongs to no checkpoint."""
        self._producer = None

    def _open(self) -> RecordProducer:
        self._producer = self._made()
        return self._producer

    def _made(self) -> RecordProducer:
        return RecordProducer(self._settings, self._logs_failures_only)

    def _choose_partition(self, element: Any, record: KafkaRecord, partitions: list[int]) -> int:
        assert self._partitioner is not None
        chosen = self._partitioner.partition(element, record.key, record.value, record.topic, partitions)
        if chosen not in partitions:
            raise ValueError(
                f"{_USER}: {type(self._partitioner).__name__} chose partition {chosen!r} of topic {record.topic!r}, "
                f"which has {partitions}"
            )
        return chosen


@dataclass(frozen=True)
class KafkaWriterState:
    """Whose transactions a restarted job may find open."""

    transactional_id_prefix: str
    subtask: int


class TransactionalKafkaWriter(KafkaWriter, StatefulSinkWriter[Any, KafkaWriterState]):
    """Sends elements in a transaction for each checkpoint, begun with its first element.

    Transactions are named `<prefix>-<subtask>-<number of the last checkpoint + 1>`. A name is used again only after a
    restart from the same checkpoint, when the former transaction of that name is void.
    """

    def __init__(self, sink: KafkaSink, context: WriterInitContext, states: Iterable[KafkaWriterState] = ()) -> None:
        super().__init__(sink, context)
        assert sink.transactional_id_prefix is not None
        self._prefix = sink.transactional_id_prefix
        self._settings = {TRANSACTION_TIMEOUT: str(sink.transaction_timeout_ms), **self._settings}
        self._subtask = context.get_task_info().index_of_this_subtask
        self._parallelism = context.get_task_info().number_of_parallel_subtasks
        self._next_number = (context.get_restored_checkpoint_id() or 0) + 1
        self._former = {*states, KafkaWriterState(self._prefix, self._subtask)}
        self._own: set[str] = set()
        """This writer's transactions, until it has looked for leftovers again."""
        self._checks_again = True
        self._ahead: ProducerAhead | None = None
        self._was_used = self._is_last = False
        self._abort_leftovers({self._name_of(each) for each in self._former})
        self._make_ahead()

    def flush(self, end_of_input: bool) -> None:
        self._is_last = self._is_last or end_of_input
        super().flush(end_of_input)

    def prepare_commit(self) -> list[KafkaTransaction]:
        self._was_used = self._producer is not None
        if self._producer is None:
            return []
        assert isinstance(self._producer, TransactionalProducer)
        prepared = self._producer.prepared()
        self._producer = None  # Its connections end; the transaction stays open.
        return [prepared]

    def snapshot_state(self, checkpoint_id: int) -> list[KafkaWriterState]:
        if self._checks_again:
            # Requests of a killed process may have reached Kafka after the first check.
            self._checks_again = False
            self._abort_leftovers(set())
        self._next_number = checkpoint_id + 1
        if self._was_used and not self._is_last:  # More elements will come.
            self._make_ahead()
        return [KafkaWriterState(self._prefix, self._subtask)]

    def close(self) -> None:
        ahead, self._ahead = self._ahead, None
        producer, self._producer = self._producer, None
        if isinstance(producer, TransactionalProducer):
            producer.abort()
        if ahead is not None:
            ahead.give_up()

    def _made(self) -> TransactionalProducer:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            return ahead.get()
        return TransactionalProducer(self._settings, self._next_name(), self._schema.only_topic())

    def _make_ahead(self) -> None:
        self._ahead = ProducerAhead(self._settings, self._next_name(), self._schema.only_topic())

    def _next_name(self) -> str:
        name = self._name_of(KafkaWriterState(self._prefix, self._subtask))
        if self._checks_again:
            self._own.add(name)
        return name

    def _name_of(self, writer: KafkaWriterState) -> str:
        return f"{writer.transactional_id_prefix}-{writer.subtask}-{self._next_number}"

    def _abort_leftovers(self, names: set[str]) -> None:
        """Abort what a killed process left open: readers of committed records would wait for it.

        What belongs to the restored checkpoint was committed before this writer was made.

        :param names: Transactions that the former writers have begun, if any.
        """
        transactions = KafkaTransactions(self._settings, f"{self._prefix}-{self._subtask}")
        try:
            for name in names.union(transactions.open_ids(self._is_leftover)):
                transactions.abort(name)
        finally:
            transactions.close()

    def _is_leftover(self, name: str) -> bool:
        match = re.fullmatch(r"(.*)-(\d+)-(\d+)", name)
        if match is None or name in self._own:
            return False
        prefix, subtask = match[1], int(match[2])
        if prefix != self._prefix:  # Nothing is written under a former prefix from now on.
            return any(prefix == writer.transactional_id_prefix for writer in self._former)
        return subtask % self._parallelism == self._subtask


def _not_written(topic: str, failure: Any) -> ConnectorError:
    return client_error(_USER, f"a record for topic {topic!r} was not written", failure)
