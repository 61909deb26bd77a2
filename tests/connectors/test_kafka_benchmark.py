"""The benchmark from topic to topic is right: a fast wrong answer is no benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks import broker, kafka_to_kafka
from benchmarks.job import Setting
from benchmarks.peers.kafka_loops import number_orders

SETTING = Setting(3_000, 2, keys=50)


@pytest.fixture(autouse=True)
def filled_topic(kafka: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(broker.ADDRESS, kafka.bootstrap_servers)
    kafka_to_kafka.prepare(SETTING)
    kafka_to_kafka.prepare(SETTING)  # The second time there is nothing left to do.


def test_the_job_writes_each_number_once(tmp_path: Path) -> None:
    config = {
        "execution.target": "inline",
        "execution.checkpointing.interval": "20 ms",
        "execution.checkpointing.dir": tmp_path.as_uri(),
    }
    written, _ = kafka_to_kafka.run(Setting(SETTING.records, SETTING.parallelism, SETTING.keys, config=config))
    assert sorted(written) == sorted(kafka_to_kafka.expected(SETTING)) != []


def test_the_loop_fused_by_hand_writes_the_same() -> None:
    written, _ = number_orders(SETTING)
    assert sorted(written) == sorted(kafka_to_kafka.expected(SETTING))
