"""What a Spark task runs: it passes one slot's rows on to the slot's process."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.common.exceptions import JobExecutionError
from penstock.runtime.rows import FAILURE, Row
from penstock.spark.slot_process import SlotRequest, run_in_slot_process


@dataclass(frozen=True)
class StageFunction:
    """Picklable, and small: the job itself is a Spark broadcast that only a new slot process asks for."""

    request: SlotRequest
    deployment: Any
    """A Spark broadcast of the pickled JobDeployment."""
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
    """Holds the parts instead, where they are large."""

    def __call__(self, slot: int, _: Iterable[int]) -> Iterator[Row]:
        parts = self.parts if self.broadcast is None else self.broadcast.value
        return iter(parts[slot])

    def release(self) -> None:
        if self.broadcast is not None:
            self.broadcast.destroy()


def by_slot(rows: list[Row], slots: int) -> tuple[tuple[Row, ...], ...]:
    return tuple(tuple(row for row in rows if row.subtask % slots == slot) for slot in range(slots))


def by_subtask(rows: Iterable[Row]) -> Iterator[tuple[int, Row]]:
    """Rows with the number that Spark's partitioner goes by."""
    return ((row.subtask, row) for row in rows)


def without_key(pairs: Iterable[tuple[int, Row]]) -> Iterator[Row]:
    return (row for _, row in pairs)


def same(subtask: int) -> int:
    """The partition of a row is its subtask, modulo the number of partitions."""
    return subtask
