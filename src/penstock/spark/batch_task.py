"""What a Spark task of a batch job runs."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.runtime.protocol import EpochCommand
from penstock.runtime.rows import Row
from penstock.runtime.saved_state import StateFolder
from penstock.runtime.stream_task import JobDeployment
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

    def __call__(self, number: int, received: Iterable[Row]) -> Iterator[Row]:
        with as_before():
            deployment: JobDeployment = pickle.loads(self.deployment.value)
            parts = stages_of(deployment, number, self.tasks)
            rows = received
            for stage in self.stages:
                rows = run_stage_alone(deployment, self.folder, self.command, parts[stage], rows)
            yield from rows
