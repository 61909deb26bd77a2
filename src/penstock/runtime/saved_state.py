"""Saved state in files, as the subtask sees it that is restored from them."""

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
    """A folder of state files, local or not. It can be pickled."""

    def create(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A stream for a new file. The file exists under its name once the stream is closed without an error."""

    def open(self, name: str) -> BinaryIO:
        """A stream that can seek; FileNotFoundError if there is no such file."""

    def size(self, name: str) -> int: ...

    def path_of(self, name: str) -> str:
        """The file's path, for messages."""


@dataclass(frozen=True)
class StateHandle:
    """One state file of one subtask."""

    name: str
    epoch: int
    size: int
    extent: Extent
    states: frozenset[tuple[str, str, str]] = frozenset()
    """(operator id, kind, name) of each state in the file."""
    has_fixed_keys: bool = False
    """True if no class of the program has a say in which key groups the keys in the file belong to.

    If False, or not known: after a change of such a class, a key may belong to another subtask.
    """

    @property
    def has_keyed_state(self) -> bool:
        return any(kind == "keyed" for _, kind, _ in self.states)


@dataclass(frozen=True)
class SavedBlock:
    """A part of a state, with the operator and the subtask that wrote it."""

    subtask: int
    operator_id: str
    kind: Kind
    name: str
    value: Any
    extent: Extent = Extent.ALL
    """ALL if the block is part of a base."""
    has_times: bool | None = None
    """As in `Block`."""


class SavedState(Protocol):
    """The state that one or several former subtasks saved."""

    def blocks(self, operators: frozenset[str], key_groups: range) -> Iterator[SavedBlock]:
        """The state of `operators`, in the order in which it must be applied; of keyed state, at least these groups."""


@dataclass(frozen=True)
class FileChain:
    """The files of one former subtask: a base, and the changes since then in order."""

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
                    # Every file holds all of the operator state and memory, so only the newest counts for these.
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
        """(operator id, kind, name) of each state in the files."""
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
    """The files from which a subtask is restored after a snapshot: earlier ones that still count, and the new one.

    Every file holds all state except keyed state. So a file without keyed state counts until there is a newer one.
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
