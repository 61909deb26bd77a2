"""Savepoints: a complete checkpoint, copied into a folder of its own that belongs to the user and can be moved."""

from __future__ import annotations

import posixpath
import secrets
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from penstock.checkpoint.finding import find_checkpoint
from penstock.checkpoint.folders import Folder, folder_at
from penstock.checkpoint.metadata import CANONICAL, METADATA, NATIVE, VertexEntry, decode_metadata
from penstock.checkpoint.restoring import FoundCheckpoint
from penstock.checkpoint.store import remove_savepoint
from penstock.common.exceptions import CheckpointError
from penstock.files.locations import location_above
from penstock.runtime.saved_state import FileChain, StateHandle

FORMATS = (CANONICAL, NATIVE)


@dataclass(frozen=True)
class SubtaskCopy:
    """The part of a savepoint that one subtask's state makes up. Can be sent to an executor."""

    source: Folder
    vertex: VertexEntry
    """Without the files of its subtasks: in every copy they would add up to the square of the parallelism."""
    subtask: int
    handles: tuple[StateHandle, ...]
    target: Folder
    format_type: str

    def __call__(self) -> tuple[StateHandle, ...]:
        if self.format_type == NATIVE:
            return tuple(self._copied(handle) for handle in self.handles)
        from penstock.checkpoint.canonical import write_canonical  # Needs Arrow, which takes a while to load.

        chain = FileChain(self.source, self.handles, self.subtask, self.vertex.names)
        return write_canonical(chain, self.vertex, self.subtask, self.target)

    def _copied(self, handle: StateHandle) -> StateHandle:
        name = posixpath.basename(handle.name)
        with self.source.open(handle.name) as content, self.target.create(name) as out:
            shutil.copyfileobj(content, out, 1 << 20)
        return replace(handle, name=name)


Copy = Callable[[], tuple[StateHandle, ...]]
RunCopies = Callable[[Iterable[Copy]], list[tuple[StateHandle, ...]]]
"""Runs copies, perhaps at the same time, and gives their results in order."""


def one_after_the_other(copies: Iterable[Copy]) -> list[tuple[StateHandle, ...]]:
    return [copy() for copy in copies]


def write_savepoint(
    found: FoundCheckpoint, directory: str, format_type: str = CANONICAL, run: RunCopies = one_after_the_other
) -> str:
    """Write a savepoint of a checkpoint into a new folder in `directory`; its path."""
    check_format(format_type)
    name = f"savepoint-{found.metadata.job_id[:6]}-{secrets.token_hex(6)}"
    target = folder_at(directory).within(name)
    target.make()
    try:
        vertices = found.metadata.vertices
        copies = [
            SubtaskCopy(found.folder, replace(vertex, subtasks=()), subtask, handles, target, format_type)
            for vertex in vertices
            for subtask, handles in enumerate(vertex.subtasks)
        ]
        copied = iter(run(copies))
        metadata = replace(
            found.metadata,
            vertices=tuple(
                replace(vertex, subtasks=tuple(next(copied) for _ in range(vertex.parallelism))) for vertex in vertices
            ),
            savepoint_format=format_type,
        )
        target.write(METADATA, metadata.encode())
    except BaseException:
        target.delete_all()
        raise
    return target.uri


def write_savepoint_of(checkpoint_path: str, target_directory: str, format_type: str = CANONICAL) -> str:
    """Write a savepoint of a stopped job from a checkpoint that it left; its path."""
    found = find_checkpoint(checkpoint_path)
    if found.metadata.savepoint_format == CANONICAL:
        raise CheckpointError(f"{found.path} is a savepoint already; copy its folder, it can be moved")
    return write_savepoint(found, target_directory, format_type)


def dispose_savepoint(path: str) -> None:
    """Remove a savepoint. Only its own files go: what else lies in its folder stays, and so does every other folder."""
    folder = folder_at(location_above(path, METADATA))
    if METADATA not in folder.names():
        raise CheckpointError(f"{path} is no savepoint: there is no file {METADATA} in it; name a savepoint's folder")
    metadata = decode_metadata(folder.read(METADATA), folder.path_of(METADATA))
    if not metadata.is_savepoint:
        raise CheckpointError(f"{path} is a checkpoint, not a savepoint; remove its folder yourself")
    remove_savepoint(folder, metadata)


def check_format(format_type: str) -> None:
    if format_type not in FORMATS:
        raise CheckpointError(f"savepoint format {format_type!r} is not known; use {' or '.join(FORMATS)}")
