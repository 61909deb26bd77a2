"""Topics of the test's Kafka: make them, write to them, and read what a careful reader sees."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.datastream.connectors.kafka.transactions import KafkaTransactions


@dataclass(frozen=True)
class Found:
    """A record as it is in a topic."""

    value: str | None
    key: str | None
    partition: int
    timestamp: int
    headers: tuple[tuple[str, bytes], ...]


class Topics:
    def __init__(self, bootstrap_servers):
        self._servers = {"bootstrap.servers": bootstrap_servers}

    def new(self, partitions=1, name=None):
        """Make a topic; returns its name."""
        name = name or f"topic-{uuid.uuid4().hex[:8]}"
        client = AdminClient(self._servers)  # Must live until it has answered.
        for made in client.create_topics([NewTopic(name, partitions, 1)]).values():
            made.result()
        return name

    def fill(self, topic, values, partition=None, timestamp_of=None):
        """Write strings, or (key, value) pairs, and wait until Kafka has them."""
        producer = Producer(self._servers)
        for value in values:
            key, value = value if isinstance(value, tuple) else (None, value)
            place = {} if partition is None else {"partition": partition}
            time = {} if timestamp_of is None else {"timestamp": timestamp_of(value)}
            producer.produce(topic, value, key, **place, **time)
            producer.poll(0)
        assert producer.flush(30) == 0

    def records(self, topic, isolation="read_committed"):
        """All records of a topic, partition by partition."""
        settings = {
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
        consumer = Consumer({**self._servers, **settings, "isolation.level": isolation})
        try:
            partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
            consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
            return list(_until_all_ended(consumer, len(partitions)))
        finally:
            consumer.close()

    def values(self, topic, isolation="read_committed"):
        return [record.value for record in self.records(topic, isolation)]

    def open_transactions(self, prefix):
        transactions = KafkaTransactions(self._servers, "test")
        try:
            return sorted(transactions.open_ids(lambda each: each.startswith(prefix)))
        finally:
            transactions.close()

    def abort(self, transactional_id):
        transactions = KafkaTransactions(self._servers, "test")
        transactions.abort(transactional_id)
        transactions.close()


def _until_all_ended(consumer, waiting):
    while waiting:
        message = consumer.poll(30)
        assert message is not None, "Kafka gives nothing, not even the end of a partition"
        if message.error() is None:
            yield _found(message)
        else:
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            waiting -= 1


def _found(message):
    key, value = message.key(), message.value()
    return Found(
        None if value is None else value.decode(),
        None if key is None else key.decode(),
        message.partition(),
        message.timestamp()[1],
        tuple(message.headers() or ()),
    )
