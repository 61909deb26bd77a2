"""What the driver learns of tasks in other processes: how busy they are, and what they do."""

from __future__ import annotations

import os
import threading
import time

import pytest

from penstock.common import WatermarkStrategy
from penstock.common.clocks import wall_clock_ms
from penstock.datastream.connectors.data_generator import DataGeneratorSource, RateLimiterStrategy
from penstock.jobmaster.epoch_history import Total

pytestmark = pytest.mark.spark


def work(number):
    total = 0
    for each in range(2_000):
        total += each
    return number % 10, total


def names(frame):
    return {frame["name"].split(" ")[0], *(name for child in frame["children"] for name in names(child))}


def test_stacks_and_times_of_workers_reach_the_driver(on_spark):
    env = on_spark()
    source = DataGeneratorSource(lambda number: number, 10**9, RateLimiterStrategy.per_second(2_000))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").map(work)
    numbers.key_by(lambda pair: pair[0]).sum(1).filter(lambda pair: False).print()
    client = env.execute_async("busy")
    try:
        deadline = time.monotonic() + 120
        busy_ms = 0.0
        while busy_ms <= 0 or "work" not in names(client.master.flame_graphs.ask(0, wall_clock_ms())["data"]):
            assert time.monotonic() < deadline, "the driver never heard of what tasks do"
            threading.Event().wait(0.2)
            recent = client.master.epochs.recent(wall_clock_ms())
            busy_ms = max(busy_ms, recent[0, 0][Total.BUSY_MS] if (0, 0) in recent else 0.0)
        facts = client.master.execution_graph.job_vertices[0].subtasks[0].current.facts
        assert facts.process not in (None, os.getpid())
        threads = {each.process: [thread.name for thread in each.threads] for each in client.master.threads()}
        assert {"MainThread", "penstock-control"} <= set(threads[facts.process])
    finally:
        client.cancel().result()
