"""What a Spark task runs: it passes one slot's rows on to the slot's process, and deals out what comes back."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.serializers import pack_long

from penstock.common.exceptions import JobExecutionError
from penstock.runtime.rows import FAILURE, Row
from penstock.spark.slot_process import SlotRequest, run_in_slot_process


@dataclass(frozen=True)
class StageFunction:
    """Picklable, and small: the job itself is a Spark broadcast that only a new slot process asks for."""

    request: SlotRequest
    deployment: Any
    """A reference to the Spark broadcast of the pickled JobDeployment."""
    vertices: frozenset[int]
    """The vertices of the stage; rows for others pass through."""

    def __call__(self, slot: int, rows: Iterable[Row]) -> Iterator[Row]:
        mine: list[Row] = []
        has_failed = False
        for row in rows:
            if row.vertex in self.vertices:
                mine.append(row)
            else:
                has_failed = has_failed or row.vertex == FAILURE
                yield row
        if not has_failed:
            yield from self._run(slot, mine)
        settle()

    def _run(self, slot: int, rows: list[Row]) -> Iterator[Row]:
        try:
            yield from run_in_slot_process(self.request.for_slot(slot), rows, lambda: self.deployment.value)
        except (EOFError, ConnectionError) as error:
            raise JobExecutionError(
                f"the process of slot {slot} ended in the middle of an epoch: it was killed, or user code ended it"
            ) from error


_is_settled = False


def settle() -> None:
    """Leave all that is loaded by now out of garbage collections, once in each worker.

    PySpark's worker collects garbage after every task. To look through all modules takes longer than a small task.
    """
    global _is_settled
    if not _is_settled:
        gc.collect()
        gc.freeze()
        _is_settled = True


@dataclass(frozen=True)
class SourceRows:
    """What the sources of each slot are to read in this epoch."""

    parts: tuple[tuple[Row, ...], ...]
    broadcast: Any = None
    """Has the parts instead, where they are large."""

    def of(self, slot: int) -> Iterator[Row]:
        parts = self.parts if self.broadcast is None else self.broadcast.value
        return iter(parts[slot])


def by_slot(rows: list[Row], slots: int) -> tuple[tuple[Row, ...], ...]:
    return tuple(tuple(row for row in rows if row.subtask % slots == slot) for slot in range(slots))


@dataclass(frozen=True)
class TaskFunction:
    """What a Spark task runs: a slot's part of one or more stages."""

    stages: tuple[StageFunction, ...]
    partitions: int | None
    """How many tasks its rows are dealt to; None if the driver gets them."""
    source_rows: SourceRows | None = None
    """What the first task of a slot gets instead of rows of others."""

    def __call__(self, slot: int, received: Iterable[Row]) -> Iterable[Any]:
        rows = received
        if self.source_rows is not None:
            # Nothing comes, but PySpark does not use a worker again whose task has not read its input to the end.
            rows = [*received, *self.source_rows.of(slot)]
        for stage in self.stages:
            rows = stage(slot, rows)
        return rows if self.partitions is None else _dealt(rows)


def _dealt(rows: Iterable[Row]) -> Iterator[bytes]:
    """As Spark's exchange takes rows: before each the number that its partition is found by."""
    for row in rows:
        yield pack_long(row.subtask)
        yield pickle.dumps(row, pickle.HIGHEST_PROTOCOL)
