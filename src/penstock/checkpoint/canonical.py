"""The canonical format of savepoints: state as Parquet, which every version of Penstock can read, and Spark as well.

    state/<operator id>/keyed/<state>/part-00000.parquet       a row for each key and namespace
    state/<operator id>/operator/<state>/part-00000.parquet    a row for each item of a list or broadcast state
    state/<operator id>/memory/part-00000                      what else the task remembers, for an unchanged job

The number of a part is that of the subtask that left it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from penstock.checkpoint.folders import Folder
from penstock.checkpoint.keyed_entries import FileOfState, KeyedEntries
from penstock.checkpoint.metadata import VertexEntry
from penstock.checkpoint.parquet_parts import (
    Part,
    PartWriter,
    StateName,
    broadcast_row,
    keyed_row,
    list_row,
    state_of,
)
from penstock.common.exceptions import CorruptStateError
from penstock.runtime.saved_state import FileChain, SavedBlock, StateFolder, StateHandle
from penstock.runtime.state.operator import Saved
from penstock.runtime.state.state_file import Kind, StateFileReader


def write_canonical(
    chain: FileChain, vertex: VertexEntry, subtask: int, target: Folder, left_out: frozenset[StateName] = frozenset()
) -> tuple[StateHandle, ...]:
    """Write what one former subtask left of the vertex's operators: a file for each state that is not `left_out`.

    Needs memory for what changed since the base, and for one block of the base at a time.
    """
    with open_chain(chain, frozenset(vertex.names)) as source:
        epoch = max((handle.epoch for handle in chain.handles), default=0)
        has_fixed_keys = all(handle.has_fixed_keys or not handle.has_keyed_state for handle in chain.handles)
        writer = PartWriter(target, subtask, epoch, has_fixed_keys)
        for state in source.keyed_states():
            if state not in left_out:
                _write_keyed_state(writer, state, source.entries_of(state), vertex.max_parallelism)
        for operator_id, saved in source.operator_states():
            _write_operator_state(writer, operator_id, saved, left_out)
        for state, memory in source.memories():
            if state not in left_out:
                writer.memory(state, memory)
        return tuple(writer.handles)


def _write_keyed_state(writer: PartWriter, state: StateName, entries: KeyedEntries, max_parallelism: int) -> None:
    rows = (keyed_row(key, namespace, value, max_parallelism) for namespace, key, value in entries)
    writer.keyed(state, rows, has_parts=lambda: entries.has_parts, has_times=entries.has_times)


def _write_operator_state(writer: PartWriter, operator_id: str, saved: Saved, left_out: frozenset[StateName]) -> None:
    for name, (distribution, items) in saved.items():
        state = StateName(operator_id, "operator", name)
        if state in left_out:
            continue
        if distribution == "broadcast":
            writer.operator(state, distribution, (broadcast_row(key, item) for key, item in items.items()))
        else:
            writer.operator(state, distribution, (list_row(distribution, item) for item in items))


@dataclass(frozen=True)
class OpenChain:
    """The open state files of one subtask, the base first. Reading gives each entry once, and none that was removed."""

    readers: list[StateFileReader]
    operators: frozenset[str]

    def keyed_states(self) -> list[StateName]:
        blocks = [block for reader in self.readers for block in reader.blocks if block.kind == "keyed"]
        names = dict.fromkeys(StateName(block.operator_id, block.kind, block.name) for block in blocks)
        return [name for name in names if name.operator_id in self.operators]

    def entries_of(self, state: StateName) -> KeyedEntries:
        return KeyedEntries([FileOfState(reader, state.operator_id, state.name) for reader in self.readers])

    def operator_states(self) -> Iterator[tuple[str, Saved]]:
        """By operator. Every file holds all of them, as it does with memories, so the newest file is enough."""
        for reader in self.readers[-1:]:
            for block, value in reader.values("operator"):
                if block.operator_id in self.operators:
                    yield block.operator_id, cast(Saved, value)

    def memories(self) -> Iterator[tuple[StateName, bytes]]:
        for reader in self.readers[-1:]:
            for block in reader.blocks:
                if block.kind == "memory" and block.operator_id in self.operators:
                    yield StateName(block.operator_id, block.kind, block.name), reader.content(block)


@contextmanager
def open_chain(chain: FileChain, operators: frozenset[str]) -> Iterator[OpenChain]:
    """The files of a chain, to read what they hold of `operators`."""
    with ExitStack() as files:
        yield OpenChain([files.enter_context(_opened(chain, handle)) for handle in chain.handles], operators)


@dataclass(frozen=True)
class CanonicalState:
    """What one former subtask left in a savepoint of the canonical format."""

    folder: StateFolder
    handles: tuple[StateHandle, ...]
    subtask: int
    operator_names: dict[str, str] = field(default_factory=dict)

    def blocks(self, operators: frozenset[str], key_groups: range) -> Iterator[SavedBlock]:
        lists: dict[str, Saved] = {}
        for handle, state in ((handle, state_of(handle)) for handle in self.handles):
            if state.operator_id not in operators:
                continue
            if state.kind == "keyed":
                has_times = self._part(handle).has_times()
                # The key groups in the file are those of the classes that the program had.
                wanted = key_groups if handle.has_fixed_keys else None
                for contents in self._part(handle).contents(wanted):
                    yield self._block(state.operator_id, "keyed", state.name, contents, has_times)
            elif state.kind == "operator":
                lists.setdefault(state.operator_id, {})[state.name] = self._part(handle).saved()
            else:
                yield self._memory(handle)
        for operator_id, saved in lists.items():
            # As in state files, all operator state of an operator is one block.
            yield self._block(operator_id, "operator", ", ".join(saved), saved)

    def _part(self, handle: StateHandle) -> Part:
        return Part(self.folder, handle, self.subtask, self.operator_names)

    def _memory(self, handle: StateHandle) -> SavedBlock:
        with _opened(self, handle) as reader:
            block = reader.blocks[0]
            return self._block(block.operator_id, "memory", block.name, reader.value(block))

    def _block(self, operator_id: str, kind: Kind, name: str, value: Any, has_times: bool | None = None) -> SavedBlock:
        return SavedBlock(self.subtask, operator_id, kind, name, value, has_times=has_times)


@contextmanager
def _opened(files: FileChain | CanonicalState, handle: StateHandle) -> Iterator[StateFileReader]:
    path = files.folder.path_of(handle.name)
    try:
        content = files.folder.open(handle.name)
    except FileNotFoundError:
        operators = ", ".join(files.operator_names.values())
        raise CorruptStateError(
            f"state file {path} is missing; it belongs to subtask {files.subtask} of '{operators}'"
        ) from None
    with content:
        yield StateFileReader(path, content, files.folder.size(handle.name), files.operator_names)
