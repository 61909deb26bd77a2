"""Finds the checkpoint or savepoint that a user named by a path."""

from __future__ import annotations

import logging
import posixpath

from penstock.checkpoint.folders import Folder, LocalFolder, folder_at
from penstock.checkpoint.metadata import METADATA, CheckpointMetadata, decode_metadata
from penstock.checkpoint.restoring import FoundCheckpoint
from penstock.common.exceptions import CheckpointError, CorruptStateError

_log = logging.getLogger(__name__)
CHECKPOINT_PREFIX = "chk-"


def find_checkpoint(path: str) -> FoundCheckpoint:
    """`path`: a savepoint's folder, a `chk-N` folder, the `_metadata` in either, or the folder of a job's checkpoints.

    In the last case the newest checkpoint that can be read is taken, and a warning names those that cannot.
    """
    folder = folder_at(path.rstrip("/").removesuffix(f"/{METADATA}"))
    names = folder.names()
    if METADATA in names:
        return read_checkpoint(folder)
    numbers = checkpoint_numbers(names)
    if not numbers:
        raise CheckpointError(
            f"no checkpoint or savepoint at {path}: expected a folder with a {METADATA} file (a savepoint, or chk-N), "
            f"or a job's folder with chk-N folders in it"
        )
    for number in sorted(numbers, reverse=True):
        try:
            return read_checkpoint(folder.within(f"{CHECKPOINT_PREFIX}{number}"))
        except CorruptStateError as error:
            _log.warning("%s; trying the checkpoint before it", error)
    raise CorruptStateError(f"none of the checkpoints in {path} can be read")


def checkpoint_numbers(names: list[str]) -> list[int]:
    found = [name.removeprefix(CHECKPOINT_PREFIX) for name in names if name.startswith(CHECKPOINT_PREFIX)]
    return [int(number) for number in found if number.isdigit()]


def read_checkpoint(folder: Folder) -> FoundCheckpoint:
    """The checkpoint or savepoint whose `_metadata` is in `folder`; all its files must be there."""
    path = folder.path_of(METADATA)
    try:
        content = folder.read(METADATA)
    except FileNotFoundError:
        raise CorruptStateError(f"{path} is missing: the checkpoint was never completed, or was removed") from None
    metadata = decode_metadata(content, path)
    files = folder if metadata.is_savepoint else parent_of(folder)
    _check_files(metadata, files)
    return FoundCheckpoint(metadata, files, path.removesuffix(f"/{METADATA}"))


def _check_files(metadata: CheckpointMetadata, folder: Folder) -> None:
    for vertex in metadata.vertices:
        for handle in (handle for handles in vertex.subtasks for handle in handles):
            try:
                size = folder.size(handle.name)
            except FileNotFoundError:
                size = -1
            if size != handle.size:
                what = "is missing" if size < 0 else f"has {size} bytes instead of {handle.size}"
                raise CorruptStateError(
                    f"state file {folder.path_of(handle.name)} of operator "
                    f"'{', '.join(vertex.names.values())}' {what}; it belongs to checkpoint {metadata.checkpoint_id}"
                )


def parent_of(folder: Folder) -> Folder:
    if isinstance(folder, LocalFolder):
        return LocalFolder(posixpath.dirname(folder.path))
    return folder_at(posixpath.dirname(folder.uri))
