"""What a Spark task of a batch job runs."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.jobmaster.execution.stage_executor import TaskDone
from penstock.runtime.protocol import EpochCommand, JobDeployment, TaskAck
from penstock.runtime.rows import ACKNOWLEDGEMENT, OUTPUT, Row
from penstock.runtime.saved_state import StateFolder
from penstock.runtime.task_output import captured, use_levels
from penstock.runtime.worker import run_stage_alone, stages_of
from penstock.spark.resident_task import as_before


@dataclass(frozen=True)
class StageTask:
    """What a Spark task runs: some slots' part of one or more stages, whose subtasks end with it."""

    deployment: Any
    """The Spark broadcast of the pickled JobDeployment."""
    folder: StateFolder
    command: EpochCommand
    stages: tuple[int, ...]
    tasks: int
    """How many tasks share the slots."""
    done: Any
    """The Spark accumulator of what subtasks did, by vertex and subtask."""

    def __call__(self, number: int, received: Iterable[Row]) -> Iterator[Row]:
        with as_before():
            deployment: JobDeployment = pickle.loads(self.deployment.value)
            written: list[bytes] = []
            with captured(written.append):
                use_levels(deployment.log_levels)
                yield from self._rows(deployment, number, received)
            yield from (Row(OUTPUT, 0, 0, 0, 0, each) for each in written)

    def _rows(self, deployment: JobDeployment, number: int, received: Iterable[Row]) -> Iterator[Row]:
        parts = stages_of(deployment, number, self.tasks)
        rows = received
        for stage in self.stages:
            rows = run_stage_alone(deployment, self.folder, self.command, parts[stage], rows)
        own = {task for stage in self.stages for task in parts[stage].tasks}
        for row in rows:
            if row.vertex == ACKNOWLEDGEMENT:
                ack = TaskAck.decode(row.chunk)
                if (ack.vertex, ack.subtask) in own:  # Those of earlier stages pass by.
                    self.done.add({(ack.vertex, ack.subtask): TaskDone.of(ack)})
            yield row
