"""State as it lies in files, from the point of view of the subtask that is restored from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Protocol

from penstock.common.exceptions import CorruptStateError
from penstock.runtime.state.state_file import Kind, StateFileReader
from penstock.runtime.state.table import Extent

SHARED = "shared"
"""Where in a job's folder the state files are, as in Flink."""


class StateFolder(Protocol):
    """Where state files are. Can be pickled; local or not."""

    def create(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A stream to write a file with, which is there under its name once the stream was closed without error."""

    def open(self, name: str) -> BinaryIO:
        """A stream that can seek; FileNotFoundError if there is no such file."""

    def size(self, name: str) -> int: ...

    def path_of(self, name: str) -> str:
        """How people call the file."""


@dataclass(frozen=True)
class StateHandle:
    """One state file of one subtask."""

    name: str
    epoch: int
    size: int
    extent: Extent
    states: frozenset[tuple[str, str, str]] = frozenset()
    """(operator id, kind, name) of what is in it."""

    @property
    def has_keyed_state(self) -> bool:
        return any(kind == "keyed" for _, kind, _ in self.states)


@dataclass(frozen=True)
class SavedBlock:
    """A part of a state, and which subtask of which operator wrote it."""

    subtask: int
    operator_id: str
    kind: Kind
    name: str
    value: Any
    extent: Extent = Extent.ALL
    """Whether it is part of a base."""
    has_times: bool | None = None
    """As in `Block`."""


class SavedState(Protocol):
    """What one or several former subtasks left."""

    def blocks(self, operators: frozenset[str], key_groups: range) -> Iterator[SavedBlock]:
        """The state of `operators` in the order it must be applied; of keyed state at least these key groups."""


@dataclass(frozen=True)
class FileChain:
    """The files of one former subtask: a base, and the changes since in the order they were made."""

    folder: StateFolder
    handles: tuple[StateHandle, ...]
    subtask: int
    operator_names: dict[str, str] = field(default_factory=dict)

    def blocks(self, operators: frozenset[str], key_groups: range) -> Iterator[SavedBlock]:
        for handle in self.handles:
            with self._open(handle) as content:
                path = self.folder.path_of(handle.name)
                reader = StateFileReader(path, content, self.folder.size(handle.name), self.operator_names)
                for block in reader.blocks:
                    # Operator state and memory are whole in every file: the newest counts.
                    if block.operator_id in operators and (block.kind == "keyed" or handle is self.handles[-1]):
                        value = reader.value(block)
                        yield SavedBlock(
                            self.subtask,
                            block.operator_id,
                            block.kind,
                            block.name,
                            value,
                            handle.extent,
                            block.has_times,
                        )

    def states(self) -> frozenset[tuple[str, str, str]]:
        """(operator id, kind, name) of what is in the files."""
        return frozenset().union(*(handle.states for handle in self.handles))

    def _open(self, handle: StateHandle) -> BinaryIO:
        try:
            return self.folder.open(handle.name)
        except FileNotFoundError:
            raise CorruptStateError(
                f"state file {self.folder.path_of(handle.name)} is missing; it belongs to checkpoint {handle.epoch}, "
                f"subtask {self.subtask} of '{', '.join(self.operator_names.values())}'"
            ) from None


def following_handles(handles: tuple[StateHandle, ...], new: StateHandle | None) -> tuple[StateHandle, ...]:
    """What a subtask is restored from after a snapshot: the files before it that still count, and the new one.

    All but keyed state is whole in every file, so a file without keyed state counts until there is a newer one.
    """
    if new is None:
        return handles
    match new.extent:
        case Extent.ALL:
            return (new,)
        case Extent.SINCE_BASE:
            return (*(handle for handle in handles if handle.extent is Extent.ALL), new)
        case Extent.CHANGES:
            return (*(handle for handle in handles if handle.has_keyed_state), new)
