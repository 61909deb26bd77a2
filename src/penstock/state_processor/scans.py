"""What a Spark task reads: the rows of one state as one former subtask left them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import pyarrow as pa

from penstock.checkpoint.canonical import CanonicalState, open_chain
from penstock.checkpoint.json_text import text_of
from penstock.checkpoint.metadata import VertexEntry
from penstock.checkpoint.parquet_parts import state_of
from penstock.common.exceptions import StateMismatchError
from penstock.datastream.window import TimeWindow
from penstock.runtime.saved_state import FileChain, StateFolder
from penstock.runtime.state.operator import Distribution, Saved
from penstock.runtime.timers import TIMER_TABLE_PREFIX
from penstock.runtime.windowing.panes import MERGING_TABLE
from penstock.state_processor.script import Script
from penstock.state_processor.shapes import Shape, merge, shape_of

_ROWS_OF_BATCH = 4096

Entry = tuple[str, Any, Any, Any]
"""Name of the state, namespace, key and value."""


@dataclass(frozen=True)
class OperatorFiles:
    """Where the state of one operator is. Can be sent to an executor."""

    folder: StateFolder
    vertex: VertexEntry
    operator_id: str
    is_canonical: bool

    def keyed(self, subtask: int, is_wanted: Callable[[str], bool]) -> Iterator[Entry]:
        """The entries of the states with these names. A large map may come in parts."""
        handles = self.vertex.subtasks[subtask]
        if self.is_canonical:
            states = ((handle, state_of(handle)) for handle in handles)
            wanted = tuple(h for h, state in states if state.kind == "keyed" and is_wanted(state.name))
            saved = CanonicalState(self.folder, wanted, subtask, self.vertex.names)
            for block in saved.blocks(frozenset({self.operator_id}), range(self.vertex.max_parallelism)):
                for namespace, keys in block.value.items():
                    yield from ((block.name, namespace, key, value) for key, value in keys.items())
            return
        with open_chain(self._chain(subtask), frozenset({self.operator_id})) as chain:
            for state in chain.keyed_states():
                if is_wanted(state.name):
                    yield from ((state.name, *entry) for entry in chain.entries_of(state))

    def operator_states(self, subtask: int) -> Saved:
        if self.is_canonical:
            handles = tuple(h for h in self.vertex.subtasks[subtask] if state_of(h).kind == "operator")
            saved = CanonicalState(self.folder, handles, subtask, self.vertex.names)
            blocks = saved.blocks(frozenset({self.operator_id}), range(0))
            return next((block.value for block in blocks), {})
        with open_chain(self._chain(subtask), frozenset({self.operator_id})) as chain:
            return next((saved for _, saved in chain.operator_states()), {})

    def _chain(self, subtask: int) -> FileChain:
        return FileChain(self.folder, self.vertex.subtasks[subtask], subtask, self.vertex.names)

    def name(self) -> str:
        return self.vertex.names[self.operator_id]


class RowsOf(Protocol):
    """The rows of a DataFrame that one former subtask accounts for, as Python values."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    def __call__(self, files: OperatorFiles, subtask: int) -> Iterable[tuple[Any, ...]]: ...


@dataclass(frozen=True)
class KeyedRows:
    state: str
    has_ttl: bool = False
    columns = ("key", "namespace", "value")

    def __call__(self, files: OperatorFiles, subtask: int) -> Iterator[tuple[Any, ...]]:
        for _, namespace, key, value in files.keyed(subtask, self.state.__eq__):
            yield key, text_of(namespace), without_times(value) if self.has_ttl else value


def without_times(stored: Any) -> Any:
    """A state with time to live, without the times at which its parts were last used."""
    if isinstance(stored, tuple):
        return stored[0]
    if isinstance(stored, list):
        return [value for value, _ in stored]
    return {key: value for key, (value, _) in stored.items()}


@dataclass(frozen=True)
class WindowRows:
    """Contents of windows, or a state that functions keep for each window."""

    states: tuple[str, ...]
    columns = ("key", "window", "window_start", "window_end", "value")

    def __call__(self, files: OperatorFiles, subtask: int) -> Iterator[tuple[Any, ...]]:
        for name, namespace, key, value in files.keyed(subtask, self.states.__contains__):
            panes = value.items() if name == MERGING_TABLE else [(namespace, value)]
            for window, held in panes:
                start, end = window if isinstance(window, TimeWindow) else (None, None)
                yield key, text_of(window), start, end, held


@dataclass(frozen=True)
class TimerRows:
    columns = ("key", "time_domain", "timestamp", "namespace", "service")

    def __call__(self, files: OperatorFiles, subtask: int) -> Iterator[tuple[Any, ...]]:
        for name, namespace, key, _ in files.keyed(subtask, lambda name: name.startswith(TIMER_TABLE_PREFIX)):
            service, _, domain = name.removeprefix(TIMER_TABLE_PREFIX).rpartition("/")
            timestamp, of = namespace
            yield key, domain.upper().replace("-", "_"), timestamp, text_of(of), service


@dataclass(frozen=True)
class ListRows:
    state: str
    distribution: Distribution
    columns = ("subtask", "value")

    def __call__(self, files: OperatorFiles, subtask: int) -> Iterator[tuple[Any, ...]]:
        for item in items_of(files, subtask, self.state, self.distribution) or ():
            yield subtask, item


@dataclass(frozen=True)
class BroadcastRows:
    state: str
    columns = ("key", "value")

    def __call__(self, files: OperatorFiles, subtask: int) -> Iterator[tuple[Any, ...]]:
        yield from (items_of(files, subtask, self.state, "broadcast") or {}).items()


_READ_BY = {"split": "list_state", "union": "union_state", "broadcast": "broadcast_state"}


def items_of(files: OperatorFiles, subtask: int, state: str, distribution: Distribution) -> Any:
    """The items of an operator state; None if the subtask has none of that name."""
    found = files.operator_states(subtask).get(state)
    if found is None:
        return None
    if found[0] != distribution:
        raise StateMismatchError(
            f"operator '{files.name()}': state '{state}' is not read with {_READ_BY[distribution]} but with "
            f"{_READ_BY[found[0]]}"
        )
    return found[1]


@dataclass(frozen=True)
class Scan:
    """Reads what former subtasks left; Spark hands out their numbers."""

    files: OperatorFiles
    rows: RowsOf
    script: Script

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        classes = self.script.load()  # noqa: F841 - held while the task runs
        for batch in batches:
            for subtask in batch.column(0).to_pylist():
                yield from self.batches_of(subtask)

    def batches_of(self, subtask: int) -> Iterator[Any]:
        raise NotImplementedError


@dataclass(frozen=True)
class ShapeScan(Scan):
    """Gives the shape of the values in each column, pickled."""

    def batches_of(self, subtask: int) -> Iterator[Any]:
        shapes: list[Shape] | None = None
        for row in self.rows(self.files, subtask):
            found = map(shape_of, row)
            shapes = list(found) if shapes is None else list(map(merge, shapes, found))
        yield pa.record_batch([pa.array([pickle.dumps(shapes)], pa.binary())], names=["shapes"])


@dataclass(frozen=True)
class RowScan(Scan):
    """Gives the rows, with the values of `columns` in their shapes."""

    columns: tuple[tuple[str, Shape], ...]

    def batches_of(self, subtask: int) -> Iterator[Any]:
        rows = iter(self.rows(self.files, subtask))
        while some := list(islice(rows, _ROWS_OF_BATCH)):
            values = dict(zip(self.rows.columns, zip(*some, strict=True), strict=True))
            arrays = [self._array(name, shape, values[name]) for name, shape in self.columns]
            yield pa.record_batch(arrays, names=[name for name, _ in self.columns])

    def _array(self, name: str, shape: Shape, values: Iterable[Any]) -> Any:
        try:
            return pa.array([shape.converted(value) for value in values], shape.arrow)
        except (pa.ArrowException, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise StateMismatchError(
                f"operator '{self.files.name()}': column '{name}' cannot be of type {shape.ddl}: {error}; give a "
                f"schema that fits, or none, to have the types found"
            ) from error
