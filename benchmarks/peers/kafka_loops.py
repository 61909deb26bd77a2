"""The hand-fused loop from a Kafka topic to another: see python_loops.

Transactions end as often as checkpoints would.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

from benchmarks import broker
from benchmarks.job import Run, Setting
from benchmarks.kafka_to_kafka import topic_of

_TRANSACTION_SECONDS = 1.0


def number_orders(setting: Setting) -> tuple[Iterator[Any], None]:
    from confluent_kafka import Producer

    results = broker.new_topic(setting.parallelism)
    producer = Producer({
        "bootstrap.servers": broker.servers(), "transactional.id": f"loop-{uuid.uuid4().hex[:8]}", "linger.ms": 50,
        "queue.buffering.max.messages": 10_000_000,
    })  # fmt: skip
    producer.init_transactions()
    producer.begin_transaction()
    committed_at = time.monotonic()
    counts: dict[int, int] = {}
    for values in broker.batches(topic_of(setting)):
        for value in values:
            customer = int(value.decode().split(" ")[0])
            count = counts[customer] = counts.get(customer, 0) + 1
            producer.produce(results, f"{customer} {count}".encode())
        producer.poll(0)
        if time.monotonic() - committed_at > _TRANSACTION_SECONDS:
            producer.commit_transaction()
            producer.begin_transaction()
            committed_at = time.monotonic()
    producer.commit_transaction()
    return broker.committed(results), None


RUNS: dict[str, Run] = {"kafka_to_kafka": number_orders}
