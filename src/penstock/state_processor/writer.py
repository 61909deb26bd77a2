"""Savepoints from DataFrames."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from penstock.checkpoint.finding import find_checkpoint
from penstock.checkpoint.folders import Folder, folder_at
from penstock.checkpoint.metadata import CANONICAL, METADATA, CheckpointMetadata, OperatorEntry, VertexEntry
from penstock.checkpoint.parquet_parts import StateName
from penstock.checkpoint.restoring import FoundCheckpoint
from penstock.common.clocks import wall_clock_ms
from penstock.common.constants import UPPER_BOUND_MAX_PARALLELISM
from penstock.common.exceptions import CheckpointError, StateMismatchError
from penstock.common.job_id import JobID
from penstock.datastream.time_domain import TimeDomain
from penstock.graph.stream_graph import LOWER_BOUND_MAX_PARALLELISM
from penstock.runtime.operators.process import TIMER_SERVICE
from penstock.runtime.saved_state import StateHandle
from penstock.runtime.state.operator import Distribution
from penstock.runtime.timers import TIMER_TABLE_PREFIX
from penstock.state_processor.jobs import collected, numbers, session
from penstock.state_processor.operators import Operator, OperatorIdentifier, find_operator, matching_operators
from penstock.state_processor.parts import (
    HANDLES_DDL,
    KEYED_ROWS,
    OPERATOR_ROWS,
    CarryOver,
    Column,
    KeyedEntriesOf,
    OperatorEntriesOf,
    WriteParts,
    ddl_of,
)
from penstock.state_processor.script import Script

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def new_savepoint(
    max_parallelism: int = LOWER_BOUND_MAX_PARALLELISM, spark: SparkSession | None = None
) -> SavepointWriter:
    """A savepoint to be written from scratch.

    `max_parallelism` must be that of the job that will start from it; a job that sets none takes this one.
    """
    return SavepointWriter(None, max_parallelism, spark)


def from_existing(
    path: str, max_parallelism: int = LOWER_BOUND_MAX_PARALLELISM, spark: SparkSession | None = None
) -> SavepointWriter:
    """A savepoint to be written from another one, or from a checkpoint, with changes.

    `max_parallelism` is for operators that are new in it.
    """
    return SavepointWriter(find_checkpoint(path), max_parallelism, spark)


@dataclass(frozen=True)
class _NewState:
    """A state to write."""

    state: StateName
    data: DataFrame
    key: Column | None
    value: Column
    distribution: Distribution | None = None
    """None for keyed state."""
    timestamp: Column | None = None


@dataclass
class _Vertex:
    """An operator or a chain of them in the new savepoint."""

    operators: tuple[OperatorEntry, ...]
    parallelism: int
    max_parallelism: int
    handles: list[list[StateHandle]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.handles = [[] for _ in range(self.parallelism)]

    def entry(self) -> VertexEntry:
        return VertexEntry(self.operators, self.parallelism, self.max_parallelism, tuple(map(tuple, self.handles)))


class SavepointWriter:
    """Gathers what a savepoint is to hold; `write` writes it.

    `key` and `value` name columns, or are functions of a row: `lambda row: (row.country, row.city)`. A struct becomes a
    Row, or a tuple if its fields are called `_1`, `_2` ...; an array a list, a map a dict. The types must be those that
    the job works with: a key must equal what the job's `key_by` returns.

    What a keyed state holds: a value or reducing state the value, a list state the list, a map state the dict, an
    aggregating state the accumulator. Rows whose value is null are left out.
    """

    def __init__(self, base: FoundCheckpoint | None, max_parallelism: int, spark: SparkSession | None = None) -> None:
        if not 1 <= max_parallelism <= UPPER_BOUND_MAX_PARALLELISM:
            raise ValueError(f"max_parallelism must be 1 to {UPPER_BOUND_MAX_PARALLELISM}, got {max_parallelism}")
        self._base = base
        self._max_parallelism = max_parallelism
        self._given_spark = spark
        self._operators: dict[str, OperatorEntry] = {}
        self._states: dict[StateName, _NewState] = {}
        self._removed: set[str] = set()

    def __repr__(self) -> str:
        base = "new" if self._base is None else f"from {self._base.path!r}"
        return f"SavepointWriter({base}, states={sorted(state.name for state in self._states)})"

    def with_keyed_state(
        self, operator: Operator, state_name: str, data: DataFrame, key: Column = "key", value: Column = "value"
    ) -> SavepointWriter:
        """State by key, one row for each. A state of that name is replaced, the operator's other states stay."""
        return self._with(_NewState(self._state(operator, "keyed", state_name), data, key, value))

    def with_timers(
        self,
        operator: Operator,
        data: DataFrame,
        key: Column = "key",
        timestamp: Column = "timestamp",
        time_domain: TimeDomain = TimeDomain.EVENT_TIME,
    ) -> SavepointWriter:
        """Timers of a keyed process function, instead of those it has in that time domain."""
        domain = time_domain.name.lower().replace("_", "-")
        state = self._state(operator, "keyed", f"{TIMER_TABLE_PREFIX}{TIMER_SERVICE}/{domain}")
        return self._with(_NewState(state, data, key, _is_set, timestamp=timestamp))

    def with_list_state(
        self, operator: Operator, state_name: str, data: DataFrame, value: Column = "value"
    ) -> SavepointWriter:
        """Items of a list that is dealt out to the subtasks."""
        state = self._state(operator, "operator", state_name)
        return self._with(_NewState(state, data, None, value, "split"))

    def with_union_state(
        self, operator: Operator, state_name: str, data: DataFrame, value: Column = "value"
    ) -> SavepointWriter:
        """Items of a list that every subtask gets in full."""
        state = self._state(operator, "operator", state_name)
        return self._with(_NewState(state, data, None, value, "union"))

    def with_broadcast_state(
        self, operator: Operator, state_name: str, data: DataFrame, key: Column = "key", value: Column = "value"
    ) -> SavepointWriter:
        """Entries of a broadcast state, one row for each key."""
        state = self._state(operator, "operator", state_name)
        return self._with(_NewState(state, data, key, value, "broadcast"))

    def remove_operator(self, operator: Operator) -> SavepointWriter:
        """Leave out all state of an operator, and how far it was read if it is a source."""
        if self._base is None:
            raise StateMismatchError(f"remove_operator({operator!r}): a new savepoint has no operators to remove")
        self._removed.add(find_operator(self._base, operator)[1].operator_id)
        return self

    def _state(self, operator: Operator, kind: Literal["keyed", "operator"], name: str) -> StateName:
        entry = self._entry(operator)
        state = StateName(entry.operator_id, kind, name)
        if state in self._states:
            raise StateMismatchError(
                f"operator {entry}: state '{name}' is given twice; put its rows into one DataFrame"
            )
        self._operators[entry.operator_id] = entry
        return state

    def _entry(self, operator: Operator) -> OperatorEntry:
        if self._base is not None and matching_operators(self._base, operator):
            return find_operator(self._base, operator)[1]
        identifier = OperatorIdentifier.for_uid(operator) if isinstance(operator, str) else operator
        return OperatorEntry(identifier.operator_id, identifier.uid or identifier.operator_id, identifier.uid)

    def _with(self, state: _NewState) -> SavepointWriter:
        self._states[state.state] = state
        return self

    # --- writing ---------------------------------------------------------------------------------------------------

    def write(self, path: str) -> str:
        """Write the savepoint into `path`, a new or empty folder that all executors reach.

        Returns its URI, for `run -s`. Spark jobs write it. A job that starts from it begins without watermarks, as
        after any change.
        """
        target = folder_at(path)
        if target.names():
            raise CheckpointError(f"{path} is not empty; name a folder that is, or that does not exist yet")
        if not self._states and self._base is None:
            raise CheckpointError("the savepoint would be empty; give it state with with_keyed_state(...) or others")
        target.make()
        try:
            vertices = self._write_state(session(self._given_spark), target)
            target.write(METADATA, self._metadata(vertices).encode())
        except BaseException:
            target.delete_all()
            raise
        return target.uri

    def _write_state(self, spark: SparkSession, target: Folder) -> list[_Vertex]:
        vertices = self._carried(spark, target) if self._base is not None else []
        by_operator = {each.operator_id: vertex for vertex in vertices for each in vertex.operators}
        for operator_id, entry in self._operators.items():
            if operator_id not in by_operator:
                parallelism = min(self._max_parallelism, spark.sparkContext.defaultParallelism)
                by_operator[operator_id] = _Vertex((entry,), parallelism, self._max_parallelism)
                vertices.append(by_operator[operator_id])
        for state in self._states.values():
            vertex = by_operator[state.state.operator_id]
            for subtask, pickled in self._written(state, vertex, target):
                vertex.handles[subtask].extend(pickle.loads(pickled))
        return vertices

    def _carried(self, spark: SparkSession, target: Folder) -> list[_Vertex]:
        """What stays of the base."""
        assert self._base is not None
        former = [
            replace(vertex, operators=kept)
            for vertex in self._base.metadata.vertices
            if (kept := tuple(each for each in vertex.operators if each.operator_id not in self._removed))
        ]
        # What a task remembers besides its state fits only that state.
        memories = {StateName(each.operator_id, "memory", "task") for vertex in former for each in vertex.operators}
        subtasks = tuple((vertex, number) for vertex in former for number in range(vertex.parallelism))
        is_canonical = self._base.metadata.savepoint_format == CANONICAL
        left_out = frozenset({*self._states, *memories})
        carry = CarryOver(self._base.folder, is_canonical, subtasks, left_out, target, Script.of_program())
        answers = collected(numbers(spark, len(subtasks)).mapInArrow(carry, HANDLES_DDL), f"copying {self._base.path}")
        handles = {number: pickle.loads(pickled) for number, pickled in answers}
        vertices = [_Vertex(vertex.operators, vertex.parallelism, vertex.max_parallelism) for vertex in former]
        places = [(vertex, subtask) for vertex in vertices for subtask in range(vertex.parallelism)]
        for number, (vertex, subtask) in enumerate(places):
            vertex.handles[subtask].extend(handles[number])
        return vertices

    def _written(self, new: _NewState, vertex: _Vertex, target: Folder) -> list[tuple[int, bytes]]:
        script, name = Script.of_program(), self._operators[new.state.operator_id].name
        if new.distribution is None:
            assert new.key is not None
            schema = KEYED_ROWS
            entries: KeyedEntriesOf | OperatorEntriesOf = KeyedEntriesOf(
                new.key, new.value, vertex.max_parallelism, vertex.parallelism, script, new.timestamp
            )
        else:
            schema = OPERATOR_ROWS
            entries = OperatorEntriesOf(new.key, new.value, new.distribution, vertex.parallelism, script)
        write = WriteParts(new.state, name, new.distribution, target, self._checkpoint_id(), script)
        rows = new.data.mapInArrow(entries, ddl_of(schema)).repartition(vertex.parallelism, "subtask")
        order = ["subtask", "key_group", "key_hash"] if new.distribution is None else ["subtask", "key_hash"]
        written = rows.sortWithinPartitions(*order).mapInArrow(write, HANDLES_DDL)
        return collected(written, f"writing state '{new.state.name}' of operator '{name}'")

    def _checkpoint_id(self) -> int:
        return 1 if self._base is None else self._base.metadata.checkpoint_id

    def _metadata(self, vertices: list[_Vertex]) -> CheckpointMetadata:
        now_ms = wall_clock_ms()
        base = (
            self._base.metadata
            if self._base is not None
            else CheckpointMetadata(str(JobID.generate()), "state processor", self._checkpoint_id(), now_ms, "", ())
        )
        return replace(
            base,
            timestamp_ms=now_ms,
            topology="",  # No job wrote this: each takes its operators' state and starts without watermarks.
            vertices=tuple(vertex.entry() for vertex in vertices),
            positions={id: each for id, each in base.positions.items() if id not in self._removed},
            committables={id: each for id, each in base.committables.items() if id not in self._removed},
            savepoint_format=CANONICAL,
        )


def _is_set(row: object) -> bool:
    """What a timer's entry holds."""
    return True
