"""Every subtask has window functions of its own, also in one process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from penstock.common import Configuration
from penstock.datastream import (
    AllWindowFunction,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    WindowFunction,
)


class WithSubtask(ProcessWindowFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[tuple[Any, int]]:
        yield key, self.subtask


def test_window_functions_are_not_shared_by_subtasks_of_one_process() -> None:
    config = Configuration.from_dict({"execution.target": "inline", "penstock.epoch.max-records": "20"})
    env = StreamExecutionEnvironment.get_execution_environment(config)
    keyed = env.from_collection([f"k{number % 5}" for number in range(100)]).key_by(lambda key: key)
    seen = set(keyed.count_window(4).process(WithSubtask()).set_parallelism(3).execute_and_collect())
    assert len(seen) == 5  # each key with one subtask, in all epochs
    assert len({subtask for _, subtask in seen}) > 1


class OfAnotherKind(WindowFunction):
    """Its base class is not the one that `window_all` is for, but it has the method that is called."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterator[Any]:
        raise AssertionError("process() calls process")

    def process(self, context: Any, elements: Iterable[int]) -> Iterator[Any]:
        yield type(context.window()).__name__, self.subtask, sum(elements)


class OfAllWindows(AllWindowFunction):
    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterator[Any]:
        raise AssertionError("process() calls process")

    def process(self, key: Any, context: Any, elements: Iterable[int]) -> Iterator[Any]:
        yield key, sum(elements)


class OnlyApplies(WindowFunction):
    def apply(self, key: Any, window: Any, inputs: Iterable[int]) -> Iterator[Any]:
        yield key, sum(inputs)


def test_process_takes_functions_by_their_method_as_pyflink_does() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({"execution.target": "inline"}))
    numbers = env.from_collection([1, 2, 3, 4])
    assert list(numbers.count_window_all(2).process(OfAnotherKind()).execute_and_collect()) == [
        ("CountWindow", 0, 3),
        ("CountWindow", 0, 7),
    ]
    keyed = env.from_collection([1, 2, 3, 4]).key_by(lambda number: number % 2)
    assert sorted(keyed.count_window(2).process(OfAllWindows()).execute_and_collect()) == [(0, 6), (1, 4)]


def test_a_function_without_the_method_that_is_called_is_refused_at_once() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({"execution.target": "inline"}))
    with pytest.raises(TypeError, match="process needs a AllWindowFunction or ProcessAllWindowFunction, got OnlyAppl"):
        env.from_collection([1]).count_window_all(2).process(OnlyApplies())
