"""What a Spark task runs: one slot of one stage."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.runtime.rows import Row
from penstock.runtime.stream_task import JobDeployment
from penstock.runtime.task_host import EpochCommand, StateStorage, TaskHost

# A worker serves many epochs: the deployments it has unpacked, newest last.
_deployments: dict[str, JobDeployment] = {}
_MOST_DEPLOYMENTS = 8


@dataclass(frozen=True)
class StageFunction:
    """Picklable, and small: the job itself is a Spark broadcast that a worker unpacks once."""

    deployment_id: str
    deployment: Any
    """A Spark broadcast of the pickled JobDeployment."""
    storage: StateStorage
    command: EpochCommand
    stage: int

    def __call__(self, slot: int, rows: Iterable[Row]) -> Iterator[Row]:
        return TaskHost(self._unpacked(), self.storage, self.command).run(self.stage, slot, rows)

    def _unpacked(self) -> JobDeployment:
        known = _deployments.get(self.deployment_id)
        if known is None:
            known = pickle.loads(self.deployment.value)
            while len(_deployments) >= _MOST_DEPLOYMENTS:
                del _deployments[next(iter(_deployments))]
            _deployments[self.deployment_id] = known
        return known


def flatten(parts: Iterable[list[Row]]) -> Iterator[Row]:
    """The rows of a slot, which the driver handed over as one list."""
    for part in parts:
        yield from part


def by_subtask(rows: Iterable[Row]) -> Iterator[tuple[int, Row]]:
    """Rows with the number that Spark's partitioner goes by."""
    return ((row.subtask, row) for row in rows)


def without_key(pairs: Iterable[tuple[int, Row]]) -> Iterator[Row]:
    return (row for _, row in pairs)


def same(subtask: int) -> int:
    """The partition of a row is its subtask, modulo the number of partitions."""
    return subtask
