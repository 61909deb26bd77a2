"""The file sink in the driver: shows part files when their checkpoint is complete."""

from __future__ import annotations

import posixpath

from penstock.datastream.connectors.file_system.part_files import (
    FileCommittable,
    InProgressFileToCleanup,
    PartFile,
)
from penstock.datastream.connectors.sink_v2 import CommitRequest, Committer
from penstock.files.locations import store_at


class FileCommitter(Committer[FileCommittable]):
    """Gives part files their final names, and removes what is not needed. What was done already is left alone."""

    def __init__(self, base_path: str) -> None:
        self._files, _ = store_at(base_path)
        self._shown: set[str] = set()
        """What the last call showed: after a restart it comes again, and somebody may have fetched it by then."""

    def commit(self, requests: list[CommitRequest[FileCommittable]]) -> None:
        folders = set()
        parts = set()
        for request in requests:
            part = request.get_committable()
            if isinstance(part, InProgressFileToCleanup):
                self._remove(part)
                continue
            parts.add(part.path)
            if self._show(part, request):
                folders.add(posixpath.dirname(part.path))
        for folder in folders:
            self._files.sync_folder(folder)
        self._shown = parts

    def _remove(self, file: InProgressFileToCleanup) -> None:
        if self._files.size_of(file.hidden_path) is not None:
            self._files.delete(file.hidden_path)

    def _show(self, part: PartFile, request: CommitRequest[FileCommittable]) -> bool:
        """True if the file was renamed."""
        size = self._files.size_of(part.hidden_path)
        if size is None:
            if self._files.size_of(part.path) is None and part.path not in self._shown:
                request.signal_failed_with_unknown_reason(_lost(part))
            else:
                request.signal_already_committed()
            return False
        if size != part.length:
            request.signal_failed_with_unknown_reason(_changed(part, size))
            return False
        self._files.rename(part.hidden_path, part.path)
        return True


def _lost(part: PartFile) -> FileNotFoundError:
    return FileNotFoundError(
        f"FileSink: the checkpoint holds {part.path}, but neither this file nor {part.hidden_path}, from which it is "
        f"made, is there; it was removed, or is on another machine. The driver and all executors must reach a sink's "
        f"folder, and finished files must stay until the next checkpoint is complete"
    )


def _changed(part: PartFile, size: int) -> OSError:
    return OSError(
        f"FileSink: {part.hidden_path} has {size} bytes, but the checkpoint says {part.length}; something else writes "
        f"to the sink's folder"
    )
