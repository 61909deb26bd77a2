"""Which jobs count as the same, so that one continues exactly where the other stood."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock
from penstock.checkpoint.topology import fingerprint, with_max_parallelism
from penstock.common import Duration, WatermarkStrategy
from penstock.common.watermark_generator import WatermarkGenerator
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.job_graph import build_job_graph

SCRIPT = """
from penstock.checkpoint.topology import fingerprint
from penstock.common import Duration, WatermarkStrategy
from penstock.common.watermark_generator import WatermarkGenerator
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.job_graph import build_job_graph

class Assigner(TimestampAssigner):
    units = {"a", "b", "c"}
    def extract_timestamp(self, value, record_timestamp):
        return value

class Generator(WatermarkGenerator):
    def __init__(self, delay):
        self._delay = delay
    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(event_timestamp - self._delay)
    def on_periodic_emit(self, output):
        pass

env = StreamExecutionEnvironment.get_execution_environment()
bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner(Assigner())
own = WatermarkStrategy.for_generator(lambda: Generator(5)).with_timestamp_assigner(lambda value, _: value)
numbers = env.from_sequence(0, 9).assign_timestamps_and_watermarks(bounded).assign_timestamps_and_watermarks(own)
numbers.key_by(lambda value: value).map(str).print()
print(fingerprint(build_job_graph(env.get_stream_graph())))
"""


def test_script_is_the_same_job_in_every_process(tmp_path):
    (tmp_path / "job.py").write_text(SCRIPT)
    source = str(Path(penstock.__file__).parents[1])
    runs = [
        subprocess.run(
            [sys.executable, str(tmp_path / "job.py")],
            env={**os.environ, "PYTHONPATH": source, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        )
        for seed in (1, 2)
    ]
    first, second = (run.stdout for run in runs)
    assert first and first == second


class Assigner(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


class Delayed(WatermarkGenerator):
    def __init__(self, delay):
        self._delay = delay

    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(event_timestamp - self._delay)

    def on_periodic_emit(self, output):
        pass


def bounded(seconds: int) -> WatermarkStrategy:
    return WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(seconds))


def delayed_by(number: int) -> WatermarkStrategy:
    return WatermarkStrategy.for_generator(lambda: Delayed(number))


def job(strategy: WatermarkStrategy | None = None, parallelism: int = 2, uid: str = "map", function=str):
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    numbers = env.from_sequence(0, 9).assign_timestamps_and_watermarks(strategy or bounded(1)).uid("time")
    numbers.key_by(lambda value: value).map(function).uid(uid).print()
    return build_job_graph(env.get_stream_graph())


@pytest.mark.parametrize(
    "strategy",
    [
        bounded(1),
        bounded(1).with_timestamp_assigner(Assigner()),
        bounded(1).with_idleness(Duration.of_seconds(5)),
        WatermarkStrategy.for_monotonous_timestamps(),
        WatermarkStrategy.for_generator(lambda: Delayed(7)),
        delayed_by(7),
    ],
)
def test_job_that_is_built_again_is_the_same(strategy):
    assert fingerprint(job(strategy)) == fingerprint(job(strategy))


def test_functions_may_differ():
    assert fingerprint(job(function=str)) == fingerprint(job(function=repr))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (job(), job(parallelism=3)),
        (job(), job(uid="other")),
        (job(), with_max_parallelism(job(), {0: 64})),
        (job(bounded(1)), job(bounded(2))),
        (job(bounded(1)), job(bounded(1).with_idleness(Duration.of_seconds(5)))),
        (job(bounded(0)), job(WatermarkStrategy.for_monotonous_timestamps())),
        (job(delayed_by(1)), job(delayed_by(2))),
        (
            job(WatermarkStrategy.for_generator(lambda: Delayed(1))),
            job(WatermarkStrategy.for_generator(lambda: Delayed(2))),
        ),
    ],
    ids=["parallelism", "uid", "max-parallelism", "bound", "idleness", "generator", "closure", "constant"],
)
def test_what_tasks_remember_does_not_fit_another_job(one, other):
    assert fingerprint(one) != fingerprint(other)
