"""Every subtask has window functions of its own, also in one process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.common import Configuration
from penstock.datastream import ProcessWindowFunction, RuntimeContext, StreamExecutionEnvironment


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
