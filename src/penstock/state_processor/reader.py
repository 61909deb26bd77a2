"""State as DataFrames."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from penstock.checkpoint.finding import find_checkpoint
from penstock.checkpoint.metadata import CANONICAL
from penstock.checkpoint.restoring import FoundCheckpoint
from penstock.common.exceptions import StateMismatchError
from penstock.runtime.state.codec import decode_state, unreadable
from penstock.runtime.windowing.panes import CONTENTS_TABLE, MERGING_TABLE
from penstock.state_processor.jobs import collected, numbers, session
from penstock.state_processor.operators import Operator, OperatorState, find_operator, operators_of, states_of
from penstock.state_processor.scans import (
    BroadcastRows,
    KeyedRows,
    ListRows,
    OperatorFiles,
    RowScan,
    RowsOf,
    ShapeScan,
    TimerRows,
    WindowRows,
)
from penstock.state_processor.script import Script
from penstock.state_processor.shapes import LONG, TEXT, UNKNOWN, Shape, merged, quoted, shape_of_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_FIXED: dict[str, Shape] = {
    "namespace": TEXT,
    "window": TEXT,
    "window_start": LONG,
    "window_end": LONG,
    "time_domain": TEXT,
    "timestamp": LONG,
    "service": TEXT,
    "subtask": LONG,
}
"""Columns that have the same type for every state."""


def read(path: str, spark: SparkSession | None = None) -> SavepointReader:
    """The state at `path`: a savepoint in either format, a checkpoint that a job left, or a job's checkpoint folder.

    `spark`: the session to read with; otherwise the active one, or a new one.
    """
    return SavepointReader(find_checkpoint(path), spark)


class SavepointReader:
    """A savepoint or checkpoint. State is read by Spark tasks, one for each subtask that left it.

    The types of keys and values are found by reading them once: numbers, strings, bytes, dates, tuples, rows,
    dataclasses, lists and dictionaries have a type of their own, other values are shown as JSON, or pickled if they
    have no form in JSON. A `schema` such as "key string, value struct<n:int,sum:double>" sets the types of all columns
    or some. An operator is given by its uid, its name, or an `OperatorIdentifier`.
    """

    def __init__(self, found: FoundCheckpoint, spark: SparkSession | None = None) -> None:
        self._found = found
        self._given_spark = spark

    def __repr__(self) -> str:
        return f"SavepointReader({self.path!r})"

    @property
    def path(self) -> str:
        """Where the savepoint or checkpoint is."""
        return self._found.path

    @property
    def checkpoint_id(self) -> int:
        """The number of the checkpoint."""
        return self._found.metadata.checkpoint_id

    def operators(self) -> list[OperatorState]:
        """The operators of the job, with their states."""
        return operators_of(self._found.metadata)

    def positions(self) -> dict[str, Any]:
        """How far each source was read, by the source's uid, or its name if it has none."""
        names = {each.operator_id: each.uid or each.name for each in self.operators()}
        found = {}
        for operator_id, content in self._found.metadata.positions.items():
            name = names.get(operator_id, operator_id)
            found[f"{name} ({operator_id})" if name in found else name] = self._decoded(name, content)
        return found

    def _decoded(self, name: str, content: bytes) -> Any:
        try:
            return decode_state(content)
        except Exception as error:
            raise unreadable(f"{self.path}: the position of source '{name}'", error) from error

    # --- keyed state -----------------------------------------------------------------------------------------------

    def keyed_state(
        self, operator: Operator, state_name: str, schema: str | StructType | None = None, has_ttl: bool = False
    ) -> DataFrame:
        """Columns `key` and `value`, and `namespace` if the state is kept for windows as well.

        `value` is that of a value or reducing state, the list of a list state, the map of a map state, the accumulator
        of an aggregating state. `has_ttl`: the state has a time to live; its times are left out. A map of very many
        entries may be several rows.
        """
        files = self._files(operator)
        self._check_state(files, state_name, "keyed")
        return self._data_frame(files, KeyedRows(state_name, has_ttl), schema, optional=("namespace",))

    def window_state(
        self, operator: Operator, state_name: str | None = None, schema: str | StructType | None = None
    ) -> DataFrame:
        """Columns `key`, `window`, `window_start`, `window_end` (in milliseconds, null without time) and `value`.

        What the open windows hold: the reduced value, the accumulator, or the list of elements. With `state_name`, a
        state that a window function or a trigger keeps for each window.
        """
        files = self._files(operator)
        if state_name is None:
            return self._data_frame(files, WindowRows((CONTENTS_TABLE, MERGING_TABLE)), schema)
        self._check_state(files, state_name, "keyed")
        return self._data_frame(files, WindowRows((state_name,)), schema)

    def timers(self, operator: Operator, schema: str | StructType | None = None) -> DataFrame:
        """Columns `key`, `time_domain` (EVENT_TIME or PROCESSING_TIME), `timestamp`, `namespace`, `service`."""
        return self._data_frame(self._files(operator), TimerRows(), schema)

    # --- operator state --------------------------------------------------------------------------------------------

    def list_state(self, operator: Operator, state_name: str, schema: str | StructType | None = None) -> DataFrame:
        """Columns `subtask`, the one that held the item, and `value`."""
        files = self._files(operator)
        self._check_state(files, state_name, "operator")
        return self._data_frame(files, ListRows(state_name, "split"), schema)

    def union_state(self, operator: Operator, state_name: str, schema: str | StructType | None = None) -> DataFrame:
        """Columns `subtask`, the one that saved the item, and `value`. Every subtask saves a list of its own."""
        files = self._files(operator)
        self._check_state(files, state_name, "operator")
        return self._data_frame(files, ListRows(state_name, "union"), schema)

    def broadcast_state(self, operator: Operator, state_name: str, schema: str | StructType | None = None) -> DataFrame:
        """Columns `key` and `value`, read from one subtask: all hold the same entries."""
        files = self._files(operator)
        self._check_state(files, state_name, "operator")
        holders = [
            subtask
            for subtask, handles in enumerate(files.vertex.subtasks)
            if any(
                (who, kind) == (files.operator_id, "operator") and state_name in name
                for handle in handles
                for who, kind, name in handle.states
            )
        ]
        return self._data_frame(files, BroadcastRows(state_name), schema, subtasks=holders[:1])

    # --- how -------------------------------------------------------------------------------------------------------

    def _files(self, operator: Operator) -> OperatorFiles:
        vertex, entry = find_operator(self._found, operator)
        metadata = self._found.metadata
        return OperatorFiles(self._found.folder, vertex, entry.operator_id, metadata.savepoint_format == CANONICAL)

    def _check_state(self, files: OperatorFiles, name: str, kind: str) -> None:
        states = [state for state in states_of(files.vertex, files.operator_id) if state.kind != "timers"]
        if not any(state.name == name and state.kind == kind for state in states):
            known = ", ".join(f"'{state.name}' ({state.kind})" for state in states) or "none"
            raise StateMismatchError(
                f"{self.path}: operator '{files.name()}' has no {kind} state '{name}'; its states are: {known}"
            )

    def _data_frame(
        self,
        files: OperatorFiles,
        rows: RowsOf,
        schema: str | StructType | None,
        optional: tuple[str, ...] = (),
        subtasks: list[int] | None = None,
    ) -> DataFrame:
        numbered = numbers(session(self._given_spark), files.vertex.parallelism)
        if subtasks is not None:
            numbered = numbered.where(numbered.id.isin(subtasks))
        script, given = Script.of_program(), self._given_shapes(rows, schema)
        shapes, unused = {**_FIXED, **given}, set(optional)
        if not shapes.keys() >= set(rows.columns):
            found = self._found_shapes(numbered, ShapeScan(files, rows, script))
            shapes, unused = {**found, **shapes}, {name for name in optional if found[name] == UNKNOWN}
        columns = tuple((name, shapes[name]) for name in rows.columns if name in given or name not in unused)
        scan = RowScan(files, rows, script, columns)
        return numbered.mapInArrow(scan, ", ".join(f"{quoted(name)} {shape.ddl}" for name, shape in columns))

    def _given_shapes(self, rows: RowsOf, schema: str | StructType | None) -> dict[str, Shape]:
        if schema is None:
            return {}
        from pyspark.sql.types import StructType

        given: Any = StructType.fromDDL(schema) if isinstance(schema, str) else schema
        unknown = [name for name in given.names if name not in rows.columns]
        if unknown:
            raise ValueError(
                f"schema names {', '.join(map(repr, unknown))}; the columns are {', '.join(rows.columns)}, and it may "
                f"give types to all of them or some"
            )
        return {field.name: shape_of_type(field.dataType) for field in given.fields}

    def _found_shapes(self, numbered: DataFrame, scan: ShapeScan) -> dict[str, Shape]:
        answers = collected(numbered.mapInArrow(scan, "shapes binary"), f"reading state of {self.path}")
        by_task: list[list[Shape]] = [each for (pickled,) in answers if (each := pickle.loads(pickled)) is not None]
        columns = zip(*by_task, strict=True) if by_task else [()] * len(scan.rows.columns)
        return dict(zip(scan.rows.columns, map(merged, columns), strict=True))
