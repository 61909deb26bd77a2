"""Offsets of groups and partitions, asked of brokers that are not ready yet."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from penstock.common.exceptions import ConnectorError
from penstock.common.serialization import SimpleStringSchema
from penstock.datastream.connectors.kafka import KafkaSource, offsets
from penstock.datastream.connectors.kafka.enumerator import KafkaEnumerator, KafkaEnumeratorState, first_reader_of
from penstock.datastream.connectors.kafka.offsets import (
    KafkaCluster,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)

kafka = pytest.importorskip("confluent_kafka")

PLACE = KafkaTopicPartition("orders", 0)
COMMITTED = KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST)


class Coordinator:
    """Answers with these error codes, one a question, and then with an offset."""

    def __init__(self, *codes: int) -> None:
        self._codes = list(codes)

    def list_consumer_group_offsets(self, requests, request_timeout):
        answer: Future = Future()
        if self._codes:
            answer.set_exception(kafka.KafkaException(kafka.KafkaError(self._codes.pop(0))))
        else:
            answer.set_result(SimpleNamespace(topic_partitions=[kafka.TopicPartition("orders", 0, 42)]))
        return {requests[0]: answer}

    def list_offsets(self, asked, isolation_level, request_timeout):
        answers = {place: Future() for place in asked}
        for answer in answers.values():
            if self._codes:
                answer.set_exception(kafka.KafkaException(kafka.KafkaError(self._codes.pop(0))))
            else:
                answer.set_result(SimpleNamespace(offset=42))
        return answers


def cluster(*codes: int, monkeypatch: pytest.MonkeyPatch) -> KafkaCluster:
    monkeypatch.setattr(offsets, "_ASKED_AGAIN_AFTER_S", 0)
    made = KafkaCluster({"bootstrap.servers": "127.0.0.1:1", "group.id": "readers"})
    made._client = Coordinator(*codes)
    return made


def test_a_coordinator_that_is_loading_is_asked_again(monkeypatch):
    errors = kafka.KafkaError
    codes = (errors.COORDINATOR_NOT_AVAILABLE, errors.COORDINATOR_LOAD_IN_PROGRESS, errors.NOT_COORDINATOR)
    assert cluster(*codes, monkeypatch=monkeypatch).offsets(COMMITTED, [PLACE]) == {PLACE: 42}


def test_a_leader_that_was_just_elected_is_asked_again(monkeypatch):
    codes = (kafka.KafkaError.NOT_LEADER_FOR_PARTITION, kafka.KafkaError.LEADER_NOT_AVAILABLE)
    asked = cluster(*codes, monkeypatch=monkeypatch)
    assert asked.offsets(KafkaOffsetsInitializer.latest(), [PLACE]) == {PLACE: 42}


def test_a_coordinator_that_stays_unready_fails_in_the_end(monkeypatch):
    monkeypatch.setattr(offsets, "_TIMEOUT_S", 0)
    asked = cluster(*[kafka.KafkaError.COORDINATOR_LOAD_IN_PROGRESS] * 1000, monkeypatch=monkeypatch)
    with pytest.raises(ConnectorError, match="the offsets of group 'readers' are not known"):
        asked.offsets(COMMITTED, [PLACE])


def test_other_errors_are_reported_at_once(monkeypatch):
    asked = cluster(kafka.KafkaError.GROUP_AUTHORIZATION_FAILED, monkeypatch=monkeypatch)
    with pytest.raises(ConnectorError, match="the offsets of group 'readers' are not known"):
        asked.offsets(COMMITTED, [PLACE])


@pytest.mark.parametrize(
    ("topic", "readers", "first"),
    [("sensors.anomalies", 2, 0), ("skyone", 2, 1), ("raw_metrics", 8, 4), ("a", 7, 4)],  # As Java computes them
)
def test_partitions_begin_at_the_reader_that_flink_begins_at(topic, readers, first):
    assert first_reader_of(topic, readers) == first


class OneReader:
    """The context of an enumerator whose only reader is there; it calls at once."""

    def __init__(self) -> None:
        self.assigned: list[str] = []

    def call_async(self, callable, handler, initial_delay_ms=0, period_ms=None):
        handler(callable(), None)

    def current_parallelism(self):
        return 1

    def registered_readers(self):
        return frozenset({0})

    def assign_split(self, split, subtask):
        self.assigned.append(split.partition.topic)


class Topics:
    """A cluster with these topics, of one empty partition each."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def partitions(self):
        return [KafkaTopicPartition(name, 0) for name in self._names]

    def offsets(self, initializer, partitions):
        return dict.fromkeys(partitions, 0)


@pytest.mark.parametrize(
    ("subscribe", "found"),
    [
        (lambda builder: builder.set_topic_pattern(".*"), ["__mine", "orders"]),
        (lambda builder: builder.set_topics("__consumer_offsets"), ["__consumer_offsets"]),
    ],
    ids=["pattern", "name"],
)
def test_a_pattern_leaves_out_the_topics_that_brokers_keep_for_themselves(subscribe, found):
    builder = subscribe(KafkaSource.builder().set_bootstrap_servers("127.0.0.1:1"))
    source = builder.set_value_only_deserializer(SimpleStringSchema()).build()
    topics = Topics("orders", "__mine", "__consumer_offsets", "__transaction_state", "__share_group_state")
    context = OneReader()
    KafkaEnumerator(source, context, KafkaEnumeratorState(), lambda: topics).start()
    assert context.assigned == found
