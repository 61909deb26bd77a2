"""Finds the checkpoint or savepoint that a user named by a path."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from datetime import datetime

from penstock.checkpoint.folders import Folder, folder_at, numbers_after
from penstock.checkpoint.metadata import METADATA, CheckpointMetadata, VertexEntry, decode_metadata
from penstock.checkpoint.restoring import FoundCheckpoint
from penstock.common.exceptions import CheckpointError, CorruptStateError
from penstock.files.locations import location_above
from penstock.runtime.saved_state import StateHandle
from penstock.runtime.state.state_file import StateFileReader

_log = logging.getLogger(__name__)
CHECKPOINT_PREFIX = "chk-"
_MOST_LOOKED_AT = 200
_MOST_SHOWN = 5

OpenFolder = Callable[[str], Folder]


def find_checkpoint(path: str, open_folder: OpenFolder = folder_at) -> FoundCheckpoint:
    """`path`: a savepoint's folder, a `chk-N` folder, the `_metadata` in either, or the folder of a job's checkpoints.

    In the last case this is the newest undamaged checkpoint: every byte is checked first, and a warning names each
    damaged one.
    """
    place = location_above(path, METADATA)
    try:
        folder = open_folder(place)
        names = folder.names()
        if METADATA in names:
            return read_checkpoint(folder, lambda: open_folder(location_above(folder.uri)))
        return _newest_undamaged(folder, checkpoint_numbers(names), path)
    except OSError as error:
        # An older checkpoint is no substitute: the job would repeat what it has done since.
        raise CheckpointError(f"{path} cannot be read now ({error}); try again when its storage is back") from error


def find_claimed(path: str, open_folder: OpenFolder = folder_at) -> FoundCheckpoint | None:
    """What a job has claimed and not removed, of which some files may be gone; None if all are.

    None also if `path` is the folder of a job's checkpoints: nobody knows any more which one was meant.
    """
    folder = open_folder(location_above(path, METADATA))
    place = folder.path_of(METADATA)
    try:
        metadata = decode_metadata(folder.read(METADATA), place)
    except FileNotFoundError:
        return None
    files = folder if metadata.is_savepoint else open_folder(location_above(folder.uri))
    return FoundCheckpoint(metadata, files, location_above(place))


def _newest_undamaged(folder: Folder, numbers: list[int], path: str) -> FoundCheckpoint:
    if not numbers:
        raise CheckpointError(
            f"no checkpoint or savepoint at {path}: expected a folder with a {METADATA} file (a savepoint, or chk-N), "
            f"or a job's folder with chk-N folders in it{_there_are(folder)}"
        )
    for number in sorted(numbers, reverse=True):
        try:
            found = read_checkpoint(folder.within(f"{CHECKPOINT_PREFIX}{number}"), lambda: folder)
            check_contents(found)
            return found
        except CorruptStateError as error:
            _log.warning("%s; trying the checkpoint before it", error)
    raise CorruptStateError(f"none of the checkpoints in {path} is complete and undamaged")


def _there_are(folder: Folder) -> str:
    """The checkpoints one folder further down, newest first, as the end of an error; empty if there are none."""
    known = []
    for name in sorted(folder.names())[:_MOST_LOOKED_AT]:
        with contextlib.suppress(OSError, CheckpointError):  # No folder, or not one of ours
            known.append(_newest_in(folder.within(name)))
    newest = sorted(filter(None, known), reverse=True)
    if not newest:
        return ""
    shown = [
        f"  {path}  ({datetime.fromtimestamp(at_ms / 1000):%Y-%m-%d %H:%M:%S})" for at_ms, path in newest[:_MOST_SHOWN]
    ]
    more = len(newest) - len(shown)
    return "\n".join(["; name one of those below it, newest first:", *shown, *([f"  and {more} more"] if more else [])])


def _newest_in(folder: Folder) -> tuple[int, str] | None:
    """When it was taken, and where it is."""
    names = folder.names()
    numbers = checkpoint_numbers(names)
    if METADATA not in names:
        if not numbers:
            return None
        folder = folder.within(f"{CHECKPOINT_PREFIX}{max(numbers)}")
    path = folder.path_of(METADATA)
    return decode_metadata(folder.read(METADATA), path).timestamp_ms, location_above(path)


def checkpoint_numbers(names: list[str]) -> list[int]:
    return numbers_after(CHECKPOINT_PREFIX, names)


def read_checkpoint(folder: Folder, folder_of_job: Callable[[], Folder]) -> FoundCheckpoint:
    """The checkpoint or savepoint whose `_metadata` is in `folder`; all its files must be there.

    Files of a checkpoint are named relative to `folder_of_job`, those of a savepoint to its own folder.
    """
    path = folder.path_of(METADATA)
    try:
        content = folder.read(METADATA)
    except FileNotFoundError:
        raise CorruptStateError(f"{path} is missing: the checkpoint was never completed, or was removed") from None
    metadata = decode_metadata(content, path)
    files = folder if metadata.is_savepoint else folder_of_job()
    for vertex in metadata.vertices:
        for handle in (handle for handles in vertex.subtasks for handle in handles):
            _check_size(handle, files, vertex, metadata)
    return FoundCheckpoint(metadata, files, location_above(path))


def _check_size(handle: StateHandle, folder: Folder, vertex: VertexEntry, metadata: CheckpointMetadata) -> None:
    try:
        size = folder.size(handle.name)
    except FileNotFoundError:
        size = -1
    if size != handle.size:
        what = "is missing" if size < 0 else f"has {size} bytes instead of {handle.size}"
        raise CorruptStateError(
            f"state file {folder.path_of(handle.name)} of operator '{', '.join(vertex.names.values())}' {what}; it "
            f"belongs to checkpoint {metadata.checkpoint_id}"
        )


def check_contents(found: FoundCheckpoint) -> None:
    """Raise CorruptStateError if a state file of a checkpoint is not what was written."""
    for vertex in found.metadata.vertices:
        for handle in {handle for handles in vertex.subtasks for handle in handles}:
            with found.folder.open(handle.name) as content:
                reader = StateFileReader(found.folder.path_of(handle.name), content, handle.size, vertex.names)
                for block in reader.blocks:
                    reader.content(block)
