"""What Spark tasks do to write a savepoint: rows of DataFrames become entries of state, and entries become files."""

from __future__ import annotations

import datetime
import pickle
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle, groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa

from penstock.checkpoint.canonical import write_canonical
from penstock.checkpoint.folders import Folder
from penstock.checkpoint.metadata import VertexEntry
from penstock.checkpoint.parquet_parts import (
    KEYED_COLUMNS,
    OPERATOR_COLUMNS,
    PartRow,
    PartWriter,
    StateName,
    broadcast_row,
    keyed_row,
    list_row,
    state_of,
)
from penstock.common.exceptions import StateMismatchError
from penstock.common.types import Row, make_row
from penstock.runtime.key_groups import subtask_of_key_group
from penstock.runtime.key_hashing import stable_hash
from penstock.runtime.saved_state import FileChain, StateHandle
from penstock.runtime.state.codec import decode_state
from penstock.runtime.state.operator import Distribution
from penstock.runtime.state.table import VOID_NAMESPACE
from penstock.state_processor.script import Script

Column = str | Callable[[Row], Any]
"""The name of a column, or a function of the row."""

_ADDRESS = [pa.field("subtask", pa.int32()), pa.field("key_hash", pa.int64())]
KEYED_ROWS = pa.schema([*_ADDRESS, *KEYED_COLUMNS])
OPERATOR_ROWS = pa.schema([*_ADDRESS, *OPERATOR_COLUMNS])
_DDL = {pa.int32(): "int", pa.int64(): "bigint", pa.binary(): "binary", pa.string(): "string"}
HANDLES_DDL = "subtask int, handles binary"


def ddl_of(schema: Any) -> str:
    return ", ".join(f"{field.name} {_DDL[field.type]}" for field in schema)


def handles_batch(subtask: int, handles: Iterable[StateHandle]) -> Any:
    return pa.record_batch(
        [pa.array([subtask], pa.int32()), pa.array([pickle.dumps(tuple(handles))], pa.binary())],
        names=["subtask", "handles"],
    )


# --- from rows to entries --------------------------------------------------------------------------------------------


def python_rows(batch: Any) -> list[Row]:
    """The rows of a batch: structs become rows, or tuples if their fields are called `_1`, `_2` ...; maps dicts."""
    names = batch.schema.names
    columns = [
        [python_value(value, kind) for value in column.to_pylist()]
        for column, kind in zip(batch.columns, batch.schema.types, strict=True)
    ]
    return [make_row(names, values) for values in zip(*columns, strict=True)]


def python_value(value: Any, kind: Any) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        values = [python_value(value[field.name], field.type) for field in kind]
        names = [field.name for field in kind]
        is_tuple = names == [f"_{at}" for at in range(1, len(names) + 1)]
        return tuple(values) if is_tuple else make_row(names, values)
    if pa.types.is_map(kind):
        return {python_value(key, kind.key_type): python_value(each, kind.item_type) for key, each in value}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [python_value(each, kind.value_type) for each in value]
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.timezone.utc)  # Arrow's time zones are not Python's own.
    return value


def value_in(row: Row, column: Column) -> Any:
    return row[column] if isinstance(column, str) else column(row)


@dataclass(frozen=True)
class KeyedEntriesOf:
    """Makes entries of keyed state. A row whose value is None makes none: such a state would be empty."""

    key: Column
    value: Column
    max_parallelism: int
    parallelism: int
    script: Script
    timestamp: Column | None = None
    """For timers: the time, which is part of their namespace."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            yield _batch([row for row in map(self._row, python_rows(batch)) if row is not None], KEYED_ROWS)

    def _row(self, row: Row) -> PartRow | None:
        key, value = value_in(row, self.key), value_in(row, self.value)
        if value is None:
            return None
        namespace = VOID_NAMESPACE if self.timestamp is None else (value_in(row, self.timestamp), VOID_NAMESPACE)
        entry = keyed_row(key, namespace, value, self.max_parallelism)
        return subtask_of_key_group(entry[0], self.max_parallelism, self.parallelism), stable_hash(key), *entry


@dataclass(frozen=True)
class OperatorEntriesOf:
    """Makes items of list or broadcast state; those of split lists are dealt out, others stay together."""

    key: Column | None
    value: Column
    distribution: Distribution
    parallelism: int
    script: Script

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        subtasks = cycle(range(self.parallelism if self.distribution == "split" else 1))
        for batch in batches:
            yield _batch([(next(subtasks), *self._row(row)) for row in python_rows(batch)], OPERATOR_ROWS)

    def _row(self, row: Row) -> PartRow:
        if self.key is None:
            return 0, *list_row(self.distribution, value_in(row, self.value))
        key = value_in(row, self.key)
        return stable_hash(key), *broadcast_row(key, value_in(row, self.value))


def _batch(rows: list[PartRow], schema: Any) -> Any:
    columns: Iterable[Any] = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
    return pa.record_batch(arrays, schema=schema)


# --- from entries to files -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WriteParts:
    """Writes entries, which come in the order of subtask and hash, to files; yields the files' handles."""

    state: StateName
    operator_name: str
    distribution: Distribution | None
    folder: Folder
    epoch: int
    script: Script

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        classes = self.script.load()  # noqa: F841 - held while the task runs
        rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
        for subtask, own in groupby(rows, itemgetter(0)):
            writer = PartWriter(self.folder, subtask, self.epoch)
            if self.distribution is None:
                writer.keyed(self.state, self._unique(own, 3, 4))
            elif self.distribution == "broadcast":
                writer.operator(self.state, self.distribution, self._unique(own, 3))
            else:
                writer.operator(self.state, self.distribution, (row[2:] for row in own))
            yield handles_batch(subtask, writer.handles)

    def _unique(self, rows: Iterable[PartRow], *places: int) -> Iterator[PartRow]:
        """The entries; raises if two of them have the same values at `places`."""
        for _, same_hash in groupby(rows, itemgetter(1)):
            seen: set[Any] = set()
            for row in same_hash:
                name = tuple(row[at] if row[at] is None else decode_state(row[at]) for at in places)
                if name in seen:
                    raise StateMismatchError(
                        f"operator '{self.operator_name}': state '{self.state.name}' is given two values for the key "
                        f"{name[0]!r}; leave one row for each key, for instance with groupBy(...).agg(...)"
                    )
                seen.add(name)
                yield row[2:]


@dataclass(frozen=True)
class CarryOver:
    """Copies what former subtasks left, in the canonical format; yields the handles by place in `subtasks`."""

    source: Folder
    is_canonical: bool
    subtasks: tuple[tuple[VertexEntry, int], ...]
    left_out: frozenset[StateName]
    target: Folder
    script: Script

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        classes = self.script.load()  # noqa: F841 - held while the task runs
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            vertex, subtask = self.subtasks[number]
            handles = vertex.subtasks[subtask]
            if self.is_canonical:
                carried = [self._copied(handle) for handle in handles if self._is_wanted(handle, vertex)]
            else:
                chain = FileChain(self.source, handles, subtask, vertex.names)
                carried = list(write_canonical(chain, vertex, subtask, self.target, self.left_out))
            yield handles_batch(number, carried)

    def _is_wanted(self, handle: StateHandle, vertex: VertexEntry) -> bool:
        state = state_of(handle)
        return state.operator_id in vertex.names and state not in self.left_out

    def _copied(self, handle: StateHandle) -> StateHandle:
        self.target.within(handle.name.rpartition("/")[0]).make()
        with self.source.open(handle.name) as content, self.target.create(handle.name) as out:
            shutil.copyfileobj(content, out, 1 << 20)
        return handle
