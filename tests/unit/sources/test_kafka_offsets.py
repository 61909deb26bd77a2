"""Offsets of groups and partitions, asked of brokers that are not ready yet."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from penstock.common.exceptions import ConnectorError
from penstock.datastream.connectors.kafka import offsets
from penstock.datastream.connectors.kafka.enumerator import first_reader_of
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
