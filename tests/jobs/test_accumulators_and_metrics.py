"""What functions count reaches the driver, on both targets, also when other processes run later epochs."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.common.exceptions import UserFunctionError
from penstock.datastream.accumulators import Accumulator, Histogram, IntCounter, ListAccumulator
from penstock.datastream.functions import FilterFunction, MapFunction

SEVERAL_EPOCHS = {"penstock.epoch.max-records": "7"}


class Longest(Accumulator[str, str]):
    """An accumulator of the user's own."""

    def __init__(self) -> None:
        self.word = ""

    def add(self, value):
        self.word = max(self.word, value, key=len)

    def get_local_value(self):
        return self.word

    def reset_local(self):
        self.word = ""

    def merge(self, other):
        self.add(other.word)


class Counting(MapFunction):
    def open(self, runtime_context):
        self._runtime_context = runtime_context
        self._count, self._sizes, self._longest, self._ends = IntCounter(), Histogram(), Longest(), ListAccumulator()
        runtime_context.add_accumulator("count", self._count)
        runtime_context.add_accumulator("remainders", self._sizes)
        runtime_context.add_accumulator("longest", self._longest)
        runtime_context.add_accumulator("ends", self._ends)

    def map(self, value):
        self._runtime_context.get_accumulator("count").add(1)
        self._sizes.add(value % 3)
        self._longest.add("x" * value)
        return value

    def close(self):
        self._ends.add(self._runtime_context.get_index_of_this_subtask())


class AlsoCounting(FilterFunction):
    def open(self, runtime_context):
        self._count = IntCounter()
        runtime_context.add_accumulator("count", self._count)

    def filter(self, value):
        self._count.add(100)
        return True


@pytest.mark.parametrize("settings", [{}, SEVERAL_EPOCHS], ids=["one epoch", "several epochs"])
def test_accumulators_are_merged_over_subtasks_operators_and_epochs(run_target, settings):
    env = run_target(parallelism=2, settings=settings)
    env.from_sequence(1, 30).map(Counting()).filter(AlsoCounting()).print()
    result = env.execute()
    assert result.get_accumulator_result("count") == 30 + 30 * 100
    assert result.get_accumulator_result("remainders") == {0: 10, 1: 10, 2: 10}
    assert result.get_accumulator_result("longest") == "x" * 30
    assert sorted(result.get_accumulator_result("ends")) == [0, 1]


def test_a_function_is_closed_once_even_if_others_continue_for_longer(run_target):
    env = run_target(settings={"penstock.epoch.max-records": "1"})
    env.from_sequence(1, 1).map(Counting()).print()
    env.from_sequence(1, 4).print()
    assert env.execute().get_accumulator_result("ends") == [0]


def test_a_name_can_be_registered_once_in_a_function(run_target):
    class Twice(MapFunction):
        def open(self, runtime_context):
            runtime_context.add_accumulator("count", IntCounter())
            runtime_context.add_accumulator("count", IntCounter())

        def map(self, value):
            return value

    env = run_target()
    env.from_collection([1]).map(Twice()).name("twice").print()
    with pytest.raises(UserFunctionError, match=r"operator 'twice': an accumulator 'count' is registered already"):
        env.execute()


class Measuring(MapFunction):
    def open(self, runtime_context):
        group = runtime_context.get_metrics_group()
        self._seen = group.counter("seen")
        self._values = group.add_group("my").distribution("values")
        self._rate = group.meter("rate")
        self._last = -1
        group.gauge("last", lambda: self._last)
        group.gauge("broken", lambda: 1 // 0)
        self._factor = int(runtime_context.get_job_parameter("factor", "1"))

    def map(self, value):
        self._seen.inc()
        self._values.update(value)
        self._rate.mark_event()
        self._last = value
        return value * self._factor


def metrics_of(client: Any, metric: str) -> dict[str, Any]:
    return next(each for each in client.master.metrics.by_operator().values() if metric in each)


@pytest.mark.parametrize("settings", [{}, SEVERAL_EPOCHS], ids=["one epoch", "several epochs"])
def test_metrics_of_functions_reach_the_job_master(run_target, settings):
    env = run_target(parallelism=2, settings=settings)
    env.from_sequence(1, 30).map(Measuring()).print()
    client = env.execute_async()
    client.get_job_execution_result().result()
    metrics = metrics_of(client, "seen")
    assert metrics["seen"] == 30
    assert metrics["my.values"] == {"sum": 465, "count": 30, "min": 1, "max": 30, "mean": 15.5}
    assert metrics["rate"]["count"] == 30 and metrics["rate"]["rate"] > 0
    assert metrics["last"] == {0: 15, 1: 30}
    assert "broken" not in metrics


def test_functions_read_job_parameters(run_target):
    env = run_target()
    env.get_config().set_global_job_parameters({"factor": "10"})
    assert list(env.from_collection([1, 2]).map(Measuring()).execute_and_collect()) == [10, 20]
